"""Where a value of a child comes from: what ``modelhooks explain`` prints for each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Origin:
    """One value of a child, and who set it.

    ``path`` begins with the child: ``Deployment/chat spec.template.spec.containers[main].image``. List items are named
    as :func:`app.kube.field.Path.key` writes them where they have names. ``source`` is for people: ``spec.image``,
    ``LLMInferenceServiceConfig/shared spec.template``, ``preset kserve-config-llm-template``.
    """

    path: str
    value: Any
    source: str

"""Templates in a user's own spec: what they render to where nothing else has a part in it, and what is wrong with them.

Whether a field is set is not asked here: a base may set it. That shows when the merged spec is rendered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from app.kserve.rendering import decided
from app.kserve.template import OPEN
from app.kserve.templatedata import ServiceData
from app.kube import field
from app.kube.base import Json, KubeModel
from app.kube.decode import SPEC, decode_document
from app.kube.modelfields import check_embedded

SpecT = TypeVar("SpecT", bound=KubeModel)


def with_decided_templates(spec: SpecT, data_of: Callable[[Json], ServiceData]) -> tuple[SpecT, list[field.Error]]:
    """The spec with those templates rendered that mean the same whatever it is combined with: rules see what they make.

    And everything that is wrong with templates; then the spec may be as it was.
    ``data_of`` gives the data that they are rendered with, from the spec as plain JSON.
    """
    if not _has_template(spec):
        return spec, []
    document = spec.model_dump(by_alias=True, exclude_none=True)
    rendered, errors = decided(document, data_of(document))
    if rendered is document:
        return spec, errors
    typed, wrong = decode_document(rendered, type(spec))
    if typed is None:
        return spec, [*errors, *wrong]
    embedded, _ = check_embedded(typed, SPEC)
    return (spec if embedded else typed), [*errors, *embedded]


def _has_template(value: Any) -> bool:
    """Whether an action stands in any text or key."""
    kind = type(value)
    if kind is str:
        return OPEN in value
    if kind is dict:
        return any(OPEN in key or _has_template(item) for key, item in value.items())
    if kind is list:
        return any(map(_has_template, value))
    return isinstance(value, KubeModel) and any(map(_has_template, value.__dict__.values()))

"""Objects and hook calls for tests of the family."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from app.admission.review import Verdict
from app.hooks.kind import Kind
from app.kube.base import Json
from app.llmkube.kinds import KINDS
from app.settings import Settings
from tests import hookcalls
from tests.builders import NOW

URL = "https://example.com/model.gguf"
ALL_PATHS = Settings(llmkube_allowed_host_paths=("/",))
"""Default settings of tests: any file of a node may be a model."""
KEY = "8cc5f1f83d631cc0"
"""Cache key of :data:`URL`, from the spec's table."""

MODEL_KIND, SERVICE_KIND = KINDS


def model(source: str = URL, name: str = "m", status: Json | None = None, **spec: Any) -> Json:
    return parent("Model", name, {"source": source, **spec}, status)


def service(name: str = "s", status: Json | None = None, **spec: Any) -> Json:
    return parent("InferenceService", name, {"modelRef": "m", **spec}, status)


def parent(kind: str, name: str, spec: Json, status: Json | None, generation: int = 1) -> Json:
    return {
        "apiVersion": "inference.llmkube.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "ns1", "uid": f"uid-{name}", "generation": generation},
        "spec": spec,
        "status": status or {},
    }


def kind_of(document: Json) -> Kind[Any, Any]:
    return hookcalls.kind_of(KINDS, document)


def admit(document: Json, settings: Settings | None = None) -> Verdict:
    """Return the verdict on a new object."""
    return hookcalls.admit(kind_of(document), document, None, settings or ALL_PATHS)


def verdict_of_update(before: Json, after: Json, settings: Settings) -> Verdict:
    """Return the verdict on an update."""
    return hookcalls.admit(kind_of(after), after, before, settings)


def errors(document: Json, settings: Settings | None = None) -> list[str]:
    return [str(error) for error in admit(document, settings).errors]


def warned(document: Json) -> list[str]:
    return [*admit(document).warnings]


def sync(
    document: Json,
    children: list[Json] | None = None,
    related: list[Json] | None = None,
    settings: Settings | None = None,
    now: datetime = NOW,
) -> Json:
    """Call the sync hook; kinds without objects are present and empty, and optional kinds are absent."""
    kind = kind_of(document)
    without, given = hookcalls.optional_kinds(kind), settings or ALL_PATHS
    return hookcalls.sync(kind, document, related or (), children or (), without=without, settings=given, now=now)


def customize(document: Json, settings: Settings | None = None) -> list[Json]:
    """Return the rules of the customize hook."""
    return hookcalls.customize(kind_of(document), document, settings=settings)


def child(answer: Json, kind: str) -> Json | None:
    """Return the only child of that kind, or None."""
    children: list[Json] = [item for item in answer["children"] if item["kind"] == kind]
    assert len(children) <= 1
    return children[0] if children else None


def condition(answer: Json, type_: str) -> Json | None:
    return hookcalls.condition(answer, type_) or None


def observed(answered: Json, status: Json | None = None) -> Json:
    """Return a child as observed after it was applied, with Metacontroller's record."""
    return hookcalls.observed(answered, status=status or {})

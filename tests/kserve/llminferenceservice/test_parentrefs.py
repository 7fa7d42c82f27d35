"""``parentRefs`` beside ``gateway.refs``: an error in v1alpha1; in v1alpha2 only where they differ."""

from __future__ import annotations

import pytest

from app.kserve.llminferenceservice import parentrefs
from app.kserve.llminferenceservice.types import LLMInferenceServiceSpec
from tests.kserve.objects import Json

A, B = {"name": "a", "namespace": "x"}, {"name": "b"}


def spec(parents: list[Json], refs: list[Json]) -> LLMInferenceServiceSpec:
    route = {"http": {"spec": {"parentRefs": parents}}}
    return LLMInferenceServiceSpec.model_validate({"router": {"route": route, "gateway": {"refs": refs}}})


@pytest.mark.parametrize(
    ("parents", "refs", "allowed"),
    [
        ([A], [A], True),
        ([A, B], [B, A], True),
        ([A], [B], False),
        ([A, A], [A, B], False),
        ([A], [A, B], False),
        ([{"name": "a"}], [A], False),
    ],
)
def test_both_set(parents: list[Json], refs: list[Json], *, allowed: bool) -> None:
    """The same Gateways in any order are said twice; an absent namespace is no namespace's name."""
    both = spec(parents, refs)
    assert (parentrefs.conflict(both, "v1alpha2") is None) is allowed
    assert bool(parentrefs.warning(both, "v1alpha2")) is allowed
    error = parentrefs.conflict(both, "v1alpha1")
    assert error is not None
    assert str(error.path) == "spec.router.route.http.spec"
    assert parentrefs.warning(both, "v1alpha1") == ""


@pytest.mark.parametrize(("parents", "refs"), [([], [A]), ([A], [])])
@pytest.mark.parametrize("version", ["v1alpha1", "v1alpha2"])
def test_one_alone(parents: list[Json], refs: list[Json], version: str) -> None:
    assert parentrefs.conflict(spec(parents, refs), version) is None
    assert parentrefs.warning(spec(parents, refs), version) == ""

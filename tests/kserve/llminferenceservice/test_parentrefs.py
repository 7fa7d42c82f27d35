"""``parentRefs`` beside ``gateway.refs``: an error in v1alpha1; in v1alpha2 only where they differ."""

from __future__ import annotations

import pytest

from app.kserve.llminferenceservice import parentrefs, v1alpha1
from app.kserve.llminferenceservice.types import LLMInferenceServiceSpec
from tests.kserve.objects import Json

A, B = {"name": "a", "namespace": "x"}, {"name": "b"}


TYPES = (LLMInferenceServiceSpec, v1alpha1.LLMInferenceServiceSpec)


def spec(
    parents: list[Json], refs: list[Json], type_: type[LLMInferenceServiceSpec] = LLMInferenceServiceSpec
) -> LLMInferenceServiceSpec:
    route = {"http": {"spec": {"parentRefs": parents}}}
    return type_.model_validate({"router": {"route": route, "gateway": {"refs": refs}}})


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
    both, older = (spec(parents, refs, type_) for type_ in TYPES)
    assert (parentrefs.conflict(both) is None) is allowed
    assert bool(parentrefs.warning(both)) is allowed
    error = parentrefs.conflict(older)
    assert error is not None
    assert str(error.path) == "spec.router.route.http.spec"
    assert parentrefs.warning(older) == ""


@pytest.mark.parametrize(("parents", "refs"), [([], [A]), ([A], [])])
@pytest.mark.parametrize("type_", TYPES)
def test_one_alone(parents: list[Json], refs: list[Json], type_: type[LLMInferenceServiceSpec]) -> None:
    assert parentrefs.conflict(spec(parents, refs, type_)) is None
    assert parentrefs.warning(spec(parents, refs, type_)) == ""

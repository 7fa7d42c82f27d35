"""Using both ``parentRefs`` and ``gateway.refs`` is an error in v1alpha1; in v1alpha2 only if they differ."""

from __future__ import annotations

import pytest

from app.kserve.conversion import V1ALPHA1, V1ALPHA2
from app.kube.base import Json
from tests.kserve.objects import admit, service

A, B = {"name": "a", "namespace": "x"}, {"name": "b", "namespace": "y"}
PLACE = "spec.router.route.http.spec"


def judged(parents: list[Json], refs: list[Json], version: str = V1ALPHA2) -> tuple[list[str], list[str]]:
    """Return the error at the route, and the warnings about it."""
    route = {"http": {"spec": {"parentRefs": parents, "rules": [{"name": "demo-all"}]}}}
    written = service(router={"route": route, "gateway": {"refs": refs}})
    verdict = admit({**written, "apiVersion": version})
    return [PLACE for error in verdict.errors if str(error.path) == PLACE], [
        said for said in verdict.warnings if PLACE in said
    ]


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
def test_parent_refs_and_gateway_refs_have_to_agree(parents: list[Json], refs: list[Json], *, allowed: bool) -> None:
    """The order of Gateways does not matter; a reference without a namespace differs from one with a namespace."""
    said = [f"{PLACE}.parentRefs: repeats gateway.refs and can be left out"]
    assert judged(parents, refs) == (([], said) if allowed else ([PLACE], []))
    assert judged(parents, refs, V1ALPHA1) == ([PLACE], [])


@pytest.mark.parametrize(("parents", "refs"), [([], [A]), ([A], [])])
@pytest.mark.parametrize("version", [V1ALPHA1, V1ALPHA2])
def test_parent_refs_or_gateway_refs_alone_are_accepted(parents: list[Json], refs: list[Json], version: str) -> None:
    assert judged(parents, refs, version) == ([], [])

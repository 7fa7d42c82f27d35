"""A route of one's own beside ``gateway.refs``: both say to which Gateways it is attached. Source: KServe's webhooks.

What is a mistake in one version of the API is a warning in the next: this is the one place that knows.
"""

from __future__ import annotations

from collections import Counter

from app.kserve.llminferenceservice import rules, v1alpha1
from app.kserve.llminferenceservice.types import LLMInferenceServiceSpec
from app.kube import field


def conflict(spec: LLMInferenceServiceSpec) -> field.Error | None:
    """The error of a spec that has both; from ``v1alpha2`` on they may name the same Gateways, in any order."""
    both = _both(spec)
    if both is None or (not _excludes(spec) and _is_redundant(*both)):
        return None
    detail = "parentRefs and gateway.refs are mutually exclusive: remove parentRefs, the route attaches to gateway.refs"
    return field.invalid(rules.HTTP.child("spec"), {"parentRefs": [name for _, name in both[0]]}, detail)


def warning(spec: LLMInferenceServiceSpec) -> str:
    """What to leave out of a spec that names the same Gateways twice; empty for any other, and where it is an error."""
    both = _both(spec)
    if both is None or _excludes(spec) or not _is_redundant(*both):
        return ""
    return f"{rules.HTTP.child('spec').child('parentRefs')}: repeats gateway.refs and can be left out"


def _excludes(spec: LLMInferenceServiceSpec) -> bool:
    """Whether the two exclude each other even where they say the same: in the older version."""
    return isinstance(spec, v1alpha1.LLMInferenceServiceSpec)


_Names = list[tuple[str, str]]
"""Namespace and name of each Gateway; an absent namespace is empty."""


def _both(spec: LLMInferenceServiceSpec) -> tuple[_Names, _Names] | None:
    router = spec.router
    http = router.route.http if router is not None and router.route is not None else None
    parents = http.spec.parent_refs if http is not None and http.spec is not None else None
    refs = router.gateway.refs if router is not None and router.gateway is not None else None
    if not parents or not refs:
        return None
    return [(p.namespace or "", p.name or "") for p in parents], [(r.namespace or "", r.name or "") for r in refs]


def _is_redundant(parents: _Names, refs: _Names) -> bool:
    return Counter(parents) == Counter(refs)

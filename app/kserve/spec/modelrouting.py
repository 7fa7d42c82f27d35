"""Routing by a header with the model's name, as presets of KServe from v0.19 on have it. Source: KS-2.10.

Their gateways write ``publishers/<namespace>/models/<model>`` into the header. Annotations of a service and of its
Gateways turn rules for it on and off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.hooks.protocol import get
from app.kserve.constants import MODEL_ROUTING
from app.kserve.llminferenceservice.observed import ReconcileContext
from app.kserve.lora import adapter_names
from app.kserve.references import references
from app.kserve.spec.complete import ROUTE
from app.kube.base import Json
from app.kube.merge import find, replaced

_RULES = (*ROUTE, "rules")


def routed_by_model(document: Json, spec: Json, context: ReconcileContext) -> Json:
    """The route without matches by model where they are not asked for, and with one for each adapter where they are.

    Rules that the service's own ``spec`` writes are asked for by standing there.
    """
    rules: list[Json] = find(document, _RULES) or []
    header = context.operator.ingress.model_based_routing_header_name.lower()
    names = _Names(header, f"publishers/{context.metadata.namespace}/models/")
    if not any(names.names(match) for rule in rules for match in rule.get("matches") or ()):
        return document
    enabled = (document.get("annotations") or {}).get(MODEL_ROUTING) == "true"
    active = enabled and _is_permitted(document, context)
    if not active and find(spec, _RULES) is not None:
        return document
    adapters = adapter_names(find(document, ("model", "lora", "adapters")))
    changed = [_rule(rule, names, adapters, active) for rule in rules]
    return replaced(document, _RULES, [rule for rule in changed if rule.get("matches") != []])


def _is_permitted(document: Json, context: ReconcileContext) -> bool:
    """Report whether the operator's settings and the Gateways of the service permit routing by model."""
    mode, namespace = context.operator.ingress.model_based_routing_mode.lower(), context.metadata.namespace
    named = [get(context.related.gateways, name, place or namespace) for place, name in references(document).gateways]
    notes = [gateway.metadata.annotations or {} for gateway in named if gateway is not None]
    return mode == "forced" or (mode != "disabled" and not any(note.get(MODEL_ROUTING) == "false" for note in notes))


def _rule(rule: Json, names: _Names, adapters: Sequence[str], active: bool) -> Json:
    matches: list[Json] = rule.get("matches") or []
    by_model = [match for match in matches if names.names(match)]
    if not by_model:
        return rule
    if not active:
        return {**rule, "matches": [match for match in matches if match not in by_model]}
    return {**rule, "matches": [*matches, *(names.of(match, adapter) for adapter in adapters for match in by_model)]}


@dataclass(frozen=True, slots=True)
class _Names:
    """Names of models in a header."""

    header: str
    """In lower case, as headers are compared."""
    prefix: str

    def names(self, match: Json) -> bool:
        """Report whether a match selects a model of the namespace."""
        return any(self._is_model(header) for header in match.get("headers") or ())

    def of(self, match: Json, model: str) -> Json:
        """The same match for another model."""
        headers = [{**h, "value": self.prefix + model} if self._is_model(h) else h for h in match["headers"]]
        return {**match, "headers": headers}

    def _is_model(self, header: Json) -> bool:
        return str(header.get("name")).lower() == self.header and str(header.get("value")).startswith(self.prefix)

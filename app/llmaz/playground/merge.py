"""How a Playground's settings and a preset become one. Source: LZ-3.4."""

from __future__ import annotations

from app.llmaz.quantities import Resources, below

Amounts = dict[str, str]


def resources(preset: Resources | None, playground: Resources | None) -> dict[str, Amounts]:
    """Requests and limits of the engine; empty ones are left out.

    Without settings of the Playground the preset's are taken as they are. Otherwise the Playground's win one by one,
    and a limit of cpu or memory that is below the request, or absent, becomes the request.
    """
    if playground is None:
        limits, requests = _amounts(preset, "limits"), _amounts(preset, "requests")
    else:
        limits = _amounts(playground, "limits") | _missing(preset, playground, "limits")
        requests = _amounts(playground, "requests") | _missing(preset, playground, "requests")
        for name in ("cpu", "memory"):
            if name in requests and below(limits.get(name, "0"), requests[name]):
                limits[name] = requests[name]
    return {key: amounts for key, amounts in (("limits", limits), ("requests", requests)) if amounts}


def _amounts(given: Resources | None, kind: str) -> Amounts:
    return dict((getattr(given, kind) if given is not None else None) or {})


def _missing(preset: Resources | None, playground: Resources, kind: str) -> Amounts:
    own = _amounts(playground, kind)
    return {name: amount for name, amount in _amounts(preset, kind).items() if name not in own}

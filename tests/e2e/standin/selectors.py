"""Label selectors with the semantics of apimachinery."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Match = Callable[[Mapping[str, str]], bool]


def everything(_labels: Mapping[str, str]) -> bool:
    """Match everything."""
    return True


def label_selector(spec: Mapping[str, Any] | None) -> Match:
    """Return a test for `matchLabels` and `matchExpressions`; an absent or empty selector matches everything."""
    if not spec:
        return everything
    tests = [_test(key, "In", [value]) for key, value in (spec.get("matchLabels") or {}).items()]
    tests += [
        _test(item.get("key", ""), item.get("operator", ""), item.get("values") or [])
        for item in spec.get("matchExpressions") or []
    ]
    return lambda labels: all(test(labels) for test in tests)


def selector_text(text: str) -> Match:
    """Return a test for the command-line form `a=b,c!=d,e`."""
    tests: list[Match] = []
    for term in filter(None, (part.strip() for part in text.split(","))):
        if "!=" in term:
            key, value = term.split("!=", 1)
            tests.append(_test(key, "NotIn", [value]))
        elif "=" in term:
            key, value = term.replace("==", "=").split("=", 1)
            tests.append(_test(key, "In", [value]))
        else:
            tests.append(_test(term, "Exists", []))
    return lambda labels: all(test(labels) for test in tests)


def _test(key: str, operator: str, values: list[str]) -> Match:
    match operator:
        case "In":
            return lambda labels: key in labels and labels[key] in values
        case "NotIn":
            return lambda labels: labels.get(key) not in values
        case "Exists":
            return lambda labels: key in labels
        case "DoesNotExist":
            return lambda labels: key not in labels
    raise ValueError(f'"{operator}" is not a valid label selector operator')

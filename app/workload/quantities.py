"""The rule for fields that hold a resource quantity as text."""

from __future__ import annotations

from app.kube import field
from app.kube.quantity import QuantityError, meant, parse


def validate(text: str, path: field.Path, *, positive: bool = False, example: str = "16Gi") -> list[field.Error]:
    """Whether the text is a quantity of at least 0, or above 0 where ``positive`` is asked for."""
    try:
        value = parse(text)
    except QuantityError:
        return [field.invalid(path, text, f"must be a quantity, for example {example}{meant(text)}")]
    if value < 0 or (positive and value == 0):
        bound = "above 0" if positive else "0 or more"
        return [field.invalid(path, text, f"must be {bound}, for example {example}")]
    return []

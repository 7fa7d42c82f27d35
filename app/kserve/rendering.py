"""Rendering a spec: every string in it is a template of its own. Source: kserve spec 2.6."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.kserve import presets
from app.kserve.layers import CombineError, Layer, source_of
from app.kserve.template import OPEN, Template
from app.kserve.templatedata import ServiceData
from app.kserve.templatevalues import TemplateError
from app.kube import field
from app.kube.base import Json
from app.kube.decode import SPEC
from app.kube.merge import find
from app.kube.podspec import MERGE_KEYS


class _BrokenTemplateError(Exception):
    def __init__(self, error: TemplateError, text: str) -> None:
        super().__init__(str(error))
        self.error = error
        self.text = text
        self.path: list[str | int] = []


def rendered(merged: Json, layers: Sequence[Layer], data: ServiceData) -> Json:
    """The merged spec with every string in it rendered. Raises :class:`CombineError`."""
    try:
        return render(merged, data)
    except _BrokenTemplateError as broken:
        raise CombineError(_where(broken, merged, layers)) from None


def render_error(spec: Json, data: ServiceData) -> str:
    """Why a spec does not render, with the place (``spec.template.nodeName, line 1: …``); or an empty text."""
    try:
        render(spec, data)
    except _BrokenTemplateError as broken:
        return _position(broken)
    return ""


def render(value: Json, data: ServiceData) -> Json:
    """``value`` with every string in it rendered; parts without templates are shared, not copied."""
    changed: Json | None = None
    for key, item in value.items():
        kind = type(item)
        if (kind is str and OPEN not in item and OPEN not in key) or kind in _SCALARS or id(item) in presets.PLAIN:
            continue
        try:
            done = _rendered_item(item, data)
            name = _render_text(key, data) if OPEN in key else key
        except _BrokenTemplateError as broken:
            broken.path.append(key)
            raise
        if done is not item or name is not key:
            if changed is None:
                changed = dict(value)
            if name is not key:
                del changed[key]
            changed[name] = done
    return value if changed is None else changed


_SCALARS = frozenset({int, bool, float, type(None)})


def _rendered_item(item: Any, data: ServiceData) -> Any:
    kind = type(item)
    if kind is str:
        return _render_text(item, data) if OPEN in item else item
    if kind is dict:
        return render(item, data)
    return _render_list(item, data) if kind is list else item


def _render_list(items: list[Any], data: ServiceData) -> list[Any]:
    changed = None
    for position, item in enumerate(items):
        kind = type(item)
        if (kind is str and OPEN not in item) or id(item) in presets.PLAIN:
            continue
        try:
            done = _rendered_item(item, data)
        except _BrokenTemplateError as broken:
            broken.path.append(position)
            raise
        if done is not item:
            changed = list(items) if changed is None else changed
            changed[position] = done
    return items if changed is None else changed


def _render_text(text: str, data: ServiceData) -> str:
    try:
        template = presets.TEMPLATES.get(text) or Template(text)
        return template.render(data)
    except TemplateError as error:
        raise _BrokenTemplateError(error, text) from None


def _where(broken: _BrokenTemplateError, merged: Json, layers: Sequence[Layer]) -> str:
    """``config demo/base: spec.template.containers[0].args[1], line 2: function x is not defined``."""
    keyed: list[str | tuple[str, Any]] = []
    for segment in reversed(broken.path):
        if isinstance(segment, str):
            keyed.append(segment)
            continue
        key = MERGE_KEYS.get(keyed[-1]) if isinstance(keyed[-1], str) else None
        items = find(merged, keyed)
        if key is None or not isinstance(items[segment], dict):
            break
        keyed.append((key, items[segment].get(key)))
    return f"{source_of(layers, keyed)}: {_position(broken)}"


def _position(broken: _BrokenTemplateError) -> str:
    return f"{_full_path(broken.path)}, line {max(broken.error.line, 1)}: {broken.error}"


def _full_path(reversed_path: Sequence[str | int]) -> field.Path:
    path = SPEC
    for segment in reversed(reversed_path):
        path = path.index(segment) if isinstance(segment, int) else path.child(segment)
    return path

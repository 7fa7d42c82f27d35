"""Rendering a spec: every string in it is a template of its own, and all of them share one set of bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.kserve import presets
from app.kserve.layers import CombineError, Layer, source_of
from app.kserve.template import OPEN, Template
from app.kserve.templatebounds import Meter, ReadError, RefusedError, SpentError, TemplateError
from app.kserve.templatedata import ServiceData, UnknownFieldError
from app.kube import field
from app.kube.base import Json
from app.kube.decode import SPEC
from app.kube.limits import has_control
from app.kube.merge import find
from app.kube.podspec import MERGE_KEYS


class _BrokenTemplateError(Exception):
    def __init__(self, error: TemplateError, text: str, path: Sequence[str | int]) -> None:
        super().__init__(str(error))
        self.error = error
        self.text = text
        self.path = tuple(path)


def rendered(merged: Json, layers: Sequence[Layer], data: ServiceData) -> tuple[Json, bool]:
    """The merged spec with every string in it rendered, and whether there was one that is no preset's.

    Raises :class:`CombineError`.
    """
    renderer = _Renderer(data)
    try:
        return renderer.object(merged), renderer.foreign
    except _BrokenTemplateError as broken:
        raise CombineError(_where(broken, merged, layers)) from None


def render_error(spec: Json, data: ServiceData) -> tuple[field.Path, str]:
    """Where and why a spec does not render (``spec.template.nodeName, line 1: …``); an empty text where it does."""
    try:
        _Renderer(data).object(spec)
    except _BrokenTemplateError as broken:
        return _full_path(broken.path), _position(broken)
    return field.Path(), ""


def decided(spec: Json, data: ServiceData) -> tuple[Json, list[field.Error]]:
    """A spec before it is combined, with those texts rendered that nothing else has a part in.

    And an error for each text that cannot be rendered whatever it is combined with.
    """
    renderer = _Decided(data)
    try:
        return renderer.object(spec), renderer.errors
    except _BrokenTemplateError as broken:
        return spec, [*renderer.errors, _error(broken)]


class _Renderer:
    """Renders the parts of one spec; those without templates are shared, not copied."""

    def __init__(self, data: ServiceData) -> None:
        self.foreign = False
        self._data = data
        self._meter = Meter()
        self._path: list[str | int] = []

    def object(self, value: Json) -> Json:
        changed: Json | None = None
        for key, item in value.items():
            plain = _is_plain(item)
            if plain and OPEN not in key:
                continue
            self._path.append(key)
            done = item if plain else self._item(item)
            name = self._text(key) if OPEN in key else key
            if done is not item or name is not key:
                changed = dict(value) if changed is None else changed
                if name is not key:
                    del changed[key]
                    if name in changed:
                        raise self._broken(RefusedError(f"renders to {name!r}, a key that is there already"), key)
                changed[name] = done
            self._path.pop()
        return value if changed is None else changed

    def _item(self, item: Any) -> Any:
        kind = type(item)
        if kind is str:
            return self._text(item)
        if kind is dict:
            return self.object(item)
        return self._list(item) if kind is list else item

    def _list(self, items: list[Any]) -> list[Any]:
        changed = None
        for position, item in enumerate(items):
            if _is_plain(item):
                continue
            self._path.append(position)
            done = self._item(item)
            if done is not item:
                changed = list(items) if changed is None else changed
                changed[position] = done
            self._path.pop()
        return items if changed is None else changed

    def _text(self, text: str) -> str:
        try:
            template = presets.TEMPLATES.get(id(text))
            return self._foreign(text) if template is None else self._rendered(template, Meter())
        except TemplateError as error:
            raise self._broken(error, text) from None

    def _foreign(self, text: str) -> str:
        """A text that is not ours: it counts against the bounds of the spec."""
        template = Template(text)
        self._meter.read(template.actions)
        self.foreign = True
        return self._rendered(template, self._meter)

    def _rendered(self, template: Template, meter: Meter) -> str:
        result = template.render(self._data, meter)
        if has_control(result):
            raise RefusedError("renders to a text with control characters; remove them from what it prints")
        return result

    def _broken(self, error: TemplateError, text: str) -> _BrokenTemplateError:
        return _BrokenTemplateError(error, text, self._path)


def _is_plain(item: Any) -> bool:
    kind = type(item)
    return kind in _SCALARS or (kind is str and OPEN not in item) or id(item) in presets.PLAIN


_SCALARS = frozenset({int, bool, float, type(None)})


class _Decided(_Renderer):
    """Renders what can be rendered without guessing, and goes on after a mistake."""

    def __init__(self, data: ServiceData) -> None:
        super().__init__(data)
        self.errors: list[field.Error] = []

    def _text(self, text: str) -> str:
        self._data.guessed = False
        try:
            result = self._foreign(text)
        except SpentError as error:
            raise self._broken(error, text) from None
        except TemplateError as error:
            if len(self.errors) >= field.MAX_ERRORS:
                raise self._broken(error, text) from None
            if not self._data.guessed or isinstance(error, (ReadError, RefusedError, UnknownFieldError)):
                self.errors.append(_error(self._broken(error, text)))
            return text
        return text if self._data.guessed else result


def _error(broken: _BrokenTemplateError) -> field.Error:
    hint = "" if isinstance(broken.error, RefusedError) else _HINT
    path = broken.path[:-1] if broken.path[-1] == broken.text else broken.path
    problem = f"line {max(broken.error.line, 1)}: {broken.error}{hint}"
    return field.invalid(_full_path(path), broken.text, problem)


_HINT = "; braces that are no template are written {{ `{{` }}"


def _where(broken: _BrokenTemplateError, merged: Json, layers: Sequence[Layer]) -> str:
    """``config demo/base: spec.template.containers[0].args[1], line 2: function x is not defined``."""
    keyed: list[str | tuple[str, Any]] = []
    for segment in broken.path:
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


def _full_path(segments: Sequence[str | int]) -> field.Path:
    path = SPEC
    for segment in segments:
        path = path.index(segment) if isinstance(segment, int) else path.child(segment)
    return path

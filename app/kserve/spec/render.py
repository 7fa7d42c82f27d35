"""Rendering of a spec: every string in it is a separate template, and all of them share one set of bounds."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from app.kserve.constants import OPEN
from app.kserve.spec.merge import CombineError, Layer, keyed, source_of
from app.kserve.spec.presets import PresetText
from app.kserve.spec.template.bounds import Meter, ReadError, RefusedError, SpentError, TemplateError
from app.kserve.spec.template.data import ServiceData, UnknownFieldError
from app.kserve.spec.template.language import Template
from app.kube import field, modelfields
from app.kube.base import Json, KubeModel
from app.kube.reading import decode, rawchecks
from app.limits import MAX_ERRORS

_HINT = "; write braces that are not a template as {{ `{{` }}"


def rendered(merged: Json, layers: Sequence[Layer], data: ServiceData) -> tuple[Json, bool]:
    """Render the merged spec, and report whether a string in it is not a preset's. Raises :class:`CombineError`."""
    renderer = _Renderer(data)
    try:
        return renderer.object(merged), renderer.foreign
    except TemplateError as error:
        source = source_of(layers, keyed(merged, error.path))
        raise CombineError(f"{source}: {_position(error)}") from None


def render_error(spec: Json, data: ServiceData) -> tuple[field.Path, str]:
    """Return where and why a spec does not render (``spec.nodeName, line 1: …``); empty if it does."""
    try:
        _Renderer(data).object(spec)
    except TemplateError as error:
        return _full_path(error.path), _position(error)
    return field.Path(), ""


class _Renderer:
    def __init__(self, data: ServiceData) -> None:
        self.foreign = False
        self._data = data
        self._meter = Meter()

    def object(self, value: Json, path: field.Segments = ()) -> Json:
        result: Json = {}
        for key, item in value.items():
            name = self._text(key, (*path, key)) if OPEN in key else key
            if name != key and (name in value or name in result):
                raise _at(RefusedError(f"renders to {name!r}, a key that exists already"), key, (*path, key))
            result[name] = item if type(item) is str and OPEN not in item else self._item(item, (*path, key))
        return result

    def _item(self, item: Any, path: field.Segments) -> Any:
        if isinstance(item, str):
            return self._text(item, path) if OPEN in item else item
        if isinstance(item, dict):
            return self.object(item, path)
        if isinstance(item, list):
            return [self._item(part, (*path, position)) for position, part in enumerate(item)]
        return item

    def _text(self, text: str, path: field.Segments) -> str:
        try:
            return self._rendered(text.template, Meter()) if isinstance(text, PresetText) else self._foreign(text)
        except TemplateError as error:
            raise _at(error, text, path) from None

    def _foreign(self, text: str) -> str:
        """Render a string that is not a preset's: it counts against the bounds of the spec."""
        template = Template(text)
        self._meter.read(template.actions)
        self.foreign = True
        return self._rendered(template, self._meter)

    def _rendered(self, template: Template, meter: Meter) -> str:
        result = template.render(self._data, meter)
        if rawchecks.has_control(result):
            raise RefusedError("renders to a string with control characters; remove them from its output")
        return result


class _Decided(_Renderer):
    """Renders what can be rendered without guessing, and goes on after a mistake."""

    def __init__(self, data: ServiceData) -> None:
        super().__init__(data)
        self.errors: list[field.Error] = []

    def _text(self, text: str, path: field.Segments) -> str:
        self._data.guessed = False
        try:
            result = self._foreign(text)
        except TemplateError as error:
            _at(error, text, path)
            if isinstance(error, SpentError) or len(self.errors) >= MAX_ERRORS:
                raise
            if not self._data.guessed or isinstance(error, (ReadError, RefusedError, UnknownFieldError)):
                self.errors.append(_invalid(error))
            return text
        return text if self._data.guessed else result


def _at(error: TemplateError, text: str, path: field.Segments) -> TemplateError:
    error.text, error.path = text, path
    return error


def _invalid(error: TemplateError) -> field.Error:
    hint = "" if isinstance(error, RefusedError) else _HINT
    path = error.path[:-1] if error.path[-1] == error.text else error.path
    words = f"Invalid value: {field.render(error.text)}: line {max(error.line, 1)}: {error}{hint}"
    return field.Error(field.ErrorType.INVALID, _full_path(path), words)


def _position(error: TemplateError) -> str:
    return f"{_full_path(error.path)}, line {max(error.line, 1)}: {error}"


def _full_path(segments: Sequence[str | int]) -> field.Path:
    path = field.SPEC
    for segment in segments:
        path = path.index(segment) if isinstance(segment, int) else path.child(segment)
    return path


# Templates in a spec that is not combined yet. Whether a field is set is not asked: a base may set it, and that shows
# when the merged spec is rendered.

SpecT = TypeVar("SpecT", bound=KubeModel)


def with_decided_templates(spec: SpecT, data_of: Callable[[Json], ServiceData]) -> tuple[SpecT, list[field.Error]]:
    """Render the templates of a spec that do not depend on other layers, so that rules see the results.

    Also return the errors of templates; then the spec may be unchanged. ``data_of`` gets the spec as plain JSON.
    """
    if not has_template(spec):
        return spec, []
    document = spec.model_dump(by_alias=True, exclude_none=True)
    renderer = _Decided(data_of(document))
    errors = renderer.errors
    try:
        rendered = renderer.object(document)
    except TemplateError as error:
        return spec, [*errors, _invalid(error)]
    if rendered == document:
        return spec, errors
    typed, wrong = decode.decode_document(rendered, type(spec))
    if typed is None:
        return spec, [*errors, *wrong]
    embedded, _ = modelfields.check_embedded(typed, field.SPEC)
    return (spec if embedded else typed), [*errors, *embedded]


def has_template(value: Any) -> bool:
    """Report whether any string or key contains an action."""
    if isinstance(value, str):
        return OPEN in value
    if isinstance(value, dict):
        return any(OPEN in key or has_template(item) for key, item in value.items())
    if isinstance(value, list):
        return any(map(has_template, value))
    return isinstance(value, KubeModel) and any(map(has_template, value.__dict__.values()))

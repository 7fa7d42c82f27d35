"""Templates in a user's own spec: those that cannot be read, or name what no service has, are mistakes (7.6).

Whether a field is set is not asked here: a base may set it. That shows when the merged spec is rendered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from app.kserve.template import OPEN, Template
from app.kserve.templatedata import ServiceData, UnknownFieldError
from app.kserve.templatevalues import TemplateError
from app.kube import field
from app.kube.base import KubeModel
from app.kube.decode import SPEC
from app.kube.objects import ObjectMeta


def template_errors(spec: KubeModel, metadata: ObjectMeta) -> list[field.Error]:
    """One error for each text with a template that can never be rendered."""
    if not _has_template(spec):
        return []
    document = spec.model_dump(by_alias=True, exclude_none=True)
    data = ServiceData(metadata, document, "", ("", ""))
    return [
        field.invalid(path, text, f"{problem}; braces that are no template are written {{{{ `{{{{` }}}}")
        for path, text in _texts(document, SPEC)
        if (problem := _problem(text, data))
    ]


def _has_template(value: Any) -> bool:
    kind = type(value)
    if kind is str:
        return OPEN in value
    if kind is dict:
        return any(OPEN in key or _has_template(item) for key, item in value.items())
    if kind is list:
        return any(map(_has_template, value))
    return isinstance(value, KubeModel) and any(map(_has_template, value.__dict__.values()))


def _texts(value: Any, path: field.Path) -> Iterator[tuple[field.Path, str]]:
    """Every text with a template in it, keys included."""
    if isinstance(value, str):
        if OPEN in value:
            yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(key, path)
            yield from _texts(item, path.child(key))
    elif isinstance(value, Sequence):
        for position, item in enumerate(value):
            yield from _texts(item, path.index(position))


def _problem(text: str, data: ServiceData) -> str:
    try:
        template = Template(text)
    except TemplateError as error:
        return f"line {max(error.line, 1)}: {error}"
    try:
        template.render(data)
    except UnknownFieldError as error:
        return f"line {max(error.line, 1)}: {error}"
    except TemplateError:
        pass
    return ""

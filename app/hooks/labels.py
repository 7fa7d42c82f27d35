"""Labels on parents, which a CompositeController cannot write: the hook of a DecoratorController. Source: MC-9."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from app.errors import ProtocolError
from app.hooks import kind, protocol, reader
from app.kube.names import is_label_value
from app.kube.reading.stored import Decoder
from app.kube.resource import CustomResource


@dataclass(frozen=True, slots=True)
class Label:
    """A label of one kind. ``value`` builds it from the spec; an empty or invalid value removes the label."""

    resource: CustomResource
    key: str
    value: Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class Decorator:
    """A DecoratorController and its labels, at most one for each kind."""

    family: str
    name: str
    labels: tuple[Label, ...]

    @property
    def component(self) -> str:
        """Name of the DecoratorController, and of the kustomize component that declares it."""
        return f"{self.family}-{self.name}"

    @property
    def hook_path(self) -> str:
        return f"/{self.family}/{self.name}"


class DecorateRequest(msgspec.Struct):
    object: protocol.Parent


_REQUEST: Decoder[DecorateRequest] = Decoder(DecorateRequest)


def answer_decorate(decorator: Decorator, body: bytes) -> bytes:
    """Answer with the labels of one object; null removes one. Without a valid spec they stay unchanged.

    An answer without ``status`` leaves the CompositeController's. Raises :class:`ProtocolError` for an object of
    another kind.
    """
    parent = kind.decode(_REQUEST, body).object
    labels: dict[str, str | None] = {}
    label = _label(decorator, parent)
    spec = reader.read_related(parent.spec, label.resource.spec).spec
    if spec is not None:
        value = label.value(spec)
        labels[label.key] = value if value and is_label_value(value) else None
    return msgspec.json.encode({"labels": labels, "attachments": []})


def _label(decorator: Decorator, parent: protocol.Parent) -> Label:
    for label in decorator.labels:
        if (label.resource.kind, label.resource.api_version) == (parent.kind, parent.api_version):
            return label
    kinds = ", ".join(label.resource.kind for label in decorator.labels)
    raise ProtocolError(f"unsupported kind; must be one of {kinds}")

"""A pod as its user wrote it, with the place of each part: what :mod:`app.workload.advice.advise` judges."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec

from app.kube.base import Json
from app.kube.field import Path
from app.workload.advice import podadvice
from app.workload.engines.commandline import CommandLine, command_line
from app.workload.rules.wholepod import HOOKS, LISTS

Quantities = Sequence[tuple[Path, Mapping[str, object]]]


class Written(msgspec.Struct, frozen=True):
    """A part of a pod with the places where its user wrote it."""

    spec: Json
    """Its fields as Kubernetes calls them, as far as the user wrote them."""
    path: Path
    base: Json = {}
    """The part that it is merged over."""
    places: Mapping[str, Path] = {}
    """The places of fields that are not written in ``path``."""

    def part(self, name: str) -> Json:
        return self.spec.get(name) or {}

    def items(self, name: str) -> Sequence[Any]:
        return self.spec.get(name) or ()

    def at(self, name: str) -> Path:
        return self.places.get(name) or self.path.child(name)

    def each(self, name: str) -> Iterator[tuple[Path, Json]]:
        """Yield the items of a list with their places."""
        return ((where, item) for where, item in self.at(name).each(self.items(name)) if item)

    def values_of(self, name: str, key: str) -> set[str]:
        """Return a field of the items of a list, of those that it is laid over too."""
        items = chain.from_iterable(side.get(name) or () for side in (self.base, self.spec))
        return {str((item or {}).get(key) or "") for item in items}


class ServerPort(msgspec.Struct, frozen=True):
    """The only port of a container, which its family opens."""

    name: str
    number: int | None = None
    """``None`` if the server may listen on another."""


class RequestPort(msgspec.Struct, frozen=True):
    """The port that requests go to."""

    number: int
    message: str
    """The problem with another port, ``{port}``, that ``{option}`` has."""
    others: Collection[int] = ()
    """Ports that a server may have too."""
    is_fixed: bool = False
    """Nothing that a user writes changes where requests go, so that any other ``--port`` has no effect on it."""


class Devices(msgspec.Struct, frozen=True):
    """All devices that a container gets."""

    names: Collection[str]
    """The names of its resources."""
    path: Path
    remedy: str
    """The change for a user who wants other devices."""


class Sizes(msgspec.Struct, frozen=True):
    """The GPUs of a pod, and the sizes of parallelism that its container has without options for them."""

    gpus: int
    tensor: int = 1
    copies: int = 1
    """Copies of the model, which is the data-parallel size."""
    path: Path | None = None
    """The path for a warning of GPUs that the engine does not use; ``None`` if their number is set elsewhere."""
    remedy: str = ""
    """The change for a user who wants all GPUs to be used."""


class Weights(msgspec.Struct, frozen=True):
    """The repository of the Hugging Face Hub that a server loads."""

    repository: str
    path: Path
    method: str = ""
    """The quantization method that the server is given."""
    method_path: Path | None = None
    """Its place; ``None`` for ``path``."""


class ContainerView(Written, frozen=True, kw_only=True):
    line: CommandLine
    unused: CommandLine | None = None
    """Arguments that have no effect on it."""
    port: ServerPort | None = None
    requests: RequestPort | None = None
    devices: Devices | None = None
    """``None`` if more may be added to them."""
    sizes: Sizes | None = None
    """``None`` if the number of GPUs is not known."""
    weights: Weights | None = None
    alone: str = ""
    """The change that gives workers to a server without any; empty where pods of a group may wait for each other."""
    fetches: bool = False
    """It gets the model from the hub itself, unless a volume has it."""
    variables: Collection[str] = ()
    """Names of the variables that are set above those of the user."""
    knows_variables: bool = False
    """Nothing sets other variables."""
    tag: Path | None = None
    """The path of the image's tag, where the tag is a separate field."""
    amounts: Quantities | None = None
    """Requests, limits and sizes, where they are not in ``resources``."""

    @property
    def lines(self) -> list[CommandLine]:
        return [self.line] if self.unused is None else [self.line, self.unused]

    @property
    def probes(self) -> list[tuple[Json, Path]]:
        return [(self.part(name), self.at(name)) for name in podadvice.PROBES if self.part(name)]

    @property
    def hooks(self) -> list[tuple[Json, Path]]:
        lifecycle, path = self.part("lifecycle"), self.at("lifecycle")
        return [(lifecycle[name], path.child(name)) for name in HOOKS if lifecycle.get(name)]


class PodView(Written, frozen=True, kw_only=True):
    containers: Sequence[ContainerView]
    """Init containers first."""
    is_whole: bool = True
    """Nothing is merged with it but ``base``."""
    refuses_duplicates: bool = True
    """Another rule refuses two items of a list with one name."""
    labels: Mapping[str, str] | None = None
    """The pod's labels; ``None`` where they are not known."""
    nodes: Mapping[str, str] = {}
    """Labels of the nodes that something else selects."""
    labels_field: str | Path = ""
    """The field to which a user adds labels."""
    volumes: Collection[str] = ()
    """Names of volumes that something else mounts."""
    added: Collection[str] = ()
    """Names of volumes and claims that something else adds."""
    open_fields: Collection[str] = ()
    """Fields to which something else may add what is missing."""
    left_out: Collection[str] = ()
    """Names of containers without which the pod is made."""


def containers_of(pod: Json, path: Path, view: Callable[[Json, Path], ContainerView]) -> list[ContainerView]:
    """Return the views of a pod's containers, init containers first."""
    lists = chain.from_iterable(path.child(name).each(pod.get(name) or ()) for name in LISTS)
    return [view(container or {}, where) for where, container in lists]


def whole_container(container: Json, path: Path) -> ContainerView:
    return ContainerView(container, path, line=command_line(container, path))

"""What a runtime is: the constants of one server and the two functions that turn a service into its command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.llmkube.inferenceservice.types import InferenceServiceSpec
from app.llmkube.model.types import GPU, ModelSpec
from app.llmkube.source import SourceClass, parse

Json = dict[str, Any]

HEALTH = "/health"
"""Path that the servers with HTTP probes answer when their model is loaded."""


@dataclass(frozen=True, slots=True)
class Serving:
    """What a command line is made from."""

    spec: InferenceServiceSpec
    model: ModelSpec
    path: str
    """File of the model inside the pod; empty when nothing is mounted."""
    mounts_model: bool
    """The runtime reads its model from a volume, and the user leaves that to us (no ``skipModelInit``)."""
    port: int
    gpus: int
    draft: str = ""
    """The proposing model of speculative decoding: a path, a repository or what the user wrote."""

    @property
    def source(self) -> str:
        """What names the model to a server that fetches it itself: the repository, else the source as written."""
        source = parse(self.model.source)
        return source.repository or source.text

    @property
    def fetches(self) -> bool:
        """The server has to fetch a repository itself, although it would rather read from a volume."""
        return self.mounts_model and parse(self.model.source).kind is SourceClass.REPOSITORY

    @property
    def gpu(self) -> GPU | None:
        """What the Model says of its GPUs."""
        return self.model.hardware.gpu if self.model.hardware else None

    def has(self, flag: str) -> bool:
        """Whether ``extraArgs`` sets the flag, as ``--flag`` or ``--flag=value``; short forms are other flags."""
        return any(arg == flag or arg.startswith(f"{flag}=") for arg in self.spec.extra_args)


@dataclass(frozen=True, slots=True)
class Runtime:
    """One server. Source: llmkube spec 3.2."""

    name: str
    container: str
    port: int
    arguments: Callable[[Serving], list[str]]
    """The container's arguments, in the order that is part of the contract (spec 3.5)."""
    environment: Callable[[InferenceServiceSpec], list[Json]]
    image: str = ""
    """Empty: the user has to name one."""
    command: tuple[str, ...] = ()
    """Empty: the image's own."""
    health: str = ""
    """Path of the HTTP probes; empty: a TCP connection has to do."""
    metric: str = "llamacpp:requests_processing"
    """What an autoscaler looks at when the user names nothing; an average of two per pod is wanted."""
    mounts_model: bool = False
    """Whether it reads the model from a volume."""
    scraped: bool = False
    """Whether it has ``/metrics`` on its port."""
    service_links: bool | None = None
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Flags that a field of the spec turns into, in every spelling. Of two on a command line the server takes the last
    one, so a field means nothing when ``extraArgs`` has its flag. Empty where ``extraArgs`` are not passed on."""


def flag(name: str, value: object) -> list[str]:
    """Flag and value, as two items; nothing when there is no value or it is empty."""
    return [] if value is None or value == "" else [name, str(value)]


def switch(name: str, on: object) -> list[str]:
    """A flag without a value."""
    return [name] if on else []


def token(variable: str, reference: Json | None) -> list[Json]:
    """The environment variable that takes an access token from a Secret."""
    return [] if reference is None else [{"name": variable, "valueFrom": {"secretKeyRef": reference}}]


def nothing(_: InferenceServiceSpec) -> list[Json]:
    """The environment of a runtime that needs none."""
    return []

"""What a runtime is: everything that the family has to know about one server.

Adding one takes a module beside this one, a line in the registry, and a word in the type ``Runtime`` of the spec.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from app.kube.base import Json, KubeModel
from app.kube.decode import SPEC
from app.kube.field import Advice, Error, invalid
from app.kube.modelfields import fields
from app.llmkube.fit import Use
from app.llmkube.inferenceservice.types import InferenceServiceSpec
from app.llmkube.model.types import GPU, ModelSpec
from app.llmkube.source import SourceClass, source_of
from app.workload.cause import Cause
from app.workload.parts import GPURequest

NOBODY_KNOWS = "what this server loads, and how much memory it takes, is its own affair"

HEALTH = "/health"
"""Path that the servers with HTTP probes answer when their model is loaded."""
ANYWHERE = "0.0.0.0"  # noqa: S104 - a server in a pod is reached from outside itself
"""Where a server listens whose service has no ``bindAddress``. Nodes without IPv6 could not bind to ``::``."""


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
    directory: str = ""
    """Where the paths of several files begin; empty for a model of one."""

    @property
    def source(self) -> str:
        """What names the model to a server that fetches it itself: the repository, else the source as written."""
        source = source_of(self.model)
        return source.repository or source.text

    @property
    def address(self) -> str:
        """The address the server is told to listen on."""
        return self.spec.bind_address or ANYWHERE

    @property
    def revision(self) -> list[str]:
        """The flag for the revision of a repository that the server fetches itself."""
        wanted = "" if self.path else source_of(self.model).revision
        return flag("--revision", None if self.has("--revision") else wanted)

    @property
    def projector(self) -> str:
        """Path of the multimodal projector; empty without one, and where nothing is mounted."""
        wanted = self.model.mmproj if self.directory else ""
        return posixpath.join(self.directory, wanted) if wanted else ""

    @property
    def fetches(self) -> bool:
        """The server has to fetch a repository itself, although it would rather read from a volume."""
        return self.mounts_model and source_of(self.model).kind is SourceClass.REPOSITORY

    @property
    def gpu(self) -> GPU | None:
        """What the Model says of its GPUs."""
        return self.model.hardware.gpu if self.model.hardware else None

    def has(self, flag: str) -> bool:
        """Whether ``extraArgs`` sets the flag, as ``--flag`` or ``--flag=value``; short forms are other flags."""
        return has_flag(self.spec.extra_args, flag)


@dataclass(frozen=True, slots=True)
class Runtime:
    """One server. Source: LK-3.2. What it leaves out does not concern it."""

    name: str
    container: str
    port: int
    arguments: Callable[[Serving], list[str]]
    """The container's arguments, in the order that is part of the contract (LK-3.5)."""
    image: str = ""
    """Empty: the user has to name one."""
    device_images: Mapping[str, str] = field(default_factory=dict)
    """Other images for AMD GPUs, by the Model's ``gpu.runtime``."""
    command: tuple[str, ...] = ()
    """Empty: the image's own."""
    health: str = ""
    """Path of the HTTP probes; empty: a TCP connection has to do."""
    generates: str = ""
    """Path that the startup and readiness probes ask instead, where another one says more."""
    metric: str = "llamacpp:requests_processing"
    """What an autoscaler looks at when the user names nothing; an average of two per pod is wanted."""
    mounts_model: bool = False
    """Whether it reads the model from a volume."""
    loads_directories: bool = False
    """Whether it loads several files as one model, unless that is GGUF."""
    scraped: bool = False
    """Whether it has ``/metrics`` on its port."""
    service_links: bool | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment that the server always gets."""

    formats: tuple[str, ...] = ()
    """Formats of a Model that it loads; empty: any."""
    repositories_only: bool = False
    """Whether it loads nothing but Hugging Face repositories."""
    gpu_fields: Mapping[str, int] = field(default_factory=dict)
    """Fields of a Model's ``hardware.gpu`` that it reads, and how many GPUs of a pod they need to mean anything."""

    reads: tuple[str, ...] = ()
    """Fields of a service's spec that it reads, and not every runtime does."""
    metal: tuple[str, ...] = ()
    """Those that an agent on a Mac reads as well, because it runs this server."""
    config: str = ""
    """The one of them that holds its own options."""
    token: str = ""
    """Environment variable that takes the access token of ``config.hfTokenSecretRef``."""
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Flags that a field of the spec turns into, in every spelling. Of two on a command line the server takes the last
    one, so a field means nothing when ``extraArgs`` has its flag. Empty where ``extraArgs`` are not passed on."""
    overrides: tuple[tuple[str, str], ...] = ()
    """Pairs of fields of which the first means nothing beside the second."""
    errors: Callable[[InferenceServiceSpec], Iterable[Error]] = lambda _: ()
    """What is wrong with ``config``, whichever runtime the service has."""
    advice: Callable[[InferenceServiceSpec], Iterable[Advice]] = lambda _: ()
    """Warnings for a service that has this runtime."""
    advice_with_model: Callable[[InferenceServiceSpec, ModelSpec, int], Iterable[Advice]] = lambda *_: ()
    """The same for a service together with its Model and the number of GPUs in a pod."""
    mistakes: Callable[[InferenceServiceSpec, GPURequest], Iterable[Cause]] = lambda *_: ()
    """What keeps the server from starting with the GPUs of a pod."""

    parallelism: Callable[[InferenceServiceSpec, GPURequest], Iterable[Cause]] = lambda *_: ()
    """Causes that the options ask for more GPUs than a pod has."""

    condition: str = ""
    """Type of the condition that says whether ``config`` fits together; a service with another runtime has none."""
    valid: str = ""
    """Its message where they do."""
    judge: Callable[[InferenceServiceSpec], tuple[str, str] | None] = lambda _: None
    """The reason and the message of that condition while ``config`` does not fit together."""
    use: Callable[[InferenceServiceSpec, ModelSpec], Use] = lambda *_: Use(unknown=NOBODY_KNOWS)
    """How it uses the memory of its GPUs."""
    draft: Callable[[InferenceServiceSpec], str] = lambda _: ""
    """The proposing model of speculative decoding, as the user wrote it; empty without one."""
    draft_flag: str = ""
    """The flag that names it."""
    draft_problem: Callable[[InferenceServiceSpec], str] = lambda _: ""
    """What speculative decoding lacks where it is on without a draft model; empty otherwise."""
    draft_is_model: bool = False
    """Whether it is the name of a Model and nothing else, which has to be Ready."""

    def options(self, spec: InferenceServiceSpec) -> KubeModel | None:
        """The runtime's own options, ``None`` where the user wrote none."""
        return getattr(spec, fields(InferenceServiceSpec)[self.config][0]) if self.config else None

    def environment(self, spec: InferenceServiceSpec) -> list[Json]:
        """The variables that the container gets before the user's own."""
        reference = getattr(self.options(spec), "hf_token_secret_ref", None)
        token = [] if reference is None else [{"name": self.token, "valueFrom": {"secretKeyRef": reference}}]
        return [*token, *({"name": name, "value": value} for name, value in self.variables.items())]


def flag(name: str, value: object) -> list[str]:
    """Flag and value, as two items; nothing when there is no value or it is empty."""
    return [] if value is None or value == "" else [name, str(value)]


def switch(name: str, on: object) -> list[str]:
    """A flag without a value."""
    return [name] if on else []


def mode(spec: InferenceServiceSpec) -> str:
    """What the model is for: the field, else what the arguments or the path of the endpoint say (LK-3.5)."""
    args, path = [*spec.extra_args, *spec.args], spec.endpoint.path if spec.endpoint else ""
    if spec.mode:
        return spec.mode
    if has_flag(args, "--reranking"):
        return "rerank"
    if has_flag(args, "--embedding", "--embeddings"):
        return "embedding"
    return "rerank" if "/rerank" in path else "embedding" if "/embeddings" in path else "chat"


def has_flag(args: Iterable[str], *spellings: str) -> bool:
    """Whether a flag is among the arguments, as ``--flag`` or ``--flag=value``."""
    return any(arg.partition("=")[0] in spellings for arg in args)


def not_below_one(spec: InferenceServiceSpec, config: str, *names: str) -> Iterable[Error]:
    """LK-V-I51: numbers that upstream passes on, and with which the server ends at once."""
    options: KubeModel | None = getattr(spec, fields(InferenceServiceSpec)[config][0])
    if options is None:
        return
    for name in names:
        value = getattr(options, fields(type(options))[name][0])
        if value is not None and value < 1:
            yield invalid(SPEC.child(config, name), value, "must be at least 1; leave it out for the server's default")

"""The pods of an LLMInferenceService, or of a config, as their user wrote them."""

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from app import images
from app.kserve.constants import MAIN, MODEL_VOLUMES, PUBLIC_PORT, STORAGE_INITIALIZER
from app.kserve.devices import CLAIM
from app.kserve.llminferenceservice.merged import generated
from app.kserve.llminferenceservice.types import NO_PARALLELISM, LLMInferenceServiceSpec, WorkloadSpec
from app.kserve.lora import is_loaded, uris
from app.kserve.sources import is_mounted
from app.kserve.spec import presets
from app.kserve.spec.find import choose_presets
from app.kserve.spec.merge import SERVICE, document
from app.kserve.spec.parallelism import demand, gpu_count
from app.kserve.spec.presets.parts import DECODE_PORT
from app.kube.base import Json
from app.kube.field import SPEC, Path
from app.kube.merge import find, merge
from app.kube.podspec import container_named
from app.workload.advice.podview import (
    ContainerView,
    Devices,
    PodView,
    RequestPort,
    Sizes,
    Weights,
    containers_of,
)
from app.workload.devices import is_accelerator
from app.workload.engines.commandline import CommandLine, command_line
from app.workload.engines.engine import Engine, engine_named, engine_of_either
from app.workload.engines.parse import is_open
from app.workload.rules.wholepod import LISTS

MODEL_URI = SPEC.child("model", "uri")
SCHEDULER = SPEC.child("router", "scheduler", "template")
_PRESET_ENGINE = engine_of_either(images.LLM_D, images.LLM_D_V017)


def pod_views(spec: LLMInferenceServiceSpec, below: Json | None, *, claims_devices: bool = False) -> Iterator[PodView]:
    """Yield the pods, which are laid over those of the presets; ``None`` where configs may be below them too.

    ``claims_devices``: an annotation gives the servers their devices.
    """
    for workload, path in spec.workloads():
        for pod, where in workload.pods(path):
            if pod is not None or where.segments[-1] == "template":
                view = _view(spec, pod or {}, where, below)
                server = _MainContainer(spec, workload, view, gets_gpus=below is not None and not claims_devices)
                labels = {"labels": workload.labels or {}, "labels_field": path.child("labels")}
                yield replace(view, containers=_containers(view, server), **labels)
    if spec.scheduler is not None and spec.scheduler.template:
        view = _view(spec, spec.scheduler.template, SCHEDULER, below)
        yield replace(view, containers=_containers(view, None))


def presets_below(spec: LLMInferenceServiceSpec) -> Json:
    """Return what the presets that a spec without configs gets have together."""
    below: Json = {}
    for suffix in choose_presets([document(spec.model_dump(by_alias=True, exclude_none=True))]):
        below = merge(below, presets.LATEST.get(suffix, {}), SERVICE, directives=False)
    return below


def preset_of(below: Json, path: Path) -> Json:
    """Return the pod of the presets that a user's pod is laid over."""
    pod: Json = find(below, [str(segment) for segment in path.segments[1:]]) or {}
    return pod


def _view(spec: LLMInferenceServiceSpec, pod: Json, path: Path, below: Json | None) -> PodView:
    preset = preset_of(below or {}, path)
    added = generated(spec).get("initContainers", ())
    base = {**preset, "initContainers": [*preset.get("initContainers", ()), *added]} if below is not None else {}
    return PodView(
        pod,
        path,
        base=base,
        containers=(),
        is_whole=below is not None,
        volumes=MODEL_VOLUMES,
        added=(*MODEL_VOLUMES, CLAIM),
        left_out=(STORAGE_INITIALIZER,) if all(map(is_mounted, uris(spec.model))) else (),
    )


class _MainContainer(msgspec.Struct, frozen=True):
    """The main container of a pod that serves the model."""

    spec: LLMInferenceServiceSpec
    workload: WorkloadSpec
    pod: PodView
    gets_gpus: bool
    """Only its limits and the workload's parallelism give it GPUs."""

    def view(self, written: Json, path: Path) -> ContainerView:
        line, command = command_line(written, path), written.get("command") or ()
        engine = engine_of(written, based=not self.pod.is_whole)
        is_started = engine is not None and engine.is_started_by(command)
        if not line.places:
            has_model = not command and self.pod.is_whole and not any(map(is_open, line.arguments))  # the presets have
            is_read, positionals = line.is_read or not command, 0 if has_model else None
            line = replace(line, engine=engine if is_started else None, is_read=is_read, positionals=positionals)
        default = {"image": images.LLM_D} if self.pod.is_whole else {}
        return ContainerView(
            written,
            path,
            base={**default, **container_named(self.pod.base, MAIN)},
            line=line,
            requests=_REQUESTS if self._is_alone else None,
            devices=self._devices(written) if self.gets_gpus and line.engine is not None else None,
            sizes=self._sizes(written, engine),
            alone=self._alone,
            weights=self._weights(line) if engine is not None and engine.is_certain else None,
            fetches=bool(command) and not is_loaded(self.spec) and _names_hub(self.spec),
        )

    @property
    def _is_alone(self) -> bool:
        """Report whether requests reach the server directly; a container beside it may pass them on."""
        is_first = self.pod.path.segments[-1] == "template"
        return is_first and self.pod.is_whole and sum(len(self.pod.items(name)) for name in LISTS) == 1

    @property
    def _alone(self) -> str:
        """Return where workers are added to a workload without them; a config below it may have some."""
        place = ".".join([*map(str, self.pod.path.segments[:-1]), "worker"])
        return f"add {place}" if self.pod.is_whole and self.workload.worker is None else ""

    def _devices(self, written: Json) -> Devices | None:
        resources = written.get("resources") or {}
        limits = resources.get("limits") or {}
        is_given = adds_gpus(self.workload) and not any(map(is_accelerator, limits))
        if is_given or resources.get("claims") or self.pod.spec.get("runtimeClassName"):
            return None
        is_set = self.workload.parallelism is not None and self.workload.parallelism.tensor is not None
        ways = "limits" if is_set else "parallelism.tensor or limits"  # beside data it requests none
        return Devices(limits, self.pod.path, f"set {ways} of container {MAIN}, or its image")  # KS-P10

    def _sizes(self, written: Json, engine: Engine | None) -> Sizes | None:
        """Return the GPUs of a server whose parallelism only its own arguments tell."""
        count = int(gpu_count(written) or 0)
        if self.workload.worker is not None or _numbers(self.workload) or not count:
            return None
        tensor = ".".join([*map(str, self.pod.path.segments[1:-1]), "parallelism.tensor"])
        is_known = self.pod.is_whole or (engine is not None and engine.is_certain)
        path = self.pod.path if is_known else None
        return Sizes(count, path=path, remedy=f"set {tensor} to {count}, or request 1")

    def _weights(self, line: CommandLine) -> Weights | None:
        """Return the repository that the storage initializer downloads (KS-P12)."""
        uri = self.spec.model.uri if self.spec.model is not None and is_loaded(self.spec) else ""
        name = uri.removeprefix("hf://").partition(":")[0]
        if name == uri or line.engine is None:
            return None
        method = line.engine.read(" ".join(line.words).split()).value("--quantization")
        return Weights(name, MODEL_URI, method, self.pod.path.child("containers"))


_REQUESTS = RequestPort(
    PUBLIC_PORT, f"requests go to port {PUBLIC_PORT}, not to {{port}}; remove {{option}}", others=(DECODE_PORT,)
)


def _containers(view: PodView, server: _MainContainer | None) -> Sequence[ContainerView]:
    fetches = server is not None and is_from_hub(server.spec)

    def container(written: Json, path: Path) -> ContainerView:
        name = str(written.get("name"))
        if server is not None and name == MAIN:
            return server.view(written, path)
        base, line = container_named(view.base, name), command_line(written, path)
        return ContainerView(written, path, base=base, line=line, fetches=fetches and name == STORAGE_INITIALIZER)

    views = containers_of(view.spec, view.path, container)
    if server is not None and not container_named(view.spec, MAIN):
        views.append(server.view({"name": MAIN}, view.path.child("containers")))
    return views


def _numbers(workload: WorkloadSpec) -> Json:
    return (workload.parallelism or NO_PARALLELISM).model_dump(by_alias=True, exclude_defaults=True)


def adds_gpus(workload: WorkloadSpec) -> bool:
    """Report whether the parallelism of a workload gives GPUs to servers that ask for none."""
    if workload.worker is None:
        return demand(_numbers(workload)) is not None
    return (workload.parallelism or NO_PARALLELISM).is_pipeline_parallel


def is_from_hub(spec: LLMInferenceServiceSpec) -> bool:
    return is_loaded(spec) and _names_hub(spec)


def _names_hub(spec: LLMInferenceServiceSpec) -> bool:
    return any(uri.lower().startswith("hf:") for uri in uris(spec.model))


def engine_of(container: Json, *, based: bool) -> Engine | None:
    """Return the engine of a container's image, of the presets' image for the main one without its own."""
    image, engine = container.get("image") or "", None
    if container.get("name") == MAIN:
        engine = Engine("vllm", is_certain=False) if image or based else _PRESET_ENGINE
    return engine_named(image) or engine

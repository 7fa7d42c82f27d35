"""The pods of an LLMInferenceService, or of a config, as their user wrote them."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from app import images
from app.kserve.constants import MAIN, MODEL_VOLUMES
from app.kserve.llminferenceservice.types import LLMInferenceServiceSpec
from app.kserve.spec import presets
from app.kserve.spec.find import choose_presets
from app.kserve.spec.merge import SERVICE, document
from app.kube.base import Json
from app.kube.field import SPEC, Path
from app.kube.merge import find, merge
from app.kube.podspec import container_named
from app.workload.advice.podview import ContainerView, PodView, containers_of
from app.workload.engines.commandline import command_line
from app.workload.engines.engine import Engine, engine_named, engine_of_either

SCHEDULER = SPEC.child("router", "scheduler", "template")
_PRESET_ENGINE = engine_of_either(images.LLM_D, images.LLM_D_V017)


def pod_views(spec: LLMInferenceServiceSpec, below: Json | None) -> Iterator[PodView]:
    """Yield the pods, which are laid over those of the presets; ``None`` where configs may be below them too."""
    for workload, path in spec.workloads():
        for pod, where in workload.pods(path):
            if pod:
                view = _view(pod, where, below)
                labels = {"labels": workload.labels or {}, "labels_field": path.child("labels")}
                yield replace(view, containers=_containers(view, is_server=True), **labels)
    if spec.scheduler is not None and spec.scheduler.template:
        view = _view(spec.scheduler.template, SCHEDULER, below)
        yield replace(view, containers=_containers(view, is_server=False))


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


def _view(pod: Json, path: Path, below: Json | None) -> PodView:
    base = preset_of(below or {}, path)
    return PodView(pod, path, base=base, containers=(), is_whole=below is not None, volumes=MODEL_VOLUMES)


def _containers(view: PodView, *, is_server: bool) -> Sequence[ContainerView]:
    def container(written: Json, path: Path) -> ContainerView:
        line, name, command = command_line(written, path), str(written.get("name")), written.get("command") or ()
        if is_server and name == MAIN:
            engine = engine_of(written, based=not view.is_whole)
            is_started = engine is not None and engine.is_started_by(command)
            is_read = line.is_read or not command  # by the script of the presets
            line = replace(line, engine=engine if is_started else None, is_read=is_read)
        return ContainerView(written, path, base=container_named(view.base, name), line=line)

    return containers_of(view.spec, view.path, container)


def engine_of(container: Json, *, based: bool) -> Engine | None:
    """Return the engine of a container's image, of the presets' image for the main one without its own."""
    image, engine = container.get("image") or "", None
    if container.get("name") == MAIN:
        engine = Engine("vllm", is_certain=False) if image or based else _PRESET_ENGINE
    return engine_named(image) or engine

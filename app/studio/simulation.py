"""The simulated run of manifests, step by step.

Between two steps half a minute passes: every pod enters its next phase unless a scene holds it up, the controllers of
Kubernetes write their statuses, and Metacontroller asks the hooks again until nothing changes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from app.cli import simulate as simulated
from app.cli.live import ready
from app.cli.manifests import Manifest
from app.cli.offline import World, direct, holding
from app.cli.simulate import Cluster
from app.cli.store import Key, owner
from app.cli.world import key_of
from app.kube.base import Json
from app.studio import models
from app.studio.documents import Unknown, objects, world
from app.studio.graph import draw, key_in, node_id, places, troubled, yaml_of
from app.studio.kubelet import Clock, PodPhase, Trouble, is_up, pods_of, since, status, summary
from app.studio.scenes import Scene, chosen

STEP_SECONDS = 30
MAX_STEPS = 24
EVICTION_SECONDS = 300
DEADLINE_SECONDS = 600
"""Default progress deadline of a Deployment."""
WORKLOADS = ("Deployment", "Job", "LeaderWorkerSet")


@dataclass
class Playback:
    """A cluster with its clock, and the phase of each of its pods."""

    cluster: Cluster
    scenes: Sequence[Scene] = ()
    clock: Clock = field(default_factory=Clock)
    lost: set[Key] = field(default_factory=set)
    """Pods whose node is gone."""
    concerned: set[str] = field(default_factory=set)
    """Names of scenes that had an effect."""
    too_long: bool = False
    fast_forward: bool = False
    """True if pods go through all their phases at once, for callers that need only the final state."""
    _phases: dict[Key, PodPhase] = field(default_factory=dict)
    """Those of all simulated pods."""

    def settle(self) -> bool:
        """Let Metacontroller call the hooks until nothing changes, and report whether anything did."""
        return self.cluster.settle() > 1

    def finish(self) -> Iterable[str]:
        """Advance until no pod changes, as if everything took half a minute; there are no steps."""
        self.fast_forward = True
        self.clock.seconds += STEP_SECONDS
        for _ in range(MAX_STEPS):
            changed = self.cluster.round()
            if not self._advance_pods() and not changed:
                break
            self.cluster.play(self.workloads())  # before the hooks are asked again: they see pods and workloads agree
        return ()

    def workloads(self) -> Iterator[Json]:
        """Yield the workloads, oldest first."""
        yield from [d for d in self.cluster.objects.values() if d["kind"] in WORKLOADS]

    def pods(self, workload: Json) -> list[Json]:
        return [self.cluster.objects[key] for key in map(key_of, pods_of(workload)) if key in self._phases]

    def advance(self) -> str:
        """Advance by half a minute, and return what happened in it."""
        self.clock.seconds += STEP_SECONDS
        words = self._advance_pods()
        changed = self.settle()
        return words or ("the controllers report what they did" if changed else "")

    def _advance_pods(self) -> str:
        """Create, advance and delete pods, and return what happened."""
        changes: dict[str, list[str]] = {}
        obsolete = set(self._phases)
        for workload in self.workloads():
            desired = list(pods_of(workload))
            for number, new in enumerate(desired):
                key = key_of(new)
                obsolete.discard(key)
                before = self._phases.get(key)
                pod = new if before is None else self.cluster.objects[key]
                after = self._next(workload, pod, number, len(desired))
                if after is not before:
                    problems = troubled(pod)
                    word = problems[0].reason if problems else after.name.lower()
                    changes.setdefault(word, []).append(pod["metadata"]["name"])
        self._remove(obsolete)
        return "; ".join(f"{_pods(names)}: {word}" for word, names in changes.items())

    def _remove(self, keys: Iterable[Key]) -> None:
        for key in keys:
            del self._phases[key], self.cluster.objects[key]

    def _next(self, workload: Json, pod: Json, number: int, count: int) -> PodPhase:
        """Move a pod to its next phase, and write its status."""
        key, ends = key_of(pod), workload["kind"] == "Job"
        before = self._phases.get(key)
        trouble = self._trouble(pod, number, count, ends=ends)
        phase = PodPhase.CREATED if before is None else before
        stop = PodPhase.READY if trouble is None else trouble.phase
        if self.fast_forward:
            phase = stop
        elif before is not None and phase < stop:
            phase = PodPhase(phase + 1)
        if phase is PodPhase.INITIALIZING and not pod["spec"].get("initContainers"):
            phase = PodPhase.RUNNING
        if phase is PodPhase.RUNNING and stop is PodPhase.READY and not ends and not _starts_slowly(pod):
            phase = PodPhase.READY
        if phase >= PodPhase.SCHEDULED:
            pod["spec"] = {**pod["spec"], "nodeName": f"node-{number + 1}"}
        self._phases[key] = phase
        new = status(pod, phase, trouble, self.clock, ends=ends)
        if before is not phase or pod["status"].get("phase") != new["phase"]:
            pod["status"] = new
        pod["metadata"].setdefault("creationTimestamp", self.clock.text)
        self.cluster.put(pod)
        return phase

    def _trouble(self, pod: Json, number: int, count: int, *, ends: bool) -> Trouble | None:
        for scene in self.scenes:
            trouble = scene.trouble(pod, number, count) if scene.jobs or not ends else None
            if trouble is not None:
                self.concerned.add(scene.name)
                return trouble
        return None

    def advance_clock(self, seconds: int) -> None:
        """Let time pass in which pods do not change."""
        self.clock.seconds += seconds
        self.settle()

    def stuck(self) -> bool:
        """Report whether a Deployment is not available."""
        deployments = [w for w in self.workloads() if w["kind"] == "Deployment"]
        return any(not all(map(is_up, self.pods(deployment))) for deployment in deployments)

    def lose(self, pods: Iterable[Json]) -> None:
        """Let the node of these pods stop reporting."""
        for pod in pods:
            self.lost.add(key_of(pod))
            conditions = [
                {**c, "status": "False", "reason": "NodeLost"} if c["type"] == "Ready" else c
                for c in pod["status"]["conditions"]
            ]
            pod["status"] = {**pod["status"], "conditions": conditions}

    def evict(self) -> None:
        """Delete the pods of lost nodes, to be created again."""
        self._remove(self.lost & self._phases.keys())
        self.lost.clear()


def _starts_slowly(pod: Json) -> bool:
    return any("startupProbe" in container for container in pod["spec"]["containers"])


def _pods(names: list[str]) -> str:
    return f"pod {names[0]}" if len(names) == 1 else f"{len(names)} pods"


def _begin(manifests: Sequence[Manifest], service: World, scenes: Sequence[Scene]) -> Playback:
    """Return a cluster with the manifests and the objects of an installation, before the first sync."""
    cluster = holding(manifests, service)
    playback = Playback(cluster, scenes)
    cluster.send = direct(service.settings, playback.clock.now)
    cluster.controllers = _controllers(playback)
    return playback


def _controllers(playback: Playback) -> Mapping[str, simulated.Controller]:
    """Return the simulated controllers; those of workloads and claims follow the phases of the pods."""

    def workload(document: Json) -> Json:
        new = summary(document, playback.pods(document), playback.clock, too_long=playback.too_long)
        return since(document.get("status") or {}, new)

    def claim(_: Json) -> Json:
        unbound = any(scene.unbound for scene in playback.scenes)
        return {"phase": "Pending" if unbound or not playback.clock.seconds else "Bound"}

    def autoscaler(document: Json) -> Json:
        replicas = {k: v for k, v in (document.get("status") or {}).items() if k == "desiredReplicas"}
        return {**simulated.CONTROLLERS[document["kind"]](document), **replicas}

    return {
        **simulated.CONTROLLERS,
        **dict.fromkeys(WORKLOADS, workload),
        **dict.fromkeys(("HorizontalPodAutoscaler", "ScaledObject"), autoscaler),
        "PersistentVolumeClaim": claim,
    }


def settle_steps(playback: Playback) -> Iterator[str]:
    """Advance step by step until nothing happens."""
    if not playback.clock.seconds:
        playback.settle()
        yield "the manifests are applied, and the hooks answer"
    for _ in range(MAX_STEPS):
        happened = playback.advance()
        if not happened:
            return
        yield happened


def run(playback: Playback, settle: Callable[[Playback], Iterable[str]] = settle_steps) -> Iterator[str]:
    """Advance the playback until nothing changes, and yield what happened in each step.

    ``settle`` advances until no pod changes; by default in steps of half a minute.
    """
    yield from settle(playback)
    for scene in playback.scenes:
        happened = scene.event(playback)
        if happened:
            playback.concerned.add(scene.name)
            playback.advance_clock(STEP_SECONDS)
            yield happened
            if playback.lost:
                playback.evict()
                playback.advance_clock(EVICTION_SECONDS)
                yield "five minutes later, its pods are deleted"
            yield from settle(playback)
    if playback.stuck():
        playback.too_long = True
        playback.advance_clock(DEADLINE_SECONDS)
        yield "ten minutes later, without progress"


def simulate(request: models.ScenesRequest) -> models.Simulation:
    """Return every step with its graph and the statuses of the parents."""
    manifests, scenes = objects(request.documents, request.namespace), chosen(request.scenes)
    playback = _begin(manifests, world(request), scenes)
    written = places(manifests, request.namespace)
    steps = [
        models.Step(
            title=f"{happened[:1].upper()}{happened[1:]}",
            seconds=playback.clock.seconds,
            graph=draw(playback.cluster, written),
            parents=_parents(playback.cluster),
        )
        for happened in run(playback)
    ]
    notes = [f"{s.title}: no effect, {s.without}" for s in scenes if s.name not in playback.concerned]
    return models.Simulation(steps=steps, notes=notes, opens=_opens(steps))


def _opens(steps: Sequence[models.Step]) -> int:
    """Return the first step in which something stops being ready, else the last."""
    ready = [all(parent.ready == "True" for parent in step.parents) for step in steps]
    fallen = [later for later in range(1, len(steps)) if ready[later - 1] and not ready[later]]
    return fallen[0] if fallen else max(len(steps) - 1, 0)


def graph(request: models.GraphRequest) -> models.Graph:
    """Return the graph of the last step."""
    manifests, cluster = end(request, chosen(request.scenes))
    return draw(cluster, places(manifests, request.namespace), yaml=request.yaml)


def object_yaml(request: models.ObjectRequest) -> models.Document:
    """Return the YAML of one object of that graph. Raises :class:`Unknown` if there is no such object."""
    _, cluster = end(request, chosen(request.scenes))
    document = cluster.objects.get(key_in(request.node))
    if document is None:
        raise Unknown(f"{request.node} is not created by these documents")
    return models.Document(name=request.node, text=yaml_of(document))


def end(request: models.Manifests, scenes: Sequence[Scene] = ()) -> tuple[Sequence[Manifest], Cluster]:
    """Return the objects of the documents and the cluster of the last step, which must not be changed."""
    return _end(tuple(request.documents), world(request), tuple(scenes))


@lru_cache(maxsize=4)
def _end(
    documents: tuple[models.Document, ...], service: World, scenes: tuple[Scene, ...]
) -> tuple[Sequence[Manifest], Cluster]:
    """Cached, because the page asks for the values of a graph right after it."""
    manifests = objects(documents, service.namespace)
    playback = _begin(manifests, service, scenes)
    for _ in run(playback, Playback.finish):
        pass
    return manifests, playback.cluster


def _parents(cluster: Cluster) -> list[models.ParentReadiness]:
    """Return the statuses of served objects that are not children."""
    return [
        models.ParentReadiness(
            node=node_id(document),
            ready=condition.get("status", "Unknown"),
            reason=condition.get("reason", ""),
            message=condition.get("message", ""),
            conditions=(document.get("status") or {}).get("conditions") or [],
        )
        for kind, document in cluster.parents()
        if kind.resource.children and not owner(document)
        for condition in [ready(document)]
    ]

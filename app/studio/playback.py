"""A simulated run: a cluster with its clock, the phases of its pods, and the scenes that disturb it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from app.desk.cluster.offline import World, direct
from app.desk.cluster.pods import is_ready
from app.desk.cluster.simulate import CONTROLLERS, Cluster
from app.desk.cluster.store import Key, key_of
from app.desk.files.manifests import Manifest
from app.kube.base import Json
from app.kube.podspec import TEMPLATES
from app.studio.documents import holding
from app.studio.graph import troubled
from app.studio.kubelet import Clock, PodPhase, Trouble, pods_of, since, status, summary

STEP_SECONDS = 30
MAX_STEPS = 24
WORKLOADS = tuple(TEMPLATES)

TroubleOf = Callable[[Json, int, int], Trouble | None]
"""Returns what holds up a pod, by the pod, its index and the number of pods of its workload."""
EventOf = Callable[["Playback"], str]
"""Changes a run once everything runs, and returns what happened; empty if it does not concern these manifests."""


@dataclass(frozen=True)
class Scene:
    name: str
    title: str
    without: str
    """Why it may have no effect."""
    trouble: TroubleOf | None = None
    jobs: bool = False
    """True if it concerns pods of Jobs, too."""
    unbound: bool = False
    """True if claims stay unbound."""
    event: EventOf | None = None

    @property
    def description(self) -> str:
        """The docstring of its function."""
        return " ".join(((self.trouble or self.event).__doc__ or "").split())


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

    def __post_init__(self) -> None:
        """Let the controllers of workloads and claims follow the phases of the pods."""
        self.cluster.controllers = {
            **CONTROLLERS,
            **dict.fromkeys(WORKLOADS, self._workload_status),
            **dict.fromkeys(("HorizontalPodAutoscaler", "ScaledObject"), _autoscaler_status),
            "PersistentVolumeClaim": self._claim_status,
        }

    def finish(self) -> Iterable[str]:
        """Advance until no pod changes, as if everything took half a minute."""
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
        changed = self.cluster.settle() > 1
        return words or ("the controllers report what they did" if changed else "")

    def _advance_pods(self) -> str:
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
                    word = next((problem.reason for problem in troubled(pod)), after.name.lower())
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
            trouble = scene.trouble(pod, number, count) if scene.trouble and (scene.jobs or not ends) else None
            if trouble is not None:
                self.concerned.add(scene.name)
                return trouble
        return None

    def advance_clock(self, seconds: int) -> None:
        """Advance the clock while no pod changes."""
        self.clock.seconds += seconds
        self.cluster.settle()

    def stuck(self) -> bool:
        """Report whether a Deployment is not available."""
        deployments = [w for w in self.workloads() if w["kind"] == "Deployment"]
        return any(not all(map(is_ready, self.pods(deployment))) for deployment in deployments)

    def lose(self, pods: Iterable[Json]) -> None:
        """Stop the reports of the node of these pods."""
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

    def _workload_status(self, workload: Json) -> Json:
        new = summary(workload, self.pods(workload), self.clock, too_long=self.too_long)
        return since(workload.get("status") or {}, new)

    def _claim_status(self, _: Json) -> Json:
        unbound = any(scene.unbound for scene in self.scenes)
        return {"phase": "Pending" if unbound or not self.clock.seconds else "Bound"}


def _starts_slowly(pod: Json) -> bool:
    return any("startupProbe" in container for container in pod["spec"]["containers"])


def _pods(names: list[str]) -> str:
    return f"pod {names[0]}" if len(names) == 1 else f"{len(names)} pods"


def _autoscaler_status(document: Json) -> Json:
    replicas = {k: v for k, v in (document.get("status") or {}).items() if k == "desiredReplicas"}
    return {**CONTROLLERS[document["kind"]](document), **replicas}


def begin(manifests: Sequence[Manifest], service: World, scenes: Sequence[Scene]) -> Playback:
    """Return a cluster with the manifests and the objects of an installation, before the first sync."""
    playback = Playback(holding(manifests, service), scenes)
    playback.cluster.send = direct(service.settings, playback.clock.now)
    return playback

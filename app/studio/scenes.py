"""Events that may happen to pods, and the simulated run of manifests, step by step.

Between two steps half a minute passes: every pod enters its next phase unless a scene holds it up, the controllers of
Kubernetes write their statuses, and Metacontroller asks the hooks again until nothing changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from app.cli import simulate as simulated
from app.cli.live import ready
from app.cli.manifests import Manifest
from app.cli.offline import direct, holding
from app.cli.simulate import Cluster
from app.cli.store import owner
from app.cli.world import inner_key, outer_key
from app.kube.base import Json
from app.settings import Settings
from app.studio import models
from app.studio.clock import Clock
from app.studio.documents import Unknown, objects, settings
from app.studio.graph import draw, node_id, places, troubled, yaml_of
from app.studio.kubelet import WORDS, Phase, Trouble, is_up, pods_of, since, status, summary

STEP_SECONDS = 30
MAX_STEPS = 24
EVICTION_SECONDS = 300
DEADLINE_SECONDS = 600
"""Default progress deadline of a Deployment."""
WORKLOADS = ("Deployment", "Job", "LeaderWorkerSet")
Key = tuple[str, str]


@dataclass(frozen=True)
class Scene:
    """An event of a simulated run; ``trouble`` returns what holds up a pod of a workload."""

    name: str
    title: str
    description: str
    trouble: Callable[[Json, Json, int, int], Trouble | None] = lambda *_: None
    """Called with the workload, the pod, its index and the number of pods."""
    unbound: bool = False
    """True if claims stay unbound."""
    event: Callable[[World], str] = lambda _: ""
    """The event once everything runs; empty if it does not concern these manifests."""
    without: str = ""
    """Why it may have no effect."""


def _serves(workload: Json) -> bool:
    return bool(workload["kind"] != "Job")


def _image(workload: Json, pod: Json, _: int, __: int) -> Trouble | None:
    first = pod["spec"]["containers"][0]
    name, image = first["name"], first.get("image", "")
    words = (
        f'Back-off pulling image "{image}": ErrImagePull: failed to pull and unpack image "{image}": '
        f"failed to resolve reference: {image}: not found"
    )
    return Trouble(Phase.SCHEDULED, "ImagePullBackOff", words, container=name) if _serves(workload) else None


def _unscheduled(workload: Json, pod: Json, _: int, __: int) -> Trouble | None:
    if not _serves(workload):
        return None
    resources = [c.get("resources") or {} for c in pod["spec"]["containers"]]
    names = [name for r in resources for name in {**(r.get("limits") or {}), **(r.get("requests") or {})}]
    lacking = next((name for name in names if "/" in name), "memory")
    return Trouble(
        Phase.PENDING,
        message=f"0/3 nodes are available: 3 Insufficient {lacking}. preemption: 0/3 nodes are available: "
        "3 No preemption victims found for incoming pod.",
    )


def _killed(workload: Json, _: Json, __: int, ___: int) -> Trouble | None:
    trouble = Trouble(Phase.RUNNING, "CrashLoopBackOff", exit_code=137, reason="OOMKilled")
    return trouble if _serves(workload) else None


def _silent(workload: Json, pod: Json, _: int, __: int) -> Trouble | None:
    probed = next((c["name"] for c in pod["spec"]["containers"] if "readinessProbe" in c), "")
    return Trouble(Phase.RUNNING, container=probed) if _serves(workload) and probed else None


def _unbound(_: Json, pod: Json, __: int, ___: int) -> Trouble | None:
    claims = [v for v in pod["spec"].get("volumes") or () if "persistentVolumeClaim" in v]
    words = "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims."
    return Trouble(Phase.PENDING, message=words) if claims else None


DOWNLOADERS = {
    "model-downloader": (64, "model-downloader: trying again would not help (curl 22, HTTP 404)"),
    "model-loader": (1, "huggingface_hub.errors.RepositoryNotFoundError: 404 Client Error: Repository Not Found"),
    "storage-initializer": (
        1,
        "huggingface_hub.errors.RepositoryNotFoundError: 404 Client Error: Repository Not Found",
    ),
}
"""Containers that download a model, with the exit code and message for a file that does not exist."""


def _downloader(pod: Json) -> tuple[str, Phase] | None:
    """Return the container that downloads, and the phase of the pod in which it runs."""
    for part, phase in (("initContainers", Phase.INITIALIZING), ("containers", Phase.RUNNING)):
        for container in pod["spec"].get(part) or ():
            if container["name"] in DOWNLOADERS:
                return container["name"], phase
    return None


def _not_found(workload: Json, pod: Json, _: int, __: int) -> Trouble | None:
    downloader = _downloader(pod)
    if downloader is None:
        return None
    code, words = DOWNLOADERS[downloader[0]]
    return _ended(workload, downloader, code, words)


_WANTED = "MODEL_SHA256"


def _checksum(workload: Json, pod: Json, _: int, __: int) -> Trouble | None:
    downloader = _downloader(pod)
    containers = [*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]]
    environment = [e for c in containers if downloader and c["name"] == downloader[0] for e in c.get("env") or ()]
    expected = next((e.get("value", "") for e in environment if e["name"] == _WANTED), "")
    if downloader is None or not expected:
        return None
    there = re.sub(".", lambda digit: "0123456789abcdef"[-1 - int(digit[0], 16)], expected.lower())
    words = f"model-downloader: wrong SHA-256: the file has {there}, the Model demands {expected}"
    return _ended(workload, downloader, 65, words)


def _ended(workload: Json, downloader: tuple[str, Phase], code: int, words: str) -> Trouble:
    waiting = "CrashLoopBackOff" if _serves(workload) else ""
    return Trouble(downloader[1], waiting, words, exit_code=code, container=downloader[0])


def _half(workload: Json, _: Json, number: int, count: int) -> Trouble | None:
    late = _serves(workload) and number >= (count + 1) // 2 and count > 1
    return Trouble(Phase.SCHEDULED, "ContainerCreating") if late else None


def _scale(world: World) -> str:
    """Let every autoscaler ask for its maximum number of replicas."""
    events = []
    for document in list(world.cluster.objects.values()):
        if document["kind"] not in ("HorizontalPodAutoscaler", "ScaledObject"):
            continue
        spec = document["spec"]
        most = spec.get("maxReplicas", spec.get("maxReplicaCount", 1))
        reference = spec["scaleTargetRef"]
        target = world.find(reference["kind"], reference["name"], document["metadata"]["namespace"])
        if target is not None and target["spec"].get("replicas", 1) != most:
            target["spec"] = {**target["spec"], "replicas": most}
            target["metadata"] = {**target["metadata"], "generation": target["metadata"]["generation"] + 1}
            if document["kind"] == "HorizontalPodAutoscaler":
                document["status"] = {**document.get("status", {}), "desiredReplicas": most}
            events.append(f"{document['kind']} {document['metadata']['name']} asks for {most} replicas")
    return "; ".join(events)


def _lose_node(world: World) -> str:
    """Take away the node of the first pod of each workload."""
    placed = [[pod for pod in world.pods(w) if "nodeName" in pod["spec"]] for w in world.workloads() if _serves(w)]
    lost = [pods[0] for pods in placed if pods]
    world.lose(lost)
    return "a node does not answer any more" if lost else ""


SCENES: Mapping[str, Scene] = {
    scene.name: scene
    for scene in (
        Scene(
            "image-pull-fails",
            "An image cannot be pulled",
            "The registry does not have the server's image.",
            _image,
            without="no pod serves",
        ),
        Scene(
            "unschedulable",
            "No node takes the pods",
            "All nodes lack what the server asks for, such as GPUs.",
            _unscheduled,
            without="no pod serves",
        ),
        Scene(
            "out-of-memory",
            "The server runs out of memory",
            "The kernel kills the server at its memory limit, again and again.",
            _killed,
            without="no pod serves",
        ),
        Scene(
            "probe-fails",
            "The server does not answer its probe",
            "The container runs, and is never ready.",
            _silent,
            without="no container has a readiness probe",
        ),
        Scene(
            "claim-pending",
            "A volume claim stays pending",
            "Nothing provides a volume for the claims.",
            _unbound,
            unbound=True,
            without="no pod mounts a volume claim",
        ),
        Scene(
            "download-not-found",
            "The model's address answers 404",
            "What downloads the model before the server starts does not find it.",
            _not_found,
            without="no container downloads a model before a server starts",
        ),
        Scene(
            "checksum-wrong",
            "The model has another checksum",
            "The file that is downloaded is not the one that the Model's sha256 demands.",
            _checksum,
            without="no Model with a sha256 is downloaded",
        ),
        Scene(
            "half-ready",
            "Half of the replicas are ready",
            "The containers of the others are still being made.",
            _half,
            without="no workload has more than one replica",
        ),
        Scene(
            "scaled-up",
            "The autoscaler scales up",
            "Once everything runs, load asks for as many replicas as are allowed.",
            event=_scale,
            without="no autoscaler may ask for more replicas",
        ),
        Scene(
            "node-lost",
            "A node is lost",
            "Once everything runs, the node of the first pod does not answer any more; after five minutes its pods are "
            "created again.",
            event=_lose_node,
            without="no pod serves",
        ),
    )
}


def listed() -> list[models.Scene]:
    """The scenes as the page has them."""
    return [models.Scene(name=s.name, title=s.title, description=s.description) for s in SCENES.values()]


@dataclass
class World:
    """A cluster with its clock, and how far each of its pods has come."""

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
    _phases: dict[Key, Phase] = field(default_factory=dict)
    _owned: dict[Key, list[Json]] = field(default_factory=dict)

    def settle(self) -> bool:
        """Let Metacontroller call the hooks until nothing changes, and report whether anything did."""
        return self.cluster.settle() > 1

    def finish(self) -> None:
        """Advance until no pod changes, as if everything took half a minute."""
        self.fast_forward = True
        self.clock.seconds += STEP_SECONDS
        for _ in range(MAX_STEPS):
            changed = self.cluster.round()
            if not self._advance_pods() and not changed:
                return

    def find(self, kind: str, name: str, namespace: str) -> Json | None:
        """Return an object by kind and name, in any group."""
        keys = [
            key for key in self.cluster.objects if key[0].startswith(f"{kind}.") and key[1] == f"{namespace}/{name}"
        ]
        return self.cluster.objects[keys[0]] if keys else None

    def workloads(self) -> Iterator[Json]:
        """Yield the workloads, oldest first."""
        yield from [d for d in self.cluster.objects.values() if d["kind"] in WORKLOADS]

    def pods(self, workload: Json) -> list[Json]:
        """Return the pods of a workload."""
        return self._owned.get((outer_key(workload), inner_key(workload)), [])

    def advance(self) -> str:
        """Advance by half a minute, and return what happened in it."""
        self.clock.seconds += STEP_SECONDS
        words = self._advance_pods()
        changed = self.settle()
        return words or ("the controllers report what they did" if changed else "")

    def _advance_pods(self) -> str:
        """Create, advance and delete pods, and return what happened."""
        changes: dict[str, list[str]] = {}
        for workload in self.workloads():
            key = outer_key(workload), inner_key(workload)
            desired = list(pods_of(workload))
            pods = self._owned.setdefault(key, [])
            present = {pod["metadata"]["name"]: pod for pod in pods}
            names = [pod["metadata"]["name"] for pod in desired]
            for gone in [pod for pod in pods if pod["metadata"]["name"] not in names]:
                self._remove(gone)
            pods[:] = [present.get(pod["metadata"]["name"], pod) for pod in desired]
            for number, pod in enumerate(pods):
                before = self._phases.get((outer_key(pod), inner_key(pod)))
                after = self._next(workload, pod, number, len(pods))
                if after is not before:
                    changes.setdefault(self._word(pod, after), []).append(pod["metadata"]["name"])
        for key in [key for key in self._owned if key not in self.cluster.objects]:
            for pod in self._owned.pop(key):
                self._remove(pod)
        return "; ".join(f"{_pods(names)}: {word}" for word, names in changes.items())

    def _word(self, pod: Json, phase: Phase) -> str:
        """Return the phase of a pod, or its problem."""
        wrong = troubled(pod)
        return wrong[0].reason if wrong else WORDS[phase]

    def _remove(self, pod: Json) -> None:
        key = outer_key(pod), inner_key(pod)
        self._phases.pop(key, None)
        self.cluster.objects.pop(key, None)

    def _next(self, workload: Json, pod: Json, number: int, count: int) -> Phase:
        """Move a pod to its next phase, and write its status."""
        key = outer_key(pod), inner_key(pod)
        before = self._phases.get(key)
        trouble = self._trouble(workload, pod, number, count)
        phase = Phase.PENDING if before is None else before
        stop = Phase.READY if trouble is None else trouble.phase
        if self.fast_forward:
            phase = stop
        elif before is not None and phase < stop:
            phase = Phase(phase + 1)
        if phase is Phase.INITIALIZING and not pod["spec"].get("initContainers"):
            phase = Phase.RUNNING
        if phase is Phase.RUNNING and stop is Phase.READY and _serves(workload) and not _starts_slowly(pod):
            phase = Phase.READY
        if phase >= Phase.SCHEDULED:
            pod["spec"] = {**pod["spec"], "nodeName": f"node-{number + 1}"}
        self._phases[key] = phase
        new = status(pod, phase, trouble, self.clock, ends=workload["kind"] == "Job")
        if before is not phase or pod["status"].get("phase") != new["phase"]:
            pod["status"] = new
        pod["metadata"].setdefault("creationTimestamp", self.clock.text)
        self.cluster.put(pod)
        return phase

    def _trouble(self, workload: Json, pod: Json, number: int, count: int) -> Trouble | None:
        for scene in self.scenes:
            trouble = scene.trouble(workload, pod, number, count)
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
            self.lost.add((outer_key(pod), inner_key(pod)))
            conditions = [
                {**c, "status": "False", "reason": "NodeLost"} if c["type"] == "Ready" else c
                for c in pod["status"]["conditions"]
            ]
            pod["status"] = {**pod["status"], "conditions": conditions}

    def evict(self) -> None:
        """Delete the pods of lost nodes, to be created again."""
        for key in self.lost:
            if (pod := self.cluster.objects.get(key)) is not None:
                self._remove(pod)
                pod["status"] = {}
                pod["metadata"].pop("creationTimestamp", None)
        self.lost.clear()


def _starts_slowly(pod: Json) -> bool:
    return any("startupProbe" in container for container in pod["spec"]["containers"])


def _pods(names: list[str]) -> str:
    return f"pod {names[0]}" if len(names) == 1 else f"{len(names)} pods"


def world_of(
    manifests: Sequence[Manifest], namespace: str, service_settings: Settings, scenes: Sequence[Scene]
) -> World:
    """Return a cluster with the manifests and the objects of an installation, before the first sync."""
    cluster = holding(manifests, namespace, settings=service_settings)
    world = World(cluster, scenes)
    cluster.send = direct(service_settings, world.clock.now)
    cluster.controllers = _controllers(world)
    return world


def _controllers(world: World) -> Mapping[str, simulated.Controller]:
    """Return the simulated controllers; those of workloads and claims follow the world's phases."""

    def workload(document: Json) -> Json:
        new = summary(document, world.pods(document), world.clock, too_long=world.too_long)
        return since(document.get("status") or {}, new)

    def claim(document: Json) -> Json:
        unbound = any(scene.unbound for scene in world.scenes)
        return {"phase": "Pending" if unbound or not world.clock.seconds else "Bound"}

    def autoscaler(document: Json) -> Json:
        return {**simulated.CONTROLLERS[document["kind"]](document), **_status_field(document, "desiredReplicas")}

    controllers: dict[str, simulated.Controller] = dict.fromkeys(WORKLOADS, workload)
    controllers |= {"PersistentVolumeClaim": claim}
    return {
        **simulated.CONTROLLERS,
        **controllers,
        **dict.fromkeys(("HorizontalPodAutoscaler", "ScaledObject"), autoscaler),
    }


def _status_field(document: Json, name: str) -> Json:
    held = document.get("status") or {}
    return {name: held[name]} if name in held else {}


def chosen(names: Iterable[str]) -> list[Scene]:
    """Return the scenes of these names. Raises :class:`Unknown` for one that does not exist."""
    unknown = [name for name in names if name not in SCENES]
    if unknown:
        raise Unknown(f"no scene is called {unknown[0]}; there are {', '.join(SCENES)}")
    return [SCENES[name] for name in names]


def run(world: World, settle: Callable[[World], Iterable[str]] | None = None) -> Iterator[str]:
    """Advance the world until nothing changes, and yield what happened in each step.

    ``settle`` advances until no pod changes; by default in steps of half a minute.
    """
    settle = settle or settle_steps
    yield from settle(world)
    for scene in world.scenes:
        happened = scene.event(world)
        if happened:
            world.concerned.add(scene.name)
            world.advance_clock(STEP_SECONDS)
            yield happened
            yield from _eviction_steps(world)
            yield from settle(world)
    if world.stuck():
        world.too_long = True
        world.advance_clock(DEADLINE_SECONDS)
        yield "ten minutes later, without progress"


def settle_steps(world: World) -> Iterator[str]:
    """Advance step by step until nothing happens."""
    if not world.clock.seconds:
        world.settle()
        yield "the manifests are applied, and the hooks answer"
    for _ in range(MAX_STEPS):
        happened = world.advance()
        if not happened:
            return
        yield happened


def _fast_forward(world: World) -> Iterable[str]:
    world.finish()
    return ()


def _eviction_steps(world: World) -> Iterator[str]:
    """Evict the pods of a lost node, as Kubernetes does."""
    if world.lost:
        world.evict()
        world.advance_clock(EVICTION_SECONDS)
        yield "five minutes later, its pods are deleted"


def simulate(request: models.ScenesRequest) -> models.Simulation:
    """Return every step with its graph and the statuses of the parents."""
    manifests, scenes = objects(request.documents, request.namespace), chosen(request.scenes)
    world = world_of(manifests, request.namespace, settings(request.settings), scenes)
    written = places(manifests, request.namespace)
    steps = [
        models.Step(
            title=f"{happened[:1].upper()}{happened[1:]}",
            seconds=world.clock.seconds,
            graph=draw(world.cluster, written),
            parents=_parents(world.cluster),
        )
        for happened in run(world)
    ]
    notes = [f"{s.title}: no effect, {s.without}" for s in scenes if s.name not in world.concerned]
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
    outer, _, inner = request.node.partition(" ")
    document = cluster.objects.get((outer, inner))
    if document is None:
        raise Unknown(f"{request.node} is not created by these documents")
    return models.Document(name=request.node, text=yaml_of(document))


def end(request: models.Manifests, scenes: Sequence[Scene] = ()) -> tuple[Sequence[Manifest], Cluster]:
    """Return the objects of the documents and the cluster of the last step, which must not be changed."""
    texts = tuple((document.name, document.text) for document in request.documents)
    return _end(texts, request.namespace, settings(request.settings), tuple(scenes))


@lru_cache(maxsize=4)
def _end(
    texts: tuple[tuple[str, str], ...], namespace: str, service_settings: Settings, scenes: tuple[Scene, ...]
) -> tuple[Sequence[Manifest], Cluster]:
    """Cached, because the page asks for the values of a graph right after it."""
    manifests = objects([models.Document(name=name, text=text) for name, text in texts], namespace)
    world = world_of(manifests, namespace, service_settings, scenes)
    for _ in run(world, _fast_forward):
        pass
    return manifests, world.cluster


def _parents(cluster: Cluster) -> list[models.ParentStatus]:
    """Return the statuses of served objects that are not children."""
    return [
        models.ParentStatus(
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

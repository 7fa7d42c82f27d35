"""Events that may happen to the pods, claims and nodes of a simulated run."""

import re
from collections.abc import Iterable

from app.kube.base import Json
from app.studio import documents, graph, models
from app.studio.kubelet import PodPhase, Trouble
from app.studio.playback import Playback, Scene

_REPOSITORY = 1, "huggingface_hub.errors.RepositoryNotFoundError: 404 Client Error: Repository Not Found"
DOWNLOADERS = {
    "model-downloader": (64, "model-downloader: trying again would not help (curl 22, HTTP 404)"),
    "model-loader": _REPOSITORY,
    "storage-initializer": _REPOSITORY,
}
"""Containers that download a model, with the exit code and message for a file that does not exist."""


def _image(pod: Json, *_: int) -> Trouble:
    """The registry does not have the server's image."""
    first = pod["spec"]["containers"][0]
    name, image = first["name"], first.get("image", "")
    words = (
        f'Back-off pulling image "{image}": ErrImagePull: failed to pull and unpack image "{image}": '
        f"failed to resolve reference: {image}: not found"
    )
    return Trouble(PodPhase.SCHEDULED, "ImagePullBackOff", words, container=name)


def _unscheduled(pod: Json, *_: int) -> Trouble:
    """All nodes lack what the server asks for, such as GPUs."""
    resources = [c.get("resources") or {} for c in pod["spec"]["containers"]]
    names = [name for r in resources for name in {**(r.get("limits") or {}), **(r.get("requests") or {})}]
    lacking = next((name for name in names if "/" in name), "memory")
    return Trouble(
        PodPhase.CREATED,
        message=f"0/3 nodes are available: 3 Insufficient {lacking}. preemption: 0/3 nodes are available: "
        "3 No preemption victims found for incoming pod.",
    )


def _killed(_: Json, *__: int) -> Trouble:
    """The kernel kills the server at its memory limit, again and again."""
    return Trouble(PodPhase.RUNNING, "CrashLoopBackOff", exit_code=137, reason="OOMKilled")


def _silent(pod: Json, *_: int) -> Trouble | None:
    """The container runs, and is never ready."""
    probed = next((c["name"] for c in pod["spec"]["containers"] if "readinessProbe" in c), "")
    return Trouble(PodPhase.RUNNING, container=probed) if probed else None


def _unbound(pod: Json, *_: int) -> Trouble | None:
    """Nothing provides a volume for the claims."""
    claims = [v for v in pod["spec"].get("volumes") or () if "persistentVolumeClaim" in v]
    words = "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims."
    return Trouble(PodPhase.CREATED, message=words) if claims else None


def _downloader(pod: Json) -> tuple[Json, PodPhase] | None:
    """Return the container that downloads, and the phase of the pod in which it runs."""
    for part, phase in (("initContainers", PodPhase.INITIALIZING), ("containers", PodPhase.RUNNING)):
        for container in pod["spec"].get(part) or ():
            if container["name"] in DOWNLOADERS:
                return container, phase
    return None


def _not_found(pod: Json, *_: int) -> Trouble | None:
    """The container or Job that downloads the model gets a 404."""
    downloader = _downloader(pod)
    return _ended(pod, *downloader, *DOWNLOADERS[downloader[0]["name"]]) if downloader else None


def _checksum(pod: Json, *_: int) -> Trouble | None:
    """The file that is downloaded is not the one that the Model's sha256 demands."""
    downloader = _downloader(pod)
    environment = (downloader[0].get("env") or ()) if downloader else ()
    expected = next((e.get("value", "") for e in environment if e["name"] == "MODEL_SHA256"), "")
    if downloader is None or not expected:
        return None
    actual = re.sub(".", lambda digit: "0123456789abcdef"[-1 - int(digit[0], 16)], expected.lower())
    words = f"model-downloader: wrong SHA-256: the file has {actual}, the Model demands {expected}"
    return _ended(pod, *downloader, 65, words)


def _ended(pod: Json, container: Json, phase: PodPhase, code: int, words: str) -> Trouble:
    restarts = pod["spec"].get("restartPolicy", "Always") == "Always"
    waiting = "CrashLoopBackOff" if restarts else ""
    return Trouble(phase, waiting, words, exit_code=code, container=container["name"])


def _half(_: Json, number: int, count: int) -> Trouble | None:
    """The containers of the others are still being made."""
    return Trouble(PodPhase.SCHEDULED, "ContainerCreating") if number >= (count + 1) // 2 else None


def _scale(playback: Playback) -> str:
    """Once everything runs, load asks for as many replicas as are allowed."""
    events = []
    for document in list(playback.cluster.objects.values()):
        target = playback.cluster.objects.get(graph.scaled(document) or ("", ""))
        most = document.get("spec", {}).get("maxReplicas", document.get("spec", {}).get("maxReplicaCount", 1))
        if target is not None and target["spec"].get("replicas", 1) != most:
            target["spec"] = {**target["spec"], "replicas": most}
            target["metadata"] = {**target["metadata"], "generation": target["metadata"]["generation"] + 1}
            if document["kind"] == "HorizontalPodAutoscaler":
                document["status"] = {**document.get("status", {}), "desiredReplicas": most}
            events.append(f"{document['kind']} {document['metadata']['name']} asks for {most} replicas")
    return "; ".join(events)


def _lose_node(playback: Playback) -> str:
    """Once everything runs, the first pod's node stops answering; five minutes later its pods are created again."""
    placed = [
        [pod for pod in playback.pods(workload) if "nodeName" in pod["spec"]]
        for workload in playback.workloads()
        if workload["kind"] != "Job"
    ]
    lost = [pods[0] for pods in placed if pods]
    playback.lose(lost)
    return "a node stops responding" if lost else ""


_ALL = (
    Scene("image-pull-fails", "An image cannot be pulled", "no pod serves", _image),
    Scene("unschedulable", "No node takes the pods", "no pod serves", _unscheduled),
    Scene("out-of-memory", "The server runs out of memory", "no pod serves", _killed),
    Scene("probe-fails", "The server does not answer its probe", "no container has a readiness probe", _silent),
    Scene(
        "claim-pending",
        "A volume claim stays pending",
        "no pod mounts a volume claim",
        _unbound,
        jobs=True,
        unbound=True,
    ),
    Scene(
        "download-not-found",
        "The model's address answers 404",
        "no container downloads a model before a server starts",
        _not_found,
        jobs=True,
    ),
    Scene(
        "checksum-wrong", "The model has another checksum", "no Model with a sha256 is downloaded", _checksum, jobs=True
    ),
    Scene("half-ready", "Half of the replicas are ready", "no workload has more than one replica", _half),
    Scene("scaled-up", "The autoscaler scales up", "no autoscaler may ask for more replicas", event=_scale),
    Scene("node-lost", "A node is lost", "no pod serves", event=_lose_node),
)
SCENES = {scene.name: scene for scene in _ALL}


def listed() -> list[models.SceneOption]:
    return [models.SceneOption(name=s.name, title=s.title, description=s.description) for s in SCENES.values()]


def chosen(names: Iterable[str]) -> list[Scene]:
    """Return the scenes of these names. Raises :class:`Unknown` for one that does not exist."""
    unknown = [name for name in names if name not in SCENES]
    if unknown:
        raise documents.Unknown(f"no scene is called {unknown[0]}; there are {', '.join(SCENES)}")
    return [SCENES[name] for name in names]

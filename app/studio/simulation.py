"""The simulated run of manifests, step by step.

Between two steps half a minute passes: every pod enters its next phase unless a scene holds it up, the controllers of
Kubernetes write their statuses, and Metacontroller asks the hooks again until nothing changes.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from app.desk.cluster.live import conditions, ready
from app.desk.cluster.offline import World
from app.desk.cluster.simulate import Cluster
from app.desk.cluster.store import owner
from app.desk.files.manifests import Manifest
from app.studio import models
from app.studio.documents import Unknown, holding, objects, world
from app.studio.graph import draw, key_in, node_id, places, yaml_of
from app.studio.playback import MAX_STEPS, STEP_SECONDS, Playback, Scene, begin
from app.studio.scenes import chosen

EVICTION_SECONDS = 300
DEADLINE_SECONDS = 600
"""Default progress deadline of a Deployment."""


def settle_steps(playback: Playback) -> Iterator[str]:
    if not playback.clock.seconds:
        playback.cluster.settle()
        yield "the manifests are applied, and the hooks answer"
    for _ in range(MAX_STEPS):
        happened = playback.advance()
        if not happened:
            return
        yield happened


def run(playback: Playback, settle: Callable[[Playback], Iterable[str]] = settle_steps) -> Iterator[str]:
    """Advance until nothing changes, and yield what happened in each step; ``settle`` does so until no pod changes."""
    yield from settle(playback)
    for scene in playback.scenes:
        if scene.event is not None and (happened := scene.event(playback)):
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


@dataclass(frozen=True)
class Moment:
    """The cluster after a step, and what happened in it."""

    title: str
    seconds: int
    cluster: Cluster


@dataclass(frozen=True)
class Film:
    """A simulated run, step by step."""

    manifests: Sequence[Manifest]
    moments: Sequence[Moment]
    concerned: frozenset[str]


def simulate(request: models.ScenesRequest) -> models.Simulation:
    """Return every step with its graph and the statuses of the parents."""
    scenes = chosen(request.scenes)
    film = _film(tuple(request.documents), world(request), tuple(scenes))
    written = places(film.manifests, request.namespace)
    steps = [
        models.Step(
            title=moment.title,
            seconds=moment.seconds,
            graph=draw(moment.cluster, written, yaml=False),
            parents=_parents(moment.cluster),
        )
        for moment in film.moments
    ]
    notes = [f"{s.title}: no effect, {s.without}" for s in scenes if s.name not in film.concerned]
    return models.Simulation(steps=steps, notes=notes, opens=_opens(steps))


@lru_cache(maxsize=2)
def _film(documents: tuple[models.Document, ...], service: World, scenes: tuple[Scene, ...]) -> Film:
    """Cached, because the page asks for the YAML of an object in one of the steps."""
    manifests = objects(documents, service.namespace)
    playback = begin(manifests, service, scenes)
    moments = [
        Moment(f"{happened[:1].upper()}{happened[1:]}", playback.clock.seconds, playback.cluster.copy())
        for happened in run(playback)
    ]
    return Film(manifests, moments, frozenset(playback.concerned))


def _opens(steps: Sequence[models.Step]) -> int:
    """Return the first step in which something stops being ready, else the last."""
    ready = [all(parent.ready == "True" for parent in step.parents) for step in steps]
    fallen = [later for later in range(1, len(steps)) if ready[later - 1] and not ready[later]]
    return fallen[0] if fallen else max(len(steps) - 1, 0)


def graph(request: models.GraphRequest) -> models.Graph:
    """Return the graph of the last step, or its outline, which takes a quarter of the time."""
    if request.outline:
        written = objects(request.documents, request.namespace)
        return _drawn(written, holding(written, world(request)), request)
    return _drawn(*end(request, chosen(request.scenes)), request)


def _drawn(manifests: Sequence[Manifest], cluster: Cluster, request: models.GraphRequest) -> models.Graph:
    return draw(cluster, places(manifests, request.namespace), yaml=request.yaml)


def object_yaml(request: models.ObjectRequest) -> models.Document:
    """Return the YAML of one object of that graph, or of a step. Raises :class:`Unknown` if there is no such object."""
    document = _cluster(request).objects.get(key_in(request.node))
    if document is None:
        raise Unknown(f"{request.node} is not created by these documents")
    return models.Document(name=request.node, text=yaml_of(document))


def _cluster(request: models.ObjectRequest) -> Cluster:
    scenes = chosen(request.scenes)
    if request.step is None:
        return end(request, scenes)[1]
    moments = _film(tuple(request.documents), world(request), tuple(scenes)).moments
    if request.step >= len(moments):
        raise Unknown(f"step {request.step} not found")
    return moments[request.step].cluster


def end(request: models.Manifests, scenes: Sequence[Scene] = ()) -> tuple[Sequence[Manifest], Cluster]:
    """Return the objects of the documents and the cluster of the last step, which must not be changed."""
    return _end(tuple(request.documents), world(request), tuple(scenes))


@lru_cache(maxsize=4)
def _end(
    documents: tuple[models.Document, ...], service: World, scenes: tuple[Scene, ...]
) -> tuple[Sequence[Manifest], Cluster]:
    """Cached, because the page asks for the values of a graph right after it."""
    manifests = objects(documents, service.namespace)
    playback = begin(manifests, service, scenes)
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
            conditions=conditions(document),
        )
        for kind, document in cluster.parents()
        if kind.resource.children and not owner(document)
        for condition in [ready(document)]
    ]

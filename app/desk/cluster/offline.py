"""A cluster in memory that holds the objects of files, and the hooks as functions, for all offline commands."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import lru_cache
from itertools import count
from typing import NamedTuple

import msgspec
import orjson

from app.admission.metadata import decode_metadata
from app.desk import processes
from app.desk.cluster import catalogue
from app.desk.cluster.kinds import DEFAULT_NAMESPACE, INSTALLATION, find, find_hook
from app.desk.cluster.references import missing_references
from app.desk.cluster.simulate import Cluster, Progress, Send
from app.desk.cluster.single import errors_of, judge_all
from app.desk.cluster.store import key_of, outer_key, related, stored
from app.desk.files.manifests import Manifest, ManifestError
from app.desk.progress import counted, line
from app.errors import ProtocolError
from app.hooks.answer import answer_customize, answer_sync
from app.hooks.kind import AnyKind
from app.hooks.protocol import AnyRequest
from app.kube.base import Json
from app.kube.field import ErrorType, Path
from app.kube.names import (
    CONTROLLER_UID,
    LAST_APPLIED,
)
from app.llmkube.names import PRIORITY_CLASS_PREFIX, PRIORITY_VALUES
from app.settings import Settings

NOW = datetime.fromisoformat("2025-01-01T00:00:00+00:00")
"""The clock of every offline command: the same files print the same at any time."""
_PRIORITIES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
    **{f"{PRIORITY_CLASS_PREFIX}{level}": value for level, value in PRIORITY_VALUES.items()},
}
"""The PriorityClasses of every cluster, and of every installation of LLMKube."""


@contextmanager
def progress() -> Iterator[Progress]:
    """Count syncs while a cluster settles."""
    with line() as show:
        numbers = count(1)
        yield lambda round_: show(f"{next(numbers)} syncs, round {round_}")


class World(msgspec.Struct, frozen=True):
    """The cluster that manifests are for, and options for reading files."""

    namespace: str = DEFAULT_NAMESPACE
    """The namespace of objects without one."""
    without: tuple[str, ...] = ()
    """Components that are not installed."""
    settings: Settings = msgspec.field(default_factory=Settings)
    related: tuple[str, ...] = ()
    """More files, which are read but not reported on."""
    exclude: tuple[str, ...] = ()
    """Patterns of files that are left out of a directory."""


def holding(manifests: Iterable[Manifest], world: World) -> Cluster:
    """Build a cluster in memory with the objects of files as they are, and with what is taken as given."""
    manifests, namespace = list(manifests), world.namespace
    assumed = catalogue.installed(manifests) if INSTALLATION not in world.without else []
    cluster = Cluster(direct(world.settings), world.without)
    judge_all((manifest for manifest in manifests if served(manifest) is not None), world.settings)
    for manifest in counted([*assumed, *manifests], "objects read"):
        if not (manifest.kind and manifest.api_version) or (served(manifest) is None and not manifest.name):
            continue  # a kustomization, the values of a chart, or what validate has a finding about
        cluster.put(document := in_cluster(manifest, namespace))
        is_judged = manifest not in assumed and served(manifest) is not None
        if is_judged and (errors := errors_of(manifest, world.settings)):
            cluster.refused[key_of(document)] = "; ".join(error.text for error in errors)
    cluster.installed = frozenset(key for manifest in assumed if (key := identity(manifest, namespace)) is not None)
    for document in list(_built_in(cluster)) if INSTALLATION not in world.without else ():
        cluster.objects.setdefault(key_of(document), document)
    return cluster


def _built_in(cluster: Cluster) -> Iterator[Json]:
    """Yield the objects of every cluster that hooks may read.

    PriorityClasses only where the files have one: where they have none, no class is judged.
    """
    for namespace in {document["metadata"].get("namespace") for document in cluster.objects.values()} - {None}:
        yield stored({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}, namespace)
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    for name, value in _PRIORITIES.items() if cluster.objects.of_kind(outer_key(head)) else ():
        yield stored({**head, "metadata": {"name": name}, "value": value}, "")


def settled(manifests: Iterable[Manifest], world: World) -> Cluster:
    """Return a cluster in memory with the objects of files and everything they lead to."""
    return settle(holding(manifests, world))


def settle(cluster: Cluster) -> Cluster:
    """Return a copy of a cluster with everything its objects lead to."""
    copied = cluster.copy()
    with progress() as tick:
        copied.settle(tick)
    return copied


def direct(settings: Settings, clock: Callable[[], datetime] = lambda: NOW) -> Send:
    """Return a client that calls the hooks as functions, at a fixed time unless there is a clock."""
    customize = _customizer(settings)

    def send(path: str, body: bytes) -> bytes:
        hook, _, action = path.rpartition("/")
        kind = find_hook(hook)
        try:
            if action == "customize":
                return customize(hook, body)
            return answer_sync(kind, body, settings, clock())
        except ProtocolError as error:
            raise ManifestError(f"{kind.resource.kind}: {error}") from None

    return send


@lru_cache(maxsize=4)
def _customizer(settings: Settings) -> Callable[[str, bytes], bytes]:
    """Return the customize hooks with settings, of which the clusters of one command ask the same."""

    @lru_cache(maxsize=4096)
    def customize(kind: str, body: bytes) -> bytes:
        return answer_customize(find_hook(kind), body, settings)

    return customize


def request_of(kind: AnyKind, document: Json, cluster: Cluster) -> AnyRequest:
    """Return the decoded request to a sync hook. Raise :class:`ManifestError` for a malformed object in it."""
    try:
        return kind.request(cluster.request(kind, document))
    except ProtocolError as error:
        raise ManifestError(f"{kind.resource.kind}: {error}") from None


class _Assumed(NamedTuple):
    """What the hooks of one object read that no file describes, by kind and name, and sentences on other children."""

    absent: set[tuple[str, str]]
    present: set[tuple[str, str]]
    conditions: list[str]


def assumptions(manifests: Sequence[Manifest], world: World, *, of_children: bool = True) -> Iterator[str]:
    """Yield a sentence each on what hooks read that no file describes: taken as given, or missing.

    ``of_children``: also on what other children a cluster would get.
    """
    identities = {manifest: key for manifest in manifests if (key := identity(manifest, world.namespace))}
    cluster, described = holding(identities, world), {*identities.values()}

    def read(manifest: Manifest) -> _Assumed:
        kind = served(manifest)
        assert kind is not None
        document = in_cluster(manifest, world.namespace)
        references = missing_references(kind, document, cluster, world.settings)
        groups = related(kind, cluster.rules(kind, document), cluster.objects)
        return _Assumed(
            {(reference.kind, reference.name) for reference in references if reference.is_served},
            {
                (item["kind"], item["metadata"]["name"])
                for key, group in groups.items()
                for inner, item in group.items()
                if (key, inner) not in described
            },
            [*_conditions(kind, document, cluster, world.settings)] if of_children else [],
        )

    readers = [manifest for manifest in identities if served(manifest) is not None]
    everything = processes.each(readers, read, "objects looked at for what they refer to")
    absent = {item for assumed in everything for item in assumed.absent}
    present = {item for assumed in everything for item in assumed.present}
    conditions = dict.fromkeys(words for assumed in everything for words in assumed.conditions)
    if present and INSTALLATION not in world.without:
        yield f"taken as given: {_listed(present)} (--without {INSTALLATION} changes that)"
    if absent:
        yield f"not among the files: {_listed(absent)}"
    yield from conditions


def _conditions(kind: AnyKind, document: Json, cluster: Cluster, settings: Settings) -> Iterable[str]:
    if kind.offline.assumes is None or key_of(document) in cluster.refused:
        return ()
    try:
        request = request_of(kind, document, cluster)
    except ManifestError:
        return ()
    resource, errors = kind.decode(request.parent)
    return () if resource is None or errors else kind.offline.assumes(resource, request, settings)


def _listed(objects: set[tuple[str, str]]) -> str:
    """Return kinds and names, as in ``Model a, b; Gateway c``."""
    names: dict[str, list[str]] = {}
    for kind, name in sorted(objects):
        names.setdefault(kind, []).append(name)
    return "; ".join(f"{kind} {', '.join(listed)}" for kind, listed in names.items())


def identity(manifest: Manifest, namespace: str) -> tuple[str, str] | None:
    """Kind and ``namespace/name`` of an object in a cluster; ``None`` for what no cluster could hold."""
    try:
        document = in_cluster(manifest, namespace)
    except ManifestError:
        return None
    return key_of(document)


def in_cluster(manifest: Manifest, namespace: str) -> Json:
    """An object as the cluster holds it; ``namespace`` is for those that name none and need one.

    Raises :class:`ManifestError` for one without a type or a name, or with invalid metadata: no cluster holds it.
    """
    for key in ("apiVersion", "kind"):
        if not manifest.document.get(key):
            raise ManifestError(f"{manifest.name or 'an object'}: {key} is missing", manifest.file)
    _, errors = decode_metadata(orjson.dumps(manifest.document.get("metadata")))
    wrong = [error for error in errors if error.type is ErrorType.TYPE_INVALID]
    if wrong or not manifest.name:
        problem = f"{manifest.kind}: {wrong[0] if wrong else 'metadata.name is missing'}"
        raise ManifestError(problem, manifest.file, *manifest.position(Path("metadata")))
    return stored(manifest.document, namespace)


def served(manifest: Manifest) -> AnyKind | None:
    return find(manifest.api_version, manifest.kind)


def desired(child: Json) -> Json:
    """Return a child as the hook wrote it, without what a cluster added."""
    metadata = {k: v for k, v in child["metadata"].items() if k not in ("uid", "generation", "ownerReferences")}
    metadata["labels"] = {k: v for k, v in (metadata.get("labels") or {}).items() if k != CONTROLLER_UID}
    annotations = {k: v for k, v in (metadata.pop("annotations", None) or {}).items() if k != LAST_APPLIED}
    if annotations:
        metadata["annotations"] = annotations
    head = {"apiVersion": child["apiVersion"], "kind": child["kind"], "metadata": metadata}
    return {**head, **{k: v for k, v in child.items() if k not in (*head, "status")}}

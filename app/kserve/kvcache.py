"""``kvCacheOffloading``: key-value caches that leave the GPU for host memory and file systems. Source: KS-3.16."""

import json
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from app.kserve.arguments import has_option
from app.kserve.constants import MAIN, OPEN
from app.kube import field, podspec
from app.kube.base import EmbeddedType, IntOrString, Json, KubeModel
from app.kube.merge import find, replaced
from app.kube.modelfields import check_embedded, unknown_fields
from app.kube.quantity import QuantityError, canonical, is_quantity, parse, problem, quantity_errors
from app.kube.reading import decode
from app.workload.rules import podrules
from app.workload.rules.fieldrules import relative_path

FLAG = "--kv-transfer-config"
TIER = "kv-cache-secondary-"
"""Beginning of the names of volumes."""
NO_FLAG = f"kvCacheOffloading has no effect: the server does not get {FLAG}, which presets of v0.20 write"


_ClaimSpec = Annotated[Json, EmbeddedType("PersistentVolumeClaimSpec")]
_EPHEMERAL_STORAGE = "ephemeral-storage"


class ClaimReference(KubeModel):
    name: str = Field("", description="Name of the claim.")
    path: str = Field("", description="Directory in the claim. Defaults to its root.")


class CacheClaim(KubeModel):
    spec: _ClaimSpec | None = Field(None, description="Spec of a claim that lives as long as its pod.")
    ref: ClaimReference | None = Field(None, description="A claim that exists.")


class CacheDirectory(KubeModel):
    size: IntOrString | None = Field(None, description="Storage that it may take: the pod is evicted above it.")
    size_limit: IntOrString | None = Field(None, description="Kubernetes' own name of size.")
    medium: str = Field("", description="Memory for a file system in memory.")

    @property
    def limit(self) -> IntOrString | None:
        return self.size if self.size is not None else self.size_limit


class CacheFileSystem(KubeModel):
    empty_dir: CacheDirectory | None = Field(None, description="Storage of the node.")
    pvc: CacheClaim | None = Field(None, description="A PersistentVolumeClaim.")


class CacheTier(KubeModel):
    file_system: CacheFileSystem = Field(description="A file system.")


class KVCacheOffloading(KubeModel):
    cpu: IntOrString | None = Field(None, description="Host memory for key-value caches.")
    eviction_policy: Literal["lru", "arc"] = Field("lru", description="Which blocks leave the host memory first.")
    secondary: list[CacheTier] | None = Field(None, description="Storage for what leaves the host memory.")


def check(offloading: Json | None, path: field.Path, *, is_part: bool) -> Iterator[field.Error]:
    """Require the tiers of a key-value cache as KServe v0.20 does. If ``is_part``, the rest may come from elsewhere."""
    settings, errors = _decoded(offloading, path)
    yield from errors
    if settings is None:
        return
    yield from (error for error in check_embedded(settings, path)[0] if OPEN not in error.body)
    if settings.cpu is not None:
        if not is_quantity(str(settings.cpu)):
            yield field.invalid(path.child("cpu"), settings.cpu, problem(str(settings.cpu)))
    elif settings.secondary and not is_part:
        yield field.required(path.child("cpu"), "secondary holds what leaves the host memory")
    for position, tier in enumerate(settings.secondary or ()):
        yield from _check_tier(tier, path.child("secondary").index(position).child("fileSystem"))


def advice(offloading: Json | None, path: field.Path) -> Iterator[field.Advice]:
    settings, _ = _decoded(offloading, path)
    yield from unknown_fields(offloading, KVCacheOffloading, path)
    if settings is not None:
        yield from check_embedded(settings, path)[1]


def _check_tier(tier: CacheTier, path: field.Path) -> Iterator[field.Error]:
    """Require one of emptyDir and pvc, and a claim that Kubernetes accepts."""
    files = tier.file_system
    yield from _exactly_one(path, emptyDir=files.empty_dir, pvc=files.pvc)
    yield from _check_directory(files.empty_dir or CacheDirectory.model_construct(), path.child("emptyDir"))
    if files.pvc is None:
        return
    yield from _exactly_one(path.child("pvc"), spec=files.pvc.spec, ref=files.pvc.ref)
    yield from podrules.check("PersistentVolumeClaimTemplate.spec", files.pvc.spec, path.child("pvc", "spec"))
    if files.pvc.ref is not None:
        reference = path.child("pvc", "ref")
        if not files.pvc.ref.name:
            yield field.required(reference.child("name"), "name the PersistentVolumeClaim")
        yield from relative_path(files.pvc.ref.path, reference.child("path"))


def _check_directory(directory: CacheDirectory, path: field.Path) -> Iterator[field.Error]:
    """Require quantities, one size and a known medium of a directory."""
    for name, size in (("size", directory.size), ("sizeLimit", directory.size_limit)):
        if size is not None:
            yield from quantity_errors(str(size), path.child(name))
    if directory.size is not None and directory.size_limit is not None:
        yield field.forbidden(path.child("sizeLimit"), "size has the same meaning; set one of them")
    if directory.medium not in ("", "Memory") and not directory.medium.startswith("HugePages"):
        yield field.not_supported(path.child("medium"), directory.medium, ["", "Memory"])


def _exactly_one(path: field.Path, **choices: object) -> Iterator[field.Error]:
    """Require exactly one of several fields."""
    names = " or ".join(choices)
    present = [name for name, value in choices.items() if value is not None]
    if not present:
        yield field.required(path, f"set {names}")
    elif len(present) > 1:
        yield field.invalid(path, present, f"must have only one of {names}")


def _decoded(offloading: object, path: field.Path = field.SPEC) -> tuple[KVCacheOffloading | None, list[field.Error]]:
    return decode.decode_document(offloading, KVCacheOffloading, path) if isinstance(offloading, dict) else (None, [])


def with_tiers(document: Json) -> Json:
    """Mount the volumes of the secondary tiers into the model servers of a spec."""
    for side in ((), ("prefill",)):
        settings, _ = _decoded(find(document, (*side, "kvCacheOffloading")))
        tiers = [tier.file_system for tier in (settings.secondary if settings is not None else None) or ()]
        for path in ((*side, "template"), (*side, "worker")):
            if tiers and (pod := find(document, path)) is not None:
                document = replaced(document, path, _with_volumes(pod, tiers))
    return document


def _with_volumes(pod: Json, tiers: list[CacheFileSystem]) -> Json:
    volumes, mounts = [], []
    for position, files in enumerate(tiers):
        name = f"{TIER}{position}"
        reference = files.pvc.ref if files.pvc is not None else None
        below = {"subPath": reference.path} if reference is not None and reference.path else {}
        volumes.append({"name": name, **_source(files)})
        mounts.append({"name": name, "mountPath": _directory(position), **below})
    pod = {**pod, "volumes": [*(pod.get("volumes") or ()), *volumes]}
    request = _storage_request(tiers)

    def offloading(container: Json) -> Json:
        mounted = {**container, "volumeMounts": [*(container.get("volumeMounts") or ()), *mounts]}
        return _requesting(mounted, request) if request else mounted

    return podspec.with_container(pod, MAIN, offloading)


def _storage_request(tiers: list[CacheFileSystem]) -> str:
    """Return the storage of the node that the tiers may take together; empty for none."""
    directories = [files.empty_dir for files in tiers if files.pvc is None and files.empty_dir is not None]
    sizes = [str(directory.limit) for directory in directories if directory.limit is not None and not directory.medium]
    try:
        return sizes[0] if len(sizes) == 1 else _sum(sizes)
    except QuantityError:
        return ""


def _sum(sizes: list[str]) -> str:
    total = int(sum(map(parse, sizes)))
    return canonical(f"{total // 1024}Ki" if total % 1024 == 0 else str(total)) if total else ""


def _requesting(container: Json, storage: str) -> Json:
    """Add ephemeral storage to the container's requests, unless the sum exceeds the container's limit."""
    resources = container.get("resources") or {}
    requests, limit = resources.get("requests") or {}, (resources.get("limits") or {}).get(_EPHEMERAL_STORAGE)
    requested = requests.get(_EPHEMERAL_STORAGE)
    try:
        total = storage if requested is None else _sum([str(requested), storage])
        if not total or (limit is not None and parse(total) > parse(str(limit))):
            return container
    except QuantityError:
        return container
    return {**container, "resources": {**resources, "requests": {**requests, _EPHEMERAL_STORAGE: total}}}


def _directory(position: int) -> str:
    return f"/mnt/kv-cache-{position}"


def _source(files: CacheFileSystem) -> Json:
    """Return the source of a volume that passed :func:`check`."""
    if files.pvc is None:
        return {"emptyDir": _empty_dir(files.empty_dir) if files.empty_dir is not None else {}}
    if files.pvc.ref is not None:
        return {"persistentVolumeClaim": {"claimName": files.pvc.ref.name}}
    return {"ephemeral": {"volumeClaimTemplate": {"spec": files.pvc.spec or {}}}}


def _empty_dir(directory: CacheDirectory) -> Json:
    medium = {"medium": directory.medium} if directory.medium else {}
    return medium if directory.limit is None else {**medium, "sizeLimit": directory.limit}


def transfer_flag(offloading: object) -> str:
    """Return vLLM's flag for a shell script, to stand between double quotes; empty without host memory."""
    size, settings = _host_memory(offloading)
    if settings is None or not size:
        return ""
    extra: Json = {"cpu_bytes_to_use": size, "eviction_policy": settings.eviction_policy}
    if settings.secondary:
        tiers = [{"root_dir": _directory(position), "type": "fs"} for position in range(len(settings.secondary))]
        extra["secondary_tiers"] = tiers
    config = {
        "kv_connector": "OffloadingConnector",
        "kv_connector_extra_config": {**extra, "spec_name": "TieringOffloadingSpec"},
        "kv_role": "kv_both",
    }
    text = json.dumps(config, separators=(",", ":")).replace('"', '\\"')
    return f"{FLAG} '{text}'"


def _host_memory(offloading: object) -> tuple[int, KVCacheOffloading | None]:
    settings, _ = _decoded(offloading)
    try:
        return int(parse(str(settings.cpu))) if settings is not None else 0, settings
    except QuantityError:
        return 0, None


def lacks_flag(offloading: Json | None, *pods: Json | None) -> bool:
    """Report whether the field has no effect, because the server in one of the pods does not get the flag."""
    size, _ = _host_memory(offloading)
    servers = (c for pod in pods for c in (pod or {}).get("containers") or () if c.get("name") == MAIN)
    return size > 0 and not all(has_option(server, FLAG) for server in servers)

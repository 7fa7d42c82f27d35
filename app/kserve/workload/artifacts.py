"""Mounts and downloads of a model and its adapters, by their addresses. Source: KS-3.7 and KS-3.13.

Pods are shared plain JSON, so every change returns a new object.
"""

import posixpath
from collections.abc import Collection, Sequence

import msgspec

from app.kserve import constants, lora, modeluri, names
from app.kserve.operator import CA_BUNDLE_PATH, OperatorConfig, StorageInitializer
from app.kserve.sources import Artifact, Provider, problem, provider, shown
from app.kserve.workload.credentials import CA_BUNDLE, CA_BUNDLE_CONFIG_MAP, Access, Files
from app.kube.base import Json
from app.kube.merge import merge
from app.kube.objects import ObservedTemplate
from app.kube.podspec import CONTAINER, container_named, each_name_once, with_container
from app.workload.address import Address
from app.workload.parts import TERMINATION_MESSAGE_POLICY, read_only_mount

MODELCAR_COMMAND = "ln -sfn /proc/$$$$/root/models /mnt/models && sleep infinity"
"""The text must never change, or every pod restarts. Kubernetes makes ``$$$$`` a ``$$``: the shell's own process."""
MODELCAR_CHECK = (
    'echo "checking the model image"; if [ ! -d /models ] || [ -z "$(ls -A /models)" ]; '
    'then echo "the image has no files in /models" >&2; exit 1; fi'
)
COPY_COMMAND = 'for file; do if [ -e "/models/$file" ]; then cp "/models/$file" /mnt/copied/ || exit 1; fi; done'
"""Copies the files that its arguments name. The text must never change, either."""
IGNORED = ("command", "args")
"""Fields of a user's storage initializer that do not count: what is downloaded, and where to, is decided here."""
_FILLED: Json = {"emptyDir": {}}
"""Source of a volume that an init container fills."""
Mounted = tuple[Json, Json]
"""The source of a volume, and its mount."""


class ArtifactError(Exception):
    """The model cannot be brought into the pods; the message has the correction."""


def artifact(uri: str, settings: StorageInitializer, *, enabled: bool) -> Artifact:
    """Return the source that a URI names; ``enabled``: the pods do not fetch it. Raises :class:`ArtifactError`."""
    named = f"model.uri {shown(uri)!r}"
    try:
        parsed = modeluri.parse(uri)
    except modeluri.InvalidURL as error:
        raise ArtifactError(f"{named}: {error}") from None
    if not uri:
        raise ArtifactError("the service has no model: set model.uri to an address, as in hf://organisation/model")
    if not parsed.scheme:
        raise ArtifactError(f"invalid model URI {shown(uri)!r}: write hf://, s3://, pvc:// or oci:// and a path")
    reason = problem(parsed, enabled=enabled)
    if reason:
        raise ArtifactError(f"{named}: {reason}")
    if not enabled:
        return Artifact(parsed, None)
    where = provider(parsed)
    if where is Provider.IMAGE and settings.oci_model_mode.lower() == "native":
        where = Provider.IMAGE_VOLUME
    if where is Provider.IMAGE and not settings.enable_modelcar:
        raise ArtifactError("model.uri has scheme oci, but enableModelcar is off in the operator's settings")
    return Artifact(parsed, where)


class Attachment(msgspec.Struct, frozen=True):
    """Further inputs of an artifact's containers."""

    access: Access = msgspec.field(default_factory=Access)
    running: ObservedTemplate = msgspec.field(default_factory=ObservedTemplate)
    """Its storage initializer's image is kept, so that a new release restarts no pods."""
    ca_bundle: str = ""
    """ConfigMap of the operator's CA bundle in the service's namespace; empty where the settings have none."""
    reader: str = constants.MAIN
    """Name of the container that reads the model, in the directory ``path``."""
    path: str = constants.MODEL_PATH


def downloaded(parts: Sequence[Artifact]) -> list[Address]:
    return [part.uri for part in parts if part.downloads]


def with_bundle(uris: Sequence[Address]) -> bool:
    """Report whether these downloads use the operator's CA bundle: all but the hubs' and HDFS' (KS-3.7.3)."""
    return any(provider(uri) not in (Provider.HF, Provider.MODELSCOPE, Provider.HDFS) for uri in uris)


def attach(pod: Json, parts: Sequence[Artifact], operator: OperatorConfig, extra: Attachment) -> Json:
    """The pod with the model and its adapters, in this order, in it. Raises :class:`ArtifactError`."""
    source, *adapters = parts
    if source.provider is None:
        return pod
    if adapters and not container_named(pod, constants.MAIN):
        raise ArtifactError("LoRA adapters need a container called main in the pod")
    if source.provider is Provider.CLAIM:
        pod = _mounted(pod, _claim(source.uri, constants.CLAIM_VOLUME, extra.path), reader=extra.reader)
    elif source.provider is Provider.IMAGE:
        pod = _modelcar(pod, source, operator, extra)
    elif source.provider is Provider.IMAGE_VOLUME:
        pod = _mounted(pod, _image_volume(source, constants.MODEL_PATH))
    pod = _download(pod, parts, operator, extra) if downloaded(parts) else _without_download(pod, extra)
    claimed = [adapter for adapter in adapters if adapter.provider is Provider.CLAIM]
    return _mounted(pod, *(_claim(a.uri, names.adapter_volume(a.name), a.path) for a in claimed))


def _claim(uri: Address, name: str, directory: str) -> Mounted:
    return {"persistentVolumeClaim": {"claimName": uri.head}}, read_only_mount(name, directory, uri.key)


def inside(uri: Address) -> str:
    """Return the path below its target of a download's files: Azure Files keeps the path within the share."""
    if uri.scheme != "https" or provider(uri) is not Provider.AZURE_FILES:
        return ""
    return uri.path.partition("/")[2].strip("/")


def _download(pod: Json, parts: Sequence[Artifact], operator: OperatorConfig, extra: Attachment) -> Json:
    settings = operator.storage_initializer
    source, *adapters = parts
    fetched = [adapter for adapter in adapters if adapter.downloads]
    mounts: list[Json] = []
    if source.downloads:
        mounts.append({"name": constants.PROVISION_VOLUME, "mountPath": constants.MODEL_PATH})
        mount = read_only_mount(constants.PROVISION_VOLUME, extra.path, inside(source.uri))
        pod = _mounted(pod, (_FILLED, mount), reader=extra.reader)
    if fetched:
        mounts.append({"name": constants.ADAPTER_VOLUME, "mountPath": lora.LORA_PATH})
        read_only = {"readOnly": True} if fetched == adapters else {}  # others are mounted below it
        pod = _mounted(pod, (_FILLED, {**mounts[-1], **read_only}))
    container: Json = {
        "name": constants.STORAGE_INITIALIZER,
        "image": extra.running.container(constants.STORAGE_INITIALIZER).image or settings.image,
        "args": [word for part in parts if part.downloads for word in (part.uri.text, part.path)],
        "resources": settings.resources,
        "terminationMessagePolicy": TERMINATION_MESSAGE_POLICY,
        "volumeMounts": mounts,
    }
    if extra.access.env:
        container["env"] = list(extra.access.env)
    for files in extra.access.files:
        mount = read_only_mount(files.volume, files.mount_path)
        container, pod = _with(container, "volumeMounts", mount), _with(pod, "volumes", _secret_volume(files))
    if with_bundle(downloaded(parts)):
        container, pod = _with_ca_bundle(container, pod, operator, extra)
    return {**pod, "initContainers": _added(pod.get("initContainers") or [], container, IGNORED)}


def _without_download(pod: Json, extra: Attachment) -> Json:
    """Leave out the template's storage initializer if it has nothing to do.

    Running pods that have one which downloads nothing keep it, so that none is replaced.
    """
    name = constants.STORAGE_INITIALIZER
    running = extra.running.container(name)
    idles = bool(running.name) and not any("://" in argument for argument in running.args or ())
    steps = [step for step in pod.get("initContainers") or () if step.get("name") != name]
    if idles or len(steps) == len(pod.get("initContainers") or ()):
        return pod
    rest = {key: value for key, value in pod.items() if key != "initContainers"}
    return {**rest, "initContainers": steps} if steps else rest


def _mounted(pod: Json, *parts: Mounted, reader: str = constants.MAIN) -> Json:
    pod = _with(pod, "volumes", *({"name": mount["name"], **source} for source, mount in parts))
    return with_container(
        pod, reader, lambda container: _with(container, "volumeMounts", *(mount for _, mount in parts))
    )


def _secret_volume(files: Files) -> Json:
    """Optional, so that the download reports a missing Secret."""
    if len(files.secrets) == 1:
        return {"name": files.volume, "secret": {"secretName": files.secrets[0], "optional": True}}
    sources = [{"secret": {"name": secret, "optional": True}} for secret in reversed(files.secrets)]
    return {"name": files.volume, "projected": {"sources": sources}}


def _added(containers: list[Json], container: Json, ignored: Collection[str] = ()) -> list[Json]:
    """``container`` at the end, or below the user's own of that name, without the fields that are ``ignored``."""
    mine = next((c for c in containers if c.get("name") == container["name"]), None)
    if mine is None:
        return [*containers, container]
    laid_over = {key: value for key, value in mine.items() if key not in ignored}
    return [merge(container, laid_over, CONTAINER, directives=False) if c is mine else c for c in containers]


def _with_ca_bundle(container: Json, pod: Json, operator: OperatorConfig, extra: Attachment) -> tuple[Json, Json]:
    values = {variable["name"]: variable.get("value", "") for variable in extra.access.env}
    config_map = values.get(CA_BUNDLE_CONFIG_MAP) or extra.ca_bundle
    if not config_map:
        return container, pod
    bundle = values.get(CA_BUNDLE)
    path = posixpath.dirname(bundle) if bundle else operator.storage_initializer.ca_bundle_volume_mount_path
    path = path or CA_BUNDLE_PATH
    added = {"CA_BUNDLE_CONFIGMAP_NAME": config_map, "CA_BUNDLE_VOLUME_MOUNT_POINT": path}
    env = [*container.get("env", ()), *({"name": n, "value": v} for n, v in added.items() if n not in values)]
    volume = {"name": constants.CA_BUNDLE_VOLUME, "configMap": {"name": config_map}}
    mount = read_only_mount(constants.CA_BUNDLE_VOLUME, path)
    return _with({**container, "env": env}, "volumeMounts", mount), _with(pod, "volumes", volume)


def _modelcar(pod: Json, source: Artifact, operator: OperatorConfig, extra: Attachment) -> Json:
    """The image itself runs beside the server, which looks into it through the shared process namespace."""
    if not container_named(pod, constants.MAIN):
        raise ArtifactError("an oci:// model needs a container called main in the pod")
    settings = operator.storage_initializer
    mount = {"name": constants.PROVISION_VOLUME, "mountPath": posixpath.dirname(constants.MODEL_PATH)}
    user: Json = {} if settings.uid_modelcar is None else {"securityContext": {"runAsUser": settings.uid_modelcar}}
    pod = _mounted({**pod, "shareProcessNamespace": True}, (_FILLED, mount))
    pod = with_container(pod, constants.MAIN, lambda main: _beside_model(main, user, extra))
    if container_named(pod, constants.MODELCAR):
        return pod
    common = {
        "image": source.uri.rest,
        "resources": settings.modelcar_resources,
        "terminationMessagePolicy": TERMINATION_MESSAGE_POLICY,
    }
    args = ["sh", "-c", MODELCAR_COMMAND]
    car = {"name": constants.MODELCAR, **common, "args": args, "volumeMounts": [mount], **user}
    init = {"name": constants.MODELCAR_INIT, **common, "args": ["sh", "-c", MODELCAR_CHECK]}
    return {
        **pod,
        "containers": [*pod["containers"], car],
        "initContainers": _added(pod.get("initContainers") or [], init),
    }


def with_files(pod: Json, source: Artifact, files: Sequence[str], operator: OperatorConfig, extra: Attachment) -> Json:
    """Return a pod whose reader finds files of a model that is an image; the image does not run beside it."""
    if source.provider is Provider.IMAGE_VOLUME:
        return _mounted(pod, _image_volume(source, extra.path), reader=extra.reader)
    settings = operator.storage_initializer
    init: Json = {
        "name": constants.MODELCAR_INIT,
        "image": source.uri.rest,
        "args": ["sh", "-c", COPY_COMMAND, "sh", *files],
        "resources": settings.modelcar_resources,
        "terminationMessagePolicy": TERMINATION_MESSAGE_POLICY,
        "volumeMounts": [{"name": constants.PROVISION_VOLUME, "mountPath": "/mnt/copied"}],
    }
    if settings.uid_modelcar is not None:
        init["securityContext"] = {"runAsUser": settings.uid_modelcar}
    mount = read_only_mount(constants.PROVISION_VOLUME, extra.path)
    pod = _mounted(pod, (_FILLED, mount), reader=extra.reader)
    return {**pod, "initContainers": _added(pod.get("initContainers") or [], init)}


def _image_volume(source: Artifact, directory: str) -> Mounted:
    """Needs Kubernetes 1.35, or the feature gate ImageVolume."""
    volume: Json = {"image": {"reference": source.uri.rest, "pullPolicy": "IfNotPresent"}}
    return volume, read_only_mount(constants.IMAGE_VOLUME, directory, "models")


def _beside_model(main: Json, user: Json, extra: Attachment) -> Json:
    """Let ``main`` wait for the image, as its user. Pods of earlier releases keep their context, so none restarts."""
    waits = {"name": "MODEL_INIT_MODE", "value": "async"}
    main = {**main, "env": each_name_once([*(main.get("env") or ()), waits])}
    if not user or extra.running.container(constants.MAIN).security_context == user["securityContext"]:
        return {**main, **user}
    return {**main, "securityContext": {**(main.get("securityContext") or {}), **user["securityContext"]}}


_KEYS = {"volumes": ("name",), "volumeMounts": ("name", "mountPath")}


def _with(part: Json, name: str, *items: Json) -> Json:
    """Add volumes to a pod, or mounts to a container, but for those that share a key with one before them."""
    present = part.get(name) or []
    keys = {(key, item.get(key)) for item in present for key in _KEYS[name]}
    added = []
    for item in items:
        item_keys = {(key, item[key]) for key in _KEYS[name]}
        if keys.isdisjoint(item_keys):
            added.append(item)
            keys |= item_keys
    return {**part, name: [*present, *added]} if added else part

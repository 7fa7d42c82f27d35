"""How the model gets into a pod, by the scheme of its URI. Source: KS-3.7.

Pods come in as plain JSON that others share, and go out as new objects.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.kserve.modeluri import SCHEMES, InvalidURL, fetch_problem, host_problem, parse
from app.kserve.names import (
    CA_BUNDLE_VOLUME,
    CLAIM_VOLUME,
    MAIN,
    MODEL_PATH,
    MODELCAR,
    MODELCAR_INIT,
    PROVISION_VOLUME,
    STORAGE_INITIALIZER,
)
from app.kserve.operator import CA_BUNDLE_PATH, OperatorConfig
from app.kserve.workload.credentials import CA_BUNDLE, CA_BUNDLE_CONFIG_MAP
from app.kube.field import without_user
from app.kube.merge import merge
from app.kube.podspec import CONTAINER, each_name_once

Json = dict[str, Any]

_MODELCAR_COMMAND = "ln -sfn /proc/$$$$/root/models /mnt/models && sleep infinity"
"""The text must never change, or every pod restarts. Kubernetes makes ``$$$$`` a ``$$``: the shell's own process."""
_MODELCAR_CHECK = (
    'echo "checking the model image"; if [ ! -d /models ] || [ -z "$(ls -A /models)" ]; '
    'then echo "the image has no files in /models" >&2; exit 1; fi'
)
_MESSAGE_POLICY = "FallbackToLogsOnError"


class ArtifactError(Exception):
    """The model cannot be brought into the pods; the message says what to write instead."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """Where a model comes from."""

    uri: str
    scheme: str
    """Empty when the pods fetch the model themselves."""
    rest: str
    """What follows ``scheme://``."""


def artifact(uri: str, *, enabled: bool, modelcar: bool) -> Artifact:
    """What a URI asks for; ``enabled`` is the storage initializer's switch. Raises :class:`ArtifactError`."""
    shown = without_user(uri)
    try:
        parsed = parse(uri)
    except InvalidURL as error:
        raise ArtifactError(f"model.uri {shown!r}: {error}") from None
    if not uri:
        raise ArtifactError("the service has no model: set model.uri to an address, as in hf://organisation/model")
    if not parsed.has_authority:
        raise ArtifactError(f"invalid model URI {shown!r}: write hf://, s3://, pvc:// or oci:// and a path")
    scheme = parsed.text.partition("://")[0]
    refused = host_problem(parsed)
    if refused:
        raise ArtifactError(f"model.uri {shown!r}: {refused}")
    if not enabled:
        return Artifact(parsed.text, "", parsed.rest)
    if scheme == "oci" and not modelcar:
        raise ArtifactError("model.uri has scheme oci, but enableModelcar is off in the operator's settings")
    if scheme not in SCHEMES:
        raise ArtifactError(f"unsupported scheme {scheme} in model.uri {shown!r}: use hf, s3, pvc or oci")
    problem = fetch_problem(parsed)
    if problem:
        raise ArtifactError(f"model.uri {shown!r}: {problem}")
    return Artifact(parsed.text, scheme, parsed.rest)


@dataclass(frozen=True, slots=True)
class Attachment:
    """What else an artifact's containers need: the pod's credentials, and an image that is kept."""

    env: Sequence[Json] = ()
    live_image: str = ""
    """Image of the storage initializer that runs now: a new release of ours restarts no pods."""
    ca_bundle: str = ""
    """ConfigMap of the operator's CA bundle in the service's namespace; empty where the settings have none."""


def attach(pod: Json, source: Artifact, operator: OperatorConfig, extra: Attachment) -> Json:
    """The pod with the model in it. Raises :class:`ArtifactError`."""
    if source.scheme == "pvc":
        return _claim(pod, source)
    if source.scheme == "oci":
        return _modelcar(pod, source, operator)
    return _download(pod, source, operator, extra) if source.scheme else pod


def _claim(pod: Json, source: Artifact) -> Json:
    claim, _, path = source.rest.partition("/")
    mount = {"name": CLAIM_VOLUME, "mountPath": MODEL_PATH, "readOnly": True}
    if path:
        mount["subPath"] = path
    volume = {"name": CLAIM_VOLUME, "persistentVolumeClaim": {"claimName": claim}}
    return _with_main(_with_volume(pod, volume), lambda main: _with_mount(main, mount))


def _download(pod: Json, source: Artifact, operator: OperatorConfig, extra: Attachment) -> Json:
    settings = operator.storage_initializer
    mount = {"name": PROVISION_VOLUME, "mountPath": MODEL_PATH}
    container: Json = {
        "name": STORAGE_INITIALIZER,
        "image": extra.live_image or settings.image,
        "args": [source.uri, MODEL_PATH],
        "resources": settings.resources,
        "terminationMessagePolicy": _MESSAGE_POLICY,
        "volumeMounts": [mount],
    }
    if extra.env:
        container["env"] = list(extra.env)
    pod = _with_volume(pod, {"name": PROVISION_VOLUME, "emptyDir": {}})
    pod = _with_main(pod, lambda main: _with_mount(main, {**mount, "readOnly": True}))
    if source.scheme == "s3":
        container, pod = _with_ca_bundle(container, pod, operator, extra)
    return {**pod, "initContainers": _added(pod.get("initContainers") or [], container)}


def _added(containers: list[Json], container: Json) -> list[Json]:
    """``container`` at the end, or over the user's own of that name."""
    mine = next((c for c in containers if c.get("name") == container["name"]), None)
    if mine is None:
        return [*containers, container]
    return [merge(container, mine, CONTAINER, directives=False) if c is mine else c for c in containers]


def _with_ca_bundle(container: Json, pod: Json, operator: OperatorConfig, extra: Attachment) -> tuple[Json, Json]:
    values = {variable["name"]: variable.get("value", "") for variable in extra.env}
    config_map = values.get(CA_BUNDLE_CONFIG_MAP) or extra.ca_bundle
    path = operator.storage_initializer.ca_bundle_volume_mount_path
    if not config_map:
        return container, pod
    if values.get(CA_BUNDLE):
        path = posixpath.dirname(values[CA_BUNDLE])
    path = path or CA_BUNDLE_PATH
    added = {"CA_BUNDLE_CONFIGMAP_NAME": config_map, "CA_BUNDLE_VOLUME_MOUNT_POINT": path}
    env = [*container.get("env", ()), *({"name": n, "value": v} for n, v in added.items() if n not in values)]
    volume = {"name": CA_BUNDLE_VOLUME, "configMap": {"name": config_map}}
    mount = {"name": CA_BUNDLE_VOLUME, "mountPath": path, "readOnly": True}
    return _with_mount({**container, "env": env}, mount), _with_volume(pod, volume)


def _modelcar(pod: Json, source: Artifact, operator: OperatorConfig) -> Json:
    """The image itself runs beside the server, which looks into it through the shared process namespace."""
    containers = pod.get("containers") or []
    if not any(container.get("name") == MAIN for container in containers):
        raise ArtifactError("an oci:// model needs a container called main in the pod")
    settings = operator.storage_initializer
    mount = {"name": PROVISION_VOLUME, "mountPath": posixpath.dirname(MODEL_PATH)}
    user = {} if settings.uid_modelcar is None else {"securityContext": {"runAsUser": settings.uid_modelcar}}
    pod = _with_volume(pod, {"name": PROVISION_VOLUME, "emptyDir": {}})
    pod = _with_main(pod, lambda main: {**_with_env(_with_mount(main, mount), "MODEL_INIT_MODE", "async"), **user})
    pod = {**pod, "shareProcessNamespace": True}
    if any(container.get("name") == MODELCAR for container in containers):
        return pod
    common = {
        "image": source.rest,
        "resources": settings.modelcar_resources,
        "terminationMessagePolicy": _MESSAGE_POLICY,
    }
    car = {
        "name": MODELCAR,
        **common,
        "args": ["sh", "-c", _MODELCAR_COMMAND],
        "volumeMounts": [mount],
        **user,
    }
    init = {"name": MODELCAR_INIT, **common, "args": ["sh", "-c", _MODELCAR_CHECK]}
    return {
        **pod,
        "containers": [*pod["containers"], car],
        "initContainers": _added(pod.get("initContainers") or [], init),
    }


def _with_main(pod: Json, change: Any) -> Json:
    containers = pod.get("containers") or []
    return {**pod, "containers": [change(c) if c.get("name") == MAIN else c for c in containers]}


def _with_volume(pod: Json, volume: Json) -> Json:
    volumes = pod.get("volumes") or []
    if any(v.get("name") == volume["name"] for v in volumes):
        return pod
    return {**pod, "volumes": [*volumes, volume]}


def _with_mount(container: Json, mount: Json) -> Json:
    """``container`` with the mount, unless it mounts that volume, or something else there, already."""
    mounts = container.get("volumeMounts") or []
    if any(m.get("name") == mount["name"] or m.get("mountPath") == mount["mountPath"] for m in mounts):
        return container
    return {**container, "volumeMounts": [*mounts, mount]}


def _with_env(container: Json, name: str, value: str) -> Json:
    return {**container, "env": each_name_once([*(container.get("env") or ()), {"name": name, "value": value}])}

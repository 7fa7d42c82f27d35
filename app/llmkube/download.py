"""The downloader: one container and its volumes, shared by the Model's Job and by serving pods (LK-3.6).

The script is the same constant text everywhere; what it shall do stands in its environment, so that no text of a user
ever is shell text (spec LK-T-22).
"""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from app.kube.base import Json
from app.kube.desired import Container, VolumeMount
from app.kube.stored import clean
from app.llmkube import names
from app.llmkube.model.types import ModelSpec
from app.llmkube.source import Source, SourceClass, cached_path, ephemeral_path
from app.settings import Settings
from app.workload.parts import TERMINATION_MESSAGE_POLICY

EXIT_USELESS = 64
"""The script's exit code when trying again would end the same way: the server says no, the certificate is wrong."""
EXIT_WRONG_SHA256 = 65
"""The script's exit code when the file is not the one that the Model demands."""


@functools.cache
def script(*, in_job: bool, with_credentials: bool = False, several: bool = False) -> str:
    """The script without its comments, as it travels in every pod spec; with the parts that are not for every pod.

    What serving pods run is part of their template: a change restarts all that download. In a Model's Job it also knows
    how much room the volume has, and ends at once where nobody answers.
    """
    text = _part("download.sh")
    for part, wanted in (("job", in_job), ("credentials", with_credentials)):
        if not wanted:
            text = re.sub(rf"(?ms)^ *#{part} \{{$.*?^ *#{part} \}}$", "", text)
    if several:
        text = _part("files.sh").replace("#download.sh\n", text)
    lines = (line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    return "\n".join(lines) + "\n"


def _part(name: str) -> str:
    return resources.files("app.llmkube").joinpath("scripts", name).read_text(encoding="ascii")


JOB_USER = 100
"""Whom a Job runs as: the user of the default image, by number, so that the kubelet can tell that it is not root."""


@dataclass(frozen=True, slots=True)
class Download:
    """One file to fetch: from where, to where, and under which conditions."""

    source: Source
    path: str
    """Path of the file in the pod that serves it."""
    cached: bool
    """On a claim that survives the pod, instead of in an empty directory."""
    sha256: str
    refresh: bool
    """Ask the server whether the file has changed (``refreshPolicy: OnChange``)."""
    secret: str = ""
    """Secret whose keys are variables of the downloader."""

    @property
    def directory(self) -> str:
        """Where the file is, or where the paths of several begin."""
        return self.path.removesuffix(f"/{self.source.files[0]}") if self.source.files else posixpath.dirname(self.path)


def download(model: ModelSpec, source: Source, namespace: str, name: str, settings: Settings) -> Download:
    """How the file of an http or local source reaches a pod. ``name`` is the Model's."""
    cached = bool(settings.llmkube_model_cache_path)
    return Download(
        source=source,
        path=cached_path(source, name) if cached else ephemeral_path(source, namespace, name),
        cached=cached,
        sha256="" if source.files[1:] else model.sha256.lower(),
        refresh=model.refresh_policy == "OnChange" and source.is_remote,
        secret=model.source_secret_ref.name if model.source_secret_ref and source.is_remote else "",
    )


def container(
    download: Download, settings: Settings, security: Mapping[str, Any] | None = None, *, in_job: bool = False
) -> Container:
    """The downloading container. ``security`` is the pod's security context when the user wrote one: as whom to run."""
    command = script(
        in_job=in_job,
        with_credentials=bool(download.secret) or download.source.kind in (SourceClass.FILES, SourceClass.S3),
        several=bool(download.source.files),
    )
    return Container(
        name=names.DOWNLOADER,
        image=settings.llmkube_init_container_image,
        command=["sh", "-c", command],
        env=_environment(download, settings),
        env_from=[{"secretRef": {"name": download.secret}}] if download.secret else None,
        volume_mounts=_mounts(download, settings),
        security_context=_security_context(security or {}),
        termination_message_policy=TERMINATION_MESSAGE_POLICY,
    )


def _environment(download: Download, settings: Settings) -> list[Json]:
    """Upstream's three variables in their order, then ours. An empty value is left out, as the API server does."""
    values = {
        "MODEL_SOURCE": download.source.location,
        "CACHE_DIR": download.directory if download.cached or download.source.files else "",
        "MODEL_PATH": download.path,
    }
    if download.source.files:
        values["MODEL_FILES"] = "\n".join(download.source.files)
    if download.sha256:
        values["MODEL_SHA256"] = download.sha256
    if download.refresh:
        values["REFRESH_POLICY"] = "OnChange"
    if _copies(download):
        values["HOST_FILE"] = names.HOST_FILE
    if settings.llmkube_ca_cert_configmap:
        values["CA_DIR"] = names.CA_DIR
    return [{"name": name, "value": _literal(value)} if value else {"name": name} for name, value in values.items()]


_EXPANDED = re.compile(r"\$\$|\$\([A-Z0-9_]+\)")
"""What the kubelet does not pass on as it is: ``$$``, and a variable of ours or of a Service (all are in capitals)."""


def _literal(text: str) -> str:
    """Text in which the kubelet finds no ``$(VARIABLE)`` to replace and no ``$$`` to shorten."""
    return text.replace("$", "$$") if _EXPANDED.search(text) else text


def _mounts(download: Download, settings: Settings) -> list[VolumeMount]:
    mounts = [VolumeMount(name=_volume_name(download), mount_path=names.MODELS_DIR)]
    if _copies(download):
        mounts.append(VolumeMount(name=names.HOST_VOLUME, mount_path=names.HOST_FILE, read_only=True))
    if settings.llmkube_ca_cert_configmap:
        mounts.append(VolumeMount(name=names.CA_VOLUME, mount_path=names.CA_DIR, read_only=True))
    return mounts


def volumes(download: Download, claim: str, settings: Settings) -> list[Json]:
    """The volumes of a pod that downloads: the cache claim or an empty directory, the node's file, the certificates."""
    storage: Json = {"persistentVolumeClaim": {"claimName": claim}} if download.cached else {"emptyDir": {}}
    found: list[Json] = [{"name": _volume_name(download), **storage}]
    if _copies(download):
        found.append({"name": names.HOST_VOLUME, "hostPath": {"path": download.source.path, "type": "File"}})
    if settings.llmkube_ca_cert_configmap:
        found.append({"name": names.CA_VOLUME, "configMap": {"name": settings.llmkube_ca_cert_configmap}})
    return found


def serving_mount(download: Download) -> VolumeMount:
    """How the server sees the file: it never writes there."""
    return VolumeMount(name=_volume_name(download), mount_path=names.MODELS_DIR, read_only=True)


def _volume_name(download: Download) -> str:
    return names.CACHE_VOLUME if download.cached else names.STORAGE_VOLUME


def _copies(download: Download) -> bool:
    """A file of the node reaches a cache only; into an empty directory there is no way (LK-3.6.1)."""
    return download.cached and download.source.kind is SourceClass.LOCAL


def _security_context(pod: Mapping[str, Any]) -> Json:
    context: Json = {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": False,
        "capabilities": {"drop": ["ALL"]},
    }
    context.update({key: pod[key] for key in ("runAsUser", "runAsGroup") if pod.get(key) is not None})
    cleaned: Json = clean(context)
    return cleaned


def default_pod_security(settings: Settings) -> Json:
    """Security context of a pod whose user wrote none (LK-3.7)."""
    context: Json = {"seccompProfile": {"type": "RuntimeDefault"}}
    if settings.llmkube_default_fsgroup > 0:
        context["fsGroup"] = settings.llmkube_default_fsgroup
    return context


def job_pod_security(settings: Settings) -> Json:
    """Security context of a Job's pod: what Pod Security's ``restricted`` asks for.

    Where the operator wants no ``fsGroup``, the platform gives pods their users (OpenShift), and we name none.
    """
    context = default_pod_security(settings)
    return {**context, "runAsNonRoot": True, "runAsUser": JOB_USER} if "fsGroup" in context else context


def cache_claim(model: str, second: str, namespace_claim_exists: bool, settings: Settings) -> str:
    """The claim that holds a Model's file: the operator's own where the namespace has it, else the Model's.

    ``second``: the Model's claim where it could not have the plain name, else empty.
    """
    if settings.llmkube_model_cache_claim and namespace_claim_exists:
        return settings.llmkube_model_cache_claim
    return second or names.claim_name(model)

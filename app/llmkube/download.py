"""The downloader: one container and its volumes, shared by the Model's Job and by serving pods (LK-3.6).

The script is a constant; its inputs are environment variables, so a user's value is never part of a shell command
(LK-T-22).
"""

import functools
import posixpath
import re
from collections.abc import Mapping
from importlib import resources

import msgspec

from app.kube.base import Json
from app.kube.child import without_none
from app.kube.objects import ObservedMeta
from app.kube.reading.stored import clean
from app.kube.regex import regex
from app.llmkube import names
from app.llmkube.model.types import ModelSpec
from app.llmkube.source import Source, SourceClass, cached_path, ephemeral_path
from app.settings import Settings
from app.workload.engines.images import engine_image
from app.workload.parts import TERMINATION_MESSAGE_POLICY, read_only_mount

EXIT_USELESS = 64
"""Exit code of the script when a retry cannot succeed: the server refuses, or its certificate is invalid."""
EXIT_WRONG_SHA256 = 65
"""Exit code of the script when the file does not have the SHA-256 of the Model."""
_OF_SERVICES = regex(r"\$\$|\$\([A-Z0-9_]+\)")
"""Matches what the kubelet expands in a container without a Secret: ``$$`` and variables in capitals."""
_OF_SECRETS = regex(r"\$\$|\$\([-._a-zA-Z0-9]+\)")
"""The same with a Secret, whose keys may be named like a function of the script: ``$(describe)``."""


@functools.cache
def script(*, in_job: bool, with_credentials: bool = False, several: bool = False) -> str:
    """Return the script without comments, with the requested parts. A change restarts serving pods, which have it."""
    text = _part("download.sh")
    for part, enabled in (("job", in_job), ("credentials", with_credentials)):
        if not enabled:
            text = re.sub(rf"(?ms)^ *#{part} \{{$.*?^ *#{part} \}}$", "", text)
    if several:
        text = _part("files.sh").replace("#download.sh\n", text)
    lines = (line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    return "\n".join(lines) + "\n"


def _part(name: str) -> str:
    return resources.files("app.llmkube").joinpath("scripts", name).read_text(encoding="ascii")


class Download(msgspec.Struct, frozen=True):
    source: Source
    path: str
    cached: bool
    """On a claim that survives the pod, instead of in an empty directory."""
    sha256: str
    refresh: bool
    """Ask the server whether the file has changed (``refreshPolicy: OnChange``)."""
    secret: str = ""
    """Secret whose keys are variables of the downloader."""

    @property
    def directory(self) -> str:
        return self.path.removesuffix(f"/{self.source.files[0]}") if self.source.files else posixpath.dirname(self.path)


def download(model: ModelSpec, source: Source, namespace: str, name: str, key: str) -> Download:
    """Return the download into the directory ``key`` of the cache; without a key, into an empty directory."""
    return Download(
        source=source,
        path=cached_path(source, key, name) if key else ephemeral_path(source, namespace, name),
        cached=bool(key),
        sha256="" if source.files[1:] else model.sha256.lower(),
        refresh=model.refresh_policy == "OnChange" and source.is_remote,
        secret=model.source_secret_ref.name if model.source_secret_ref and source.is_remote else "",
    )


def is_by_pods(model: ObservedMeta, source: Source) -> bool:
    """Return whether the user leaves a Model's download to the pods: the Model has no Job and no claim."""
    return source.is_remote and (model.annotations or {}).get(names.DOWNLOAD) == names.BY_PODS


_CONTEXT: Json = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": False, "capabilities": {"drop": ["ALL"]}}


def container(
    download: Download, settings: Settings, security: Mapping[str, object] | None = None, *, in_job: bool = False
) -> Json:
    """Build the container that downloads. ``security`` is the user's pod security context, with the user to run as."""
    command = script(
        in_job=in_job,
        with_credentials=bool(download.secret) or download.source.kind in (SourceClass.FILES, SourceClass.S3),
        several=bool(download.source.files),
    )
    return without_none(
        name=names.DOWNLOADER,
        image=settings.llmkube_init_container_image,
        command=["sh", "-c", _literal(command, download) if download.secret else command],
        env=_environment(download, settings),
        envFrom=[{"secretRef": {"name": download.secret}}] if download.secret else None,
        volumeMounts=_mounts(download, settings),
        securityContext={**_CONTEXT, **_user(security or {}, settings)},
        terminationMessagePolicy=TERMINATION_MESSAGE_POLICY,
    )


def read_keys(container: Json) -> tuple[str, ...]:
    """Return the keys that a container which downloads reads of its Secret, by where the model is; none for others."""
    source = next(
        (variable.get("value", "") for variable in container.get("env") or () if variable["name"] == "MODEL_SOURCE"), ""
    )
    keys = (keys for start, keys in _READ_KEYS.items() if str(source).startswith(start))
    return next(keys, ()) if container.get("name") == names.DOWNLOADER else ()


_READ_KEYS = {
    "s3://": ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_ENDPOINT_URL"),
    "https://huggingface.co/": ("HF_TOKEN",),
}


def _user(security: Mapping[str, object], settings: Settings) -> Json:
    """Return the user of the container: the pod's, or the image's as a number where the pod needs one.

    The kubelet cannot verify ``runAsNonRoot`` of an image that names its user. A template that lacks the number is kept
    until the next change (:mod:`app.hooks.keptfields`). A platform that assigns users, as in
    :func:`job_pod_security`, refuses others.
    """
    user: Json = clean({key: security.get(key) for key in ("runAsUser", "runAsGroup")})
    image = engine_image(settings.llmkube_init_container_image)
    if "runAsUser" in user or not security.get("runAsNonRoot") or not settings.llmkube_default_fsgroup or image is None:
        return user
    return {**user, "runAsUser": image.user} if image.name else user


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
    literal = {name: _literal(text, download) for name, text in values.items()}
    return [{"name": name, "value": text} if text else {"name": name} for name, text in literal.items()]


def _literal(text: str, download: Download) -> str:
    """Escape a string so that the kubelet passes it on. One that needs no escape stays as it is in serving pods."""
    expanded = _OF_SECRETS if download.secret else _OF_SERVICES
    return text.replace("$", "$$") if expanded.search(text) else text


def _mounts(download: Download, settings: Settings) -> list[Json]:
    mounts: list[Json] = [{"name": _volume_name(download), "mountPath": names.MODELS_DIR}]
    if _copies(download):
        mounts.append(read_only_mount(names.HOST_VOLUME, names.HOST_FILE))
    if settings.llmkube_ca_cert_configmap:
        mounts.append(read_only_mount(names.CA_VOLUME, names.CA_DIR))
    return mounts


def volumes(download: Download, claim: str, settings: Settings) -> list[Json]:
    storage: Json = {"persistentVolumeClaim": {"claimName": claim}} if download.cached else {"emptyDir": {}}
    pod_volumes: list[Json] = [{"name": _volume_name(download), **storage}]
    if _copies(download):
        pod_volumes.append({"name": names.HOST_VOLUME, "hostPath": {"path": download.source.path, "type": "File"}})
    if settings.llmkube_ca_cert_configmap:
        pod_volumes.append({"name": names.CA_VOLUME, "configMap": {"name": settings.llmkube_ca_cert_configmap}})
    return pod_volumes


def serving_mount(download: Download) -> Json:
    return read_only_mount(_volume_name(download), names.MODELS_DIR)


def _volume_name(download: Download) -> str:
    return names.CACHE_VOLUME if download.cached else names.STORAGE_VOLUME


def _copies(download: Download) -> bool:
    """Return whether a file of the node is copied, which needs a cache (LK-3.6.1)."""
    return download.cached and download.source.kind is SourceClass.LOCAL


def default_pod_security(settings: Settings) -> Json:
    context: Json = {"seccompProfile": {"type": "RuntimeDefault"}}
    if settings.llmkube_default_fsgroup > 0:
        context["fsGroup"] = settings.llmkube_default_fsgroup
    return context


def job_pod_security(settings: Settings) -> Json:
    """Return the security context of a Job's pod, as Pod Security's ``restricted`` requires.

    Without ``fsGroup`` the platform (OpenShift) assigns the users of pods, so none is set.
    """
    context = default_pod_security(settings)
    if "fsGroup" in context:  # the user of the default image, as a number, so that the kubelet can verify runAsNonRoot
        context |= {"runAsNonRoot": True, "runAsUser": 100}
    return context

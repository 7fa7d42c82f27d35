"""Download credentials for the storage initializer. Source: KS-3.7.2, KS-9.2.

Secrets are never read: their names and the provider of the files decide alone. S3 variables come from annotations of
the pod's ServiceAccount and from the operator's settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from app.kserve.constants import EKS_ROLE, MAIN, S3_PREFIX, STORAGE_INITIALIZER
from app.kserve.llminferenceservice.observed import ServiceAccount
from app.kserve.operator import S3, Credentials
from app.kserve.sources import Provider, provider
from app.kube.base import Json
from app.workload.address import Address
from app.workload.readiness.cause import Cause, Stage

HUB_DEFAULTS = {
    "HF_HUB_ENABLE_HF_TRANSFER": "1",
    "HF_XET_HIGH_PERFORMANCE": "1",
    "HF_XET_NUM_CONCURRENT_RANGE_GETS": "8",
}
"""Variables that make downloads from the Hugging Face Hub fast, as from KServe v0.18 on."""
HF_TOKEN = "HF_TOKEN"  # noqa: S105 - the name of a variable
MODELSCOPE_TOKEN = "MODELSCOPE_API_TOKEN"  # noqa: S105 - the name of a variable
CA_BUNDLE_CONFIG_MAP = "AWS_CA_BUNDLE_CONFIGMAP"
CA_BUNDLE = "AWS_CA_BUNDLE"
ENDPOINT = "S3_ENDPOINT"
GCS_PATH = "/var/secrets/"
GCS_VOLUME, HDFS_VOLUME = SECRET_VOLUMES = ("user-gcp-sa", "hdfs-secrets")
"""Volumes with Secrets that are read as files."""
_SERVICE_PRINCIPAL = ("TENANT_ID", "CLIENT_ID", "CLIENT_SECRET")
_AZURE = (
    *(f"AZURE_{name}" for name in _SERVICE_PRINCIPAL),
    "AZURE_STORAGE_ACCESS_KEY",
    *(f"AZ_{name}" for name in _SERVICE_PRINCIPAL),
)
"""The older names win in the storage initializer, as the older keys win in KServe's Secrets."""
_GIT_KEYS = ("GIT_USERNAME", "GIT_PASSWORD")
_HUB_TOKENS = (HF_TOKEN, "HUGGING_FACE_HUB_TOKEN")
_VARIABLE = re.compile(r"[A-Za-z._-][A-Za-z0-9._-]*")


class Files(msgspec.Struct, frozen=True):
    """Secrets whose keys are files for the storage initializer, the first one strongest."""

    volume: str
    mount_path: str
    secrets: tuple[str, ...]


class Access(msgspec.Struct, frozen=True):
    env: Sequence[Json] = ()
    files: Sequence[Files] = ()
    annotated: str = ""
    """The Secret that the service's annotation names."""
    sources: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Source of a variable, volume or mount, for messages; empty for those of the operator's settings."""

    def with_variables(self, values: Mapping[str, str], source: str) -> Access:
        env = [*self.env, *({"name": name, "value": value} for name, value in values.items())]
        return replace(self, env=env, sources={**self.sources, **dict.fromkeys(values, source)}) if values else self


def access(
    sources: Iterable[Address], annotations: Mapping[str, str], account: ServiceAccount | None, settings: Credentials
) -> Access:
    """For addresses that are downloaded; ``annotations`` are the service's, ``account`` its pods' (KS-3.7.2)."""
    if account is None:
        return Access()
    providers = [(provider(source), source) for source in sources]
    needed = {item for item, _ in providers}
    notes = account.metadata.annotations or {}
    annotated = annotations.get(settings.storage_secret_name_annotation) or ""
    listed = [secret.name for secret in account.secrets or () if secret.name]
    secrets = [annotated] if annotated else listed
    held = [secret for secret in secrets if secret == annotated or not _is_generated(secret, account.metadata.name)]
    env: list[Json] = []
    if EKS_ROLE in notes and needed & {Provider.HF, Provider.S3}:
        env += s3_variables(notes, settings.s3)
    if Provider.HF in needed:
        env += [_secret_key(HF_TOKEN, secret, HF_TOKEN) for secret in secrets]
    if Provider.MODELSCOPE in needed:
        env += [_secret_key(MODELSCOPE_TOKEN, secret, MODELSCOPE_TOKEN) for secret in secrets]
    if Provider.S3 in needed and secrets:
        env += _keys(secrets, settings.s3) + s3_variables(notes, settings.s3)
    if needed & {Provider.AZURE_BLOB, Provider.AZURE_FILES}:
        env += [_secret_key(name, secret, name) for secret in held for name in _AZURE]
    if annotated:  # by name only: these go to whatever host the address names
        names = [(headers_variable(source), "headers") for item, source in providers if item is Provider.WEB]
        names += [(name, name) for name in _GIT_KEYS if Provider.GIT in needed]
        env += [_secret_key(name, annotated, key) for name, key in names if name]
    files, paths = _files(needed, tuple(held), settings) if held else ([], [])
    named: dict[str, Json] = {}
    for variable in (*env, *paths):
        named.setdefault(variable["name"], variable)
    source = f"the Secrets of ServiceAccount {account.metadata.name}"
    if annotated:
        source = f"Secret {annotated}, named by metadata.annotations[{settings.storage_secret_name_annotation}]"
    held_by = [name for file in files for name in (file.volume, file.mount_path)]
    requested = [*(name for name, variable in named.items() if "valueFrom" in variable), *(v["name"] for v in paths)]
    return Access(list(named.values()), files, annotated, dict.fromkeys([*requested, *held_by], source))


def _files(needed: set[Provider], held: tuple[str, ...], settings: Credentials) -> tuple[list[Files], list[Json]]:
    """Secrets that are read as files, and the variables that say where they are."""
    files, env = [], []
    if Provider.GS in needed:
        files.append(Files(GCS_VOLUME, GCS_PATH, held))
        path = f"{GCS_PATH}{settings.gcs.credential_file_name}"
        env.append({"name": "GOOGLE_APPLICATION_CREDENTIALS", "value": path})
    if Provider.HDFS in needed:
        within = Provider.GS in needed  # a mount within a read-only one cannot be made
        files.append(Files(HDFS_VOLUME, "/var/hdfs-secrets" if within else "/var/secrets/kserve-hdfscreds", held))
        env += [{"name": "HDFS_SECRET_DIR", "value": files[-1].mount_path}] if within else []
    return files, env


def headers_variable(source: Address) -> str:
    """The variable with the headers for a host; empty where no variable can have that name."""
    name = f"{source.host}-headers"
    return name if _VARIABLE.fullmatch(name) else ""


def _is_generated(secret: str, account: str) -> bool:
    """Report whether the cluster created the Secret for the account: a token, or a pull secret of OpenShift."""
    return secret.startswith((f"{account}-token-", f"{account}-dockercfg-"))


def _keys(secrets: Sequence[str], s3: S3) -> list[Json]:
    pair = (
        ("AWS_ACCESS_KEY_ID", s3.access_key_id_name or "awsAccessKeyID"),
        ("AWS_SECRET_ACCESS_KEY", s3.secret_access_key_name or "awsSecretAccessKey"),
    )
    return [_secret_key(name, secret, key) for secret in secrets for name, key in pair]


def _secret_key(variable: str, secret: str, key: str) -> Json:
    """Optional: which of several Secrets has the key is not known, and a public model needs none."""
    return {"name": variable, "valueFrom": {"secretKeyRef": {"name": secret, "key": key, "optional": True}}}


def s3_variables(annotations: Mapping[str, str], s3: S3) -> list[Json]:
    """The S3 variables that have a value, in the order KServe writes them."""

    def setting(annotation: str, default: str) -> str:
        return annotations.get(S3_PREFIX + annotation) or default

    values: list[tuple[str, str]] = []
    endpoint = setting("s3-endpoint", s3.endpoint).strip()
    if endpoint:
        values += _endpoint(endpoint, setting("s3-usehttps", s3.use_https))
    values += [
        ("S3_VERIFY_SSL", setting("s3-verifyssl", s3.verify_ssl)),
        ("awsAnonymousCredential", setting("s3-useanoncredential", s3.use_anonymous_credential)),
        ("AWS_DEFAULT_REGION", setting("s3-region", s3.region)),
        ("S3_USER_VIRTUAL_BUCKET", setting("s3-usevirtualbucket", s3.use_virtual_bucket)),
        ("S3_USE_ACCELERATE", setting("s3-useaccelerate", s3.use_accelerate)),
        (CA_BUNDLE, setting("s3-cabundle", s3.ca_bundle)),
        (CA_BUNDLE_CONFIG_MAP, setting("s3-cabundle-configmap", s3.ca_bundle_config_map)),
    ]
    return [{"name": name, "value": value} for name, value in values if value]


def _endpoint(endpoint: str, use_https: str) -> list[tuple[str, str]]:
    """A scheme in the endpoint decides; without one, the setting does, and HTTPS is the default of the URL only."""
    host, url = endpoint, f"{'http' if use_https == '0' else 'https'}://{endpoint}"
    for scheme, flag in (("https://", "1"), ("http://", "0")):
        if endpoint.startswith(scheme):
            use_https, host, url = flag, endpoint.removeprefix(scheme), endpoint
    return [("S3_USE_HTTPS", use_https), (ENDPOINT, host), ("AWS_ENDPOINT_URL", url)]


_NO_ENDPOINT = Cause(
    Stage.MODEL,
    "the model is in S3 and no endpoint is known but Amazon's: annotations on a Secret are not read, so annotate the "
    "ServiceAccount with serving.kserve.io/s3-endpoint, or set s3Endpoint in ConfigMap inferenceservice-config",
    "S3EndpointUnknown",
)
_NO_NAME_NODE = Cause(
    Stage.MODEL,
    "the model is in HDFS and no Secret has its address: list one with key HDFS_NAMENODE under secrets of the pods' "
    "ServiceAccount, or name it in the service's annotation for storage secrets",
    "HDFSNameNodeUnknown",
)


def server_tokens(pod: Json) -> Iterator[tuple[int, int, str]]:
    """Yield the Hub tokens of ``main`` if the user gives the storage initializer none: container, variable and name."""
    inits = pod.get("initContainers") or ()
    if any(_tokens(container) for container in inits if container.get("name") == STORAGE_INITIALIZER):
        return
    for position, container in enumerate(pod.get("containers") or ()):
        if container.get("name") == MAIN:
            yield from ((position, at, name) for at, name in _tokens(container))


def _tokens(container: Json) -> list[tuple[int, str]]:
    names = [variable.get("name") for variable in container.get("env") or ()]
    return [(position, name) for position, name in enumerate(names) if name in _HUB_TOKENS]


def token_not_for_download(variable: str, settings: Credentials) -> str:
    return (
        f"the init container {STORAGE_INITIALIZER} downloads the model, and does not get this {variable} of container "
        f"{MAIN}: name its Secret in the annotation {settings.storage_secret_name_annotation}, or under secrets of the "
        "pods' ServiceAccount"
    )


def download_hints(uris: Iterable[Address], credentials: Access, pod: Json, settings: Credentials) -> Iterator[Cause]:
    """Yield causes why downloads with these credentials may fail; ``pod`` is the user's."""
    providers, named = {provider(uri) for uri in uris}, {variable["name"] for variable in credentials.env}
    if Provider.S3 in providers and named and ENDPOINT not in named:
        yield _NO_ENDPOINT
    if Provider.HDFS in providers and not any(files.volume == HDFS_VOLUME for files in credentials.files):
        mine: Json = next((c for c in pod.get("initContainers") or () if c.get("name") == STORAGE_INITIALIZER), {})
        if not mine.get("volumeMounts"):
            yield _NO_NAME_NODE
    if Provider.HF in providers and HF_TOKEN not in named:
        for _, _, variable in server_tokens(pod):  # last, after what the download itself reports
            yield Cause(Stage.STARTING, token_not_for_download(variable, settings), "TokenNotForDownload")
    for uri in uris:
        if provider(uri) is Provider.WEB and not headers_variable(uri) and credentials.annotated:
            text = f"no variable can be called {uri.host}-headers, so headers of Secret {credentials.annotated} are not"
            yield Cause(Stage.MODEL, f"{text} sent; use a host whose name begins with a letter", "HeadersNotSent")

"""Read users' own Deployments and StatefulSets: the server among the containers, its options, model and port."""

import copy
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import msgspec

from app.desk.cluster.kinds import find as find_kind
from app.desk.files.folders import WORKLOADS
from app.desk.files.manifests import Manifest
from app.kube.base import Json
from app.kube.merge import find
from app.kube.reading.stored import without_nulls
from app.llmkube.runtimes.registry import RUNTIMES
from app.workload.address import repository_and_tag
from app.workload.devices import is_accelerator
from app.workload.engines.commandline import passes_arguments, program_of, script_place
from app.workload.engines.engine import Engine, engine_named
from app.workload.engines.images import EngineImage, engine_image
from app.workload.engines.parse import Parsed


class OwnEngine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The options and variables that set the model and the port of an engine."""

    image: str
    models: tuple[str, ...]
    cache: str
    """Directory in which its image keeps what comes from the Hugging Face Hub."""
    model_variables: tuple[str, ...] = ()
    port_variable: str = ""


class Tools(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    keys: frozenset[str]
    groups: frozenset[str]


class Docker(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    switches: frozenset[str]
    needless: frozenset[str]
    short: Mapping[str, str]
    fields: Mapping[str, tuple[str, str]]


class Secrets(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    endings: tuple[str, ...]
    options: Mapping[str, str]


class OwnTables(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The tables of ``own.toml``."""

    engines: Mapping[str, OwnEngine]
    defaults: Mapping[str, Any]
    tools: Tools
    llmkube: Mapping[str, Mapping[str, Any]]
    reasons: Mapping[str, str]
    beside: Mapping[str, str]
    docker: Docker
    secrets: Secrets


DATA = msgspec.toml.decode(resources.files(__package__).joinpath("own.toml").read_bytes(), type=OwnTables)


@dataclass(frozen=True)
class OwnServer:
    """The server of a container, and how the container starts it."""

    engine: Engine | None
    program: tuple[str, ...]
    """The words before the options; none where the image starts the engine."""
    words: tuple[str, ...]
    """The options."""
    parsed: Parsed | None
    is_plain: bool
    """The words are the end of ``command`` and ``args``, or a script of one simple command."""
    in_script: bool
    model: str
    """The model as passed to the server; empty if it is not known."""
    port: int

    @property
    def name(self) -> str:
        return self.engine.name if self.engine is not None else ""


@dataclass
class Workload:
    """A Deployment or StatefulSet, with a copy of its pod template to change."""

    manifest: Manifest
    template: Json
    place: int
    """The position of the server's container."""
    server: OwnServer
    address: str
    """The address of the model, with a scheme: hf://, pvc://, https://, host://, …; empty if it is not known."""
    own_labels: frozenset[str]
    """Labels by which it, and the objects around it, find its pods."""

    @property
    def document(self) -> Json:
        return self.manifest.document

    @property
    def pod(self) -> Json:
        spec: Json = self.template["spec"]
        return spec

    @property
    def container(self) -> Json:
        container: Json = self.pod["containers"][self.place]
        return container

    @property
    def written_labels(self) -> dict[str, str]:
        """The labels of its pods, as the user wrote them."""
        labels: dict[str, str] = (self.document["spec"]["template"].get("metadata") or {}).get("labels") or {}
        return labels


def is_own(manifest: Manifest) -> bool:
    """Report whether an object is a workload with pods of a user's own, not made for an object of a family."""
    owners = _objects(find(manifest.document, ("metadata", "ownerReferences")))
    if any(find_kind(str(owner.get("apiVersion")), str(owner.get("kind"))) is not None for owner in owners or ()):
        return False
    spec = manifest.document.get("spec")
    template = spec.get("template") if isinstance(spec, dict) else None
    is_workload = manifest.api_version == "apps/v1" and manifest.kind in WORKLOADS and isinstance(template, dict)
    containers = _objects(find(template, ("spec", "containers"))) if is_workload else None
    return bool(containers) and all(container.get("name") and container.get("image") for container in containers or ())


def _objects(value: object) -> list[Json] | None:
    """Return a list of objects; ``None`` for anything else."""
    return value if isinstance(value, list) and all(isinstance(item, dict) for item in value) else None


def read(manifest: Manifest, own_labels: frozenset[str], targets: frozenset[str | int]) -> Workload:
    """Read a workload. ``targets`` are the ports of the server's container to which Services send requests."""
    spec = manifest.document["spec"]
    template = without_nulls(copy.deepcopy(spec["template"]))  # as the API server reads them
    servers = [server_of(container) for container in template["spec"]["containers"]]
    place = max(
        range(len(servers)), key=lambda at: (*_rank(template["spec"]["containers"][at], servers[at], targets), -at)
    )
    pod, server = template["spec"], servers[place]
    address = _address(server, pod, pod["containers"][place], _claims(manifest))
    return Workload(manifest, template, place, server, address, own_labels)


def _rank(container: Json, server: OwnServer, targets: frozenset[str | int]) -> tuple[bool, bool, bool]:
    """Order containers by how much they look like the server."""
    limits = (container.get("resources") or {}).get("limits") or {}
    ports = {port.get(key) for port in container.get("ports") or () for key in ("name", "containerPort")}
    return server.engine is not None, any(is_accelerator(str(name)) for name in limits), bool(ports & targets)


def _claims(manifest: Manifest) -> dict[str, str]:
    """Return the claims of a StatefulSet's first replica by the names of its templates."""
    templates = manifest.document["spec"].get("volumeClaimTemplates") or ()
    return {name: f"{name}-{manifest.name}-0" for name in (template["metadata"]["name"] for template in templates)}


# How the server is started.

_SETTINGS = re.compile(r"\s*(?:set -[a-z]+(?: -?o? ?pipefail)?\s*(?:;|&&|\n)\s*)+")
_VARIABLE = re.compile(r"\$\((\w+)\)|\$\{(\w+)\}|\$(\w+)")
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"")


def server_of(container: Json) -> OwnServer:
    """Read how a container starts a server, as far as its words tell."""
    command, arguments = ([str(word) for word in container.get(name) or ()] for name in ("command", "args"))
    variables = {str(item.get("name")): str(item.get("value") or "") for item in container.get("env") or ()}
    words, in_script, is_plain = [*command, *arguments], False, passes_arguments(container)
    if (place := script_place(words)) is not None:
        script = words[place]
        in_script, simple = True, _simple(script, variables)
        is_plain, words = simple is not None, re.split(r"\s+", script) if simple is None else simple
    name, start, end = program_of(words, anywhere=not is_plain)
    of_image = engine_named(_upstream_image(container["image"]))
    engine = None
    if name:
        engine = of_image if of_image is not None and of_image.name == name else Engine(name)
    elif not command and not in_script:
        engine, end = of_image, 0
    options = tuple(words[end:])
    parsed = engine.read(options) if engine is not None else None
    return OwnServer(
        engine,
        tuple(words[start:end]),
        options,
        parsed,
        is_plain,
        in_script,
        _model(engine, parsed, options, variables),
        _port(engine, parsed, container, variables),
    )


def _simple(script: str, variables: Mapping[str, str]) -> list[str] | None:
    """Return the words of a script that is one command, with the kubelet's form of variables; else ``None``."""
    text = _SETTINGS.sub("", script.replace("\\\n", " "), count=1).strip().removeprefix("exec ").strip()
    named = [next(filter(None, match.groups())) for match in _VARIABLE.finditer(text)]
    unquoted = _VARIABLE.sub("", _QUOTED.sub("", text))
    is_kept = any("$" in quoted for quoted in _QUOTED.findall(text) if quoted.startswith("'"))
    splits = any(len(variables.get(name, "").split()) > 1 for name in named)
    unknown = set(named) - variables.keys() or "$" in _VARIABLE.sub("", text)
    if "\n" in text or is_kept or splits or unknown or re.search(r"[*?\[~`;&|<>()#]", unquoted) or "`" in text:
        return None
    try:
        words = shlex.split(_VARIABLE.sub(lambda match: f"\0{next(filter(None, match.groups()))}\1", text))
    except ValueError:
        return None
    return [word.replace("\0", "$(").replace("\1", ")") for word in words]


def _upstream_image(image: str) -> str:
    """Return an image's name; for a mirror, the name of the known image with the same last part."""
    repository, tag = repository_and_tag(image)
    names = (engine.image for engine in DATA.engines.values())
    alike = (name for name in names if name.rpartition("/")[2] == repository.rpartition("/")[2])
    return image if engine_named(image) is not None else f"{next(alike, repository)}:{tag}"


def stock_image(image: str) -> EngineImage | None:
    """Return what is known of an image, or of the one that it is a mirror of."""
    return engine_image(_upstream_image(image))


def _model(engine: Engine | None, parsed: Parsed | None, options: Sequence[str], variables: Mapping[str, str]) -> str:
    if engine is None or parsed is None:
        return ""
    engine_data = DATA.engines[engine.name]
    written = [parsed.value(option) for option in engine_data.models]
    written += [options[at] for at in parsed.strays[:1] if engine.name == "vllm"]
    written += [variables.get(name, "") for name in engine_data.model_variables]
    model = next(filter(None, written), "")
    return _VARIABLE.sub(lambda match: variables.get(next(filter(None, match.groups())), "") or match[0], model)


def _port(engine: Engine | None, parsed: Parsed | None, container: Json, variables: Mapping[str, str]) -> int:
    """Return the port that a server listens on; of an unknown one the first of its container, or none."""
    opened = [int(port["containerPort"]) for port in container.get("ports") or ()]
    if engine is None or parsed is None:
        return opened[0] if opened else 0
    written = parsed.value("--port") or variables.get(DATA.engines[engine.name].port_variable, "")
    written = variables.get(written.strip("$()"), written)
    return int(written) if written.isdecimal() else RUNTIMES[engine.name].port


# Where the model comes from.

_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def _address(server: OwnServer, pod: Json, container: Json, claims: Mapping[str, str]) -> str:
    model, parsed = server.model, server.parsed
    if "://" in model:
        return model
    if model.startswith("/"):
        return _mounted(model, pod, container, claims)
    repository = model.partition(":")[0] if server.name == "llamacpp" else model
    if not _HUB.fullmatch(repository) or repository.endswith(".gguf"):
        return ""
    revision = parsed.value("--revision") if parsed is not None else ""
    return f"hf://{repository}{f'@{revision}' if revision else ''}"


def _mounted(path: str, pod: Json, container: Json, claims: Mapping[str, str]) -> str:
    """Return the address of a path in a container, by the volume that is mounted there; empty for another one."""
    mounts = [mount for mount in container.get("volumeMounts") or () if _below(path, mount["mountPath"]) is not None]
    if not mounts:
        return ""
    mount = max(mounts, key=lambda mount: len(mount["mountPath"].rstrip("/")))
    inside = "/".join(filter(None, (mount.get("subPath", "").strip("/"), _below(path, mount["mountPath"]))))
    volume: Json = next((item for item in pod.get("volumes") or () if item["name"] == mount["name"]), {})
    claim = (volume.get("persistentVolumeClaim") or {}).get("claimName") or claims.get(mount["name"])
    if claim and inside:
        return f"pvc://{claim}/{inside}"
    on_node = (volume.get("hostPath") or {}).get("path")
    return f"host://{on_node.rstrip('/')}/{inside}".rstrip("/") if on_node else ""


def _below(path: str, directory: str) -> str | None:
    """Return the rest of a path below a directory; ``None`` for a path elsewhere."""
    root = directory.rstrip("/")
    return path[len(root) :].strip("/") if path.rstrip("/") == root or path.startswith(f"{root}/") else None

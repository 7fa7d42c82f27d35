"""A pod template with the model: loaded, mounted, or left to the engine. Source: LZ-2.4 to LZ-2.6, LZ-4.3, LZ-9."""

import re
from collections.abc import Iterable, Iterator

import orjson

from app.kube.base import Json
from app.kube.podspec import normalised
from app.llmaz import names
from app.llmaz.flavors import add_affinity
from app.llmaz.references import ClaimedModel
from app.llmaz.service.plan import ServicePlan
from app.llmaz.source import Host, Hub, Image, ObjectStore
from app.workload.parts import TERMINATION_MESSAGE_POLICY, without_service_links


def worker(plan: ServicePlan) -> Json:
    """Build the template of worker pods; without a leader template they have the model's labels."""
    template = plan.spec.workload_template
    return _template(plan, template.worker_template, labelled=template.leader_template is None)


def leader(plan: ServicePlan) -> Json | None:
    """Build the template of leader pods, or ``None`` if they are like the workers."""
    leaders = plan.spec.workload_template.leader_template
    return None if leaders is None else _template(plan, leaders, labelled=True)


def single(plan: ServicePlan) -> Json:
    template = worker(plan)
    template["metadata"]["labels"] |= plan.selector
    for container in [*template["spec"].get("initContainers", ()), *template["spec"].get("containers", ())]:
        _group_variables(container)
    return template


def _template(plan: ServicePlan, spelled: Json, *, labelled: bool) -> Json:
    template = normalised(spelled)
    if not template.get("metadata", True):
        del template["metadata"]
    spec = template["spec"] = without_service_links(template.get("spec") or {})
    if plan.config.scheduler and not spec.get("schedulerName"):
        spec["schedulerName"] = plan.config.scheduler
    if plan.skip:
        _add_credentials(spec, plan.models)
    _add_loaders(spec, plan)
    _add_volumes(spec, plan)
    add_affinity(spec, plan.flavors)
    if labelled:
        _add_labels(template, plan)
    runner = _runner(spec)
    if runner is not None and plan.accelerators:
        resources = runner.setdefault("resources", {})
        resources |= {key: {**resources.get(key, {}), **plan.accelerators} for key in ("requests", "limits")}
    return template


def _runner(spec: Json) -> Json | None:
    return next((container for container in spec.get("containers", ()) if container["name"] == names.RUNNER), None)


def _add_credentials(spec: Json, models: Iterable[ClaimedModel]) -> None:
    """Add the credentials that the engine lacks to fetch the weights itself."""
    runner = _runner(spec)
    if runner is None:
        return
    env = runner.get("env", [])
    for model in models:
        env = _environment([], env, _credentials(model))
    if env:
        runner["env"] = env


def _add_loaders(spec: Json, plan: ServicePlan) -> None:
    first: Json = next(iter(spec.get("containers", ())), {})
    if added := loaders(plan, first.get("env", [])):
        spec["initContainers"] = [*spec.get("initContainers", ()), *added]


def loaders(plan: ServicePlan, inherited: list[Json]) -> list[Json]:
    """Build the init containers that load the models; ``inherited`` is the environment of the first container."""
    common = {"terminationMessagePolicy": TERMINATION_MESSAGE_POLICY, "volumeMounts": [_MODELS]}
    return [
        {"name": names.loader_container(position), **container, **common}
        for position, model in enumerate(() if plan.skip else plan.models)
        if (container := _loader(model, plan, inherited))
    ]


_MODELS: Json = {"name": names.MODEL_VOLUME, "mountPath": names.MODELS_DIR}


def _add_volumes(spec: Json, plan: ServicePlan) -> None:
    """Add an emptyDir for loaded models, and directories of the node and of images, read-only (LZ-2.5)."""
    mounted = list(_mounted(plan))
    loads = not plan.skip and not all(_is_mounted(model, plan) for model in plan.models)
    volumes: list[Json] = [{"name": names.MODEL_VOLUME, "emptyDir": {}}] if loads else []
    mounts: list[Json] = [{**_MODELS, "readOnly": True}] if loads else []
    for position, (volume, mount) in enumerate(mounted):
        name = names.mounted_volume(position, alone=not loads)
        volumes.append({"name": name, **volume})
        mounts.append({"name": name, **mount, "readOnly": True})
    if volumes:
        spec["volumes"] = [*spec.get("volumes", ()), *volumes]
    runner = _runner(spec)
    if runner is not None and mounts:
        runner["volumeMounts"] = [*runner.get("volumeMounts", ()), *mounts]


def _is_mounted(model: ClaimedModel, plan: ServicePlan) -> bool:
    return isinstance(model.source, Host) or (isinstance(model.source, Image) and plan.mounts_images)


def _mounted(plan: ServicePlan) -> Iterator[tuple[Json, Json]]:
    """Return the volumes that need no loader, and their mounts; a directory with several models once."""
    directories: set[str] = set()
    for source in (model.source for model in plan.models if _is_mounted(model, plan)):
        if isinstance(source, Host) and source.directory not in directories:
            directories.add(source.directory)
            yield {"hostPath": {"path": source.directory}}, {"mountPath": source.directory}
        elif isinstance(source, Image) and not plan.skip:
            part = {"subPath": source.directory} if source.directory else {}
            yield {"image": {"reference": source.reference}}, {"mountPath": source.place, **part}


def _add_labels(template: Json, plan: ServicePlan) -> None:
    metadata = template.setdefault("metadata", {})
    main = plan.models[0]
    metadata["labels"] = {**metadata.get("labels", {}), names.MODEL_NAME: main.name, names.MODEL_FAMILY: main.family}
    if claimed := plan.spec.claims.inference_flavors:
        metadata["annotations"] = {**metadata.get("annotations", {}), names.FLAVORS: ",".join(claimed)}


_GROUP: dict[str, Json] = {
    "LWS_LEADER_ADDRESS": {"valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    "LWS_GROUP_SIZE": {"value": "1"},
    "LWS_WORKER_INDEX": {"value": "0"},
}
"""Variables that LeaderWorkerSet sets in every container, for a group of one pod."""
_GROUP_VARIABLE = re.compile("|".join(_GROUP))


def _group_variables(container: Json) -> None:
    """Set LeaderWorkerSet's variables in a container that uses them anywhere, replacing the container's values."""
    named = set(_GROUP_VARIABLE.findall(orjson.dumps(container).decode()))
    if named:
        variables = [{"name": name, **source} for name, source in _GROUP.items() if name in named]
        container["env"] = [*variables, *(entry for entry in container.get("env", ()) if entry["name"] not in named)]


_SECRETS = {"hub": "modelhub-secret", "oss": "oss-access-secret", "s3": "aws-access-secret", "gcs": "aws-access-secret"}
"""Optional Secrets with credentials, in the workload's namespace."""
_KEYS = {
    "hub": {"HUGGING_FACE_HUB_TOKEN": "HF_TOKEN", "HF_TOKEN": "HF_TOKEN"},
    "oss": {"OSS_ACCESS_KEY_ID": "OSS_ACCESS_KEY_ID", "OSS_ACCESS_KEY_SECRET": "OSS_ACCESS_KEY_SECRET"},
    "s3": {"AWS_ACCESS_KEY_ID": "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY": "AWS_SECRET_ACCESS_KEY"},
}
_KEYS["gcs"] = _KEYS["s3"]
"""Variables and the keys of the Secret they come from."""


def _credentials(model: ClaimedModel) -> list[Json]:
    """Return the variables with credentials of a source; empty for models on nodes, in images and in engines."""
    source = model.source
    kind = "hub" if isinstance(source, Hub) else source.protocol if isinstance(source, ObjectStore) else ""
    return [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": _SECRETS[kind], "key": key, "optional": True}}}
        for name, key in _KEYS.get(kind, {}).items()
    ]


def _loader(model: ClaimedModel, plan: ServicePlan, inherited: list[Json]) -> Json | None:
    """Build the loader of the model, if it needs one; ``inherited`` is the environment of the first container."""
    source = model.source
    if isinstance(source, Image):
        return None if plan.mounts_images else _copier(source)
    if isinstance(source, ObjectStore) and source.protocol != "oss":
        keys = _credentials(model) if source.protocol == "s3" else []  # Google Cloud uses the pod's ServiceAccount
        return _from_bucket(source, plan.object_loader, _environment([], inherited, keys))
    orders = _orders(model)
    if not orders:
        return None
    return {"image": plan.config.loader_image, "env": _environment(orders, inherited, _credentials(model))}


def _environment(orders: list[Json], inherited: list[Json], credentials: list[Json]) -> list[Json]:
    """Merge the loader's variables, each name once (LZ-T04): orders win, then inherited ones, then credentials."""
    ordered = {entry["name"] for entry in orders}
    remaining = [entry for entry in inherited if entry["name"] not in ordered]
    has = {entry["name"] for entry in remaining}
    return [*remaining, *orders, *(entry for entry in credentials if entry["name"] not in has)]


def _copier(image: Image) -> Json:
    """Build the container that runs the image to copy its files."""
    files = "/" + "/".join(part for part in (image.directory, image.filename or ".") if part)
    return {"image": image.reference, "command": copy_command(files, image.place)}


def copy_command(files: str, place: str) -> list[str]:
    """Return the command that copies files of an image into a directory."""
    return ["/bin/sh", "-c", 'mkdir -p "$1" && cp -R "$0" "$1"', _literal(files), _literal(place)]


def _from_bucket(store: ObjectStore, image: str, env: list[Json]) -> Json:
    """Build KServe's storage initializer, or a container with its arguments: an address and a target directory.

    It uses the address as a prefix of names, so the address of a directory ends in a slash.
    """
    scheme = "gs" if store.protocol == "gcs" else store.protocol
    address = f"{scheme}://{store.bucket}/{store.key.rstrip('/')}"
    where = (address, names.MODELS_DIR) if store.is_file else (f"{address}/", store.path(skip=False))
    container: Json = {"image": image, "args": [_literal(text) for text in where]}
    return {**container, "env": env} if env else container


def _literal(text: str) -> str:
    """Escape ``$(VARIABLE)`` for the kubelet, so that an address cannot read the environment."""
    return text.replace("$", "$$")


def _orders(model: ClaimedModel) -> list[Json]:
    """Return the loader's variables in upstream's order; an empty value is omitted, as the API server does."""
    source = model.source
    if isinstance(source, Hub):
        hub = source.repository
        orders = {
            "MODEL_SOURCE_TYPE": "modelhub",
            "MODEL_ID": hub.model_id,
            "MODEL_HUB_NAME": hub.name,
            "MODEL_FILENAME": hub.filename,
            "REVISION": hub.revision,
            "MODEL_ALLOW_PATTERNS": _joined(hub.allow_patterns),
            "MODEL_IGNORE_PATTERNS": _joined(hub.ignore_patterns),
        }
    elif isinstance(source, ObjectStore) and source.protocol == "oss":
        orders = {
            "MODEL_SOURCE_TYPE": "objstore",
            "PROVIDER": "OSS",
            "ENDPOINT": source.endpoint,
            "BUCKET": source.bucket,
            "MODEL_PATH": source.key,
        }
    else:
        return []
    return [
        {"name": name, "value": text} if text else {"name": name} for name, text in orders.items() if text is not None
    ]


def _joined(patterns: list[str] | None) -> str | None:
    return None if patterns is None else ",".join(patterns)

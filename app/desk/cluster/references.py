"""Find references of a spec, to objects and to keys of Secrets, that the files do not contain.

:func:`missing_references` yields every reference to an absent object; :func:`dangling` yields those that are probably
mistakes, because a similar name is known or the files have other objects of the kind.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from app.desk.cluster.kinds import find
from app.desk.cluster.simulate import Cluster
from app.desk.cluster.store import outer_key, related_keys, type_of
from app.hooks.kind import AnyKind
from app.kube import modelfields
from app.kube.base import Json, KubeModel
from app.kube.embedded import types as embedded_types
from app.kube.field import METADATA, SPEC, Hint, Path, go_quote, name_meant, with_hint
from app.kube.merge import find as value_at
from app.kube.names import is_dns1123_subdomain
from app.kube.spelling import closest_name
from app.settings import Settings
from app.workload.rules.wholepod import LISTS

EACH = "*"
MODEL_SECRET = ("sourceSecretRef", "name")
"""The field of a Model of LLMKube."""


class MissingReference(msgspec.Struct, frozen=True):
    kind: str
    name: str
    path: Path
    namespaces: list[str]
    """Namespaces in which the object may be; an empty string for a cluster-scoped kind."""
    certain: bool
    """True if the customize hook asks for the object by this name."""
    present: Mapping[str, Json]
    """The objects of the kind that are among the files."""
    built_in: Collection[str]
    """Names of objects of the kind that no manifest describes."""
    is_served: bool
    """True for a kind of modelhooks; objects of other kinds, such as Gateways, are often only in the cluster."""


def missing_references(
    kind: AnyKind, document: Json, cluster: Cluster, settings: Settings
) -> Iterator[MissingReference]:
    """Yield the references of a spec to objects that the cluster does not have.

    A name that is not in the spec is a default, and a value that cannot be an object's name, such as a repository ID,
    is not a reference.
    """
    namespaces: dict[tuple[str, str], list[str]] = defaultdict(list)
    certain: set[tuple[str, str]] = set()
    keys = related_keys(kind)
    for rule in cluster.rules(kind, document):
        target = keys.get((rule["resource"], rule["apiVersion"]), "")
        for name in rule.get("names") or [name for _, name in _named(document, target)]:
            namespaces[target, name].append(rule.get("namespace") or "")
            certain |= {(target, name)} if rule.get("names") else set()
    for (target, name), where in namespaces.items():
        present = cluster.objects.of_kind(target)
        api_version, name_of_kind = type_of(target)
        searched = sorted({key.rpartition("/")[0] for key in present}) if "" in where else where
        is_present = any((f"{namespace}/{name}" if namespace else name) in present for namespace in searched)
        if is_present or not is_dns1123_subdomain(name):
            continue
        path = referring_field(document, target, name)
        served = find(api_version, name_of_kind)
        built_in = served.offline.built_in(settings) if served is not None else ()
        if path is not None and name not in built_in:
            is_certain, is_served = (target, name) in certain, served is not None
            yield MissingReference(name_of_kind, name, path, searched, is_certain, present, built_in, is_served)


def dangling(kind: AnyKind, document: Json, cluster: Cluster, settings: Settings) -> Iterator[tuple[Path, str]]:
    """Yield references to missing objects that are probably mistakes, each with a suggestion.

    A name that resembles a known one is always reported. Any other name is reported only if modelhooks serves the kind,
    the files have other objects of it, and either the customize hook asks for this very name or another namespace has
    it: where the hook asks for all objects of a namespace, the name may be a preset's.
    """
    for reference in missing_references(kind, document, cluster, settings):
        name, namespaces, present = reference.name, reference.namespaces, reference.present
        names = [key.rpartition("/")[2] for key in present if key.rpartition("/")[0] in namespaces]
        near = closest_name(name, [*names, *reference.built_in])
        if all((outer_key(item), inner) in cluster.installed for inner, item in present.items()):
            present = {}
        elsewhere = [key.rpartition("/")[0] for key in present if key.rpartition("/")[2] == name]
        if not near and not (present and reference.is_served and (elsewhere or reference.certain)):
            continue
        hint = name_meant(near) or f", which have {', '.join(sorted(names)[:5])}"
        if elsewhere:
            hint = f" in namespace {namespaces[0]}; there is one in {elsewhere[0]}"
        yield reference.path, with_hint(f"{reference.kind} {go_quote(name)} is not among the files", hint)


def absent_keys(spec: KubeModel, namespace: str, cluster: Cluster) -> Iterator[tuple[Path, str]]:
    """Yield references to keys that a Secret among the files does not have. A Secret without any is filled later."""
    secrets = cluster.objects.of_kind("Secret.v1")
    for path, value, shape in modelfields.embedded_values(spec, SPEC) if secrets else ():
        for where, selector in _key_selectors(value, shape.embedded, path):
            key, keys = selector.get("key"), _keys(secrets.get(f"{namespace}/{selector.get('name')}", {}))
            if keys and isinstance(key, str) and key not in keys and not selector.get("optional"):
                yield where.child("key"), _absent(selector["name"], key, keys)


def _keys(secret: Json) -> list[str]:
    parts = [part for part in (secret.get("data"), secret.get("stringData")) if isinstance(part, dict)]
    return sorted({str(name) for part in parts for name in part})


def _absent(secret: str, key: str, keys: list[str]) -> Hint:
    hint = name_meant(closest_name(key, keys)) or f", which has {', '.join(keys[:5])}"
    return with_hint(f"Secret {go_quote(secret)} has no key {go_quote(key)}", hint)


def unread_secrets(pods: Iterable[Json], document: Json, cluster: Cluster) -> Iterator[tuple[Path, str]]:
    """Yield the Secrets among the files of which containers read optional keys, and that have none of them.

    Nothing else reports them: a container starts without such a variable, and the download ends with 401.
    """
    namespace, earlier = document["metadata"].get("namespace", ""), set[str]()
    for container in (c for pod in pods for name in LISTS for c in pod.get(name) or ()):
        secret = value_at(document.get("spec"), MODEL_SECRET)  # whose keys are variables of what downloads
        of_model = {secret: _downloader_keys(container)} if isinstance(secret, str) else {}
        for name, wanted in (*_optional_keys(container).items(), *of_model.items()):
            keys = _keys(cluster.objects.of_kind("Secret.v1").get(f"{namespace}/{name}", {}))
            if keys and wanted and name not in earlier and not set(wanted) & set(keys):
                earlier.add(name)
                yield _place_of(document, name), _absent(name, wanted[0], keys)


def _downloader_keys(container: Json) -> Sequence[str]:
    from app.llmkube.download import read_keys  # the other families do without

    return read_keys(container)


def _optional_keys(container: Json) -> dict[str, list[str]]:
    keys: dict[str, list[str]] = {}
    for variable in container.get("env") or ():
        selector = (variable.get("valueFrom") or {}).get("secretKeyRef") or {}
        if selector.get("optional"):
            keys.setdefault(selector.get("name") or "", []).append(selector.get("key") or "")
    return keys


def _place_of(document: Json, secret: str) -> Path:
    """Return the annotation or the field of a Model that names a Secret, or the spec."""
    if value_at(document.get("spec"), MODEL_SECRET) == secret:
        return SPEC.child(*MODEL_SECRET)
    annotations = document["metadata"].get("annotations") or {}
    named = (key for key, value in annotations.items() if value == secret)
    return next((METADATA.child("annotations").key(key) for key in named), SPEC)


def _key_selectors(value: object, type_name: str, path: Path) -> Iterator[tuple[Path, Json]]:
    """Yield the references to keys of Secrets at and below a value of one of Kubernetes' types."""
    if not isinstance(value, dict):
        return
    if type_name == "SecretKeySelector":
        yield path, value
    for name, item in value.items():
        declared = embedded_types.TYPES[type_name].get(name)
        if declared is None or declared.type not in embedded_types.TYPES:
            continue
        below = path.child(name)
        for where, part in below.each(item) if isinstance(item, list) else [(below, item)]:
            yield from _key_selectors(part, declared.type, where)


def _strings(value: object, field: Sequence[str], path: Path) -> Iterator[tuple[Path, str]]:
    if not field:
        yield from [(path, value)] if isinstance(value, str) else []
    elif field[0] == EACH:
        for item_path, item in path.each(value if isinstance(value, list) else ()):
            yield from _strings(item, field[1:], item_path)
    else:
        yield from _strings(value_at(value, field[:1]), field[1:], path.child(field[0]))


def _named(document: Json, outer: str) -> Iterator[tuple[Path, str]]:
    for field in _FIELDS.get(type_of(outer)[1], ()):
        yield from _strings(document.get("spec"), field, SPEC)


_FIELDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "Model": (("modelRef",), ("speculativeDecoding", "draftModelRef"), ("vllmConfig", "speculative", "model")),
    "OpenModel": (("modelClaim", "modelName"), ("modelClaims", "models", EACH, "name")),
    "BackendRuntime": (("backendRuntimeConfig", "backendName"),),
    "LLMInferenceServiceConfig": (("baseRefs", EACH, "name"),),
    "ConfigMap": (("router", "scheduler", "config", "ref", "name"),),
    "Gateway": (("router", "gateway", "refs", EACH, "name"),),
    "HTTPRoute": (("router", "route", "http", "refs", EACH, "name"),),
    "InferencePool": (("router", "scheduler", "pool", "ref", "name"),),
    "PersistentVolumeClaim": (("modelCache", "claimName"),),
    "PriorityClass": (("priorityClassName",),),
    "RuntimeClass": (("runtimeClassName",),),
}
"""The fields of specs that name an object of each kind."""


def referring_field(document: Json, outer: str, name: str) -> Path | None:
    """Return the field of the spec that names an object of a kind, by its key; ``None`` where no field does."""
    return next((path for path, named in _named(document, outer) if named == name), None)

"""The served kinds by name, without importing their code: a command loads the families that its files need."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from app.kube.field import did_you_mean, name_meant, with_hint
from app.kube.spelling import nearest

if TYPE_CHECKING:
    from app.hooks.kind import AnyKind
    from app.kube.base import Json

SERVED = {
    "inference.llmkube.dev": {"Model": "v1alpha1", "InferenceService": "v1alpha1"},
    "llmaz.io": {"OpenModel": "v1alpha1"},
    "inference.llmaz.io": {"BackendRuntime": "v1alpha1", "Playground": "v1alpha1", "Service": "v1alpha1"},
    "serving.kserve.io": {"LLMInferenceService": "v1alpha2", "LLMInferenceServiceConfig": "v1alpha2"},
}
"""The served groups, with the version in which each kind is stored."""
OLDER = {"serving.kserve.io": ("v1alpha1",)}
"""Other versions in which all kinds of a group are served."""
_FAMILIES = {
    "inference.llmkube.dev": "llmkube",
    "llmaz.io": "llmaz",
    "inference.llmaz.io": "llmaz",
    "serving.kserve.io": "kserve",
}
COMPONENTS = (
    *("podmonitor", "leaderworkerset", "gateway-api", "inference-extension", "scheduler-rbac", "ca-bundle"),
    "envoy-ai-gateway",
    *("inference-objectives", "keda", "workload-variant-autoscaler", "resource-claims"),
    "istio",
)
"""Kustomize components of child kinds that not every cluster has."""
DEFAULT_NAMESPACE = "default"
INSTALLATION = "installation"
"""The objects that an installation brings, and those that every namespace has: taken as given unless left out."""
_FOREIGN = {
    "serving.kserve.io": frozenset(
        {
            *("ClusterServingRuntime", "ClusterStorageContainer", "InferenceGraph", "InferenceService"),
            *("LocalModelCache", "LocalModelNamespaceCache", "LocalModelNode", "LocalModelNodeGroup"),
            *("ServingRuntime", "TrainedModel"),
        }
    )
}
"""Kinds of other controllers in a served group."""
_DOWNLOADER = (
    "LLMInferenceServices do not read it: write its image and variables into an init container "
    "storage-initializer, in a config of their baseRefs"
)
_NOT_SERVED = {
    "inference.llmkube.dev": {
        "ModelRouter": "choose a model per request with an AIGatewayRoute of Envoy AI Gateway before the Services of "
        "the InferenceServices, or serve several GGUF files by one InferenceService with runtime llamacpp-router",
        "ModelPool": "write one InferenceService for each model",
        "LoRAAdapter": "name adapters in spec.sglangConfig.loraAdapters, or in spec.extraArgs of vllm and llamacpp",
        "GPUQuota": "limit GPUs with a ResourceQuota (requests.nvidia.com/gpu), or with Kueue",
        "FederatedCluster": "apply the objects to each cluster",
    }
}
"""Kinds of the Go operators that are not served here, with replacements."""


@cache
def find(api_version: str, kind: str) -> AnyKind | None:
    """Return the served kind of this name and version, in the version that hooks use; ``None`` for other kinds."""
    group, _, version = api_version.rpartition("/")
    stored = SERVED.get(group, {}).get(kind)
    if stored is None or version not in (stored, *OLDER.get(group, ())):
        return None
    kinds = _loaded(_FAMILIES[group])
    return next(served for served in kinds if (served.resource.group, served.resource.kind) == (group, kind))


@cache
def find_hook(path: str) -> AnyKind:
    """Return the served kind of a hook path, ``/<family>/<plural>``; no other family is imported."""
    return next(served for served in _loaded(path.split("/")[1]) if served.resource.hook_path == path)


def _loaded(family: str) -> tuple[AnyKind, ...]:
    kinds: tuple[AnyKind, ...] = importlib.import_module(f"app.{family}.kinds").KINDS
    return kinds


def kind_of(document: Json) -> AnyKind | None:
    """Return the served kind of an object, as :func:`find` does."""
    return find(document["apiVersion"], document["kind"])


def all_kinds() -> Iterator[AnyKind]:
    """Yield the served kinds, in the order of :data:`SERVED`. A family is imported with its first kind."""
    loaded = (find(f"{group}/{version}", kind) for group, kinds in SERVED.items() for kind, version in kinds.items())
    return (kind for kind in loaded if kind is not None)


def find_version(api_version: str, kind: str) -> AnyKind | None:
    """Return the served kind in exactly that version, the one that admission judges."""
    kind_ = find(api_version, kind)
    if kind_ is None:
        return None
    return next(candidate for candidate in (kind_, *kind_.older) if candidate.resource.api_version == api_version)


def as_stored(document: Json) -> Json:
    """Convert an object to the stored version.

    One that cannot be converted was refused by admission; it keeps its fields.
    """
    kind = find(str(document.get("apiVersion")), str(document.get("kind")))
    if kind is None or document["apiVersion"] == kind.resource.api_version:
        return document
    from app.conversion import ConversionError
    from app.kserve.conversion import convert

    try:
        return convert(document, kind.resource.api_version)
    except ConversionError:
        return {**document, "apiVersion": kind.resource.api_version}


def versions_of(kind: str) -> list[str]:
    """Return the apiVersions in which a kind of that name is served, the stored one first."""
    kind_ = [(group, kinds[kind]) for group, kinds in SERVED.items() if kind in kinds]
    return [f"{group}/{version}" for group, stored in kind_ for version in (stored, *OLDER.get(group, ()))]


def type_problem(api_version: str, kind: str) -> tuple[str, str]:
    """Return the field and the message for a type that is not served. Both are empty for a foreign kind."""
    group, _, version = api_version.rpartition("/")
    if not api_version or "." not in group:
        return _without_group(api_version, kind)
    if group in SERVED:
        return _unknown(group, version, kind)
    near = nearest(group, tuple(SERVED))
    if near and _similar(group, near) and kind in SERVED[near]:
        hint = did_you_mean(f"{near}/{SERVED[near][kind]}")
        return "apiVersion", with_hint(f'group "{group}" is not served', hint)
    return "", ""


def not_served(api_version: str, kind: str) -> str:
    """Return the message for a kind of a served group that another controller serves; empty for any other kind."""
    if kind not in _FOREIGN.get(api_version.rpartition("/")[0], ()):
        return ""
    served = f"LLMInferenceService is ({versions_of('LLMInferenceService')[0]})"
    return f"{api_version} {kind} is not served here; {_DOWNLOADER if kind == 'ClusterStorageContainer' else served}"


def _without_group(api_version: str, kind: str) -> tuple[str, str]:
    """Return the problem of a served kind, or a misspelt one, without apiVersion or in a group of Kubernetes."""
    from app.kube.spelling import closest_name

    names = [name for served in SERVED.values() for name in served if not api_version or name != "Service"]
    kinds = {name.lower(): name for name in names}
    intended = kinds.get(closest_name(kind, kinds), "")
    if not intended:
        return "", ""
    versions = versions_of(intended)
    head = f'"{api_version}" has no such kind' if api_version else "Required value"
    if kind == intended:
        return "apiVersion", f"{head}: {kind} is served as {' and '.join(versions)}"
    remedy = f"write kind: {intended} and apiVersion: {versions[0]}"
    return "apiVersion", f'{head}: "{kind}" is taken for {intended}; {remedy}'


def _unknown(group: str, version: str, kind: str) -> tuple[str, str]:
    """Return the problem of a served group with a kind or version that it does not have."""
    kinds = SERVED[group]
    if kind in kinds:
        return "apiVersion", f"{kind} is served as {' and '.join(versions_of(kind))} only"
    if kind in _FOREIGN.get(group, ()):
        return "", ""
    if not kind:
        return "kind", f"Required value: {group} has {', '.join(kinds)}"
    near = nearest(kind, tuple(kinds))
    elsewhere = versions_of(kind)
    if elsewhere:
        or_else = f"; {group} has {near}" if near else ""
        return "apiVersion", f"{kind} is served as {' and '.join(elsewhere)}{or_else}"
    if instead := _NOT_SERVED.get(group, {}).get(kind):
        return "kind", f"{kind} is not served here, and nothing acts on it: {instead}"
    hint = name_meant(near)
    return "kind", with_hint(f'{group}/{version} has no kind "{kind}", but {", ".join(kinds)}', hint)


def _similar(group: str, ours: str) -> bool:
    """Report whether a group is a served one with a typing error: it shares the name before the top-level domain."""
    import difflib

    if ours.split(".")[-2] in group.split("."):
        return True
    return difflib.SequenceMatcher(None, group, ours).ratio() > 0.85

"""The operator's CA bundle for downloads of models.

KServe's operator copies it into one ConfigMap per namespace. A child has one owner, so here services have own copies.
"""

import msgspec

from app.hooks.kept import keep_child
from app.hooks.protocol import get
from app.kserve.constants import COMPONENT_WORKLOAD, CONFIG_MAPS, GLOBAL_CA_BUNDLE
from app.kserve.llminferenceservice.observed import ReconcileContext
from app.kserve.names import component_labels
from app.kube.base import Json
from app.kube.child import metadata
from app.kube.names import ANNOTATIONS_MAX
from app.workload.readiness.cause import Cause, Stage

KEY = "cabundle.crt"
_NAMED = "which caBundleConfigMapName in ConfigMap inferenceservice-config asks for"


def ca_bundle(context: ReconcileContext) -> tuple[list[Json], list[Cause]]:
    """Return the service's own copy, and why pods that mount the bundle cannot start.

    Where the source of the copy is gone, or no longer fit, what was copied stays.
    """
    name, namespace = context.ca_bundle, context.metadata.namespace
    source = f"{context.operator.system_namespace}/{context.operator.storage_initializer.ca_bundle_config_map_name}"
    children: list[Json] = []
    if name == context.names.ca_bundle:
        copy = _copy(context)
        if not isinstance(copy, str):
            return [copy], []
        there, problem = get(context.children.config_maps, name, namespace), copy
        children += [] if there is None else [keep_child(there)]
    elif get(context.related.config_maps, name, namespace) is not None:
        return [], []
    elif name == GLOBAL_CA_BUNDLE:
        problem = (
            f"ConfigMap {namespace}/{name} does not exist: copy {source} there with its key {KEY}, or install the "
            "kustomize component ca-bundle, with which every service has its own copy"
        )
    else:
        problem = f"ConfigMap {source} does not exist, {_NAMED}"
    return children, [Cause(Stage.CONFIGURATION, problem, "CABundleMissing")]


def _copy(context: ReconcileContext) -> Json | str:
    """Return the ConfigMap to create, or the reason why it cannot be created."""
    system, source = context.operator.system_namespace, context.operator.storage_initializer.ca_bundle_config_map_name
    original = get(context.related.config_maps, source, system)
    if original is None:
        return f"ConfigMap {system}/{source} does not exist, {_NAMED}"
    text = (original.data or {}).get(KEY)
    if not text:
        return f"ConfigMap {system}/{source} has no key {KEY}, {_NAMED}"
    namespace = context.metadata.namespace
    labels = component_labels(context.metadata.name, COMPONENT_WORKLOAD)
    copy = CONFIG_MAPS.build(metadata(context.names.ca_bundle, namespace, labels), data={KEY: text})
    if len(msgspec.json.encode(copy)) > ANNOTATIONS_MAX:
        return (
            f"ConfigMap {system}/{source} is too large to be copied by Metacontroller, which takes at most "
            f"{ANNOTATIONS_MAX} bytes: shorten it, or copy it as ConfigMap {GLOBAL_CA_BUNDLE} to namespace {namespace}"
        )
    return copy

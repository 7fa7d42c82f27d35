"""Registers a kind in a cluster: CompositeController, Metacontroller's rights, admission webhook.

These are pure functions of :class:`app.kube.resource.CustomResource`; :mod:`tools.generate` writes the files. Reasons
are in app/hooks/operation.md, MC-7.2, MC-7.7 and MC-7.8, and in app/admission/README.md, HTTP-1.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from app.hooks.labels import Decorator
from app.installation import (
    ADMISSION_API,
    HOOK_HOST,
    METACONTROLLER_API,
    METACONTROLLER_GROUP,
    NAME,
    NAMESPACE,
    controller_name,
    crd_name,
    hook_query,
    webhook_names,
)
from app.kube.resource import ChildKind, CustomResource, RelatedKind

Object = dict[str, Any]

LABELS = {"app.kubernetes.io/part-of": NAME}
OWN_NAMESPACE = "v1"
"""Version of customize hooks whose related objects are in the parent's namespace or cluster-scoped."""


# Metacontroller


def composite_controller(resource: CustomResource, version: str) -> Object:
    """Register one kind's hooks, with the children that every cluster has.

    The release is part of the URL: a new one makes Metacontroller sync every parent once. The CA is left out:
    ``modelhooks certs`` adds it to the live object, and applying the manifest again does not remove it. There is
    neither a resync period nor a ``finalize`` hook, which a component adds.
    """
    hooks = {"sync": _hook(resource, "sync", version, "10s")}
    if resource.related:
        hooks["customize"] = _hook(resource, "customize", version, "5s")
        if not resource.related_elsewhere:
            hooks["customize"]["version"] = OWN_NAMESPACE
    parent = {"apiVersion": resource.api_version, "resource": resource.plural, "ignoreStatusChanges": True}
    return {
        "apiVersion": METACONTROLLER_API,
        "kind": "CompositeController",
        "metadata": {"name": controller_name(resource), "labels": LABELS},
        "spec": {
            "generateSelector": True,
            "parentResource": parent,
            "childResources": [child_resource(child) for child in resource.children if not child.component],
            "hooks": hooks,
        },
    }


def family_removal(resources: Sequence[CustomResource]) -> list[tuple[Object, Object]]:
    """Return the kustomize patches that remove a family's objects from an overlay, each with its target."""
    family, kinds = resources[0].family, "CompositeController|DecoratorController|PriorityClass"
    deleted = [
        ({"kind": "CustomResourceDefinition", "name": "|".join(map(crd_name, resources))}, "apiextensions"),
        ({"kind": kinds, "name": f"{family}-.*"}, "controllers"),
        ({"kind": "ClusterRole", "name": _role_name(family)}, "rbac"),
    ]
    webhooks = [{"name": name, "$patch": "delete"} for resource in resources for name in webhook_names(resource)]
    configuration = {"apiVersion": ADMISSION_API, "kind": "ValidatingWebhookConfiguration", "metadata": {"name": NAME}}
    return [
        *((target, {"$patch": "delete", "kind": "Any", "metadata": {"name": name}}) for target, name in deleted),
        ({"kind": "ValidatingWebhookConfiguration", "name": NAME}, {**configuration, "webhooks": webhooks}),
    ]


def decorator_controller(decorator: Decorator, version: str) -> Object:
    """Register a decorator of objects that are also parents of CompositeControllers.

    Metacontroller's rights on parents are enough for it. Status changes are not ignored, because a write that conflicts
    with one of them is only repeated at the next change.
    """
    kinds = [label.resource for label in decorator.labels]
    resources = [{"apiVersion": kind.api_version, "resource": kind.plural} for kind in kinds]
    return {
        "apiVersion": METACONTROLLER_API,
        "kind": "DecoratorController",
        "metadata": {"name": decorator.component, "labels": LABELS},
        "spec": {"resources": resources, "hooks": {"sync": _hook(decorator, "sync", version, "10s")}},
    }


def _hook(resource: CustomResource | Decorator, name: str, version: str, timeout: str) -> Object:
    url = f"https://{HOOK_HOST}{resource.hook_path}/{name}?{hook_query(version)}"
    return {"version": "v2", "webhook": {"url": url, "timeout": timeout}}


def child_resource(child: ChildKind) -> Object:
    """Build one entry of ``childResources``."""
    return {"apiVersion": child.api_version, "resource": child.plural, "updateStrategy": {"method": child.update}}


def components(resources: Iterable[CustomResource]) -> list[str]:
    """Return the kustomize components: each adds an optional child kind, kinds that belong together, or a hook."""
    resources = list(resources)
    kinds = {child.component for r in resources for child in r.children if child.component}
    return sorted(kinds | {r.finalize_component for r in resources if r.finalize_component})


def component_patches(
    resources: Iterable[CustomResource], component: str, version: str
) -> Iterator[tuple[Object, list[Object]]]:
    """Return kustomize's target and the JSON patch for each controller that the component changes."""
    for resource in resources:
        children = [child for child in resource.children if child.component == component]
        added = [("/spec/childResources/-", child_resource(child)) for child in children]
        if resource.finalize_component == component:
            added.append(("/spec/hooks/finalize", _hook(resource, "finalize", version, "10s")))
        if added:
            operations = [{"op": "add", "path": path, "value": value} for path, value in added]
            yield _TARGET | {"name": controller_name(resource)}, operations


def with_scheme(resource: CustomResource, hook: str) -> Object:
    """Return kustomize's replacement that gives a hook the scheme of the sync hook, which an overlay may change."""
    controller = {"kind": "CompositeController", "name": controller_name(resource)}
    scheme = {"delimiter": ":", "index": 0}
    target = {"select": controller, "fieldPaths": [f"spec.hooks.{hook}.webhook.url"], "options": scheme}
    source = {**controller, "fieldPath": "spec.hooks.sync.webhook.url", "options": scheme}
    return {"source": source, "targets": [target]}


def own_namespace_patch(resource: CustomResource) -> tuple[Object, list[Object]]:
    """Return kustomize's target and the JSON patch that limits a kind's related objects to the parent's namespace."""
    patch = {"op": "replace", "path": "/spec/hooks/customize/version", "value": OWN_NAMESPACE}
    return _TARGET | {"name": controller_name(resource)}, [patch]


_TARGET = {"group": METACONTROLLER_GROUP, "kind": "CompositeController"}


# Metacontroller's rights

AGGREGATE = {f"rbac.{NAME}.dev/aggregate-to-metacontroller": "true"}
"""Label of the roles that are aggregated into Metacontroller's."""

_VERBS = ("get", "list", "watch", "create", "update", "patch", "delete")
_OWN_RULES = (
    (METACONTROLLER_GROUP, ("compositecontrollers", "decoratorcontrollers"), "get list watch"),
    (METACONTROLLER_GROUP, ("controllerrevisions",), "get list watch create update delete"),
    ("apiextensions.k8s.io", ("customresourcedefinitions",), "get list watch"),
    ("", ("namespaces",), "list watch"),
    ("", ("events",), "create patch"),
    ("events.k8s.io", ("events",), "create patch"),
)


def metacontroller_roles() -> list[Object]:
    """Build the aggregated role, its binding to Metacontroller's account, and the rights that it always needs.

    The aggregated role has no ``rules``: the control plane writes them, and applying it again keeps them. Leases are
    left out, because Metacontroller's namespace has a Role for leader election.
    """
    name = f"{NAME}-metacontroller"
    return [
        {
            **_rbac("ClusterRole", name, LABELS),
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": AGGREGATE}]},
        },
        {
            **_rbac("ClusterRoleBinding", name, LABELS),
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": "metacontroller", "namespace": "metacontroller"}],
        },
        _aggregated("own", [_rule(group, names, verbs.split()) for group, names, verbs in _OWN_RULES]),
    ]


def family_role(family: str, resources: Iterable[CustomResource]) -> Object:
    """Build the role for a family's parents, children and related objects that every cluster has."""
    return _aggregated(family, _rules(resources, ""))


def component_role(component: str, resources: Iterable[CustomResource]) -> Object:
    """Build the role for the optional kinds of a component."""
    return _aggregated(component, _rules(resources, component))


def _rules(resources: Iterable[CustomResource], component: str) -> list[Object]:
    """Return the rights on a component's kinds, and those that its Roles grant; "" selects kinds of every cluster."""
    granted: dict[tuple[str, str], set[str]] = {}
    for resource in resources:
        for group, name, verbs in _rights(resource, component):
            granted.setdefault((group, name), set()).update(verbs.split())
    equal: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (group, name), allowed in sorted(granted.items()):
        equal.setdefault((group, tuple(verb for verb in _VERBS if verb in allowed)), []).append(name)
    return [_rule(group, names, allowed) for (group, allowed), names in equal.items()]


def _rights(resource: CustomResource, component: str) -> Iterator[tuple[str, str, str]]:
    if not component:
        yield resource.group, resource.plural, "get list watch update"
        yield resource.group, f"{resource.plural}/status", "update"
        yield resource.group, f"{resource.plural}/finalizers", "update"
    for child in resource.children:
        if child.component == component:
            yield _group(child), child.plural, "get list watch create update patch delete"
    for related in resource.related:
        if related.component == component:
            yield _group(related), related.plural, "list watch"
    for grant in resource.grants:
        if grant.component == component:
            yield from ((grant.group, plural, " ".join(grant.verbs)) for plural in grant.plurals)


def _group(kind: ChildKind | RelatedKind) -> str:
    return kind.api_version.rpartition("/")[0]


def _rule(group: str, names: Iterable[str], verbs: Iterable[str]) -> Object:
    return {"apiGroups": [group], "resources": list(names), "verbs": list(verbs)}


def _aggregated(part: str, rules: list[Object]) -> Object:
    return {**_rbac("ClusterRole", _role_name(part), LABELS | AGGREGATE), "rules": rules}


def _role_name(part: str) -> str:
    return f"{NAME}-metacontroller-{part}"


def _rbac(kind: str, name: str, labels: dict[str, str]) -> Object:
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name, "labels": labels}}


# Admission

_ANNOTATIONS = "(has({0}.metadata.annotations) ? {0}.metadata.annotations : {{}})"
_SPEC = "(has({0}.spec) ? {0}.spec : {{}})"
_CHANGED = " ||\n".join(
    [
        'request.operation != "UPDATE"',
        *(f"{part.format('object')} != {part.format('oldObject')}" for part in (_SPEC, _ANNOTATIONS)),
    ]
)
MATCH_CONDITIONS = {
    "not-being-deleted": "!has(object.metadata.deletionTimestamp)",
    "spec-or-annotations-changed": _CHANGED,
}
"""Removing a finalizer is an update. Objects that are being deleted are skipped, so no rule blocks a deletion."""


def webhook_configuration(resources: Sequence[CustomResource]) -> Object:
    """Build one webhook per kind and version; ``modelhooks certs`` or cert-manager adds the CA to the live object."""
    return {
        "apiVersion": ADMISSION_API,
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": NAME, "labels": LABELS},
        "webhooks": [webhook for resource in resources for webhook in webhooks(resource)],
    }


def webhooks(resource: CustomResource) -> list[Object]:
    """Build a webhook for each version of a kind: an object is reviewed in the version of its writer."""
    versions = (resource, *resource.older)
    policy = "Exact" if resource.older else "Equivalent"
    return [_webhook(version, name, policy) for version, name in zip(versions, webhook_names(resource), strict=True)]


def _webhook(resource: CustomResource, name: str, policy: str) -> Object:
    """Build a webhook for writes of one kind, not for deletions and statuses, so that failing closed is safe."""
    service = {"name": NAME, "namespace": NAMESPACE, "path": resource.admission_path, "port": 443}
    rule = {
        "apiGroups": [resource.group],
        "apiVersions": [resource.version],
        "operations": ["CREATE", "UPDATE"],
        "resources": [resource.plural],
        "scope": "Namespaced" if resource.namespaced else "Cluster",
    }
    return {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": service},
        "failurePolicy": "Fail",
        "matchPolicy": policy,
        "sideEffects": "None",
        "timeoutSeconds": 5,
        "rules": [rule],
        "matchConditions": [{"name": name, "expression": text} for name, text in MATCH_CONDITIONS.items()],
    }

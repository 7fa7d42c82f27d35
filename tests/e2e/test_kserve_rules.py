"""The API server's schema and our webhook have the same rules for HTTPRoute specs and for scaling.

Every rule between fields exists twice: as CEL for the API server and as code for the webhook.
"""

from __future__ import annotations

from typing import Any

import pytest

from app.kube.base import Json
from tests.e2e import objects
from tests.e2e.controlplane import ControlPlane
from tests.e2e.installation import Installation
from tests.kserve.objects import admit, config, service
from tests.kserve.test_gatewayapi import BROKEN

pytestmark = pytest.mark.e2e

SERVICE_BACKEND: Json = {"name": "s", "port": 80}
TO_ROOT: Json = {
    "type": "URLRewrite",
    "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}},
}


def rule(**content: Any) -> Json:
    return {"router": {"route": {"http": {"spec": {"rules": [{"backendRefs": [SERVICE_BACKEND], **content}]}}}}}


def header(name: str, value: str) -> Json:
    return {"name": name, "value": value}


def keda(**content: Any) -> Json:
    return {"scaling": {"minReplicas": 2, "maxReplicas": 3, "wva": {"keda": content}}}


CASES: dict[str, tuple[Json, bool]] = {
    "a backend": (rule(), True),
    "a Service without a port": (rule(backendRefs=[{"name": "s"}]), False),
    "a pool without a port": (
        rule(backendRefs=[{"name": "s", "group": "inference.networking.k8s.io", "kind": "InferencePool"}]),
        True,
    ),
    "a prefix that is rewritten": (rule(filters=[TO_ROOT], matches=[{"path": {"value": "/a"}}]), True),
    "every path, rewritten": (rule(filters=[TO_ROOT]), True),
    "headers, rewritten": (rule(filters=[TO_ROOT], matches=[{"headers": [header("a", "b")]}]), True),
    "an exact path, rewritten": (rule(filters=[TO_ROOT], matches=[{"path": {"type": "Exact", "value": "/a"}}]), False),
    "two paths, rewritten": (
        rule(filters=[TO_ROOT], matches=[{"path": {"value": "/a"}}, {"path": {"value": "/b"}}]),
        False,
    ),
    "one header twice": (rule(matches=[{"headers": [header("a", "1"), header("a", "2")]}]), False),
    "one parameter twice": (rule(matches=[{"queryParams": [header("a", "1"), header("a", "2")]}]), False),
    "one header set twice": (
        rule(
            filters=[
                {
                    "type": "RequestHeaderModifier",
                    "requestHeaderModifier": {"set": [header("a", "1"), header("a", "2")]},
                }
            ]
        ),
        False,
    ),
    "a path with an empty segment": (rule(matches=[{"path": {"value": "/a//b"}}]), False),
    "a relative path": (rule(matches=[{"path": {"value": "a"}}]), False),
    "any text as a regular expression": (
        rule(matches=[{"path": {"type": "RegularExpression", "value": "a//.*"}}]),
        True,
    ),
    "a redirection with a backend": (rule(filters=[{"type": "RequestRedirect", "requestRedirect": {}}]), False),
    "a filter of another type": (rule(filters=[{"type": "URLRewrite", "requestRedirect": {}}]), False),
    "one filter twice": (rule(filters=[TO_ROOT, TO_ROOT]), False),
    "a mirror by percent and fraction": (
        rule(
            filters=[
                {
                    "type": "RequestMirror",
                    "requestMirror": {"backendRef": SERVICE_BACKEND, "percent": 1, "fraction": {"numerator": 1}},
                }
            ]
        ),
        False,
    ),
    "a try longer than the whole": (rule(timeouts={"request": "1s", "backendRequest": "2s"}), False),
    "a try without a limit for the whole": (rule(timeouts={"request": "0s", "backendRequest": "2s"}), True),
    "a permanent cookie": (rule(sessionPersistence={"cookieConfig": {"lifetimeType": "Permanent"}}), False),
    "replicas and scaling": ({"replicas": 1, **keda()}, False),
    "scaling without a limit": ({"scaling": {"wva": {"hpa": {}}}}, False),
    "two actuators": ({"scaling": {"maxReplicas": 1, "wva": {"hpa": {}, "keda": {}}}}, False),
    "idle below the minimum": (keda(idleReplicaCount=1), True),
    "idle at zero": (keda(idleReplicaCount=0), True),
    "idle at the minimum": (keda(idleReplicaCount=2), False),
    "a fallback without failures": (keda(fallback={"failureThreshold": 0, "replicas": 0}), True),
    "a fallback after less than no failure": (keda(fallback={"failureThreshold": -1, "replicas": 2}), False),
    "an empty formula": (keda(advanced={"scalingModifiers": {}, "restoreToOriginalReplicaCount": True}), True),
    "a formula": (keda(advanced={"scalingModifiers": {"formula": "x"}}), False),
    "prefill: replicas and scaling": ({"prefill": {"replicas": 1, **keda()}}, False),
}


@pytest.fixture(scope="module", name="namespace")
def _namespace(installation: Installation) -> str:
    """A namespace. The API server checks the schema and its rules before it calls a webhook."""
    return installation.cluster.create_namespace()


def refusal(cluster: ControlPlane, document: Json) -> str:
    """Return the API server's errors about the object; empty if it is accepted."""
    written = {**document, "metadata": {"name": document["metadata"]["name"]}}
    return objects.refusal(cluster.client, document["metadata"]["namespace"], written)


@pytest.mark.parametrize("case", CASES)
def test_both_layers_agree(control_plane: ControlPlane, namespace: str, case: str) -> None:
    """The schema and the webhook refuse the same objects, with or without the webhook installed."""
    spec, valid = CASES[case]
    document = service(**spec)
    document["metadata"]["namespace"] = namespace
    assert (refusal(control_plane, document) == "") is valid
    assert (admit(document).errors == []) is valid


@pytest.mark.parametrize("message", BROKEN)
def test_the_rules_of_routes_are_the_same_in_both_forms(
    control_plane: ControlPlane, namespace: str, message: str
) -> None:
    """CEL refuses the same specs with the same message as the Python form (``tests/kube/test_gatewayapi.py``)."""
    document = service(router={"route": {"http": {"spec": BROKEN[message]}}})
    document["metadata"]["namespace"] = namespace
    assert message in refusal(control_plane, document)


def test_templates_fit_into_configs(control_plane: ControlPlane, namespace: str) -> None:
    """A templated path is invalid in a service, but valid in a config."""
    spec = rule(matches=[{"path": {"value": "/{{ .ObjectMeta.Namespace }}/{{ .ObjectMeta.Name }}"}}])
    for document, valid in ((config("c", namespace, **spec), True), (service("s", **spec), False)):
        document["metadata"]["namespace"] = namespace
        assert (refusal(control_plane, document) == "") is valid
        assert (admit(document).errors == []) is valid

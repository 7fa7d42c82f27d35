"""Parts of the route and of the endpoint picker that the presets of every edition share."""

from app.kserve import constants
from app.kserve.spec.presets.parts import GRPC_PORT, POOL_NAME, SERVICE_NAME
from app.kube.base import Json

POOL: Json = {"group": constants.POOL_GROUP, "kind": "InferencePool", "name": POOL_NAME}
SERVICE: Json = {"group": "", "kind": "Service", "name": SERVICE_NAME}
GATEWAY: Json = {
    "group": constants.GATEWAY_GROUP,
    "kind": "Gateway",
    "name": "{{ .GlobalConfig.IngressGatewayName }}",
    "namespace": "{{ .GlobalConfig.IngressGatewayNamespace }}",
}
POOL_SPEC: Json = {
    "endpointPickerRef": {
        "group": "",
        "kind": "Service",
        "name": "{{ ChildName .ObjectMeta.Name `-epp-service` }}",
        "port": {"number": GRPC_PORT},
        "failureMode": "FailOpen",
    },
    "selector": {
        "matchLabels": {
            constants.NAME: "{{ .ObjectMeta.Name }}",
            constants.PART_OF: constants.PART_OF_VALUE,
            constants.KSERVE_COMPONENT: constants.KSERVE_COMPONENT_VALUE,
        }
    },
    "targetPorts": [{"number": constants.PUBLIC_PORT}],
}
RESTRICTED: Json = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""Security context of the endpoint picker's containers."""


def to(backend: Json) -> Json:
    """Build the part of a rule that sends its requests to a backend, for as long as they take."""
    return {
        "backendRefs": [{**backend, "port": constants.PUBLIC_PORT, "weight": 1}],
        "timeouts": {"request": "0s", "backendRequest": "0s"},
    }


def prefix(path: str) -> list[Json]:
    return [{"path": {"type": "PathPrefix", "value": path}}]


def rewrite(path: str) -> list[Json]:
    """Build the filters of a rule whose backend sees ``path`` in place of the matched prefix."""
    modifier = {"type": "ReplacePrefixMatch", "replacePrefixMatch": path}
    return [{"type": "URLRewrite", "urlRewrite": {"path": modifier}}]

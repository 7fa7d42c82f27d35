"""Rules of Kubernetes types that the types alone do not express, and pools of values.

The rules are those of the API server's validation of pod templates and autoscalers. Fields of alpha feature gates, or
of a newer Kubernetes than the tests' control plane, are never written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from app.kube.base import Json
from tests.e2e.generated.draw import ABSENT, Draw, Pool, Rule

PORTS = (1, 80, 8080, 65535)
NAMES = ("a", "b-1", "some-name")
LABELS: Pool = lambda d: {key: d.choice(("", "a", "A.b_c-1")) for key in d.some(("team", "app", "example.com/tier"))}  # noqa: E731
NODE_SELECTOR: Pool = lambda d: {key: d.choice(("", "amd64")) for key in d.some(("kubernetes.io/arch", "zone"))}  # noqa: E731
PATHS = ("/", "/healthz", "/a/b?c=d")
IDS = (0, 1, 1000, 65534)
RELATIVE = ("a", "dir/file.txt")
MODES = (0o400, 0o644, 0)

_LABEL_TERM: Pool = lambda d: {"key": d.choice(("team", "zone")), **_operator(d, ("In", "NotIn"))}  # noqa: E731
_NODE_TERM: Pool = lambda d: {"key": d.choice(("zone", "gpu")), **_operator(d, ("In", "NotIn", "Gt"))}  # noqa: E731


def _operator(d: Draw, with_values: tuple[str, ...]) -> Json:
    operator = d.choice((*with_values, "Exists", "DoesNotExist"))
    if operator not in with_values:
        return {"operator": operator}
    return {"operator": operator, "values": ["5"] if operator == "Gt" else ["a", "b"][: d.randint(1, 2)]}


def _one_of(*keys: str) -> Rule:
    """Keep exactly one of these fields; draw one if there was none."""

    def rule(d: Draw, value: Json) -> None:
        kept = d.choice([key for key in keys if key in value] or keys)
        for key in keys:
            if key != kept:
                value.pop(key, None)
        if kept not in value:
            value[kept] = _MEMBERS[kept](d)

    return rule


_MEMBERS: dict[str, Callable[[Draw], Any]] = {
    "exec": lambda d: d.embedded("ExecAction"),
    "grpc": lambda d: d.embedded("GRPCAction"),
    "httpGet": lambda d: d.embedded("HTTPGetAction"),
    "tcpSocket": lambda d: d.embedded("TCPSocketAction"),
    "sleep": lambda d: d.embedded("SleepAction"),
    "configMapKeyRef": lambda d: d.embedded("ConfigMapKeySelector"),
    "secretKeyRef": lambda d: d.embedded("SecretKeySelector"),
    "fieldRef": lambda d: d.embedded("ObjectFieldSelector"),
    "resourceFieldRef": lambda d: d.embedded("ResourceFieldSelector"),
    "configMapRef": lambda d: d.embedded("ConfigMapEnvSource"),
    "secretRef": lambda d: d.embedded("SecretEnvSource"),
}


def _toleration(d: Draw, value: Json) -> None:
    if value.get("operator", "Equal") == "Exists":
        value.pop("value", None)
    elif not value.get("key"):
        value["operator"] = "Exists"
        value.pop("value", None)
    if value.get("tolerationSeconds") is not None:
        value["effect"] = "NoExecute"


def named(d: Draw, value: Json) -> None:
    """Name references whose name Kubernetes requires although the type does not."""
    value.setdefault("name", d.choice(NAMES))


def _exec(d: Draw, value: Json) -> None:
    value.setdefault("command", ["true"])


def _env(d: Draw, value: Json) -> None:
    if "valueFrom" in value:
        value.pop("value", None)


def _resource_field(d: Draw, value: Json) -> None:
    if "divisor" in value:
        value["divisor"] = d.choice(("1", "1m", "0") if value["resource"].endswith("cpu") else ("1", "1Mi", "0", 1))


def _security(d: Draw, value: Json) -> None:
    if value.get("allowPrivilegeEscalation") is False:
        value.pop("privileged", None)


def _profile(d: Draw, value: Json) -> None:
    if value["type"] == "Localhost":
        value["localhostProfile"] = "profiles/a.json"
    else:
        value.pop("localhostProfile", None)


def _resources(d: Draw, value: Json) -> None:
    """Keep requests at or below limits; resources that cannot be overcommitted are equal in both."""
    limits, requests = value.get("limits", {}), value.get("requests", {})
    for name in list(requests):
        if name in limits:
            requests[name] = limits[name]
    if "nvidia.com/gpu" in requests:
        limits["nvidia.com/gpu"] = requests["nvidia.com/gpu"]
        value["limits"] = limits


def _metric(d: Draw, value: Json) -> None:
    sources = {
        "Resource": ("resource", "ResourceMetricSource"),
        "Pods": ("pods", "PodsMetricSource"),
        "Object": ("object", "ObjectMetricSource"),
        "External": ("external", "ExternalMetricSource"),
        "ContainerResource": ("containerResource", "ContainerResourceMetricSource"),
    }
    for member, _ in sources.values():
        value.pop(member, None)
    member, type_ = sources[value["type"]]
    value[member] = d.embedded(type_)
    value[member]["target"] = _TARGETS[value["type"]](d)


def _utilization(d: Draw) -> Json:
    if d.chance(0.5):
        return {"type": "Utilization", "averageUtilization": d.choice((1, 80))}
    return _average(d)


def _average(d: Draw) -> Json:
    return {"type": "AverageValue", "averageValue": d.choice(("1500m", "1", "0.5", "1000m", 2))}


def _any_value(d: Draw) -> Json:
    return _average(d) if d.chance(0.5) else {"type": "Value", "value": d.choice(("10", "2000m", 3))}


_TARGETS: dict[str, Callable[[Draw], Json]] = {
    "Resource": _utilization,
    "ContainerResource": _utilization,
    "Pods": _average,
    "Object": _any_value,
    "External": _any_value,
}


def _affinity_term(d: Draw, value: Json) -> None:
    """Keep label keys only beside a selector that does not contain them."""
    if "labelSelector" not in value:
        value.pop("matchLabelKeys", None)
        value.pop("mismatchLabelKeys", None)


def _spread(d: Draw, value: Json) -> None:
    if "minDomains" in value:
        value["whenUnsatisfiable"] = "DoNotSchedule"
    if "labelSelector" not in value:
        value.pop("matchLabelKeys", None)


def _volume(d: Draw, value: Json) -> None:
    sources = [key for key in value if key != "name"]
    kept = d.choice(sources) if sources else "emptyDir"
    for key in sources:
        if key != kept:
            del value[key]
    value.setdefault(kept, {})


def _claim_spec(d: Draw, value: Json) -> None:
    value["accessModes"] = [d.choice(("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"))]
    size = d.choice(("1Gi", "0.5Gi", "2048Mi"))
    value["resources"] = {"requests": {"storage": size}, **({"limits": {"storage": size}} if d.chance(0.5) else {})}


def _projection(d: Draw, value: Json) -> None:
    """Keep one source, each with the same probability."""
    kept = d.choice(("configMap", "downwardAPI", "secret", "serviceAccountToken"))
    source = value.get(kept) or d.embedded(_PROJECTIONS[kept])
    value.clear()
    value[kept] = source


_PROJECTIONS = {
    "configMap": "ConfigMapProjection",
    "downwardAPI": "DownwardAPIProjection",
    "secret": "SecretProjection",
    "serviceAccountToken": "ServiceAccountTokenProjection",
}


def _downward(d: Draw, value: Json) -> None:
    value.pop("resourceFieldRef", None)
    value.pop("fieldRef", None)
    if d.chance(0.3):
        value["resourceFieldRef"] = {"containerName": "main", **d.embedded("ResourceFieldSelector")}
    else:
        value["fieldRef"] = {"fieldPath": d.choice(("metadata.name", "metadata.labels", "metadata.annotations['x']"))}


def _dns(d: Draw, value: Json) -> None:
    if value.get("dnsPolicy") == "None":
        value.setdefault("dnsConfig", {})["nameservers"] = ["192.0.2.1"]


def _items(d: Draw) -> list[Json]:
    return [{"key": key, "path": path} for key, path in d.some((("k", "a"), ("l", "dir/b")), 2)]


def _sysctls(d: Draw) -> list[Json]:
    return [{"name": name, "value": "1"} for name in d.some(("kernel.shm_rmid_forced", "net.ipv4.tcp_syncookies"))]


def _amounts(d: Draw) -> Json:
    amounts = {
        "cpu": ("1", "500m", "0.5", 2),
        "memory": ("1Gi", "1.5Gi", "2048Mi", 1000000000),
        "nvidia.com/gpu": (1, "2"),
    }
    return {name: d.choice(amounts[name]) for name in d.some(tuple(amounts))}


NEWER = (
    "ClusterTrustBundleProjection.user",
    "ConfigMapVolumeSource.defaultUser",
    "DownwardAPIVolumeFile.user",
    "DownwardAPIVolumeSource.defaultUser",
    "EmptyDirVolumeSource.mode",
    "GRPCAction.mode",
    "HTTPGetAction.protocol",
    "KeyToPath.user",
    "PodCertificateProjection.user",
    "PodSpec.evictionResponders",
    "ProjectedVolumeSource.defaultUser",
    "SecretVolumeSource.defaultUser",
    "ServiceAccountTokenProjection.user",
    "VolumeMount.bindMountOptions",
)
"""Fields in the table of types that the tests' control plane does not have."""

POOLS: Mapping[str, Pool] = {
    **dict.fromkeys(NEWER, ABSENT),
    "EnvVar.name": ("A", "B_1", "HF_TOKEN", "with.dot"),
    "EnvVarSource.fileKeyRef": ABSENT,
    "ObjectFieldSelector.fieldPath": ("metadata.name", "status.podIP", "spec.nodeName", "metadata.labels['app']"),
    "ObjectFieldSelector.apiVersion": ("v1",),
    "ResourceFieldSelector.resource": ("limits.cpu", "requests.memory"),
    "ResourceFieldSelector.containerName": ABSENT,
    "ConfigMapKeySelector.key": ("k", "a.b"),
    "ConfigMapKeySelector.name": NAMES,
    "SecretKeySelector.key": ("k", "token"),
    "SecretKeySelector.name": NAMES,
    "ConfigMapEnvSource.name": NAMES,
    "SecretEnvSource.name": NAMES,
    "EnvFromSource.prefix": ("P_", ""),
    "LocalObjectReference.name": NAMES,
    "Toleration.operator": ("Exists", "Equal"),
    "Toleration.key": ("a", "nvidia.com/gpu", ""),
    "Toleration.value": ("", "b"),
    "Toleration.effect": ("NoSchedule", "PreferNoSchedule", "NoExecute", ""),
    "Toleration.tolerationSeconds": (0, 5),
    "ExecAction.command": lambda d: ["sh", "-c", d.choice(("true", 'echo "$(A)"'))][: d.randint(1, 3)],
    "GRPCAction.port": PORTS,
    "GRPCAction.service": ("", "health"),
    "HTTPGetAction.port": (*PORTS, "http"),
    "HTTPGetAction.path": PATHS,
    "HTTPGetAction.scheme": ("HTTP", "HTTPS"),
    "HTTPGetAction.host": ("127.0.0.1",),
    "HTTPGetAction.httpHeaders": lambda d: [{"name": n, "value": d.choice(("", "x"))} for n in d.some(("A", "X-B"))],
    "TCPSocketAction.port": (*PORTS, "http"),
    "TCPSocketAction.host": ("127.0.0.1",),
    "SleepAction.seconds": (0,),
    "Lifecycle.stopSignal": ABSENT,  # only with os.name, which containers do not have
    "Probe.failureThreshold": (1, 180),
    "Probe.periodSeconds": (1, 10),
    "Probe.timeoutSeconds": (1, 5),
    "Probe.successThreshold": (1,),
    "Probe.initialDelaySeconds": (0, 15),
    "Probe.terminationGracePeriodSeconds": ABSENT,  # invalid for readiness probes; the families add it to other probes
    "SELinuxOptions.level": ("s0:c1,c2",),
    "SeccompProfile.type": ("RuntimeDefault", "Unconfined", "Localhost"),
    "SeccompProfile.localhostProfile": ("profiles/a.json",),
    "AppArmorProfile.type": ("RuntimeDefault", "Unconfined", "Localhost"),
    "AppArmorProfile.localhostProfile": ("a",),
    "Capabilities.add": lambda d: d.some(("NET_BIND_SERVICE", "IPC_LOCK")),
    "Capabilities.drop": lambda d: d.some(("ALL", "MKNOD")),
    "SecurityContext.runAsUser": IDS,
    "SecurityContext.runAsGroup": IDS,
    "SecurityContext.privileged": (False,),  # disabled in the API server of these tests
    "SecurityContext.procMount": ("Default",),
    "SecurityContext.windowsOptions": ABSENT,
    "PodSecurityContext.runAsUser": IDS,
    "PodSecurityContext.runAsGroup": IDS,
    "PodSecurityContext.fsGroup": IDS,
    "PodSecurityContext.fsGroupChangePolicy": ("OnRootMismatch", "Always"),
    "PodSecurityContext.seLinuxChangePolicy": ("Recursive",),
    "PodSecurityContext.supplementalGroups": lambda d: d.some(IDS),
    "PodSecurityContext.supplementalGroupsPolicy": ("Merge", "Strict"),
    "PodSecurityContext.sysctls": _sysctls,
    "PodSecurityContext.windowsOptions": ABSENT,  # invalid with os: linux; families without whole pods have it
    "WindowsSecurityContextOptions.hostProcess": (False,),
    "WindowsSecurityContextOptions.gmsaCredentialSpec": ("spec",),
    "WindowsSecurityContextOptions.gmsaCredentialSpecName": ("gmsa",),
    "WindowsSecurityContextOptions.runAsUserName": ("ContainerUser",),
    "ResourceRequirements.claims": ABSENT,  # refer to the pod's resourceClaims
    "ResourceRequirements.limits": _amounts,
    "ResourceRequirements.requests": _amounts,
    # Autoscaling
    "MetricSpec.type": ("Resource", "Pods", "Object", "External", "ContainerResource"),
    "ResourceMetricSource.name": ("cpu", "memory"),
    "ContainerResourceMetricSource.name": ("cpu", "memory"),
    "ContainerResourceMetricSource.container": ("model-runner",),
    "MetricIdentifier.name": ("queue-depth", "requests_per_second"),
    "CrossVersionObjectReference.kind": ("Service",),
    "CrossVersionObjectReference.name": NAMES,
    "CrossVersionObjectReference.apiVersion": ("v1",),
    "MetricTarget.type": ("AverageValue",),
    "HPAScalingPolicy.type": ("Pods", "Percent"),
    "HPAScalingPolicy.value": (1, 50),
    "HPAScalingPolicy.periodSeconds": (1, 1800),
    "HPAScalingRules.policies": lambda d: [d.embedded("HPAScalingPolicy") for _ in range(d.randint(1, 2))],
    "HPAScalingRules.selectPolicy": ("Max", "Min", "Disabled"),
    "HPAScalingRules.stabilizationWindowSeconds": (0, 300, 3600),
    "HPAScalingRules.tolerance": ("100m", "0.05", "0"),
    # Selectors
    "LabelSelector.matchLabels": LABELS,
    "LabelSelector.matchExpressions": lambda d: [d.of(_LABEL_TERM) for _ in range(d.randint(0, 2))],
    "NodeSelector.nodeSelectorTerms": lambda d: [d.embedded("NodeSelectorTerm") for _ in range(d.randint(1, 2))],
    "NodeSelectorTerm.matchExpressions": lambda d: [d.of(_NODE_TERM) for _ in range(d.randint(0, 2))],
    "NodeSelectorTerm.matchFields": ([{"key": "metadata.name", "operator": "In", "values": ["n"]}],),
    "PreferredSchedulingTerm.weight": (1, 100),
    "WeightedPodAffinityTerm.weight": (1, 100),
    "PodAffinityTerm.topologyKey": ("kubernetes.io/hostname", "zone"),
    "PodAffinityTerm.namespaces": lambda d: d.some(("default", "other")),
    "PodAffinityTerm.matchLabelKeys": (["pod-template-hash"],),
    "PodAffinityTerm.mismatchLabelKeys": (["tenant"],),
    # Pods
    "TopologySpreadConstraint.topologyKey": ("zone", "kubernetes.io/hostname"),
    "TopologySpreadConstraint.whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway"),
    "TopologySpreadConstraint.maxSkew": (1, 3),
    "TopologySpreadConstraint.minDomains": (1, 2),
    "TopologySpreadConstraint.matchLabelKeys": (["pod-template-hash"],),
    "TopologySpreadConstraint.nodeAffinityPolicy": ("Honor", "Ignore"),
    "TopologySpreadConstraint.nodeTaintsPolicy": ("Honor", "Ignore"),
    "PodDNSConfig.nameservers": lambda d: d.some(("192.0.2.1", "2001:db8::1")),
    "PodDNSConfig.searches": lambda d: d.some(("example.com", "svc.local")),
    "PodDNSConfig.options": lambda d: [d.choice(({"name": "ndots", "value": "2"}, {"name": "edns0"}))],
    "HostAlias.ip": ("192.0.2.9",),
    "HostAlias.hostnames": (["a.example.com"],),
}
"""Values by ``Type.field``."""

RULES: Mapping[str, Rule] = {
    **dict.fromkeys(("ConfigMapKeySelector", "SecretKeySelector", "ConfigMapEnvSource", "SecretEnvSource"), named),
    "LocalObjectReference": named,
    "ExecAction": _exec,
    "Probe": _one_of("exec", "grpc", "httpGet", "tcpSocket"),
    "LifecycleHandler": _one_of("exec", "httpGet", "sleep", "tcpSocket"),
    "EnvVarSource": _one_of("configMapKeyRef", "secretKeyRef", "fieldRef", "resourceFieldRef"),
    "EnvFromSource": _one_of("configMapRef", "secretRef"),
    "EnvVar": _env,
    "Toleration": _toleration,
    "ResourceFieldSelector": _resource_field,
    "SecurityContext": _security,
    "SeccompProfile": _profile,
    "AppArmorProfile": _profile,
    "ResourceRequirements": _resources,
    "MetricSpec": _metric,
    "PodAffinityTerm": _affinity_term,
    "TopologySpreadConstraint": _spread,
    "Volume": _volume,
    "PersistentVolumeClaimSpec": _claim_spec,
    "VolumeProjection": _projection,
    "DownwardAPIVolumeFile": _downward,
    "PodSpec": _dns,
}
"""Functions that make fields of one object consistent, by type."""

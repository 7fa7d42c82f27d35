"""The rules that Kubernetes has for pods, as one table, and the walk that applies them.

Types are checked before, by :mod:`app.kube.embedded.checks`; ``null`` counts as absent, and a required field that is
absent has Go's zero value. Unknown fields may be new in Kubernetes and are accepted. The numbers of the rules are those
of LK-6.4.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial

from app.hooks import sendable
from app.kube import field
from app.kube.base import Json
from app.kube.embedded.types import TYPES
from app.kube.names import is_dns1123_subdomain
from app.workload.rules import containers, placement, volumes, wholepod
from app.workload.rules import fieldrules as rules

_STANDALONE = rules.forbidden("only a standalone pod may set it; remove it")
_TOPOLOGY_KEY = rules.not_empty("name a label of the nodes, such as kubernetes.io/hostname", rules.label_key)
_PULL_POLICY = rules.one_of("Always", "IfNotPresent", "Never")
_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_PROFILE_TYPE = rules.not_empty(f"one of {', '.join(_PROFILES)}", rules.one_of(*_PROFILES))
_KEY = rules.not_empty("write the key of the object that is meant", rules.key_name)
_OBJECT = rules.has("name", "write the name of the object that is meant")
_INCLUSION = rules.one_of("Honor", "Ignore", empty=False)

RULES: dict[str, rules.Rule] = {
    # Pods that are kept running, as in a Deployment or LeaderWorkerSet.
    "PodSpec": rules.all_of(
        *(wholepod.name_servers, wholepod.shared_processes, wholepod.container_names, wholepod.host_ports),
        wholepod.hook_sleeps,
    ),
    "PodSpec.activeDeadlineSeconds": _STANDALONE,
    "PodSpec.dnsPolicy": rules.one_of("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
    "PodSpec.ephemeralContainers": _STANDALONE,
    "PodSpec.hostname": rules.dns_label,
    "PodSpec.imagePullSecrets": rules.each(rules.members(name=rules.object_name)),
    "PodSpec.initContainers": rules.each(containers.sidecar),
    "PodSpec.nodeName": rules.object_name,
    "PodSpec.nodeSelector": rules.labels,
    "PodSpec.preemptionPolicy": rules.one_of("Never", "PreemptLowerPriority", empty=False),
    "PodSpec.priorityClassName": rules.object_name,
    "PodSpec.restartPolicy": rules.one_of("Always"),
    "PodSpec.runtimeClassName": rules.object_name,
    "PodSpec.serviceAccountName": rules.object_name,
    "PodSpec.subdomain": rules.dns_label,
    "HostAlias.hostnames": rules.each(rules.matching(is_dns1123_subdomain, "must be a host name in lower case")),
    "HostAlias.ip": rules.ip,
    "PodDNSConfig.nameservers": rules.all_of(rules.at_most_items(3), rules.each(rules.ip)),
    "PodOS.name": rules.one_of("linux", "windows", empty=False),
    "PodReadinessGate.conditionType": rules.label_key,
    "PodResourceClaim": containers.either("resourceClaimName", "resourceClaimTemplateName"),
    "PodResourceClaim.name": rules.not_empty("name the claim", rules.dns_label),
    "PodResourceClaim.resourceClaimName": rules.object_name,
    "PodResourceClaim.resourceClaimTemplateName": rules.object_name,
    "PodSchedulingGate.name": rules.label_key,
    # Containers.
    "Container.image": rules.matching(lambda image: image == image.strip(), "must not begin or end with white space"),
    "Container.imagePullPolicy": _PULL_POLICY,
    "Container.name": rules.dns_label,
    "Container.ports": containers.port_names,
    "Container.restartPolicy": rules.one_of("Always", "OnFailure", "Never", empty=False),
    "Container.terminationMessagePolicy": rules.one_of("File", "FallbackToLogsOnError"),
    "ContainerPort.containerPort": rules.port_number,
    "ContainerPort.hostPort": rules.between(0, 65535),
    "ContainerPort.name": rules.port_name,
    "ContainerPort.protocol": rules.one_of("TCP", "UDP", "SCTP"),
    # Environment (LK-V-K01 to LK-V-K06, LK-V-K35).
    "EnvVar": containers.variable,
    "EnvVar.name": rules.not_empty(
        rule=rules.matching(
            re.compile(r"[ -<>-~]*").fullmatch, "must consist of printable ASCII characters other than '='"
        )
    ),
    "EnvVar.valueFrom": containers.variable_source,
    "EnvFromSource": containers.either("configMapRef", "secretRef"),
    "ConfigMapEnvSource": _OBJECT,
    "ConfigMapEnvSource.name": rules.object_name,
    "SecretEnvSource": _OBJECT,
    "SecretEnvSource.name": rules.object_name,
    "EnvVarSource.fieldRef": containers.field_reference,
    "EnvVarSource.resourceFieldRef": containers.resource_reference,
    "FileKeySelector.path": volumes.file_path,
    "ConfigMapKeySelector": _OBJECT,
    "ConfigMapKeySelector.key": _KEY,
    "ConfigMapKeySelector.name": rules.object_name,
    "SecretKeySelector": _OBJECT,
    "SecretKeySelector.key": _KEY,
    "SecretKeySelector.name": rules.object_name,
    # Probes and lifecycle hooks (LK-V-K09 to LK-V-K15).
    "Container.livenessProbe": containers.liveness,
    "Container.readinessProbe": containers.readiness,
    "Container.startupProbe": containers.liveness,
    "Probe": containers.one_handler(("exec", "grpc", "httpGet", "tcpSocket"), "; the whole probe is replaced"),
    "Probe.failureThreshold": rules.at_least(1),
    "Probe.initialDelaySeconds": rules.at_least(0),
    "Probe.periodSeconds": rules.at_least(1),
    "Probe.successThreshold": rules.at_least(1),
    "Probe.terminationGracePeriodSeconds": rules.at_least(1),
    "Probe.timeoutSeconds": rules.at_least(1),
    "LifecycleHandler": containers.one_handler(("exec", "httpGet", "sleep", "tcpSocket")),
    "ExecAction": rules.has("command"),
    "GRPCAction.port": rules.port_number,
    "HTTPGetAction.port": containers.port,
    "HTTPGetAction.scheme": rules.one_of("HTTP", "HTTPS"),
    "HTTPHeader.name": containers.header_name,
    "SleepAction.seconds": rules.at_least(0),
    "TCPSocketAction.port": containers.port,
    # Security contexts (LK-V-K16 to LK-V-K26).
    "AppArmorProfile": containers.local_profile,
    "AppArmorProfile.type": _PROFILE_TYPE,
    "PodSecurityContext.fsGroup": rules.user_id,
    "PodSecurityContext.fsGroupChangePolicy": rules.one_of("OnRootMismatch", "Always", empty=False),
    "PodSecurityContext.runAsGroup": rules.user_id,
    "PodSecurityContext.runAsUser": rules.user_id,
    "PodSecurityContext.seLinuxChangePolicy": rules.one_of("MountOption", "Recursive", empty=False),
    "PodSecurityContext.supplementalGroups": rules.each(rules.user_id),
    "PodSecurityContext.supplementalGroupsPolicy": rules.one_of("Merge", "Strict", empty=False),
    "SeccompProfile": containers.local_profile,
    "SeccompProfile.localhostProfile": rules.relative_path,
    "SeccompProfile.type": _PROFILE_TYPE,
    "SecurityContext": containers.privilege_escalation,
    "SecurityContext.procMount": rules.one_of("Default", "Unmasked", empty=False),
    "SecurityContext.runAsGroup": rules.user_id,
    "SecurityContext.runAsUser": rules.user_id,
    "Sysctl.name": containers.sysctl_name,
    # Placement (LK-V-K08 and LK-V-K28 to LK-V-K31).
    "LabelSelector.matchLabels": rules.labels,
    "LabelSelectorRequirement": placement.requirement(placement.LABEL_OPERATORS),
    "NodeSelector.nodeSelectorTerms": rules.not_empty("give at least one term"),
    "NodeSelectorTerm.matchExpressions": rules.each(placement.requirement(placement.NODE_OPERATORS)),
    "NodeSelectorTerm.matchFields": rules.each(placement.node_field),
    "PodAffinityTerm.topologyKey": _TOPOLOGY_KEY,
    "PodSpec.topologySpreadConstraints": placement.spread_pairs,
    "PodAffinityTerm.namespaces": rules.each(rules.dns_label),
    "PreferredSchedulingTerm.weight": rules.between(1, 100),
    "Toleration": placement.toleration,
    "Toleration.effect": rules.one_of("NoSchedule", "PreferNoSchedule", "NoExecute"),
    "Toleration.operator": rules.one_of(*placement.TOLERATION_OPERATORS),
    "TopologySpreadConstraint": placement.spread,
    "TopologySpreadConstraint.maxSkew": rules.at_least(1),
    "TopologySpreadConstraint.minDomains": rules.at_least(1),
    "TopologySpreadConstraint.nodeAffinityPolicy": _INCLUSION,
    "TopologySpreadConstraint.nodeTaintsPolicy": _INCLUSION,
    "TopologySpreadConstraint.topologyKey": _TOPOLOGY_KEY,
    "TopologySpreadConstraint.whenUnsatisfiable": rules.one_of("DoNotSchedule", "ScheduleAnyway", empty=False),
    "WeightedPodAffinityTerm.weight": rules.between(1, 100),
    # Volumes and mounts (LK-V-K32 to LK-V-K34).
    **dict.fromkeys(
        (
            *("ConfigMapVolumeSource.defaultMode", "DownwardAPIVolumeSource.defaultMode"),
            *("ProjectedVolumeSource.defaultMode", "SecretVolumeSource.defaultMode"),
            *("DownwardAPIVolumeFile.mode", "KeyToPath.mode"),
        ),
        volumes.file_mode,
    ),
    "ConfigMapProjection.name": rules.object_name,
    "ConfigMapVolumeSource": rules.has("name", "name the ConfigMap"),
    "ConfigMapVolumeSource.name": rules.object_name,
    "EmptyDirVolumeSource.sizeLimit": volumes.size_limit,
    "ImageVolumeSource.pullPolicy": _PULL_POLICY,
    "NFSVolumeSource.path": rules.matching(lambda path: path.startswith("/"), "must be an absolute path"),
    "NFSVolumeSource.server": rules.not_empty("name the host of the file server"),
    "SecretProjection.name": rules.object_name,
    "SecretVolumeSource": rules.has("secretName", "name the Secret"),
    "SecretVolumeSource.secretName": rules.object_name,
    "ClusterTrustBundleProjection.path": volumes.file_path,
    "DownwardAPIVolumeFile.path": volumes.file_path,
    "HostPathVolumeSource.path": volumes.host_path,
    "HostPathVolumeSource.type": rules.one_of(
        *("DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice")
    ),
    "KeyToPath.path": volumes.file_path,
    "PersistentVolumeClaimSpec": rules.all_of(
        rules.has("accessModes", "for example [ReadWriteOnce]"), volumes.claim_size
    ),
    "PersistentVolumeClaimSpec.accessModes": rules.each(rules.one_of(*volumes.ACCESS_MODES, empty=False)),
    "PersistentVolumeClaimSpec.storageClassName": rules.object_name,
    "PersistentVolumeClaimSpec.volumeMode": rules.one_of("Block", "Filesystem", empty=False),
    "PersistentVolumeClaimVolumeSource.claimName": rules.not_empty("name the claim", rules.object_name),
    "ServiceAccountTokenProjection.expirationSeconds": rules.between(600, 2**32),
    "ServiceAccountTokenProjection.path": volumes.file_path,
    "Volume": volumes.one_source,
    "Volume.name": rules.dns_label,
    "VolumeMount": volumes.one_sub_path,
    "VolumeMount.mountPropagation": rules.one_of("Bidirectional", "HostToContainer", "None", empty=False),
    "VolumeMount.mountPath": volumes.mount_path,
    "VolumeMount.subPath": rules.relative_path,
    "VolumeMount.subPathExpr": rules.relative_path,
}
"""The rule between the fields of a type, by type, and the rule for one field, by ``type.field``."""

POD = "PodTemplateSpec.spec"
_ZERO_VALUES: dict[str, object] = {"string": "", "int32": 0, "int64": 0, "int-or-string": 0}


def check(place: str, value: object, path: field.Path) -> Iterator[field.Error]:
    """Yield the errors of a field of one of Kubernetes' types, such as ``PodSpec.tolerations``, and of all below it."""
    for rule in _rules(place) if value is not None else ():
        yield from rule(value, path)


def check_embedded(place: str, value: object, path: field.Path) -> Iterator[field.Error]:
    """Yield the errors of :func:`check`, then those of values that Metacontroller cannot apply."""
    yield from check(place, value, path)
    yield from sendable.check(value, path)


@cache
def _rules(place: str) -> Sequence[rules.Rule]:
    """Return the rule of a field, if it has one, and what runs those below it, if there are any."""
    owner, _, name = place.partition(".")
    declared = TYPES[owner][name]
    checks = [RULES[place]] if place in RULES else []
    if declared.type in TYPES and (declared.type in RULES or _fields(declared.type)):
        below = partial(_members, declared.type)
        checks.append(rules.each(below) if declared.container == "[]" else below)
    return checks


@cache
def _fields(type_name: str) -> Mapping[str, Sequence[rules.Rule]]:
    """Return the fields of a type that have rules, themselves or below."""
    by_name = {name: _rules(f"{type_name}.{name}") for name in TYPES[type_name]}
    return {name: rules_ for name, rules_ in by_name.items() if rules_}


@cache
def _zero_values(type_name: str) -> Json:
    """Return the values that Go gives to required fields with rules where they are not written."""
    declared = {name: TYPES[type_name][name] for name in _fields(type_name)}
    return {
        name: [] if field_.container == "[]" else _ZERO_VALUES.get(field_.type, {})
        for name, field_ in declared.items()
        if field_.required
    }


def _members(type_name: str, value: rules.Json, path: field.Path) -> Iterator[field.Error]:
    if rule := RULES.get(type_name):
        yield from rule(value, path)
    written = {name: item for name, item in value.items() if item is not None}
    items = written if "$patch" in value else _zero_values(type_name) | written
    for name, rules_ in _fields(type_name).items():
        if name in items:
            for rule in rules_:
                yield from rule(items[name], path.child(name))

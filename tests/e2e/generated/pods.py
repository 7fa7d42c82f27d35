"""Whole pods: containers that mount the pod's volumes, unique names, and every other field of a PodSpec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.kube.base import Json
from tests.e2e.generated import kubernetes
from tests.e2e.generated.draw import ABSENT, Draw, Pool, Rule
from tests.e2e.generated.kubernetes import LABELS, MODES, NAMES, NODE_SELECTOR, RELATIVE

_OWN = ("containers", "initContainers", "volumes")
"""Fields of a pod that :func:`pod` makes itself, because they refer to each other."""

_CLAIMS: tuple[Json, ...] = (
    {"name": "one", "resourceClaimName": "x"},
    {"name": "two", "resourceClaimTemplateName": "x"},
)
_PORTS = {"web": 2001, "rpc": 65535, "debug": 1}
_CPU = ("cpu", "memory")
_SYSTEM = (
    *("name", "namespace", "generateName", "uid", "selfLink", "resourceVersion", "generation", "managedFields"),
    *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "finalizers", "ownerReferences"),
)
"""Metadata without a meaning in a template."""

POOLS: Mapping[str, Pool] = {
    **kubernetes.POOLS,
    "PodSpec.activeDeadlineSeconds": ABSENT,  # not for pods of a Deployment
    "PodSpec.ephemeralContainers": ABSENT,  # not in templates
    "PodSpec.schedulingGroup": ABSENT,
    "PodSpec.hostnameOverride": ABSENT,
    "PodSpec.dnsPolicy": ("ClusterFirst", "Default", "None"),
    "PodSpec.hostAliases": lambda d: [d.embedded("HostAlias")],
    "PodSpec.hostname": ("h",),
    "PodSpec.subdomain": ("sub",),
    "PodSpec.hostNetwork": (False,),
    "PodSpec.hostUsers": (True, False),
    "PodSpec.hostPID": (False,),
    "PodSpec.hostIPC": (False,),
    "PodSpec.imagePullSecrets": lambda d: [{"name": name} for name in d.some(NAMES)],
    "PodSpec.nodeName": ("node-0",),
    "PodSpec.nodeSelector": NODE_SELECTOR,
    "PodSpec.os": ({"name": "linux"},),
    "PodSpec.overhead": ({"cpu": "100m"}, {"memory": "0.5Gi"}),
    "PodSpec.preemptionPolicy": ("Never", "PreemptLowerPriority"),
    "PodSpec.priority": (0, 10),
    "PodSpec.priorityClassName": ("gold",),
    "PodSpec.readinessGates": ([{"conditionType": "example.com/ready"}],),
    "PodSpec.resourceClaims": lambda d: [d.choice(_CLAIMS)],
    "PodSpec.resources": ABSENT,  # must equal the sum of all containers
    "PodSpec.restartPolicy": ("Always",),
    "PodSpec.runtimeClassName": ("nvidia",),
    "PodSpec.schedulerName": ("other-scheduler", "default-scheduler"),
    "PodSpec.schedulingGates": ([{"name": "example.com/wait"}],),
    "PodSpec.serviceAccount": ABSENT,  # the old name of serviceAccountName
    "PodSpec.serviceAccountName": ("default", "runner"),
    "PodSpec.terminationGracePeriodSeconds": (0, 1, 300),
    "PodSpec.topologySpreadConstraints": lambda d: [d.embedded("TopologySpreadConstraint")],
    "Container.image": ("example.com/server:1", "registry.example.com:5000/a/b@sha256:" + "a" * 64),
    "Container.imagePullPolicy": ("Always", "IfNotPresent", "Never"),
    "Container.restartPolicy": ABSENT,
    "Container.restartPolicyRules": ABSENT,
    "Container.resizePolicy": lambda d: [{"resourceName": n, "restartPolicy": "NotRequired"} for n in d.some(_CPU)],
    "Container.terminationMessagePath": ("/dev/termination-log", "/tmp/log"),
    "Container.terminationMessagePolicy": ("File", "FallbackToLogsOnError"),
    "Container.stdinOnce": (False,),
    "Container.env": lambda d: [d.embedded("EnvVar", name=name) for name in d.some(("A", "B_1", "HF_HUB_CACHE"))],
    "Container.envFrom": lambda d: [d.embedded("EnvFromSource") for _ in range(d.randint(0, 2))],
    "Container.args": lambda d: d.some(("--port", "8080", "$(A)", "", "{}", "a b"), 4),
    "Container.command": lambda d: d.some(("server", "sh", "-c"), 2),
    "Container.workingDir": ("/work", ""),
    "ContainerPort.hostIP": ("127.0.0.1",),
    "ContainerPort.hostPort": ABSENT,
    "ContainerPort.protocol": ("TCP",),
    "Container.volumeDevices": ABSENT,  # only for claims of mode Block
    "VolumeMount.mountPropagation": ("None", "HostToContainer"),
    "VolumeMount.recursiveReadOnly": ABSENT,
    "VolumeMount.subPath": ("", "dir/file"),
    "VolumeMount.subPathExpr": ABSENT,
    "KeyToPath.key": ("k",),
    "KeyToPath.path": RELATIVE,
    "KeyToPath.mode": MODES,
    "ConfigMapVolumeSource.items": lambda d: [d.embedded("KeyToPath", path="a")],
    "ConfigMapVolumeSource.name": NAMES,
    "ConfigMapVolumeSource.defaultMode": MODES,
    "SecretVolumeSource.items": lambda d: [d.embedded("KeyToPath", path="b/c")],
    "SecretVolumeSource.secretName": NAMES,
    "SecretVolumeSource.defaultMode": MODES,
    "ConfigMapProjection.items": lambda d: [d.embedded("KeyToPath", path="a")],
    "ConfigMapProjection.name": NAMES,
    "SecretProjection.items": lambda d: [d.embedded("KeyToPath", path="b")],
    "SecretProjection.name": NAMES,
    "ServiceAccountTokenProjection.path": ("token",),
    "ServiceAccountTokenProjection.audience": ("vault",),
    "ServiceAccountTokenProjection.expirationSeconds": (600, 3600),
    "ClusterTrustBundleProjection.path": ("ca.pem",),
    "ProjectedVolumeSource.sources": lambda d: [d.embedded("VolumeProjection")],
    "ProjectedVolumeSource.defaultMode": MODES,
    "VolumeProjection.clusterTrustBundle": ABSENT,
    "VolumeProjection.podCertificate": ABSENT,
    "DownwardAPIVolumeSource.items": lambda d: [d.embedded("DownwardAPIVolumeFile")],
    "DownwardAPIVolumeSource.defaultMode": MODES,
    "DownwardAPIProjection.items": lambda d: [d.embedded("DownwardAPIVolumeFile")],
    "DownwardAPIVolumeFile.path": ("labels",),
    "DownwardAPIVolumeFile.mode": MODES,
    "EmptyDirVolumeSource.medium": ("", "Memory"),
    "EmptyDirVolumeSource.sizeLimit": ("1Gi", "1000Mi", "0.5Gi", 1024),
    "EphemeralVolumeSource.volumeClaimTemplate": lambda d: d.embedded("PersistentVolumeClaimTemplate"),
    "HostPathVolumeSource.path": ("/srv/models",),
    "HostPathVolumeSource.type": ("", "Directory", "DirectoryOrCreate"),
    "ImageVolumeSource.reference": ("example.com/model:1",),
    "ImageVolumeSource.pullPolicy": ("Always", "IfNotPresent"),
    "PersistentVolumeClaimVolumeSource.claimName": NAMES,
    "PersistentVolumeClaimSpec.dataSource": ABSENT,
    "PersistentVolumeClaimSpec.dataSourceRef": ABSENT,
    "PersistentVolumeClaimSpec.storageClassName": ("", "fast"),
    "PersistentVolumeClaimSpec.volumeAttributesClassName": ("silver",),
    "PersistentVolumeClaimSpec.volumeMode": ("Filesystem",),
    "PersistentVolumeClaimSpec.volumeName": ("pv",),
    "PersistentVolumeClaimTemplate.metadata": lambda d: d.embedded("ObjectMeta"),
    **{f"ObjectMeta.{key}": ABSENT for key in _SYSTEM},
    "ObjectMeta.labels": LABELS,
    "ObjectMeta.annotations": lambda d: {key: d.choice(("", "x", "{}")) for key in d.some(("a", "b.c/d"))},
    **{f"CSIVolumeSource.{k}": v for k, v in {"driver": ("csi.example.com",), "fsType": ("ext4",)}.items()},
    "CSIVolumeSource.volumeAttributes": lambda d: {"a": d.choice(("", "x"))},
    "NFSVolumeSource.path": ("/exports",),
    "NFSVolumeSource.server": ("nfs.example.com",),
    **{f"ISCSIVolumeSource.{k}": v for k, v in {"iqn": ("iqn.2001-04.com.example:a",), "lun": (0, 1)}.items()},
    "ISCSIVolumeSource.targetPortal": ("192.0.2.3:3260",),
    "ISCSIVolumeSource.initiatorName": ("iqn.2001-04.com.example:b",),
    "ISCSIVolumeSource.chapAuthDiscovery": (False,),
    "ISCSIVolumeSource.chapAuthSession": (False,),
    "FCVolumeSource.targetWWNs": (["500a0982991b8dc5"],),
    "FCVolumeSource.lun": (0, 2),
    "FCVolumeSource.wwids": ABSENT,
    "CephFSVolumeSource.monitors": (["192.0.2.4:6789"],),
    "RBDVolumeSource.monitors": (["192.0.2.4:6789"],),
    "RBDVolumeSource.image": ("image",),
    "FlexVolumeSource.driver": ("example.com/driver",),
    "Volume.flocker": ABSENT,
    "Volume.awsElasticBlockStore": ({"volumeID": "vol-1", "fsType": "ext4", "partition": 0},),
    "Volume.azureDisk": ({"diskName": "d", "diskURI": "https://example.com/d.vhd", "kind": "Shared"},),
    "Volume.azureFile": ({"secretName": "s", "shareName": "x", "readOnly": True},),
    "Volume.cinder": ({"volumeID": "v", "secretRef": {"name": "s"}},),
    "Volume.gcePersistentDisk": ({"pdName": "p", "partition": 1},),
    "Volume.gitRepo": ABSENT,
    "Volume.glusterfs": ({"endpoints": "e", "path": "p"},),
    "Volume.photonPersistentDisk": ({"pdID": "p"},),
    "Volume.portworxVolume": ({"volumeID": "v"},),
    "Volume.quobyte": ({"registry": "q:7861", "volume": "v"},),
    "Volume.scaleIO": ({"gateway": "https://g", "system": "s", "secretRef": {"name": "s"}, "volumeName": "v"},),
    "Volume.storageos": ({"volumeName": "v", "volumeNamespace": "n"},),
    "Volume.vsphereVolume": ({"volumePath": "[d] v"},),
}


def _secret(d: Draw, value: Json) -> None:
    value.setdefault("secretName", "s")


def _fibre(d: Draw, value: Json) -> None:
    value.setdefault("targetWWNs", ["500a0982991b8dc5"])
    value.setdefault("lun", 0)


RULES: Mapping[str, Rule] = {
    **kubernetes.RULES,
    **{f"ConfigMap{part}": kubernetes.named for part in ("VolumeSource", "Projection")},
    "SecretProjection": kubernetes.named,
    "SecretVolumeSource": _secret,
    "FCVolumeSource": _fibre,
    "ImageVolumeSource": lambda _, value: value.setdefault("reference", "example.com/model:1"),  # required since 1.37
    "EphemeralVolumeSource": lambda d, value: value.setdefault(
        "volumeClaimTemplate", {"spec": d.embedded("PersistentVolumeClaimSpec")}
    ),
}


def pod(d: Draw, *names: str, without: Sequence[str] = (), container_without: Sequence[str] = ()) -> Json:
    """Return a pod spec with a container of each name; volumes, mounts and ports are consistent."""
    volumes = [volume(d, f"v{number}") for number in range(d.randint(0, 3))]
    value = d.embedded(
        "PodSpec",
        without=(*_OWN[1:], *without),
        containers=[_container(d, n, volumes, container_without) for n in names],
    )
    if volumes:
        value["volumes"] = volumes
    if d.chance() and "initContainers" not in without:
        value["initContainers"] = [_init_container(d, f"init-{n}", volumes) for n in range(d.randint(1, 2))]
    return value


def volume(d: Draw, name: str) -> Json:
    """Return a volume of any kind; projected ones are more frequent, because they have several kinds of sources."""
    if d.chance(0.3):
        return {
            "name": name,
            "projected": d.embedded("ProjectedVolumeSource", sources=[d.embedded("VolumeProjection")]),
        }
    if d.chance(0.1):
        return {"name": name, "ephemeral": d.embedded("EphemeralVolumeSource")}
    return d.embedded("Volume", name=name)


def _container(d: Draw, name: str, volumes: Sequence[Json], without: Sequence[str]) -> Json:
    mounts = [
        d.embedded("VolumeMount", name=volume["name"], mountPath=f"/mnt/{volume['name']}", mountPropagation="None")
        for volume in volumes
        if d.chance(0.6)
    ]
    value = d.embedded(
        "Container",
        without=("ports", "volumeMounts", "volumeDevices", *without),
        name=name,
        image=d.of(POOLS["Container.image"]),
    )
    if mounts:
        value["volumeMounts"] = mounts
    listed = [
        d.embedded("ContainerPort", containerPort=number, name=port)
        for port, number in d.some(tuple(_PORTS.items()), 2)
    ]
    if listed and d.chance(0.7):
        value["ports"] = listed
    for purpose in ("livenessProbe", "startupProbe"):
        if purpose in value and d.chance(0.3):
            value[purpose]["terminationGracePeriodSeconds"] = d.choice((1, 60))
    return value


def _init_container(d: Draw, name: str, volumes: Sequence[Json]) -> Json:
    """Return an init container that ends, or a sidecar; only sidecars may have probes."""
    sidecar = d.chance(0.3)
    without = () if sidecar else ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle")
    value = _container(d, name, volumes, without)
    if sidecar:
        value["restartPolicy"] = "Always"
    return value

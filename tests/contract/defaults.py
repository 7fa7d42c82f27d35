"""The API server's defaults of a stored pod template."""

from __future__ import annotations

import copy
from collections.abc import Iterator

from app.kube.base import Json
from tests.changed import copied

_POD = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "securityContext": {},
}
_CONTAINER = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "IfNotPresent",
    "resources": {},
}
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}


def defaulted(workload: Json) -> Json:
    """Return a Deployment or LeaderWorkerSet with the API server's defaults; other objects unchanged."""
    workload = copied(workload)
    for template in _templates(workload):
        template.setdefault("metadata", {})["creationTimestamp"] = None
        pod = template["spec"]
        _add(pod, _POD)
        if pod.get("serviceAccountName"):
            pod["serviceAccount"] = pod["serviceAccountName"]
        for container in [*(pod.get("initContainers") or ()), *(pod.get("containers") or ())]:
            _container(container)
        for volume in pod.get("volumes") or ():
            for source in ("secret", "configMap", "projected", "downwardAPI"):
                if source in volume:
                    volume[source].setdefault("defaultMode", 420)
    return workload


def _templates(workload: Json) -> Iterator[Json]:
    spec = workload.get("spec") or {}
    group = spec.get("leaderWorkerTemplate") or {}
    parts = (spec.get("template"), group.get("leaderTemplate"), group.get("workerTemplate"))
    yield from (part for part in parts if part and workload["kind"] in ("Deployment", "LeaderWorkerSet"))


def _container(container: Json) -> None:
    _add(container, _CONTAINER)
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for variable in container.get("env") or ():
        if "fieldRef" in variable.get("valueFrom", {}):
            variable["valueFrom"]["fieldRef"].setdefault("apiVersion", "v1")
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        if name in container:
            _add(container[name], _PROBE)
            if "httpGet" in container[name]:
                _add(container[name]["httpGet"], {"path": "/", "scheme": "HTTP"})


def _add(target: Json, values: Json) -> None:
    for key, value in values.items():
        target.setdefault(key, copy.deepcopy(value))

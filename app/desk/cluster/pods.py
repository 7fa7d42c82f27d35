"""The pods of an object of a cluster, their events, and the command that shows more."""

from collections.abc import Iterator

from app.desk.cluster.live import ready
from app.desk.cluster.store import Store, inner_key
from app.kube.base import Json
from app.workload.readiness.pods import JOB_NAMES, LWS_NAME

EVENTS_SHOWN = 5


def descendants(objects: Store, parent: Json) -> list[Json]:
    results: list[Json] = []
    waiting = [parent]
    while waiting:
        owned = objects.owned_by(waiting.pop()["metadata"]["uid"]).values()
        results += owned
        waiting += owned
    return results


def pods_of(objects: Store, workloads: list[Json]) -> list[Json]:
    results = {inner_key(pod): pod for workload in workloads for pod in selected(objects, workload)}
    return [results[key] for key in sorted(results)]


def selected(objects: Store, workload: Json) -> list[Json]:
    labels, namespace = _labels(workload), workload["metadata"].get("namespace")
    groups = [objects.labelled("Pod.v1", label, value) for label, value in labels.items()]
    pods = [pod for pod in min(groups, key=len, default={}).values() if pod["metadata"].get("namespace") == namespace]
    return [pod for pod in pods if labels.items() <= (pod["metadata"].get("labels") or {}).items()]


def _labels(workload: Json) -> dict[str, str]:
    if workload["kind"] == "LeaderWorkerSet":
        return {LWS_NAME: workload["metadata"]["name"]}
    if workload["kind"] not in ("Deployment", "Job", "StatefulSet"):
        return {}
    chosen: dict[str, str] = ((workload.get("spec") or {}).get("selector") or {}).get("matchLabels") or {}
    if not chosen and workload["kind"] == "Job":  # only the API server writes its selector
        return {JOB_NAMES[0]: workload["metadata"]["name"]}
    return chosen


def pod_line(pod: Json) -> str:
    phase = (pod.get("status") or {}).get("phase", "Pending")
    waits = [f"{name} {state['reason']}" for name, state in _troubled(pod) if state.get("reason")]
    return ", ".join([f"{pod['metadata']['name']}: {phase}", "ready" if is_ready(pod) else "not ready", *waits])


def is_ready(pod: Json) -> bool:
    return (pod.get("status") or {}).get("phase") == "Succeeded" or ready(pod).get("status") == "True"


def _troubled(pod: Json) -> Iterator[tuple[str, Json]]:
    status = pod.get("status") or {}
    for container in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
        state: Json = container.get("state") or {}
        if "waiting" in state:
            yield container["name"], state["waiting"] or {}
        elif (state.get("terminated") or {}).get("exitCode"):
            yield container["name"], state["terminated"]


def warnings_of(events: list[Json], documents: list[Json]) -> list[str]:
    """Return the newest events of these objects that are not Normal, oldest first."""
    uids = {d["metadata"].get("uid") for d in documents}
    warnings = [e for e in events if (e.get("involvedObject") or {}).get("uid") in uids and e.get("type") != "Normal"]
    warnings.sort(key=lambda e: str(e.get("lastTimestamp") or e.get("eventTime") or ""))
    return [
        f"{e['involvedObject'].get('kind')}/{e['involvedObject'].get('name')} {e.get('reason', '')}: "
        f"{str(e.get('message', '')).strip()}"
        for e in warnings[-EVENTS_SHOWN:]
    ]


def next_command(target: str, namespace: str, pods: list[Json]) -> str:
    """Return the command to run next: the log of the first failing container, or else ``kubectl describe``."""
    place = f" -n {namespace}" if namespace else ""
    for pod in pods:
        if is_ready(pod):
            continue
        name = pod["metadata"]["name"]
        for container, state in _troubled(pod):
            if state.get("reason") == "CrashLoopBackOff":
                return f"kubectl logs {name}{place} -c {container} --previous"
            if "exitCode" in state:
                return f"kubectl logs {name}{place} -c {container}"
        started = (pod.get("status") or {}).get("phase") == "Running"
        return f"kubectl logs {name}{place} --all-containers" if started else f"kubectl describe pod {name}{place}"
    return f"kubectl describe {target}{place}"

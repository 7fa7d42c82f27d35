"""Traffic inside the cluster with TLS, for which no certificate is made here. Source: KS-3.10."""

from collections.abc import Iterator

from app.hooks.protocol import get
from app.hooks.template import running_template
from app.kserve.constants import MAIN, ROUTING_SIDECAR
from app.kserve.llminferenceservice.observed import ReconcileContext
from app.kserve.spec.effective import EffectiveSpec
from app.kserve.spec.presets.parts import CERTIFICATES_PATH
from app.kube.base import Json
from app.kube.field import Advice, Path, advice
from app.workload.engines.commandline import words


def scheme(spec: EffectiveSpec, context: ReconcileContext) -> str:
    """Return ``https`` where traffic is encrypted and the pods that run, or those to start, speak TLS."""
    if not context.encrypts:
        return "http"
    return "https" if _speaks_tls(_running_pod(spec, context) or spec.template or {}) else "http"


def _running_pod(spec: EffectiveSpec, context: ReconcileContext) -> Json | None:
    """Return the pod that takes the requests, as it runs: a release keeps it while nothing else changes."""
    names, groups = context.names, context.children.leader_worker_sets
    group = get(groups, names.multi_node, context.metadata.namespace) if groups is not None else None
    observed = context.deployment(names.main) if spec.worker is None else group
    template = running_template(observed) if observed is not None else None
    part = (template or {}).get("leaderTemplate") or (template or {}).get("workerTemplate") or template
    return part.get("spec") if isinstance(part, dict) else None


def _speaks_tls(pod: Json) -> bool:
    """Report whether the container that takes requests is probed by HTTPS."""
    by_name = {
        container.get("name"): container for key in ("initContainers", "containers") for container in pod.get(key) or ()
    }
    server = by_name.get(ROUTING_SIDECAR) or by_name.get(MAIN) or {}
    probe = (server.get("readinessProbe") or {}).get("httpGet") or {}
    return probe.get("scheme") == "HTTPS"


def tls_advice(pod: Json | None, path: Path, secret: str) -> Iterator[Advice]:
    """Warn of certificates that may be missing in ``secret``."""
    for name in ("initContainers", "containers"):
        for where, container in path.child(name).each((pod or {}).get(name) or ()):
            yield from _certificates(container or {}, where, secret)


def _certificates(container: Json, path: Path, secret: str) -> Iterator[Advice]:
    """Warn of options with the path of certificates that nothing mounts."""
    mounted = any((mount or {}).get("mountPath") == CERTIFICATES_PATH for mount in container.get("volumeMounts") or ())
    if not mounted and any(CERTIFICATES_PATH in word for word in words(container)):
        message = f"reads {CERTIFICATES_PATH}, and no certificate is made here; put one into Secret {secret}"
        yield advice(path, f"{message} (cert-manager can), or remove the options")

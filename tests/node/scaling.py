"""Autoscaling up under load and down again: real Prometheus, metrics adapter, autoscalers and llama.cpp."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import httpx

from app.kserve.workload.scaling import METRIC
from tests.e2e.controlplane import TIMEOUT
from tests.node import prometheus, samples
from tests.node.images import ROOT
from tests.node.report import step
from tests.node.samples import model, service
from tests.node.world import SERVICES, World

_BUSY = "llamacpp:requests_processing"
_TRIGGER = {"type": "AverageValue", "averageValue": "500m"}
"""Half a request for each pod: one client that sends requests continuously is too many for one pod."""
_SELECTORS = {
    "follows": "app=follows",
    "plays": "llmaz.io/model-name=plays",
    "varies": "app.kubernetes.io/name=varies",
}
"""A service of each family, with the selector of its pods."""


def _services(world: World, namespace: str) -> dict[str, str]:
    """Create a ready service of each family with its autoscaler; return the address of each.

    llm-d's autoscaler is simulated: it requests two pods of the LLMInferenceService while one of its pods is busy.
    """
    # Limit CPU so that requests take long, without using the whole machine.
    limit = {"type": "Container", "default": {"cpu": "300m"}, "defaultRequest": {"cpu": "10m"}}
    limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "slow"}, "spec": {"limits": [limit]}}
    pods = {"type": "Pods", "pods": {"metric": {"name": _BUSY}, "target": _TRIGGER}}
    elastic = {"minReplicas": 1, "maxReplicas": 2, "scaleTrigger": {"hpa": {"metrics": [pods]}}}
    busy = {"type": "Pods", "name": _BUSY, "targetAverageValue": "500m"}
    folder = world.host_model.parent
    world.apply(
        namespace,
        limits,
        model("tiny", f"{world.files.url}/tiny.gguf"),
        service(
            "follows",
            "tiny",
            autoscaling={"minReplicas": 1, "maxReplicas": 2, "metrics": [busy]},
            extraArgs=["--threads", "1"],
        ),
        samples.runtime("plays"),
        samples.open_model("plays", world.host_model),
        samples.playground("plays", "plays", "plays", elasticConfig=elastic),
        samples.volume("scaled", folder.parent),
        samples.claim("scaled", "scaled"),
        samples.llm_service(
            "varies", f"pvc://scaled/{folder.name}", scaling={"minReplicas": 1, "maxReplicas": 3, "wva": {"hpa": {}}}
        ),
    )
    wanted = f'1 + clamp_max(sum by (namespace) (max_over_time({_BUSY}{{pod=~"varies-.*"}}[20s])), 1)'
    named = f'label_replace({wanted}, "exported_namespace", "$1", "namespace", "(.*)")'
    played = f'label_replace({named}, "variant_name", "varies-kserve-va", "", "")'
    with step("Prometheus and its adapter started"):
        world.apply(prometheus.NAMESPACE, *prometheus.manifests({METRIC: played}))
        kubectl = world.cluster.kubectl
        kubectl("apply", "--server-side", "-k", ROOT / "manifests/components/prometheus-adapter")
        kubectl("-n", prometheus.NAMESPACE, "rollout", "status", "deployment/prometheus", TIMEOUT)
        kubectl("-n", "model-metrics", "rollout", "status", "deployment/prometheus-adapter", TIMEOUT)
        kubectl("wait", "--for=condition=Available", "apiservice/v1beta2.custom.metrics.k8s.io", TIMEOUT)
    world.wait_true(SERVICES, "follows", namespace)
    world.wait_true("playgrounds", "plays", namespace)
    world.wait_true("llminferenceservices", "varies", namespace)
    return {
        "follows": f"http://follows.{namespace}:8080",
        "plays": f"http://plays-lb.{namespace}:8080",
        "varies": f"http://varies-kserve-workload-svc.{namespace}:8000",
    }


@contextlib.contextmanager
def _asking(*urls: str) -> Iterator[None]:
    """Run one client for each service that asks for long answers, one after the other."""
    ended = threading.Event()

    def ask(url: str) -> None:
        message = {"role": "user", "content": "hello"}
        body = {"messages": [message], "max_tokens": 400, "ignore_eos": True, "model": "varies"}
        while not ended.is_set():
            with contextlib.suppress(httpx.HTTPError):  # kube-proxy learns of a new pod only once it is ready
                httpx.post(f"{url}/v1/chat/completions", json=body, timeout=60, trust_env=False)

    clients = [threading.Thread(target=ask, args=(url,), daemon=True) for url in urls]
    for client in clients:
        client.start()
    try:
        yield
    finally:
        ended.set()
        for client in clients:
            client.join(90)


def scale_up_and_down(world: World) -> None:
    """Assert that load makes a second pod and silence takes it away.

    All three families scale at once, each through its Service, and not beyond what the metric requires.
    """
    namespace = world.cluster.create_namespace()
    services = _services(world, namespace)

    def ready() -> dict[str, int]:
        return {name: len(world.restarts(namespace, selector)) for name, selector in _SELECTORS.items()}

    def pods() -> dict[str, int]:
        return {name: len(world.pods(namespace, selector)) for name, selector in _SELECTORS.items()}

    assert ready() == dict.fromkeys(services, 1)
    with _asking(*services.values()):
        world.wait_for("two ready pods of each", ready, lambda replicas: replicas == dict.fromkeys(services, 2))
        _everything_is_scraped(world, namespace)
        assert pods()["varies"] == 2
    world.wait_for("one pod of each", pods, lambda replicas: replicas == dict.fromkeys(services, 1))
    for kind, name in ((SERVICES, "follows"), ("playgrounds", "plays"), ("llminferenceservices", "varies")):
        world.wait_true(kind, name, namespace)


def _everything_is_scraped(world: World, namespace: str) -> None:
    """Wait until every ready engine pod is a target of our PodMonitors, and all of these are up."""

    def health() -> dict[str, str]:
        try:
            healths = prometheus.targets()
        except httpx.TransportError:  # it is slow on a busy machine
            return {}
        names = [pod["metadata"]["name"] for selector in _SELECTORS.values() for pod in world.pods(namespace, selector)]
        return {name: healths.get((namespace, name), "no target") for name in names}

    everything = ["up"] * 2 * len(_SELECTORS)
    world.wait_for("every engine pod is scraped", health, lambda healths: list(healths.values()) == everything)

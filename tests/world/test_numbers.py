"""As many replicas as the requests need: from an engine's page to the HorizontalPodAutoscaler, with nothing left out.

The pages are those of ``tests/engines/pages``. Prometheus and its operator, prometheus-adapter, KEDA and the controller
of autoscalers are their projects' own programs (:mod:`tests.world.monitoring`); the services and their pods are made
by modelhooks, and kwok's pods have the pages' servers at their addresses.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import ceil

import pytest
import yaml

from app.kube.base import Json
from tests.e2e.controlplane import TIMEOUT, ControlPlane
from tests.e2e.installation import ROOT, Installation
from tests.e2e.processes import free_port, wait_until
from tests.engines.states import METRICS, PAGES, REQUESTS, RUNNING, WAITING
from tests.world.monitoring import Monitoring
from tests.world.servers import MetricsServer

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.world("prometheus-operator", "prometheus", "adapter", "keda-operator", "keda-adapter"),
]

PAGE = (ROOT / "docs" / "howto" / "autoscale.md").read_text()
MOST = 8
OWN, OURS = 2, 1
"""Requests for each pod: LLMKube's default, and ours."""


@dataclass(frozen=True)
class Scaled:
    """A service, the requests of its page that it follows, its autoscaler, and the requests for each pod."""

    name: str
    engine: str
    follows: str
    autoscaler: str
    each: int


def llmkube(engine: str, name: str, **spec: object) -> list[Json]:
    source = "https://models.example.com/m.gguf" if engine == "llamacpp" else "Qwen/Qwen2.5-0.5B"
    model: Json = {"source": source, "format": "gguf" if engine == "llamacpp" else "safetensors"}
    model |= {"hardware": {"accelerator": "cuda", "gpu": {"count": 1}}}
    served: Json = {"modelRef": name, "runtime": engine, "containerPort": 8080, **spec}
    served |= {"skipModelInit": True} if engine in ("vllm", "sglang") else {}
    kinds = {"Model": model, "InferenceService": served}
    return [of("inference.llmkube.dev/v1alpha1", kind, name, body) for kind, body in kinds.items()]


def llmaz(engine: str, name: str, **spec: object) -> list[Json]:
    hub: Json = {"modelID": "Qwen/Qwen2.5-0.5B", **({"filename": "m.gguf"} if engine == "llamacpp" else {})}
    claim: Json = {"modelClaim": {"modelName": name}, "backendRuntimeConfig": {"backendName": engine}}
    return [
        of("llmaz.io/v1alpha1", "OpenModel", name, {"familyName": "qwen2", "source": {"modelHub": hub}}),
        of("inference.llmaz.io/v1alpha1", "Playground", name, {**claim, **spec}),
    ]


def kserve(name: str, **spec: object) -> Json:
    model = {"uri": "hf://Qwen/Qwen2.5-0.5B", "name": name}
    return of("serving.kserve.io/v1alpha2", "LLMInferenceService", name, {"model": model, **spec})


def of(api_version: str, kind: str, name: str, spec: Json) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def followed(metric: str) -> Json:
    target = {"type": "AverageValue", "averageValue": str(OURS)}
    metrics = [{"type": "Pods", "pods": {"metric": {"name": metric}, "target": target}}]
    return {"minReplicas": 1, "maxReplicas": MOST, "scaleTrigger": {"hpa": {"metrics": metrics}}}


# KEDA: the page's ScaledObject for each family, with the labels of its table.

LABELS = dict(re.findall(r"^\| (KServe|llmaz|LLMKube) \|[^|]+\| `(\w+)`, the name of the", PAGE, re.MULTILINE))
"""Labels of the queries by family."""
KEDA = {
    "ask-kserve": ("KServe", "vllm"),
    "ask-llmaz": ("llmaz", "sglang"),
    "ask-tgi": ("LLMKube", "tgi"),
    "ask-llamacpp": ("LLMKube", "llamacpp"),
}
"""Services that ScaledObjects of a user scale, with family and engine."""


def scaled_object(name: str, target: Json, url: str, namespace: str) -> Json:
    """Return the page's ScaledObject with the metric, the target and the label of a service."""
    (text,) = re.findall(r"^```yaml\n(apiVersion: keda\.sh.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    made: Json = yaml.safe_load(text)
    family, engine = KEDA[name]
    asked: Json = made["spec"]["triggers"][0]["metadata"]
    query = (
        asked["query"]
        .replace(METRICS["vllm"][WAITING], METRICS[engine][WAITING])
        .replace(LABELS["KServe"], LABELS[family])
    )
    asked |= {"serverAddress": url, "threshold": str(OURS)}
    asked["query"] = query.replace('"default"', f'"{namespace}"').replace('="chat"', f'="{name}"')
    reference = {"apiVersion": target["apiVersion"], "kind": target["kind"], "name": name}
    return {**made, "metadata": {"name": name}, "spec": {**made["spec"], "scaleTargetRef": reference}}


SCALED = [
    *(Scaled(f"own-{name}", name, WAITING if name == "tgi" else RUNNING, f"own-{name}", OWN) for name in METRICS),
    *(Scaled(f"play-{name}", name, WAITING, f"play-{name}", OURS) for name in METRICS),
]
ASKED = [Scaled(name, engine, WAITING, f"keda-hpa-{name}", OURS) for name, (_, engine) in KEDA.items()]
VARIANTS = {"vary-hpa": "vary-hpa-kserve-hpa", "vary-keda": "keda-hpa-vary-keda-kserve-keda"}
"""LLMInferenceServices that WVA scales, and their autoscalers."""


class Pods(threading.Thread):
    """Serves the page of an engine at the address of each pod: that of the state at a service's oldest pod.

    The others have had no request. SGLang shows its first statistics without one.
    """

    def __init__(self, cluster: ControlPlane, namespace: str, engines: Mapping[str, str]) -> None:
        super().__init__(daemon=True)
        self._cluster, self._namespace, self._engines = cluster, namespace, engines
        self._servers: dict[tuple[str, int], MetricsServer] = {}
        self._opened = ExitStack()
        self._ended = threading.Event()
        self.state = "before"
        self.error: Exception | None = None

    def run(self) -> None:
        with self._opened:
            while not self._ended.is_set():
                try:
                    self._serve()
                except Exception as error:  # noqa: BLE001 - the tests raise it
                    self.error = error
                    return
                time.sleep(0.3)

    def check(self) -> None:
        if self.error is not None:
            raise self.error

    def stop(self) -> None:
        self._ended.set()
        self.join()

    def _serve(self) -> None:
        path = f"/api/v1/namespaces/{self._namespace}/pods"
        pods = self._cluster.client.get(path).raise_for_status().json()["items"]
        pods = [pod for pod in pods if pod["status"].get("podIP") and pod["status"]["phase"] == "Running"]
        pods = [pod for pod in pods if not is_of_a_job(pod)]
        for service, engine in self._engines.items():
            own = [pod for pod in pods if pod["metadata"]["name"].startswith(f"{service}-")]
            own.sort(key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))
            for position, pod in enumerate(own):
                server = self._server(pod["status"]["podIP"], port(pod))
                other = "before" if engine == "tgi" else "idle"
                server.page = page(engine, self.state if position == 0 or self.state == "before" else other)

    def _server(self, address: str, number: int) -> MetricsServer:
        place = (address, number)
        if place not in self._servers:
            self._servers[place] = self._opened.enter_context(MetricsServer(*place))
        return self._servers[place]


def is_of_a_job(pod: Json) -> bool:
    """Whether a pod downloads a model, and so has no engine. Its name begins with the service's, too."""
    return any(owner["kind"] == "Job" for owner in pod["metadata"]["ownerReferences"])


def port(pod: Json) -> int:
    """Return the port of a pod's engine."""
    ports = [one for container in pod["spec"]["containers"] for one in container.get("ports", ())]
    numbers = {one.get("name"): one["containerPort"] for one in ports}
    return int(numbers.get("http") or ports[0]["containerPort"])


def page(engine: str, state: str) -> str:
    """Return an engine's page; of an engine that has no such state, what it showed last."""
    if state in PAGES[engine]:
        return PAGES[engine][state]
    return PAGES[engine]["idle"]


class Numbers:
    """The services, their pods, and what their autoscalers want."""

    def __init__(self, cluster: ControlPlane, monitoring: Monitoring, variants: MetricsServer) -> None:
        self.cluster, self.monitoring, self.variants = cluster, monitoring, variants
        self.namespace = cluster.create_namespace()
        engines = {one.name: one.engine for one in [*SCALED, *ASKED]}
        self.pods = Pods(cluster, self.namespace, engines | dict.fromkeys(VARIANTS, "vllm"))

    def create(self) -> None:
        limits: Json = {"minReplicas": 1, "maxReplicas": MOST}
        items = [one for engine in METRICS for one in llmkube(engine, f"own-{engine}", autoscaling=limits)]
        for engine, metrics in METRICS.items():
            items += llmaz(engine, f"play-{engine}", elasticConfig=followed(metrics[WAITING]))
        items += [kserve(name, scaling={**limits, "wva": {name.removeprefix("vary-"): {}}}) for name in VARIANTS]
        made: dict[str, Callable[[str, str], list[Json]]]
        made = {"KServe": lambda _, name: [kserve(name, replicas=1)], "llmaz": llmaz, "LLMKube": llmkube}
        for name, (family, engine) in KEDA.items():
            items += made[family](engine, name)
            items.append(scaled_object(name, items[-1], self.monitoring.url, self.namespace))
        settings = {"prometheus": {"url": self.monitoring.url}}
        data = {"autoscaling-wva-controller-config": json.dumps(settings)}
        config: Json = {"apiVersion": "v1", "kind": "ConfigMap", "data": data}
        config["metadata"] = {"name": "inferenceservice-config", "namespace": "kserve"}
        self.cluster.create_namespace("kserve")
        self.cluster.kubectl("apply", "-k", ROOT / "manifests" / "llmaz-runtimes")
        self.cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump(config))
        self.cluster.kubectl("apply", "-n", self.namespace, "-f", "-", input=yaml.safe_dump_all(items))

    def delete(self) -> None:
        """Delete everything while KEDA runs, which takes its finalizers away."""
        self.cluster.kubectl("delete", "namespace", self.namespace, TIMEOUT)
        self.cluster.kubectl("delete", "openmodels", "--all")
        self.cluster.kubectl("delete", "namespace", "kserve")

    def show(self, state: str, services: Sequence[Scaled]) -> None:
        """Let the pages show a state; all but the first follow an idle one, so that nothing is right by chance."""
        if state != "before":
            self.pods.state = "idle"
            self.wait(wanted("idle", services))
        self.pods.state = state

    def autoscalers(self) -> dict[str, Json]:
        items = self.cluster.get("horizontalpodautoscalers", "-n", self.namespace)["items"]
        return {item["metadata"]["name"]: item["status"] for item in items}

    def wait(self, wanted: Mapping[str, int]) -> None:
        """Wait until each autoscaler has the value of its metric, wants that many replicas, and has them."""
        seen: dict[str, str] = {}

        def reached() -> bool:
            self.monitoring.check()
            self.pods.check()
            found = self.autoscalers()
            seen.update({name: summary(found.get(name, {})) for name in wanted})
            return all(
                name in found
                and (found[name].get("desiredReplicas"), found[name].get("currentReplicas")) == (number, number)
                and is_active(found[name])
                for name, number in wanted.items()
            )

        try:
            wait_until(reached, "the wanted replicas", timeout=180)
        except TimeoutError:
            pytest.fail("\n".join(f"{name}: {seen[name]}, not {wanted[name]}" for name in wanted))


def is_active(status: Json) -> bool:
    return any(one["type"] == "ScalingActive" and one["status"] == "True" for one in status.get("conditions", ()))


def summary(status: Json) -> str:
    conditions = {one["type"]: f"{one['status']}: {one['message']}" for one in status.get("conditions", ())}
    metrics = json.dumps(status.get("currentMetrics"))
    return f"{status.get('desiredReplicas')} of {metrics}, {conditions.get('ScalingActive', 'no conditions')}"


@pytest.fixture(scope="module")
def numbers(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Numbers]:
    cluster, workdir = installation.cluster, tmp_path_factory.mktemp("numbers")
    place = free_port()
    with MetricsServer("127.0.0.1", place) as variants:
        monitoring = Monitoring(cluster, workdir / "monitoring", f"127.0.0.1:{place}")
        monitoring.start()
        made = Numbers(cluster, monitoring, variants)
        made.create()
        made.pods.start()
        yield made
        made.pods.stop()
        made.delete()
        monitoring.check()
        monitoring.stop()


def counted(state: str, service: Scaled) -> int | None:
    """Return the requests on the page of a state; none on a page without them. Without the state a server is idle."""
    states = REQUESTS[state]
    return states.get(service.engine, REQUESTS["idle"][service.engine]).get(service.follows)


def wanted(state: str, services: Sequence[Scaled]) -> dict[str, int]:
    """Return the replicas for the requests of a state; a service without requests has one."""
    return {one.autoscaler: max(1, ceil((counted(state, one) or 0) / one.each)) for one in services}


def test_a_service_that_nobody_has_asked_is_ready(numbers: Numbers) -> None:
    """The controller of autoscalers says that a metric of TGI is missing, in words that modelhooks knows."""
    numbers.show("before", SCALED)
    service = ("inferenceservice.inference.llmkube.dev/own-tgi", "-n", numbers.namespace)
    reason = '{.status.conditions[?(@.type=="ScalingActive")].reason}'
    numbers.cluster.kubectl("wait", f"--for=jsonpath={reason}=NoRequestYet", *service, TIMEOUT)
    numbers.cluster.kubectl("wait", "--for=condition=Ready", *service, TIMEOUT)


@pytest.mark.parametrize("state", REQUESTS)
def test_the_adapter(numbers: Numbers, state: str) -> None:
    """Prometheus and its adapter serve LLMKube's default metrics, and what Playgrounds name."""
    numbers.show(state, SCALED)
    numbers.wait(wanted(state, [one for one in SCALED if counted(state, one) is not None]))
    without = {one.autoscaler for one in SCALED if counted(state, one) is None}
    found = {name: status for name, status in numbers.autoscalers().items() if name in without}
    assert {name: status["currentReplicas"] for name, status in found.items()} == dict.fromkeys(without, 1)
    assert not any(is_active(status) for status in found.values())


def test_the_adapter_and_the_variant_autoscaler(numbers: Numbers) -> None:
    """The larger number counts, because the autoscaler cannot name the present accelerator."""
    numbers.variants.page = variant(numbers.namespace, "vary-hpa", unknown=3, H100=2)
    numbers.wait({VARIANTS["vary-hpa"]: 3})
    numbers.variants.page = variant(numbers.namespace, "vary-hpa", H100=1)
    numbers.wait({VARIANTS["vary-hpa"]: 1})


@pytest.fixture(scope="module")
def with_keda(numbers: Numbers) -> Numbers:
    numbers.monitoring.start_keda()
    return numbers


@pytest.mark.parametrize("state", REQUESTS)
def test_keda(with_keda: Numbers, state: str) -> None:
    """KEDA serves the answers to the queries of ``docs/howto/autoscale.md``."""
    with_keda.show(state, ASKED)
    with_keda.wait(wanted(state, ASKED))


def test_keda_and_the_variant_autoscaler(with_keda: Numbers) -> None:
    """The number for the present accelerator counts beside that of an earlier name."""
    with_keda.variants.page = variant(with_keda.namespace, "vary-keda", unknown=3, H100=5)
    with_keda.wait({VARIANTS["vary-keda"]: 3})


def variant(namespace: str, service: str, **replicas: int) -> str:
    """Return the page of WVA 0.7, which keeps a series for each name that an accelerator has had."""
    labels = f'namespace="{namespace}",variant_name="{service}-kserve-va"'
    lines = (f'wva_desired_replicas{{accelerator_type="{name}",{labels}}} {n}\n' for name, n in replicas.items())
    return "# TYPE wva_desired_replicas gauge\n" + "".join(lines)

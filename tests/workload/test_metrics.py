"""Metrics that an autoscaler can follow, by the engines' catalogues, and everything that names a metric."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from app import images
from app.desk.cluster.kinds import find
from app.kube.base import Json
from app.llmkube.runtimes.registry import RUNTIMES
from app.workload.autoscaler import metric_problem
from app.workload.engines.engine import Engine, engine_of
from app.workload.engines.grammar import RELEASES
from app.workload.engines.metrics import SHARES, catalogue, without_page
from tests import hookcalls
from tools import metrics as writer

ROOT = Path(__file__).parents[2]
VLLM, OLD, NEW = "vllm/vllm-openai:v0.20.0", "vllm/vllm-openai:v0.7.3", "vllm/vllm-openai:v0.33.0"
SGLANG = "lmsysorg/sglang:v0.5.15.post1"
PROBLEMS = {
    (VLLM, "vllm:kv_cache_usage_perc", "80"): "a share between 0 and 1, which never exceeds 80; write 800m",
    (SGLANG, "sglang:token_usage", "90"): "a share between 0 and 1, which never exceeds 90; write 900m",
    (VLLM, "vllm:kv_cache_usage_perc", "500"): "a share between 0 and 1, which never exceeds 500",
    (VLLM, "vllm:time_to_first_token_seconds", "2"): "a histogram",
    (VLLM, "vllm:e2e_request_latency_seconds_sum", "2"): "a histogram",
    (SGLANG, "sglang:e2e_request_latency_seconds", "2"): "a histogram",
    (VLLM, "vllm:generation_tokens_total", "100"): 'did you mean "vllm:generation_tokens_per_second"?',
    (OLD, "vllm:kv_cache_usage_perc", "800m"): 'did you mean "vllm:gpu_cache_usage_perc"?',
    (NEW, "vllm:gpu_cache_usage_perc", "800m"): 'did you mean "vllm:kv_cache_usage_perc"?',
}
WORKS = [
    (VLLM, "vllm:kv_cache_usage_perc", "800m"),
    (VLLM, "vllm:kv_cache_usage_perc", "1"),
    (VLLM, "vllm:num_requests_waiting", "80"),
    (VLLM, "vllm:generation_tokens_per_second", "80"),
    (OLD, "vllm:gpu_cache_usage_perc", "0.8"),
    (SGLANG, "sglang:num_running_reqs", "2"),
    (images.LLAMACPP, "llamacpp:requests_deferred", "4"),
    (images.LLAMACPP, "llamacpp:prompt_tokens_per_second", "4"),
    (images.TGI, "tgi_queue_size", "4"),
    (VLLM, "example_queue", "80"),
]


def engine(image: str) -> Engine:
    found = engine_of(image)
    assert found is not None
    return found


@pytest.mark.parametrize("case", PROBLEMS)
def test_a_metric_that_never_scales(case: tuple[str, str, str]) -> None:
    image, name, value = case
    assert PROBLEMS[case] in metric_problem(name, engine(image), value)


@pytest.mark.parametrize("case", WORKS)
def test_a_metric_that_scales(case: tuple[str, str, str]) -> None:
    image, name, value = case
    assert metric_problem(name, engine(image), value) == ""


@pytest.mark.parametrize("runtime", [name for name, runtime in RUNTIMES.items() if runtime.scraped])
def test_the_default_metrics_are_gauges_of_the_default_images(runtime: str) -> None:
    own = engine(RUNTIMES[runtime].image)
    (release,) = own.releases
    assert catalogue()[own.name][release.version][RUNTIMES[runtime].metric] == "gauge"


def test_each_release_has_its_metrics() -> None:
    known = {(name, version) for name, releases in catalogue().items() for version in releases}
    assert {(release.engine, release.version) for release in RELEASES if release.engine in catalogue()} == known


def test_shares_are_gauges() -> None:
    types = {
        name: type_ for releases in catalogue().values() for each in releases.values() for name, type_ in each.items()
    }
    assert {types.get(name, "gauge") for name in SHARES} == {"gauge"}


NAMED = ["docs/howto/alerts.md", "docs/howto/autoscale.md", "docs/howto/teams.md", "docs/howto/rollout.md"]
NAMED += ["docs/howto/prefill-decode.md", "docs/howto/load.md"]
NAMED += [
    "manifests/components/prometheus-adapter/rules.yaml",
    "manifests/components/kube-state-metrics/dashboard.yaml",
]
_NAME = re.compile(r"\b(?:vllm|sglang|llamacpp):[a-z][a-z0-9_]+|\btgi_(?:batch|queue|request)_[a-z_]+")


@pytest.mark.parametrize("file", NAMED)
def test_pages_rules_and_dashboards_name_metrics_that_exist(file: str) -> None:
    """A histogram has three series; the adapter serves a counter as a rate."""
    known = {name for releases in catalogue().values() for metrics in releases.values() for name in metrics}
    known |= {name.removesuffix("_total") + "_per_second" for name in known if name.endswith("_total")}
    known |= {f"{name}_{part}" for name in known for part in ("bucket", "sum", "count")}
    named = set(_NAME.findall((ROOT / file).read_text(encoding="utf-8")))
    assert named - known - {"sglang:utilization"} == set()


@pytest.mark.parametrize(
    ("image", "said"),
    [
        ("ollama/ollama:0.34.4", "ollama has no metrics"),
        ("nvcr.io/nvidia/tritonserver:25.03-trtllm-python-py3", "TensorRT-LLM has no metrics"),
        ("nvcr.io/nvidia/tensorrt-llm/release:1.2", "TensorRT-LLM has no metrics"),
        ("nvcr.io/nvidia/tritonserver:25.03-py3", ""),
        (VLLM, ""),
    ],
)
def test_servers_without_a_page(image: str, said: str) -> None:
    assert without_page(image).startswith(said)
    assert bool(without_page(image)) == bool(said)


def test_the_writer_reads_modules_and_pages() -> None:
    module = """
self.a = Gauge(name="sglang:running", labelnames=labels)
self.b = self._counter_cls("sglang:tokens", documentation="x")
self.c = Histogram(name="sglang:seconds"); log("sglang:words"); Gauge(name="other:x")
"""
    expected = {"sglang:running": "gauge", "sglang:tokens": "counter", "sglang:seconds": "histogram"}
    assert dict(writer.made(module, "sglang:")) == expected
    assert writer.page("# HELP a b\n# TYPE a:b counter\na:b 1\n") == {"a:b": "counter"}


def test_each_family_warns_of_metrics_that_are_not_there() -> None:
    quiet = {
        "apiVersion": "inference.llmkube.dev/v1alpha1",
        "kind": "InferenceService",
        "metadata": {"name": "a"},
        "spec": {
            "modelRef": "m",
            "runtime": "vllm",
            "extraArgs": ["--disable-log-stats"],
            "autoscaling": {"maxReplicas": 3},
        },
    }
    assert any("shows no metrics, and autoscaling needs them" in text for text in warnings(quiet))
    metric = {"name": "vllm:num_requests_running"}
    pods = {"type": "Pods", "pods": {"metric": metric, "target": {"type": "AverageValue", "averageValue": "2"}}}
    runtime = {
        "apiVersion": "inference.llmaz.io/v1alpha1",
        "kind": "BackendRuntime",
        "metadata": {"name": "own"},
        "spec": {
            "image": "ollama/ollama",
            "version": "0.34.4",
            "recommendedConfigs": [{"name": "default", "scaleTrigger": {"hpa": {"metrics": [pods]}}}],
        },
    }
    assert any("ollama has no metrics that Prometheus reads" in text for text in warnings(runtime))


def warnings(document: Json) -> list[str]:
    kind = find(document["apiVersion"], document["kind"])
    assert kind is not None
    return list(hookcalls.admit(kind, document).warnings)

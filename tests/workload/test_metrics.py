"""Metrics that an autoscaler can follow, by the engines' catalogues, and everything that names a metric."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from app import images
from app.desk.cluster.kinds import find
from app.kube.base import Json
from app.llmkube.runtimes.registry import RUNTIMES
from app.workload.autoscaler import metric_problem
from app.workload.engines.engine import Engine, engine_of
from app.workload.engines.grammar import RELEASES
from app.workload.engines.metrics import APPEARS, EngineMetric, catalogue, late_metric, without_metrics, without_page
from tests import hookcalls
from tests.engines.pages import PAGES, labels
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
    (images.TGI, "tgi_request_count", "100"): "a counter, which only grows",
    (images.TGI, "tgi_request_skipped_tokens", "1"): "a summary",
    (images.TGI, "tgi_request_queue_duration_sum", "1"): "a histogram",
    (images.LLAMACPP, "llamacpp:n_tokens_max", "100"): "a counter, which only grows",
    (SGLANG, "sglang:fwd_occupancy", "800m"): "a number of percent, which 800m is nearly always below; write 80",
    (SGLANG, "sglang:lora_pool_utilization", "90"): "a share between 0 and 1",
    (OLD, "vllm:spec_decode_draft_acceptance_rate", "70"): "a share between 0 and 1",
    (OLD, "vllm:time_in_queue_requests", "4"): "a histogram",
    (VLLM, "vllm:lora_requests_info", "4"): "information about the server",
    (images.LLAMACPP, "vllm:num_requests_waiting", "4"): "a metric of vLLM, and llama.cpp",
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
    (images.TGI, "tgi_batch_max_total_tokens", "4"),
    (SGLANG, "sglang:fwd_occupancy", "80"),
    (SGLANG, "sglang:lora_pool_slots_total", "4"),
    (VLLM, "example_queue", "80"),
    (VLLM, "llamacpp:of_somebody_else", "80"),
]


def engine(image: str) -> Engine:
    found = engine_of(image)
    assert found is not None
    return found


LATE = {
    "tgi_queue_size": True,
    "tgi_batch_current_size": True,
    "sglang:generation_tokens_per_second": True,
    "tgi_batch_max_total_tokens": False,  # there from the start
    "tgi_queue_sise": False,
    "tgi_request_count": False,  # a counter that the adapter never serves
    "tgi_request_duration": False,  # a histogram
    "sglang:num_running_reqs": False,  # with the first statistics, after half a minute at most
    "vllm:num_requests_running": False,
}
"""Whether an idle server may lack a metric."""


@pytest.mark.parametrize("name", LATE)
def test_a_metric_that_an_idle_server_does_not_show(name: str) -> None:
    text = f"unable to get metric {name}: no metrics returned from custom metrics API"
    assert late_metric(text) == (name if LATE[name] else "")


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
    metric = catalogue()[own.name][release.version][RUNTIMES[runtime].metric]
    assert (metric.type, metric.unit, metric.option) == ("gauge", "requests", "")


OPTIONS = {
    ("vllm/vllm-openai:v0.11.2", "vllm:gpu_cache_usage_perc"): "--show-hidden-metrics-for-version",
    (NEW, "vllm:kv_offload_cpu_cache_usage_perc"): "--kv-transfer-config",
    (NEW, "vllm:num_requests_kv_fetch_by_stage"): "--kv-transfer-config",
    (SGLANG, "sglang:num_streaming_sessions"): "--enable-streaming-session",
}
"""Gauges that a server has with an option alone."""


@pytest.mark.parametrize("case", OPTIONS)
def test_a_metric_that_needs_an_option(case: tuple[str, str]) -> None:
    image, name = case
    for given in (None, [OPTIONS[case]], [f"{OPTIONS[case]}=x"], ["--config", "server.yaml"]):
        assert metric_problem(name, engine(image), "1", given) == ""
    assert metric_problem(name, engine(image), "1", ["--port", "80"]).endswith(f"has it with {OPTIONS[case]} alone")


def test_each_release_has_its_metrics() -> None:
    known = {(name, version) for name, releases in catalogue().items() for version in releases}
    assert {(release.engine, release.version) for release in RELEASES if release.engine in catalogue()} == known


def everything() -> Iterator[tuple[str, str, str, EngineMetric]]:
    for name, releases in catalogue().items():
        for version, metrics in releases.items():
            for metric, entry in metrics.items():
                yield name, version, metric, entry


def test_the_catalogue_is_complete() -> None:
    types = {"gauge", "counter", "histogram", "summary"}
    assert {entry.type for *_, entry in everything()} == types
    assert {entry.appears for *_, entry in everything()} == APPEARS.keys()
    assert all(metric.startswith(("tgi_", f"{name}:")) for name, _, metric, _ in everything())


def test_a_page_has_what_the_catalogue_says() -> None:
    """The labels of the pages in ``tests/engines/pages``, and no series that appears later, or with an option."""
    for page in PAGES:
        name, _, version = page.stem.partition("-")
        metrics = catalogue()[name][version]
        for series, given in labels(page).items():
            base = next((series.removesuffix(f"_{part}") for part in PARTS if series.endswith(f"_{part}")), series)
            entry = metrics[series] if series in metrics else metrics[base]
            assert given - {"le"} <= set(entry.labels.split()), series
            assert entry.type != "gauge" or series in metrics


NAMED = ["docs/howto/alerts.md", "docs/howto/autoscale.md", "docs/howto/teams.md", "docs/howto/rollout.md"]
NAMED += ["docs/howto/prefill-decode.md", "docs/howto/load.md"]
NAMED += [
    "manifests/components/prometheus-adapter/rules.yaml",
    "manifests/components/kube-state-metrics/dashboard.yaml",
]
_NAME = re.compile(r"\b(?:vllm|sglang|llamacpp):[a-z][a-z0-9_]+|\btgi_(?:batch|queue|request)_[a-z_]+")
PARTS = ("bucket", "sum", "count")


@pytest.mark.parametrize("file", NAMED)
def test_pages_rules_and_dashboards_name_metrics_that_exist(file: str) -> None:
    """A histogram has three series; the adapter serves a counter as a rate."""
    known = {metric for _, _, metric, _ in everything()}
    known |= {name.removesuffix("_total") + "_per_second" for name in known if name.endswith("_total")}
    known |= {f"{name}_{part}" for name in known for part in PARTS}
    named = set(_NAME.findall((ROOT / file).read_text(encoding="utf-8")))
    assert named - known == set()


_QUERIED = re.compile(rf"(?:\b(rate|increase|irate)\()?({_NAME.pattern})(?=[{{\[]|\))")
"""A metric in a query, and the function of a counter around it."""
QUERYING = sorted(
    {file for folder in ("manifests", "docs", "examples") for file in (ROOT / folder).rglob("*.[ym][ad]*")}
)


def test_queries_take_rates_of_what_grows_alone() -> None:
    """A gauge has no rate, and a counter or a part of a histogram no meaning without one."""
    types: dict[str, set[str]] = {}
    for *_, metric, entry in everything():
        for series in [metric] if entry.type in ("gauge", "counter") else [f"{metric}_{part}" for part in PARTS]:
            types.setdefault(series, set()).add(entry.type)
    wrong, seen = [], 0
    for file in QUERYING:
        for function, metric in _QUERIED.findall(file.read_text(encoding="utf-8")):
            seen += 1
            if (types.get(metric) == {"gauge"}) == bool(function):
                wrong.append(f"{file.relative_to(ROOT)}: {function} {metric}")
    assert wrong == []
    assert seen > 20


ADAPTER = yaml.load(
    (ROOT / "manifests/components/prometheus-adapter/rules.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader
)


def test_the_adapter_serves_gauges_by_their_unit_and_counters_as_rates() -> None:
    """Requests add up over a pod's engines, of shares the fullest counts. ``lora_pool_slots_total`` is a gauge."""
    rules = yaml.load(ADAPTER["data"]["config.yaml"], yaml.CSafeLoader)["rules"]
    functions = {rule["seriesQuery"].split('"')[1]: rule["metricsQuery"].partition(" ")[0] for rule in rules}
    for *_, metric, entry in everything():
        for pattern, function in functions.items():
            if re.fullmatch(pattern, metric) and metric not in OTHERWISE:
                by_unit = {"requests": "sum", "share": "max"} if entry.type == "gauge" else {entry.unit: "sum"}
                assert (entry.type in ("gauge", "counter"), function) == (True, by_unit.get(entry.unit)), metric


OTHERWISE = ("sglang:lora_pool_slots_total", "vllm:iteration_tokens_total")
"""A gauge, and a histogram that the page shows without this name, in spite of their names."""


DEFAULTS = {
    *(runtime.image for runtime in RUNTIMES.values() if runtime.scraped),
    *images.LLMAZ_RUNTIMES.values(),
    images.LLM_D,
}
TABLE = re.search(r"\| Engine \|.*?\n\n", (ROOT / "docs/howto/autoscale.md").read_text(encoding="utf-8"), re.DOTALL)


def test_the_page_names_gauges_of_the_images_that_are_used() -> None:
    """Each default image has the metrics of its row, one of those that have two names."""
    assert TABLE is not None
    named = _NAME.findall(TABLE[0])
    used = [found for image in DEFAULTS if (found := engine_of(image)) is not None]
    assert {found.name for found in used} == set(catalogue())
    for found in used:
        metrics = catalogue()[found.name][found.releases[0].version]
        own = [name for name in named if name.startswith((f"{found.name}:", f"{found.name}_"))]
        there = {name for name in own if name in metrics and metrics[name].option == ""}
        assert {metrics[name].type for name in there} == {"gauge"}
        assert set(own) - there <= {"vllm:gpu_cache_usage_perc", "vllm:kv_cache_usage_perc"}
        assert len(set(own) - there) <= 1


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
self.a = Gauge(name="sglang:token_usage", labelnames=labels)
self.b = self._counter_cls("sglang:prompt_tokens", documentation="x")
self.c = Histogram(name="sglang:queue_time_seconds"); log("sglang:words"); Gauge(name="other:x")
"""
    assert dict(writer.declared_metrics(module, "sglang:")) == {
        "sglang:token_usage": EngineMetric("gauge", "share", "", "source", ""),
        "sglang:prompt_tokens_total": EngineMetric("counter", "tokens", "", "source", ""),
        "sglang:queue_time_seconds": EngineMetric("histogram", "seconds", "", "source", ""),
    }
    assert writer.page("# HELP a b\n# TYPE a:b counter\na:b 1\n") == {
        "a:b": EngineMetric("counter", "", "", "start", "")
    }


def test_the_writer_reads_the_source_of_tgi() -> None:
    """What is described and never set has no series, and a histogram without buckets is a summary."""
    source = """
    let duration_matcher = Matcher::Suffix(String::from("duration"));
    // let skipped_matcher = Matcher::Full(String::from("tgi_request_skipped_tokens"));
    metrics::describe_gauge!("tgi_batch_total_tokens", metrics::Unit::Count, "x");
    metrics::histogram!("tgi_batch_decode_duration", "method" => "prefill").record(1.0);
    metrics::histogram!("tgi_request_skipped_tokens").record(1.0);
    metrics::gauge!("tgi_queue_size").set(1.0);
    """
    assert writer.rust(source) == {
        "tgi_batch_decode_duration": EngineMetric("histogram", "seconds", "method", "request", ""),
        "tgi_request_skipped_tokens": EngineMetric("summary", "tokens", "", "request", ""),
        "tgi_queue_size": EngineMetric("gauge", "requests", "", "request", ""),
    }


def test_of_a_metric_that_several_runs_make_the_first_counts() -> None:
    run: dict[str, str | list[str]] = {"name": "vllm:x_perc", "type": "gauge", "labels": ["engine"]}
    run |= {"option": "", "appears": "start"}
    other: dict[str, str | list[str]] = {**run, "name": "vllm:y_total", "type": "counter", "appears": ""}
    runs = [run, {**run, "option": "--enable-lora"}, other]
    assert writer.described(runs) == {
        "vllm:x_perc": EngineMetric("gauge", "share", "engine", "start", ""),
        "vllm:y_total": EngineMetric("counter", "", "engine", "event", ""),
    }


@pytest.mark.parametrize(
    ("arguments", "shows_none"),
    [
        (["--disable-log-stats"], True),
        (["--disable_log_stats"], True),
        (["--disable-log-s"], True),
        (["--max-model-len", "4096"], False),
        ([], False),
    ],
)
def test_options_without_metrics_are_read_as_vllm_reads_them(arguments: list[str], *, shows_none: bool) -> None:
    assert bool(without_metrics(Engine("vllm"), arguments)) == shows_none


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
    hidden = {"type": "Pods", "name": "vllm:gpu_cache_usage_perc", "targetAverageValue": "800m"}
    spec: Json = {"modelRef": "m", "runtime": "vllm", "image": "vllm/vllm-openai:v0.11.2"}
    spec["autoscaling"] = {"maxReplicas": 3, "metrics": [hidden]}
    option = "--show-hidden-metrics-for-version"
    assert any(f"with {option} alone" in text for text in warnings({**quiet, "spec": spec}))
    assert not any(option in text for text in warnings({**quiet, "spec": {**spec, "extraArgs": [f"{option}=0.10"]}}))
    counter = {"type": "Pods", "name": "tgi_request_count", "targetAverageValue": "5"}
    spec = {"modelRef": "m", "runtime": "tgi", "autoscaling": {"maxReplicas": 3, "metrics": [counter]}}
    assert any("a counter, which only grows" in text for text in warnings({**quiet, "spec": spec}))
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

"""The dashboard and alerts of serving, evaluated by promtool over series as the engines write them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.kube.base import Json
from tests.e2e.test_monitoring import judged, promtool, write
from tests.engines.pages import PAGES, TARGET, samples, series
from tests.tools.test_serving import QUERIES, RULES, names

pytestmark = pytest.mark.e2e

GROUPS: list[Json] = [{"name": "serving", "rules": RULES}]
FAMILY, NAMESPACE, SERVICE = TARGET["family"], TARGET["namespace"], TARGET["service"]
RESULT = f'{{family="{FAMILY}", namespace="{NAMESPACE}", service="{SERVICE}"}}'
GPU = {"gpu": "0", "modelName": "NVIDIA H100 80GB HBM3", "namespace": NAMESPACE, "pod": TARGET["pod"]}
_CUMULATIVE = ("_total", "_count", "_sum", "_success", "_failure")


def evaluated(query: str) -> str:
    """Return a query with Grafana's variables filled in."""
    values = {"$__rate_interval": "5m", "$percentile": "0.95"}
    values |= {f"${name}": ".*" for name in ("family", "namespace", "model", "service")}
    for name, value in values.items():
        query = query.replace(name, value)
    return query


def stored(page: Path) -> Iterator[tuple[str, str]]:
    """Yield series: a counter grows by one a minute, a histogram by one in all buckets from one second on."""
    for sample in samples(page):
        if sample.name.endswith("_bucket"):
            growth = "0+1x30" if float(sample.labels["le"]) >= 1 else "0x30"
        else:
            growth = "0+1x30" if sample.name.endswith(_CUMULATIVE) else f"{sample.value:g}x30"
        yield series(sample.name, **sample.labels), growth


def evaluate(folder: Path, given: dict[str, str], expected: dict[str, list[Json]]) -> None:
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in given.items()],
        "promql_expr_test": [
            {"expr": query, "eval_time": "20m", "exp_samples": wanted} for query, wanted in expected.items()
        ],
    }
    promtool("test", "rules", write(folder, "test.yaml", {"evaluation_interval": "1m", "tests": [test]}))


def test_the_rules_are_valid(tmp_path: Path) -> None:
    promtool("check", "rules", "--lint=all", "--lint-fatal", write(tmp_path, "rules.yaml", {"groups": GROUPS}))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_release_shows_one_line_for_each_query_of_its_metrics(page: Path, tmp_path: Path) -> None:
    """What the page lacks shows nothing, and no query fails."""
    there = {sample.name for sample in samples(page)}
    single, none = [{"labels": "{}", "value": 1}], [{"labels": "{}", "value": 0}]
    expected = {
        f"count({evaluated(target['expr'])}) or vector(0)": single if names(target["expr"]) <= there else none
        for target in QUERIES.values()
        if not target["expr"].startswith(("avg", "sum by (family, namespace, service) (DCGM"))
    }
    assert single in expected.values()
    evaluate(tmp_path, dict(stored(page)), expected)


def query(title: str, part: str) -> str:
    (expression,) = (
        panel["expr"] for name, panel in QUERIES.items() if name.startswith(f"{title}, ") and part in panel["expr"]
    )
    return evaluated(expression)


PRIORITIES = "sglang-0.5.23"
VALUES: dict[tuple[str, str, str], float] = {
    # Gauges: that of all priorities. Counters and histograms: the sum of the priorities.
    (PRIORITIES, "Requests in wait", "sglang:"): 3,
    (PRIORITIES, "Generated tokens per second", "sglang:"): 2 / 60,
    (PRIORITIES, "Share of the key-value cache in use", "sglang:"): 0.5,
    (PRIORITIES, "Failed requests per second", "sglang:"): 2 / 60,
    ("tgi-3.3.7", "Failed requests per second", "tgi_"): 2 / 60,
    ("llamacpp-0.7.0", "Time per output token of llama.cpp", "llamacpp:"): 1,
    ("vllm-0.20.0", "Finished requests per second", "vllm:"): 5 / 60,
    ("vllm-0.20.0", "Share of prompt tokens found in the cache", "vllm:"): 1,
}


@pytest.mark.parametrize("case", VALUES, ids=lambda case: f"{case[0]}, {case[1]}")
def test_a_line_has_the_value_of_its_service(case: tuple[str, str, str], tmp_path: Path) -> None:
    name, title, part = case
    (page,) = (page for page in PAGES if page.stem == name)
    rounded = f"round({query(title, part)} * 6000)"
    evaluate(tmp_path, dict(stored(page)), {rounded: [{"labels": RESULT, "value": round(VALUES[case] * 6000)}]})


def test_answers_without_streaming_have_no_first_token_of_sglang(tmp_path: Path) -> None:
    """Half of the answers are whole, after 30 seconds; the others have their first token within a second."""
    asked = query("Time to first token", "sglang:")
    given = {
        series("sglang:time_to_first_token_seconds_bucket", le=le, is_streaming=streaming): growth
        for streaming, first in (("true", "1"), ("false", "40"))
        for le in ("1", "40", "+Inf")
        for growth in ["0+1x30" if float(le) >= float(first) else "0x30"]
    }
    evaluate(tmp_path, given, {f"{asked} <= bool 1": [{"labels": RESULT, "value": 1}]})


def test_a_gpu_is_that_of_the_service_whose_pod_has_it(tmp_path: Path) -> None:
    """The exporter's labels namespace and pod are those of the pod with the GPU."""
    other = {**GPU, "gpu": "1", "pod": "training-1"}
    given = {
        series("up", job="podMonitor/model-monitoring/llmkube/0"): "1x30",
        **{exported("DCGM_FI_DEV_GPU_UTIL", name): "40x30" for name in (GPU, other)},
        **{exported("DCGM_FI_DEV_FB_USED", name): "1000x30" for name in (GPU, other)},
    }
    wanted = {
        query("GPUs: share of time in use", "DCGM"): [{"labels": RESULT, "value": 40}],
        query("GPUs: memory in use", "DCGM"): [{"labels": RESULT, "value": 1048.576}],
    }
    evaluate(tmp_path, given, wanted)


def exported(name: str, labels: dict[str, str]) -> str:
    text = ", ".join(f"{label}={json.dumps(value)}" for label, value in labels.items())
    return f"{name}{{{text}}}"


def slow(name: str, seconds: str) -> dict[str, str]:
    """Return a histogram whose values are all above ``seconds`` and below a thousand."""
    return {
        series(f"{name}_bucket", le=le): growth
        for le, growth in ((seconds, "0x40"), ("1000", "0+9x40"), ("+Inf", "0+9x40"))
    }


UP = {series("up"): "1x40"}
WAITING = {
    "vllm:num_requests_waiting": {"engine": "0", "model_name": "org/chat"},
    "sglang:num_queue_reqs": {"model_name": "org/chat", "priority": ""},
    "llamacpp:requests_deferred": {},
    "tgi_queue_size": {},
}
FIRES: dict[str, tuple[str, dict[str, str]]] = {
    **{
        f"first token, {engine}": ("ModelSlowFirstToken", slow(f"{engine}:time_to_first_token_seconds", "10"))
        for engine in ("vllm", "sglang")
    },
    **{
        f"tokens, {name}": ("ModelSlowTokens", slow(name, "1"))
        for name in (
            *("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
            *("sglang:inter_token_latency_seconds", "tgi_request_mean_time_per_token_duration"),
        )
    },
    "tokens, vLLM 0.11 with both": (
        "ModelSlowTokens",
        {**slow("vllm:inter_token_latency_seconds", "1"), **slow("vllm:time_per_output_token_seconds", "1")},
    ),
    **{
        f"queue, {name}": ("ModelQueueGrows", {**UP, series(name, **labels): "11x40"})
        for name, labels in WAITING.items()
    },
    **{
        f"cache, {name}": ("ModelCacheFull", {series(name): "0.99x40", series(waiting): "1x40"})
        for name, waiting in (
            ("vllm:kv_cache_usage_perc", "vllm:num_requests_waiting"),
            ("vllm:gpu_cache_usage_perc", "vllm:num_requests_waiting"),
            ("sglang:token_usage", "sglang:num_queue_reqs"),
        )
    },
    "errors, vLLM": (
        "ModelRequestsFail",
        {
            series("vllm:request_success_total", finished_reason="stop"): "0+90x40",
            series("vllm:request_success_total", finished_reason="error"): "0+10x40",
        },
    ),
    "errors, TGI": (
        "ModelRequestsFail",
        {series("tgi_request_count"): "0+90x40", series("tgi_request_failure", err="overloaded"): "0+9x40"},
    ),
}
QUIET = {
    "two pods share a queue": (
        "ModelQueueGrows",
        {**UP, series("up", pod="chat-2"): "1x40", series("vllm:num_requests_waiting"): "18x40"},
    ),
    "each priority of SGLang beside that of all": (
        "ModelQueueGrows",
        {**UP, **{series("sglang:num_queue_reqs", priority=priority): "6x40" for priority in ("", "1", "5")}},
    ),
    "a full cache without a queue": (
        "ModelCacheFull",
        {series("vllm:kv_cache_usage_perc"): "1x40", series("vllm:num_requests_waiting"): "0x40"},
    ),
    "errors of clients": (
        "ModelRequestsFail",
        {
            series("tgi_request_count"): "0+90x40",
            series("tgi_request_failure", err="validation"): "0+90x40",
            series("vllm:request_success_total", finished_reason="abort"): "0+90x40",
            series("vllm:request_success_total", finished_reason="error"): "0x40",
        },
    ),
    "a few errors of vLLM": (
        "ModelRequestsFail",
        {
            series("vllm:request_success_total", finished_reason="stop"): "0+99x40",
            series("vllm:request_success_total", finished_reason="error"): "0+1x40",
        },
    ),
    "quick": (
        "ModelSlowFirstToken",
        {series("vllm:time_to_first_token_seconds_bucket", le=le): "0+9x40" for le in ("1", "+Inf")},
    ),
}


def test_every_alert_has_a_case() -> None:
    assert {alert for alert, _ in FIRES.values()} == {rule["alert"] for rule in RULES}


@pytest.mark.parametrize("case", FIRES)
def test_an_alert_fires_for_each_engine(case: str, tmp_path: Path) -> None:
    alert, given = FIRES[case]
    fires(tmp_path, alert, given, "1")


@pytest.mark.parametrize("case", QUIET)
def test_no_alert_without_a_reason(case: str, tmp_path: Path) -> None:
    alert, given = QUIET[case]
    fires(tmp_path, alert, given, "0")


def fires(folder: Path, alert: str, given: dict[str, str], number: str) -> None:
    """Compare how many alerts fire; their labels are the service's."""
    write(folder, "rules.yaml", {"groups": GROUPS})
    asked = f'count(ALERTS{{alertname="{alert}", alertstate="firing", service="{SERVICE}"}}) or vector(0)'
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in given.items()],
        "promql_expr_test": [
            {"expr": asked, "eval_time": "30m", "exp_samples": [{"labels": "{}", "value": int(number)}]}
        ],
    }
    content = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]}
    promtool("test", "rules", write(folder, "test.yaml", content))


def test_nothing_fires_on_pages_of_idle_servers(tmp_path: Path) -> None:
    """Counters keep their values, and nobody waits."""
    gauges = dict.fromkeys(WAITING, "0x40")
    for page in PAGES:
        given = {
            series(sample.name, **sample.labels): gauges.get(sample.name, f"{sample.value:g}x40")
            for sample in samples(page)
        }
        judged(tmp_path, GROUPS, {**UP, **given}, [{"alertname": rule["alert"], "eval_time": "35m"} for rule in RULES])

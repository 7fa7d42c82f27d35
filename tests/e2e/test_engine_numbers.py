"""Queries for the engines' numbers, run by promtool on series as the engines' own classes write them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from app.kube.base import Json
from app.llmkube.runtimes.registry import RUNTIMES
from tests.e2e.test_monitoring import promtool, write
from tests.engines.pages import PAGES, samples, series, series_of
from tests.engines.states import METRICS, REQUESTS
from tests.engines.states import PAGES as STATE_PAGES
from tests.kserve.objects import service
from tests.kserve.workload.test_scaling import PROMETHEUS, settings, synced
from tests.service import ROOT

pytestmark = pytest.mark.e2e

ADAPTER: Json = yaml.safe_load((ROOT / "manifests/components/prometheus-adapter/rules.yaml").read_text())
RULES: list[Json] = yaml.safe_load(ADAPTER["data"]["config.yaml"])["rules"]
DASHBOARD = (ROOT / "manifests/components/kube-state-metrics/dashboard.yaml").read_text()
PAGE = (ROOT / "docs/howto/autoscale.md").read_text()
POD = 'namespace="n",pod="p"'
PRIORITIES = {
    f'{metric}{{{POD},model_name="m",priority="{priority}"}}': number
    for metric in ("sglang:num_running_reqs", "sglang:num_queue_reqs")
    for priority, number in (("", 3), ("1", 2), ("5", 1))
}
"""Three requests in SGLang 0.5.15 and 0.5.23 with ``--enable-priority-scheduling``."""
ENGINES = {
    f'vllm:num_requests_running{{{POD},engine="0",model_name="m"}}': 3,
    f'vllm:num_requests_running{{{POD},engine="1",model_name="m"}}': 4,
    f'vllm:num_requests_waiting{{{POD},engine="0",model_name="m",app_kubernetes_io_name="chat"}}': 2,
}
"""Two engines in one server of vLLM 0.20."""


VARIANT = 'variant_name="demo-kserve-va",exported_namespace="default"'
ACCELERATORS = {
    f'wva_desired_replicas{{{VARIANT},accelerator_type="{name}"}}': number
    for name, number in (("H100", 2), ("unknown", 5))
}
"""What the autoscaler of version 0.7.0 keeps after the name of an accelerator has changed."""


def adapter(metric: str) -> str:
    """Return the query of the adapter for a metric of one pod."""
    (rule,) = [rule for rule in RULES if re.search(rf"\b{metric}\b", rule["seriesQuery"])]
    query: str = rule["metricsQuery"].replace("<<.GroupBy>>", "namespace,pod").replace("<<.Series>>", metric)
    return query.replace("<<.LabelMatchers>>", 'namespace="n",pod="p"')


def panel(metric: str) -> str:
    (text,) = [expression for expression in re.findall(r'"expr": (".*"),\n', DASHBOARD) if metric in expression]
    query: str = json.loads(text)
    return query.replace("$namespace", ".*")


def keda() -> str:
    match = re.search(r"^ +query: (sum\(.*\))$", PAGE, re.MULTILINE)
    assert match is not None
    return match[1].replace('namespace="default"', 'namespace="n"')


def scaled(accelerator: str) -> str:
    """Return the query of the ScaledObject that is made for an LLMInferenceService with this accelerator."""
    labels = {"inference.optimization/acceleratorName": accelerator}
    parent = service(scaling={"maxReplicas": 8, "wva": {"keda": {}}}, labels=labels)
    scaler = synced(parent, settings(**PROMETHEUS)).child("ScaledObject", "demo-kserve-keda")
    query: str = scaler["spec"]["triggers"][0]["metadata"]["query"]
    return query


QUERIES = {
    "the adapter, priorities": (PRIORITIES, adapter("sglang:num_running_reqs"), 3),
    "the adapter, two engines": (ENGINES, adapter("vllm:num_requests_running"), 7),
    "the dashboard, priorities": (PRIORITIES, panel("sglang:num_queue_reqs"), 3),
    "the dashboard, two engines": (ENGINES, panel("vllm:num_requests_running"), 7),
    "KEDA": (ENGINES, keda(), 2),
    "KEDA, two names of an accelerator": (ACCELERATORS, scaled("H100"), 2),
    "KEDA, a name that is not there yet": (ACCELERATORS, scaled("H200"), 5),
}


@pytest.mark.parametrize("case", QUERIES)
def test_each_request_counts_once(case: str, tmp_path: Path) -> None:
    series, query, wanted = QUERIES[case]
    labels = "" if case.startswith("KEDA") else f"{{{POD}}}"
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": f"{number}x5"} for name, number in series.items()],
        "promql_expr_test": [
            {"expr": query, "eval_time": "3m", "exp_samples": [{"labels": labels or "{}", "value": wanted}]}
        ],
    }
    promtool("test", "rules", write(tmp_path, "tests.yaml", {"rule_files": [], "tests": [test]}))


PAGE_VALUES = {"llamacpp": 3, "sglang": 3, "tgi": 3, "vllm": 0}
"""Requests of the metric by which LLMKube scales, on the pages of ``tests/engines/pages``: those of vLLM are idle."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_adapter_serves_the_requests_of_each_page(page: Path, tmp_path: Path) -> None:
    """One number for a pod, also of SGLang with priorities; before the first request none of TGI, and no error."""
    engine = page.stem.partition("-")[0]
    query = adapter(RUNTIMES[engine].metric)
    given = {
        series(sample.name, **sample.labels | {"namespace": "n", "pod": "p"}): sample.value for sample in samples(page)
    }
    for content, answer in ((given, [{"labels": f"{{{POD}}}", "value": PAGE_VALUES[engine]}]), ({}, [])):
        test = {
            "interval": "1m",
            "input_series": [{"series": name, "values": f"{value:g}x5"} for name, value in content.items()],
            "promql_expr_test": [{"expr": query, "eval_time": "3m", "exp_samples": answer}],
        }
        promtool("test", "rules", write(tmp_path, "tests.yaml", {"rule_files": [], "tests": [test]}))


STATES = [(engine, state) for state, counted in REQUESTS.items() for engine in counted]


@pytest.mark.parametrize(("engine", "state"), STATES)
def test_the_adapter_counts_each_request_of_a_state_once(engine: str, state: str, tmp_path: Path) -> None:
    """Of two engines, of SGLang's priorities and of its ranks, too."""
    page_series = series_of(STATE_PAGES[engine][state])
    given = {
        series(sample.name, **sample.labels | {"namespace": "n", "pod": "p"}): sample.value for sample in page_series
    }
    for kind, metric in METRICS[engine].items():
        counted = REQUESTS[state][engine].get(kind)
        answer = [] if counted is None else [{"labels": f"{{{POD}}}", "value": counted}]
        query = {"expr": adapter(metric), "eval_time": "3m", "exp_samples": answer}
        test = {
            "interval": "1m",
            "input_series": [{"series": name, "values": f"{value:g}x5"} for name, value in given.items()],
            "promql_expr_test": [query],
        }
        promtool("test", "rules", write(tmp_path, "tests.yaml", {"rule_files": [], "tests": [test]}))

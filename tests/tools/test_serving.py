"""The dashboard and alerts of serving ask for metrics and labels that engines, PodMonitors and exporters have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from app.kube.base import Json
from app.workload.engines.metrics import catalogue
from tests.engines.pages import PAGES, TARGET, labels
from tools import serving

ROOT = Path(__file__).parents[2]
PANELS: list[Json] = json.loads(yaml.load(serving.dashboard(), yaml.CSafeLoader)["data"]["serving.json"])["panels"]
RULES: list[Json] = yaml.load(serving.rules(), yaml.CSafeLoader)["spec"]["groups"][0]["rules"]
QUERIES = {f"{panel['title']}, {target['refId']}": target for panel in PANELS for target in panel["targets"]}
EXPRESSIONS = {
    **{name: target["expr"] for name, target in QUERIES.items()},
    **{rule["alert"]: rule["expr"] for rule in RULES},
}
DCGM = {"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED"}
"""Gauges of etc/default-counters.csv of NVIDIA's dcgm-exporter."""
_NAMES = re.compile(r'__name__=~"([^"]+)"|\b((?:vllm|sglang|llamacpp):\w+|tgi_\w+|DCGM_\w+)')
_SELECTOR = re.compile(r"([a-zA-Z_:][\w:]*)?\{([^}]*)\}")
_PARTS = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",), "summary": ("_sum", "_count")}


def names(expression: str) -> set[str]:
    return {name for pattern, one in _NAMES.findall(expression) for name in (pattern or one).split("|")}


def selectors(expression: str) -> Iterator[tuple[list[str], set[str]]]:
    """Yield the metrics and the labels of each selector with matchers."""
    for name, matchers in _SELECTOR.findall(expression):
        chosen = re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", re.sub(r'"[^"]*"', '""', matchers))
        pattern = re.search(r'__name__=~"([^"]+)"', matchers)
        yield (pattern[1].split("|") if pattern else [name]), set(chosen) - {"__name__"}


def shown() -> set[str]:
    """Return every series that some release of an engine has, by its catalogue: of a histogram its three."""
    types = {
        (name, metric.type) for each in catalogue().values() for one in each.values() for name, metric in one.items()
    }
    return {f"{name}{part}" for name, type_ in types for part in _PARTS[type_]}


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_every_metric_is_in_the_catalogue(expression: str) -> None:
    found = names(expression)
    assert found
    assert found - shown() <= DCGM


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_every_label_is_on_the_page_or_from_the_podmonitor(expression: str) -> None:
    """``priority`` may be absent: SGLang has it with priorities alone, and ``priority=""`` suits all others."""
    known: dict[str, set[str]] = {"up": set()}
    for page in PAGES:
        for name, own in labels(page).items():
            known.setdefault(name, set()).update(own)
    for metrics, chosen in selectors(expression):
        for metric in metrics:
            own = known.get(metric, set())
            assert metric in known or metric in {*DCGM, "vllm:gpu_cache_usage_perc"}
            assert chosen <= own | TARGET.keys() | {"priority"}, metric


@pytest.mark.parametrize("engine", ["vllm", "sglang", "llamacpp", "tgi"])
def test_an_engine_has_a_line_in_the_panels_that_it_has_metrics_for(engine: str) -> None:
    lacking = {panel.title for panel in serving.PANELS if engine not in {one.engine for one in panel.sources}}
    assert {title for title in lacking if title not in LACKING.get(engine, set())} == set()
    assert LACKING.get(engine, set()) <= lacking


LACKING = {
    "vllm": {"Time per output token of llama.cpp"},
    "sglang": {"Time per output token of llama.cpp"},
    "llamacpp": {
        *("Time to first token", "Time per output token", "Whole requests", "Share of the key-value cache in use"),
        *("Share of prompt tokens found in the cache", "Finished requests per second", "Failed requests per second"),
    },
    "tgi": {
        *("Time to first token", "Time per output token of llama.cpp", "Share of the key-value cache in use"),
        "Share of prompt tokens found in the cache",
    },
}
"""What an engine does not measure."""


@pytest.mark.parametrize("target", QUERIES.values(), ids=QUERIES)
def test_a_legend_names_labels_that_are_left(target: Json) -> None:
    assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= {"family", "namespace", "service"}


def test_alert_messages_use_labels_that_are_left() -> None:
    for rule in RULES:
        assert set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"]))) <= {"family", "namespace", "service"}


def test_the_podmonitors_of_all_families_give_the_labels() -> None:
    text = (ROOT / "manifests/components/prometheus/podmonitors.yaml").read_text()
    monitors = {one["metadata"]["name"]: one["spec"] for one in yaml.load_all(text, yaml.CSafeLoader)}
    for name in ("llmkube", "llmaz", "kserve"):
        for endpoint in monitors[name]["podMetricsEndpoints"]:
            given = [*endpoint["relabelings"], *endpoint.get("metricRelabelings", ())]
            assert {"family", "service", "model"} <= {one.get("targetLabel") for one in given}
            assert {"targetLabel": "family", "replacement": name} in given


def test_the_files_are_resources_of_the_component() -> None:
    component = yaml.load((ROOT / serving.FOLDER / "kustomization.yaml").read_text(), yaml.CSafeLoader)
    assert {Path(name).name for name in serving.files()} <= set(component["resources"])


@pytest.mark.parametrize("rule", RULES, ids=[rule["alert"] for rule in RULES])
def test_a_runbook_is_on_the_page(rule: Json) -> None:
    page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    assert page.endswith("/blob/main/docs/troubleshooting.md")
    assert anchor == rule["alert"].lower()
    assert f"\n### {rule['alert']}\n" in (ROOT / "docs/troubleshooting.md").read_text()

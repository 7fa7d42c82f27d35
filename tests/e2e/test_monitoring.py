"""Alerts and dashboard, tested with promtool on metrics that the service emits."""

from __future__ import annotations

import json
import re
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from app import cli
from app.certs import authority
from app.installation import NAME, NAMESPACE
from app.kube.base import Json
from tests.corpus import requests
from tests.e2e import binaries
from tests.service import ROOT, running

pytestmark = pytest.mark.e2e


MONITORING = ROOT / "manifests" / "overlays" / "monitoring"
TARGET = {"job", "pod"}
"""Labels that Prometheus adds to each series because of the ServiceMonitor, as far as they are used."""


def document(name: str) -> Json:
    loaded: Json = yaml.safe_load((MONITORING / name).read_text())
    return loaded


GROUPS = document("prometheusrule.yaml")["spec"]["groups"]
RULES = {rule["alert"]: rule for group in GROUPS for rule in group["rules"]}
PANELS = json.loads(document("dashboard.yaml")["data"]["modelhooks.json"])["panels"]
QUERIES = {
    f"{panel['title']}, {target['refId']}": (target["expr"].replace("$__rate_interval", "5m"), target["legendFormat"])
    for panel in PANELS
    for target in panel["targets"]
}


def promtool(*arguments: str | Path, given: str = "") -> str:
    command = [str(word) for word in (binaries.tool("promtool"), *arguments)]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def emitted(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The output of ``/metrics`` after an accepted and a denied review, a sync, and an invalid request."""
    folder = tmp_path_factory.mktemp("certificates")
    assert cli.main(["certs", "--out-dir", str(folder), "--san", "127.0.0.1"]) == 0
    files = ("--tls-cert-file", str(folder / "tls.crt"), "--tls-key-file", str(folder / "tls.key"))
    model: Json = {
        "apiVersion": "inference.llmkube.dev/v1alpha1",
        "kind": "Model",
        "metadata": {"name": "small", "namespace": "default", "uid": "1", "generation": 1},
        "spec": {"source": "https://models.example.com/small.gguf", "quantization": "Q4_K_M"},
    }
    wrong = {**model, "spec": {"source": ""}}
    with running(*files) as service:
        service.tls = ssl.create_default_context(cafile=str(folder / "ca.crt"))
        assert service.ask("GET", "/readyz").status == 200
        review = "/validate-inference-llmkube-dev-v1alpha1-model"
        assert service.post(review, requests.review(model)).json["response"]["allowed"]
        assert not service.post(review, requests.review(wrong)).json["response"]["allowed"]
        sync = {"parent": model, "children": {}, "related": {}, "finalizing": False, "controller": {}}
        assert service.post("/llmkube/models/sync", sync).status == 200
        assert service.post("/llmkube/models/sync", b"?").status == 400
        return service.ask("GET", "/metrics").body.decode()


@pytest.fixture(scope="module")
def series(emitted: str) -> dict[str, set[str]]:
    """The labels of each metric."""
    labels_of: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(emitted):
        for sample in family.samples:
            labels_of.setdefault(sample.name, set()).update(sample.labels)
    return labels_of


def test_promtool_finds_nothing_wrong_with_the_metrics(emitted: str) -> None:
    assert promtool("check", "metrics", given=emitted) == ""


# Metrics used by rules and dashboard


@dataclass
class Asked:
    """The names in a PromQL expression with the labels in their selectors, and the labels of the result."""

    chosen: dict[str, set[str]] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)


KEYWORDS = {"and", "or", "unless", "by", "without", "on", "ignoring", "bool", "offset"}
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)")
_SELECTOR = re.compile(r"(?<![\w.$])([a-zA-Z_:][\w:]*)\s*(\{[^}]*\})?(?!\s*\()(?![\w:])")


def asked(expression: str) -> Asked:
    query = Asked()
    expression = re.sub(r'"[^"]*"', '""', expression)
    for names in _GROUPING.findall(expression):
        query.kept.update(name.strip() for name in names.split(","))
    for name, matchers in _SELECTOR.findall(re.sub(r"\[[\w:]+\]", "", _GROUPING.sub("", expression))):
        if name not in KEYWORDS:
            query.chosen.setdefault(name, set()).update(re.findall(r"(\w+)\s*[=!]", matchers))
    return query


def test_names_and_labels_are_found_in_an_expression() -> None:
    query = asked('sum by (a, b) (rate(x_total{c="1", d=~"2"}[5m])) / on (a) min(y) - time() > 20 * 86400')
    assert query == Asked({"x_total": {"c", "d"}, "y": set()}, {"a", "b"})


EXPRESSIONS = {
    **{name: rule["expr"] for name, rule in RULES.items()},
    **{k: query for k, (query, _) in QUERIES.items()},
}


@pytest.mark.parametrize("expression", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_everything_that_is_asked_for_is_emitted(series: dict[str, set[str]], expression: str) -> None:
    """``up`` is Prometheus' own metric."""
    query = asked(expression)
    exported = {**series, "up": set()}
    assert query.chosen
    assert query.chosen.keys() <= exported.keys()
    labels = set().union(*(exported[name] for name in query.chosen)) | TARGET
    assert all(chosen <= exported[name] | TARGET for name, chosen in query.chosen.items())
    assert query.kept <= labels


@pytest.mark.parametrize(("query", "legend"), QUERIES.values(), ids=QUERIES)
def test_a_legend_names_labels_that_are_left(series: dict[str, set[str]], query: str, legend: str) -> None:
    of_query = asked(query)
    left = of_query.kept if " by " in query else TARGET
    assert set(re.findall(r"\{\{(\w+)\}\}", legend)) <= left


def test_alert_messages_use_existing_labels() -> None:
    for rule in RULES.values():
        used = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
        assert used <= (asked(rule["expr"]).kept if " by " in rule["expr"] else TARGET)


# Evaluation by promtool


def write(folder: Path, name: str, content: Json) -> Path:
    path = folder / name
    path.write_text(yaml.safe_dump(content))
    return path


def test_the_rules_are_valid(tmp_path: Path) -> None:
    promtool("check", "rules", "--lint=all", "--lint-fatal", write(tmp_path, "rules.yaml", {"groups": GROUPS}))


def test_every_query_of_the_dashboard_shows_something(tmp_path: Path, emitted: str) -> None:
    """The queries are evaluated over the service's metrics, each series growing by one a minute."""
    shown = [
        {
            "expr": f"count({query}) > bool 0",
            "eval_time": "10m",
            "exp_samples": [{"labels": "{}", "value": 1}],
        }
        for query, _ in QUERIES.values()
    ]
    test = {"interval": "1m", "input_series": list(scraped(emitted)), "promql_expr_test": shown}
    promtool("test", "rules", write(tmp_path, "test.yaml", {"evaluation_interval": "1m", "tests": [test]}))


def scraped(emitted: str) -> Iterator[Json]:
    """Yield the series as Prometheus stores them, with the target's labels."""
    for family in text_string_to_metric_families(emitted):
        for sample in family.samples:
            labels = {**sample.labels, "job": NAME, "pod": "modelhooks-1"}
            text = ", ".join(f"{name}={json.dumps(value)}" for name, value in labels.items())
            yield {"series": f"{sample.name}{{{text}}}", "values": "1+1x15"}


PAGE = (ROOT / "docs" / "operations" / "metrics.md").read_text()
ON_PAGE: dict[str, Json] = {
    item["kind"]: item
    for block in re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    for item in yaml.safe_load_all(block)
    if "kind" in item
}
"""What the page adds for Metacontroller: a PodMonitor and a PrometheusRule."""
METACONTROLLER = 'job="metacontroller/metacontroller", pod="metacontroller-0"'


@dataclass(frozen=True)
class Case:
    """Series for which an alert is quiet at one time and fires at another, with these labels; one value a minute."""

    series: dict[str, str]
    quiet: str
    fires: str
    labels: dict[str, str] = field(default_factory=dict)
    value: str = ""


POD = {"job": "modelhooks", "pod": "modelhooks-1"}
SERIES = 'job="modelhooks", pod="modelhooks-1"'
SYNC = f'{SERIES}, handler="/llmkube/models/sync", method="POST"'
HANDLER = {"handler": "/llmkube/models/sync"}
CASES = {
    "ModelhooksDown": Case({f"up{{{SERIES}}}": "1x5 0x20"}, "9m", "12m"),
    "ModelhooksFailing": Case({f'http_requests_total{{{SYNC}, status="500"}}': "0x5 1+1x40"}, "10m", "25m", HANDLER),
    "ModelhooksRefusing": Case(
        {f'http_requests_total{{{SYNC}, status="413"}}': "0x5 1+1x40"}, "15m", "30m", {**HANDLER, "status": "413"}
    ),
    "ModelhooksSlow": Case(
        {
            f'http_request_duration_seconds_bucket{{{SYNC}, le="{le}"}}': f"0+{count}x60"
            for le, count in (("1.0", 95), ("5.0", 100), ("+Inf", 100))
        },
        "10m",
        "25m",
        HANDLER,
    ),
    "ModelhooksCertificateExpiring": Case(
        {f"modelhooks_certificate_expiry_seconds{{{SERIES}}}": "1000000x120"}, "30m", "90m", value="11d 12h 16m 40s"
    ),
    "ModelhooksCertificateUnusable": Case(
        {f"modelhooks_certificate_reload_failures_total{{{SERIES}}}": "0x5 1x30"}, "4m", "10m", POD
    ),
    "ModelhooksConnectionsRefused": Case(
        {f"modelhooks_connections_refused_total{{{SERIES}}}": "0x5 1+1x60"}, "15m", "30m", POD
    ),
    "ModelhooksInvalidSpecs": Case(
        {f'modelhooks_syncs_total{{{SERIES}, kind="Model", ready="InvalidSpec"}}': "0+1x120"},
        "30m",
        "90m",
        {"kind": "Model"},
    ),
    "ModelhooksLogLinesDropped": Case(
        {f"modelhooks_log_lines_dropped_total{{{SERIES}}}": "0x5 1+1x60"}, "15m", "30m", POD
    ),
}


def test_every_alert_has_a_case() -> None:
    assert CASES.keys() == RULES.keys()


@pytest.mark.parametrize("alert", RULES)
def test_an_alert_fires_when_it_should_and_says_so(tmp_path: Path, alert: str) -> None:
    check_alert(tmp_path, GROUPS, alert, CASES[alert])


def check_alert(folder: Path, groups: list[Json], alert: str, case: Case) -> None:
    """Evaluate a rule over the series of its case: quiet at first, then firing with its labels and annotations."""
    (rule,) = (rule for group in groups for rule in group["rules"] if rule["alert"] == alert)
    expected = {
        "exp_labels": {**case.labels, **rule["labels"]},
        "exp_annotations": {name: said(text, case) for name, text in rule["annotations"].items()},
    }
    quiet = {"alertname": alert, "eval_time": case.quiet, "exp_alerts": []}
    judged(folder, groups, case.series, [quiet, {**quiet, "eval_time": case.fires, "exp_alerts": [expected]}])


def said(template: str, case: Case) -> str:
    text = re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda match: case.labels[match[1]], template)
    return text.replace("{{ $value | humanizeDuration }}", case.value)


@pytest.mark.parametrize(
    "series",
    [
        {f"up{{{METACONTROLLER}}}": "1x5 0x20"},
        {f"up{{{METACONTROLLER}}}": "1x5 _x20"},
        {f"up{{{METACONTROLLER}}}": "1x5 0x20", f"up{{{SERIES}}}": "1x30"},
    ],
    ids=["it does not answer", "it has no pod", "the service answers"],
)
def test_the_alert_of_the_page_fires_while_metacontroller_is_down(tmp_path: Path, series: dict[str, str]) -> None:
    groups = ON_PAGE["PrometheusRule"]["spec"]["groups"]
    promtool("check", "rules", "--lint=all", "--lint-fatal", write(tmp_path, "page.yaml", {"groups": groups}))
    late = "_" in next(iter(series.values()))  # a series that ends is known for five more minutes
    check_alert(tmp_path, groups, "MetacontrollerDown", Case(series, "9m", "16m" if late else "12m"))
    good = [{"alertname": "MetacontrollerDown", "eval_time": "25m"}]
    judged(tmp_path, groups, {f"up{{{METACONTROLLER}}}": "1x30"}, good)


def test_no_alert_fires_on_a_good_day(tmp_path: Path) -> None:
    """Requests are answered in time, and counters keep their values."""
    good = {
        f"up{{{SERIES}}}": "1x180",
        f'http_requests_total{{{SYNC}, status="200"}}': "0+600x180",
        f'http_requests_total{{{SYNC}, status="500"}}': "7x180",
        **{f'http_request_duration_seconds_bucket{{{SYNC}, le="{le}"}}': "0+600x180" for le in ("0.01", "1.0", "+Inf")},
        f"modelhooks_certificate_expiry_seconds{{{SERIES}}}": f"{60 * 86400}x180",
        **{name: "3x180" for alert, case in CASES.items() if "_total" in (name := next(iter(case.series)))},
    }
    judged(tmp_path, GROUPS, good, [{"alertname": alert, "eval_time": "150m"} for alert in RULES])


def judged(folder: Path, groups: list[Json], series: dict[str, str], alerts: list[Json]) -> None:
    write(folder, "rules.yaml", {"groups": groups})
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": alerts,
    }
    content = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]}
    promtool("test", "rules", write(folder, "test.yaml", content))


def test_the_service_monitor_asks_where_metrics_are() -> None:
    """It uses the name in the certificate; the label ``job`` is the Service's name."""
    service = yaml.safe_load((ROOT / "manifests/base/service.yaml").read_text())
    spec = document("servicemonitor.yaml")["spec"]
    (endpoint,) = spec["endpoints"]
    assert service["metadata"]["name"] == NAME
    assert spec["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]
    assert endpoint["tlsConfig"]["serverName"] in authority.service_names(NAME, NAMESPACE, "cluster.local")
    assert (endpoint["scheme"], endpoint["path"]) == ("https", "/metrics")

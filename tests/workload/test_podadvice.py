"""Warnings about pods that Kubernetes accepts, and that cannot work as they are written."""

from __future__ import annotations

import pathlib
import shlex
from collections.abc import Iterable
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from app.kube.field import Advice, Path
from app.limits import MAX_ARGUMENTS, MAX_UNKNOWN_NAMES
from app.workload.advice import placementadvice, podadvice
from app.workload.advice.advise import advise
from app.workload.advice.podview import ContainerView, PodView, Sizes, containers_of, whole_container
from app.workload.engines.commandline import CommandLine

PATH = Path("spec")
WEB: Any = {"name": "web", "image": "registry.example.com/web:1"}
VLLM = "vllm/vllm-openai:v0.33.0"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
ADVICE = yaml.load((pathlib.Path(__file__).parent / "advice.yaml").read_text(), yaml.CSafeLoader)
LINES = yaml.load((pathlib.Path(__file__).parent / "lines.yaml").read_text(), yaml.CSafeLoader)


def paths(found: Iterable[Advice]) -> list[str]:
    return [str(advice.path).removeprefix("spec") for advice in found]


def whole_pod(pod: Any, path: Path) -> PodView:
    return PodView(pod, path, containers=containers_of(pod, path, whole_container))


@pytest.mark.parametrize("row", ADVICE.values(), ids=ADVICE)
def test_a_mistake_is_warned_of_with_its_place_and_what_to_write(row: Any) -> None:
    """A row without warnings has nothing to warn of."""
    sizes = Sizes(row["gpus"], row.get("tensor", 1), row.get("copies", 1)) if "gpus" in row else None

    def view(container: Any, path: Path) -> ContainerView:
        return replace(whole_container(container, path), sizes=sizes)

    containers, labels = containers_of(row["pod"], PATH, view), row.get("labels")
    pod = PodView(row["pod"], PATH, containers=containers, labels=labels, labels_field="spec.labels")
    assert [str(warning) for warning in advise([pod])] == row.get("warnings", [])


@pytest.mark.parametrize(("image", "line"), [(image, line) for image, lines in LINES.items() for line in lines])
def test_a_mistake_in_a_command_line_is_warned_of_with_what_to_write(image: str, line: str) -> None:
    pod = {"containers": [{"name": "main", "image": image, "args": shlex.split(line)}]}
    warnings = [str(warning).removeprefix("spec.containers[0].") for warning in advise([whole_pod(pod, PATH)])]
    assert warnings == LINES[image][line]


def container(pod: Any = None, **fields: Any) -> list[str]:
    found = advise([whole_pod({"containers": [{**WEB, **fields}], **(pod or {})}, Path())])
    return [path.removeprefix("containers[0]") for path in paths(found)]


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"command": ["node server.js"]}, ".command[0]"),
        ({"command": ["", "--verbose"]}, ".command[0]"),
        ({"startupProbe": {"exec": {"command": ["test -f /ready"]}}}, ".startupProbe.exec.command[0]"),
        ({"lifecycle": {"postStart": {"exec": {"command": ["touch /x"]}}}}, ".lifecycle.postStart.exec.command[0]"),
        ({"livenessProbe": {"httpGet": {"port": 80, "host": "127.0.1.1"}}}, ".livenessProbe.httpGet.host"),
        ({"readinessProbe": {"tcpSocket": {"port": 80, "host": "::1"}}}, ".readinessProbe.tcpSocket.host"),
        ({"lifecycle": {"preStop": {"httpGet": {"port": 80, "host": "localhost"}}}}, ".lifecycle.preStop.httpGet.host"),
        ({"env": [{"name": "PATH", "value": "/opt/bin:$(PATH)"}]}, ".env[0].value"),
        ({"env": [{"name": "URL", "value": "http://$(HOST)"}, {"name": "HOST", "value": "a"}]}, ".env[0].value"),
        ({"image": "lmsysorg/sglang:0.5.9"}, ".image"),
        ({"securityContext": {"runAsNonRoot": True, "runAsUser": 0}}, ".securityContext.runAsUser"),
        ({"resources": {"requests": {"memory": "2"}}}, ".resources.requests.memory"),
    ],
)
def test_warns_of_what_cannot_work(fields: Any, path: str) -> None:
    assert container(**fields) == [path]


def test_warns_of_the_user_of_the_pod_once() -> None:
    context = {"runAsUser": 0, "runAsNonRoot": True}
    pod = {
        "containers": [WEB, {**WEB, "name": "b", "securityContext": {"privileged": False}}],
        "securityContext": context,
    }
    assert paths(advise([whole_pod(pod, PATH)])) == [".securityContext.runAsUser"]


@pytest.mark.parametrize(
    ("pod", "fields"),
    [
        (
            {"hostNetwork": True, "dnsPolicy": "Default"},
            {"livenessProbe": {"httpGet": {"port": 80, "host": "127.0.0.1"}}},
        ),
        ({}, {"ports": [{"hostPort": 80}], "livenessProbe": {"httpGet": {"port": 80, "host": "localhost"}}}),
        ({}, {"livenessProbe": {"httpGet": {"port": 80, "host": "10.2.0.9"}}}),
        ({}, {"livenessProbe": {"exec": {"command": ["sh", "-c", "test -f /ready"]}}}),
        ({}, {"command": ["{{ .Program }} --flag"]}),
        ({}, {"env": [{"name": "A", "value": "x"}, None, {"name": "B", "value": "$(A) $$(C) $(NODE)"}, {"name": "C"}]}),
        ({}, {"image": "registry.example.com/sglang:0.5.9"}),
        ({}, {"image": "vllm/vllm-openai@sha256:" + "0" * 64}),
    ],
)
def test_says_nothing_of_what_may_work(pod: Any, fields: Any) -> None:
    assert container(pod, **fields) == []


def references(*texts: str, is_whole: bool = False) -> list[str]:
    found = podadvice.reference_warnings(Path("args").each(texts), {"TOKEN", "CACHE_DIR", ""}, is_whole=is_whole)
    return [str(advice) for advice in found]


def test_warns_of_variables_that_nothing_replaces() -> None:
    wrong = ["--key=$TOKEN", "${TOKEN}", "$OTHER_KEY", "$(CACHE_DIRS)"]
    assert [text.rpartition("; ")[2] for text in references(*wrong, is_whole=True)] == [
        *("write $(TOKEN)", "write $(TOKEN)", "write $(OTHER_KEY)"),
        "add it to env",
    ]
    assert len(references(*wrong)) == 3  # where a base may set other variables


@pytest.mark.parametrize(
    "text", ["$(TOKEN)", "$$TOKEN", "$$(X)", "$", "${env:TOKEN}", "a$b", "$5", "$(date +%s)", "$(API_SERVICE_HOST)"]
)
def test_accepts_what_is_replaced_or_meant_as_it_is(text: str) -> None:
    assert references(text, is_whole=True) == []


def test_of_all_arguments_of_a_pod_only_the_first_are_compared() -> None:
    def view(count: int, *words: str, **others: Any) -> PodView:
        args = [["--enforce-eager"] * count, [*words]]
        pod = {"containers": [{"name": f"c{at}", "image": VLLM, "args": line} for at, line in enumerate(args)]}
        whole = whole_pod(pod, PATH)
        return replace(whole, containers=[whole.containers[0], replace(whole.containers[1], **others)])

    wrong, unused = ("--modle=x", "--tokenzier=x"), CommandLine(["\u2014port=1", "\u2014host=x"], PATH.child("unused"))
    found = [".containers[1].args[0]", ".containers[1].args[1]"]
    assert paths(advise([view(MAX_ARGUMENTS - 2, *wrong)])) == found
    assert paths(advise([view(MAX_ARGUMENTS - 1, *wrong)])) == found[:1]
    assert paths(advise([view(MAX_ARGUMENTS, *wrong)])) == []
    assert paths(advise([view(MAX_ARGUMENTS - 3), view(1, *wrong)])) == found
    assert paths(advise([view(MAX_ARGUMENTS - 2), view(1, *wrong)])) == found[:1]
    assert paths(advise([view(MAX_ARGUMENTS - 3, "--seed=1", unused=unused)])) == [".unused[0]", ".unused[1]"]
    assert paths(advise([view(MAX_ARGUMENTS - 2, "--seed=1", unused=unused)])) == [".unused[0]"]


def test_warnings_of_variables_are_bounded() -> None:
    assert len(references(*["$TOKEN"] * 1000)) == MAX_UNKNOWN_NAMES


@pytest.mark.parametrize(
    ("key", "value", "is_wrong"),
    [
        ("kubernetes.io/arch", "aarch64", True),
        ("nvidia.com/gpu.memory", "40GB", True),
        ("nvidia.com/gpu.memory", "40960", False),
        ("nvidia.com/gpu.count", "four", True),
        ("karpenter.k8s.aws/instance-gpu-name", "L4", True),
        ("karpenter.k8s.aws/instance-gpu-name", "l4", False),
        ("nvidia.com/gpu.product", "NVIDIA-L4", False),
    ],
)
def test_warns_of_values_that_no_node_has(key: str, value: str, is_wrong: bool) -> None:
    found = [*placementadvice.selector_warnings({key: value}, PATH)]
    assert bool(found) is is_wrong
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}, PREFERRED: [{"preference": term}, None]}}
    assert len([*placementadvice.affinity_warnings(affinity, PATH)]) == 2 * is_wrong


def test_accepts_a_value_beside_one_that_nodes_have() -> None:
    term = {"matchExpressions": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64", "aarch64"]}]}
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}
    assert not [*placementadvice.affinity_warnings(affinity, PATH)]


def test_warns_of_terms_that_match_no_pod() -> None:
    term = {"topologyKey": "kubernetes.io/hostname"}
    affinity = {
        "podAffinity": {REQUIRED: [term]},
        "podAntiAffinity": {
            PREFERRED: [{"weight": 1, "podAffinityTerm": term}],
            REQUIRED: [term | {"labelSelector": {}}],
        },
    }
    found = paths(placementadvice.affinity_warnings(affinity, PATH))
    assert found == [f".podAffinity.{REQUIRED}[0]", f".podAntiAffinity.{PREFERRED}[0].podAffinityTerm"]
    assert not [*placementadvice.affinity_warnings(affinity, PATH, is_whole=False)]


def test_warns_of_constraints_that_do_not_spread_the_pods() -> None:
    def spread(**selector: Any) -> Any:
        return {"maxSkew": 1, "topologyKey": "a", "labelSelector": {"matchLabels": selector}}

    labels = {"app": "chat", "team": "a"}
    right = [spread(app="chat", team="a"), spread(**{"example.com/x": "y"}), spread(), {"labelSelector": {}}, None]
    assert not [*placementadvice.spread_warnings(right, PATH, labels, "podLabels")]
    wrong = [spread(app="other"), spread(tier="web"), {"topologyKey": "a"}]
    found = [*placementadvice.spread_warnings(wrong, PATH, labels, "podLabels")]
    assert paths(found) == ["[0].labelSelector.matchLabels[app]", "[1].labelSelector.matchLabels[tier]", "[2]"]
    assert found[0].endswith('its pods have "chat"')
    assert found[1].endswith("add it to podLabels")


def test_a_base_may_set_variables_first() -> None:
    pod = {"containers": [{**WEB, "env": [{"name": "A", "value": "$(B)"}, {"name": "B", "value": "x"}]}]}
    assert not [*advise([replace(whole_pod(pod, PATH), is_whole=False)])]


ABOVE = [{"name": "URL", "value": "http://$(HOST)"}, {"name": "HOST", "value": "new"}]


@pytest.mark.parametrize(
    ("known", "expected"),
    [({}, [".env[0].value"]), ({"base": {"env": [{"name": "HOST"}]}}, []), ({"variables": ["HOST"]}, [])],
    ids=["nowhere", "in what it is laid over", "set by its family"],
)
def test_a_variable_may_be_used_above_its_new_value_where_it_has_one_already(known: Any, expected: list[str]) -> None:
    view = replace(whole_container({**WEB, "env": ABOVE}, PATH), **known)
    assert paths(advise([PodView({"containers": [view.spec]}, PATH, containers=[view])])) == expected

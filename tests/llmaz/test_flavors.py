"""Flavors: the nodes that they select, and their params in arguments and variables (LZ-2.9, LZ-3.3)."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from app.kube.base import Json
from app.llmaz.flavors import add_affinity
from app.llmaz.openmodel.types import Flavor
from app.settings import Settings
from tests.llmaz.test_shipped import ENGINES
from tests.llmaz.world import (
    PLAYGROUND,
    RUNNER,
    SERVICE,
    child,
    condition,
    model,
    playground,
    pods,
    preset,
    runner,
    service,
    state,
    sync,
)

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def flavor(name: str, gpus: int = 1, node: Json | None = None, /, **params: str) -> Json:
    entry: Json = {"name": name, "limits": {"nvidia.com/gpu": gpus}}
    return entry | ({"nodeSelector": node} if node else {}) | ({"params": params} if params else {})


def offering(*flavors: Json) -> Json:
    return model(inferenceConfig={"flavors": list(flavors)})


def gpu(name: str) -> Json:
    """Return a flavor that selects nodes with this GPU."""
    return flavor(name, 1, {"gpu": name})


def term(**labels: str) -> Json:
    return {"matchExpressions": [{"key": k, "operator": "In", "values": [v]} for k, v in sorted(labels.items())]}


# The nodes.


def template(item: Json, of: Json, **settings: Any) -> Json:
    answer = sync(SERVICE, item, of, settings=Settings(**settings))
    spec: Json = child(answer, "Deployment")["spec"]["template"]["spec"]
    return spec


def claiming(*flavors: str, worker: Json | None = None) -> Json:
    return service(worker=worker, modelClaims={"models": [{"name": "opt"}], "inferenceFlavors": list(flavors)})


def affinity(item: Json, of: Json) -> Json:
    terms: Json = template(item, of).get("affinity", {}).get("nodeAffinity", {})
    return terms


def test_one_flavor() -> None:
    """All labels of its nodeSelector are required; nothing is preferred."""
    terms = affinity(service(), offering(flavor("a", 1, {"zone": "x", "gpu": "a"})))
    assert terms == {REQUIRED: {"nodeSelectorTerms": [term(gpu="a", zone="x")]}}


def test_several_are_alternatives_in_their_order() -> None:
    """One of them is required; earlier flavors are preferred to later ones."""
    terms = affinity(service(), offering(gpu("a"), gpu("b"), gpu("c")))
    assert terms[REQUIRED] == {"nodeSelectorTerms": [term(gpu="a"), term(gpu="b"), term(gpu="c")]}
    assert terms[PREFERRED] == [
        {"weight": 64, "preference": term(gpu="a")},
        {"weight": 32, "preference": term(gpu="b")},
    ]


def test_the_claim_decides_which_and_in_what_order() -> None:
    """Flavors that the claim does not name, and those that the model lacks, are left out."""
    terms = affinity(claiming("c", "x", "a", "c"), offering(gpu("a"), gpu("b"), gpu("c")))
    assert terms == {
        REQUIRED: {"nodeSelectorTerms": [term(gpu="c"), term(gpu="a")]},
        PREFERRED: [{"weight": 64, "preference": term(gpu="c")}],
    }
    assert affinity(claiming("x"), offering(gpu("a"))) == {}


def test_a_flavor_of_any_node() -> None:
    """Nothing is required; flavors before it are preferred, and those after it are left out."""
    assert affinity(service(), offering(gpu("a"), flavor("any"), gpu("b"))) == {
        PREFERRED: [{"weight": 64, "preference": term(gpu="a")}]
    }
    assert affinity(service(), offering(flavor("any"), gpu("b"))) == {}


def selecting(gpu: str) -> Flavor:
    return Flavor(name=gpu, node_selector={"gpu": gpu})


def test_a_first_flavor_outweighs_all_later_ones() -> None:
    """A node of an earlier flavor wins over one that all later flavors select."""
    pod: Json = {}
    add_affinity(pod, [selecting(str(rank)) for rank in range(8)])
    weights = [weight["weight"] for weight in pod["affinity"]["nodeAffinity"][PREFERRED]]
    assert all(1 <= weight <= 100 for weight in weights)
    assert all(weight > sum(weights[rank + 1 :]) for rank, weight in enumerate(weights))
    assert all(weight != other for weight, other in combinations(weights, 2))


def test_what_the_template_asks_for_counts_too() -> None:
    """Each of its terms is combined with each flavor; an empty term matches no node, and stays so."""
    mine: Json = {
        "podAntiAffinity": {"x": []},
        "nodeAffinity": {
            REQUIRED: {"nodeSelectorTerms": [term(zone="x"), {"matchFields": [{"key": "metadata.name"}]}, {}]},
            PREFERRED: [{"weight": 1, "preference": term(disk="ssd")}],
        },
    }
    pod: Json = {"affinity": mine}
    add_affinity(pod, [selecting("a"), selecting("b")])
    field = {"matchFields": [{"key": "metadata.name"}]}
    zone = term(zone="x")["matchExpressions"]
    assert pod["affinity"]["podAntiAffinity"] == {"x": []}
    assert pod["affinity"]["nodeAffinity"] == {
        REQUIRED: {
            "nodeSelectorTerms": [
                {"matchExpressions": zone + term(gpu="a")["matchExpressions"]},
                {"matchExpressions": zone + term(gpu="b")["matchExpressions"]},
                field | term(gpu="a"),
                field | term(gpu="b"),
            ]
        },
        PREFERRED: [
            {"weight": 1, "preference": term(disk="ssd")},
            {"weight": 64, "preference": term(gpu="a")},
        ],
    }
    hopeless: Json = {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}]}}}}
    add_affinity(hopeless, [selecting("a")])
    assert hopeless["affinity"]["nodeAffinity"][REQUIRED] == {"nodeSelectorTerms": [{}]}


def test_every_pod_of_a_group() -> None:
    """Leader and workers have the same accelerators, and therefore the same node affinity."""
    item = service(workload={"leaderTemplate": pods(), "size": 2})
    group = child(sync(SERVICE, item, offering(gpu("a"))), "LeaderWorkerSet")["spec"]["leaderWorkerTemplate"]
    for kind in ("leaderTemplate", "workerTemplate"):
        node = group[kind]["spec"]["affinity"]["nodeAffinity"]
        assert node == {REQUIRED: {"nodeSelectorTerms": [term(gpu="a")]}}


def test_the_way_of_upstream() -> None:
    """If affinity is disabled for a scheduler that reads OpenModels, pods have only the annotation."""
    item, of = claiming("b", "a"), offering(gpu("a"), gpu("b"))
    answer = sync(SERVICE, item, of, settings=Settings(llmaz_flavor_affinity=False))
    pod_template = child(answer, "Deployment")["spec"]["template"]
    assert pod_template["metadata"]["annotations"] == {"llmaz.io/inference-service-flavors": "b,a"}
    assert "affinity" not in pod_template["spec"]


def test_without_selectors_nothing_changes() -> None:
    """Flavors without a nodeSelector do not change the pods' affinity."""
    given = {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": term(a="b")}]}}
    of = offering(flavor("a"), flavor("b"))
    assert template(service(worker=pods(RUNNER, affinity=given)), of)["affinity"] == given
    assert "affinity" not in template(service(), of)


def test_alternatives_with_other_limits() -> None:
    """Pods always have the limits of one flavor, and Ready reports flavors with other limits."""
    one, four = flavor("one", 1, {"gpu": "a"}), flavor("four", 4, {"gpu": "b"})
    told = condition(sync(SERVICE, service(), offering(one, four)), "Ready")["message"]
    assert "pods always have the limits of flavor one, those of flavor four have no effect" in told
    anywhere = {"name": "large", "limits": {"nvidia.com/gpu": 1, "memory": "40Gi"}}
    assert "those of flavor large" in condition(sync(SERVICE, service(), offering(one, anywhere)), "Ready")["message"]
    quiet = (claiming("four"), offering(one, four)), (service(), offering(one, flavor("same", 1, {"gpu": "b"})))
    assert all("limits of" not in condition(sync(SERVICE, *case), "Ready")["message"] for case in quiet)


def test_instance_types_select_nodes() -> None:
    """INSTANCE-TYPE selects nodes if the flavor has no nodeSelector and the value is a valid label value."""
    of = offering(
        flavor("a", 1, **{"INSTANCE-TYPE": "p4d.24xlarge"}), flavor("b", 1, {"gpu": "b"}, **{"INSTANCE-TYPE": "g5"})
    )
    terms = [term(**{"node.kubernetes.io/instance-type": "p4d.24xlarge"}), term(gpu="b")]
    assert template(service(), of)["affinity"]["nodeAffinity"][REQUIRED] == {"nodeSelectorTerms": terms}
    for value in ("", "p4d 24xlarge"):
        assert "affinity" not in template(service(), offering(flavor("a", 1, **{"INSTANCE-TYPE": value})))


def test_labels_that_no_node_can_have() -> None:
    """A model may be older than this rule; its pods could not be scheduled, so no child is created."""
    answer = sync(SERVICE, service(), offering(flavor("a", 1, {"a b": "x"})))
    assert answer["children"] == []
    assert state(answer, "Ready") == ("False", "ModelInvalid")


# The params.


def engine(item: Json, *related: Json) -> Json:
    created = child(sync(PLAYGROUND, item, *related), "Service")
    return runner(created["spec"]["workloadTemplate"]["workerTemplate"])


def args(*given: str, of: Json, claimed: list[str] | None = None, **config: Any) -> list[str]:
    """Return the engine's arguments for a preset with these arguments."""
    claim: Json = {"modelName": "opt"} | ({"inferenceFlavors": claimed} if claimed else {})
    item = playground(modelClaim=claim, backendRuntimeConfig=config)
    arguments: list[str] = engine(item, of, preset(args=list(given)))["args"]
    return arguments


DEGREES: dict[str, tuple[Json, list[str]]] = {
    "no flavors": (model(), ["1", "1"]),
    "no limits": (offering({"name": "a"}), ["1", "1"]),
    "one GPU": (offering(flavor("a", 1)), ["1", "1"]),
    "four": (offering(flavor("a", 4)), ["4", "1"]),
    "four in two stages": (offering(flavor("a", 4, PP="2")), ["2", "2"]),
    "as the flavor says": (offering(flavor("a", 8, TP="2", PP="1")), ["2", "1"]),
    "of another make": (offering({"name": "a", "limits": {"amd.com/gpu": "2", "cpu": 8, "memory": "4Gi"}}), ["2", "1"]),
    "no devices that share a model": (
        offering({"name": "a", "limits": {"nvidia.com/mig-1g.5gb": 2, "nvidia.com/gpumem": 20000, "rdma/hca": 2}}),
        ["1", "1"],
    ),
    "more stages than devices": (offering(flavor("a", 1, PP="2")), ["1", "2"]),
}


@pytest.mark.parametrize(("of", "want"), DEGREES.values(), ids=DEGREES.keys())
def test_degrees_of_parallelism_come_from_the_flavor(of: Json, want: list[str]) -> None:
    """TP and PP come from the flavor; by default TP covers all devices. Both always have a value."""
    assert args("{{ .TP }}", "{{ .PP }}", of=of) == want


def test_any_other_param() -> None:
    """Params come from the chosen flavor, and cannot replace ModelName and similar placeholders."""
    two = offering(
        flavor("a", **{"INSTANCE-TYPE": "p4d", "ModelName": "x"}), flavor("b", **{"INSTANCE-TYPE": "g5.xlarge"})
    )
    assert args("--on={{ .INSTANCE-TYPE }}", "{{.ModelName}}", of=two) == ["--on=p4d", "opt"]
    assert args("{{ .INSTANCE-TYPE }}", of=two, claimed=["b", "a"]) == ["g5.xlarge"]


MISSING: dict[str, tuple[str, Json, str]] = {
    "a param that the flavor lacks": ("{{ .LEN }}", offering(flavor("a")), "the chosen flavor has no such param"),
    "no flavor": ("{{ .LEN }}", model(), "the chosen flavor has no such param"),
    "a degree that is no number": ("{{ .TP }}", offering(flavor("a", TP="four")), "must be a whole number"),
    "a text of a shell": ("x{{ .LEN }}", offering(flavor("a", LEN="$(id)")), "cannot be inserted"),
}


@pytest.mark.parametrize(("given", "of", "text"), MISSING.values(), ids=MISSING.keys())
def test_a_param_without_a_value(given: str, of: Json, text: str) -> None:
    """No child is created while the param has no value."""
    answer = sync(PLAYGROUND, playground(), of, preset(args=[given]))
    assert answer["children"] == []
    assert state(answer, "Ready") == ("False", "ArgumentNotRenderable")
    assert text in condition(answer, "Ready")["message"]


def test_variables() -> None:
    """Params are replaced in the engine's variables; other placeholders and the Playground's variables stay."""
    item = preset(args=[])
    item["spec"]["envs"] = [
        {"name": "DEVICES", "value": "{{ .TP }}/{{ .LEN }}"},
        {"name": "PROMPT", "value": "{{ .Prompt }} {{ .ModelPath }}"},
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
    ]
    own = {"envs": [{"name": "OWN", "value": "{{ .TP }}"}]}
    container = engine(playground(backendRuntimeConfig=own), offering(flavor("a", 4, LEN="9 000")), item)
    assert container["env"] == [
        {"name": "DEVICES", "value": "4/9 000"},
        *item["spec"]["envs"][1:],
        {"name": "OWN", "value": "{{ .TP }}"},
    ]


ADDED = {"param": "LEN", "args": ["--max-len", "{{ .LEN }}"], "unless": ["-l"]}
ADDITIONS: dict[str, tuple[Json, list[str], list[str]]] = {
    "where the flavor has it": (offering(flavor("a", LEN="9")), ["--x"], ["--base", "--max-len", "9", "--x"]),
    "not where it has not": (offering(flavor("a")), [], ["--base"]),
    "not where the Playground says it": (offering(flavor("a", LEN="9")), ["--max-len=8"], ["--base", "--max-len=8"]),
    "with underscores": (offering(flavor("a", LEN="9")), ["--max_len", "8"], ["--base", "--max_len", "8"]),
    "by another name": (offering(flavor("a", LEN="9")), ["-l", "8"], ["--base", "-l", "8"]),
}


@pytest.mark.parametrize(("of", "own", "want"), ADDITIONS.values(), ids=ADDITIONS.keys())
def test_arguments_for_a_param(of: Json, own: list[str], want: list[str]) -> None:
    """They follow the preset's arguments and precede the Playground's."""
    item = playground(backendRuntimeConfig={"args": own})
    assert engine(item, of, preset(args=["--base"], paramArgs=[ADDED]))["args"] == want


SHIPPED: dict[str, tuple[str, Json, list[str], list[str]]] = {
    "vllm on four": ("vllm", flavor("a", 4), [], ["--tensor-parallel-size", "4"]),
    "vllm in two stages": (
        "vllm",
        flavor("a", 8, PP="2"),
        [],
        ["--tensor-parallel-size", "4", "--pipeline-parallel-size", "2"],
    ),
    "vllm on one": ("vllm", flavor("a", 1), [], []),
    "vllm that is told": ("vllm", flavor("a", 4), ["-tp=2"], ["-tp=2"]),
    "vllm that is told in full": (
        "vllm",
        flavor("a", 4),
        ["--tensor-parallel-size", "2"],
        ["--tensor-parallel-size", "2"],
    ),
    "sglang": ("sglang", flavor("a", 4), [], ["--tensor-parallel-size", "4"]),
    "sglang that is told": ("sglang", flavor("a", 4), ["--tp", "2"], ["--tp", "2"]),
    "TensorRT-LLM": ("tensorrt-llm", flavor("a", 4, TP="2", PP="2"), [], ["--tp_size", "2", "--pp_size", "2"]),
    "llama.cpp, which takes what it sees": ("llamacpp", flavor("a", 4), [], []),
}


@pytest.mark.parametrize(("name", "given", "own", "want"), SHIPPED.values(), ids=SHIPPED.keys())
def test_shipped_presets(name: str, given: Json, own: list[str], want: list[str]) -> None:
    """A model is split over all GPUs unless the user sets it; with one GPU no argument is added."""
    item = playground(backendRuntimeConfig={"backendName": name, "args": own})
    alone = playground(backendRuntimeConfig={"backendName": name})
    split = engine(item, offering(given), ENGINES[name])["args"]
    assert split == [*engine(alone, model(), ENGINES[name])["args"], *want]


def test_shipped_speculative_decoding() -> None:
    """The preset always sets the tensor-parallel size."""
    claims = {"models": [{"name": "opt"}, {"name": "small", "role": "draft"}]}
    for of, want in ((model(), "1"), (offering(flavor("a", 4)), "4")):
        arguments = engine(playground(modelClaims=claims), of, model("small"), ENGINES["vllm"])["args"]
        assert arguments[arguments.index("-tp") + 1] == want


def test_warns_of_gpus_that_the_engine_does_not_use() -> None:
    """Ready names the param without effect (LZ-N35)."""
    service_ready = {"conditions": [{"type": "Ready", "status": "True", "reason": "ServiceReady", "message": ""}]}
    for name, told in (("sglang", True), ("vllm", False)):
        item = playground(backendRuntimeConfig={"backendName": name})
        related = (offering(flavor("a", 4, PP="2")), ENGINES[name])
        created = child(sync(PLAYGROUND, item, *related), "Service")
        message = condition(sync(PLAYGROUND, item, *related, children=[{**created, "status": service_ready}]), "Ready")
        assert ("flavor a: PP has no effect" in message["message"]) == told

"""Configuration of the endpoint picker by its version, and its tokenizer (KS-4.3)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.kserve.constants import PICKER_VERSION
from app.kserve.spec.pickerconfig import Picker, arguments, configuration, metrics, picker_config, picker_version
from app.kube.base import Json
from tests.kserve.objects import Cluster, gateway, service

CONFIG: Json = {"apiVersion": "inference.networking.x-k8s.io/v1alpha1", "kind": "EndpointPickerConfig"}


def default(picker: Picker, *, disaggregated: bool = False, adapters: bool = False) -> Json:
    config: Json = json.loads(picker_config(None, picker, disaggregated=disaggregated, adapters=adapters).text)
    return config


def types(config: Json) -> list[str]:
    return [plugin["type"] for plugin in config["plugins"]]


def scores(config: Json) -> list[list[str]]:
    return [[reference["pluginRef"] for reference in profile["plugins"]] for profile in config["schedulingProfiles"]]


@pytest.mark.parametrize(
    ("text", "version"),
    [("0.9.0", (0, 9)), ("v0.7.1", (0, 7)), ("1.10", (1, 10)), ("", None), ("latest", None), ("9", None)],
)
def test_version_of_the_picker(text: str, version: tuple[int, int] | None) -> None:
    assert picker_version({PICKER_VERSION: text}) == version


def test_default_of_a_picker_without_a_version_is_that_of_the_first_presets() -> None:
    assert scores(default(Picker())) == [["queue-scorer", "prefix-cache-scorer", "max-score-picker"]]
    assert types(default(Picker(), disaggregated=True))[-1] == "pd-profile-handler"


@pytest.mark.parametrize("version", [(0, 4), (0, 9)])
def test_default_of_a_picker_with_a_version(version: tuple[int, int]) -> None:
    expected = ["queue-scorer", "kv-cache-utilization-scorer", "prefix-cache-scorer", "no-hit-lru-scorer"]
    assert scores(default(Picker(version))) == [[*expected, "max-score-picker"]]


def test_default_with_prefill_has_the_handlers_of_the_version() -> None:
    """The scorer for adapters follows the filter in each profile; its plugin is listed last."""
    config = default(Picker((0, 9)), disaggregated=True, adapters=True)
    assert types(config)[0] == "disagg-headers-handler"
    assert types(config)[-3:] == ["always-disagg-pd-decider", "disagg-profile-handler", "lora-affinity-scorer"]
    assert config["plugins"][-2]["parameters"] == {"deciders": {"prefill": "always-disagg-pd-decider"}}
    assert [profile[:2] for profile in scores(config)] == [
        ["prefill-filter", "lora-affinity-scorer"],
        ["decode-filter", "lora-affinity-scorer"],
    ]
    assert types(default(Picker((0, 6)), disaggregated=True))[-1] == "pd-profile-handler"


OLD: Json = {
    **CONFIG,
    "plugins": [
        {"type": "prefill-header-handler"},
        {"type": "prefix-cache-scorer", "parameters": {"blockSize": 5, "autoTune": False}},
        {"type": "pd-profile-handler", "parameters": {"threshold": 0, "hashBlockSize": 5, "primaryPort": 8000}},
        {"type": "model-server-protocol-metrics"},
    ],
    "schedulingProfiles": [{"name": "default", "plugins": [{"pluginRef": "prefill-header-handler"}]}],
}


def test_plugins_of_an_older_picker_get_their_new_names() -> None:
    config = json.loads(configuration(OLD, Picker((0, 9))))
    assert config["plugins"] == [
        {"type": "disagg-headers-handler"},
        {"type": "prefix-cache-scorer"},
        {"type": "always-disagg-pd-decider"},
        {"type": "disagg-profile-handler", "parameters": {"deciders": {"prefill": "always-disagg-pd-decider"}}},
        {"type": "core-metrics-extractor"},
    ]
    assert scores(config) == [["disagg-headers-handler"]]


@pytest.mark.parametrize("version", [None, (0, 5)])
def test_an_older_picker_gets_them_as_written(version: tuple[int, int] | None) -> None:
    assert json.loads(configuration(OLD, Picker(version))) == OLD


HANDLERS: dict[str, tuple[Json, list[Json], Json]] = {
    "a threshold": (
        {"threshold": 64},
        [{"type": "prefix-based-pd-decider", "parameters": {"nonCachedTokens": 16}}],
        {"deciders": {"prefill": "prefix-based-pd-decider"}},
    ),
    "a threshold below a token": (
        {"threshold": 0.5},
        [{"type": "prefix-based-pd-decider", "parameters": {"nonCachedTokens": 1}}],
        {"deciders": {"prefill": "prefix-based-pd-decider"}},
    ),
    "a decider": ({"deciderPluginName": "mine"}, [], {"deciders": {"prefill": "mine"}}),
    "profiles": (
        {"prefillProfile": "a"},
        [{"type": "always-disagg-pd-decider"}],
        {"deciders": {"prefill": "always-disagg-pd-decider"}, "profiles": {"prefill": "a"}},
    ),
    "what no picker has used for long": (
        {"threshold": 0, "primaryPort": 8000, "prefixPluginName": "prefix-cache-scorer", "prefixPluginType": "a"},
        [{"type": "always-disagg-pd-decider"}],
        {"deciders": {"prefill": "always-disagg-pd-decider"}},
    ),
    "deciders already": ({"deciders": {"prefill": "mine"}}, [], {"deciders": {"prefill": "mine"}}),
}


@pytest.mark.parametrize("case", HANDLERS)
def test_who_decides_about_prefill(case: str) -> None:
    parameters, deciders, expected = HANDLERS[case]
    old = {**CONFIG, "plugins": [{"type": "pd-profile-handler", "parameters": parameters}]}
    plugins = json.loads(configuration(old, Picker((0, 7))))["plugins"]
    assert plugins == [*deciders, {"type": "disagg-profile-handler", "parameters": expected}]


PRESENT: dict[str, tuple[Json, Json]] = {
    "nothing: no separate prefill": ({}, {}),
    "profiles alone": ({"decodeProfile": "a"}, {"decodeProfile": "a"}),
    "a threshold": ({"threshold": 0}, {"deciders": {"prefill": "always-disagg-pd-decider"}}),
    "a port beside deciders": ({"deciders": {"prefill": "a"}, "primaryPort": 8000}, {"deciders": {"prefill": "a"}}),
    "a former profile beside deciders": (
        {"deciders": {"prefill": "a"}, "decodeProfile": "b"},
        {"deciders": {"prefill": "a"}, "profiles": {"decode": "b"}},
    ),
    "a port alone": ({"primaryPort": 8000}, {}),
    "an encoder": (
        {"encodeDeciderPluginName": "mine", "encodeProfile": "a", "threshold": 0},
        {"deciders": {"encode": "mine", "prefill": "always-disagg-pd-decider"}, "profiles": {"encode": "a"}},
    ),
    "two names of one decider": (
        {"deciderPluginName": "a", "prefillDeciderPluginName": "b"},
        {"deciders": {"prefill": "b"}},
    ),
}


@pytest.mark.parametrize("case", PRESENT)
def test_a_handler_of_the_present_type_gets_no_prefill_that_it_did_not_ask_for(case: str) -> None:
    parameters, expected = PRESENT[case]
    plugin = {"type": "disagg-profile-handler", "parameters": parameters}
    plugins = json.loads(configuration({**CONFIG, "plugins": [plugin]}, Picker((0, 9))))["plugins"]
    assert plugins[-1] == {"type": "disagg-profile-handler", "parameters": expected}


def test_a_decider_that_is_there_is_not_added() -> None:
    plugins = [{"type": "always-disagg-pd-decider"}, {"type": "pd-profile-handler", "parameters": {"threshold": 0}}]
    assert types(json.loads(configuration({**CONFIG, "plugins": plugins}, Picker((0, 7))))) == [
        "always-disagg-pd-decider",
        "disagg-profile-handler",
    ]


def test_a_name_after_a_type_is_renamed_with_its_references() -> None:
    named = {**OLD, "plugins": [{"type": "queue-scorer", "name": "prefill-header-handler"}]}
    config = json.loads(configuration(named, Picker((0, 9))))
    assert config["plugins"] == [{"type": "queue-scorer", "name": "disagg-headers-handler"}]
    assert scores(config) == [["disagg-headers-handler"]]


@pytest.mark.parametrize(("version", "parameters"), [((0, 8), {"blockSizeTokens": 5, "blockSize": 5}), ((0, 9), None)])
def test_what_the_scorer_of_the_prefix_cache_reads(version: tuple[int, int], parameters: Json | None) -> None:
    """From 0.9 on another plugin counts blocks, whose name is the scorer's only parameter."""
    plugin = {"type": "prefix-cache-scorer", "parameters": {"blockSize": 5, "hashBlockSize": 6}}
    (scorer,) = json.loads(configuration({**CONFIG, "plugins": [plugin]}, Picker(version)))["plugins"]
    assert scorer.get("parameters") == parameters
    plugin["parameters"] = {"prefixMatchInfoProducerName": "mine", "autoTune": False}
    (scorer,) = json.loads(configuration({**CONFIG, "plugins": [plugin]}, Picker((0, 9))))["plugins"]
    assert scorer["parameters"] == {"prefixMatchInfoProducerName": "mine"}


BOMB = "kind: EndpointPickerConfig\na: &a [1,1,1,1,1,1,1,1]\n" + "".join(
    f"{x}: &{x} [*{y},*{y},*{y},*{y},*{y},*{y},*{y},*{y}]\n" for y, x in zip("abcdefg", "bcdefgh", strict=True)
)
UNCHANGED = {
    "a comment": "# mine\nkind: EndpointPickerConfig\nplugins:\n- type: queue-scorer\n",
    "no YAML": "a: [",
    "a scalar": "text",
    "aliases without end": BOMB,
    "a document in itself": "kind: EndpointPickerConfig\na: &a [*a]",
    "another kind": "plugins:\n- type: prefill-header-handler\n",
    "strange plugins": "kind: EndpointPickerConfig\nplugins: [1, [2], {type: [3]}]\nschedulingProfiles: [{plugins: 4}]",
}


@pytest.mark.parametrize("case", UNCHANGED)
def test_a_string_that_needs_no_change_stays_as_it_is(case: str) -> None:
    assert configuration(UNCHANGED[case], Picker((0, 9), has_tokenizer=True)) == UNCHANGED[case]


@pytest.mark.parametrize(
    "parameters", [None, 1, [], {"indexerConfig": 1}, {"indexerConfig": {"tokenizersPoolConfig": 1}}]
)
def test_the_tokenizer_is_named_whatever_parameters_there_are(parameters: Any) -> None:
    config = {**CONFIG, "plugins": [{"type": "precise-prefix-cache-scorer", "parameters": parameters}]}
    plugin = json.loads(configuration(config, Picker((0, 9), has_tokenizer=True)))["plugins"][0]
    assert plugin["parameters"]["indexerConfig"]["tokenizersPoolConfig"]["modelName"] == "base"


def test_the_tokenizer_in_the_pod_is_the_one_that_is_asked() -> None:
    """Whatever tokenizer the parameters name; the rest of them stays."""
    pool = {"modelName": "other", "workersCount": 5, "uds": {"socketFile": "/x", "timeout": 1}}
    parameters = {"indexerConfig": {"tokenizersPoolConfig": pool}}
    config = {**CONFIG, "plugins": [{"type": "precise-prefix-cache-scorer", "parameters": parameters}]}
    (plugin,) = json.loads(configuration(config, Picker((0, 9), has_tokenizer=True)))["plugins"]
    socket = "/tmp/tokenizer/tokenizer-uds.socket"
    tokenizers = plugin["parameters"]["indexerConfig"]["tokenizersPoolConfig"]
    assert tokenizers == {"modelName": "base", "workersCount": 5, "uds": {"socketFile": socket, "timeout": 1}}


@pytest.mark.parametrize(
    ("parameters", "blocks"),
    [
        ({"indexerConfig": {"tokenProcessorConfig": {"blockSize": 64}}}, {"blockSize": 64}),
        ({"indexerConfig": {"tokenProcessorConfig": {"blockSize": 64}}, "tokenProcessorConfig": {}}, {}),
        ({"tokenProcessorConfig": {"hashSeed": "42"}}, {"hashSeed": "42"}),
        ({}, None),
    ],
)
def test_the_size_of_blocks_is_where_the_picker_reads_it(parameters: Json, blocks: Json | None) -> None:
    """Earlier pickers read it in ``indexerConfig``; one that misses it counts in other blocks than the servers."""
    config = {**CONFIG, "plugins": [{"type": "precise-prefix-cache-scorer", "parameters": parameters}]}
    plugin = json.loads(configuration(config, Picker((0, 9), has_tokenizer=True)))["plugins"][0]
    assert plugin["parameters"].get("tokenProcessorConfig") == blocks


@pytest.mark.parametrize("has_tokenizer", [True, False])
def test_the_precise_scorer_gets_nothing_that_it_refuses(has_tokenizer: bool) -> None:
    """From v0.9 on it ends with parameters that it does not know, as KServe's sample has them."""
    indexer = {
        "kvBlockIndexConfig": {"enableMetrics": True},
        "prefixStoreConfig": {"cacheSize": 1},
        "tokenProcessorConfig": {"blockSize": 64, "hashSeed": "42"},
        "tokenizersPoolConfig": {"workersCount": 8, "tokenizersCacheDir": "/mnt/tokenizers"},
    }
    plugin = {"type": "precise-prefix-cache-scorer", "parameters": {"indexerConfig": indexer}}
    config = {**CONFIG, "plugins": [plugin]}
    (scorer,) = json.loads(configuration(config, Picker((0, 9), has_tokenizer=has_tokenizer)))["plugins"]
    parameters = scorer["parameters"]
    assert parameters["tokenProcessorConfig"] == {"blockSize": 64, "hashSeed": "42"}
    assert parameters["indexerConfig"].keys() == {"kvBlockIndexConfig", "tokenizersPoolConfig"}
    assert parameters["indexerConfig"]["tokenizersPoolConfig"].keys() - {"modelName", "uds"} == {"workersCount"}
    (former,) = json.loads(configuration(config, Picker((0, 8))))["plugins"]
    assert former == plugin


@pytest.mark.parametrize(
    ("version", "type_"), [((0, 7), "model-server-protocol-metrics"), ((0, 9), "core-metrics-extractor")]
)
def test_options_that_name_metrics_are_a_plugin_of_later_pickers(version: tuple[int, int], type_: str) -> None:
    """They refuse to start with the options."""
    given = [
        "--v",
        "2",
        "--lora-info-metric",
        "mine:lora",
        "-cache-info-metric=mine:cache",
        "--config-text",
        json.dumps(OLD),
    ]
    picker = Picker(version, metrics=tuple(metrics(given).items()))
    *others, text = arguments(given, picker)
    assert others == ["--v", "2", "--config-text"]
    plugins = json.loads(text)["plugins"]
    metrics_plugin = next(plugin for plugin in plugins if plugin["type"] == type_)
    assert "parameters" not in metrics_plugin  # OLD has the plugin already
    fresh = {**OLD, "plugins": OLD["plugins"][:1]}
    *_, text = arguments([*given[:-1], json.dumps(fresh)], picker)
    added = json.loads(text)["plugins"][-1]
    assert added["name"] == added["type"] == type_
    assert added["parameters"]["engineConfigs"] == [
        {"name": "vllm", "loraSpec": "mine:lora", "cacheInfoSpec": "mine:cache"}
    ]


def test_arguments_follow_the_version() -> None:
    """Deprecated options with their default values are removed; a configuration in the arguments is converted too."""
    given = ["--v", "2", "--lora-info-metric", "vllm:lora_requests_info", "--cache-info-metric=mine"]
    given += ["--kv-cache-usage-percentage-metric=vllm:kv_cache_usage_perc", "--config-text", json.dumps(OLD)]
    *others, text = arguments(given, Picker((0, 9)))
    assert others == ["--v", "2", "--cache-info-metric=mine", "--config-text"]
    assert types(json.loads(text))[0] == "disagg-headers-handler"
    assert arguments(given, Picker()) == [*given[:-1], configuration(json.dumps(OLD), Picker())]


# The tokenizer.

SCHEDULER = "demo-kserve-router-scheduler"


def settled(plugin: str, version: str = "0.9.0", **spec: Any) -> Cluster:
    """Return the cluster of a service whose endpoint picker has a tokenizer and a configuration with one plugin."""
    scheduler = {
        "annotations": {PICKER_VERSION: version},
        "template": {"containers": [{"name": "main"}, {"name": "tokenizer", "image": "tokenizer:1"}]},
        "config": {"inline": {**CONFIG, "plugins": [{"type": plugin}]}},
    }
    cluster = Cluster(service(router={"route": {}, "scheduler": scheduler}, **spec), gateway())
    cluster.settle()
    return cluster


def picker_pod(cluster: Cluster) -> Json:
    pod: Json = cluster.child("Deployment", SCHEDULER)["spec"]["template"]["spec"]
    return pod


def test_the_tokenizer_reads_the_files_of_the_model() -> None:
    pod = picker_pod(settled("precise-prefix-cache-scorer"))
    tokenizer = pod["containers"][1]
    mount = {"name": "kserve-provision-location", "mountPath": "/mnt/models/base", "readOnly": True}
    assert tokenizer["volumeMounts"][-1] == mount
    (download,) = pod["initContainers"]
    assert download["args"] == ["hf://facebook/opt-125m", "/mnt/models"]
    patterns = {variable["name"]: variable.get("value") for variable in download["env"]}["STORAGE_ALLOW_PATTERNS"]
    assert "tokenizer.json" in json.loads(patterns or "")


def test_the_tokenizer_reads_a_claim() -> None:
    pod = picker_pod(settled("precise-prefix-cache-scorer", uri="pvc://claim/m"))
    mount = {"name": "kserve-pvc-source", "mountPath": "/mnt/models/base", "readOnly": True, "subPath": "m"}
    assert pod["containers"][1]["volumeMounts"][-1] == mount
    assert "initContainers" not in pod


def test_the_tokenizer_reads_files_of_a_model_that_is_an_image() -> None:
    """They are copied out of the image before it starts: the picker does not keep the weights beside it."""
    pod = picker_pod(settled("precise-prefix-cache-scorer", uri="oci://registry.example/m:1"))
    (copies,) = pod["initContainers"]
    assert (copies["image"], copies["args"][4:6]) == (
        "registry.example/m:1",
        ["tokenizer.json", "tokenizer_config.json"],
    )
    (volume,) = copies["volumeMounts"]
    mount = {"name": volume["name"], "mountPath": "/mnt/models/base", "readOnly": True}
    assert pod["containers"][1]["volumeMounts"][-1] == mount
    assert {"name": volume["name"], "emptyDir": {}} in pod["volumes"]
    assert [container["name"] for container in pod["containers"]] == ["main", "tokenizer"]


def test_the_tokenizer_reads_a_volume_of_an_image() -> None:
    pod = picker_pod(settled("precise-prefix-cache-scorer", uri="oci+native://registry.example/m:1"))
    mount = pod["containers"][1]["volumeMounts"][-1]
    assert (mount["mountPath"], mount["subPath"], mount["readOnly"]) == ("/mnt/models/base", "models", True)
    (volume,) = [volume for volume in pod["volumes"] if volume["name"] == mount["name"]]
    assert volume["image"]["reference"] == "registry.example/m:1"
    assert "initContainers" not in pod


@pytest.mark.parametrize(("version", "names"), [("0.9.0", ["main"]), ("0.8.0", ["main", "tokenizer"])])
def test_a_tokenizer_without_use_is_left_out(version: str, names: list[str]) -> None:
    """This applies from v0.9 on; nothing is downloaded for it either."""
    pod = picker_pod(settled("queue-scorer", version))
    assert [container["name"] for container in pod["containers"]] == names
    assert ("initContainers" in pod) is (len(names) > 1)


def test_a_running_picker_that_downloads_for_nothing_goes_on() -> None:
    """KServe's operator adds that download, and adopting its picker must not restart pods."""
    cluster = settled("queue-scorer")
    running = picker_pod(cluster)
    running["initContainers"] = [{"name": "storage-initializer", "image": "theirs:1"}]
    cluster.settle()
    assert [container["image"] for container in picker_pod(cluster)["initContainers"]] == ["theirs:1"]


@pytest.mark.parametrize(("plugin", "servers"), [("predicted-latency-producer", 2), ("queue-scorer", 0)])
def test_the_latency_predictor_is_beside_the_picker_whose_plugin_asks_it(plugin: str, servers: int) -> None:
    """The configuration may be a string. The preset's variables tell the picker the predictor's URL."""
    config = f"kind: EndpointPickerConfig\nplugins:\n- type: {plugin}\n"
    cluster = Cluster(service(router={"route": {}, "scheduler": {"config": {"inline": config}}}), gateway())
    cluster.settle()
    main, *others = picker_pod(cluster)["containers"]
    names = [container["name"] for container in others]
    assert names.count("training-server") + names.count("prediction-server") == servers
    assert ("PREDICTION_SERVER_URL" in str(main.get("env"))) is bool(servers)
    applied = [config["name"] for config in cluster.answer["status"]["appliedConfigs"]]
    assert ("kserve-config-llm-scheduler-latency-predictor" in applied) is bool(servers)

"""What a user is told of ``extraArgs``, and the command line: as the engine reads them, however they are spelled."""

from __future__ import annotations

from typing import Any

import pytest

from tests.llmkube.inferenceservice.world import container, model, service, sync
from tests.llmkube.objects import warned

VLLM, SGLANG, TGI = {"runtime": "vllm"}, {"runtime": "sglang"}, {"runtime": "tgi"}
NEWEST = {"runtime": "vllm", "image": "vllm/vllm-openai:v0.33.0"}
NEWEST_SGLANG = {"runtime": "sglang", "image": "lmsysorg/sglang:v0.5.23"}


def told(spec: dict[str, Any], *words: str) -> list[str]:
    return [text for text in warned(service(**spec, extraArgs=[*words])) if "extraArgs" in text]


ACCEPTED: list[tuple[dict[str, Any], list[str]]] = [
    (NEWEST, ["--disable-log-requests"]),
    (NEWEST, ["--disable-prefix-caching"]),
    (NEWEST, ["--enable-sliding-window"]),
    (SGLANG, ["--context-length", "32k"]),
    (SGLANG, ["--context-length", "32Ki"]),
    (VLLM, ["--max-model-len", "1.5k"]),
    (VLLM, ["--max-model-len", "32_768"]),
    (VLLM, ["--quantization", "None"]),
    (VLLM, ["--enable-auto-tool-choice", "--config", "file.yaml"]),
    (VLLM, ["--enable-auto-tool-choice", "--tool-call-p", "hermes"]),
    (VLLM, ["--kv-transfer-config", '{"kv_connector_extra_config": {"cpu_bytes_to_use": 8G}}']),
    ({}, ["--ctx_size", "4096"]),
]


@pytest.mark.parametrize(("spec", "words"), ACCEPTED)
def test_nothing_is_told_of_what_the_engine_accepts(spec: dict[str, Any], words: list[str]) -> None:
    assert told(spec, *words) == []


REFUSED: list[tuple[dict[str, Any], list[str], str]] = [
    (VLLM, ["--disable-log-requests"], "has no option --disable-log-requests, and ends with it"),
    (VLLM, ["--model", "other/model"], "ends with --model beside the model that stands in front of the options"),
    (SGLANG, ["--pp", "2"], "ends with --pp, which may be"),
    (NEWEST_SGLANG, ["--cuda-graph-max-bs", "16"], "--cuda-graph-max-bs-decode or --cuda-graph-max-bs-prefill"),
    (NEWEST, ["--device", "cuda"], "which may be --device-ids or --device-memory-utilization"),
    (VLLM, ["--max-num", "4"], "ends with --max-num, which may be"),
    (SGLANG, ["--tp_size", "2"], 'has no option --tp_size, and ends with it; did you mean "--tp-size"?'),
    (SGLANG, ["--no-enable-metrics"], "has no option --no-enable-metrics"),
    (TGI, ["--json_output"], 'has no option --json_output, and ends with it; did you mean "--json-output"?'),
    (VLLM, ["--no-disable-log-stats"], "has no option --no-disable-log-stats"),
    (VLLM, ["--max-num-seqs", "1k"], "ends with --max-num-seqs 1k: it must be a whole number"),
    (VLLM, ["--tensor-parallel-size", "auto"], "it must be a whole number"),
    (VLLM, ["--seed", "none"], "ends with --seed none: it must be a whole number"),
    (VLLM, ["--max-model-len", "1.5K"], "ends with --max-model-len 1.5K: it must be a whole number"),
    (SGLANG, ["--context-length", "32K"], "it must be a whole number; did you mean 32Ki?"),
    ({}, ["-c", "32k"], "llama.cpp 0.7.0 reads 32 for -c 32k; write the whole number in digits"),
    ({}, ["--parallel", "4x"], "reads 4 for --parallel 4x"),
    ({}, ["--no-metrics"], "has no option --no-metrics"),
    ({}, ["--parallel=8"], 'an option and its value are two items: write "--parallel", "8"'),
    (VLLM, ["--dtype", "BFLOAT16"], 'does not take BFLOAT16 for --dtype, and ends with it; did you mean "bfloat16"?'),
    (SGLANG, ["--quantization", "FP8"], "does not take FP8 for --quantization"),
    (VLLM, ["--uvicorn-log-level", "WARNING"], "does not take WARNING"),
    (VLLM, ["--max-lora-rank", "48"], "does not take 48 for --max-lora-rank"),
    (NEWEST_SGLANG, ["--disable-cuda-graph", "true"], "takes no value for --disable-cuda-graph"),
    (VLLM, ["--limit-mm-per-prompt", "image=4"], "it must be JSON, or --limit-mm-per-prompt.image 4"),
    (VLLM, ["--config=file.yaml"], 'reads no file with --config=file.yaml; write "--config" and the file as two items'),
    (VLLM, ["--compilation-config", '{"modes": 3}'], "ends with the key modes of --compilation-config"),
    (
        VLLM,
        ["--kv-transfer-config", '{"kv_connector": "NixlConnector", "kv_role": "both"}'],
        'does not take both for kv_role of --kv-transfer-config, and ends with it; did you mean "kv_both"?',
    ),
    (
        VLLM,
        ["--kv-transfer-config", '{"kv_connector": "NixlConnector", "kv_role": "decode"}'],
        "does not take decode for kv_role of --kv-transfer-config, and ends with it; supported: kv_both, kv_consumer",
    ),
    (
        VLLM,
        ["--kv-events-config.publisher", "ZMQ"],
        'does not take ZMQ for publisher of --kv-events-config, and ends with it; did you mean "zmq"?',
    ),
    (VLLM, ["--kv-events-config", '{"publisher": 1}'], "does not take 1 for publisher"),
    (VLLM, ["--collect-detailed-traces", "None"], "does not take None for --collect-detailed-traces"),
    (TGI, ["--max-total-tokens", "1", "--max-total-tokens", "2"], "ends with --max-total-tokens written twice"),
]


@pytest.mark.parametrize(("spec", "words", "part"), REFUSED)
def test_what_ends_the_engine_is_told(spec: dict[str, Any], words: list[str], part: str) -> None:
    assert [text for text in told(spec, *words) if part in text], told(spec, *words)


@pytest.mark.parametrize(
    "words",
    [
        ["--kv-transfer-config", '{"kv_connector": "NixlConnector", "kv_role": "kv_both"}'],
        ["--kv-transfer-config", '{"kv_connector": "NixlConnector", "kv_role": null}'],
        ["--kv-events-config.publisher", "zmq"],
        ["--kv-events-config.publisher", "$(PUBLISHER)"],
    ],
)
def test_a_value_that_a_key_takes_is_not_told(words: list[str]) -> None:
    assert not [text for text in told(VLLM, *words) if "does not take" in text]


@pytest.mark.parametrize("option", ["--ssl_keyfile", "--ssl-key", "--ssl_keyfile=/k"])
def test_probes_fail_with_tls_however_it_is_spelled(option: str) -> None:
    words = [option] if "=" in option else [option, "/k"]
    assert [text for text in told(VLLM, *words) if "the probes fail with --ssl-keyfile" in text]


def test_a_key_beside_an_object_replaces_it() -> None:
    words = ["--speculative-config", '{"model": "org/draft"}', "-sc.num_speculative_tokens", "5"]
    assert any(
        "no effect beside -sc.num_speculative_tokens, which replaces all of" in text for text in told(VLLM, *words)
    )


# The command line.


def args(spec: dict[str, Any], *words: str, gpus: int = 1) -> list[str]:
    written = service(**spec, extraArgs=[*words])
    there = model(source="hf://org/model", format="safetensors", hardware={"gpu": {"enabled": True, "count": gpus}})
    return list(container(sync(written, there))["args"])


ONCE = [
    ({"tgiConfig": {"maxTotalTokens": 4096}}, ["--max-total-tokens", "8192"], "--max-total-tokens"),
    ({}, ["--model-id", "x/y"], "--model-id"),
    ({}, ["-p", "8080"], "-p"),
    ({}, ["--port", "8080"], "--port"),
    ({}, ["--num-shard", "1"], "--num-shard"),
    ({"tgiConfig": {"maxInputLength": 100}}, ["--max-input-tokens", "3000"], "--max-input-tokens"),
]


@pytest.mark.parametrize(("spec", "words", "option"), ONCE)
def test_tgi_gets_no_option_twice(spec: dict[str, Any], words: list[str], option: str) -> None:
    line = args({**TGI, **spec}, *words, gpus=2)
    assert line[-2:] == words
    other = {"-p": "--port", "--max-input-tokens": "--max-input-length"}.get(option, option)
    assert line.count(option) + (line.count(other) if other != option else 0) == 1


def test_a_key_of_the_users_leaves_the_draft_model() -> None:
    spec = {**VLLM, "skipModelInit": True, "vllmConfig": {"speculative": {"enabled": True, "model": "org/draft"}}}
    line = args(spec, "--speculative-config.num_speculative_tokens", "5")
    place = line.index("--speculative-config.model")
    assert line[place + 1] == "org/draft"
    assert "--speculative-config" not in line
    assert line[-2:] == ["--speculative-config.num_speculative_tokens", "5"]


@pytest.mark.parametrize("runtime", ["vllm", "sglang", "tgi", "llamacpp"])
def test_services_of_the_namespace_do_not_configure_the_server(runtime: str) -> None:
    """A Service called vllm, prometheus or master would."""
    written = service(runtime=runtime, skipModelInit=True, extraArgs=["--model", "m"] if runtime == "llamacpp" else [])
    there = model(source="hf://org/model", format="gguf" if runtime == "llamacpp" else "safetensors")
    (deployment,) = (child for child in sync(written, there)["children"] if child["kind"] == "Deployment")
    assert deployment["spec"]["template"]["spec"]["enableServiceLinks"] is False

"""Command lines of the servers of llmaz and KServe, read as their engine reads them, and pods without Service links."""

from __future__ import annotations

import pytest
import yaml

from app.kube.base import Json
from tests.cli.files import Command, model, service
from tests.cli.test_fit import kserve, llmaz


def playground(*args: str, backend: str = "vllm", version: str = "v0.20.0", repository: str = "") -> list[Json]:
    """Return a Playground on one L4 with the model."""
    claimed, item = llmaz(*args)
    claimed["spec"]["source"]["modelHub"]["modelID"] = repository or "meta-llama/Llama-3.1-8B-Instruct"
    item["spec"]["backendRuntimeConfig"] |= {"backendName": backend, "version": version}
    return [claimed, item]


def pods(command: Command, *documents: Json) -> list[Json]:
    """Return the specs of all pods of model servers that are rendered."""
    out = command("render", command.file("all.yaml", *documents)).out
    specs = []
    for child in filter(None, yaml.load_all(out, yaml.CSafeLoader)):
        spec = child.get("spec") or {}
        groups = spec.get("leaderWorkerTemplate") or {"template": spec.get("template")}
        if child["kind"] in ("Deployment", "LeaderWorkerSet") and not child["metadata"]["name"].endswith("-scheduler"):
            specs += [pod["spec"] for pod in groups.values() if isinstance(pod, dict) and pod.get("spec")]
    return specs


def messages(command: Command, *documents: Json) -> list[str]:
    return [message for _, message in warnings(command, *documents)]


def warnings(command: Command, *documents: Json) -> list[tuple[str, str]]:
    """Return the fields and texts of all findings."""
    found = command("validate", command.file("all.yaml", *documents), "-o", "json").findings
    return [(finding["path"], finding["message"]) for finding in found]


@pytest.mark.parametrize("backend", ["vllm", "sglang", "tgi", "llamacpp"])
def test_services_of_the_namespace_do_not_configure_a_playground(command: Command, backend: str) -> None:
    """A Service called vllm, prometheus or master would."""
    (claimed, item) = playground(backend=backend)
    del item["spec"]["backendRuntimeConfig"]["version"]
    specs = pods(command, claimed, item)
    assert specs
    assert all(pod["enableServiceLinks"] is False for pod in specs)


@pytest.mark.parametrize(
    "more",
    [{}, {"worker": {"containers": [{"name": "main"}]}, "parallelism": {"pipeline": 2}}, {"prefill": {"replicas": 1}}],
    ids=["one pod", "group", "prefill"],
)
def test_services_of_the_namespace_do_not_configure_a_service_of_kserve(command: Command, more: Json) -> None:
    item = kserve()
    item["spec"] |= more
    specs = pods(command, item)
    assert len(specs) == (1 if not more else 2)
    assert all(pod["enableServiceLinks"] is False for pod in specs)


def test_who_wants_the_variables_of_services_gets_them(command: Command) -> None:
    item = kserve()
    item["spec"]["template"]["enableServiceLinks"] = True
    assert [pod["enableServiceLinks"] for pod in pods(command, item)] == [True]


@pytest.mark.parametrize(
    ("args", "answer"),
    [
        (("--gpu_memory_utilization=0.5", "--max-model-len=8192"), "does not fit: it needs at least 15.8 GiB"),
        (("--max_model_len=131072",), "does not fit: it needs at least 30.8 GiB"),
        (("--max-model-l", "8192"), "92% of it, the server's default"),
    ],
    ids=["underscores", "one word", "prefix"],
)
def test_fit_knows_options_however_they_are_spelled(command: Command, args: tuple[str, ...], answer: str) -> None:
    assert answer in command("fit", command.file("all.yaml", *playground(*args))).out


def test_a_playground_gets_no_option_of_tgi_twice(command: Command) -> None:
    args = pods(command, *playground("--port", "9090", backend="tgi", version="3.3.7"))[0]["containers"][0]["args"]
    assert [word for word in args if word in ("--port", "8080", "9090")] == ["--port", "9090"]


@pytest.mark.parametrize("spelled", ["--ssl-keyfile", "--ssl_keyfile", "--ssl-k"])
def test_http_probes_of_a_server_with_tls_are_warned_of(command: Command, spelled: str) -> None:
    tls = "the server speaks HTTPS, and the probes of BackendRuntime vllm speak HTTP"
    assert any(tls in message for message in messages(command, *playground(spelled, "/tls/key")))
    assert not any(tls in message for message in messages(command, *playground()))


def test_a_word_behind_a_switch_becomes_the_model_of_the_older_program(command: Command) -> None:
    """The server of llmaz' preset takes a word without an option for the model, and does not end."""
    (message,) = (m for m in messages(command, *playground("--enable-chunked-prefill", "True")) if "chunked" in m)
    assert "and takes True for the model" in message
    assert "ends" not in message


def test_a_file_behind_an_equals_sign_is_not_read(command: Command) -> None:
    for runtime in ("vllm", "sglang"):
        written = service({"runtime": runtime, "skipModelInit": True, "extraArgs": ["--config=/c.yaml"]})
        there = model(spec={"source": "hf://org/m", "format": "safetensors"})
        assert any("reads no file with --config=/c.yaml" in message for message in messages(command, there, written))


def test_a_number_that_ends_the_server_is_warned_of(command: Command) -> None:
    args = ("--sse-keep-alive-interval", "-1")
    written = service({"runtime": "vllm", "skipModelInit": True, "extraArgs": [*args]}) | {}
    written["spec"]["image"] = "vllm/vllm-openai:v0.33.0"
    there = model(spec={"source": "hf://org/m", "format": "safetensors"})
    assert any("--sse-keep-alive-interval -1: it must be at least 0" in m for m in messages(command, there, written))


def test_a_number_is_not_taken_for_a_misspelled_one(command: Command) -> None:
    (message,) = (m for m in messages(command, *playground("--max-lora-rank", "48")) if "--max-lora-rank" in m)
    assert message.endswith("supported: 1, 8, 16, 32, 64, 128, 256, 320, 512")


LLAMACPP_ENV = [{"name": "LLAMA_ARG_CTX_SIZE", "value": "131072"}, {"name": "LLAMA_ARG_FLASH_ATTN", "value": "yes"}]
ENDS = "llama.cpp 0.7.0 does not take yes for LLAMA_ARG_FLASH_ATTN, and ends with it; supported: on, off, auto"


def in_llmkube() -> list[Json]:
    source, gpu = "https://models.example.com/Qwen3-8B-Q4_K_M.gguf", {"count": 1, "memory": "12Gi"}
    served, item = model(), service()
    served["spec"] = {"source": source, "hardware": {"accelerator": "cuda", "gpu": gpu}}
    item["spec"]["env"] = LLAMACPP_ENV
    return [served, item]


def in_llmaz() -> list[Json]:
    claimed, item = playground(backend="llamacpp", version="server-v0.7.0")
    hub = {"modelID": "Qwen/Qwen3-8B-GGUF", "filename": "Qwen3-8B-Q4_K_M.gguf"}
    claimed["spec"]["source"]["modelHub"] = hub
    item["spec"]["backendRuntimeConfig"]["envs"] = LLAMACPP_ENV
    return [claimed, item]


def in_kserve() -> list[Json]:
    item = kserve()
    item["spec"]["model"]["uri"] = "hf://Qwen/Qwen3-8B-GGUF"
    main = {"image": "ghcr.io/ggml-org/llama.cpp:server-cuda-v0.7.0", "command": ["/app/llama-server"]}
    arguments = ["--model", "/mnt/models/Qwen3-8B-Q4_K_M.gguf", "--port", "8000"]
    item["spec"]["template"]["containers"][0] |= {**main, "args": arguments, "env": LLAMACPP_ENV}
    return [item]


@pytest.mark.parametrize("documents", [in_llmkube(), in_llmaz(), in_kserve()], ids=["llmkube", "llmaz", "kserve"])
def test_variables_configure_llama_cpp(command: Command, documents: list[Json]) -> None:
    assert ENDS in "\n".join(messages(command, *documents))
    assert "131072 tokens" in command("fit", command.file("all.yaml", *documents)).out


def test_arguments_count_more_than_variables(command: Command) -> None:
    documents = in_llmkube()
    documents[1]["spec"]["contextSize"] = 4096
    documents[1]["spec"]["env"] = [LLAMACPP_ENV[0], {"name": "LLAMA_ARG_PORT", "value": "9090"}]
    assert "LLAMA_ARG" not in "\n".join(messages(command, *documents))
    assert "4096 tokens" in command("fit", command.file("all.yaml", *documents)).out


def test_variables_configure_tgi(command: Command) -> None:
    served, item = in_llmkube()
    served["spec"] |= {"source": "Qwen/Qwen3-8B", "format": "safetensors"}
    env = [{"name": "MAX_TOTAL_TOKENS", "value": "8k"}, {"name": "JSON_OUTPUT", "value": "1"}]
    item["spec"] |= {"runtime": "tgi", "env": env}
    told = "\n".join(messages(command, served, item))
    assert "ends with MAX_TOTAL_TOKENS 8k: it must be a whole number" in told
    assert "ends with JSON_OUTPUT 1: it must be true or false" in told


def test_probes_see_the_certificate_of_a_variable(command: Command) -> None:
    documents = in_llmkube()
    documents[1]["spec"]["env"] = [{"name": "LLAMA_ARG_SSL_KEY_FILE", "value": "/tls/tls.key"}]
    assert "the probes fail with LLAMA_ARG_SSL_KEY_FILE" in "\n".join(messages(command, *documents))


SCRIPT = r"""set -e
export LEN=131072
cd / && exec vllm serve "$MODEL_PATH" --port 8001 \
  --max-model-len "$LEN" --max-num-seqs 1k \
  --gpu_memory_utilization=0.9 --ssl-key /tls/key
"""
IN_SCRIPTS = "vLLM 0.20.0 ends with --max-num-seqs 1k: it must be a whole number"


def script_in_kserve() -> list[Json]:
    item = kserve()
    item["spec"]["model"]["uri"] = "hf://Qwen/Qwen3-8B"
    main = item["spec"]["template"]["containers"][0]
    probe = {"httpGet": {"path": "/health", "port": 8001}}
    main |= {"image": "vllm/vllm-openai:v0.20.0", "command": ["bash", "-c"], "args": [SCRIPT], "livenessProbe": probe}
    return [item]


def script_in_llmkube(field: str = "args") -> list[Json]:
    served, item = in_llmkube()
    spec = {"runtime": "generic", "image": "vllm/vllm-openai:v0.20.0", "containerPort": 8000, "command": ["sh", "-c"]}
    item["spec"] = {"modelRef": "m", **spec}
    item["spec"][field] = [*item["spec"].get(field, []), SCRIPT]
    return [served, item]


def script_in_llmaz(*, is_command: bool = False) -> list[Json]:
    claimed, item = playground(repository="Qwen/Qwen3-8B")
    item["spec"]["backendRuntimeConfig"] = {"backendName": "mine"}
    script = SCRIPT.replace("$MODEL_PATH", "$0" if is_command else "{{ .ModelPath }}")
    command, args = (["sh", "-c", script], ["{{ .ModelPath }}"]) if is_command else (["sh", "-c"], [script])
    preset = {"name": "default", "args": args, "resources": {"limits": {"cpu": "1"}}}
    spec = {"image": "vllm/vllm-openai", "version": "v0.20.0", "command": command, "recommendedConfigs": [preset]}
    head = {"apiVersion": "inference.llmaz.io/v1alpha1", "kind": "BackendRuntime", "metadata": {"name": "mine"}}
    return [claimed, item, {**head, "spec": spec}]


@pytest.mark.parametrize(
    ("documents", "place"),
    [
        (script_in_kserve(), "spec.template.containers[0].args[0]"),
        (script_in_llmkube(), "spec.args[0]"),
        (script_in_llmkube("command"), "spec.command[2]"),
        (script_in_llmaz(), "spec.recommendedConfigs[0].args[0]"),
        (script_in_llmaz(is_command=True), "spec.command[2]"),
    ],
    ids=["kserve", "llmkube", "llmkube command", "llmaz", "llmaz command"],
)
def test_options_in_a_script_are_read_in_every_family(command: Command, documents: list[Json], place: str) -> None:
    assert (place, IN_SCRIPTS) in warnings(command, *documents)
    fit = command("fit", command.file("all.yaml", *documents)).out
    assert "131072 tokens x 36 layers" in fit
    assert "90% of it" in fit


def test_probes_and_ports_follow_a_script(command: Command) -> None:
    found = messages(command, *script_in_kserve())
    assert any("the server speaks HTTPS, so the probe never succeeds" in message for message in found)
    found = messages(command, *script_in_llmkube())
    assert any("probes and the Service use port 8000; set containerPort to 8001" in message for message in found)


@pytest.mark.parametrize("args", [["--max-model-len", "'8192'"], ['--max-model-len="8192"']])
def test_quotes_that_the_engine_gets_are_warned_of(command: Command, args: list[str]) -> None:
    written = service({"runtime": "vllm", "skipModelInit": True, "extraArgs": args})
    there = model(spec={"source": "hf://org/m", "format": "safetensors"})
    (found,) = (m for m in messages(command, there, written) if "quotes" in m)
    assert found.endswith("no shell removes the quotes around 8192, so that vLLM 0.20.0 gets them; leave them out")


def test_quotes_that_a_shell_removes_are_not(command: Command) -> None:
    item = kserve("--max-model-len='8192'")
    assert not any("quotes" in message for message in messages(command, item))
    main = item["spec"]["template"]["containers"][0]
    main |= {"command": ["sh", "-c"], "args": ['vllm serve m --max-model-len="8192"']}
    assert not any("quotes" in message for message in messages(command, item))


def test_a_message_about_a_variable_names_it(command: Command) -> None:
    item = kserve()
    main = item["spec"]["template"]["containers"][0]
    main |= {"image": "ghcr.io/ggml-org/llama.cpp:server-v0.7.0", "command": ["/app/llama-server"]}
    main["env"] = [{"name": "LLAMA_ARG_PORT", "value": "9000"}]
    (found,) = (m for m in messages(command, item) if "9000" in m)
    assert found.endswith("requests go to port 8000, not to 9000; remove LLAMA_ARG_PORT")


def test_further_arguments_follow_those_of_a_script(command: Command) -> None:
    served, item = in_llmkube()
    script = ["sh", "-c", 'exec llama-server --ctx-size 32k "$@"', "--"]
    item["spec"] = {"modelRef": "m", "command": script, "extraArgs": ["--frobnicate"]}
    found = warnings(command, served, item)
    assert ("spec.command[2]", "llama.cpp 0.7.0 reads 32 for --ctx-size 32k; write the whole number in digits") in found
    assert ("spec.extraArgs[0]", "llama.cpp 0.7.0 has no option --frobnicate, and ends with it") in found
    item["spec"]["command"][2] = 'exec llama-server "$@"'
    assert ("spec.extraArgs[0]", "llama.cpp 0.7.0 has no option --frobnicate, and ends with it") in warnings(
        command, served, item
    )


@pytest.mark.parametrize("word", ["$(EXTRA)", "${EXTRA}", "$EXTRA", "{{ .Spec.Model.Name }}", "'a'"])
def test_a_word_that_something_replaces_is_no_stray_one(command: Command, word: str) -> None:
    """The preset of KServe divides a variable with options; its value is not the service's to judge."""
    item = kserve(word, "--dtype", "auto")
    item["spec"]["template"]["containers"][0]["env"] = [{"name": "EXTRA", "value": "--max-model-len 8192"}]
    assert not any("is not an option" in message for message in messages(command, item))
    assert any("is not an option" in message for message in messages(command, kserve("word", "--dtype", "auto")))

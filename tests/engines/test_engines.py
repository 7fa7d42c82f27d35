"""Every command line built here is accepted by the engine's own parser.

The options that the parsers accept are in the catalogues of releases (``app/workload/engines/releases``), which
``tools/engines.py`` reads from published sources. The default image and the newest release are tested.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from app import images
from app.kserve.spec import presets
from app.kube.base import Json
from app.llmkube.inferenceservice.types import InferenceServiceSpec
from app.llmkube.runtimes.flag import Flag
from app.llmkube.runtimes.registry import RUNTIMES
from app.llmkube.runtimes.runtime import Runtime
from app.workload.engines.engine import Engine, engine_of
from app.workload.engines.grammar import RELEASES, Release
from tests.kserve.spec.test_presets import arguments as script_arguments
from tests.kserve.spec.test_presets import rendered
from tests.llmaz.test_shipped import ENGINES
from tests.llmkube.inferenceservice.world import condition, container, model, service, sync
from tests.llmkube.objects import warned

KNOWN = [runtime for runtime in RUNTIMES.values() if runtime.image]
NEWEST = {
    "vllm": "vllm/vllm-openai:v0.33.0",
    "sglang": "lmsysorg/sglang:v0.5.23",
}
"""Images of the newest catalogued release, if it is not the default."""


def release(engine: str, version: str) -> Release:
    return next(candidate for candidate in RELEASES if (candidate.engine, candidate.version) == (engine, version))


def engine(image: str) -> Engine:
    known_engine = engine_of(image)
    assert known_engine is not None, f"{image} has no catalogue: write one with tools/engines.py"
    assert known_engine.releases[0].version == known_engine.version, f"{image} has no catalogue of its own release"
    return known_engine


def options(arguments: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the options of a command line, each with its values."""
    groups: list[tuple[str, list[str]]] = []
    for argument in arguments:
        if re.fullmatch(r"--?[A-Za-z][\w-]*", argument):
            groups.append((argument, []))
        elif groups:
            groups[-1][1].append(argument)
    yield from groups


def refused(arguments: list[str], there: Engine) -> list[str]:
    """Return what the engine would refuse: unknown options, invalid values, repetitions."""
    given = list(options(arguments))
    names = [name for name, _ in given]
    return [
        *(name for name, _ in given if not there.has(name.replace("_", "-"))),
        *(f"{n} {v}" for n, values in given for v in values if there.has(n) and not there.accepts(n, v)),
        *(f"{name} twice" for name in set(names) if names.count(name) > 1),
    ]


@pytest.mark.parametrize("image", images.default_images())
def test_default_images_are_pinned(image: str) -> None:
    """The image of a tag such as ``latest`` or ``server`` changes without a change here."""
    name, _, digest = image.partition("@")
    tag = name.rpartition(":")[2] if ":" in name.rpartition("/")[2] else ""
    assert re.fullmatch("sha256:[0-9a-f]{64}", digest) or re.search(r"[0-9]+\.[0-9]+", tag), image


@pytest.mark.parametrize("runtime", KNOWN, ids=lambda runtime: runtime.name)
def test_a_default_image_has_the_catalogue_of_its_release(runtime: Runtime) -> None:
    there = engine(runtime.image)
    for path in filter(None, (runtime.health, runtime.generates, "/metrics" if runtime.scraped else "")):
        assert path in there.releases[0].paths
    if runtime.metric:
        assert runtime.metric in there.releases[0].metrics
    of_devices = [engine_of(image) for image in runtime.device_images.values() if "@" not in image]
    assert {*map(str, of_devices)} <= {str(there)}


@pytest.mark.parametrize("image", [images.LLM_D, images.LLM_D_V017])
def test_the_presets_of_kserve_have_the_catalogue_of_their_release(image: str) -> None:
    assert engine(image).name == "vllm"


def test_catalogues_say_where_they_come_from() -> None:
    for catalogue in RELEASES:
        assert len(catalogue.source) > 20
        assert catalogue.options


def values(flag: Flag, path: str) -> list[Any]:
    """Return values to try for a field: all of its type, or some that users write."""
    if flag.choices:
        return list(flag.choices)
    free: dict[str, list[Any]] = {
        "parallelSlots": [8],
        "ropeScaling.factor": ["2.0"],
        "metadataOverrides": [["a.b=int:1", "c.d=bool:true"]],
        "tensorOverrides": [["exps=CPU", "token_embd=CPU"]],
        "sglangConfig.loraAdapters": [[{"name": "a", "path": "p"}]],
        "sglangConfig.loraModules": [["a=p"]],
        "sglangConfig.loraTargetModules": [["q_proj"]],
        "vllmConfig.speculative": [{"enabled": True, "model": "org/draft"}],
    }
    if path in free:
        return free[path]
    words = ["turbo2", "turboquant_2", "fp8_e5m2", "q8_0", "awq", "squeezellm", "org/repo"]
    kinds: dict[str, list[Any]] = {"int": [1024], "float": [0.5], "bool": [True]}
    return kinds.get(_kind(path), words)


def _kind(path: str) -> str:
    annotation: Any = InferenceServiceSpec
    for name in path.split("."):
        for part in (annotation, *get_args(annotation)):
            fields = getattr(part, "model_fields", {})
            annotations = [info.annotation for key, info in fields.items() if (info.alias or key) == name]
            annotation = annotations[0] if annotations else annotation
    words = str(annotation)
    return next((kind for kind in ("bool", "float", "int") if re.search(rf"\b{kind}\b", words)), "str")


def written(path: str, value: Any) -> Json:
    """Return the spec with one value, and the fields that it requires."""
    beside: Json = {}
    if path.startswith("sglangConfig.speculative."):
        beside = {"enabled": True, "algorithm": "EAGLE", "draftModelPath": "org/draft"}
    if path.startswith("ropeScaling."):
        beside = {"type": "yarn"}
    parts = path.split(".")
    result: Any = {**beside, parts[-1]: value}
    for part in reversed(parts[:-1]):
        result = {part: result}
    return dict(result)


CASES = [
    pytest.param(runtime, image, path, value, id=f"{engine_of(image)}-{path}-{value}")
    for runtime in KNOWN
    for image in dict.fromkeys((runtime.image, NEWEST.get(runtime.name, runtime.image)))
    for path, flag in runtime.flags.items()
    for value in values(flag, path)
    if path != "bindAddress"
]


@pytest.mark.parametrize(("runtime", "image", "path", "value"), CASES)
def test_no_value_ends_the_engine(runtime: Runtime, image: str, path: str, value: Any) -> None:
    """The engine accepts the command line for any value of the CRD; a value that is left out has a warning.

    A service that waits for a draft Model, or for GPUs that the Model does not have, has no command line.
    """
    spec = {"runtime": runtime.name, "image": image, **written(path, value)}
    there = engine(image)
    hardware = {"accelerator": "cuda", "gpu": {"count": 2}}
    answer = sync(service(**spec), model(source="org/repo", format="safetensors", hardware=hardware))
    if not any(child["kind"] == "Deployment" for child in answer["children"]):
        assert path.startswith("speculativeDecoding.") or path.endswith("ParallelSize")
        assert condition(answer, "Ready")["status"] == "False"
        return
    line = [str(item) for item in container(answer)["args"]]
    assert refused(line, there) == []
    flag = runtime.flags[path]
    if not isinstance(value, str) or value == flag.default or there.accepts(flag.name, value):
        return
    assert [text for text in warned(service(**spec)) if text.startswith(f"spec.{path}: ")], (path, value)


def test_an_image_that_is_not_known_is_not_judged() -> None:
    for image in ("example.com/vllm:1", "vllm/vllm-openai:latest", "vllm/vllm-openai:v9.0.0"):
        spec: Json = {"runtime": "vllm", "image": image, "vllmConfig": {"quantization": "squeezellm"}}
        answer = sync(service(**spec), model(source="org/repo", format="safetensors"))
        assert container(answer)["args"][-2:] == ["--quantization", "squeezellm"]
        assert warned(service(**spec)) == warned(service(runtime="vllm", image=image))


WRONG = [
    ("vllm", {"vllmConfig": {"quantization": "nvfp4"}}, "quantization", "modelopt_fp4"),
    ("vllm", {"vllmConfig": {"attentionBackend": "xformers"}}, "attentionBackend", "FLASH_ATTN"),
    ("sglang", {"sglangConfig": {"attentionBackend": "flash_attn"}}, "attentionBackend", "flashinfer"),
    ("sglang", {"sglangConfig": {"toolCallParser": "qwen3"}}, "toolCallParser", "qwen"),
    ("sglang", {"sglangConfig": {"toolCallParser": "functionary"}}, "toolCallParser", "hermes"),
    ("sglang", {"sglangConfig": {"quantization": "squeezellm"}}, "quantization", "awq"),
    ("llamacpp", {"cacheTypeCustomK": "turbo3"}, "cacheTypeCustomK", "q8_0"),
    ("llamacpp", {"ropeScaling": {"type": "longrope"}}, "ropeScaling.type", "yarn"),
]


@pytest.mark.parametrize(("runtime", "spec", "field", "right"), WRONG, ids=[f"{row[0]}-{row[2]}" for row in WRONG])
def test_the_warning_names_the_right_value(runtime: str, spec: Json, field: str, right: str) -> None:
    (text,) = [text for text in warned(service(runtime=runtime, **spec)) if f"{field}: " in text]
    assert re.search(rf"\b{right}\b", text), text


@pytest.mark.parametrize(
    "argument",
    [
        "--trust-remote-code",
        "--no_enable_prefix_caching",
        "-q=awq",
        "--compilation-config.mode=3",
        "--tensor-par=2",
    ],
)
def test_the_users_own_options_are_known(argument: str) -> None:
    assert not [text for text in warned(service(runtime="vllm", extraArgs=[argument])) if "extraArgs[" in text]


def test_an_option_that_the_engine_lacks_is_warned_of() -> None:
    spec: Json = {"runtime": "vllm", "extraArgs": ["--speculative-model=org/draft", "--seed", "1"]}
    (text,) = [text for text in warned(service(**spec)) if "extraArgs[" in text]
    problem = "vLLM 0.20.0 has no option --speculative-model, and ends with it"
    assert text == f"spec.extraArgs[0]: {problem}; --speculative-config has taken its place"
    assert [text for text in warned(service(extraArgs=["--draft-max", "4"])) if "no option --draft-max" in text]


DASHBOARD = Path("manifests/components/kube-state-metrics/dashboard.yaml")


@pytest.mark.parametrize("catalogue", RELEASES, ids=lambda catalogue: f"{catalogue.engine}-{catalogue.version}")
def test_the_dashboard_shows_the_metrics_of_every_release(catalogue: Release) -> None:
    """Only vLLM and SGLang have a metric of their cache."""
    panels = json.loads(yaml.safe_load(DASHBOARD.read_text(encoding="utf-8"))["data"]["models.json"])["panels"]
    shown = {panel["title"]: " ".join(target["expr"] for target in panel["targets"]) for panel in panels}
    titles = {"vllm": 3, "sglang": 3, "llamacpp": 2, "tgi": 2}.get(catalogue.engine, 0)
    for title in ("Requests in process", "Requests in wait", "Share of the cache in use")[:titles]:
        asked = re.findall(r'__name__=~"([^"]+)"|((?:vllm|sglang|llamacpp):\w+|tgi_\w+)', shown[title])
        assert any(re.fullmatch(pattern or name, metric) for pattern, name in asked for metric in catalogue.metrics), (
            title
        )


# llmaz: the shipped presets.

PRESETS = [(name, config["name"]) for name, item in ENGINES.items() for config in item["spec"]["recommendedConfigs"]]


@pytest.mark.parametrize("name", ENGINES)
def test_llmaz_runtimes_have_the_images_of_the_list(name: str) -> None:
    spec = ENGINES[name]["spec"]
    assert f"{spec['image']}:{spec['version']}" == images.LLMAZ_RUNTIMES[name]


@pytest.mark.parametrize(("name", "preset"), [row for row in PRESETS if engine_of(images.LLMAZ_RUNTIMES[row[0]])])
def test_llmaz_presets_are_accepted(name: str, preset: str) -> None:
    there = engine(images.LLMAZ_RUNTIMES[name])
    spec = ENGINES[name]["spec"]
    config = next(item for item in spec["recommendedConfigs"] if item["name"] == preset)
    assert refused(config["args"], there) == []
    for param in config.get("paramArgs", ()):
        assert refused(param["args"], there) == []
    served = there.releases[0].metrics
    for prefix in re.findall(r"(?:llamacpp|vllm):\w+|tgi_\w+", str(spec.get("lifecycle", ""))):
        assert any(metric.startswith(prefix) for metric in served), prefix


def test_llmaz_pods_serve_the_metrics_that_are_asked_for() -> None:
    """SGLang requires an option for it."""
    for config in ENGINES["sglang"]["spec"]["recommendedConfigs"]:
        assert "--enable-metrics" in config["args"]


# KServe: vLLM in the image of llm-d.

KSERVE = [release("vllm", "0.11.2"), release("vllm", "0.33.0")]
FULL = {"model": {"name": "m"}, "parallelism": {"data": 4, "dataLocal": 2, "tensor": 2, "expert": True}}


@pytest.mark.parametrize("catalogue", KSERVE, ids=lambda catalogue: catalogue.version)
@pytest.mark.parametrize("leader", [True, False])
def test_kserves_data_parallel_servers_are_accepted(catalogue: Release, leader: bool) -> None:
    line = script_arguments(rendered(FULL, leader=leader), env={"LWS_WORKER_INDEX": "1"})
    assert refused(line, Engine("vllm", catalogue.version, (catalogue,))) == []
    assert ("--data-parallel-start-rank" in line) is not leader


@pytest.mark.parametrize("catalogue", KSERVE, ids=lambda catalogue: catalogue.version)
def test_kserves_presets_are_accepted(catalogue: Release) -> None:
    earlier = presets.EDITIONS["v0.17"].values()
    texts = " ".join(text for preset in earlier for text in _texts(preset) if "vllm serve" in text)
    written = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", texts))
    ours = {"--head", "--port", "--block", "--address", "--disable-usage-stats"}  # options of ray in the same scripts
    assert written - ours <= set(catalogue.spellings)


@pytest.mark.parametrize(
    "catalogue", [release("vllm", "0.23.0"), release("vllm", "0.33.0")], ids=lambda catalogue: catalogue.version
)
@pytest.mark.parametrize("suffix", [suffix for suffix in presets.SUFFIXES if suffix.endswith(("template", "parallel"))])
def test_the_latest_presets_are_accepted(catalogue: Release, suffix: str) -> None:
    """vLLM of the presets' image and the newest known release accept them."""
    scripts = [text for text in _texts(presets.LATEST[suffix]) if "vllm serve" in text]
    assert scripts
    assert {flag for text in scripts for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)} - {"--version"} <= set(
        catalogue.spellings
    )


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in _texts(item)]

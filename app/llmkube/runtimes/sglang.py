"""SGLang's server. Source: LK-3.5.7."""

import json
from collections.abc import Iterator

from msgspec.structs import replace

from app import images
from app.kube.field import SPEC, Advice, Path, advice
from app.llmkube.inferenceservice.types import InferenceReason, InferenceServiceSpec
from app.llmkube.model.types import ModelSpec
from app.llmkube.runtimes.runtime import Runtime, Serving, flag, memory_use, mode, read_extra, switch
from app.llmkube.runtimes.types import SGLangConfig, SGLangSpeculative
from app.workload.fit.memory import Usage

CONFIG = SPEC.child("sglangConfig")


def arguments(serving: Serving) -> list[str]:
    """Build the command line in the order of the table in LK-3.5.7."""
    config = serving.spec.sglang_config or SGLangConfig()
    return [
        *("--model-path", serving.path or serving.repository),
        *serving.revision,
        *flag("--port", serving.port),
        "--enable-metrics",
        *serving.listen(),
        *([] if serving.has("--served-model-name") else ["--served-model-name", serving.spec.model_ref]),
        *serving.options(config, speculative=_speculative(serving), lora_modules=[], **_lora(config)),
        *flag("--tp-size", serving.gpus if serving.gpus > 1 and config.tensor_parallel_size is None else None),
        *switch("--is-embedding", mode(serving.spec) == "embedding" and not serving.has("--is-embedding")),
        *serving.spec.extra_args,
    ]


def _speculative(serving: Serving) -> list[str]:
    """Return no arguments unless it is enabled and has both an algorithm that SGLang knows and a draft model."""
    config = (serving.spec.sglang_config or SGLangConfig()).speculative or SGLangSpeculative()
    algorithm = serving.options(config, "algorithm")
    if not config.enabled or not algorithm or not config.draft_model_path:
        return []
    counts = ("num_steps", "eagle_top_k", "num_draft_tokens")
    left_out: dict[str, list[str]] = {} if _counts_are_complete(config) else {name: [] for name in counts}
    return serving.options(config, **left_out)


def _counts_are_complete(config: SGLangSpeculative) -> bool:
    """Return whether the three numbers are set; SGLang chooses all of them or none."""
    return None not in (config.num_steps, config.eagle_top_k, config.num_draft_tokens)


def _lora(config: SGLangConfig) -> dict[str, list[str]]:
    """Return the arguments of LoRA. Without an adapter it requires both a rank and target modules."""
    adapters = _adapters(config)
    if adapters:
        return {"lora_adapters": adapters}
    if config.max_lora_rank and config.lora_target_modules:
        return {"lora_adapters": ["--enable-lora"]}
    return {"lora_adapters": [], "max_lora_rank": [], "lora_target_modules": []}


def _adapters(config: SGLangConfig) -> list[str]:
    """Return ``--lora-paths`` with an item for each adapter; of two with one name the first, typed ones before."""
    typed = ((adapter.name, adapter.path) for adapter in config.lora_adapters)
    listed: dict[str, str] = {}
    for name, path in (*typed, *map(lora_module, config.lora_modules)):
        if name and path:
            listed.setdefault(name, path)
    return ["--lora-paths", *(f"{name}={path}" for name, path in listed.items())] if listed else []


def lora_module(text: str) -> tuple[str, str]:
    """Return the name and path of an adapter in either spelling; both empty for any other string."""
    if not text.lstrip().startswith("{"):
        name, _, path = text.partition("=")
        return name.strip(), path.strip()
    try:
        written = json.loads(text)
    except (ValueError, RecursionError):
        return "", ""
    name, path = written.get("name"), written.get("path")
    return (name, path) if isinstance(name, str) and isinstance(path, str) else ("", "")


def warnings(spec: InferenceServiceSpec) -> Iterator[Advice]:
    """Warn of options that have no effect without others (LK-V-I49, LK-V-I50, LK-V-I71)."""
    config = spec.sglang_config or SGLangConfig()
    yield from _speculative_warnings(config.speculative or SGLangSpeculative(), CONFIG.child("speculative"))
    if not _lora(config)["lora_adapters"]:
        if config.max_lora_rank:
            yield advice(CONFIG.child("maxLoraRank"), "no effect without an adapter, or loraTargetModules", "no-effect")
        if config.lora_target_modules:
            yield advice(CONFIG.child("loraTargetModules"), "no effect without an adapter, or maxLoraRank", "no-effect")
    for path, text in CONFIG.child("loraModules").each(config.lora_modules):
        name, target = lora_module(text)
        if not name or not target:
            yield advice(path, 'no effect: write name=path, or {"name": …, "path": …} in JSON', "no-effect")
        elif any(adapter.name == name for adapter in config.lora_adapters):
            yield advice(path, f"no effect: loraAdapters has an adapter {name} as well", "no-effect")


def _speculative_warnings(speculative: SGLangSpeculative, path: Path) -> Iterator[Advice]:
    """Warn of fields of speculative decoding that lack one that they depend on (LK-V-I49, LK-V-I50)."""
    missing = _missing(speculative)
    if speculative.enabled and missing:
        message = f"no effect without {missing}: the service runs without speculative decoding"
        yield advice(path.child("enabled"), message, "no-effect")
    if not speculative.enabled and speculative != SGLangSpeculative():
        yield advice(path, "no effect unless enabled is true", "no-effect")
    if speculative.enabled and not _counts_are_complete(speculative):
        counts = {
            "numSteps": speculative.num_steps is not None,
            "eagleTopK": speculative.eagle_top_k is not None,
            "numDraftTokens": speculative.num_draft_tokens != SGLangSpeculative().num_draft_tokens,  # has a default
        }
        for name in (name for name, written in counts.items() if written):
            yield advice(path.child(name), "no effect unless numSteps and eagleTopK are both set", "no-effect")


def _missing(speculative: SGLangSpeculative) -> str:
    if not speculative.algorithm:
        return "algorithm"
    return "" if speculative.draft_model_path else "draftModelPath"


def warnings_with_model(_: InferenceServiceSpec, __: ModelSpec, gpus: int, ___: str) -> Iterator[Advice]:
    """Warn of SGLang without a GPU."""
    if not gpus:  # LK-V-X14
        yield advice(SPEC.child("runtime"), "SGLang needs a GPU, and neither the service nor its Model asks for one")


def needed_gpus(spec: InferenceServiceSpec) -> dict[str, int]:
    config = spec.sglang_config or SGLangConfig()
    tensor, data, expert = config.tensor_parallel_size, config.data_parallel_size, config.expert_parallel_size
    if read_extra(spec, SGLANG).gives("--enable-dp-attention"):  # the copies share the GPUs
        data = 1
    return {
        "tensorParallelSize times dataParallelSize": (tensor or 1) * (data or 1),
        "expertParallelSize": expert or 1,
    }


def judge(spec: InferenceServiceSpec) -> tuple[str, str] | None:
    speculative = (spec.sglang_config or SGLangConfig()).speculative or SGLangSpeculative()
    missing = _missing(speculative)
    thresholds = (speculative.accept_threshold_single, speculative.accept_threshold_acc)
    if speculative.enabled and missing:
        message = f"sglangConfig.speculative.enabled needs {missing}; speculative decoding is left out"
        return InferenceReason.SPECULATIVE_MISSING_CONFIG, message
    if not speculative.enabled and thresholds != (None, None):
        message = "the thresholds of sglangConfig.speculative have no effect unless enabled is true"
        return InferenceReason.SPECULATIVE_ACCEPT_THRESHOLD_UNUSED, message
    return None


def use(spec: InferenceServiceSpec, _: ModelSpec) -> Usage:
    """Return the use of memory. There must be room for one request; each copy of the model needs the same again."""
    config = spec.sglang_config or SGLangConfig()
    speculative = config.speculative or SGLangSpeculative()
    ignored = () if speculative.enabled else ("sglangConfig.speculative.algorithm",)
    base = memory_use(spec, SGLANG, ignored)
    copies = ("further copies of the model",) if (config.data_parallel_size or 1) > 1 else ()
    return replace(base, more=(*base.more, *copies))


SGLANG = Runtime(
    name="sglang",
    container="sglang",
    image=images.SGLANG,
    device_images=dict.fromkeys(("amd", "rocm", "vulkan"), images.SGLANG_ROCM),
    port=30000,
    command=("python3", "-m", "sglang.launch_server"),
    generates="/health_generate",
    metric="sglang:num_running_reqs",
    mounts_model=True,
    loads_directories=True,
    divides_layers=True,
    unprobed=("--ssl-keyfile",),
    scraped=True,
    service_links=False,
    arguments=arguments,
    reads=("extraArgs", "skipModelInit", "sglangConfig", "mode"),
    config="sglangConfig",
    advice=warnings,
    advice_with_model=warnings_with_model,
    needed_gpus=needed_gpus,
    condition="SGLangSpecValid",
    valid="the SGLang options fit together",
    judge=judge,
    memory_share=0.8,  # approximately
    divides_heads=True,
    keeps_latent=True,
    memory_flags=(
        *("--tp-size", "--dp-size"),
        *("--pp-size", "--cpu-offload-gb", "--enable-hierarchical-cache"),
    ),
    use=use,
)

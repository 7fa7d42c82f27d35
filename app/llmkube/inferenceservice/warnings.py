"""What an InferenceService says without effect, or at its own risk. Rule numbers are those of llmkube spec 6.3 and 6.4.

Admission sees the service alone: what depends on its Model is not said here (spec 6.5).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from app.kube.decode import SPEC
from app.kube.embedded import image_warnings
from app.kube.resource import Resource
from app.llmkube import names
from app.llmkube.inferenceservice.types import InferenceServiceSpec, InferenceServiceStatus
from app.llmkube.runtimes.llamacpp import lacks_model
from app.llmkube.runtimes.registry import runtime
from app.llmkube.runtimes.types import Speculative, TGIConfig, VLLMConfig
from app.workload import podrules

PORT_NAME = "http"
"""Name of the container's only port."""

_LLAMACPP = "llamacpp"
_READS_MODEL = (_LLAMACPP, "vllm")
"""Runtimes that take extra arguments and find their model on a volume."""


def warnings(service: Resource[InferenceServiceSpec, InferenceServiceStatus]) -> list[str]:
    """One line for each field that does nothing, and for each combination that is probably not meant."""
    spec = service.spec
    return [
        *_other_runtime(spec),
        *_model(spec),
        *_overridden(spec),
        *_beside_arguments(spec),
        *(_llamacpp(spec) if spec.runtime == _LLAMACPP else ()),
        *(_vllm(spec.vllm_config or VLLMConfig()) if spec.runtime == "vllm" else ()),
        *(_tgi(spec.tgi_config) if spec.runtime == "tgi" and spec.tgi_config else ()),
        *_resources(spec),
        *_autoscaling(spec),
        *_pod(spec),
        *image_warnings(spec.image, SPEC.child("image")),
    ]


def _has(args: Sequence[str], *flags: str) -> bool:
    """Whether one of the flags is among the arguments, alone or with ``=value``."""
    return any(arg.partition("=")[0] in flags for arg in args)


# Fields of other runtimes.

_LLAMACPP_FIELDS = {
    "contextSize": "context_size",
    "ropeScaling": "rope_scaling",
    "flashAttention": "flash_attention",
    "jinja": "jinja",
    "cacheTypeK": "cache_type_k",
    "cacheTypeV": "cache_type_v",
    "cacheTypeCustomK": "cache_type_custom_k",
    "cacheTypeCustomV": "cache_type_custom_v",
    "moeCPUOffload": "moe_cpu_offload",
    "moeCPULayers": "moe_cpu_layers",
    "noKvOffload": "no_kv_offload",
    "noWarmup": "no_warmup",
    "reasoningBudget": "reasoning_budget",
    "reasoningBudgetMessage": "reasoning_budget_message",
    "metadataOverrides": "metadata_overrides",
    "tensorOverrides": "tensor_overrides",
    "batchSize": "batch_size",
    "uBatchSize": "u_batch_size",
}
_CONFIGS = {"vllmConfig": ("vllm_config", "vllm"), "tgiConfig": ("tgi_config", "tgi")} | {
    "personaPlexConfig": ("persona_plex_config", "personaplex")
}


def _other_runtime(spec: InferenceServiceSpec) -> list[str]:
    """V-I24, V-I26, V-I27, V-I28 and V-I36: one line for all fields that this runtime does not read."""
    unread = []
    if spec.runtime != _LLAMACPP:
        unread = [name for name, attribute in _LLAMACPP_FIELDS.items() if _is_set(getattr(spec, attribute))]
    if spec.runtime not in _READS_MODEL:
        own = {
            "extraArgs": spec.extra_args,
            "parallelSlots": spec.parallel_slots,
            "skipModelInit": spec.skip_model_init,
        }
        unread += [name for name, value in own.items() if value]
    if spec.args and spec.runtime != "generic":
        unread.append("args")
    unread += [
        name
        for name, (attribute, owner) in _CONFIGS.items()
        if spec.runtime != owner and getattr(spec, attribute) is not None
    ]
    return [f"no effect with runtime {spec.runtime}: {', '.join('spec.' + name for name in unread)}"] if unread else []


def _is_set(value: object) -> bool:
    """Whether a user wrote something there: a number counts, even 0."""
    return value is not None and value is not False and value not in ("", [])


# The model and the server.


def _model(spec: InferenceServiceSpec) -> list[str]:
    found = []
    if spec.runtime == _LLAMACPP and lacks_model(spec):  # V-I35
        found.append(
            "spec.skipModelInit leaves llamacpp without a model: name one in extraArgs, or leave skipModelInit out "
            "(a Hugging Face repository does not need it)"
        )
    mounts = spec.runtime in _READS_MODEL and not spec.skip_model_init
    if mounts and spec.pod_security_context is not None and spec.pod_security_context.get("fsGroup") is None:  # V-I41
        found.append(
            "spec.podSecurityContext has no fsGroup: the downloader may not be able to write the model's volume"
        )
    gpus = spec.resources.gpu if spec.resources else None
    if gpus and not spec.image and spec.runtime == _LLAMACPP:  # V-I40
        found.append(
            "spec.image is not set: the default image of llamacpp uses the CPU only; for a GPU name "
            "ghcr.io/ggml-org/llama.cpp:server-cuda13 (cuda), :server-rocm (rocm) or :server-intel (intel)"
        )
    port = spec.container_port or (spec.endpoint.port if spec.endpoint else None)
    own_port = runtime("personaplex").port
    if spec.runtime == "personaplex" and port not in (None, own_port):  # V-I44
        found.append(
            f"the port {port} is not told to personaplex, which listens on {own_port}: set containerPort {own_port}"
        )
    if spec.eviction_protection:  # V-I63
        found.append("spec.evictionProtection has no effect unless the Model's accelerator is metal")
    return found


def _overridden(spec: InferenceServiceSpec) -> list[str]:
    """V-I37, V-I47 and V-I48: two fields for one thing, both written."""
    resources, vllm = spec.resources, spec.vllm_config
    pairs = [
        ("cacheTypeK", "cacheTypeCustomK", spec.cache_type_k and spec.cache_type_custom_k),
        ("cacheTypeV", "cacheTypeCustomV", spec.cache_type_v and spec.cache_type_custom_v),
        (
            "vllmConfig.kvCacheDtype",
            "vllmConfig.kvCacheCustomDtype",
            vllm and vllm.kv_cache_dtype != "auto" and vllm.kv_cache_custom_dtype,
        ),
        ("resources.memory", "resources.hostMemory", resources and resources.memory and resources.host_memory),
        ("priority", "priorityClassName", spec.priority != "normal" and spec.priority_class_name),
    ]
    return [f"spec.{loser} has no effect beside {winner}" for loser, winner, both in pairs if both]


def _beside_arguments(spec: InferenceServiceSpec) -> list[str]:
    """V-I38: what ``extraArgs`` says again comes later on the command line, so the server takes that."""
    flags = runtime(spec.runtime).flags
    if not spec.extra_args or not flags:
        return []
    written = spec.model_dump(by_alias=True, exclude_defaults=True)
    found = [
        f"spec.{path} has no effect beside {given} in extraArgs"
        for path, names_ in flags.items()
        if (given := next((name for name in names_ if _has(spec.extra_args, name)), "")) and _is_set(_at(written, path))
    ]
    if _has(spec.extra_args, "--port"):
        found.append("spec.extraArgs sets --port, where no probe and no Service looks: write containerPort instead")
    return found


def _at(document: dict[str, Any], path: str) -> object:
    """What stands at ``a.b`` of the document, ``None`` where nothing does."""
    value: Any = document
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _llamacpp(spec: InferenceServiceSpec) -> list[str]:
    found = []
    if spec.moe_cpu_offload and spec.moe_cpu_layers:  # V-I43
        found.append("spec.moeCPULayers has no effect beside moeCPUOffload, which keeps all experts in main memory")
    if spec.reasoning_budget_message and spec.reasoning_budget is None:  # V-I45
        found.append("spec.reasoningBudgetMessage has no effect without reasoningBudget")
    if spec.batch_size and spec.u_batch_size and spec.u_batch_size > spec.batch_size:  # V-I53
        found.append("spec.uBatchSize is above batchSize: llama.cpp lowers it")
    return found + _rope(spec)


def _rope(spec: InferenceServiceSpec) -> list[str]:
    """V-I38 and V-I39."""
    rope = spec.rope_scaling
    if rope is None:
        return []
    if _has(spec.extra_args, "--rope-scaling"):
        return ["spec.ropeScaling has no effect beside --rope-scaling in extraArgs"]
    found = []
    if rope.type == "yarn" and rope.original_context is None:
        found.append("spec.ropeScaling.originalContext should be set with type yarn")
    if spec.context_size is None:
        found.append("spec.ropeScaling without contextSize: the context does not become longer by itself")
    return found


def _vllm(config: VLLMConfig) -> list[str]:
    return _speculative(config.speculative) if config.speculative else []


def _speculative(speculative: Speculative) -> list[str]:
    """V-I49 and V-I50."""
    path = "spec.vllmConfig.speculative"
    if speculative.enabled and not speculative.model:
        return [f"{path}.enabled has no effect without model: the service runs without speculative decoding"]
    written = speculative.model or speculative.num_speculative_tokens not in (None, _DEFAULT_TOKENS)
    return [f"{path} has no effect unless enabled is true"] if written and not speculative.enabled else []


_DEFAULT_TOKENS = Speculative.model_fields["num_speculative_tokens"].default
"""Stands in every stored object, written or not."""


def _tgi(config: TGIConfig) -> list[str]:
    """V-I52."""
    longest, total = config.max_input_length, config.max_total_tokens
    if longest is not None and total is not None and longest >= total:
        return ["spec.tgiConfig.maxInputLength must be below maxTotalTokens, or the server ends at once"]
    return []


# Resources and autoscaling.


def _resources(spec: InferenceServiceSpec) -> list[str]:
    found, resources = [], spec.resources
    if resources and resources.gpu_memory:  # V-I21
        found.append("spec.resources.gpuMemory has no effect: GPUs are requested by number, not by memory")
    needs_memory = spec.runtime == _LLAMACPP and (spec.moe_cpu_offload or spec.no_kv_offload)
    if needs_memory and not _memory(spec):  # V-I46
        found.append("the model is partly kept in main memory, and no memory is requested: set resources.hostMemory")
    return found


def _memory(spec: InferenceServiceSpec) -> bool:
    return bool(spec.resources and (spec.resources.memory or spec.resources.host_memory))


def _autoscaling(spec: InferenceServiceSpec) -> list[str]:
    autoscaling = spec.autoscaling
    if autoscaling is None:
        return []
    found, lowest, wanted = [], autoscaling.min_replicas or 1, spec.replicas
    if wanted == 0:  # V-I34
        found.append("spec.replicas 0 stops the service: autoscaling does not start it again")
    elif wanted is not None and wanted != 1 and not lowest <= wanted <= autoscaling.max_replicas:
        found.append(f"spec.replicas {wanted} is outside minReplicas and maxReplicas: it is the first number only")
    requests = {"cpu": bool(spec.resources and spec.resources.cpu), "memory": _memory(spec)}
    for position, metric in enumerate(autoscaling.metrics):
        path = f"spec.autoscaling.metrics[{position}]"
        if metric.type == "Pods" and metric.target_average_utilization is not None:  # V-I32
            found.append(f"{path}.targetAverageUtilization has no effect with type Pods")
        if metric.type == "Resource" and metric.target_average_value:
            found.append(f"{path}.targetAverageValue has no effect with type Resource")
        if metric.type == "Resource" and not requests.get(metric.name, True):  # V-I33
            found.append(f"{path}: without a request in resources.{metric.name} there is no utilization to measure")
    return found


# The pod.

_TOKENS = {"vllm": ("vllm_config", "HF_TOKEN"), "personaplex": ("persona_plex_config", "HF_TOKEN")} | {
    "tgi": ("tgi_config", "HUGGING_FACE_HUB_TOKEN")
}


def _runtime_variables(spec: InferenceServiceSpec) -> list[str]:
    """Variables that the runtime's options set."""
    attribute, variable = _TOKENS.get(spec.runtime, ("", ""))
    config = getattr(spec, attribute, None)
    found = [variable] if config is not None and config.hf_token_secret_ref is not None else []
    return [*found, "NO_TORCH_COMPILE"] if spec.runtime == "personaplex" else found


def _repeated(secrets: list[dict[str, Any]]) -> list[str]:
    """References that name a Secret again: it is sent once."""
    names_ = [secret.get("name") for secret in secrets]
    again = (position for position, name in enumerate(names_) if name in names_[:position])
    return [f"spec.imagePullSecrets[{position}]: {names_[position]} stands there twice" for position in again]


def _pod(spec: InferenceServiceSpec) -> list[str]:
    taken = [key for key in names.OPERATOR_LABELS if key in spec.pod_labels]
    found = [f"spec.podLabels[{key}] has no effect: the label finds the pods of the service" for key in taken]  # V-I55
    found += podrules.env_warnings(spec.env, "spec.env", _runtime_variables(spec))  # V-I61 and V-K07
    found += _repeated(spec.image_pull_secrets)
    overrides = spec.probe_overrides
    for purpose in ("startup", "liveness", "readiness"):
        value = getattr(overrides, purpose, None)
        if value:
            found += podrules.probe_warnings(value, f"spec.probeOverrides.{purpose}", (PORT_NAME,))
    pod, container = spec.pod_security_context or {}, spec.security_context or {}
    return found + podrules.security_warnings(pod, container, "spec.podSecurityContext", "spec.securityContext")

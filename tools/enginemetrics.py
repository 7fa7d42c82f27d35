"""Run the metric classes of vLLM or SGLang from an unpacked wheel: ``python enginemetrics.py FOLDER`` prints JSON.

The classes are imported and filled in as the servers do it: they are made, and get the statistics of an idle server,
then of a request. What each step adds to the registry of prometheus_client is a list of objects with ``name``,
``type``, ``labels``, ``description``, ``option`` (with which the engine makes the metric) and ``appears`` (``start``,
``stats`` with the first statistics of the scheduler, ``request``, or empty if none of the steps made a series of it).
Like :mod:`tools.engineparsers`, whose stand-ins it uses, it imports nothing else of the project.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import engineparsers  # type: ignore[import-not-found]  # beside this file, which is run as a script

_HEAVY = (
    *("sglang.srt.disaggregation.utils", "sglang.srt.model_executor.forward_batch_info"),
    "vllm.model_executor.layers.attention.mla_attention",
)
"""Modules that make no metrics, and need a device or compiled modules when they are imported."""

Metric = dict[str, Any]
Steps = Iterator[str]
"""Fills in metrics, and yields when the series that are there now appear."""


class _Values:
    """A configuration: what is given, and None or a falsy list for everything else."""

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return None


def read(steps: Steps, option: str) -> Iterator[Metric]:
    """Yield the metrics that a run leaves in the registry, and empty it."""
    registry: Any = importlib.import_module("prometheus_client").REGISTRY
    before = set(registry._collector_to_names)  # noqa: SLF001 - of the registry, which has no other list
    appeared: dict[str, str] = {}
    for moment in steps:
        for collector in _added(registry, before):
            if any(family.samples for family in collector.collect()):
                appeared.setdefault(collector._name, moment)  # noqa: SLF001
    for collector in _added(registry, before):
        name = collector._name  # noqa: SLF001
        (family,) = collector.describe()
        yield {
            "name": f"{name}_total" if family.type == "counter" else name,
            "type": family.type,
            "labels": list(collector._labelnames),  # noqa: SLF001
            "description": " ".join(family.documentation.split()),
            "option": option,
            "appears": appeared.get(name, ""),
        }
        registry.unregister(collector)


def _added(registry: Any, before: set[Any]) -> list[Any]:
    return [
        collector
        for collector in registry._collector_to_names  # noqa: SLF001
        if collector not in before and hasattr(collector, "_labelnames")
    ]


# vLLM.

_OPTIONS: dict[str, dict[str, Any]] = {
    "": {},
    "--show-hidden-metrics-for-version": {"observability_config": {"show_hidden_metrics": True}},
    "--kv-cache-metrics": {"observability_config": {"kv_cache_metrics": True}},
    "--enable-lora": {"lora_config": {"max_loras": 1}},
    "--speculative-config": {"speculative_config": {"num_speculative_tokens": 2}},
    "--watermark-config": {"watermark_config": {}},
}
"""Changes of the configuration, by the option that makes them."""
_PARTS: dict[str, dict[str, Any]] = {
    "cache_config": {"metrics_info": lambda: {"num_gpu_blocks": "1"}, "num_gpu_blocks": 1},
    "compilation_config": {"cudagraph_capture_sizes": [1, 2]},
    "device_config": {"device_type": "cuda"},
    "model_config": {"served_model_name": "m", "max_model_len": 4096, "is_diffusion": False},
    "observability_config": {},
    "parallel_config": {},
    "scheduler_config": {},
}


def find_platform() -> None:
    """Make vLLM detect a GPU on a machine without one."""
    platforms: Any = importlib.import_module("vllm.platforms")
    cuda: Any = importlib.import_module("vllm.platforms.cuda")
    platforms._current_platform = cuda.NonNvmlCudaPlatform()  # noqa: SLF001


def _vllm() -> Iterator[Metric]:
    find_platform()
    try:
        steps, connectors = _earlier_vllm(importlib.import_module("vllm.engine.metrics")), []
    except ImportError:
        steps, connectors = _vllm_with({}), _connectors()
    yield from read(steps, "")
    for option, changes in () if not connectors else _OPTIONS.items():
        yield from read(_vllm_with(changes), option)
    for connector in connectors:
        transfer = {"kv_connector": connector, "kv_connector_extra_config": {}, "is_kv_consumer": True}
        with contextlib.suppress(Exception):  # a connector whose modules compute while they are imported
            yield from read(_vllm_with({"kv_transfer_config": transfer}), "--kv-transfer-config")


def _connectors() -> list[str]:
    factory: Any = importlib.import_module("vllm.distributed.kv_transfer.kv_connector.factory")
    return sorted(factory.KVConnectorFactory._registry)  # noqa: SLF001


def _config(changes: Mapping[str, Any]) -> _Values:
    return _Values(**{name: _Values(**_PARTS.get(name, {}), **changes.get(name, {})) for name in {*_PARTS, *changes}})


def _vllm_with(changes: Mapping[str, Any]) -> Steps:
    stats: Any = importlib.import_module("vllm.v1.metrics.stats")
    reasons: Any = importlib.import_module("vllm.v1.engine")
    loggers: Any = importlib.import_module("vllm.v1.metrics.loggers")
    logger = loggers.PrometheusStatLogger(_config(changes), [0])
    logger.log_engine_initialized()
    yield "start"
    logger.record(stats.SchedulerStats(), None)
    yield "stats"
    names = inspect.signature(stats.FinishedRequestStats).parameters
    values = {**dict.fromkeys(names, 1), "finish_reason": reasons.FinishReason.STOP}
    iteration = stats.IterationStats()
    iteration.finished_requests.append(stats.FinishedRequestStats(**values))
    logger.record(stats.SchedulerStats(), iteration)
    yield "request"


def _earlier_vllm(metrics: Any) -> Steps:
    """Fill in the metrics of vLLM 0.7, which are those of its first engine."""
    types_: Any = importlib.import_module("vllm.engine.metrics_types")
    statistics = metrics.PrometheusStatLogger(1, {"model_name": "m"}, _config({}))
    statistics.info("cache_config", _config({}).cache_config)
    yield "start"
    idle: dict[str, Any] = {name: [] if "equest" in name or "lora" in name else 0 for name in _fields(types_.Stats)}
    idle |= {"time_to_first_tokens_iter": [], "time_per_output_tokens_iter": [], "max_lora": "0"}
    statistics.log(types_.Stats(**idle))
    yield "stats"
    lists = {name: ["stop"] if "reason" in name else [1] for name, value in idle.items() if value == []}
    statistics.log(types_.Stats(**{**idle, **lists, "waiting_lora_adapters": [], "running_lora_adapters": []}))
    yield "request"


def _fields(type_: Any) -> list[str]:
    return [
        name
        for name, parameter in inspect.signature(type_).parameters.items()
        if parameter.default is inspect.Parameter.empty
    ]


# SGLang.

_LABELS = {"model_name": "m", "engine_type": "unified", "tp_rank": 0, "pp_rank": 0, "moe_ep_rank": 0, "priority": ""}
_SERVER = _Values(prefill_delayer_max_delay_passes=30)
_FLAGS = ("enable_lora", "enable_hierarchical_cache", "enable_streaming_session")
_COLLECTORS = {
    "StorageMetricsCollector": "--hicache-storage-backend",
    "ExpertDispatchCollector": "--enable-expert-distribution-metrics",
    "RadixCacheMetricsCollector": "",
    "EncoderMetricsCollector": "--encoder-only",
}
"""Options with which the server makes a collector, beside those that it always makes."""


def sglang_module() -> Any:
    """Return SGLang's module of metrics, with stand-ins for what asks a running server."""
    module = _first(("sglang.srt.observability.metrics_collector", "sglang.srt.metrics.collector"))
    for name in vars(module).keys() & {"get_exec", "get_observability", "get_schedule", "get_serving", "get_parallel"}:
        setattr(module, name, lambda: _SERVER)
    return module


def _sglang() -> Iterator[Metric]:
    module = sglang_module()
    module.exports_expert_balancedness_to_prometheus = lambda: True  # which asks the configuration of a server
    yield from read(_scheduler(module, ()), "")
    for flag in _FLAGS if "enable_lora" in inspect.signature(module.SchedulerMetricsCollector).parameters else ():
        yield from read(_scheduler(module, (flag,)), f"--{flag.replace('_', '-')}")
    yield from read(_tokenizer(module), "")
    for name, option in _COLLECTORS.items():
        if hasattr(module, name):
            yield from read(_other(getattr(module, name)), option)


def _first(names: Iterable[str]) -> Any:
    """Import the first module that is there."""
    folder = Path(sys.path[0])
    module = next(name for name in names if (folder / f"{name.replace('.', '/')}.py").is_file())
    return importlib.import_module(module)


def _scheduler(module: Any, flags: Iterable[str]) -> Steps:
    collector = _filled(module.SchedulerMetricsCollector, dict.fromkeys(flags, True))
    if hasattr(collector, "emit_constants"):
        _call_methods(collector, ("emit_constants",))
    yield "start"
    collector.log_stats(module.SchedulerStats())
    yield "stats"
    _call_methods(collector, ("observe_queue_time", "observe_per_stage_req_latency", "increment_realtime_tokens"))
    yield "request"


def _tokenizer(module: Any) -> Steps:
    collector = _filled(module.TokenizerMetricsCollector, {})
    yield "start"
    _call_methods(
        collector, ("observe_one_finished_request", "observe_time_to_first_token", "observe_inter_token_latency")
    )
    yield "request"


def _other(type_: Any) -> Steps:
    _filled(type_, {})
    yield "start"


def _filled(type_: Any, given: Mapping[str, Any]) -> Any:
    parameters = inspect.signature(type_).parameters
    values = {"labels": dict(_LABELS), "server_args": _SERVER, "ep_size": 2, **given}
    return type_(**{name: value for name, value in values.items() if name in parameters})


def _call_methods(collector: Any, methods: Iterable[str]) -> None:
    """Call methods of a collector with a one, or with the value that suits each parameter."""
    for method in methods:
        function = getattr(collector, method, None)
        if function is not None:
            function(
                **{name: _value(name, parameter) for name, parameter in inspect.signature(function).parameters.items()}
            )


def _value(name: str, parameter: inspect.Parameter) -> Any:
    if name == "labels":
        return dict(_LABELS)
    if name == "graph_memory_usage_gb":
        return {"decode": 1}
    return parameter.default if parameter.default is not inspect.Parameter.empty else 1


def prepare(folder: str) -> str:
    """Make the unpacked wheel's modules importable, and return the engine."""
    sys.argv[1:] = []
    os.environ.pop("PROMETHEUS_MULTIPROC_DIR", None)
    engineparsers.prepare(folder)
    for name in _HEAVY:
        sys.modules[name] = engineparsers.Module(name)
    torch: Any = sys.modules["torch"]
    torch.cuda.get_device_capability = lambda *_: (9, 0)
    return next(name for name in ("vllm", "sglang") if (Path(folder) / name).is_dir())


def main(arguments: list[str]) -> None:
    """Print the metrics of the unpacked wheel."""
    (folder,) = arguments
    output, sys.stdout = sys.stdout, sys.stderr
    engine = prepare(folder)
    output.write(json.dumps(list(_vllm() if engine == "vllm" else _sglang())))


if __name__ == "__main__":
    main(sys.argv[1:])

"""Record what an engine shows in a state: ``PYTHON recordstates.py FOLDER TARGET`` writes ``TARGET/ENGINE-STATE.txt``.

The folder is an unpacked wheel of vLLM or SGLang; the interpreter is that of :func:`tools.engines.python`, with
``tools`` on its path. As :mod:`tools.enginemetrics`, it fills in the engine's own classes, and here writes the pages
that they make, of the metrics that autoscalers follow.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import enginemetrics  # type: ignore[import-not-found]  # on the path of the interpreter

_SHOWN = re.compile(
    r"(?:# TYPE )?\w+:(?:num_(?:requests_(?:running|waiting)|running_reqs|queue_reqs)|(?:kv|gpu)_cache_usage_perc"
    r"|token_usage|generation_tokens_total)\b(?!_).*"
)
Page = tuple[str, str]


def _page(state: str) -> Page:
    client: Any = importlib.import_module("prometheus_client")
    lines = client.generate_latest().decode().splitlines()
    return state, "".join(f"{line}\n" for line in lines if _SHOWN.match(line))


def _forget() -> None:
    registry: Any = importlib.import_module("prometheus_client").REGISTRY
    for collector in [one for one in registry._collector_to_names if hasattr(one, "_labelnames")]:
        registry.unregister(collector)


def _vllm() -> Iterator[Page]:
    enginemetrics.find_platform()
    loggers: Any = importlib.import_module("vllm.v1.metrics.loggers")
    stats: Any = importlib.import_module("vllm.v1.metrics.stats")
    for state, engines in (("start", [()]), ("busy", [(3, 2)]), ("two-engines", [(3, 2), (4, 1)])):
        logger = loggers.PrometheusStatLogger(enginemetrics._config({}), [*range(len(engines))])
        logger.log_engine_initialized()
        for index, numbers in enumerate(engines):
            if numbers:
                running, waiting = numbers
                given = stats.SchedulerStats(num_running_reqs=running, num_waiting_reqs=waiting, kv_cache_usage=0.5)
                logger.record(given, None, engine_idx=index)
        yield _page(state)
        _forget()


def _sglang() -> Iterator[Page]:
    module = enginemetrics.sglang_module()
    count: Callable[..., Any] = getattr(module, "QueueCount", lambda total, _=None: total)
    priorities = {1: 2, 5: 1}
    by_priority = hasattr(module, "QueueCount")
    for state in ("start", "idle", "busy", *(("priorities", "pipeline", "two-engines") if by_priority else ())):
        labels: dict[str, Any] = {"model_name": "m", "engine_type": "unified"}
        if by_priority:
            labels |= {"tp_rank": 0, "pp_rank": 0, "moe_ep_rank": 0}
        labels |= {"priority": ""} if state == "priorities" else {}
        labels |= {"dp_rank": 0} if state == "two-engines" else {}
        parameters = inspect.signature(module.SchedulerMetricsCollector).parameters
        values = {"labels": labels, "server_args": enginemetrics._SERVER}
        given = {name: values.get(name, False) for name, one in parameters.items() if name in values or _needed(one)}
        collector = module.SchedulerMetricsCollector(**given)
        running, waiting = (0, 0) if state == "idle" else (3, 2)
        numbers = (count(running, priorities), count(waiting, priorities)) if state == "priorities" else ()
        for rank in () if state == "start" else range(2 if state in ("pipeline", "two-engines") else 1):
            changed = {"pipeline": "pp_rank", "two-engines": "dp_rank"}.get(state)
            collector.labels |= {changed: rank} if changed else {}
            first, second = numbers or (count(running + (rank if changed == "dp_rank" else 0)), count(waiting))
            collector.log_stats(module.SchedulerStats(num_running_reqs=first, num_queue_reqs=second, token_usage=0.5))
        yield _page(state)
        _forget()


def _needed(parameter: inspect.Parameter) -> bool:
    return parameter.default is inspect.Parameter.empty


def main(folder: str, target: str) -> None:
    """Write the pages of the states of the engine in the folder."""
    version = Path(folder).name.split("-")[1]
    engine = enginemetrics.prepare(folder)
    for state, text in _vllm() if engine == "vllm" else _sglang():
        Path(target, f"{engine}-{version}-{state}.txt").write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])

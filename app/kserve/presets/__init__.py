"""The eight presets that every installation has, built once. Source: kserve spec 2.3 and 2.7.

A config of the same name, in the service's namespace or the system namespace, stands in for its preset.
"""

from __future__ import annotations

from typing import Any

from app.kserve.names import PUBLIC_PORT
from app.kserve.presets import pods, router
from app.kserve.template import OPEN, Template

Json = dict[str, Any]

SCHEDULER = "config-llm-scheduler"
ROUTE = "config-llm-router-route"
TEMPLATE = "config-llm-template"
WORKER_DATA_PARALLEL = "config-llm-worker-data-parallel"
WORKER_PIPELINE_PARALLEL = "config-llm-worker-pipeline-parallel"
PREFILL_TEMPLATE = "config-llm-prefill-template"
PREFILL_WORKER_DATA_PARALLEL = "config-llm-prefill-worker-data-parallel"
PREFILL_WORKER_PIPELINE_PARALLEL = "config-llm-prefill-worker-pipeline-parallel"
DECODE_TEMPLATE = "config-llm-decode-template"
DECODE_WORKER_DATA_PARALLEL = "config-llm-decode-worker-data-parallel"
DECODE_WORKER_PIPELINE_PARALLEL = "config-llm-decode-worker-pipeline-parallel"

_MAIN = ".Spec.Parallelism"
_PREFILL = ".Spec.Prefill.Parallelism"
_DECODE = pods.DECODE_PORT

PRESETS: dict[str, Json] = {
    TEMPLATE: {"template": pods.single_node(PUBLIC_PORT)},
    DECODE_TEMPLATE: {"template": pods.single_node(_DECODE, routed=True)},
    PREFILL_TEMPLATE: {"prefill": {"template": pods.single_node(PUBLIC_PORT, terminationMessagePolicy="File")}},
    WORKER_DATA_PARALLEL: {
        "template": pods.leader(PUBLIC_PORT, _MAIN),
        "worker": pods.worker(PUBLIC_PORT, _MAIN),
    },
    DECODE_WORKER_DATA_PARALLEL: {
        "template": pods.leader(_DECODE, _MAIN, routed=True),
        "worker": {
            **(decode_worker := pods.worker(_DECODE, _MAIN)),
            "containers": [
                {**server, "env": [*server["env"], {"name": "VLLM_RANDOMIZE_DP_DUMMY_INPUTS", "value": "1"}]}
                for server in decode_worker["containers"]
            ],
        },
    },
    PREFILL_WORKER_DATA_PARALLEL: {
        "prefill": {
            "template": pods.leader(PUBLIC_PORT, _PREFILL),
            "worker": pods.worker(PUBLIC_PORT, _PREFILL),
        }
    },
    SCHEDULER: {"router": {"scheduler": router.scheduler()}},
    ROUTE: {"router": {"route": {"http": {"spec": router.route()}}}},
}
"""Preset by suffix: what stands after the configured prefix (``kserve-``)."""

PINNED = tuple(PRESETS)
"""Suffixes whose names are kept in ``status.annotations``."""


def _templates(value: Any) -> dict[int, Template]:
    if isinstance(value, str):
        return {id(value): Template(value)} if OPEN in value else {}
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {text: template for item in items for text, template in _templates(item).items()}


TEMPLATES: dict[int, Template] = _templates(PRESETS)
"""Every template of the presets, read once, by the identity of its text: the same text of a user's is another one."""


def _plain(value: Any, found: set[int]) -> bool:
    """Whether no template stands in ``value``; the ids of all such objects and lists are put into ``found``."""
    if isinstance(value, str):
        return OPEN not in value
    if not isinstance(value, (dict, list)):
        return True
    items = [_plain(item, found) for item in (value.values() if isinstance(value, dict) else value)]
    plain = all(items) and not (isinstance(value, dict) and any(OPEN in key for key in value))
    if plain:
        found.add(id(value))
    return plain


def _all_plain() -> frozenset[int]:
    found: set[int] = set()
    for preset in PRESETS.values():
        _plain(preset, found)
    return frozenset(found)


PLAIN: frozenset[int] = _all_plain()
"""Identities of the parts of presets without templates: rendering passes them by. They live as long as the service."""

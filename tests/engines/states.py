"""Pages of metrics by engine and state, and the requests that they count. ``pages/README.md`` has their origin."""

from __future__ import annotations

from pathlib import Path

RUNNING, WAITING = "running", "waiting"
METRICS = {
    "vllm": {RUNNING: "vllm:num_requests_running", WAITING: "vllm:num_requests_waiting"},
    "sglang": {RUNNING: "sglang:num_running_reqs", WAITING: "sglang:num_queue_reqs"},
    "tgi": {RUNNING: "tgi_batch_current_size", WAITING: "tgi_queue_size"},
    "llamacpp": {RUNNING: "llamacpp:requests_processing", WAITING: "llamacpp:requests_deferred"},
}
"""Metrics of requests."""
_NONE, _SOME = {RUNNING: 0, WAITING: 0}, {RUNNING: 3, WAITING: 2}
_MANY = {RUNNING: 3, WAITING: 3}
REQUESTS: dict[str, dict[str, dict[str, int]]] = {
    "before": {"vllm": _NONE, "sglang": {}, "tgi": {}, "llamacpp": _NONE},
    "busy": {"vllm": _SOME, "sglang": _SOME, "tgi": _MANY, "llamacpp": _MANY},
    "idle": dict.fromkeys(METRICS, _NONE),
    "two-engines": {"vllm": {RUNNING: 7, WAITING: 3}, "sglang": {RUNNING: 7, WAITING: 4}},
    "priorities": {"sglang": _SOME},
    "pipeline": {"sglang": _SOME},
}
"""Requests by state and engine, counted by hand.

``before`` the first request TGI shows nothing, and SGLang nothing before its first statistics. ``pipeline`` is SGLang
with two ranks, each of which shows all requests.
"""


def _recorded(release: str) -> dict[str, str]:
    found = (Path(__file__).parent / "pages" / "states").glob(f"{release}-*.txt")
    return {page.stem.removeprefix(f"{release}-"): page.read_text() for page in found}


def _written(engine: str, numbers: dict[str, int]) -> str:
    """Return the page of an engine without labels."""
    names = ((METRICS[engine][kind], number) for kind, number in numbers.items())
    return "".join(f"# TYPE {name} gauge\n{name} {number}\n" for name, number in names)


def _plain(engine: str) -> dict[str, str]:
    return {state: _written(engine, counted[engine]) for state, counted in REQUESTS.items() if engine in counted}


PAGES = {
    "vllm": _recorded("vllm-0.20.0"),
    "sglang": _recorded("sglang-0.5.15.post1"),
    "tgi": _plain("tgi"),
    "llamacpp": _plain("llamacpp"),
}
"""Pages by engine and state."""

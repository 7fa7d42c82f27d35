"""The load that a service takes, measured as docs/howto/load.md has it, by the client that its Job runs."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest

from tests.node import loadclient
from tests.node.images import ROOT
from tests.node.report import say
from tests.node.samples import service
from tests.node.world import SERVICES, World

pytestmark = [pytest.mark.node, pytest.mark.world()]

_SHORTER = {
    r"seconds=\d+": "seconds=5",
    r"prompt_tokens=\d+": "prompt_tokens=60",
    r"output_tokens=\d+": "output_tokens=20",
    r"slo.ttft_ms=\d+": "slo.ttft_ms=300",
}
"""What each step of the search takes, in place of the page's: a step of minutes shows nothing more here."""
_PEAK = 30
"""The page's requests per second at the peak."""
_STREAMS = re.compile(r"Goodput search \w+ after \d+ probes\D.* (?:at|is) (\d+) streams")
_ENGINES_OWN = "llamacpp:requests_processing"


def _job(target: str) -> dict[str, Any]:
    """Return the page's Job with another target and tokenizer, shorter steps, and what this machine can give."""
    job = loadclient.job()
    (client,) = job["spec"]["template"]["spec"]["containers"]
    here = {r"target=\S+": f"target={target}", r"model=\S+": f"model={loadclient.TOKENIZER}"}
    for pattern, new in (here | _SHORTER).items():
        changed = [re.sub(pattern, new, argument) for argument in client["args"]]
        assert changed != client["args"], f"the page has no {pattern}"
        client["args"] = changed
    client["resources"] = {"requests": {"cpu": "10m", "memory": "256Mi"}}
    return job


def _targets() -> dict[str, str]:
    """Return the page's targets by family."""
    text = (ROOT / "docs" / "howto" / "load.md").read_text()
    return dict(re.findall(r"^\| (\w+) \| `(http://\S+?)`", text, re.MULTILINE))


@pytest.fixture(scope="module")
def measured(installed: World, namespace: str, tiny: str) -> tuple[int, float]:
    """The requests at once that one pod takes, and how many it then finishes per second: the page's two numbers."""
    archive = installed.prepared.client
    if archive is None:
        pytest.skip("the client's image is not made: make world-test")
    installed.node.load(archive)
    limit = {"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "10m"}}
    limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "slow"}, "spec": {"limits": [limit]}}
    chat = service("chat", tiny, contextSize=8192, parallelSlots=4, extraArgs=["--threads", "1"])
    installed.apply(namespace, limits, chat)
    installed.wait_true(SERVICES, "chat", namespace)
    installed.cluster.kubectl("-n", namespace, "delete", "limitrange", "slow")
    installed.apply(namespace, _job(_targets()["LLMKube"]))
    kubectl = installed.cluster.kubectl
    done = kubectl("-n", namespace, "wait", "--for=condition=Complete", "job/load", "--timeout=400s", check=False)
    log = kubectl("-n", namespace, "logs", "job/load", "--tail=-1", check=False).stdout
    assert done.returncode == 0, log[-6000:]
    match = _STREAMS.search(log)
    assert match, log[-6000:]
    streams = int(match[1])
    say("\n".join(line for line in log.splitlines() if "Goodput" in line or "concurrent@" in line or "Per Sec" in line))
    table = log.partition("Server Throughput Statistics")[2].partition("Summary")[0]
    rows = [line.split("|") for line in table.splitlines() if f"concurrent@{streams} " in line]
    return streams, float(rows[0][4])


def test_the_client_finds_what_one_pod_takes(measured: tuple[int, float]) -> None:
    """It is neither nothing, nor what the search begins and ends with whatever the server does."""
    streams, per_second = measured
    assert 1 <= streams < 1024
    assert per_second > 0


def test_the_numbers_scale_the_service(installed: World, namespace: str, measured: tuple[int, float]) -> None:
    """The sums of the page become `maxReplicas` and the target of the HorizontalPodAutoscaler."""
    streams, per_second = measured
    pods, target = math.ceil(_PEAK / per_second) + 1, max(1, streams * 8 // 10)
    metric = {"type": "Pods", "name": _ENGINES_OWN, "targetAverageValue": str(target)}
    scaling = {"minReplicas": 1, "maxReplicas": pods, "metrics": [metric]}
    patch = json.dumps({"spec": {"autoscaling": scaling}})
    installed.cluster.kubectl("-n", namespace, "patch", SERVICES, "chat", "--type=merge", "-p", patch)
    autoscalers = installed.wait_for(
        "an autoscaler",
        lambda: installed.cluster.get("horizontalpodautoscalers", "-n", namespace)["items"],
        lambda items: len(items) == 1,
    )
    spec = autoscalers[0]["spec"]
    assert spec["maxReplicas"] == pods
    assert spec["metrics"][0]["pods"]["target"]["averageValue"] == str(target)

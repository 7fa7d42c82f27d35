"""docs/howto/own-deployment.md: a Deployment of a user's own becomes resources of a family, without a lost request."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import yaml

from app.kube.base import Json
from tests.e2e.controlplane import TIMEOUT, ControlPlane
from tests.e2e.installation import ROOT, Installation
from tests.e2e.processes import wait_until
from tests.repository.test_readme import commands

pytestmark = pytest.mark.e2e

PAGE = ROOT / "docs/howto/own-deployment.md"
(MANIFEST,) = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
COMMANDS = list(commands(PAGE))
KINDS = {
    "llmkube": "inferenceservices.inference.llmkube.dev",
    "llmaz": "services.inference.llmaz.io",
    "kserve": "llminferenceservices.serving.kserve.io",
}


class Endpoints:
    """The ready endpoints of a Service at each change, as a proxy sees them: pods by the Service's port."""

    def __init__(self) -> None:
        self.slices: dict[str, set[str]] = {}
        self.seen: list[frozenset[str]] = []

    def take(self, event: Json) -> None:
        item = event["object"]
        name = item["metadata"]["name"]
        ready = (
            endpoint for endpoint in item.get("endpoints") or () if endpoint["conditions"].get("ready") is not False
        )
        is_there = event["type"] != "DELETED" and item.get("ports")
        self.slices[name] = {endpoint["targetRef"]["name"] for endpoint in ready} if is_there else set()
        self.seen.append(frozenset[str]().union(*self.slices.values()))


@contextmanager
def watched(cluster: ControlPlane, namespace: str, service: str) -> Iterator[Endpoints]:
    """Follow the EndpointSlices of a Service from now on; nothing between two changes is missed."""
    endpoints, query = Endpoints(), {"labelSelector": f"kubernetes.io/service-name={service}"}
    path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
    listed = cluster.client.get(path, params=query).raise_for_status().json()
    for item in listed["items"]:
        endpoints.take({"type": "ADDED", "object": item})
    ended, version = threading.Event(), listed["metadata"]["resourceVersion"]

    def follow(client: httpx.Client) -> None:
        """Watch until the end, in parts of a few seconds: only this thread uses the connection."""
        last = version
        while not ended.is_set():
            watch = {**query, "watch": "true", "resourceVersion": last, "timeoutSeconds": "3"}
            with client.stream("GET", path, params=watch) as answer:
                for line in answer.iter_lines():
                    event = json.loads(line)
                    last = event["object"]["metadata"]["resourceVersion"]
                    endpoints.take(event)

    with cluster.client_of("admin") as client, ThreadPoolExecutor(1) as pool:
        following = pool.submit(follow, client)
        try:
            yield endpoints
        finally:
            ended.set()
            following.result()


def run(cluster: ControlPlane, namespace: str, folder: Path, command: str) -> str:
    """Run a command of the page, in a namespace and a folder; ``convert`` may lose something."""
    program, *words = shlex.split(command)
    target = folder / words[words.index(">") + 1] if ">" in words else None
    words = [
        str(folder / word) if word.endswith(".yaml") else word for word in words[: words.index(">") if target else None]
    ]
    if program == "kubectl":
        out = cluster.kubectl("--namespace", namespace, *words).stdout
    else:
        done = subprocess.run(
            [sys.executable, "-m", "app.cli", *words], capture_output=True, text=True, check=False, cwd=ROOT
        )
        assert done.returncode <= int(words[0] == "convert"), done.stderr
        out = done.stdout
        (folder / f"{words[0]}.err").write_text(done.stderr)
    if target is not None:
        target.write_text(out)
    return out


def pods(cluster: ControlPlane, namespace: str, selector: str) -> set[str]:
    return {pod["metadata"]["name"] for pod in cluster.get("pods", "-n", namespace, "-l", selector)["items"]}


@pytest.mark.parametrize("family", KINDS)
def test_clients_move_and_return_without_a_moment_without_endpoints(
    installation: Installation, namespace: str, tmp_path: Path, family: str
) -> None:
    """The page's commands, or those that ``convert`` printed for the family: endpoints are old pods, then new ones."""
    cluster = installation.cluster
    cluster.kubectl("apply", "-n", namespace, "-f", "-", input=MANIFEST)
    cluster.kubectl("rollout", "status", "-n", namespace, "deployment/chat", TIMEOUT)
    get, convert, validate, apply, *moving, delete, back, remove = COMMANDS
    with watched(cluster, namespace, "chat") as endpoints:
        wait_until(lambda: len(endpoints.seen[-1]) == 2, "the endpoints of the old pods")
        old = endpoints.seen[-1]
        start = len(endpoints.seen)
        for command in (get, convert.replace("llmkube", family), validate, apply):
            run(cluster, namespace, tmp_path, command)
        steps = [step.removeprefix("then: ") for step in account(tmp_path) if step.startswith("then: ")]
        steps = [step.replace(f"--namespace {namespace} ", "") for step in steps]
        if family == "llmkube":
            assert steps == moving[:2]  # the page shows this family's
        run(cluster, namespace, tmp_path, steps[0])
        assert set(endpoints.seen[start:]) <= {old}, "no new pod takes requests before the patch"
        run(cluster, namespace, tmp_path, steps[1])
        new = pods(cluster, namespace, selector_of(cluster, namespace))
        assert len(new) == 2
        wait_until(lambda: endpoints.seen[-1] == new, "the endpoints of the new pods")
        run(cluster, namespace, tmp_path, moving[-1])
        run(cluster, namespace, tmp_path, back)
        wait_until(lambda: endpoints.seen[-1] == old, "the endpoints of the old pods again")
        run(cluster, namespace, tmp_path, steps[1])
        wait_until(lambda: endpoints.seen[-1] == new, "the endpoints of the new pods again")
        run(cluster, namespace, tmp_path, delete)
        wait_until(lambda: not pods(cluster, namespace, "app=chat"), "the end of the old pods")
        assert endpoints.seen[-1] == new
        assert min(map(len, endpoints.seen[start:])) >= 2, endpoints.seen
    assert cluster.get(KINDS[family], "-n", namespace)["items"][0]["metadata"]["name"] == "chat-llm"
    run(cluster, namespace, tmp_path, remove)


def account(folder: Path) -> list[str]:
    """Return the lines that ``convert`` printed on standard error."""
    return (folder / "convert.err").read_text().splitlines()


def selector_of(cluster: ControlPlane, namespace: str) -> str:
    selector = cluster.get("services", "chat", "-n", namespace)["spec"]["selector"]
    return ",".join(f"{key}={value}" for key, value in selector.items())


def test_the_manifest_of_the_page_loses_what_the_page_says(tmp_path: Path) -> None:
    """Of the page's Deployment, LLMKube lacks three parts, and the others none but the port."""
    file = tmp_path / "own.yaml"
    file.write_text(MANIFEST)
    for family, lost in (
        ("llmkube", {"terminationGracePeriodSeconds", "memory", "name"}),
        ("llmaz", {"containerPort"}),
    ):
        words = [sys.executable, "-m", "app.cli", "convert", "--to", family, "--output", "json", str(file)]
        done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
        names = {re.split(r"[.\[\]]+", row["path"].rstrip("]"))[-1] for row in json.loads(done.stdout)["lost"]}
        assert names == lost, names
    assert yaml.safe_load(MANIFEST.partition("---")[0])["kind"] == "Deployment"

"""``modelhooks studio --live`` on a real API server, with read rights alone."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
import yaml

from tests.e2e.binaries import program
from tests.e2e.controlplane import ControlPlane
from tests.e2e.installation import ROOT, Installation
from tests.e2e.processes import Process, wait_until
from tests.e2e.test_llmkube import QUICKSTART, condition, wait_ready

pytestmark = pytest.mark.e2e

SERVICE = "inferenceservice.inference.llmkube.dev"


class Studio:
    """A studio process, and a growing list of its events."""

    def __init__(self, kubeconfig: Path, log: Path) -> None:
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        argv = [sys.executable, "-m", "app.cli", "studio", "--live", "--no-browser"]
        self._log = log
        self._process = Process("studio", argv, log, environment)
        wait_until(lambda: "http://" in log.read_text(), "the studio's address")
        match = re.search(r"http://\S+", log.read_text())
        assert match
        address = urlsplit(match[0])
        self._authority, self._path = address.netloc, address.path
        self.events: list[tuple[float, Any]] = []
        self._stream = HTTPConnection(self._authority)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        self._stream.request("GET", f"{self._path}api/live/events")
        with contextlib.suppress(HTTPException, OSError), self._stream.getresponse() as response:  # until it ends
            while line := response.readline():
                if line.startswith(b"data:"):
                    self.events.append((time.monotonic(), json.loads(line.removeprefix(b"data:"))))

    def ask(self, path: str, body: Any = None, **query: str) -> Any:
        """Send a request and return its response, which must be successful."""
        connection = HTTPConnection(self._authority, timeout=60)
        content = None if body is None else json.dumps(body)
        headers = {"Content-Type": "application/json"} if content else {}
        where = f"{self._path}api/live/{path}?{urlencode(query)}"
        connection.request("GET" if body is None else "POST", where, content, headers)
        response = connection.getresponse()
        answer = response.read()
        connection.close()
        assert response.status == 200, answer.decode() + self._log.read_text()[-4000:]
        return json.loads(answer)

    def seen(self, namespace: str, name: str) -> list[tuple[float, Any]]:
        """Return the events of one custom resource."""
        return [
            (at, event)
            for at, event in self.events
            if event["object"] and (event["namespace"], event["object"]["name"]) == (namespace, name)
        ]

    def stop(self) -> None:
        """Stop the process, which must end although a stream is open."""
        self._process.stop()
        self._reader.join(30)
        assert not self._reader.is_alive()
        self._stream.close()


@pytest.fixture
def studio(installation: Installation, reading: Path, tmp_path: Path) -> Iterator[Studio]:
    opened = Studio(reading, tmp_path / "studio.log")
    yield opened
    opened.stop()


def apply(cluster: ControlPlane, namespace: str, documents: list[Any]) -> float:
    """Apply objects; return the time at which the API server had them."""
    cluster.kubectl("apply", "-n", namespace, "-f", "-", input=yaml.safe_dump_all(documents))
    return time.monotonic()


def test_what_is_created_appears_and_what_fails_turns_red_in_the_words_of_its_status(
    installation: Installation, namespace: str, studio: Studio
) -> None:
    cluster = installation.cluster
    assert not [row for row in studio.ask("objects", namespace=namespace) if row["namespace"]]
    documents = list(yaml.safe_load_all(QUICKSTART.read_text()))
    at = apply(cluster, namespace, documents)
    wait_until(lambda: bool(studio.seen(namespace, "smollm-chat")), "the event of the new service")
    (appeared, _), *_ = studio.seen(namespace, "smollm-chat")
    print(f"a created object is in the stream {max(0.0, appeared - at):.2f} s after it was applied")
    wait_ready(cluster, namespace, "model/smollm", "inferenceservice/smollm-chat")
    wait_until(
        lambda: studio.seen(namespace, "smollm-chat")[-1][1]["object"]["ready"] == "True", "the event that it is ready"
    )
    kinds = {"Model", "InferenceService", "Deployment", "Pod", "PersistentVolumeClaim"}

    def green() -> bool:
        graph = studio.ask("graph", resource=SERVICE, namespace=namespace, name="smollm-chat")
        return {"ready"} == {node["state"] for node in graph["nodes"]} and kinds <= {n["kind"] for n in graph["nodes"]}

    wait_until(green, "a graph of ready objects")

    documents[1]["spec"]["image"] = "registry.example.com/server:ImagePullBackOff"
    documents[1]["metadata"]["name"] = "failing"
    apply(cluster, namespace, documents[1:])

    def red() -> bool:
        seen = studio.seen(namespace, "failing")
        return bool(seen) and "cannot pull its image" in seen[-1][1]["object"]["cause"]

    wait_until(red, "the event of the failure")
    failing = {"InferenceService": "failing", "Deployment": "failing", "Pod": "failing", "Model": "ready"}

    def in_the_words_of_the_status() -> bool:
        graph = studio.ask("graph", resource=SERVICE, namespace=namespace, name="failing")
        nodes = {n["kind"]: n for n in graph["nodes"] if n["name"].startswith("failing") or n["kind"] == "Model"}
        (row,) = studio.ask("objects", namespace=namespace, text="cannot pull")
        cause = condition(cluster.get(SERVICE, "failing", "-n", namespace), "Ready")["message"]
        said = (nodes["InferenceService"]["cause"], (row["name"], row["ready"], row["cause"]))
        states = {kind: nodes[kind]["state"] for kind in failing}
        return states == failing and said == (cause, ("failing", "False", cause.splitlines()[0]))

    wait_until(in_the_words_of_the_status, "the failure in graph and list")


def test_an_edit_has_the_predicted_effect(installation: Installation, namespace: str, studio: Studio) -> None:
    cluster = installation.cluster
    apply(cluster, namespace, list(yaml.safe_load_all(QUICKSTART.read_text())))
    wait_ready(cluster, namespace, "model/smollm", "inferenceservice/smollm-chat")
    text = studio.ask("graph", resource=SERVICE, namespace=namespace, name="smollm-chat")["manifest"]["text"]
    same = studio.ask("compare", {"text": text})
    assert (same["objects"], same["findings"]) == ([], [])

    answer = studio.ask("compare", {"text": text.replace("contextSize: 4096", "contextSize: 2048")})
    (told,) = answer["objects"]
    assert (told["kind"], told["effect"]) == ("Deployment", "rolls pods")
    deployment = ("deployment", "smollm-chat", "-n", namespace)
    before = cluster.get(*deployment)["spec"]["template"]
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    environment["PATH"] = f"{Path(program('kubectl')).parent}:{os.environ['PATH']}"
    subprocess.run(["/bin/sh", "-c", answer["command"]], env=environment, check=True, capture_output=True)
    wait_until(lambda: bool(cluster.get(*deployment)["spec"]["template"] != before), "the change of the pods")
    (field,) = told["fields"]
    arguments = cluster.get(*deployment)["spec"]["template"]["spec"]["containers"][0]["args"]
    assert field["after"] in arguments
    assert field["before"] not in arguments

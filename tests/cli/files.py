"""Manifests for tests of the command, and a way to run it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

from app import cli
from app.desk.files import yaml
from app.kube.base import Json
from tests.corpus.requests import API_VERSION


class Result(NamedTuple):
    """The exit status and the output of a command."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return orjson.loads(self.out)

    @property
    def findings(self) -> list[Json]:
        """Return the findings that ``validate --output json`` printed."""
        rows: list[Json] = self.json["findings"]
        return rows

    @property
    def other_findings(self) -> list[Json]:
        """Return the findings but those of images without their GPUs or a user, which small manifests have (KS-P10)."""
        others = ("needs an NVIDIA GPU", "runs as root, which runAsNonRoot forbids")
        return [row for row in self.findings if not any(words in row["message"] for words in others)]


class Command:
    """Runs ``modelhooks`` in this process, on files below one directory."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._directory = directory
        self._capsys = capsys

    def file(self, name: str, *documents: Any) -> str:
        """Write documents to a file, as YAML or JSON depending on its name, and return its path."""
        path = self._directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = orjson.dumps(documents[0]).decode() if name.endswith(".json") else yaml.dump_all(list(documents))
        path.write_text(text)
        return str(path)

    def __call__(self, *arguments: str) -> Result:
        self._capsys.readouterr()
        status = cli.main(arguments)
        return Result(status, *self._capsys.readouterr())


def model(name: str = "m", spec: Json | None = None, **over: Any) -> Json:
    return _object("Model", name, {"source": "https://models.example.com/m.gguf"} if spec is None else spec, over)


def service(spec: Json | None = None, name: str = "s", **over: Any) -> Json:
    return _object("InferenceService", name, {"modelRef": "m", **(spec or {})}, over)


def _object(kind: str, name: str, spec: Json, over: Json) -> Json:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec, **over}

"""Paths of probes, behind a prefix that the server's arguments set."""

from __future__ import annotations

import pytest

from app import images
from app.kube.field import Path
from app.workload.advice.podadvice import path_warnings
from app.workload.engines.engine import engine_of, path_prefix

LLAMA = engine_of(images.LLAMACPP)


@pytest.mark.parametrize(
    ("arguments", "path", "meant"),
    [
        (["--api-prefix", "/x"], "/x/health", ""),
        (["--api-prefix", "/x"], "/x/healthz", "/x/health"),
        (["--api-prefix=/x/"], "/health", "/x/health"),
        (["--api-prefix", "/x"], "/x/own", ""),
        ([], "/health", ""),
        ([], "/healthz", "/health"),
    ],
)
def test_a_path_is_judged_without_the_prefix(arguments: list[str], path: str, meant: str) -> None:
    """llama.cpp 0.7.0 with ``--api-prefix /x`` answers ``/x/health`` with 200 and ``/health`` with 404."""
    warned = list(path_warnings({"httpGet": {"path": path}}, Path(), LLAMA, path_prefix(arguments)))
    assert [meant in text for text in warned] == ([True] if meant else [])

"""What comes with the project: examples, what they find on a cluster, and the settings of an installation."""

from __future__ import annotations

import ast
import inspect
import itertools
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from app.cli.manifests import Manifest, parse
from app.settings import Settings, variable_name
from app.studio.models import Example, Setting

_DATA = Path(__file__).with_name("catalogue.json")
"""Written by ``make generate`` (``tools/catalogue.py``)."""
_OF_THE_PROCESS = frozenset(
    {
        *("host", "port", "tls_cert_file", "tls_key_file", "log_format", "log_level"),
        *("lameduck_seconds", "graceful_shutdown_seconds", "max_sync_bytes", "openapi"),
    }
)
"""Settings that no manifest leads to anything else by."""


@cache
def examples() -> list[Example]:
    """Those of the repository, by family and name."""
    return [Example(**one) for one in _data()["examples"]]


def installed(manifests: Sequence[Manifest]) -> list[Manifest]:
    """What a cluster has that the examples were written for: llmaz' BackendRuntimes, KServe's Gateway and settings.

    Of that, what the manifests do not describe themselves.
    """
    own = {(one.kind, one.name) for one in manifests}
    return [one for one in _installed() if (one.kind, one.name) not in own]


@cache
def _installed() -> list[Manifest]:
    return parse(_data()["installed"], "installed")


@cache
def _data() -> dict[str, Any]:
    data: dict[str, Any] = orjson.loads(_DATA.read_bytes())
    return data


@cache
def settings() -> list[Setting]:
    """Those that hooks depend on, with the text of the documentation."""
    found = []
    for name, text in _texts().items():
        default = Settings.model_fields[name].default
        shown = ", ".join(default) if isinstance(default, tuple) else "" if default is None else str(default)
        found.append(Setting(name=variable_name(name), default=shown, description=text))
    return found


def _texts() -> dict[str, str]:
    """The docstrings below the settings."""
    (body,) = [n.body for n in ast.parse(inspect.getsource(Settings)).body if isinstance(n, ast.ClassDef)]
    texts = {}
    for before, after in itertools.pairwise(body):
        match before, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = inspect.cleandoc(text)
    return {name: text for name, text in texts.items() if name not in _OF_THE_PROCESS}

"""The examples and settings that the page offers."""

import ast
import inspect
from functools import cache

from app.cli import catalogue
from app.kube.docstrings import documented
from app.settings import Settings, variable_name
from app.studio.models import Example, Setting

_OF_THE_PROCESS = frozenset(
    {
        *("host", "port", "tls_cert_file", "tls_key_file", "log_format", "log_level"),
        *("lameduck_seconds", "graceful_shutdown_seconds", "max_sync_bytes", "openapi"),
    }
)
"""Settings that do not change what manifests become."""


@cache
def examples() -> list[Example]:
    """The examples of the repository, by family and name."""
    return [Example(**example) for example in catalogue.examples()]


@cache
def settings() -> list[Setting]:
    """Return the settings that hooks depend on, with their documentation."""
    (body,) = [n.body for n in ast.parse(inspect.getsource(Settings)).body if isinstance(n, ast.ClassDef)]
    return [_setting(name, text) for name, text in documented(body) if name not in _OF_THE_PROCESS]


def _setting(name: str, text: str) -> Setting:
    default = Settings.model_fields[name].default
    shown = ", ".join(default) if isinstance(default, tuple) else "" if default is None else str(default)
    return Setting(name=variable_name(name), default=shown, description=inspect.cleandoc(text))

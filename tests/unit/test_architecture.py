"""Imports point one way, and only the routes know FastAPI (design, layout)."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

APP = Path(__file__).parents[2] / "app"

FAMILIES = {"llmkube", "llmaz", "kserve"}
MAY_IMPORT = {
    "kube": {"kube"},
    "hooks": {"hooks", "kube", "errors", "settings"},
    "workload": {"workload", "hooks", "kube", "settings"},
    "admission": {"admission", "hooks", "kube", "errors", "settings"},
    **{family: {family, "hooks", "admission", "workload", "kube", "settings"} for family in FAMILIES},
}
"""What each layer may import; layers that are not named (main, cli, server, generate) may import anything below."""

WEB = {"fastapi", "starlette", "uvicorn", "prometheus_fastapi_instrumentator"}
KNOW_WEB = {"main.py", "server"}

FORBIDDEN_IN_PURE_LAYERS = {"socket", "subprocess", "requests", "httpx", "urllib.request", "random", "time", "os"}
"""Hooks and admission are pure: no clock, no chance, no world outside (decisions 10 and 11)."""


def modules() -> list[Path]:
    return sorted(APP.rglob("*.py"))


def imports(module: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "app":
                yield from (f"app.{name.name}" for name in node.names)
            else:
                yield node.module


def layer(module: Path) -> str:
    return module.relative_to(APP).parts[0]


@pytest.mark.parametrize("module", modules(), ids=lambda module: str(module.relative_to(APP)))
def test_imports_point_one_way(module: Path) -> None:
    """A layer imports itself and what lies below; families never import each other."""
    allowed = MAY_IMPORT.get(layer(module))
    if allowed is not None:
        above = {name for name in imports(module) if name.startswith("app.") and name.split(".")[1] not in allowed}
        assert not above


@pytest.mark.parametrize("module", modules(), ids=lambda module: str(module.relative_to(APP)))
def test_only_the_edge_knows_the_web(module: Path) -> None:
    """Everything else is functions from data to data."""
    if layer(module) not in KNOW_WEB:
        assert not {name for name in imports(module) if name.split(".")[0] in WEB}


@pytest.mark.parametrize("module", modules(), ids=lambda module: str(module.relative_to(APP)))
def test_the_layers_below_are_pure(module: Path) -> None:
    """The clock is an argument, and there is no network."""
    if layer(module) in MAY_IMPORT:
        assert not FORBIDDEN_IN_PURE_LAYERS.intersection(imports(module))


@pytest.mark.parametrize("module", [m for m in modules() if layer(m) == "kube"], ids=lambda module: module.name)
def test_the_vocabulary_names_no_family(module: Path) -> None:
    """``kube`` is Kubernetes' words only."""
    text = module.read_text().lower()
    assert not [family for family in FAMILIES if family in text]

"""How Traefik, the Gateway API implementation of these tests, is built from its module.

For certificates it has clients of 150 name services, which would need hundreds of further modules: it is built from a
copy without them. The module lacks the program's own page, too, which nothing here opens.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.e2e import binaries

_TOOL = "traefik"
_LEGO = "github.com/go-acme/lego/v4"


def patch(folder: Path) -> Path:
    """Write the changed copy below a folder; return where it is compiled."""
    tree = _copy("github.com/traefik/traefik/v3", folder / "traefik")
    lego = _copy(_LEGO, folder / "lego")
    clients = lego / "providers" / "dns"
    shutil.rmtree(clients)
    shutil.copytree(binaries.TOOLS / _TOOL / "dns", clients)
    binaries.go(tree, "mod", "edit", f"-replace={_LEGO}={lego}")
    return tree


def _copy(module: str, target: Path) -> Path:
    """Copy a pinned module, whose files in the cache of modules are read-only."""
    shutil.copytree(binaries.module_directory(_TOOL, module), target, copy_function=shutil.copyfile)
    for folder in (target, *(path for path in target.rglob("*") if path.is_dir())):
        folder.chmod(0o755)
    return target

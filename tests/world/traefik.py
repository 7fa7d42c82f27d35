"""Builds Traefik, the Gateway API implementation of these tests, from its module.

Traefik's ACME support includes clients of 150 DNS providers, which would need hundreds of further modules, so a copy
without them is built. The module also lacks Traefik's dashboard, which is not used here.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.e2e import binaries

_TOOL = "traefik"
_LEGO = "github.com/go-acme/lego/v4"


def patch(folder: Path) -> Path:
    """Write the patched copy below a folder; return the directory to compile in."""
    tree = binaries.copied_module(_TOOL, "github.com/traefik/traefik/v3", folder / "traefik")
    lego = binaries.copied_module(_TOOL, _LEGO, folder / "lego")
    clients = lego / "providers" / "dns"
    shutil.rmtree(clients)
    shutil.copytree(binaries.TOOLS / _TOOL / "dns", clients)
    binaries.go(tree, "mod", "edit", f"-replace={_LEGO}={lego}")
    return tree

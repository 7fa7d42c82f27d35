"""Traefik, the Gateway API implementation of these tests: one program, which needs no proxy beside it.

Its module lacks the page that it embeds, and its dependencies 150 clients of name services, which certificates need:
the program is built from a copy with an empty page and without them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.e2e import binaries

VERSION = "v3.5.4"
_MODULE = "github.com/traefik/traefik/v3"
_LEGO = "github.com/go-acme/lego/v4"
_NO_NAME_SERVICES = """\
package dns

import (
	"errors"

	"github.com/go-acme/lego/v4/challenge"
)

func NewDNSChallengeProviderByName(name string) (challenge.Provider, error) {
	return nil, errors.New("no client of " + name)
}
"""


def is_built() -> bool:
    return _target().is_file()


def program() -> Path:
    """The path of the program; built when the cache has none of this version."""
    target = _target()
    target.parent.mkdir(parents=True, exist_ok=True)
    with binaries.locked(target.with_suffix(".lock")):
        if not target.is_file():
            with tempfile.TemporaryDirectory(dir=target.parent, prefix="build-") as scratch:
                _build(Path(scratch)).rename(target)
    return target


def _target() -> Path:
    return binaries.cache_home() / "world" / f"traefik-{VERSION}"


def _build(scratch: Path) -> Path:
    binaries.say(f"building Traefik {VERSION}: minutes on two cores, the first time only")
    tree = _copy(f"{_MODULE}@{VERSION}", scratch / "traefik", scratch)
    lego = _copy(_LEGO, scratch / "lego", tree)
    page = tree / "webui" / "static"
    page.mkdir(exist_ok=True)
    (page / "index.html").touch()
    for file in (lego / "providers" / "dns").glob("*.go"):
        file.unlink()
    (lego / "providers" / "dns" / "none.go").write_text(_NO_NAME_SERVICES)
    _go(tree, "mod", "edit", f"-replace={_LEGO}={lego}")
    _go(tree, "build", "-mod=mod", "-buildvcs=false", "-ldflags=-s -w", "-o", str(scratch / "program"), "./cmd/traefik")
    return scratch / "program"


def _copy(module: str, target: Path, folder: Path) -> Path:
    """A writable copy of a module, in the version that the one in `folder` requires."""
    source = json.loads(_go(folder, "mod", "download", "-json", module))["Dir"]
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    for path in [target, *target.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    return target


def _go(folder: Path, *arguments: str) -> str:
    command, environment = ["go", *arguments], os.environ | {"GOWORK": "off"}
    return subprocess.run(command, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, check=True).stdout

"""Prepares what a run cannot fetch inside its namespaces: programs, images, a model; they are cached if possible."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import subprocess
import tempfile
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import yaml

from tests.e2e import binaries
from tests.node import archive, debian, hub, images, loadclient, programs
from tests.node.images import ROOT, Builder
from tests.node.report import step
from tests.world import programs as world

_REQUIREMENTS = ROOT / "requirements" / "node.txt"
_MODEL_SCRIPT = Path(__file__).with_name("tiny_model.py")
_DEPLOYMENT = Path("manifests/base/deployment.yaml")

PREVIOUS = "MODELHOOKS_PREVIOUS"
"""The variable that names a commit to upgrade from. Defaults to the newest tag, if there is one."""


@dataclass(frozen=True)
class Release:
    """A release to install: the tree with its manifests, and the archive of its image."""

    tree: Path
    archive: Path


@dataclass(frozen=True)
class Prepared:
    """The paths of a folder of programs, an archive of images, a GGUF file, and the releases.

    ``authority`` has the certificate and the key of the CA that the images trust; ``client`` is the archive of the
    image of `loadclient`, if other projects' programs are required.
    """

    programs: Path
    tools: Path
    model: Path
    authority: Path
    client: Path | None
    present: Release
    previous: Release | None


def prepare(folder: Path) -> Prepared:
    """Make what is missing; files of this run alone go to `folder`."""
    with step("control plane built"):
        binaries.directory()
    with step("node's programs built"):
        built = programs.directory()
    with step("metrics adapter built"):
        adapter = programs.adapter()
    binaries.optional_crds("gateways")  # fetches the module's other CRDs, too
    cache = binaries.cache_home() / "node"
    with binaries.locked(cache / "prepare.lock"):
        authority = _kept(cache / "authority.json", hub.make_authority)
        certificate = hub.read_authority(authority).certificate
        with step("images of tools made"):
            path = cache / f"tools-{_digest(built.name, adapter.parent.name, certificate, archive, debian, images)}.tar"
            tool_programs = [built / "coredns", adapter]
            tools = _kept(path, lambda path, scratch: images.make_tools(path, tool_programs, certificate, scratch))
        with step("model made"):
            model = _kept(cache / f"tiny-{_digest(_REQUIREMENTS, _MODEL_SCRIPT)}.gguf", _make_model)
        builder = Builder(cache / "buildah")
        with step("base image made"):
            base = f"base:{_digest(debian, images)}"
            if not builder.has(base):
                with tempfile.TemporaryDirectory(dir=cache, prefix="base-") as scratch:
                    builder.make_base(base, Path(scratch))
        with step("image of this tree built"):
            present = _release(builder, base, ROOT, folder / "present.tar")
        client = None
        if world.REQUIRED:
            with step("image of the load's client made"):
                path = cache / f"client-{_digest(loadclient.image(), debian, loadclient)}.tar"
                client = _kept(path, lambda path, scratch: loadclient.make(builder, path, scratch))
        previous = None
        if commit := _previous_commit():
            with step(f"image of {commit} built"):
                previous = _release(builder, base, _checkout(commit, folder / "previous"), folder / "previous.tar")
    return Prepared(built, tools, model, authority, client, present, previous)


def write(prepared: Prepared, path: Path) -> None:
    """Write the paths to a file, for the process inside the namespaces."""
    path.write_text(json.dumps(dataclasses.asdict(prepared), default=str))


def read(path: Path) -> Prepared:
    """Read the file that `write` wrote."""
    noted = json.loads(path.read_text())
    present, previous = (_release_of(noted[name]) for name in ("present", "previous"))
    assert present is not None
    built, tools, model, authority = (Path(noted[name]) for name in ("programs", "tools", "model", "authority"))
    client = Path(noted["client"]) if noted["client"] else None
    return Prepared(built, tools, model, authority, client, present, previous)


def _release_of(noted: dict[str, str] | None) -> Release | None:
    return Release(Path(noted["tree"]), Path(noted["archive"])) if noted else None


def image_name(tree: Path) -> str:
    """Return a release's image, as its manifests name it."""
    deployment = yaml.safe_load((tree / _DEPLOYMENT).read_text())
    name: str = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    return name


def reference(name: str) -> str:
    """Return the full name that a container runtime uses for an image named without a registry."""
    return f"docker.io/library/{name}"


def _release(builder: Builder, base: str, tree: Path, path: Path) -> Release:
    """Build a tree's Dockerfile unchanged, on our base under the name of the official image."""
    name = image_name(tree)
    builder.tag(base, images.base_name(tree))
    builder.build(name, tree)
    builder.save(name, path, reference(name))
    return Release(tree, path)


def _previous_commit() -> str | None:
    """Return the commit to upgrade from; None without a tag, or outside a clone."""
    if named := os.environ.get(PREVIOUS):
        return named
    done = _git("describe", "--tags", "--abbrev=0", "--match=v*", "HEAD^")
    return done.stdout.strip() if done.returncode == 0 else None


def _checkout(commit: str, folder: Path) -> Path:
    """Write the files of a commit to a folder."""
    folder.mkdir()
    tree = folder.with_suffix(".git.tar")
    done = _git("archive", f"--output={tree}", commit)
    if done.returncode:
        raise RuntimeError(f"{commit} is not in this clone: {done.stderr}")
    subprocess.run(["tar", "-x", "-f", str(tree), "-C", str(folder)], check=True)
    return folder


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)


def _kept(path: Path, make: Callable[[Path, Path], None]) -> Path:
    """Return a cached file; if it is missing, `make` writes it, given its path and a temporary folder."""
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=path.parent, prefix="make-") as scratch:
            written = Path(scratch, path.name)
            make(written, Path(scratch))
            written.rename(path)
    return path


def _make_model(path: Path, scratch: Path) -> None:
    """Write the model with the package `gguf`, in a new virtual environment."""
    venv.create(scratch / "venv", with_pip=True)
    python = str(scratch / "venv" / "bin" / "python")
    debian.run([python, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "-r", str(_REQUIREMENTS)])
    debian.run([python, str(_MODEL_SCRIPT), str(path)])


def _digest(*sources: str | Path | ModuleType) -> str:
    """Return a hash of values, files and modules, for the name of what is made from them."""
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.encode() if isinstance(source, str) else _path(source).read_bytes())
    return digest.hexdigest()[:16]


def _path(source: Path | ModuleType) -> Path:
    if isinstance(source, Path):
        return source
    assert source.__file__
    return Path(source.__file__)

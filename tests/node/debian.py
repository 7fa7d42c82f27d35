"""Root file systems of images, unpacked from packages of a suite of Debian.

apt gets a configuration of its own: it reads the suite from the mirror that the machine's own configuration names,
thinks that nothing is installed, and so fetches a package with all that it needs. The machine stays as it is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
_ALIASES = ("bin", "lib", "lib64", "sbin")
_LEFT_OUT = ("doc", "info", "locale", "man")


class PackagesMissingError(RuntimeError):
    """The packages cannot be had; the message says why."""


def unpack(suite: str, packages: Sequence[str], root: Path, workdir: Path) -> None:
    """Put packages and all they depend on into `root`; none of their scripts is run."""
    environment = os.environ | {"APT_CONFIG": str(_configuration(suite, workdir)), "LC_ALL": "C"}
    run(["apt-get", "update", "-qq"], environment)
    run(["apt-get", "install", "-qq", "--yes", "--download-only", *packages], environment)
    root.mkdir()
    for name in _ALIASES:
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    for archive in sorted((workdir / "cache" / "archives").glob("*.deb")):
        run(["dpkg-deb", "--extract", str(archive), str(root)], environment)
    for name in _LEFT_OUT:
        shutil.rmtree(root / "usr" / "share" / name, ignore_errors=True)
    (root / "etc").mkdir(exist_ok=True)
    (root / "tmp").mkdir(exist_ok=True)
    (root / "tmp").chmod(0o1777)


def _configuration(suite: str, workdir: Path) -> Path:
    """apt's configuration below `workdir`."""
    for name in ("state/lists/partial", "cache/archives/partial"):
        (workdir / name).mkdir(parents=True)
    (workdir / "status").touch()
    (workdir / "sources.list").write_text(f"deb [signed-by={_KEYS}] {_mirror()} {suite} main\n")
    configuration = workdir / "apt.conf"
    configuration.write_text(
        "".join(
            f'{key} "{value}";\n'
            for key, value in {
                "Dir::State": workdir / "state",
                "Dir::State::status": workdir / "status",
                "Dir::Cache": workdir / "cache",
                "Dir::Etc::sourcelist": workdir / "sources.list",
                "Dir::Etc::sourceparts": "/dev/null",
                "Dir::Etc::preferencesparts": "/dev/null",
                "APT::Install-Recommends": "false",
                "APT::Sandbox::User": "root",
            }.items()
        )
    )
    return configuration


def _mirror() -> str:
    """Where the machine gets Debian from."""
    command = ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages", "Origin: Debian"]
    sites = run([*command, "Label: Debian"], os.environ | {"LC_ALL": "C"}).split()
    if not sites:
        raise PackagesMissingError("apt knows no mirror of Debian; apt-get update has to have run")
    return sites[0]


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """The output of a command that fetches something; PackagesMissingError when it cannot."""
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise PackagesMissingError(f"{' '.join(command)}: code {done.returncode}\n{done.stderr}{done.stdout}")
    return done.stdout

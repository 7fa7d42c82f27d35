"""The commands of a documentation page, run unchanged on the node: in the tree, in order, by bash.

What they need besides the cluster is simulated: GitHub by a repository on disk, kind and Docker by scripts, because the
node is running and the image is built already. `hub` simulates the Hub.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import yaml

from tests.e2e import binaries
from tests.e2e.controlplane import ControlPlane
from tests.node.images import ROOT
from tests.node.node import Node
from tests.node.prepare import Release, image_name
from tests.node.report import say
from tests.repository.test_docs_cli import pattern
from tests.repository.test_readme import block_commands

_BLOCK = re.compile(r"^```sh\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
_METACONTROLLER = Path(__file__).with_name("metacontroller.yaml")
_OVERLAY = ROOT / "manifests" / "metacontroller" / "kustomization.yaml"
_REFUSED = "/rejected/"
"""Commands with such a file must fail; all others must succeed."""


@dataclass(frozen=True)
class Block:
    """The commands of a block, and the output that the page shows."""

    commands: tuple[str, ...]
    output: str


def blocks(text: str) -> Iterator[Block]:
    """Yield the ``sh`` blocks of a page, each with the ``text`` block that follows it directly."""
    for commands, output in _BLOCK.findall(text):
        yield Block(tuple(block_commands(commands)), output)


class Reader:
    """Runs the commands of a page; a context manager that stops background commands.

    ``seconds`` is the total duration of the commands.
    """

    def __init__(self, text: str, environment: Mapping[str, str]) -> None:
        self._blocks = list(blocks(text))
        self._environment = environment
        self._background: list[subprocess.Popen[bytes]] = []
        self.seconds = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the background commands."""
        while self._background:
            process = self._background.pop()
            process.terminate()
            process.wait()

    def read(self, count: int | None = None) -> None:
        """Run the next blocks, and compare their output with the page."""
        present, self._blocks = self._blocks[:count], self._blocks[len(self._blocks[:count]) :]
        for block in present:
            began = time.monotonic()
            printed = "".join(self._run(command) for command in block.commands)
            self.seconds += time.monotonic() - began
            expected = pattern(block.output.splitlines())
            assert not block.output or expected.fullmatch(printed), f"{block.commands} printed:\n{printed}"

    def _run(self, command: str) -> str:
        """Return the output of a command, with standard error if it fails; empty for a background command."""
        say(f"  $ {command}")
        if command.endswith("&"):
            argv = ["bash", "-c", f"exec {command.removesuffix('&')}"]
            self._background.append(subprocess.Popen(argv, cwd=ROOT, env=self._environment, stdout=subprocess.DEVNULL))
            return ""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=ROOT,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        everything = done.stdout + done.stderr
        assert (done.returncode != 0) == (_REFUSED in command), f"{command}: code {done.returncode}\n{everything}"
        printed = everything if done.returncode else done.stdout
        return "".join(f"{line.rstrip()}\n" for line in printed.splitlines())


def environment(cluster: ControlPlane, node: Node, release: Release, folder: Path) -> dict[str, str]:
    """Return the environment variables of a reader's shell; simulated programs and repositories are in a new folder."""
    programs = folder / "bin"
    programs.mkdir(parents=True)
    image = image_name(release.tree)
    load = shlex.join(node.load_command(release.archive))
    add_script(programs / "docker", {f"build -t {image} .": ":"})
    add_script(
        programs / "kind",
        {
            "create cluster --name models": ":",
            f"load docker-image {image} --name models": load,
            "delete cluster --name models": ":",
        },
    )
    (programs / "kubectl").symlink_to(binaries.program("kubectl"))
    add_repository(folder / "github")
    return os.environ | {
        "HOME": str(folder),
        "KUBECONFIG": str(cluster.kubeconfig),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "NO_PROXY": "*",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.file://{folder}/github/.insteadOf",
        "GIT_CONFIG_VALUE_0": "https://github.com/",
    }


def add_script(path: Path, answers: Mapping[str, str]) -> None:
    """Write a program that accepts only some command lines."""
    cases = "\n".join(f"{shlex.quote(arguments)}) {answer} ;;" for arguments, answer in answers.items())
    path.write_text(f'#!/bin/sh\ncase "$*" in\n{cases}\n*) echo "not played: $0 $*" >&2; exit 1 ;;\nesac\n')
    path.chmod(0o755)


def add_repository(github: Path) -> None:
    """Create Metacontroller's repository at the release in our manifests, with the files that they use."""
    (resource,) = yaml.safe_load(_OVERLAY.read_text())["resources"]
    repository, _, rest = resource.removeprefix("https://github.com/").partition("//")
    place, _, release = rest.partition("?ref=")
    manifests = github / repository / place
    manifests.mkdir(parents=True)
    (manifests / "kustomization.yaml").write_text("resources: [metacontroller.yaml]\n")
    (manifests / "metacontroller.yaml").write_text(_METACONTROLLER.read_text())
    for arguments in (
        ("init", "--quiet"),
        ("add", "."),
        ("-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "--message=Release"),
        ("tag", release),
    ):
        subprocess.run(["git", *arguments], cwd=github / repository, check=True)

"""Start a container's command as a node would: the kubelet fills in variables, and a stand-in notes its arguments."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from app.kube.base import Json

NODE_PATH = "/usr/bin:/bin"
_OPERATOR = re.compile(r"\$\$|\$\(([^)]*)\)")
HOSTILE = (
    *(
        "a&b",
        "it's",
        "$x",
        "$(touch ran)",
        "`touch ran`",
        "a b",
        "  a  b ",
        '"',
        '"a"',
        "'a'",
        "\\",
        "a\\b",
        "a\\",
        "*",
        "?",
    ),
    *(
        "[a-z]*",
        "[",
        "{",
        "}",
        "{a,b}",
        "{1..3}",
        '{"a": "b c"}',
        "~",
        "~root",
        "#a",
        "a;touch ran",
        "a|touch ran",
        "a>ran",
    ),
    *(
        "<a",
        "(a)",
        "a)",
        "!",
        "!!",
        "$HOME",
        "${HOME}",
        "$((1+1))",
        "$$",
        "a\nb",
        "\ta",
        "-n",
        "--",
        "\u00fc",
        "%s",
        "a=b",
    ),
    *("'$(touch ran)'", "';touch ran;'", '";touch ran;"', "$(HOME)", "\r", "a\\\nb", "=~", "^a"),
)
"""Values that a shell would change or run."""


class Started(NamedTuple):
    code: int
    argv: list[str] | None
    """The arguments of the stand-in; ``None`` if it was not started."""
    said: str


def expanded(text: str, env: dict[str, str]) -> str:
    """Fill in ``$(NAME)`` as the kubelet does: unknown names stay, and ``$$`` is ``$``."""
    return _OPERATOR.sub(lambda m: "$" if m[0] == "$$" else env.get(m[1], m[0]), text)


def environment(container: Json, others: dict[str, str]) -> dict[str, str]:
    """Return the variables of a container; ``others`` has those with values from elsewhere."""
    env = dict(others)
    for variable in container.get("env") or ():
        if "valueFrom" not in variable:
            env[variable["name"]] = expanded(variable.get("value") or "", env)
    return env


def start(root: Path, container: Json, program: str, others: dict[str, str] | None = None, shell: str = "") -> Started:
    """Run a container's command, in another shell if ``shell`` names one, with a stand-in for ``program``."""
    log, stand_in = root / "argv", root / program
    version = '[ "$1" = --version ] && echo 0.23.0 && exit\n' if program == "vllm" else ""
    stand_in.write_text(f'#!/bin/sh\n{version}for a; do printf "%s\\0" "$a"; done > "{log}"\n')
    stand_in.chmod(0o755)
    env = environment(container, others or {})
    command, *rest = (expanded(t, env) for t in (*(container.get("command") or ()), *(container.get("args") or ())))
    path = {"PATH": f"{root}:{NODE_PATH}"}
    program_path = shutil.which(shell or command, path=path["PATH"]) or command
    done = subprocess.run(
        [program_path, *rest], env={**env, **path}, cwd=root, capture_output=True, text=True, timeout=60, check=False
    )
    argv = log.read_bytes().decode().split("\0")[:-1] if log.exists() else None
    return Started(done.returncode, argv, done.stderr)

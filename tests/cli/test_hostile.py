"""Malicious files: the command ends soon and prints only ordinary lines."""

from __future__ import annotations

import os
import re
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from app.desk.files.printing import as_json, counted, escaped
from app.desk.files.yaml import dump
from tests.cli.files import Command, model, service
from tests.service import NEVER

MERGES = "k0: &a0 {x: 1, y: 2}\n" + "".join(
    f"k{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * 10)}]}}\n" for level in range(1, 9)
)
ONE_LARGE_MERGE = "".join(
    (
        f"a: &a {{{', '.join(f'x{number}: 1' for number in range(30_000))}}}\n",
        f"b:\n  <<: [*a, {', '.join(['{}'] * 10_000)}]\napiVersion: v1\nkind: Pod\n",
    )
)
BRACKETS = "apiVersion: v1\nkind: Model\na: " + "[" * 50_000
DASHES = "apiVersion: v1\nkind: Model\na:\n  " + "- " * 50_000 + "x\n"

TREES: dict[str, dict[str, str | Callable[[Path], None]]] = {
    "merge keys in a kustomization": {"kustomization.yaml": MERGES},
    "merge keys in a manifest": {"b.yaml": f"apiVersion: v1\nkind: Pod\n{MERGES}"},
    "one large merge": {"b.yaml": ONE_LARGE_MERGE},
    "brackets in a kustomization": {"kustomization.yaml": BRACKETS},
    "brackets in a manifest": {"b.yaml": BRACKETS},
    "nested sequences in one line": {"b.yaml": DASHES},
    "a .gitignore without end": {".gitignore": lambda path: path.symlink_to("/dev/zero")},
    "a .gitignore that nobody writes to": {".gitignore": os.mkfifo},
    "a file without end": {"b.yaml": lambda path: path.symlink_to("/dev/zero")},
    "a patch with NUL": {"kustomization.yaml": 'patches: [{path: "\\0"}, "a\\0b"]\n'},
}


@pytest.mark.no_cover
@pytest.mark.parametrize("tree", TREES.values(), ids=list(TREES))
def test_a_hostile_tree_is_read_in_seconds(
    command: Command, tmp_path: Path, tree: dict[str, str | Callable[[Path], None]]
) -> None:
    """The manifest beside the hostile file is checked."""
    command.file("a.yaml", model())
    for name, content in tree.items():
        file = tmp_path / name
        if isinstance(content, str):
            file.write_text(content)
        else:
            content(file)
    begin = time.monotonic()
    result = command("validate", str(tmp_path))
    assert time.monotonic() - begin < NEVER  # once it took minutes or gigabytes, or crashed the process
    assert "1 object checked" in result.err


@pytest.mark.parametrize("hidden", ["", ".hidden"])
def test_a_tree_may_be_deeper_than_calls(command: Command, tmp_path: Path, hidden: str) -> None:
    """The deepest file is read, or is counted below an excluded folder."""
    folder = tmp_path / hidden
    for _ in range(sys.getrecursionlimit() + 100):
        folder /= "d"
        folder.mkdir(parents=True)
    file = Path(command.file("a.yaml", model())).rename(folder / "a.yaml")
    (tmp_path / "README").touch()
    result = command("validate", "--allow-empty", str(tmp_path))
    assert result.err == (
        "0 objects checked, 0 errors, 0 warnings (passed over: 1 hidden file)\n"
        if hidden
        else "1 object checked, 0 errors, 0 warnings\n"
    )
    file.unlink()
    os.removedirs(folder)  # pytest cannot remove it


@pytest.mark.parametrize("form", ["text", "json", "sarif", "github", "junit"])
def test_the_name_of_a_file_may_have_any_bytes(command: Command, tmp_path: Path, form: str) -> None:
    file = Path(command.file("a.yaml", service({"replicas": "a"})))
    file.rename(tmp_path / os.fsdecode(b"a\xff.yaml"))
    result = command("validate", "--output", form, str(tmp_path))
    assert result.status == 1
    assert "a\ufffd.yaml" in result.out


def test_a_file_without_end_is_refused(command: Command) -> None:
    assert "must not be larger than 32 MiB" in command("validate", "/dev/zero").out


EVIL = "a\x1b[2J\x1b]0;pwn\a\n::error file=x::pwned%0A\r]]>&<script>\0\u202e\u009b31m\n---\nkind: EVIL\n#"
PRINTABLE = "::error::a\n  ::error file=x::pwned\n##[error]x ##vso[task.setvariable]y\n"
FORMS = [
    *(["validate", "--output", form] for form in ("text", "json", "sarif", "github", "junit")),
    *([name] for name in ("render", "explain", "fit")),
    ["convert", "--to", "kserve"],
    *(["render", "--status"], ["render", "--output", "json"], ["explain", "--output", "json"]),
]


@pytest.mark.parametrize("form", [*FORMS, ["convert", "--to", "llmkube"]], ids=" ".join)
@pytest.mark.parametrize("evil", [EVIL, PRINTABLE], ids=["unprintable", "printable"])
def test_no_name_controls_a_terminal_or_adds_a_line(command: Command, form: list[str], evil: str) -> None:
    documents = [
        model(),
        service({"env": [{"name": "A", "value": evil}], "extraArgs": [evil], "nodeSelector": {evil: evil}}),
        model(evil),
        model(spec={"source": "https://models.example.com/m.gguf", evil: 1}),
        service({evil: 1, "modelRef": evil, "image": evil}),
        service(metadata={"name": "t", "namespace": evil, "labels": {evil: evil}}),
        {"apiVersion": evil, "kind": evil},
        {"apiVersion": "inference.llmkube.dev/v1alpha1", "kind": evil},
    ]
    result = command(*form, command.file("all.yaml", *documents))
    printed = result.out + result.err
    assert printed
    assert printed.replace("\n", "").isprintable()
    assert not re.search(
        r"^\s*::error (?!file=\S+all.yaml)|^\s*::error::|^kind: EVIL|##(vso)?\[", printed, re.MULTILINE
    )
    if form[-1] == "junit":
        ET.fromstring(result.out)  # noqa: S314 - our own output
    if form[-1] in ("json", "sarif"):
        assert orjson.loads(result.out)


@pytest.mark.parametrize("arguments", [["man"], ["schema", "Model"], ["convert", "--to"]], ids=" ".join)
def test_an_argument_is_one_line(command: Command, arguments: list[str]) -> None:
    printed = command(*arguments, EVIL).err
    assert EVIL.partition("\x1b")[0] in printed
    assert printed.replace("\n", "").isprintable()
    assert "\n::" not in printed


def test_the_name_of_a_file_is_one_line(command: Command) -> None:
    result = command("validate", command.file("a\x1b[31m\n::error::x.yaml", service({"replicas": "a"})))
    assert len(result.out.splitlines()) == 1
    assert result.out.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain — ä", "plain — ä"),
        ("a\nb\x1b\u202e", "a\\nb\\u001b\\u202e"),
        (" ::error::x", " \\u003a:error::x"),
        ("a ##[error]", "a #\\u0023[error]"),
        ("a::b", "a::b"),
    ],
)
def test_control_characters_are_escaped_in_lines(text: str, expected: str) -> None:
    assert escaped(text) == expected


@pytest.mark.parametrize("evil", [EVIL, PRINTABLE, "\U000e0001", "word " * 40 + "::error::x"])
def test_json_and_yaml_keep_their_values(evil: str) -> None:
    document = {evil: [evil, {"a": "ä"}]}
    for text, decode in ((as_json(document), orjson.loads), (dump(document), yaml.safe_load)):
        assert decode(text) == document
        assert text.replace("\n", "").isprintable()


def test_a_noun_has_the_number_of_its_count() -> None:
    assert [counted(number, "error") for number in (0, 1, 2)] == ["0 errors", "1 error", "2 errors"]
    assert counted(2, "kustomize patch") == "2 kustomize patches"


WORKLOADS = [
    ("apps/v1", "Deployment"),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
    ("gateway.networking.k8s.io/v1", "HTTPRoute"),
    ("inference.networking.k8s.io/v1", "InferencePool"),
]
SPECS: list[Any] = [None, {}, [], "x", {"replicas": "x"}, {"template": None}, {"template": {"metadata": None}}]
SPECS += [{"template": {"metadata": {"labels": []}}}, {"parentRefs": "x"}, {"replicas": 10**9, "template": {}}]


@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize(("api_version", "kind"), WORKLOADS)
def test_renders_beside_a_workload_that_is_partial(command: Command, api_version: str, kind: str, spec: Any) -> None:
    """A kustomize patch of a Deployment has no pod template and is not a complete object."""
    other = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "other"}, "spec": spec}
    assert command("render", command.file("all.yaml", model(), service(), other)).status == 0

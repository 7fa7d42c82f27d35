"""Scripts are read as a shell runs them, and what only the running script knows is not guessed."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from app.kube.field import SPEC
from app.kube.field import Path as FieldPath
from app.limits import MAX_SHELL_CHARACTERS, MAX_SHELL_DEPTH
from app.workload.engines.commandline import command_line, script_line
from app.workload.engines.parse import number_of
from app.workload.engines.shell import ScriptError, commands

VARIABLES = {"MODEL": "org/m", "MORE": "--seed 1\t--api-key  'a b'", "EMPTY": "", "ENDS": " e "}
ARGUMENTS = ("first", "two words", "*", "")
SCRIPTS = {
    "one command": "vllm serve m --max-model-len 32k",
    "continued": "exec vllm serve \"$MODEL\" \\\n  --seed 1 \\\n  --port '8000'",
    "behind others": "set -e; cd / && echo a | cat >/dev/null; exec vllm serve m",
    "assigned": 'export A=1 B="two words"\nC=$A$B; vllm serve "$C" $B ${A}x --a="$B"',
    "divided": "vllm serve $MODEL $MORE end $EMPTY \"$EMPTY\" '' x$EMPTY",
    "arguments": 'vllm serve "$@" --port 1',
    "arguments within a word": 'vllm serve --x="$@" end',
    "arguments divided": "set -f; vllm serve $@ $*",
    "all arguments as one": 'vllm serve "$*" $2 "$1"',
    "other arguments": 'set -- --port 1 "$@"; vllm serve "$@"',
    "no arguments": 'set --; vllm serve "$@" end',
    "quotes": """vllm serve 'a"b' "a'b" a\\ b "\\$MODEL" "\\n" 'it'\\''s' --x='{"a": [1, 2]}'""",
    "JSON without quotes": 'vllm serve --x {"a":1}',
    "comments": "# vllm serve no\nvllm serve m # more\n# 'no end",
    "a number sign in a word": "vllm serve m#1 --x=#2",
    "redirections": "vllm serve m 2>&1 </dev/null --port 1 2>/dev/null 3>>/dev/null",
    "a document": "cat >/dev/null <<'END'\nit's \"$(\nEND\nvllm serve m",
    "a document with tabs": "cat >/dev/null <<-'END'\n\tx\n\tEND\nvllm serve m",
    "a setting of one command": "A=1 vllm serve m",
    "blanks": "\n\n  vllm \t serve   m\n\n",
    "a subshell": "(cd /; vllm serve m)",
    "a blank in front of the end of a document": "cat >/dev/null <<'END'\n END\nit's\nEND\nvllm serve m",
    "a word that becomes nothing": "$EMPTY\n$EMPTY vllm serve m; $EMPTY",
    "behind a condition": 'if true; then true; else true; fi; L=1; vllm serve "$L"',
    "behind a subshell": '(cd /; true); L=1; vllm serve "$L"',
    "braces": "{ vllm serve m; }",
    "a condition": 'if [ -n "$MODEL" ]; then vllm serve "$MODEL"; else echo no >/dev/null; fi',
    "nice": "nice -n 5 vllm serve m",
    "env": "exec env A=1 vllm serve m --port 1",
    "blanks at the ends of a value": "vllm serve a$ENDS'b' \"$ENDS\" $ENDS$ENDS",
    "a word of two lines": "vllm serve --max-model-\\\nlen 8 a\\\n\\\n b",
    "a number sign behind a blank of the word": "vllm serve a\\ #b",
    "an argument that is empty at the end": 'set -f; vllm serve $@x "$@"x',
    "a shell in a shell": "exec sh -c 'vllm serve \"$0\" \"$1\"' m '--a b'",
}
PRINTS = '#!/bin/sh\nfor word in "$@"; do printf "%s\\037" "$word"; done\n'


def container(script: str, *arguments: str) -> dict[str, Any]:
    env = [{"name": name, "value": value} for name, value in VARIABLES.items()]
    return {"name": "main", "command": ["sh", "-c", script, "name", *arguments], "env": env}


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_words_are_those_that_the_shell_gives(script: str, shell: str, tmp_path: Path) -> None:
    program = tmp_path / "vllm"
    program.write_text(PRINTS, encoding="utf-8")
    program.chmod(0o755)
    env = {**VARIABLES, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    run = subprocess.run(
        [shell, "-c", script, "name", *ARGUMENTS], env=env, capture_output=True, text=True, check=True, timeout=60
    )
    line = command_line(container(script, *ARGUMENTS), SPEC)
    assert line.engine is not None
    assert [*line.words[-len(line.arguments) - 1 :]] == run.stdout.split("\x1f")[:-1]
    assert not line.is_open


@pytest.mark.parametrize(
    ("script", "words", "is_open"),
    [
        ("vllm serve $UNSET --port 1", ["$(UNSET)", "--port", "1"], True),
        ('vllm serve "$UNSET"', ["$(UNSET)"], False),
        ("vllm serve --port=${PORT:-8000}", ["--port=$(PORT)"], False),
        ("vllm serve --port $(cat /port | head -1) `date`", ["--port", "$(cat)", "$(output)"], True),
        ('A=(--x "b c"); A+=(d); vllm serve "${A[@]}"', ["$(A)"], True),
        ("if true; then L=1; else L=2; fi; vllm serve --l $L", ["--l", "$(L)"], True),
        ("false || L=1; vllm serve --l $L", ["--l", "$(L)"], True),
        ("L=1; read L; vllm serve --l $L", ["--l", "$(L)"], True),
        ("unset MODEL; vllm serve --l $MODEL", ["--l", "$(MODEL)"], True),
        ("(cd /; L=1); vllm serve --l $L", ["--l", "$(L)"], True),
        ('for i in 1 2; do vllm serve --l "$i"; done', ["--l", "$(i)"], False),
        ('start() { vllm serve "$@"; }; start m', ["$(output)"], True),
        ("MODEL=$(cat /m); vllm serve $MODEL", ["$(MODEL)"], True),
        ('vllm serve "$(cat /m)"', ["$(cat)"], False),
        ("vllm serve `date`x", ["$(output)x"], True),
        ("vllm serve at$UNSET", ["at$(UNSET)"], False),
        ("L=1; L+=2; vllm serve --l $L", ["--l", "$(L)"], True),
        ("vllm serve --l=$(( 4 * 1024 ))", ["--l=$(output)"], False),
        ("shift; vllm serve $1", ["$(output)"], True),
        ("source /etc/profile; vllm serve $MODEL", ["$(MODEL)"], True),
        (". /etc/profile; vllm serve $MODEL", ["$(MODEL)"], True),
        ('eval "$(cat /env)"; vllm serve $MODEL', ["$(MODEL)"], True),
    ],
)
def test_what_only_the_running_script_knows_is_open(script: str, words: list[str], is_open: bool) -> None:
    line = command_line(container(script), SPEC)
    assert [*line.arguments] == words
    assert line.is_open is is_open


ONE_OF = {
    "else": "if [ -d /m ]; then exec vllm serve /m --port 1 --seed 2; else exec vllm serve org/m --port 1 --seed 3; fi",
    "elif": "if a; then vllm serve /m --port 1 --seed 2; elif b; then vllm serve x --port=1 --seed 4; fi",
    "case": 'case "$S" in\n a|b) vllm serve /m --port 1 --seed 2 ;;\n (c) vllm serve org/m --port 1 --seed 3;;\n esac',
    "exec": "[ -d /m ] && exec vllm serve /m --port 1 --seed 2\nexec vllm serve org/m --port 1 --seed 3",
    "a shell": "if a; then sh -c 'exec vllm serve /m --port 1 --seed 2'; else vllm serve org/m --port 1 --seed 3; fi",
    "one inside": "if a; then if b; then vllm serve /m --port 1 --seed 2; fi; else vllm serve m --port 1 --seed 3; fi",
}


@pytest.mark.parametrize("script", ONE_OF.values(), ids=ONE_OF.keys())
def test_of_several_branches_what_all_have_is_known(script: str) -> None:
    line = command_line(container(script), SPEC)
    assert line.engine is not None
    assert [*line.arguments] in (["--port", "1"], ["--port=1"])
    assert line.is_open
    assert [branch.parsed.value("--port") for branch in line.branches] == ["1", "1"]
    assert line.branches[0].parsed.value("--seed") == "2"


def test_what_branches_have_in_common_is_judged_as_one_line() -> None:
    """Words, options and variables of the same values, whatever their order, in the words of the first branch."""
    script = (
        "if a; then A=1 B=x exec vllm serve m --port 1 --seed 2 --dtype auto -cc.mode 3; "
        "else A=2 B=x exec vllm serve m -cc.mode 3 --dtype auto --seed 3 --port 1; fi"
    )
    line = command_line(container(script), SPEC)
    assert [*line.arguments] == ["m", "--port", "1", "--dtype", "auto", "-cc.mode", "3"]
    assert [*line.words] == ["exec", "vllm", "serve", *line.arguments]
    assert [str(where) for where, _ in line.each()] == ["spec.command[2]"] * 7
    assert dict(line.variables) == {**VARIABLES, "A": "$(A)", "B": "x"}
    assert dict(command_line({"command": ["sh", "-c", script]}, SPEC).variables) == {"A": "$(A)", "B": "x"}


def test_branches_that_agree_are_one_line() -> None:
    line = command_line(container("if a; then exec vllm serve m --port 1; else exec vllm serve m --port 1; fi"), SPEC)
    assert [*line.arguments] == ["m", "--port", "1"]
    assert not line.is_open
    assert not line.branches


@pytest.mark.parametrize(
    "script",
    [
        "vllm serve a & vllm serve b & wait",
        "if a; then vllm serve a; fi; vllm serve b",
        "(exec vllm serve a); vllm serve b",
        "exec vllm serve a & vllm serve b",
        "if a; then vllm serve a; else llama-server; fi",
        "case $A in a) vllm serve a;; esac; case $A in b) ;; a) vllm serve b;; esac",
        "for i in 1 2; do vllm serve a; vllm serve b; done",
    ],
)
def test_several_servers_are_no_command_line(script: str) -> None:
    """They may run beside each other, or are of several engines."""
    assert script_line(container(script), SPEC) is None


@pytest.mark.parametrize(
    ("script", "variables"),
    [
        ("export LLAMA_ARG_PORT=1; llama-server", {"LLAMA_ARG_PORT": "1"}),
        ('LLAMA_ARG_PORT=1; export LLAMA_ARG_PORT; exec llama-server "$@"', {"LLAMA_ARG_PORT": "1"}),
        ("declare -x LLAMA_ARG_PORT=1; llama-server", {"LLAMA_ARG_PORT": "1"}),
        ("LLAMA_ARG_PORT=1 llama-server", {"LLAMA_ARG_PORT": "1"}),
        ("exec env LLAMA_ARG_PORT=1 llama-server", {"LLAMA_ARG_PORT": "1"}),
        ("export LLAMA_ARG_PORT=1; sh -c llama-server", {"LLAMA_ARG_PORT": "1"}),
        ("MODEL=other; llama-server", {"MODEL": "other"}),
        ("LLAMA_ARG_PORT=1; llama-server", {}),
        ("llama-server; export LLAMA_ARG_PORT=1", {}),
        ("if a; then export LLAMA_ARG_PORT=1; fi; llama-server", {"LLAMA_ARG_PORT": "$(LLAMA_ARG_PORT)"}),
        ("export LLAMA_ARG_PORT=$(cat /port); llama-server", {"LLAMA_ARG_PORT": "$(LLAMA_ARG_PORT)"}),
        ("A=1; export A+=2; llama-server", {"A": "$(A)"}),
        (
            "if a; then export LLAMA_ARG_PORT=1; llama-server; else LLAMA_ARG_PORT=2 llama-server; fi",
            {"LLAMA_ARG_PORT": "$(LLAMA_ARG_PORT)"},
        ),
    ],
)
def test_variables_that_a_script_sets_reach_the_program(script: str, variables: dict[str, str]) -> None:
    line = command_line(container(script), SPEC)
    assert line.engine is not None
    given = {name: value for name, value in line.variables if name}
    assert given == {**VARIABLES, **variables}


def test_a_variable_of_a_script_has_the_place_of_the_script() -> None:
    written = container("export MODEL=x; export LLAMA_ARG_CTX_SIZE=abc; exec llama-server -m /m")
    line = command_line({**written, "image": "ghcr.io/ggml-org/llama.cpp:server-v0.7.0"}, SPEC)
    (problem,) = line.parsed.problems
    assert problem.name == "LLAMA_ARG_CTX_SIZE"
    assert str(line.place(problem.at)) == "spec.command[2]"
    assert str(line.place(-2)) == "spec.env[1].value"


def test_variables_of_another_container_have_their_place_beside_those_of_the_script() -> None:
    line = command_line(container("export LLAMA_ARG_PORT=1; exec llama-server -c 1"), SPEC)
    env = [{"name": "LLAMA_ARG_CTX_SIZE", "value": "2"}, {"name": "LLAMA_ARG_JINJA", "value": "true"}]
    beside = line.beside(line.arguments, env, SPEC.child("envs"))
    assert [*beside.variables] == [("", ""), ("LLAMA_ARG_JINJA", "true"), ("LLAMA_ARG_PORT", "1")]
    places = [str(beside.place(at)) for at in (-1, -2, -3)]
    assert places == ["spec.envs[0].value", "spec.envs[1].value", "spec.command[2]"]


def test_the_kubelet_replaces_references_before_the_shell_reads() -> None:
    line = command_line(container("vllm serve $(MODEL) $(MORE) $$MODEL $(NONE)"), SPEC)
    assert [*line.arguments] == ["org/m", "--seed", "1", "--api-key", "a b", "org/m", "$(NONE)"]
    secret = {"name": "LEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    hidden = {"command": ["sh", "-c", 'vllm serve --max-model-len "$LEN"'], "env": [secret]}
    line = command_line(hidden, SPEC)
    assert number_of(line.parsed, "--max-model-len") is None
    assert not line.parsed.problems


@pytest.mark.parametrize(
    "command",
    [
        ["sh", "-c", "echo vllm serve m"],
        ["sh", "-c", "pip install vllm; python server.py"],
        ["sh", "-c", "vllm serve a || vllm serve b"],
        ["sh", "-c", "vllm serve 'a"],
        ["sh", "-c", 'vllm serve "a'],
        ["sh", "-c", "vllm serve $(cat"],
        ["sh", "-c", "cat <<END\nvllm serve m"],
        ["sh", "-c", 'eval "vllm serve $0"'],
        ["sh", "-c"],
        ["sh", "start.sh"],
        ["vllm", "serve", "-c", "x"],
        [],
    ],
)
def test_other_scripts_are_no_command_line(command: list[str]) -> None:
    assert script_line({"command": command}, SPEC) is None


@pytest.mark.parametrize(("shells", "is_read"), [(3, True), (4, False)])
def test_shells_in_shells_are_read_to_a_depth(shells: int, is_read: bool) -> None:
    script = "vllm serve m"
    for _ in range(shells - 1):
        script = f"sh -c {shlex.quote(script)}"
    assert (script_line({"command": ["sh", "-c", script]}, SPEC) is not None) is is_read


def test_words_are_told_of_where_they_are_written() -> None:
    written = {
        "image": "vllm/vllm-openai:v0.20.0",
        "command": ["/bin/bash", "-ec"],
        "args": ['exec python3 -u -m vllm.entrypoints.openai.api_server --port 1 "$@"', "--", "--seed", "x"],
    }
    line = command_line(written, SPEC)
    assert line.engine is not None
    assert line.engine.version == "0.20.0"
    args: FieldPath = SPEC.child("args")
    assert [(where.segments, word) for where, word in line.each()] == [
        (args.index(0).segments, "--port"),
        (args.index(0).segments, "1"),
        (args.index(2).segments, "--seed"),
        (args.index(3).segments, "x"),
    ]


DOUBLES = "A=aaaaaaaa;" + "A=$A$A;" * 200 + "vllm serve $A"
LONG = "x" * 1_000_000
HOSTILE: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "long": ("true;" * 10_000, "", ()),
    "doubling": (DOUBLES, "", ()),
    "repeated variable": ("vllm serve" + " $A" * 5_000, LONG, ()),
    "repeated reference": ("vllm serve" + " $(A)" * 3_000, LONG, ()),
    "repeated arguments": ("vllm serve" + ' "$@"' * 3_000, "", ("name", *("a" for _ in range(100_000)))),
}


@pytest.mark.parametrize("case", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_becomes_too_long_is_not_read(case: tuple[str, str, tuple[str, ...]]) -> None:
    script, value, arguments = case
    with pytest.raises(ScriptError):
        commands(script, (("A", value),), arguments)


def test_what_is_as_long_as_allowed_is_read() -> None:
    """References that are not replaced add nothing to a script, and a word counts one character more than it has."""
    references = "# " + "$(NONE)" * (MAX_SHELL_CHARACTERS // len("$(NONE)") - 1)
    assert commands(f"{references}\nvllm", (), ())[-1].words == ("vllm",)
    longest = "x" * (4 * MAX_SHELL_CHARACTERS - len(("word", "quotes")))
    assert commands('"$A"', (("A", longest),), ())[0].words == (longest,)
    with pytest.raises(ScriptError):
        commands('"$A"', (("A", f"{longest}x"),), ())


@pytest.mark.parametrize(("opening", "closing"), [("(", ")"), ("if true; then ", "; fi")])
def test_a_script_is_read_as_deep_as_is_allowed(opening: str, closing: str) -> None:
    def nested(depth: int) -> str:
        return f"{opening * depth}vllm serve m{closing * depth}"

    assert ("vllm", "serve", "m") in [command.words for command in commands(nested(MAX_SHELL_DEPTH), (), ())]
    with pytest.raises(ScriptError):
        commands(nested(MAX_SHELL_DEPTH + 1), (), ())


@pytest.mark.parametrize(
    "piece", ["{{", "${", "$(", "`", "'", '"', "1", "a'b'", '"$@$@"', "<<a\n", "(", "((", "\\", "$A "]
)
def test_a_script_of_strange_pieces_is_read_at_once(piece: str) -> None:
    """It takes a tenth of the second that a busy machine has."""
    script = piece * (MAX_SHELL_CHARACTERS // len(piece))
    arguments = ("name", *("b" for _ in range(13)))
    started = time.process_time()
    with contextlib.suppress(ScriptError):
        commands(script, (("A", "value"),), arguments)
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    ("script", "strays"),
    [
        ('vllm serve "$MODEL" "$UNSET"', []),
        ('vllm serve m "${UNSET:+--seed}" x', []),
        ('vllm serve "$UNSET" stray', ["stray"]),
        ('python3 -m sglang.launch_server --model-path "$UNSET" stray', ["stray"]),
        ('python3 -m sglang.launch_server --model-path m "$UNSET"', []),
    ],
)
def test_a_word_that_may_be_an_option_is_no_stray_one(script: str, strays: list[str]) -> None:
    assert [problem.name for problem in command_line(container(script), SPEC).parsed.problems] == strays

"""Command lines are read as the engines' own parsers read them.

``tests/engines/corpus`` has what the parsers said of each line (``make engines-check``).
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from app.workload.engines.engine import Engine
from app.workload.engines.grammar import RELEASES, Release
from app.workload.engines.parse import fraction_of, number_of, read
from tools.enginescheck import ends_here

CORPUS = sorted(Path("tests/engines/corpus").glob("*.json"))
FEWEST_PREDICTED = 0.98


def release(name: str) -> Release:
    return next(candidate for candidate in RELEASES if f"{candidate.engine}-{candidate.version}" == name)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_the_parsers_agree(path: Path) -> None:
    """No line is called ending that its engine accepts, and of those that end it, hardly any is missed."""
    there, rows = release(path.stem), json.loads(path.read_text(encoding="utf-8"))
    alarms = [shlex.join(row["line"]) for row in rows if not row["ends"] and ends_here(there, row["line"])]
    assert alarms == []
    ending = [row for row in rows if row["ends"]]
    missed = [f"{shlex.join(row['line'])}: {row['ends']}" for row in ending if not ends_here(there, row["line"])]
    assert len(missed) <= (1 - FEWEST_PREDICTED) * len(ending), missed


def test_the_corpus_is_large() -> None:
    assert sum(len(json.loads(path.read_text(encoding="utf-8"))) for path in CORPUS) > 1000


TGI = [
    ("--max-total-tokens 4096 --max-total-tokens 8192", True),
    ("--max_total_tokens 4096", True),
    ("--json-output true", True),
    ("--max-total 4096", True),
    ("--max-total-tokens 4k", True),
    ("--quantize GPTQ", True),
    ("-p 8080 --port 80", True),
    ("-p8080 --json-output", False),
    ("-p 8080 --prometheus-port 9090", False),
    ("--cuda-graphs 1 --cuda-graphs 2", False),
    ("--graceful-termination-timeout 9.5", True),
    ("--max-total-tokens=4096 --sharded true --quantize gptq", False),
]


@pytest.mark.parametrize(("line", "ends"), TGI)
def test_reads_as_clap_does(line: str, ends: bool) -> None:
    assert read(release("tgi-3.3.7"), line.split(), positionals=0).ends is ends


NUMBERS = [
    ("vllm", "--max_model_len=32K", 32768),
    ("vllm", "--max-model-l 1.5k", 1500),
    ("vllm", "--max-model-len auto", None),
    ("sglang", "--context-length 32Ki", 32768),
    ("sglang", "--context-length 32k", 32000),
    ("llamacpp", "-c 32k", 32),
    ("llamacpp", "--ctx_size 4096", 4096),
    ("vllm", "--max-model-len 4096 --max-model-len 8_192", 8192),
]


@pytest.mark.parametrize(("engine", "line", "number"), NUMBERS)
def test_reads_numbers_of_any_form(engine: str, line: str, number: int | None) -> None:
    assert number_of(Engine(engine).read(line.split()), "--max-model-len", "--context-length", "--ctx-size") == number


def test_one_word_at_most_is_the_value_of_an_option_that_may_have_one() -> None:
    """The word behind it is the model."""
    parsed = read(release("vllm-0.33.0"), ["--hf-token", "hf_a", "org/chat"])
    assert (parsed.value("--hf-token"), parsed.strays) == ("hf_a", [2])


def test_all_words_behind_two_dashes_belong_to_no_option() -> None:
    assert read(release("vllm-0.33.0"), ["--seed", "1", "--", "a", "--port"]).strays == [3, 4]
    assert read(release("vllm-0.33.0"), ["--seed", "1", "--"]).strays == []


VARIABLES = [
    ("llamacpp-0.7.0", "", [("LLAMA_ARG_CTX_SIZE", "8192")], 8192, False),
    ("llamacpp-0.7.0", "-c 4096", [("LLAMA_ARG_CTX_SIZE", "8192")], 4096, False),
    ("llamacpp-0.7.0", "-c 4096", [("LLAMA_ARG_CTX_SIZE", "x")], 4096, True),
    ("llamacpp-0.7.0", "", [("LLAMA_ARG_JINJA", "maybe")], None, True),
    ("llamacpp-0.7.0", "", [("LLAMA_ARG_ENDPOINT_METRICS", "maybe")], None, False),
    ("llamacpp-0.7.0", "", [("LLAMA_ARG_CTX_SIZE", "$(valueFrom)")], None, False),
    ("tgi-3.3.7", "", [("MAX_TOTAL_TOKENS", "4096")], 4096, False),
    ("tgi-3.3.7", "--max-total-tokens 8192", [("MAX_TOTAL_TOKENS", "4k")], 8192, False),
    ("tgi-3.3.7", "", [("MAX_TOTAL_TOKENS", "")], None, True),
    ("tgi-3.3.7", "", [("JSON_OUTPUT", "1")], None, True),
    ("vllm-0.33.0", "", [("MAX_MODEL_LEN", "4096")], None, False),
]


@pytest.mark.parametrize(("name", "line", "variables", "number", "ends"), VARIABLES)
def test_reads_environment_variables_as_the_engine_does(
    name: str, line: str, variables: list[tuple[str, str]], number: int | None, ends: bool
) -> None:
    parsed = read(release(name), line.split(), positionals=0, variables=variables)
    assert number_of(parsed, "--ctx-size", "--max-total-tokens") == number
    assert parsed.ends is ends


@pytest.mark.parametrize("value", ["1", "0", "", "true"])
def test_a_negative_variable_switches_off_whatever_its_value(value: str) -> None:
    """llama.cpp looks whether it is there."""
    there = release("llamacpp-0.7.0")
    variables = [("LLAMA_ARG_CONT_BATCHING", "1"), ("LLAMA_ARG_NO_CONT_BATCHING", value)]
    parsed = read(there, [], variables=variables)
    assert parsed.gives("--cont-batching")
    assert not parsed.has("--cont-batching")
    assert not parsed.problems
    assert read(there, ["-cb"], variables=variables).has("--cont-batching")


@pytest.mark.parametrize(("value", "is_on"), [("1", True), ("0", False), ("$(valueFrom)", True)])
def test_a_variable_switches_an_option_on_or_off(value: str, is_on: bool) -> None:
    parsed = read(release("llamacpp-0.7.0"), [], variables=[("LLAMA_ARG_JINJA", value)])
    assert parsed.has("--jinja") is is_on


@pytest.mark.parametrize(("value", "number"), [("0.9", 0.9), ("0", None), ("-1", None), ("inf", None), ("most", None)])
def test_a_fraction_is_more_than_nothing(value: str, number: float | None) -> None:
    (given,) = read(release("vllm-0.33.0"), ["--gpu-memory-utilization", value]).occurrences
    assert fraction_of(given) == number

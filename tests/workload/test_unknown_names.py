"""Names that refer to nothing: each costs a search for the one that was meant, so their number is bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from app.kserve.spec.pickerconfig import config_advice
from app.kube.field import Path
from app.limits import MAX_ARGUMENTS, MAX_UNKNOWN_NAMES
from app.workload.advice.lineadvice import argument_warnings, option_warnings, rejected
from app.workload.engines.commandline import CommandLine
from app.workload.engines.engine import engine_of
from app.workload.rules.volumes import mounted

PATH = Path("spec")


def options(names: list[str]) -> Iterator[object]:
    engine = engine_of("vllm/vllm-openai:v0.20.0")
    assert engine is not None
    return iter(option_warnings(CommandLine([f"--max-model-{name}" for name in names], PATH, engine)))


def mounts(names: list[str]) -> Iterator[object]:
    return iter(mounted([{"name": f"weights-{name}"} for name in names], PATH, {"weights"}))


def plugins(names: list[str]) -> Iterator[object]:
    references = [{"pluginRef": f"queue-scorer-{name}"} for name in names]
    config = {
        "kind": "EndpointPickerConfig",
        "plugins": [{"type": "queue-scorer"}],
        "schedulingProfiles": [{"name": "default", "plugins": references}],
    }
    return iter(config_advice(config, PATH))


def types(names: list[str]) -> Iterator[object]:
    config = {"kind": "EndpointPickerConfig", "plugins": [{"type": f"queue-scorer{name}x"} for name in names]}
    return iter(config_advice(config, PATH))


@pytest.mark.parametrize("answers", [options, mounts, plugins, types])
def test_the_search_for_similar_names_is_bounded(answers: Callable[[list[str]], Iterator[object]]) -> None:
    names = ["a" * (number % 3) for number in range(MAX_UNKNOWN_NAMES + 50)]
    assert 0 < len(list(answers(names))) <= MAX_UNKNOWN_NAMES


def test_so_is_the_number_of_arguments_that_are_compared() -> None:
    """Beginnings of options are known to an engine, and each is looked up among hundreds of options."""
    engine = engine_of("vllm/vllm-openai:v0.20.0")
    assert engine is not None
    arguments = ["--enforce"] * MAX_ARGUMENTS
    assert len(list(option_warnings(CommandLine([*arguments[1:], "--max-model-lne"], PATH, engine)))) == 1
    assert list(option_warnings(CommandLine([*arguments, "--max-model-lne"], PATH, engine))) == []
    assert len(list(rejected(CommandLine([*arguments[1:], "--max-model-lne"], PATH, engine)))) == 1
    assert list(rejected(CommandLine([*arguments, "--max-model-lne"], PATH, engine))) == []


def test_an_empty_argument_begins_with_no_dash() -> None:
    assert list(argument_warnings(PATH.each(["", "-", "--a"]))) == []
    assert len(list(argument_warnings(PATH.each(["\u2013a", "\u2014"])))) == 2

"""The recipes of docs/howto/recipes.md: no finding, no contradiction of ``fit``, and no loss in LLMKube."""

from __future__ import annotations

from pathlib import Path

import pytest

from app import cli
from app.desk.check import all_findings
from app.desk.cluster.offline import World
from app.desk.files.findings import Finding
from app.desk.files.manifests import ManifestFiles
from tools import recipes

RECIPES = {one["name"]: one for one in recipes.recipes()}
UNKNOWN = {"speech"}
"""Models whose size ``fit`` does not know; their notes say it."""


def findings(text: str) -> list[Finding]:
    reading = ManifestFiles()
    reading.add(text, "recipe.yaml", whole=True)
    return all_findings(reading, [], World())


def test_there_are_ten_models() -> None:
    assert len(RECIPES) == len(recipes.recipes()) == 10


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_has_no_finding(name: str) -> None:
    """So its options and their values are in the catalogue of the preset's vLLM."""
    assert findings(recipes.manifest(RECIPES[name])) == []


@pytest.mark.parametrize("name", [name for name, one in RECIPES.items() if one["args"]])
def test_an_option_that_vllm_lacks_would_be_a_finding(name: str) -> None:
    recipe = RECIPES[name]
    wrong = [argument.partition("=")[0].replace("--", "--no-such-") for argument in recipe["args"]]
    assert len(findings(recipes.manifest({**recipe, "args": wrong}))) >= len(wrong)


@pytest.mark.parametrize("name", [name for name, one in RECIPES.items() if "parser" in str(one["args"])])
def test_a_parser_that_vllm_lacks_would_be_a_finding(name: str) -> None:
    recipe = RECIPES[name]
    wrong = [f"{one.partition('=')[0]}=unheard" if "-parser=" in one else one for one in recipe["args"]]
    assert any("unheard" in str(found) for found in findings(recipes.manifest({**recipe, "args": wrong})))


@pytest.mark.parametrize("name", RECIPES)
def test_fit_knows_the_model_or_the_note_has_its_size(name: str) -> None:
    if name in UNKNOWN:
        assert recipes.fits(RECIPES[name]) == "cannot know"
        assert any(unit in RECIPES[name]["note"] for unit in ("GB", "parameters"))
    else:
        assert recipes.fits(RECIPES[name]).startswith("fits: ")


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_converted_to_llmkube_without_loss(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the page says; vLLM of LLMKube's default image has the options, too."""
    file = tmp_path / "recipe.yaml"
    file.write_text(recipes.manifest(RECIPES[name]))
    assert cli.main(["convert", "--to", "llmkube", str(file)]) == 0
    printed = capsys.readouterr()
    assert ", 0 lost" in printed.err
    assert findings(printed.out) == []

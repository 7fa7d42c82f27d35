"""The README's first model and the whole tutorial, command by command, with the output that the pages show."""

from __future__ import annotations

import pytest
import yaml

from tests.node import images
from tests.node.conftest import Upgrade
from tests.node.images import ROOT
from tests.node.pages import Reader
from tests.node.report import note, say
from tests.node.world import World

pytestmark = pytest.mark.node


def test_the_readme_leads_from_an_empty_node_to_an_answer(installed: World, upgrade: Upgrade, readme: Reader) -> None:
    """Without a previous release, the README's first block has installed this one."""
    readme.read()
    readme.close()  # the tutorial forwards the same port
    start = "an earlier release" if upgrade.pods else "an empty node"
    note(f"README.md: from {start} to an answered chat", readme.seconds)
    say(f"README.md: {readme.seconds:.0f} s from {start} to an answered chat")
    installed.cluster.kubectl("delete", "-f", ROOT / "examples/llmkube/quickstart.yaml")


def test_the_tutorial_serves_a_model_of_each_family(installed: World, shell: dict[str, str]) -> None:
    """KServe's example uses the test engine under the example's image name."""
    example = yaml.safe_load((ROOT / "examples/kserve/quickstart.yaml").read_text())
    (container,) = example["spec"]["template"]["containers"]
    installed.node.tag(images.ENGINE, container["image"])
    with Reader((ROOT / "docs/tutorial.md").read_text(), shell) as tutorial:
        tutorial.read()
    note("docs/tutorial.md: all of it", tutorial.seconds)

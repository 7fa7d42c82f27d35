"""What a release and its users execute is named by its content: actions, base image, Python packages."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = {path.name: yaml.safe_load(path.read_text()) for path in (ROOT / ".github" / "workflows").glob("*.yaml")}
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
COMMIT = re.compile(r"[\w./-]+@[0-9a-f]{40}")


def may_write(permissions: Any) -> bool:
    return permissions == "write-all" or (isinstance(permissions, dict) and "write" in permissions.values())


def used(steps: list[dict[str, Any]]) -> list[str]:
    return [step["uses"] for step in steps if not step.get("uses", "./").startswith("./")]


JOBS = {
    f"{name}, {job}": used(steps["steps"])
    for name, workflow in WORKFLOWS.items()
    for job, steps in workflow["jobs"].items()
    if may_write(steps.get("permissions", workflow.get("permissions", "write-all")))
}


def test_jobs_that_may_write_are_found() -> None:
    assert {"release.yaml, image", "release.yaml, chart", "release.yaml, notes"} <= set(JOBS)
    assert all(JOBS.values())


@pytest.mark.parametrize("actions", [*JOBS.values(), used(ACTION["runs"]["steps"])], ids=[*JOBS, "action.yml"])
def test_actions_of_others_are_commits(actions: list[str]) -> None:
    """A tag can be moved to other code, which would get the job's token."""
    assert [action for action in actions if not COMMIT.fullmatch(action)] == []


def test_a_release_has_the_base_of_the_dockerfile_by_its_digest() -> None:
    (build,) = (step for step in WORKFLOWS["release.yaml"]["jobs"]["image"]["steps"] if step.get("id") == "build")
    (base,) = re.findall(r"^ARG PYTHON_IMAGE=(\S+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert re.fullmatch(rf"PYTHON_IMAGE={re.escape(base)}@sha256:[0-9a-f]{{64}}", build["with"]["build-args"].strip())


def test_users_install_the_hashed_lists() -> None:
    """The package itself is built without a download, by the setuptools of the list."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["language"] == "script"  # pre-commit would install what the index has
    for text in ((ROOT / hook["entry"]).read_text(), "".join(step.get("run", "") for step in ACTION["runs"]["steps"])):
        assert re.search(r"build\W.*runtime\W", text)
        assert text.count("--no-build-isolation") == text.count("--require-hashes") == 1


def test_the_hook_can_be_executed() -> None:
    assert (ROOT / "tools" / "pre_commit.py").stat().st_mode & 0o111

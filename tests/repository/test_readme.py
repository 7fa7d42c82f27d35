"""Commands in the README and the docs: each exists and names existing files. CI runs those of the README."""

import json
import re
import shlex
import subprocess
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml
from prometheus_client import Counter
from prometheus_client.metrics import MetricWrapperBase

from app import cli
from app.families import DECORATORS, RESOURCES
from app.kube.resource import ChildKind, CustomResource
from app.server import metrics

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / "README.md", ROOT / "CONTRIBUTING.md"),
    *(
        page
        for folder in ("app", "decisions", "docs", "tests")
        for page in sorted((ROOT / folder).rglob("*.md"))
        if "node_modules" not in page.parts
    ),
]
LOCAL = re.compile(r"^(manifests|examples|crds|metacontroller|decisions|docs|tests)(/|$)")


def commands(page: Path) -> Iterator[str]:
    """Yield the commands of a page's ``sh`` blocks."""
    for block in re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        yield from block_commands(block)


def block_commands(block: str) -> Iterator[str]:
    """Yield the commands of a block, one per line; an open quote continues on the next line."""
    pending = ""
    for line in block.splitlines():
        pending = f"{pending}\n{line}" if pending else line
        if pending.count("'") % 2 == 0:
            if pending.strip() and not pending.startswith("#"):
                yield pending
            pending = ""
    assert not pending, f"an open quote in {block}"


SHARED_NAMES = {"inferenceservice", "inferenceservices", "model", "models"}
"""Names of our kinds that other projects' kinds have too."""
AMBIGUOUS = SHARED_NAMES | {name for resource in RESOURCES for name in resource.short_names}


@pytest.mark.parametrize("page", [*PAGES, *sorted((ROOT / "examples").rglob("*.yaml"))], ids=lambda page: page.name)
def test_kubectl_commands_name_resources_without_ambiguity(page: Path) -> None:
    """Short names and shared plurals may mean another project's kind (decision 10)."""
    for command in re.findall(r"kubectl ([^`\n|]*)", page.read_text()):
        resources = {part.partition("/")[0] for word in command.split() for part in word.split(",")}
        assert not resources & AMBIGUOUS, command


ALL = [(page, command) for page in PAGES for command in commands(page)]


@pytest.mark.parametrize(("page", "command"), ALL, ids=lambda v: v.name if isinstance(v, Path) else v[:60])
def test_a_documented_command_is_one_that_works(page: Path, command: str) -> None:
    for words in _pipeline(command):
        program, *arguments = words
        CHECKS[Path(program).name](arguments)
        for argument in arguments:
            if LOCAL.match(argument):
                assert (ROOT / argument).exists(), f"{page.name}: {argument} does not exist"


def _pipeline(command: str) -> Iterator[list[str]]:
    words: list[str] = []
    for word in shlex.split(command):
        if word in ("|", "&&"):
            yield words
            words = []
        else:
            words.append(word)
    yield words


def _make(targets: list[str]) -> None:
    documented = set(re.findall(r"^([a-z0-9-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert targets
    assert set(targets) <= documented


def _mkdir(arguments: list[str]) -> None:
    """The folder may be there already, and those above it may not."""
    assert arguments[0] == "-p"
    assert arguments[1:]


def _modelhooks(arguments: list[str]) -> None:
    assert cli.main([*arguments, "--help"]) == 0


KUBECTL = {
    *(
        "annotate",
        "apply",
        "config",
        "create",
        "delete",
        "diff",
        "get",
        "label",
        "logs",
        "patch",
        "port-forward",
        "replace",
        "rollout",
        "scale",
    ),
    "wait",
}


def _kubectl(arguments: list[str]) -> None:
    """Check that the verb is one of kubectl's."""
    verb = next(a for i, a in enumerate(arguments) if not a.startswith("-") and not _is_value(arguments, i))
    assert verb in KUBECTL


def _is_value(arguments: list[str], index: int) -> bool:
    return index > 0 and arguments[index - 1] in ("--namespace", "-n")


def _helm(arguments: list[str]) -> None:
    """Check the verb and the release's name; ``tests/e2e/test_chart.py`` runs the commands."""
    assert arguments[0] in {"install", "upgrade", "rollback", "uninstall"}
    assert arguments[1] == "modelhooks"


def _docker(arguments: list[str]) -> None:
    """Check that the image is the one in the manifests, built from this tree."""
    deployment = yaml.safe_load((ROOT / "manifests/base/deployment.yaml").read_text())
    image = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    assert arguments == ["build", "-t", image, "."]


def _kind(arguments: list[str]) -> None:
    """Check that a cluster is created or deleted, or gets the built image."""
    assert arguments[-2:] == ["--name", "models"]
    if arguments[0] == "load":
        _docker(["build", "-t", arguments[2], "."])
    else:
        assert arguments[:2] in (["create", "cluster"], ["delete", "cluster"])


def _sed(arguments: list[str]) -> None:
    """Check that the policy that is exchanged is that of the webhooks."""
    (script,) = arguments
    assert script == "s/failurePolicy: Fail/failurePolicy: Ignore/"
    assert "failurePolicy: Fail\n" in (ROOT / "manifests/base/webhooks.yaml").read_text()


def _curl(arguments: list[str]) -> None:
    """Check that it is a chat request to an OpenAI-compatible server behind a forwarded port."""
    *options, address, flag, body = arguments
    # The port may be forwarded a moment later.
    assert options == ["-sS", "--retry", "5", "--retry-connrefused"]
    assert re.fullmatch(r"http://localhost:808\d/v1/chat/completions", address)
    assert flag == "--json"
    assert json.loads(body)["messages"][0]["role"] == "user"


CHECKS = {
    "curl": _curl,
    "docker": _docker,
    "helm": _helm,
    "kind": _kind,
    "kubectl": _kubectl,
    "make": _make,
    "mkdir": _mkdir,
    "modelhooks": _modelhooks,
    "sed": _sed,
}


def test_the_readmes_make_targets_run_in_ci() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    targets = re.findall(r"`?\bmake ([a-z]+)\b", (ROOT / "README.md").read_text())
    assert {"demo", "test", "studio"} <= {*targets}
    assert {"demo", "test", "studio"} <= set(" ".join(re.findall(r"^make (.+)", script, re.MULTILINE)).split())


def test_the_readmes_manifest_is_the_example_that_it_applies() -> None:
    readme = (ROOT / "README.md").read_text()
    example = (ROOT / "examples/llmkube/quickstart.yaml").read_text()
    assert "kubectl apply -f examples/llmkube/quickstart.yaml" in readme
    _, _, manifest = example.partition("\n")
    assert f"```yaml\n{manifest}```" in readme


@pytest.mark.parametrize("page", ["README.md", "docs/howto/ci.md"])
def test_the_actions_inputs_are_those_of_the_action(page: str) -> None:
    inputs = yaml.safe_load((ROOT / "action.yml").read_text())["inputs"]
    blocks = re.findall(r"^```yaml\n(- uses: .*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    steps = [step for block in blocks for step in yaml.safe_load(block)]
    (step,) = (step for step in steps if step.get("uses", "").startswith("modelhooks/modelhooks@"))
    assert step["with"].keys() <= inputs.keys()


def test_metacontrollers_manifests_have_the_documented_release_and_flags() -> None:
    """``docs/install.md`` has the oldest supported release."""
    overlay = yaml.safe_load((ROOT / "manifests/metacontroller/kustomization.yaml").read_text())
    install = (ROOT / "docs/install.md").read_text()
    (patch,) = overlay["patches"]
    values = {change["path"].rpartition("/")[2]: change["value"] for change in yaml.safe_load(patch["patch"])}
    (flags,) = re.findall(r"^```\n(--client-go-qps.*)\n```", install, re.MULTILINE)
    assert set(flags.split()) <= set(values["args"])
    release = overlay["resources"][0].partition("?ref=v")[2]
    assert values["image"].endswith(f":v{release}")
    (oldest,) = re.findall(r"^\| Metacontroller \| \*\*([\d.]+) or newer", install, re.MULTILINE)
    assert [int(part) for part in release.split(".")] >= [int(part) for part in oldest.split(".")]


def test_every_how_to_page_is_two_clicks_from_the_readme() -> None:
    index = (ROOT / "docs/index.md").read_text()
    assert "](docs/index.md#how-to)" in (ROOT / "README.md").read_text()
    missing = [page.name for page in (ROOT / "docs/howto").glob("*.md") if f"](howto/{page.name})" not in index]
    assert missing == []


def test_every_example_is_linked_from_a_page() -> None:
    """Files of ``cluster`` and ``rejected`` are named in comments and in the demo."""
    examples = {path.relative_to(ROOT).as_posix() for path in (ROOT / "examples").glob("*/*.yaml")}
    linked = {
        match for page in PAGES for match in re.findall(r"\]\((?:\.\./)*(examples/\S+\.yaml)\)", page.read_text())
    }
    assert examples - linked == set()


@pytest.mark.parametrize(
    "page", [ROOT / "docs/kserve.md", *sorted((ROOT / "docs/howto").glob("*.md"))], ids=lambda page: page.stem
)
def test_a_how_to_page_answers_with_manifests_that_are_valid(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Linked examples and manifests in the page are valid with the settings that it names."""
    text = page.read_text()
    assert re.match(r"# How do I .*\?\n", text)
    manifests = {page.parent / link for link in re.findall(r"\]\((\S+\.yaml)\)", text) if "/examples/" in link}
    served = {version.api_version for resource in RESOURCES for version in (resource, *resource.older)}
    for number, block in enumerate(re.findall(r"^ *```yaml\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)):
        manifest = textwrap.dedent(block)
        if served & {*re.findall(r"^apiVersion: (.+)$", manifest, re.MULTILINE)}:
            manifests.add(tmp_path / f"{number}.yaml")
            (tmp_path / f"{number}.yaml").write_text(manifest)
    if manifests:
        monkeypatch.setenv("MODELHOOKS_LLMKUBE_ALLOWED_HOST_PATHS", "/var/lib/models")
        assert cli.main(["validate", *map(str, sorted(manifests))]) == 0, capsys.readouterr()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_yaml_of_a_page_can_be_read(page: Path) -> None:
    """An address with ``?`` between brackets, without quotes, is not YAML: kubectl refuses the kustomization."""
    for block in re.findall(r"^ *```yaml\n(.*?)^ *```$", page.read_text(), re.MULTILINE | re.DOTALL):
        assert list(yaml.safe_load_all(textwrap.dedent(block)))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_row_of_a_table_has_its_cells(page: Path) -> None:
    """The site leaves out what has no column, and shows rows without a head as text."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for table in re.findall(r"(?:^ *\|.*\n)+", text, re.MULTILINE):
        rows = [re.sub(r"`[^`]*`", "", row).strip() for row in table.splitlines()]
        assert re.fullmatch(r"[|: -]+", rows[1]), table[:200]
        assert len({row.count("|") for row in rows}) == 1, table[:200]


def test_the_readmes_offline_commands_succeed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = [c for page, c in ALL if page.name == "README.md" and ".venv/bin/modelhooks" in c]
    ours = [c for c in ours if shlex.split(c)[1] != "studio"]  # runs until it is interrupted: see tests/studio

    assert ours
    monkeypatch.chdir(ROOT)
    for command in ours:
        assert cli.main(shlex.split(command)[1:]) == 0, capsys.readouterr().err


def test_the_readmes_table_has_every_kind() -> None:
    """A row has kind, versions and children."""
    rows = re.findall(r"^\| (\w+) \| `(.+?)` \| (.+?) \|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert rows == [(r.kind, _versions(r), _children(r.children)) for r in RESOURCES]


def test_the_paths_of_every_kind_are_documented() -> None:
    page = (ROOT / "app/admission/README.md").read_text()
    rows = re.findall(r"^\| (\w+) \| `(.+?)` \| `(.+?)` \| `(.+?)` \|$", page, re.MULTILINE)
    assert rows == [(r.kind, _versions(r), r.hook_path, r.admission_path) for r in RESOURCES]


def _versions(resource: CustomResource) -> str:
    return "`, `".join(version.api_version for version in (resource, *resource.older))


def _children(children: Sequence[ChildKind]) -> str:
    names = [
        child.kind
        + (" (of llmaz)" if child.kind == "Service" and child.api_version != "v1" else "")
        + ("*" if child.component else "")
        for child in children
    ]
    return ", ".join(names) or "\N{EN DASH}"


def test_every_component_is_documented() -> None:
    """A row has the kinds that the component adds."""
    section = (ROOT / "docs" / "install.md").read_text().partition("| Component |")[2].partition("###")[0]
    rows = dict(re.findall(r"^\| `([\w-]+)` \| (.+?) \|", section, re.MULTILINE))
    optional = [child for resource in RESOURCES for child in resource.children if child.component]
    kinds = {child.component for child in optional} | {decorator.component for decorator in DECORATORS}
    without_kinds = {name for name, adds in rows.items() if adds == "none"}
    assert set(rows) == kinds | without_kinds
    assert all((ROOT / "metacontroller" / "components" / name).is_dir() for name in without_kinds)
    assert [child.kind for child in optional if child.kind not in rows[child.component]] == []


def test_every_metric_is_documented() -> None:
    """The page has the metrics of the service and of the component kube-state-metrics, and no others."""
    text = (ROOT / "docs" / "operations" / "metrics.md").read_text()
    config = (ROOT / "manifests/components/kube-state-metrics/custom-resource-state.yaml").read_text()
    of_models = {f"modelhooks_{name}" for name in re.findall(r"- name: (\w+)", config)}
    families = [m for m in vars(metrics).values() if isinstance(m, MetricWrapperBase)]
    names = {m.name + ("_total" if isinstance(f, Counter) else "") for f in families for m in f.describe()}
    assert names
    assert set(re.findall(r"^\| `(modelhooks_\w+)", text, re.MULTILINE)) == names | of_models


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    return {anchor(heading) for heading in re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)}


def anchor(heading: str) -> str:
    """Return the anchor of a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def test_every_alert_is_documented() -> None:
    """The row has its severity."""
    (rule,) = yaml.safe_load_all((ROOT / "manifests/overlays/monitoring/prometheusrule.yaml").read_text())
    alerts = [
        (alert["alert"], alert["labels"]["severity"]) for group in rule["spec"]["groups"] for alert in group["rules"]
    ]
    text = (ROOT / "docs" / "operations" / "metrics.md").read_text()
    assert re.findall(r"^\| `(Modelhooks\w+)` \| (\w+) \|", text, re.MULTILINE) == alerts


def test_links_between_pages_lead_somewhere() -> None:
    """They lead to a file, and to an existing heading."""
    for page in PAGES:
        for target, name in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", page.read_text()):
            there = page.parent / target if target else page
            assert there.exists(), f"{page.name}: {target}"
            assert not name or name in anchors(there), f"{page.name}: {target}#{name}"


@pytest.mark.parametrize(
    "page",
    [
        "compatibility",
        "operations",
        *(f"reference/{name}" for name in ("kserve", "llmaz", "llmkube")),
    ],
)
def test_a_page_in_parts_links_to_them(page: str) -> None:
    index = ROOT / "docs" / f"{page}.md"
    folder = ROOT / "docs" / page
    parts = sorted(folder.glob("*.md") if folder.is_dir() else folder.parent.glob(f"{folder.name}-*.md"))
    assert parts
    linked = {(index.parent / target).resolve() for target in re.findall(r"\]\(([^)#:]+)", index.read_text())}
    assert set(parts) <= linked


OF_THE_TREE = re.compile(r"`((?:app|crds|examples|manifests|metacontroller|tests|tools)/[\w./<>*-]*)`")
BUILT = {"app/studio/static"}
"""Built by ``make studio``."""


@pytest.mark.parametrize("page", [ROOT / "SECURITY.md", *PAGES], ids=lambda page: page.name)
def test_the_files_that_a_page_names_exist(page: Path) -> None:
    """``<family>`` and ``<kind>`` match any name."""
    named = {*OF_THE_TREE.findall(page.read_text())} - BUILT
    missing = {path for path in named if not list(ROOT.glob(re.sub(r"<\w+>", "*", path).rstrip("/")))}
    assert not missing


def test_the_ci_script_is_valid_bash() -> None:
    subprocess.run(["bash", "-n", ROOT / ".ci" / "run"], check=True)

"""Fixtures of the node tests: one node with one installation for all tests, and a namespace for each module."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.collected import below
from tests.e2e.controlplane import ControlPlane
from tests.e2e.metacontroller import start_metacontroller
from tests.e2e.processes import GO
from tests.node import hub, machine, prepare, samples
from tests.node.files import FileServer
from tests.node.images import ROOT
from tests.node.node import USERS, Node
from tests.node.pages import Reader, environment
from tests.node.report import step
from tests.node.samples import model, service
from tests.node.scaling import scale_up_and_down
from tests.node.volumes import Provisioner
from tests.node.world import SERVICES, SYSTEM, World
from tests.world import programs


@dataclass(frozen=True)
class Upgrade:
    """Pods that the previous release created in a namespace, by uid, with their restarts before the upgrade."""

    namespace: str
    pods: dict[str, int]


_HERE = Path(__file__).parent
_LAST = ("test_scaling", "test_upgrade")
"""Modules that come after all others, in order: by then the scaling has had time, and an upgrade disturbs no test."""
os.environ.update(GO)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the modules in order. Skip tests outside the namespaces, and those that need a program that is not built."""
    items.sort(key=lambda item: _LAST.index(item.path.stem) + 1 if item.path.stem in _LAST else 0)
    for item in below(_HERE, items):
        world = item.get_closest_marker("world")
        if machine.RUN not in os.environ and item.get_closest_marker("node"):
            item.add_marker(pytest.mark.skip(reason="needs a node: make node-test"))
        elif world and (reason := programs.missing(*world.args)) is not None:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add pods and events to the report of a failure, because the cluster is gone afterwards."""
    report = yield
    world = getattr(item, "funcargs", {}).get("world")
    if report.failed and isinstance(world, World):
        report.sections.append(("pods and events", world.diagnostics()))
    return report


@pytest.fixture(scope="module", autouse=True)
def module(request: pytest.FixtureRequest) -> Iterator[None]:
    """Record the seconds that a module's tests take, not counting the shared fixtures."""
    if machine.RUN not in os.environ:
        yield
        return
    request.getfixturevalue("installed")
    with step(request.path.name):
        yield


@pytest.fixture(scope="session")
def world() -> Iterator[World]:
    """A node with DNS, volumes, a model server and Metacontroller, but without modelhooks."""
    folder = Path(os.environ[machine.RUN])
    machine.isolate(folder)
    prepared = prepare.read(machine.SERVED / "prepared.json")
    cluster = ControlPlane(
        machine.SERVED / "control-plane",
        kwok=False,
        users=USERS,
        address=machine.ADDRESS,
        # Shorter than the defaults of minutes: the autoscalers' sync period and downscale stabilization.
        controller_flags=(
            "--horizontal-pod-autoscaler-sync-period=5s",
            "--horizontal-pod-autoscaler-downscale-stabilization=30s",
        ),
    )
    authority = hub.read_authority(prepared.authority)
    models, host_model = (machine.SERVED / name / "tiny.gguf" for name in ("models", "host-models/tiny"))
    for copy in (models, host_model):
        copy.parent.mkdir(parents=True)
        shutil.copy(prepared.model, copy)
    with ExitStack() as opened:
        with step("control plane started"):
            opened.enter_context(cluster)
        node = opened.enter_context(Node(cluster, machine.SERVED / "node", prepared.programs, folder.name))
        with step("images loaded"):
            node.load(prepared.tools)
        with step("cluster DNS started"):
            node.start_dns()
        volumes = opened.enter_context(Provisioner(cluster, machine.SERVED / "volumes"))
        files = opened.enter_context(FileServer(machine.ADDRESS, models.parent))
        opened.enter_context(hub.serve(machine.ADDRESS, prepared.model, authority, machine.SERVED / "hub"))
        metacontroller = opened.enter_context(start_metacontroller(cluster, machine.SERVED / "metacontroller"))
        yield World(cluster, node, volumes, files, metacontroller, prepared, host_model)
        metacontroller.process.check()
        node.check()
        cluster.check()


@pytest.fixture(scope="session")
def upgrade(world: World) -> Upgrade:
    """Create services with the previous release, before this tree's release is installed over it.

    Empty without a previous release.
    """
    release = world.prepared.previous
    if release is None:
        return Upgrade("", {})
    world.node.load(release.archive)
    with step("previous release installed"):
        world.install(release.tree)
    namespace = world.cluster.create_namespace()
    folder = world.host_model.parent
    world.apply(
        namespace,
        model("tiny", f"{world.files.url}/tiny.gguf"),
        service("earlier", "tiny"),
        samples.runtime("earlier"),
        samples.open_model("earlier", world.host_model),
        samples.playground("played", "earlier", "earlier"),
        samples.volume("earlier", folder.parent),
        samples.claim("earlier", "earlier"),
        samples.llm_service("mounted", f"pvc://earlier/{folder.name}"),
    )
    world.wait_true(SERVICES, "earlier", namespace)
    world.wait_true("playgrounds", "played", namespace, "Available")
    world.wait_true("llminferenceservices", "mounted", namespace)
    pods = world.restarts(namespace)
    assert len(pods) == 3
    # The image's name may be the same in both releases; their manifests decide.
    world.node.load(world.prepared.present.archive)
    world.cluster.kubectl("-n", SYSTEM, "delete", "job", "modelhooks-certs")
    return Upgrade(namespace, pods)


@pytest.fixture(scope="session")
def shell(world: World) -> dict[str, str]:
    """The environment variables for the commands of documentation pages."""
    return environment(world.cluster, world.node, world.prepared.present, machine.SERVED / "pages")


@pytest.fixture(scope="session")
def readme(shell: dict[str, str]) -> Iterator[Reader]:
    """A reader of the README's section about a first model."""
    _, _, section = (ROOT / "README.md").read_text().partition("## Serve a model in five minutes\n")
    with Reader(section.partition("\n## ")[0], shell) as reader:
        yield reader


@pytest.fixture(scope="session")
def installed(world: World, upgrade: Upgrade, readme: Reader) -> World:
    """The world with this tree's release installed: over the previous release, or as in the README."""
    with step("quickstart rolled out"):
        if upgrade.pods:
            world.install(world.prepared.present.tree)
            world.rollout("restart")
        else:
            readme.read(1)
            world.wait_for_webhooks()
    return world


@pytest.fixture(scope="session", autouse=True)
def scaling(request: pytest.FixtureRequest) -> Iterator[Future[None] | None]:
    """The result of `scale_up_and_down`, if its test runs. It mostly waits, so it runs beside all other tests."""
    if machine.RUN not in os.environ or all(item.path.stem != "test_scaling" for item in request.session.items):
        yield None
        return
    world = request.getfixturevalue("installed")
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(scale_up_and_down, world)


@pytest.fixture(scope="module")
def namespace(installed: World) -> Iterator[str]:
    """A namespace for the tests of a module, deleted afterwards."""
    name = installed.cluster.create_namespace()
    yield name
    installed.cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module")
def tiny(installed: World, namespace: str) -> str:
    """A downloaded Model in the module's namespace."""
    installed.apply(namespace, model("tiny", f"{installed.files.url}/tiny.gguf"))
    installed.wait_true("models", "tiny", namespace)
    return "tiny"

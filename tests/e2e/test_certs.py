"""`modelhooks certs --apply` with the quickstart overlay's account, on the installed manifests."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e import metacontroller
from tests.e2e.controlplane import ControlPlane

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "manifests" / "overlays" / "quickstart"
NAMESPACE = "modelhooks-system"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:modelhooks-certs"
GROUPS = ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The overlay installed as in the README, on a control plane without Jobs: the tests run the Job's command."""
    workdir = tmp_path_factory.mktemp("certs")
    with ControlPlane(workdir, controllers=False, scheduler=False, kwok=False, users={ACCOUNT: GROUPS}) as cluster:
        cluster.install_crds(metacontroller.CRDS)
        _install(cluster)
        yield cluster


@pytest.fixture(scope="module")
def first_run(cluster: ControlPlane) -> list[str]:
    """The lines that the Job's command prints when it runs for the first time."""
    return _certs(cluster)


def test_the_job_makes_certificates_and_everybody_trusts_them(cluster: ControlPlane, first_run: list[str]) -> None:
    assert first_run[-1] == f"written: /api/v1/namespaces/{NAMESPACE}/secrets/modelhooks-tls"
    ca = _secret(cluster)["ca.crt"]
    assert _admission_bundles(cluster) == {ca}
    assert _hook_bundles(cluster) == {ca}


@pytest.mark.usefixtures("first_run")
@pytest.mark.parametrize("components", [[], [ROOT / "manifests" / "components" / "gitops"]], ids=["plain", "gitops"])
def test_a_later_run_and_an_upgrade_write_nothing(
    cluster: ControlPlane, tmp_path: Path, components: list[Path]
) -> None:
    secret = _secret(cluster)
    parts = {"resources": [QUICKSTART], "components": components}
    overlay = {key: [os.path.relpath(path, tmp_path) for path in paths] for key, paths in parts.items()}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))

    cluster.kubectl("apply", "--server-side", "-k", tmp_path)

    assert _certs(cluster) == []
    assert _secret(cluster) == secret


@pytest.mark.usefixtures("first_run")
def test_lost_certificates_are_made_anew(cluster: ControlPlane) -> None:
    old = _secret(cluster)["ca.crt"]
    cluster.kubectl("-n", NAMESPACE, "patch", "secret", "modelhooks-tls", "--type=merge", "-p", '{"data": null}')

    _certs(cluster)

    assert _secret(cluster)["ca.crt"] != old
    assert _admission_bundles(cluster) == _hook_bundles(cluster) == {_secret(cluster)["ca.crt"]}


def test_what_is_printed_can_be_applied_beside_the_installation(cluster: ControlPlane) -> None:
    printed = _modelhooks("certs")
    cluster.kubectl(
        "apply", "--server-side", "--force-conflicts", "--field-manager=modelhooks-certs", "--filename=-", input=printed
    )

    ca = base64.b64decode(next(yaml.safe_load_all(printed))["data"]["ca.crt"]).decode()
    assert _admission_bundles(cluster) == _hook_bundles(cluster) == {ca}


@pytest.mark.parametrize(
    "refused",
    [
        ("get", "secret", "another", "-n", NAMESPACE),
        ("get", "secrets", "-n", NAMESPACE),
        ("get", "secret", "modelhooks-tls", "-n", "default"),
        ("delete", "secret", "modelhooks-tls", "-n", NAMESPACE),
        ("get", "validatingwebhookconfiguration", "another"),
        ("get", "compositecontroller", "another"),
        ("create", "configmap", "x", "-n", NAMESPACE),
    ],
    ids=" ".join,
)
def test_the_account_can_do_nothing_else(cluster: ControlPlane, refused: tuple[str, ...]) -> None:
    done = cluster.kubectl(*refused, user=ACCOUNT, check=False)

    assert "forbidden" in done.stderr.lower()


@pytest.mark.parametrize("mode", [("--server-side", "--force-conflicts"), ()], ids=["server-side", "client-side"])
def test_the_api_server_takes_the_quickstart_as_it_is(cluster: ControlPlane, mode: tuple[str, ...]) -> None:
    """The overlay can also be applied again after `certs --apply` has changed objects."""
    cluster.kubectl("apply", *mode, "--dry-run=server", "-k", QUICKSTART)


def _install(cluster: ControlPlane) -> None:
    cluster.kubectl("apply", "--server-side", "-k", QUICKSTART)


def _certs(cluster: ControlPlane) -> list[str]:
    """Run the command as the Job does; return the lines it prints."""
    token = cluster.workdir / "certs-token"
    token.write_text(cluster.token_of(ACCOUNT))
    access = ["--kube-api", cluster.url, "--kube-ca-file", str(cluster.ca_file), "--kube-token-file", str(token)]
    return _modelhooks("certs", "--apply", *access).splitlines()


def _modelhooks(*arguments: str) -> str:
    command = [sys.executable, "-m", "app.cli", *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MODELHOOKS_")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _secret(cluster: ControlPlane) -> dict[str, str]:
    data = cluster.get("secret", "modelhooks-tls", "-n", NAMESPACE)["data"]
    return {key: base64.b64decode(value).decode() for key, value in data.items()}


def _admission_bundles(cluster: ControlPlane) -> set[str]:
    webhooks = cluster.get("validatingwebhookconfiguration", "modelhooks")["webhooks"]
    return {base64.b64decode(webhook["clientConfig"]["caBundle"]).decode() for webhook in webhooks}


def _hook_bundles(cluster: ControlPlane) -> set[str]:
    controllers = cluster.get("compositecontrollers")["items"]
    return {endpoint["caBundle"]["inline"] for c in controllers for endpoint in c["spec"]["endpointConfigs"]}

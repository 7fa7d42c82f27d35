"""``modelhooks certs``: files, YAML, and writes through an API server."""

import base64
import copy
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from app import cli
from app.certs import authority, trust
from app.certs.kubeapi import ApiError, Client, ConflictError
from app.cli import certs as command
from tests.hookcalls import NOW

NAMES = authority.service_names("modelhooks", "modelhooks-system", "cluster.local")
SECRET = trust.ObjectName("v1", "Secret", "modelhooks-tls", "modelhooks-system")
ADMISSION = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/modelhooks"
DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/llminferenceservices.serving.kserve.io"
CONTROLLER = "/apis/metacontroller.k8s.io/v1alpha1/compositecontrollers/llmkube-models"
DECORATOR = "/apis/metacontroller.k8s.io/v1alpha1/decoratorcontrollers/llmaz-labels"


class ApiServer(Client):
    """Objects by path, and the paths that were written. A ``race`` runs once, just before its path is written."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.races: dict[str, Callable[[], None]] = {}
        hook = {"version": "v2", "webhook": {"url": "https://modelhooks.modelhooks-system:443/llmkube/models/sync"}}
        webhook = {"name": "validate.models.inference.llmkube.dev", "clientConfig": {"service": {"name": "modelhooks"}}}
        self.objects: dict[str, dict[str, Any]] = {
            SECRET.path: {"metadata": {"resourceVersion": "1"}},
            ADMISSION: {"metadata": {}, "webhooks": [webhook]},
            DEFINITION: {
                "metadata": {"annotations": {"cert-manager.io/inject-ca-from": "kserve/serving-cert", "x": "y"}},
                "spec": {"conversion": {"webhook": {"clientConfig": {"service": {"name": "modelhooks"}}}}},
            },
            CONTROLLER: {"metadata": {}, "spec": {"hooks": {"sync": hook, "customize": copy.deepcopy(hook)}}},
        }

    def get(self, path: str) -> dict[str, Any] | None:
        return copy.deepcopy(self.objects.get(path))

    def patch(self, path: str, patch: dict[str, Any], merge: str = "merge") -> None:
        if merge == "strategic-merge":
            self._strategic_merge_patch(path, patch)
            return
        self.races.pop(path, lambda: None)()
        expected = patch.get("metadata", {}).get("resourceVersion")
        current = self.objects[path]
        if expected and expected != current["metadata"]["resourceVersion"]:
            raise ConflictError("changed meanwhile")
        _merge(current, patch)
        current["metadata"]["resourceVersion"] = str(len(self.written) + 2)
        self.written.append(path)

    def _strategic_merge_patch(self, path: str, patch: dict[str, Any]) -> None:
        for change in patch["webhooks"]:
            target = next(w for w in self.objects[path]["webhooks"] if w["name"] == change["name"])
            _merge(target, change)
        self.written.append(path)

    @property
    def bundle(self) -> authority.Bundle:
        bundle = trust.bundle_of(self.objects[SECRET.path])
        assert bundle is not None
        return bundle

    def trusted_by(self, path: str) -> str:
        if path == ADMISSION:
            return base64.b64decode(self.objects[path]["webhooks"][0]["clientConfig"]["caBundle"]).decode()
        return str(self.objects[path]["spec"]["endpointConfigs"][0]["caBundle"]["inline"])


def _merge(target: dict[str, Any], patch: dict[str, Any]) -> None:
    for key, value in patch.items():
        if isinstance(value, dict) and isinstance(target.get(key), dict):
            _merge(target[key], value)
        elif value is None:
            target.pop(key, None)
        else:
            target[key] = value


@pytest.fixture
def api() -> ApiServer:
    return ApiServer()


def apply(api: ApiServer, now: datetime = NOW) -> int:
    api.written.clear()
    return command.apply(api, SECRET, NAMES, now)


def test_the_first_run_fills_the_secret_after_everybody_trusts_the_ca(api: ApiServer) -> None:
    assert apply(api) == 0

    assert api.written == [ADMISSION, DEFINITION, CONTROLLER, SECRET.path]
    assert api.trusted_by(ADMISSION) == api.trusted_by(CONTROLLER) == api.bundle.trusted
    client = api.objects[DEFINITION]["spec"]["conversion"]["webhook"]["clientConfig"]
    assert base64.b64decode(client["caBundle"]).decode() == api.bundle.trusted


def test_a_definition_that_another_installation_had_is_ours_alone(api: ApiServer) -> None:
    """Otherwise the other installation's cert-manager would keep writing its own CA there."""
    apply(api)
    assert api.objects[DEFINITION]["metadata"]["annotations"] == {"x": "y"}


@pytest.mark.parametrize(
    "conversion",
    [
        {},
        {"conversion": {"strategy": "None"}},
        {"conversion": {"webhook": {"clientConfig": {"service": {"name": "x"}}}}},
    ],
)
def test_leaves_crds_with_another_conversion_webhook(api: ApiServer, conversion: dict[str, Any]) -> None:
    api.objects[DEFINITION]["spec"] = conversion
    apply(api)
    assert DEFINITION not in api.written


def test_a_second_run_writes_nothing(api: ApiServer) -> None:
    apply(api)

    assert apply(api, NOW + timedelta(days=30)) == 0
    assert api.written == []


def test_a_renewed_leaf_leaves_the_controllers_alone(api: ApiServer) -> None:
    """Each change of a CompositeController's spec makes Metacontroller sync every parent."""
    apply(api)
    apply(api, NOW + timedelta(days=61))

    assert api.written == [SECRET.path]


def test_a_new_ca_is_trusted_beside_the_old_one_before_it_is_served(api: ApiServer) -> None:
    apply(api)
    old = api.bundle.ca.certificate
    apply(api, NOW + timedelta(days=2500))

    assert api.written == [ADMISSION, DEFINITION, CONTROLLER, SECRET.path]
    assert api.trusted_by(CONTROLLER) == api.bundle.ca.certificate + old


def test_restores_a_removed_ca_bundle(api: ApiServer) -> None:
    apply(api)
    del api.objects[CONTROLLER]["spec"]["endpointConfigs"]
    del api.objects[ADMISSION]["webhooks"][0]["clientConfig"]["caBundle"]

    apply(api)
    assert api.written == [ADMISSION, CONTROLLER]
    assert api.trusted_by(CONTROLLER) == api.bundle.trusted


def test_of_two_first_runs_the_slower_one_takes_over_the_ca_of_the_faster(api: ApiServer) -> None:
    theirs = authority.ensure(None, NAMES, NOW)
    written = {**trust.secret(SECRET, theirs), "metadata": {"resourceVersion": "7"}}
    api.races[SECRET.path] = lambda: api.objects[SECRET.path].update(written)

    assert apply(api) == 0
    assert api.bundle == theirs
    assert api.trusted_by(ADMISSION) == api.trusted_by(CONTROLLER) == theirs.trusted


def test_a_missing_secret_is_an_error_that_says_who_makes_it(
    api: ApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    del api.objects[SECRET.path]

    assert apply(api) == 1
    assert "manifests create it" in capsys.readouterr().err


def test_controllers_that_are_yet_to_come_are_waited_for(api: ApiServer, capsys: pytest.CaptureFixture[str]) -> None:
    """Helm starts the Job before it creates the controllers, which would otherwise have no CA until the next night."""
    controller = api.objects.pop(CONTROLLER)

    assert apply(api) == 1
    assert api.written == []
    assert "manifests create them" in capsys.readouterr().err

    api.objects[CONTROLLER] = controller
    assert apply(api) == 0


def test_leaves_an_external_ca() -> None:
    reference = {"configMapRef": {"name": "ca", "namespace": "x"}}
    hooks = {"sync": {"webhook": {"url": "https://modelhooks.modelhooks-system/x"}}}
    endpoint = {"host": "modelhooks.modelhooks-system:443", "caBundle": reference}

    assert trust.hooks_patch({"spec": {"hooks": hooks, "endpointConfigs": [endpoint]}}, "PEM") is None


def test_other_hosts_and_their_settings_stay() -> None:
    service = {"name": "modelhooks", "namespace": "modelhooks-system", "protocol": "https", "port": 443}
    other = {"host": "elsewhere:443", "authorization": {"secretRef": {"name": "token"}}}
    ours = {"host": "modelhooks.modelhooks-system:443", "authorization": {"secretRef": {"name": "token"}}}
    spec = {"hooks": {"sync": {"webhook": {"service": service}}}, "endpointConfigs": [other, ours]}

    assert trust.hooks_patch({"spec": spec}, "PEM") == {
        "spec": {"endpointConfigs": [other, {**ours, "caBundle": {"inline": "PEM"}}]}
    }


@pytest.mark.parametrize(
    "webhook",
    [
        {"url": "http://modelhooks.modelhooks-system:443/x"},
        {"service": {"name": "modelhooks", "namespace": "modelhooks-system"}},
        {"url": "https://modelhooks.modelhooks-system/x", "caBundle": {"inline": "theirs"}},
    ],
)
def test_plain_http_and_hooks_with_a_ca_of_their_own_need_nothing(webhook: dict[str, Any]) -> None:
    assert trust.hooks_patch({"spec": {"hooks": {"sync": {"webhook": webhook}, "finalize": None}}}, "PEM") is None


def run(*argv: str) -> int:
    return cli.main(["certs", *argv])


def test_files_are_kept_until_they_are_due_and_keys_are_private(tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    assert run("--out-dir", str(folder), "--san", "127.0.0.1") == 0
    first = {file.name: file.read_text() for file in folder.iterdir()}

    assert run("--out-dir", str(folder), "--san", "127.0.0.1") == 0
    assert {file.name: file.read_text() for file in folder.iterdir()} == first
    assert sorted(first) == ["ca.crt", "ca.key", "tls.crt", "tls.key"]
    assert {file.name: oct(file.stat().st_mode & 0o777) for file in folder.glob("*.key")} == {
        "ca.key": "0o600",
        "tls.key": "0o600",
    }


def test_without_options_everything_is_printed_for_server_side_apply(capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0

    secret, admission, *others = yaml.load_all(capsys.readouterr().out, yaml.CSafeLoader)
    definitions, controllers = others[:2], others[2:]
    ca = base64.b64decode(secret["data"]["ca.crt"]).decode()
    assert {w["clientConfig"]["caBundle"] for w in admission["webhooks"]} == {secret["data"]["ca.crt"]}
    assert {d["metadata"]["name"] for d in definitions} == {
        "llminferenceservices.serving.kserve.io",
        "llminferenceserviceconfigs.serving.kserve.io",
    }
    assert {d["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] for d in definitions} == {
        secret["data"]["ca.crt"]
    }
    assert {c["spec"]["endpointConfigs"][0]["caBundle"]["inline"] for c in controllers} == {ca}
    assert "llmkube-models" in {c["metadata"]["name"] for c in controllers}


def test_outside_a_cluster_apply_says_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    assert run("--apply") == 1
    assert "--kube-api" in capsys.readouterr().err


def test_a_token_is_never_sent_in_the_clear() -> None:
    with pytest.raises(ApiError, match="https"):
        Client("http://127.0.0.1:8080", "", "token")


def test_a_decorator_that_is_installed_trusts_the_ca_too(api: ApiServer) -> None:
    webhook = {"url": "https://modelhooks.modelhooks-system:443/llmaz/labels/sync"}
    api.objects[DECORATOR] = {"metadata": {}, "spec": {"hooks": {"sync": {"version": "v2", "webhook": webhook}}}}

    assert apply(api) == 0

    assert api.written == [ADMISSION, DEFINITION, CONTROLLER, DECORATOR, SECRET.path]
    trusted = api.objects[CONTROLLER]["spec"]["endpointConfigs"]
    assert api.objects[DECORATOR]["spec"]["endpointConfigs"] == trusted

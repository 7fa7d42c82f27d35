"""The operator's settings, from KServe's ConfigMap."""

from __future__ import annotations

import json

import pytest

from app import images
from app.kserve.operator import DOCUMENTS, OperatorConfigError, operator_config
from tests.kserve.objects import Cluster, service
from tests.kserve.workload.test_artifacts import operator


def test_without_a_config_map_everything_has_its_default() -> None:
    """Defaults are the values that KServe ships."""
    config = operator_config(None, "kserve")
    assert config.gateway == ("kserve", "kserve-ingress-gateway")
    assert config.ingress.url_scheme == "http"
    assert config.storage_initializer.image == images.STORAGE_INITIALIZER
    assert config.storage_initializer.uid_modelcar == 1010
    assert config.credentials.storage_secret_name_annotation == "serving.kserve.io/storageSecretName"
    assert config.credentials.s3.access_key_id_name == "AWS_ACCESS_KEY_ID"


@pytest.mark.parametrize(
    ("text", "gateway"),
    [("infra/gw", ("infra", "gw")), ("gw", ("kserve", "gw"))],
)
def test_the_default_gateway_without_a_namespace_is_in_the_system_namespace(
    text: str, gateway: tuple[str, str]
) -> None:
    """A name without a namespace refers to the system namespace."""
    data = {"ingress": json.dumps({"kserveIngressGateway": text})}
    assert operator_config(data, "kserve").gateway == gateway


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("ingress", "{"),
        ("ingress", '{"kserveIngressGateway": "a/b/c"}'),
        ("ingress", '{"kserveIngressGateway": "/b"}'),
        ("storageInitializer", '{"cpuLimit": "much"}'),
        ("storageInitializer", '{"enableModelcar": "yes"}'),
        ("storageInitializer", "[]"),
        ("credentials", '{"s3": 1}'),
        ("scheduler", "{"),
        *((key, '{"a":' * 5000 + "1" + "}" * 5000) for key in DOCUMENTS),
        ("ingress", '{"a":' + "[" * 100_000 + "}"),
    ],
    ids=lambda value: value[:40],
)
def test_documents_that_cannot_be_read(key: str, text: str) -> None:
    """The error names the key."""
    with pytest.raises(OperatorConfigError, match=f"ConfigMap key {key}: "):
        operator_config({key: text}, "kserve")


def test_a_broken_document_changes_nothing() -> None:
    """Children are kept, and ``Ready`` names the broken key."""
    cluster = Cluster(service())
    before = cluster.settle()["children"]
    broken = operator()
    broken["data"] = {"storageInitializer": "{"}
    cluster.related.append(broken)
    cluster.sync()
    assert cluster.answer["children"] == before
    assert cluster.says("Ready") == "OperatorConfigInvalid"
    condition = cluster.condition("Ready")
    assert condition is not None
    assert "ConfigMap key storageInitializer" in condition["message"]


def test_quantities_are_canonical() -> None:
    """Quantities have the API server's form; any other would differ at every sync."""
    cluster = Cluster(service(), operator(storageInitializer={"cpuRequest": "1000m", "memoryLimit": "2048Mi"}))
    cluster.sync()
    pod = cluster.child("Deployment", "demo-kserve")["spec"]["template"]["spec"]
    resources = pod["initContainers"][0]["resources"]
    assert resources["requests"]["cpu"] == "1"
    assert resources["limits"]["memory"] == "2Gi"


def test_ignores_null_settings() -> None:
    """Null means the default, as in the Go operator."""
    config = operator_config({"ingress": json.dumps({"urlScheme": None, "kserveIngressGateway": "infra/gw"})}, "kserve")
    assert (config.ingress.url_scheme, config.gateway) == ("http", ("infra", "gw"))

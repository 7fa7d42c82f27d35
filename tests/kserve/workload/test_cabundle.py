"""The CA bundle in the operator's settings: pods mount it if it exists; otherwise ``Ready`` names what is missing."""

from __future__ import annotations

import pytest

from app.kube.base import Json
from tests.kserve.objects import OPTIONAL_KINDS, Cluster, service
from tests.kserve.workload.test_artifacts import container, named, operator
from tests.kserve.workload.test_workloads import template

SETTINGS = operator(storageInitializer={"caBundleConfigMapName": "ca"})
OWN, COMMON = "demo-kserve-ca-bundle", "global-ca-bundle"
PEM = "-----BEGIN CERTIFICATE-----\n"


def config_map(name: str, namespace: str, **data: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


def source(**data: str) -> Json:
    return config_map("ca", "kserve", **data or {"cabundle.crt": PEM, "other": "x"})


def mounted(cluster: Cluster) -> str:
    """Return the name of the ConfigMap that pods mount, which the initializer also gets as a variable."""
    pod = template(cluster)["spec"]
    volume = named(pod["volumes"], "cabundle-cert")
    assert volume is not None
    name: str = volume["configMap"]["name"]
    initializer = container(pod, "storage-initializer", "initContainers")
    assert {"name": "CA_BUNDLE_CONFIGMAP_NAME", "value": name} in initializer["env"]
    return name


def copying(*related: Json) -> Cluster:
    """Return a cluster with the component ca-bundle."""
    return Cluster(service(uri="s3://b/m"), SETTINGS, *related, optional=OPTIONAL_KINDS | {"ConfigMap"})


def missing(cluster: Cluster) -> str:
    """Return the message of ``Ready`` if it is about the bundle, else an empty string."""
    condition = cluster.condition("Ready")
    assert condition is not None
    assert condition["status"] == "False"
    message: str = condition.get("message", "")
    return message if "caBundle" in message or "ca-bundle" in message or "too large" in message else ""


def test_every_service_has_a_copy() -> None:
    """A child has one owner, so services of a namespace cannot share a copy. Other keys are not copied."""
    cluster = copying(source())
    cluster.settle()
    assert mounted(cluster) == OWN
    assert cluster.child("ConfigMap", OWN)["data"] == {"cabundle.crt": PEM}


def test_a_changed_bundle_is_copied_again() -> None:
    """Pods see the change without a restart."""
    cluster = copying(source())
    cluster.settle()
    before = template(cluster)
    cluster.related[-1] = source(**{"cabundle.crt": "new"})
    cluster.settle()
    assert cluster.child("ConfigMap", OWN)["data"] == {"cabundle.crt": "new"}
    assert template(cluster) == before


def test_the_namespaces_bundle_is_mounted_where_there_is_one() -> None:
    """KServe's operator or an administrator created it."""
    cluster = copying(source(), config_map(COMMON, "default"))
    cluster.settle()
    assert mounted(cluster) == COMMON
    assert ("ConfigMap", OWN) not in cluster.names


def test_a_common_bundle_that_comes_later_restarts_nothing() -> None:
    cluster = copying(source())
    cluster.settle()
    cluster.related.append(config_map(COMMON, "default"))
    cluster.settle()
    assert mounted(cluster) == OWN


@pytest.mark.parametrize(
    ("related", "said"),
    [
        ([], "ConfigMap kserve/ca does not exist"),
        ([source(other="x")], "ConfigMap kserve/ca has no key cabundle.crt"),
        ([source(**{"cabundle.crt": "x" * 2**18})], "too large to be copied"),
    ],
)
def test_no_copy_without_source(related: list[Json], said: str) -> None:
    cluster = copying(*related)
    cluster.settle()
    assert said in missing(cluster)
    assert ("ConfigMap", OWN) not in cluster.names


def test_a_source_that_goes_takes_no_copy_along() -> None:
    """The copy is kept, as pods mount it."""
    cluster = copying(source())
    cluster.settle()
    del cluster.related[-1]
    cluster.settle()
    assert cluster.child("ConfigMap", OWN)["data"] == {"cabundle.crt": PEM}


def test_without_the_component_the_cause_says_what_to_do() -> None:
    cluster = Cluster(service(uri="s3://b/m"), SETTINGS)
    cluster.settle()
    assert mounted(cluster) == COMMON
    assert "ConfigMap default/global-ca-bundle does not exist: copy kserve/ca there" in missing(cluster)
    cluster.related.append(config_map(COMMON, "default"))
    cluster.settle()
    assert not missing(cluster)


def test_in_the_system_namespace_the_source_itself_is_mounted() -> None:
    parent = service(uri="s3://b/m")
    parent["metadata"]["namespace"] = "kserve"
    cluster = Cluster(parent, SETTINGS, optional=OPTIONAL_KINDS | {"ConfigMap"})
    cluster.settle()
    assert mounted(cluster) == "ca"
    assert "ConfigMap kserve/ca does not exist" in missing(cluster)
    cluster.related.append(source())
    cluster.settle()
    assert not missing(cluster)


@pytest.mark.parametrize("uri", ["hf://o/m", "pvc://c/m"])
def test_other_downloads_need_none(uri: str) -> None:
    cluster = Cluster(service(uri=uri), SETTINGS, source(), optional=OPTIONAL_KINDS | {"ConfigMap"})
    cluster.settle()
    assert not [name for kind, name in cluster.names if kind == "ConfigMap"]
    assert not missing(cluster)

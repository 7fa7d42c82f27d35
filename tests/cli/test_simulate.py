"""The cluster in memory treats answers as Metacontroller does, as far as hooks can observe."""

from __future__ import annotations

from typing import Any

import orjson

from app.desk.cluster.offline import World, holding, settled
from app.desk.files import yaml
from app.desk.files.manifests import Manifest, parse
from app.kube.base import Json
from app.kube.names import CONTROLLER_UID, LAST_APPLIED
from tests.cli.files import model, service

DEPLOYMENT = "Deployment.apps/v1", "default/s"


def manifests(*documents: Json) -> list[Manifest]:
    return parse(yaml.dump_all(list(documents)), "all.yaml")


def ready(document: Json) -> Any:
    return next(c["status"] for c in document["status"]["conditions"] if c["type"] == "Ready")


def test_everything_becomes_ready() -> None:
    """Jobs complete, claims bind and pods start."""
    cluster = settled(manifests(service(), model()), World())
    assert [ready(parent) for _, parent in cluster.parents()] == ["True", "True"]


def test_children_carry_their_owner_and_their_record() -> None:
    """Metacontroller finds children by their owner, and hooks keep them by their record."""
    metadata = settled(manifests(service(), model()), World()).objects[DEPLOYMENT]["metadata"]
    assert metadata["labels"][CONTROLLER_UID]
    assert orjson.loads(metadata["annotations"][LAST_APPLIED])["metadata"]["name"] == "s"


def test_a_status_causes_no_sync() -> None:
    """As with ``ignoreStatusChanges`` (MC-2.2)."""
    cluster = settled(manifests(model()), World())
    before, ((_, parent),) = cluster.syncs, cluster.parents()
    parent["status"] = {}
    cluster.settle()
    assert cluster.syncs == before


def test_parents_are_settled_one_by_one() -> None:
    """Two syncs each, one to make the children and one to report that they are ready; a third for the Model's user."""
    assert settled(manifests(service(), model()), World()).syncs == 5


def test_what_a_hook_keeps_is_kept() -> None:
    """The Deployment does not change when its Model is deleted."""
    cluster = settled(manifests(service(), model()), World())
    before = cluster.objects[DEPLOYMENT]
    cluster.delete(("Model.inference.llmkube.dev/v1alpha1", "default/m"))
    cluster.settle()
    assert cluster.objects[DEPLOYMENT]["spec"] == before["spec"]


def test_deleting_takes_along_what_is_owned() -> None:
    """As with garbage collection."""
    cluster = settled(manifests(service(), model()), World())
    cluster.delete(("InferenceService.inference.llmkube.dev/v1alpha1", "default/s"))
    assert DEPLOYMENT not in cluster.objects


def test_a_child_that_is_created_only_is_not_changed() -> None:
    """A child with update strategy OnDelete, such as a claim, is not updated."""
    cluster = settled(manifests(model()), World())
    key = next(key for key in cluster.objects if key[0] == "PersistentVolumeClaim.v1")
    cluster.objects[key]["spec"]["resources"]["requests"]["storage"] = "1Ti"
    cluster.settle()
    assert cluster.objects[key]["spec"]["resources"]["requests"]["storage"] == "1Ti"


def test_holding_changes_nothing() -> None:
    """Objects are those of the files, with uid and namespace; the default objects of a namespace are added."""
    document, account = holding(manifests(model()), World("there")).objects.values()
    assert (account["kind"], account["metadata"]["name"]) == ("ServiceAccount", "default")
    assert document["metadata"]["namespace"] == "there"
    assert document["metadata"]["uid"]
    assert "status" not in document

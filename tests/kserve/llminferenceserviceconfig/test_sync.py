"""The status of a config: whether it can be used."""

from __future__ import annotations

from typing import Any

from app.kube.base import Json
from tests.kserve.objects import Cluster, config


def status(**spec: Any) -> Json:
    cluster = Cluster(config(**spec))
    answer = cluster.sync()
    assert answer["children"] == []
    found: Json = answer["status"]
    return found


def test_a_config_that_renders_is_ready() -> None:
    """For the sample service, whose parts its templates may rely on."""
    found = status(template={"containers": [{"name": "main", "args": ["{{ .Spec.Model.Name }}"]}]})
    assert found["observedGeneration"] == 1
    assert [(c["type"], c["status"], c["reason"]) for c in found["conditions"]] == [("Ready", "True", "Rendered")]


def test_a_config_that_does_not_render_says_where() -> None:
    """With the place and the line."""
    found = status(template={"containers": [{"name": "main", "args": ["{{ .Spec.Nothing }}"]}]})
    (ready,) = found["conditions"]
    assert (ready["status"], ready["reason"]) == ("False", "InvalidSpec")
    assert "spec.template.containers[0].args[0], line 1: .Spec.Nothing does not exist" in ready["message"]


def test_a_config_of_the_wrong_form_says_so() -> None:
    (ready,) = status(replicas="3")["conditions"]
    assert (ready["status"], ready["reason"]) == ("False", "InvalidSpec")
    assert "spec.replicas" in ready["message"]

"""The service account of pods whose spec no longer names one."""

from __future__ import annotations

import json

import msgspec
import pytest

from app.kube.base import Json
from app.kube.names import LAST_APPLIED
from app.kube.objects import ObservedObject
from app.workload.parts import account_in_place


def deployment(recorded: Json | None) -> ObservedObject:
    """Return a Deployment with ``recorded`` as the pod spec in its record; ``None`` for one without a record."""
    record = {"kind": "Deployment", "spec": {"template": {"spec": recorded}}}
    annotations = {} if recorded is None else {LAST_APPLIED: json.dumps(record)}
    document = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "annotations": annotations}}
    return msgspec.json.decode(json.dumps(document), type=ObservedObject)


@pytest.mark.parametrize(
    ("observed", "running", "sent"),
    [
        (None, "", ""),
        (deployment({"serviceAccountName": "mine"}), "mine", "default"),
        (deployment({"serviceAccountName": "default"}), "default", "default"),
        (deployment({"containers": []}), "theirs", ""),
        (deployment(None), "theirs", ""),
        (deployment({}), "", ""),
    ],
)
def test_a_name_that_was_sent_is_replaced(observed: ObservedObject | None, running: str, sent: str) -> None:
    """A name that is not in the record is left alone."""
    assert account_in_place(observed, running) == sent

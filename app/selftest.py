"""The self-test of a process, before it is ready.

An image that lacks a dependency, or has wheels of another Python, may start and fail at the first request. One request
of each kind finds that while other replicas serve, and builds what is built lazily.
"""

from datetime import datetime

import orjson

from app.admission import review
from app.admission.protocol import creation
from app.hooks.kind import AnyKind, answer_customize, answer_sync
from app.settings import Settings

UID = "self-test"


def check(kind: AnyKind, settings: Settings, now: datetime) -> None:
    """Review, customize and sync an object of the kind with an empty spec. Raises if an answer is not valid."""
    resource = kind.resource
    metadata = {"name": UID, "uid": UID, "generation": 1} | ({"namespace": UID} if resource.namespaced else {})
    parent = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": {}}
    answer = orjson.loads(review.answer(kind, creation(resource, parent), settings).body)
    if answer["response"]["uid"] != UID:
        raise ValueError("a review was not answered by its uid")
    request = {"parent": parent, "children": {}, "related": {}, "finalizing": False}
    if kind.hooks.customize is not None:
        answer_customize(kind, orjson.dumps(request), settings)
    if orjson.loads(answer_sync(kind, orjson.dumps(request), settings, now).body)["children"] is None:
        raise ValueError("a sync has no children")

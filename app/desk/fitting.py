"""Judge whether a service's model fits into the memory of its GPUs."""

import orjson

from app.desk.cluster.offline import request_of
from app.desk.cluster.simulate import Cluster
from app.desk.cluster.store import key_of
from app.desk.origins import tracer
from app.desk.origins.podfit import pods_fit
from app.hooks.fit import NOTHING, Asked, Fit
from app.hooks.kind import AnyKind
from app.kube.base import Json
from app.settings import Settings


def answer(kind: AnyKind, document: Json, cluster: Cluster, settings: Settings, asked: Asked = NOTHING) -> Fit | None:
    """Return whether an object's model fits; ``None`` for an object without a model, or with errors.

    Raises :class:`ManifestError` for a malformed object that its hook reads.
    """
    if key_of(document) in cluster.refused:
        return None
    if kind.offline.fit is None:
        valid = not kind.read(orjson.dumps(document.get("spec"))).errors
        return pods_fit(kind, document, tracer.pod_templates(cluster, kind, document), asked) if valid else None
    request = request_of(kind, document, cluster)
    resource, errors = kind.decode(request.parent)
    if resource is None or errors:
        return None
    return kind.offline.fit(resource, request, settings, asked)

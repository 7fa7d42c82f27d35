"""Rules for the hooks around a container's life: what Kubernetes would only refuse when the pod is made."""

from __future__ import annotations

from collections.abc import Mapping

from app.kube import field
from app.workload.podrules import Errors, Json, handler

HANDLERS = ("exec", "httpGet", "sleep", "tcpSocket")


def lifecycle(value: Json, path: field.Path) -> Errors:
    """Each hook has exactly one handler, and a whole one; one that is not known here may be of a newer Kubernetes."""
    errors: Errors = []
    for name in ("postStart", "preStop"):
        hook, here = value.get(name), path.child(name)
        if hook is None:
            continue
        given = [key for key in HANDLERS if hook.get(key) is not None]
        if len(given) > 1:
            detail = f"{given[0]} is there already; give exactly one of them"
            errors.append(field.forbidden(here.child(given[1]), detail))
        elif not given and not any(isinstance(item, Mapping) for item in hook.values()):
            errors.append(field.required(here, f"give one of {', '.join(HANDLERS)}"))
        for key in given:
            errors += handler(key, hook[key], here.child(key))
    return errors

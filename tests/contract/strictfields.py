"""Compares children with the API server's own schemas, as it does with ``fieldValidation=Strict``.

The table is written by ``python -m tools.child_types``. Of kinds of other projects only the pods in them are compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from app.kube.base import Json

_TYPES: dict[str, dict[str, Json]] = json.loads(Path(__file__).with_name("child_types.json").read_text())["types"]
_KINDS = {
    **{("v1", kind): kind for kind in ("ConfigMap", "PersistentVolumeClaim", "Secret", "Service", "ServiceAccount")},
    ("apps/v1", "Deployment"): "Deployment",
    ("batch/v1", "Job"): "Job",
    ("autoscaling/v2", "HorizontalPodAutoscaler"): "HorizontalPodAutoscaler",
    ("policy/v1", "PodDisruptionBudget"): "PodDisruptionBudget",
    ("rbac.authorization.k8s.io/v1", "Role"): "Role",
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): "RoleBinding",
    ("resource.k8s.io/v1", "ResourceClaimTemplate"): "ResourceClaimTemplate",
}
_PODS = ("template", "leaderTemplate", "workerTemplate")
_NUMBERS = ("int32", "int64")
_SCALARS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "quantity": (str, int, float),
    "int-or-string": (str, int),
    "number": (int, float),
    **dict.fromkeys(_NUMBERS, (int,)),
}


def problems(child: Json) -> list[str]:
    """Return the fields that the API server does not know or that have values of another type, with their places.

    The status is that of a controller.
    """
    child = {name: value for name, value in child.items() if name != "status"}
    type_ = _KINDS.get((child["apiVersion"], child["kind"]))
    if type_ is not None:
        return list(_problems(child, {"type": type_}, child["kind"]))
    return [problem for pod, path in _pods(child, child["kind"]) for problem in _problems(pod, _POD, path)]


_POD: Json = {"type": "PodTemplateSpec"}


def _pods(value: Any, path: str) -> Iterator[tuple[Json, str]]:
    for name, item in value.items() if isinstance(value, dict) else ():
        if (
            name in _PODS
            and isinstance(item, dict)
            and isinstance(item.get("spec"), dict)
            and "containers" in item["spec"]
        ):
            yield item, f"{path}.{name}"
        else:
            yield from _pods(item, f"{path}.{name}")


def _problems(value: Any, form: Json, path: str) -> Iterator[str]:
    if value is None:
        return
    if form.get("container"):
        inner = {**form, "container": ""}
        if not isinstance(value, list if form["container"] == "[]" else dict):
            yield f"{path}: has another type"
            return
        items = enumerate(value) if isinstance(value, list) else value.items()
        for key, item in items:
            yield from _problems(item, inner, f"{path}[{key}]")
    elif form["type"] in _TYPES:
        yield from _of_object(value, _TYPES[form["type"]], path)
    elif form["type"] in _SCALARS:
        is_number = isinstance(value, bool) and form["type"] != "boolean"
        if is_number or not isinstance(value, _SCALARS[form["type"]]):
            yield f"{path}: has another type"


def _of_object(value: Any, fields: dict[str, Json], path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path}: has another type"
        return
    for name, item in value.items():
        if name in fields:
            yield from _problems(item, fields[name], f"{path}.{name}")
        else:
            yield f"{path}.{name}: is not known"
    yield from (
        f"{path}.{name}: is required" for name, form in fields.items() if form.get("required") and name not in value
    )

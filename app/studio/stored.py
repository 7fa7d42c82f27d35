"""The objects of the documents that a cluster would store, as far as the simulation and the graph read them.

An API server refuses a Deployment without a template; one that is still being typed is left out until it has one.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Generic, TypeVar

import msgspec
import orjson

from app.desk.cluster.kinds import kind_of
from app.kube import objects
from app.kube.base import Json
from app.kube.reading.stored import Decoder

SpecT = TypeVar("SpecT")
Count = Annotated[int, msgspec.Meta(ge=0)] | None


class _Named(msgspec.Struct):
    name: str


class _Condition(msgspec.Struct):
    type: str
    status: str


class _Reported(msgspec.Struct):
    conditions: list[_Condition] | None = None


class _WrittenStatus(_Reported):
    parents: list[_Reported] | None = None
    ancestors: list[_Reported] | None = None


class _Object(msgspec.Struct):
    metadata: _Named
    status: _WrittenStatus | None = None


class _Resources(msgspec.Struct):
    limits: dict[str, Any] | None = None
    requests: dict[str, Any] | None = None


class _Container(_Named):
    image: str | None = None
    resources: _Resources | None = None


class _PodSpec(msgspec.Struct, rename="camel"):
    containers: Annotated[list[_Container], msgspec.Meta(min_length=1)]
    init_containers: list[_Container] | None = None
    volumes: list[_Named] | None = None


class _WrittenTemplate(msgspec.Struct):
    spec: _PodSpec
    metadata: objects.ObservedTemplateMeta | None = None


class _Groups(msgspec.Struct, rename="camel"):
    worker_template: _WrittenTemplate
    leader_template: _WrittenTemplate | None = None
    size: Annotated[int, msgspec.Meta(ge=1)] | None = None


class _WrittenWorkload(msgspec.Struct):
    template: _WrittenTemplate
    replicas: Count = None
    parallelism: Count = None


class _GroupsSpec(msgspec.Struct, rename="camel"):
    leader_worker_template: _Groups
    replicas: Count = None


class _Target(msgspec.Struct):
    kind: str = ""
    name: str = ""


class _ScalerSpec(msgspec.Struct, rename="camel"):
    scale_target_ref: _Target


class _Specified(msgspec.Struct, Generic[SpecT]):
    spec: SpecT


class _Pod(msgspec.Struct):
    status: objects.PodStatus | None = None


_TYPES: Mapping[str, tuple[object, ...]] = {
    "Deployment": (_Specified[_WrittenWorkload], objects.ObservedDeployment),
    "Job": (_Specified[_WrittenWorkload], objects.ObservedJob),
    "LeaderWorkerSet": (_Specified[_GroupsSpec],),
    "Pod": (objects.ObservedPod, _Pod),
    "PersistentVolumeClaim": (objects.ObservedClaim,),
    "HorizontalPodAutoscaler": (_Specified[_ScalerSpec],),
    "ScaledObject": (_Specified[_ScalerSpec],),
}


def is_stored(document: Json) -> bool:
    """Report whether an object has the types that the API server requires; those of served kinds are the hooks'."""
    if kind_of(document) is not None:
        return True
    encoded = orjson.dumps(document)
    try:
        for type_ in (_Object, *_TYPES.get(document["kind"], ())):
            decoder(type_).decode(encoded)
    except msgspec.ValidationError:
        return False
    return True


@cache
def decoder(type_: Any) -> Decoder[Any]:
    return Decoder(type_)

"""Quantities in specs: a string or a whole number, stored in canonical form. Source: LZ-1.0."""

from collections.abc import Iterator, Mapping
from typing import Annotated

import msgspec
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, PydanticKnownError, core_schema

from app.kube import field, quantity
from app.kube.base import Json, KubeModel
from app.workload.rules.wholepod import check_amount

_NUMBER = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)"
PATTERN = rf"^[+-]?{_NUMBER}([KMGTPE]i|[numkMGTPE]|[eE][+-]?{_NUMBER})?$"
"""Pattern of a quantity that is written as a string."""


class QuantityType(msgspec.Struct, frozen=True):
    """Marks a quantity. In the spec it is canonical text: ``4`` and ``"4000m"`` both become ``"4"``."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(_canonical)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> Json:
        return {"x-kubernetes-int-or-string": True, "pattern": PATTERN}


def _canonical(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise PydanticKnownError("string_type")
    try:
        return quantity.canonical(str(value))
    except quantity.QuantityError as error:
        raise PydanticCustomError("quantity", "{hint}", {"hint": error.args[0]}) from None


Quantity = Annotated[str, QuantityType()]


class Resources(KubeModel):
    """Requests and limits of one container."""

    limits: dict[str, Quantity] | None = None
    """Maximum amount of each resource that the container may use, by resource name."""
    requests: dict[str, Quantity] | None = None
    """Amount of each resource reserved for the container, by resource name."""


def check_amounts(amounts: Mapping[str, str] | None, path: field.Path) -> Iterator[field.Error]:
    for name, amount in (amounts or {}).items():
        yield from check_amount(name, quantity.parse(amount), amount, path.key(name))


def check_resources(resources: Resources | None, path: field.Path) -> Iterator[field.Error]:
    if resources is not None:
        yield from check_amounts(resources.limits, path.child("limits"))
        yield from check_amounts(resources.requests, path.child("requests"))


def low_limits(resources: Resources, path: field.Path) -> Iterator[tuple[field.Path, str]]:
    requests = resources.requests or {}
    for name, limit in (resources.limits or {}).items():
        request = requests.get(name)
        if request is not None and quantity.parse(limit) < quantity.parse(request):
            yield (
                path.child("limits").key(name),
                f"the limit {limit} is below the request {request}; raise it or lower the request",
            )

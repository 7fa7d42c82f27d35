"""Variants of a type: the base's fields, some with other types, in the base's order."""

from __future__ import annotations

import pytest
from pydantic import Field, ValidationError

from app.kube.base import KubeModel, with_types


class Route(KubeModel):
    name: str = Field(description="Name of the route.", max_length=3)
    port: int = Field(description="Port of the route.", ge=1)
    weight: int = Field(1, description="Weight.")


@with_types({"name": str | None, "port": (str | None, Field(None, description="Port, or a template."))})
class PartialRoute(Route):
    """A part of a route."""


def test_a_variant_is_a_subtype_with_its_name() -> None:
    assert issubclass(PartialRoute, Route)
    assert (PartialRoute.__name__, PartialRoute.__module__, PartialRoute.__doc__) == (
        "PartialRoute",
        __name__,
        "A part of a route.",
    )
    assert list(PartialRoute.model_fields) == ["name", "port", "weight"]


def test_a_field_with_another_type_is_optional_and_keeps_its_bounds() -> None:
    """The base does not change."""
    assert PartialRoute.model_validate({}).name is None
    assert PartialRoute.model_fields["name"].description == "Name of the route."
    with pytest.raises(ValidationError, match="at most 3 characters"):
        PartialRoute.model_validate({"name": "long"})
    with pytest.raises(ValidationError, match="Field required"):
        Route.model_validate({"port": 1})


def test_a_field_may_be_replaced() -> None:
    assert PartialRoute.model_validate({"port": "{{ .Port }}"}).model_dump()["port"] == "{{ .Port }}"
    assert PartialRoute.model_fields["port"].description == "Port, or a template."


class Rules(KubeModel):
    routes: list[Route] | None = Field(None, description="Routes, in their order.", max_length=1)


class Host(KubeModel):
    rules: Rules | None = Field(None, description="Rules of the host.")


@with_types({"rules.routes": list[Route] | None, "rules.routes.port": str | None})
class PartialHost(Host):
    """A part of a host."""


def test_a_field_further_down_may_have_another_type() -> None:
    """The types on the way to it keep their names, their bounds and their other fields."""
    host = PartialHost.model_validate({"rules": {"routes": [{"name": "a"}]}})
    assert isinstance(host.rules, Rules)
    assert host.model_dump(exclude_none=True) == {"rules": {"routes": [{"name": "a", "weight": 1}]}}
    with pytest.raises(ValidationError, match="at most 1 item"):
        PartialHost.model_validate({"rules": {"routes": [{"name": "a"}, {"name": "b"}]}})
    with pytest.raises(ValidationError, match="valid integer"):
        Host.model_validate({"rules": {"routes": [{"name": "a", "port": "{{ .Port }}"}]}})

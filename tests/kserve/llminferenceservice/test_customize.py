"""Related objects that a service requests: those its sync needs, and no others that a spec could choose."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kube.base import Json
from app.settings import Settings
from tests.kserve.objects import OPTIONAL_KINDS, customize, service

OWN, SYSTEM = "default", "kserve"


def rules(resource: str, **spec: Any) -> list[Json]:
    """Return the related rules for one resource, without apiVersion and resource."""
    requested = customize(service(**spec))
    return [
        {k: v for k, v in rule.items() if k not in ("apiVersion", "resource")}
        for rule in requested
        if rule["resource"] == resource
    ]


def test_the_least_that_is_asked_for() -> None:
    """Every service requests configs of both namespaces, the operator's settings, accounts and pods."""
    requested = customize(service())
    assert [rule["resource"] for rule in requested] == [
        "llminferenceserviceconfigs",
        "llminferenceserviceconfigs",
        "configmaps",
        "serviceaccounts",
        "pods",
    ]
    assert [rule["namespace"] for rule in requested] == [OWN, SYSTEM, SYSTEM, OWN, OWN]
    assert requested[2]["names"] == ["inferenceservice-config"]
    assert requested[4]["labelSelector"] == {"matchLabels": {"app.kubernetes.io/name": "demo"}}


NOT_MADE = {
    "matchExpressions": [{"key": "app.kubernetes.io/part-of", "operator": "NotIn", "values": ["llminferenceservice"]}]
}


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ({}, []),
        ({"template": {"serviceAccountName": "default"}}, []),
        (
            {"template": {"serviceAccountName": "mine"}, "prefill": {"template": {"serviceAccountName": "theirs"}}},
            ["mine", "theirs"],
        ),
        ({"router": {"scheduler": {"template": {"serviceAccountName": "picker"}}}}, ["picker"]),
    ],
)
def test_accounts_of_other_services_are_not_asked_for(spec: Json, names: list[str]) -> None:
    """Only by name: each new account would sync all services of the namespace."""
    named = [{"namespace": OWN, "names": names}] if names else []
    assert rules("serviceaccounts", **spec) == [*named, {"namespace": OWN, "labelSelector": NOT_MADE}]


@pytest.mark.parametrize(
    "spec", [{"baseRefs": [{"name": "b"}]}, {"template": {"serviceAccountName": "{{ .ObjectMeta.Name }}-x"}}]
)
def test_all_accounts_where_a_base_or_a_template_may_name_any(spec: Json) -> None:
    """It may name the account of another service, too."""
    assert rules("serviceaccounts", **spec) == [{"namespace": OWN}]


def test_pods_can_be_left_out() -> None:
    requested = customize(service(), settings=Settings(watch_pods=False))
    assert "pods" not in {rule["resource"] for rule in requested}


def scheduler(**config: Any) -> Json:
    return {"router": {"scheduler": {"config": config} if config else {}}}


CA_BUNDLE = {"namespace": OWN, "names": ["global-ca-bundle"]}
OPERATOR = {"namespace": SYSTEM, "names": ["inferenceservice-config"]}


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        (scheduler(ref={"name": "c", "key": "k"}), [OPERATOR, {"namespace": OWN, "names": ["c"]}]),
        (
            scheduler(ref={"name": "config-scheduler-x", "key": "k"}),
            [
                {"namespace": SYSTEM, "names": ["inferenceservice-config", "config-scheduler-x"]},
                {"namespace": OWN, "names": ["config-scheduler-x"]},
            ],
        ),
        (scheduler(inline={"kind": "X"}), [OPERATOR]),
        ({"baseRefs": [{"name": "b"}]}, [{"namespace": OWN}, {"namespace": SYSTEM}]),
        ({"baseRefs": [{"name": "b"}], **scheduler(inline={"kind": "X"})}, [OPERATOR, CA_BUNDLE]),
        ({"model": {"uri": "S3://b/m"}}, [OPERATOR, CA_BUNDLE]),
        ({"model": {"uri": "hf://o/m"}}, [OPERATOR]),
    ],
)
def test_config_maps_are_requested_by_name(spec: Json, wanted: list[Json]) -> None:
    """ConfigMaps are requested by name; with baseRefs, all of both namespaces, as a base may name any of them."""
    assert rules("configmaps", **spec) == wanted


@pytest.mark.parametrize("spec", [{"router": {"route": {}}}, {"baseRefs": [{"name": "b"}]}])
def test_gateways_of_all_namespaces_are_requested(spec: Json) -> None:
    """Gateways of all namespaces are requested, and the Services in front of them."""
    assert rules("gateways", **spec) == [{}]
    exists = {"key": "gateway.networking.k8s.io/gateway-name", "operator": "Exists"}
    assert rules("services", **spec) == [{"labelSelector": {"matchExpressions": [exists]}}, DEFAULT_GATEWAY]


DEFAULT_GATEWAY = {"namespace": SYSTEM, "names": ["kserve-ingress-gateway"]}
"""The Service in front of the default Gateway may have the same name and no label."""


def test_services_by_the_names_of_gateways() -> None:
    """For each Gateway in the spec, a Service of the same name is requested too."""
    refs = [{"name": "g", "namespace": "infra"}, {"name": "h"}, {"name": "i", "namespace": "infra"}]
    requested = rules("services", router={"route": {}, "gateway": {"refs": refs}})
    assert requested[2:] == [{"namespace": "infra", "names": ["g", "i"]}, {"namespace": OWN, "names": ["h"]}]


BASED = {"baseRefs": [{"name": "b"}]}


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"router": {"route": {}}}, []),
        ({"router": {"route": {"http": {"spec": {}}}}}, []),
        ({"router": {"route": {"http": {"refs": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}}}}, [["a", "b"]]),
        ({"router": {"route": {"http": {"refs": [{"name": "{{ .ObjectMeta.Name }}-x"}]}}}}, [None]),
        (BASED, [None]),
    ],
)
def test_routes_are_requested_by_name(spec: Json, wanted: list[list[str] | None]) -> None:
    """Routes are requested by name; if a base or a template may name any, all of the namespace are."""
    requested = rules("httproutes", **spec)
    assert requested == [{"namespace": OWN, **({"names": names} if names else {})} for names in wanted]


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({}, []),
        (scheduler(), []),
        ({"router": {"scheduler": {"pool": {"ref": {"name": "p"}}}}}, [{"namespace": OWN, "names": ["p"]}]),
        (BASED, [{"namespace": OWN}]),
    ],
)
def test_pools_that_are_referred_to_are_requested(spec: Json, wanted: list[Json]) -> None:
    """Only pools that the spec or a base may refer to are requested; managed pools are children."""
    assert rules("inferencepools", **spec) == wanted


def test_kinds_that_are_not_declared_are_not_asked_for() -> None:
    """A related rule for a kind that is not installed would make every sync fail."""
    parent = service(baseRefs=[{"name": "b"}], router={"route": {}, "scheduler": {}})
    kinds = {rule["resource"] for rule in customize(parent, optional=frozenset())}
    assert not kinds & {"gateways", "httproutes", "inferencepools", "services"}
    for kind, resource in (("HTTPRoute", "httproutes"), ("InferencePool", "inferencepools")):
        kinds = {rule["resource"] for rule in customize(parent, optional=frozenset({kind}))}
        assert resource in kinds


names = st.sampled_from(["default", "kserve", "other", "x"])
specs = st.fixed_dictionaries(
    {},
    optional={
        "baseRefs": st.lists(st.fixed_dictionaries({"name": names}), max_size=2),
        "router": st.fixed_dictionaries(
            {},
            optional={
                "route": st.just({}),
                "gateway": st.fixed_dictionaries(
                    {
                        "refs": st.lists(
                            st.fixed_dictionaries({"name": names}, optional={"namespace": names}), max_size=3
                        )
                    }
                ),
                "scheduler": st.fixed_dictionaries(
                    {},
                    optional={
                        "config": st.fixed_dictionaries({"ref": st.fixed_dictionaries({"name": names, "key": names})})
                    },
                ),
            },
        ),
    },
)


@given(specs)
def test_no_spec_reaches_into_a_foreign_namespace(spec: Json) -> None:
    """Secrets are never requested; from foreign namespaces only Gateways and their Services are."""
    for rule in customize(service(**spec), optional=OPTIONAL_KINDS):
        assert rule["resource"] != "secrets"
        assert not ("names" in rule and "labelSelector" in rule)
        if rule["resource"] not in ("gateways", "services"):
            assert rule["namespace"] in (OWN, SYSTEM)

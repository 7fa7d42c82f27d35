"""Rules of an LLMInferenceService, by their ids in KS-7.2, KS-7.3 and KS-7.6."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kserve.llminferenceservice.merged import check
from app.kserve.spec.effective import EffectiveSpec
from app.kube import field
from app.kube.base import Json
from app.limits import MAX_ADAPTERS
from tests.kserve.objects import admit, config, fields, service

WORKER: Json = {"worker": {"containers": [{"name": "main"}]}}
DATA: Json = {"data": 4, "dataLocal": 2}
ROUTE_SPEC = "spec.router.route.http.spec"
SCALING = "spec.scaling"
KEDA: Json = {"maxReplicas": 3, "minReplicas": 2}
MANY_ADAPTERS = [{"name": f"a{number}", "uri": "hf://a/b"} for number in range(MAX_ADAPTERS + 1)]


def route(**http: Any) -> Json:
    return {"route": {"http": http}}


def keda(**fields: Any) -> Json:
    return {**KEDA, "wva": {"keda": fields}}


ERRORS: dict[str, tuple[Json, list[tuple[str, str]]]] = {
    "KS-R01 routes of one's own beside a managed one": (
        {"router": route(refs=[{"name": "r"}], spec={})},
        [("spec.router.route.http", "Invalid")],
    ),
    "KS-R02 routes of one's own with the default gateway": (
        {"router": {**route(refs=[{"name": "r"}]), "gateway": {}}},
        [("spec.router.route.http.refs", "Invalid")],
    ),
    "KS-R01 and KS-R02 at once": (
        {"router": {**route(refs=[{"name": "r"}], spec={"parentRefs": [{"name": "g"}]}), "gateway": {}}},
        [("spec.router.route.http", "Invalid"), ("spec.router.route.http.refs", "Invalid")],
    ),
    "KS-R03c two sources of parents": (
        {"router": {**route(spec={"parentRefs": [{"name": "g"}]}), "gateway": {"refs": [{"name": "h"}]}}},
        [(ROUTE_SPEC, "Invalid")],
    ),
    "KS-P01 worker without parallelism": (WORKER, [("spec.worker", "Forbidden")]),
    "KS-P02 worker without a kind of parallelism that needs it": (
        {**WORKER, "parallelism": {"tensor": 2}},
        [("spec.worker", "Forbidden")],
    ),
    "KS-P03 two kinds of parallelism": (
        {**WORKER, "parallelism": {**DATA, "pipeline": 2}},
        [("spec.parallelism", "Invalid")],
    ),
    "KS-P03 data alone beside pipeline": (
        {"parallelism": {"data": 4, "pipeline": 2}},
        [("spec.parallelism", "Invalid")],
    ),
    "KS-P04 data alone": ({"parallelism": {"data": 4}}, [("spec.parallelism.dataLocal", "Invalid")]),
    "KS-P05 dataLocal alone": ({"parallelism": {"dataLocal": 4}}, [("spec.parallelism.data", "Invalid")]),
    "KS-P03 with a base": (
        {**WORKER, "parallelism": {**DATA, "pipeline": 2}, "baseRefs": [{"name": "b"}]},
        [("spec.parallelism", "Invalid")],
    ),
    "KS-P06 by the schema": ({"parallelism": {"pipeline": 0}}, [("spec.parallelism.pipeline", "Invalid")]),
    "KS-P01 of the prefill workload": ({"prefill": WORKER}, [("spec.prefill.worker", "Forbidden")]),
    "KS-P04 of the prefill workload": (
        {"prefill": {"parallelism": {"data": 4}}},
        [("spec.prefill.parallelism.dataLocal", "Invalid")],
    ),
    "KS-S01 no scheduler pods": (
        {"router": {"route": {}, "scheduler": {"replicas": 0}}},
        [("spec.router.scheduler.replicas", "Invalid")],
    ),
    "KS-S02 a configuration that says nothing": (
        {"router": {"scheduler": {"config": {}}}},
        [("spec.router.scheduler.config", "Invalid")],
    ),
    "KS-S03 two configurations": (
        {"router": {"scheduler": {"config": {"inline": {"a": 1}, "ref": {"name": "c", "key": "k"}}}}},
        [("spec.router.scheduler.config", "Invalid")],
    ),
    "KS-S04 an empty configuration": (
        {"router": {"scheduler": {"config": {"inline": {}}}}},
        [("spec.router.scheduler.config.inline", "Invalid")],
    ),
    "KS-S05 a reference without a name": (
        {"router": {"scheduler": {"config": {"ref": {"key": "k"}}}}},
        [("spec.router.scheduler.config.ref.name", "Invalid")],
    ),
    "KS-A01 replicas and scaling": (
        {"replicas": 1, "scaling": {"maxReplicas": 2, "wva": {"hpa": {}}}},
        [(SCALING, "Invalid")],
    ),
    "KS-A02 no upper limit": ({"scaling": {"wva": {"hpa": {}}}}, [(f"{SCALING}.maxReplicas", "Required")]),
    "KS-A03 limits the wrong way round": (
        {"scaling": {"minReplicas": 3, "maxReplicas": 2, "wva": {"hpa": {}}}},
        [(f"{SCALING}.minReplicas", "Invalid")],
    ),
    "KS-A04 no autoscaler": ({"scaling": {"maxReplicas": 2}}, [(f"{SCALING}.wva", "Required")]),
    "KS-A05 two actuators": (
        {"scaling": {"maxReplicas": 2, "wva": {"hpa": {}, "keda": {}}}},
        [(f"{SCALING}.wva", "Forbidden")],
    ),
    "KS-A06 no actuator": ({"scaling": {"maxReplicas": 2, "wva": {}}}, [(f"{SCALING}.wva", "Required")]),
    "KS-A07 by the schema": (
        {"scaling": {"maxReplicas": 2, "wva": {"hpa": {}, "variantCost": "-1"}}},
        [(f"{SCALING}.wva.variantCost", "Invalid")],
    ),
    "KS-A08 and KS-A09 what the autoscaler sets itself": (
        {
            "scaling": keda(
                advanced={"scalingModifiers": {"formula": "x"}, "horizontalPodAutoscalerConfig": {"name": "n"}}
            )
        },
        [
            (f"{SCALING}.wva.keda.advanced.scalingModifiers", "Forbidden"),
            (f"{SCALING}.wva.keda.advanced.horizontalPodAutoscalerConfig.name", "Forbidden"),
        ],
    ),
    "a negative idle number": (
        {"scaling": keda(idleReplicaCount=-1)},
        [(f"{SCALING}.wva.keda.idleReplicaCount", "Invalid")],
    ),
    "KS-A10 idle without a minimum": (
        {"scaling": {"maxReplicas": 2, "wva": {"keda": {"idleReplicaCount": 1}}}},
        [(f"{SCALING}.minReplicas", "Required")],
    ),
    "KS-A11 idle is not less than the minimum": (
        {"scaling": keda(idleReplicaCount=2)},
        [(f"{SCALING}.wva.keda.idleReplicaCount", "Invalid")],
    ),
    "a fallback that KEDA refuses": (
        {"scaling": keda(fallback={"failureThreshold": -1, "replicas": -1})},
        [
            (f"{SCALING}.wva.keda.fallback.failureThreshold", "Invalid"),
            (f"{SCALING}.wva.keda.fallback.replicas", "Invalid"),
        ],
    ),
    "scaling of the prefill workload": (
        {"prefill": {"scaling": {"maxReplicas": 2}}},
        [("spec.prefill.scaling.wva", "Required")],
    ),
    "an address without a scheme": ({"model": {"uri": "facebook/opt-125m"}}, [("spec.model.uri", "Invalid")]),
    "a scheme that is not supported": ({"model": {"uri": "ftp://b/m"}}, [("spec.model.uri", "Invalid")]),
    "an address that is no URL": ({"model": {"uri": "oci://image:tag"}}, [("spec.model.uri", "Invalid")]),
    "an adapter's address that is no URL": (
        {"model": {"uri": "hf://a/b", "lora": {"adapters": [{"name": "x", "uri": "hf://a b"}]}}},
        [("spec.model.lora.adapters[0].uri", "Invalid")],
    ),
    "more adapters than a child can hold": (
        {"model": {"uri": "hf://a/b", "lora": {"adapters": MANY_ADAPTERS}}},
        [("spec.model.lora.adapters", "TooMany")],
    ),
    "adapters that are no list": (
        {"model": {"uri": "hf://a/b", "lora": {"adapters": "x"}}},
        [("spec.model.lora.adapters", "TypeInvalid")],
    ),
    "adapters that are no models": (
        {"model": {"uri": "hf://a/b", "lora": {"adapters": ["x", {"name": "y", "uri": 5}]}}},
        [("spec.model.lora.adapters[0]", "TypeInvalid"), ("spec.model.lora.adapters[1].uri", "TypeInvalid")],
    ),
    "a mistake of the schema hides what a rule would make of it": (
        {"router": {"scheduler": {"config": {"ref": {"name": "c"}}}}},
        [("spec.router.scheduler.config.ref.key", "Required")],
    ),
    "a pool of one's own beside a managed one": (
        {
            "router": {
                "scheduler": {
                    "pool": {
                        "ref": {"name": "p"},
                        "spec": {
                            "selector": {"matchLabels": {"a": "b"}},
                            "targetPorts": [{"number": 1}],
                            "endpointPickerRef": {"name": "e", "port": {"number": 9002}},
                        },
                    }
                }
            }
        },
        [("spec.router.scheduler.pool", "Invalid")],
    ),
    "a template that cannot be read": (
        {"template": {"containers": [{"name": "main", "args": ["{{ if }}"]}]}},
        [("spec.template.containers[0].args[0]", "Invalid")],
    ),
    "a template that names what no service has": (
        {"annotations": {"note": "{{ .Nope }}"}},
        [("spec.annotations.note", "Invalid")],
    ),
    "a template of the service's own status": (
        {"annotations": {"note": "{{ .Status.URL }}"}},
        [("spec.annotations.note", "Invalid")],
    ),
    "two containers of one name": (
        {"template": {"containers": [{"name": "main"}, {"name": "main"}]}},
        [("spec.template.containers", "Duplicate")],
    ),
    "a port for TCP and for UDP": (
        {
            "template": {
                "containers": [
                    {"name": "main", "ports": [{"containerPort": 1}, {"containerPort": 1, "protocol": "UDP"}]}
                ]
            }
        },
        [("spec.template.containers[0].ports", "Duplicate")],
    ),
    "two listeners of one Gateway": (
        {"router": route(spec={"parentRefs": [{"name": "g", "sectionName": "a"}, {"name": "g", "sectionName": "b"}]})},
        [(f"{ROUTE_SPEC}.parentRefs", "Duplicate")],
    ),
    "a pool with a port twice": (
        {
            "router": {
                "scheduler": {
                    "pool": {
                        "spec": {
                            "selector": {"matchLabels": {"a": "b"}},
                            "targetPorts": [{"number": 8000}, {"number": 8000}],
                            "endpointPickerRef": {"name": "picker", "port": {"number": 9002}},
                        }
                    }
                }
            }
        },
        [("spec.router.scheduler.pool.spec.targetPorts", "Invalid")],
    ),
    "a rule of the Gateway API": (
        {"router": route(spec={"rules": [{"backendRefs": [{"name": "svc"}]}]})},
        [(f"{ROUTE_SPEC}.rules[0].backendRefs[0]", "Invalid")],
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_each_mistake_is_an_error_at_its_field(case: str) -> None:
    """Each mistake is reported at its field, with Kubernetes' type of error."""
    spec, expected = ERRORS[case]
    assert fields(service(**spec)) == expected


VALID: dict[str, Json] = {
    "the least": {},
    "no model": {"uri": None},
    "worker with data parallelism": {**WORKER, "parallelism": DATA},
    "worker with pipeline parallelism": {**WORKER, "parallelism": {"pipeline": 2}},
    "worker with the parallelism of a base": {**WORKER, "baseRefs": [{"name": "b"}]},
    "worker with a part of the parallelism of a base": {
        **WORKER,
        "parallelism": {"data": 4, "tensor": 2},
        "baseRefs": [{"name": "b"}],
    },
    "fewer copies than a node holds": {**WORKER, "parallelism": {"data": 1, "dataLocal": 8}},
    "copies that do not divide": {**WORKER, "parallelism": {"data": 10, "dataLocal": 3}},
    "parallelism without worker": {"parallelism": DATA},
    "prefill: an empty object is enough": {"prefill": {}},
    "only an upper limit": {"scaling": {"maxReplicas": 2, "wva": {"hpa": {}}}},
    "a cost in whole numbers": {"scaling": {"maxReplicas": 2, "wva": {"hpa": {}, "variantCost": "10"}}},
    "KEDA's modifiers, empty": {"scaling": keda(advanced={"scalingModifiers": {}})},
    "idle below the minimum": {"scaling": keda(idleReplicaCount=1)},
    "idle at zero": {"scaling": keda(idleReplicaCount=0)},
    "routes of one's own": {"router": route(refs=[{"name": "r"}])},
    "routes of one's own with a gateway": {
        "router": {**route(refs=[{"name": "r"}]), "gateway": {"refs": [{"name": "g"}]}}
    },
    "a managed route at a gateway of one's own": {"router": {"route": {}, "gateway": {"refs": [{"name": "g"}]}}},
    "two backends of one port in a rule": {
        "router": route(spec={"rules": [{"backendRefs": [{"name": "a", "port": 80}, {"name": "b", "port": 80}]}]})
    },
    "any scheme without the initializer": {"model": {"uri": "gs://b/m"}, "storageInitializer": {"enabled": False}},
    "any scheme with a base": {"model": {"uri": "gs://b/m"}, "baseRefs": [{"name": "b"}]},
    "a template of a service's own": {
        "template": {"containers": [{"name": "main", "args": ["{{ .Spec.Model.Name }}"]}]}
    },
    "a template of what a base may set": {"annotations": {"size": "{{ .Spec.Parallelism.Data }}"}},
    "ingress": {"router": {"ingress": {"refs": [{"name": "i"}]}}},
}


@pytest.mark.parametrize("case", VALID)
def test_what_upstream_serves_is_accepted(case: str) -> None:
    """Specs that upstream accepts and serves are accepted."""
    assert fields(service(**VALID[case])) == []


@pytest.mark.parametrize("name", ["7b-model", "a" * 64, "with.dot", "Upper"])
def test_names_that_no_service_object_can_have(name: str) -> None:
    """The workload Service has the service's name, which must therefore be a valid Service name."""
    assert fields(service(name)) == [("metadata.name", "Invalid")]


def test_all_errors_at_once() -> None:
    """Errors are ordered: router, parallelism, scheduler, scaling."""
    spec: Json = {
        "scaling": {"maxReplicas": 1, "wva": {}},
        "router": {**route(refs=[{"name": "r"}], spec={}), "scheduler": {"replicas": -1}},
        "parallelism": {"data": 1},
    }
    assert [path for path, _ in fields(service(**spec))] == [
        "spec.router.route.http",
        "spec.parallelism.dataLocal",
        "spec.router.scheduler.replicas",
        "spec.scaling.wva",
    ]


SIZES: list[tuple[Json | None, Json | None, bool]] = [
    ({"data": 1, "dataLocal": 8}, {"data": 8, "dataLocal": 1}, False),
    ({"data": 16, "dataLocal": 8}, {"data": 32, "dataLocal": 16}, True),
    (None, {"data": 4, "dataLocal": 1}, False),
    (None, {"tensor": 4}, True),
    ({"tensor": 1}, {"tensor": 4}, True),
    ({"pipeline": 2}, {"pipeline": 3}, False),
    ({"pipeline": 2}, {"data": 4, "dataLocal": 2}, True),
]


@pytest.mark.parametrize("base", ["spec", "spec.prefill"])
@pytest.mark.parametrize(("before", "after", "allowed"), SIZES)
def test_the_group_size_cannot_change(base: str, before: Json | None, after: Json | None, allowed: bool) -> None:
    """The number of pods per replica is immutable; the settings that it results from are not (KS-IM01)."""

    def document(parallelism: Json | None) -> Json:
        workload = {"parallelism": parallelism} if parallelism else {}
        return service(**(workload if base == "spec" else {"prefill": workload}))

    expected = [] if allowed else [(f"{base}.parallelism", "NotSupported")]
    assert fields(document(after), document(before)) == expected


def test_prefill_may_come_and_go() -> None:
    """The group size of prefill is only compared if both the old and the new spec have prefill."""
    with_prefill = service(prefill={"parallelism": DATA})
    assert fields(with_prefill, service()) == []
    assert fields(service(), with_prefill) == []


def test_an_old_mistake_does_not_block_an_update() -> None:
    """A mistake that the stored object already has is only a warning."""
    before, after = service(model={"uri": "ftp://b/m"}), service(model={"uri": "ftp://b/m"}, replicas=2)
    verdict = admit(after, before)
    assert verdict.errors == []
    assert any("unchanged from before" in warning for warning in verdict.warnings)


# The merged spec.


def _merged_errors(document: Json) -> list[field.Error]:
    return list(check(EffectiveSpec.model_validate(document), based=False))


@pytest.mark.parametrize(
    "case",
    [
        case
        for case in ERRORS
        if case.startswith(("KS-R01 routes", "KS-R02", "KS-P01 worker", "KS-P03", "KS-S", "KS-A01", "KS-A10", "KS-A11"))
    ],
)
def test_the_merged_spec_is_judged_by_the_same_rules(case: str) -> None:
    """These rules also apply to the merged spec (KS-2.1 step 13)."""
    spec, expected = ERRORS[case]
    assert [(str(e.path), e.type.value.removeprefix("FieldValue")) for e in _merged_errors(spec)] == expected


@pytest.mark.parametrize(("inline", "valid"), [("{}", False), ("a: 1", True), ({"a": 1}, True)])
def test_accepts_a_scheduler_configuration_as_string(inline: Any, valid: bool) -> None:
    """A merged spec holds a configuration from a ConfigMap as a string."""
    assert (_merged_errors({"router": {"scheduler": {"config": {"inline": inline}}}}) == []) is valid


def test_contents_of_pods_and_routes_do_not_matter_to_the_merged_rules() -> None:
    """Pods and routes of the merged spec are validated elsewhere, or were rewritten."""
    spec = {
        "template": {"containers": 5},
        "router": {"route": {"http": {"spec": {"parentRefs": [{"name": "g"}]}}}, "gateway": {"refs": [{"name": "g"}]}},
    }
    assert _merged_errors(spec) == []


# Robustness.

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
_KEYS = st.sampled_from(
    ["model", "template", "worker", "prefill", "router", "parallelism", "scaling", "labels", "baseRefs", "replicas"]
)


@given(st.dictionaries(_KEYS, _JSON, max_size=5))
def test_any_json_is_answered(spec: Json) -> None:
    """Any JSON gets a verdict, never an exception."""
    for document in (service(uri=None, **spec), config(**spec)):
        assert all(str(error.path) for error in admit(document).errors)

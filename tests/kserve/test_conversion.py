"""Conversion between v1alpha1 and v1alpha2: lossless, without additions, and with an error if it is impossible."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.conversion import ConversionError
from app.desk.cluster.kinds import find_version
from app.hooks.answer import answer_sync
from app.kserve.conversion import OBSOLETE, PRESERVED_PORTS, V1ALPHA1, V1ALPHA2, convert
from app.kube.base import Json
from app.settings import Settings
from tests.builders import NOW
from tests.contract.test_conversions import semantic
from tests.hookcalls import admit, condition, sync
from tests.kserve.objects import SERVICE_KIND, Cluster, config, service


def older(document: Json) -> Json:
    return {**document, "apiVersion": V1ALPHA1}


def pool(**spec: Any) -> Json:
    return {"scheduler": {"pool": {"spec": spec}}}


texts = st.sampled_from(["a", "b", "9", ""])
labels = st.dictionaries(texts, texts, max_size=2)
criticalities = st.sampled_from(["Critical", "Standard", "Sheddable", ""])
ports = st.integers(1, 65535)
pods = st.fixed_dictionaries(
    {}, optional={"containers": st.lists(st.just({"name": "main"}), max_size=1), "nodeSelector": labels}
)
workload: Any = {"replicas": st.integers(0, 2), "labels": labels, "template": pods, "worker": pods}
scaling = st.fixed_dictionaries(
    {"maxReplicas": st.integers(1, 3)},
    optional={
        "wva": st.fixed_dictionaries(
            {},
            optional={
                "variantCost": st.sampled_from(["", "10.0"]),
                "keda": st.fixed_dictionaries(
                    {},
                    optional={
                        "advanced": st.fixed_dictionaries(
                            {},
                            optional={
                                "scalingModifiers": st.fixed_dictionaries({}, optional={"formula": texts}),
                                "restoreToOriginalReplicaCount": st.booleans(),
                            },
                        )
                    },
                ),
            },
        )
    },
)
picker: Any = {
    "group": st.sampled_from(["", "example.com"]),
    "kind": st.sampled_from(["Service", "Other"]),
    "failureMode": st.sampled_from(["FailOpen", "FailClose"]),
}
old_pools = st.fixed_dictionaries(
    {
        "selector": labels,
        "targetPortNumber": ports,
        "extensionRef": st.fixed_dictionaries({"name": st.just("epp")}, optional={**picker, "portNumber": ports}),
    }
)
new_pools = st.fixed_dictionaries(
    {
        "selector": st.fixed_dictionaries({"matchLabels": labels}),
        "targetPorts": st.lists(ports.map(lambda n: {"number": n}), min_size=1, max_size=8, unique_by=str),
        "endpointPickerRef": st.fixed_dictionaries(
            {"name": st.just("epp")}, optional={**picker, "port": st.fixed_dictionaries({"number": ports})}
        ),
    },
    optional={"appProtocol": st.just("http")},
)


def specs(adapter: Any, model: Any, pool_spec: Any) -> st.SearchStrategy[Json]:
    lora = st.fixed_dictionaries({}, optional={"adapters": st.lists(adapter, max_size=12)})
    router = st.fixed_dictionaries(
        {},
        optional={
            "route": st.just({}),
            "gateway": st.fixed_dictionaries({}, optional={"refs": st.lists(st.just({"name": "g"}), max_size=1)}),
            "scheduler": st.fixed_dictionaries(
                {},
                optional={
                    "pool": st.fixed_dictionaries({}, optional={"spec": pool_spec}),
                    "config": st.sampled_from(
                        [{"inline": {"a": [None, [], {}, ""]}}, {"ref": {"name": "", "key": "k"}}]
                    ),
                },
            ),
        },
    )
    return st.fixed_dictionaries(
        {},
        optional={
            **workload,
            "model": st.fixed_dictionaries({"uri": texts}, optional={**model, "name": texts, "lora": lora}),
            "prefill": st.fixed_dictionaries({}, optional={**workload, "scaling": scaling}),
            "scaling": scaling,
            "router": router,
            "baseRefs": st.lists(st.just({"name": "b"}), max_size=1),
            "parallelism": st.fixed_dictionaries({}, optional={"tensor": st.just(1), "expert": st.booleans()}),
        },
    )


adapters = st.fixed_dictionaries({"uri": texts}, optional={"name": texts})
old_adapters = st.fixed_dictionaries({"uri": texts}, optional={"name": texts, "criticality": criticalities})
internal = st.dictionaries(
    st.sampled_from(
        ["internal.serving.kserve.io/model-criticality", "internal.serving.kserve.io/lora-criticalities", "x/y"]
    ),
    st.sampled_from(["Critical", '{"0":"Critical"}', '{"1":"x","7":"y"}', "{bad", "[]", "{}", ""]),
    max_size=3,
)


@given(specs(old_adapters, {"criticality": criticalities}, old_pools))
def test_the_older_version_comes_back(spec: Json) -> None:
    document = older(service(**spec))
    written = copy.deepcopy(document)
    there = convert(document, V1ALPHA2)
    assert document == written, "the input is not touched"
    assert semantic(convert(there, V1ALPHA1)) == semantic(document)


@given(specs(adapters, {}, new_pools), internal)
def test_the_newer_version_comes_back(spec: Json, annotations: dict[str, str]) -> None:
    document = service(notes=annotations, **spec)
    assert semantic(convert(convert(document, V1ALPHA1), V1ALPHA2)) == semantic(document)


def test_everything_but_spec_and_annotations_stays() -> None:
    """The API server refuses a conversion that changes other metadata or the status."""
    document = older(service(notes={"x": "y"}, model={"uri": "hf://a/b", "criticality": "Critical"}))
    document["metadata"] |= {"resourceVersion": "7", "managedFields": [{"manager": "kubectl"}], "finalizers": ["f"]}
    document["status"] = {"url": "http://x", "unknown": [1]}
    converted = convert(document, V1ALPHA2)
    assert converted["status"] == document["status"]
    annotations = converted["metadata"].pop("annotations")
    assert annotations == {"x": "y", "internal.serving.kserve.io/model-criticality": "Critical"}
    assert converted["metadata"] == {k: v for k, v in document["metadata"].items() if k != "annotations"}


def test_target_ports_survive_a_change_of_the_first() -> None:
    """v1alpha1 has one port, which its clients may change; the other ports are kept without duplicates."""
    spec = {"selector": {"matchLabels": {"a": "b"}}, "targetPorts": [{"number": n} for n in (8000, 8001, 8002)]}
    document = service(router=pool(**spec, endpointPickerRef={"name": "e"}))
    there = convert(document, V1ALPHA1)
    assert json.loads(there["metadata"]["annotations"][PRESERVED_PORTS]) == [{"number": 8001}, {"number": 8002}]
    there["spec"]["router"]["scheduler"]["pool"]["spec"]["targetPortNumber"] = 8002
    back = convert(there, V1ALPHA2)["spec"]["router"]["scheduler"]["pool"]["spec"]
    assert back["targetPorts"] == [{"number": 8002}, {"number": 8001}]


def test_ports_of_a_pool_that_is_gone_are_forgotten() -> None:
    there = older(service(notes={PRESERVED_PORTS: '[{"number":1}]'}))
    assert "annotations" not in convert(there, V1ALPHA2)["metadata"]


def test_app_protocol_survives_a_write_in_the_older_version() -> None:
    """v1alpha1 lacks this field."""
    document = service(router=pool(selector={"matchLabels": {"a": "b"}}, appProtocol="http"))
    other = convert(document, V1ALPHA1)
    assert other["spec"]["router"]["scheduler"]["pool"]["spec"].keys() == {"selector", "extensionRef"}
    back = convert(other, V1ALPHA2)
    assert back["spec"]["router"]["scheduler"]["pool"]["spec"]["appProtocol"] == "http"
    assert "annotations" not in back["metadata"]


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "{",
            "7",
            "null",
            '["x"]',
            '[{"number":"x"}]',
            '[{"number":true}]',
            '[{"number":1.5}]',
            '[{"number":-5}]',
        ),
        *('[{"number":0}]', '[{"number":65536}]', "[[null]]", '[{"name":"a"}]', json.dumps([{"number": 1}] * 8)),
    ],
)
def test_ports_that_v1alpha2_does_not_admit_are_ignored(text: str) -> None:
    """Users can write the annotation, and no schema validates it."""
    spec = {"selector": {}, "targetPortNumber": 5, "extensionRef": {"name": "e"}}
    converted = convert(older(service(notes={PRESERVED_PORTS: text}, router=pool(**spec))), V1ALPHA2)
    assert converted["spec"]["router"]["scheduler"]["pool"]["spec"]["targetPorts"] == [{"number": 5}]


def test_other_ports_of_an_annotation_are_plain_and_unique() -> None:
    """Fields of a port that the schema lacks are dropped."""
    annotation = '[{"number":6,"x":"y"},{"number":6},{"number":5},{"number":7}]'
    spec = {"selector": {}, "targetPortNumber": 5, "extensionRef": {"name": "e"}}
    converted = convert(older(service(notes={PRESERVED_PORTS: annotation}, router=pool(**spec))), V1ALPHA2)
    ports = converted["spec"]["router"]["scheduler"]["pool"]["spec"]["targetPorts"]
    assert ports == [{"number": 5}, {"number": 6}, {"number": 7}]


POOL = ["router", "scheduler", "pool", "spec"]


@pytest.mark.parametrize(
    "value",
    [
        json.dumps([[["replicas"], 0]]),
        json.dumps([[["router"], []]]),
        json.dumps([[["model"], None]]),
        json.dumps([[["model", "uri"], "hf://other/model"]]),
        json.dumps([[["template", "containers", 0, "args", 0, "x"], 1]] * 5000),
        json.dumps([[[*POOL, "targetPorts"], [{"number": 8000}, {"number": -5}]]]),
        json.dumps([[[*POOL, "selector", "matchExpressions"], [{"key": "a", "operator": "Bad"}]]]),
        json.dumps([[["evil"], {"a": 1}]]),
        json.dumps([[[], {}], "x"]),
        "{",
    ],
)
@pytest.mark.parametrize("version", [V1ALPHA1, V1ALPHA2])
def test_the_annotation_of_earlier_releases_is_ignored_and_removed(value: str, version: str) -> None:
    """It could set any field; stored objects that have it convert as if they did not."""
    other = V1ALPHA2 if version == V1ALPHA1 else V1ALPHA1
    document, plain = service(notes={"x": "y", OBSOLETE: value}), service(notes={"x": "y"})
    assert convert({**document, "apiVersion": version}, other) == convert({**plain, "apiVersion": version}, other)


@pytest.mark.parametrize(
    ("version", "spec"),
    [
        (V1ALPHA1, {"targetPorts": [{"number": -5}], "appProtocol": "gopher", "endpointPickerRef": {"name": "x"}}),
        (V1ALPHA1, {"selector": {"a": "b"}, "extensionRef": {"name": "e", "port": {"number": -5}}}),
        (V1ALPHA2, {"targetPortNumber": -5, "extensionRef": {"name": "x", "portNumber": -5}}),
        (V1ALPHA2, {"selector": {"matchLabels": {"a": "b"}}, "endpointPickerRef": {"name": "e", "portNumber": -5}}),
    ],
)
def test_fields_of_the_other_version_are_dropped(version: str, spec: Json) -> None:
    """The schema of the object's version lacks these fields, so they were never validated."""
    other = V1ALPHA2 if version == V1ALPHA1 else V1ALPHA1
    converted = convert({**service(router=pool(**spec)), "apiVersion": version}, other)
    assert not any(word in json.dumps(converted) for word in ("-5", "gopher", '"x"'))


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (service() | {"kind": "InferenceService"}, "cannot convert InferenceService of"),
        (service() | {"apiVersion": "serving.kserve.io/v1beta1"}, "of serving.kserve.io/v1beta1 to"),
        (service() | {"spec": "x"}, "spec must be an object"),
        (service() | {"metadata": []}, "metadata must be an object"),
        (service(router=[]), "spec.router must be an object"),
        (service(router=pool(targetPorts="x")), "targetPorts must be a list"),
        (service(router=pool(targetPorts=["x"])), r"targetPorts\[0\] must be an object"),
        (service(router=pool(selector="x")), "selector must be an object"),
    ],
)
def test_what_cannot_be_converted_is_refused(document: Json, reason: str) -> None:
    with pytest.raises(ConversionError, match=reason):
        convert(document, V1ALPHA1)


def test_no_other_version_is_made() -> None:
    with pytest.raises(ConversionError, match=r"cannot convert LLMInferenceService of .* to serving.kserve.io/v1$"):
        convert(service(), "serving.kserve.io/v1")


@pytest.mark.parametrize("adapters", ["x", [1], [{"criticality": 7}, None]])
def test_adapters_may_be_anything(adapters: Any) -> None:
    """The schema leaves adapters open; one that is malformed must not break a list of services."""
    document = service(model={"uri": "hf://a/b", "lora": {"adapters": adapters}})
    for version, other in ((V1ALPHA1, V1ALPHA2), (V1ALPHA2, V1ALPHA1)):
        there = convert({**document, "apiVersion": version}, other)
        assert convert(there, version)["spec"] == document["spec"]


def test_hooks_take_a_parent_of_either_version() -> None:
    """Related objects have the parent's version; the answers for both versions are equal."""
    base = config(
        "base",
        model={"uri": "hf://a/b"},
        router=pool(selector={"matchLabels": {"a": "b"}}, targetPorts=[{"number": 9000}]),
    )
    parent = service(baseRefs=[{"name": "base"}], router={"scheduler": {}})
    expected = Cluster(parent, base).sync()
    assert len(expected["children"]) > 1
    cluster = Cluster(convert(parent, V1ALPHA1), convert(base, V1ALPHA1))
    assert cluster.sync() == expected
    assert cluster.child("InferencePool", "demo-inference-pool")["spec"]["targetPorts"] == [{"number": 9000}]


def test_a_parent_that_cannot_be_converted_is_judged_as_it_is() -> None:
    """Its status names the field, and its children are kept."""
    request = {"parent": older(service(router=[])), "children": {}, "related": {}, "finalizing": False}
    status = json.loads(answer_sync(SERVICE_KIND, json.dumps(request).encode(), Settings(), NOW))["status"]
    (ready,) = [c for c in status["conditions"] if c["type"] == "Ready"]
    assert "spec.router" in ready["message"]


def test_a_picker_that_v1alpha1_admits_is_valid_in_the_other_version() -> None:
    """v1alpha2's schema requires a port, but a stored object without one keeps its children."""
    spec = {"selector": {"app": "x"}, "targetPortNumber": 8000, "extensionRef": {"name": "picker"}}
    written = older(service(router=pool(**spec)))
    stored = convert(written, V1ALPHA2)
    for document in (written, stored):
        kind = find_version(document["apiVersion"], document["kind"])
        assert kind is not None
        assert admit(kind, document).errors == []
    assert condition(sync(SERVICE_KIND, stored), "Ready")["reason"] != "InvalidSpec"

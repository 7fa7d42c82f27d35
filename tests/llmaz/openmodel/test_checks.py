"""Admission of OpenModels (LZ-OM01 to LZ-OM11, LZ-6.4)."""

from __future__ import annotations

from typing import Any

import pytest

from app.kube.base import Json
from tests.llmaz.world import OPEN_MODEL, admit, model, model_at, paths, sync

HUB = "spec.source.modelHub"

ACCEPTED: dict[str, Json] = {
    "a repository": model(),
    "ModelScope": model(source={"modelHub": {"name": "ModelScope", "modelID": "a/b"}}),
    "one file": model(source={"modelHub": {"modelID": "a/b", "filename": "f.gguf"}}),
    "patterns": model(source={"modelHub": {"modelID": "a/b", "allowPatterns": ["*"], "ignorePatterns": ["x"]}}),
    "an object store": model_at("oss://bucket.endpoint/models/meta-llama-3-8B"),
    "Google's own word": model_at("gs://bucket/models/x"),
    "an image": model_at("oci://registry.example.com:5000/models/qwen2:0.5b"),
    "a file of an image": model_at("OCI://qwen2@sha256:" + "a" * 64 + "#/weights/q4.gguf"),
    "the node": model_at("host:///models/meta-llama-3-8B"),
    "eight flavors": model(inferenceConfig={"flavors": [{"name": str(n)} for n in range(8)]}),
    "a name with two dashes": model("qwen2-0--5b"),
}


@pytest.mark.parametrize("item", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_what_works_upstream_is_accepted(item: Json) -> None:
    """Upstream accepts these objects, and they can work."""
    assert paths(admit(OPEN_MODEL, item)) == []


def hub(**fields: Any) -> Json:
    return model(source={"modelHub": {"modelID": "a/b", **fields}})


REFUSED: dict[str, tuple[Json, list[str]]] = {
    "LZ-OM01 a dot in the name": (model("qwen-2-0.5b"), ["metadata.name"]),
    "LZ-OM06 a pattern in place of a file": (hub(filename="*-q4.gguf"), [f"{HUB}.filename"]),
    "LZ-OM02 no source": (model(source={}), ["spec.source"]),
    "LZ-OM03 no protocol": (model_at("invalid"), ["spec.source.uri"]),
    "LZ-OM04 an unknown protocol": (model_at("unknown://a/b"), ["spec.source.uri"]),
    "LZ-OM05 no dot": (model_at("oss://endpoint/models/x"), ["spec.source.uri"]),
    "LZ-OM06 one file of ModelScope": (hub(name="ModelScope", filename="f"), [f"{HUB}.filename"]),
    "LZ-OM07, LZ-OM08 patterns beside a file": (
        hub(filename="f", allowPatterns=[], ignorePatterns=["x"]),
        [f"{HUB}.allowPatterns", f"{HUB}.ignorePatterns"],
    ),
    "LZ-OM09 an unknown hub": (hub(name="huggingface"), [f"{HUB}.name"]),
    "LZ-OM10 nine flavors": (
        model(inferenceConfig={"flavors": [{"name": str(n)} for n in range(9)]}),
        ["spec.inferenceConfig.flavors"],
    ),
    "LZ-OM11 nothing at all": (model(familyName=None, source=None), ["spec.familyName", "spec.source"]),
    "LZ-N11 no repository": (model(source={"modelHub": {}}), [f"{HUB}.modelID"]),
    "LZ-N13 a family that is no label": (model(familyName="a b!"), ["spec.familyName"]),
    "LZ-N16 an empty bucket": (model_at("s3:///x"), ["spec.source.uri"]),
    "a fraction without quotes": (
        model(inferenceConfig={"flavors": [{"name": "a", "limits": {"cpu": 0.5}}]}),
        ["spec.inferenceConfig.flavors[0].limits.cpu"],
    ),
    "half a GPU": (
        model(inferenceConfig={"flavors": [{"name": "a", "limits": {"nvidia.com/gpu": "0.5"}}]}),
        ["spec.inferenceConfig.flavors[0].limits[nvidia.com/gpu]"],
    ),
    "GPUs without a domain": (
        model(inferenceConfig={"flavors": [{"name": "a", "limits": {"gpu": 1}}]}),
        ["spec.inferenceConfig.flavors[0].limits[gpu]"],
    ),
    "a label that no node can have": (
        model(inferenceConfig={"flavors": [{"name": "a", "nodeSelector": {"a b": "x", "c": "y z"}}]}),
        ["spec.inferenceConfig.flavors[0].nodeSelector", "spec.inferenceConfig.flavors[0].nodeSelector[c]"],
    ),
    "an image in capitals": (model_at("oci://registry.example.com/Qwen:1"), ["spec.source.uri"]),
    "a path out of the image": (model_at("oci://example/qwen:1#/models/../etc"), ["spec.source.uri"]),
    "several at once": (model(familyName="!", source={"uri": "x"}), ["spec.familyName", "spec.source.uri"]),
}


@pytest.mark.parametrize(("item", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_all_mistakes_are_refused_at_once(item: Json, want: list[str]) -> None:
    """All errors of an object are reported at once, each at the field to change."""
    assert paths(admit(OPEN_MODEL, item)) == want


def test_name_is_not_judged_on_updates() -> None:
    """An object whose name breaks the rule can still be updated."""
    old, new = model("qwen-2-0.5b"), model("qwen-2-0.5b", familyName="other")
    assert paths(admit(OPEN_MODEL, new, old)) == []


def test_spec_absent() -> None:
    """The required fields are reported if the spec is empty."""
    item = {**model(), "spec": {}}
    assert paths(admit(OPEN_MODEL, item)) == ["spec.familyName", "spec.source"]


def params(**given: str) -> Json:
    """Return a model with one flavor of four GPUs and these params."""
    return model(inferenceConfig={"flavors": [{"name": "a", "limits": {"nvidia.com/gpu": 4}, "params": given}]})


WARNED = {
    "LZ-N10 two sources": (model(source={"modelHub": {"modelID": "a/b"}, "uri": "s3://b/x"}), "spec.source.uri"),
    "LZ-N12 a flavor twice": (model(inferenceConfig={"flavors": [{"name": "a"}, {"name": "a"}]}), "flavors[1].name"),
    "LZ-T23 a directory with a dot": (model_at("oss://b.e/models/Qwen2.5-7B"), "spec.source.uri"),
    "LZ-T23 a trailing slash": (model_at("oss://b.e/models/"), "spec.source.uri"),
    "LZ-N34 a degree that is no number": (params(TP="four"), '"four" stops Playgrounds that use it'),
    "LZ-N34 a split over other devices": (params(TP="2", PP="1"), "TP 2 times PP 1 is not the number of devices"),
    "a word of the model's": (params(ModelPath="x"), "params[ModelPath]: ignored"),
    "a name that no placeholder has": (params(**{"a b": "x"}), "params[a b]: no placeholder can have this name"),
    "thousandths of a byte": (
        model(inferenceConfig={"flavors": [{"name": "a", "limits": {"memory": "16m"}}]}),
        "flavors[0].limits.memory: 16m is 0.016 bytes; did you mean 16M or 16Mi?",
    ),
    "a misspelt device": (
        model(inferenceConfig={"flavors": [{"name": "a", "limits": {"nvidia.com/gpus": 1}}]}),
        'limits[nvidia.com/gpus]: no known device has this name; did you mean "nvidia.com/gpu"?',
    ),
    "the address of a repository": (
        hub(modelID="https://huggingface.co/facebook/opt-125m"),
        "spec.source.modelHub.modelID: an address, not a repository; did you mean facebook/opt-125m?",
    ),
    "a comma in a pattern": (hub(allowPatterns=["a,b"]), "allowPatterns[0]"),
    "an unknown field": (model(familyname="x"), 'did you mean "familyName"?'),
}


@pytest.mark.parametrize(("item", "part"), WARNED.values(), ids=WARNED.keys())
def test_what_is_accepted_with_a_bad_effect_is_warned_of(item: Json, part: str) -> None:
    """The object is accepted with a warning."""
    verdict = admit(OPEN_MODEL, item)
    assert verdict.errors == []
    assert any(part in warning for warning in verdict.warnings), verdict.warnings


def test_fitting_params() -> None:
    """A split over all devices and params for other programs cause no warning."""
    assert admit(OPEN_MODEL, params(**{"TP": "2", "PP": "2", "INSTANCE-TYPE": "p4d.24xlarge"})).warnings == []
    (warning,) = admit(OPEN_MODEL, params(**{"INSTANCE-TYPE": "p4d 24xlarge"})).warnings
    assert "params[INSTANCE-TYPE]: not a valid label value, so it selects no nodes" in warning


def test_status_tells_validity() -> None:
    """Ready depends on whether the spec is valid, not on the users of the object."""
    good = sync(OPEN_MODEL, {**model(), "metadata": {"name": "opt", "uid": "u"}})
    bad = sync(OPEN_MODEL, {**model_at("x"), "metadata": {"name": "opt", "uid": "u"}})
    assert [c["status"] for c in good["status"]["conditions"]] == ["True"]
    told = [(c["type"], c["status"], c["reason"]) for c in bad["status"]["conditions"]]
    assert told == [("Ready", "False", "InvalidSpec"), ("Stalled", "True", "InvalidSpec")]
    assert "spec.source.uri" in bad["status"]["conditions"][0]["message"]

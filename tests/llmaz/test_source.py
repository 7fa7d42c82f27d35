"""Where weights are, and where an engine finds them (LZ-2.1 to LZ-2.3)."""

from __future__ import annotations

import pytest

from app.llmaz import source
from app.llmaz.openmodel.types import ModelHub, ModelSource

HUB = {
    "a repository": ({}, "/workspace/models/models--meta-llama--Meta-Llama-3-8B"),
    "one file of it": ({"filename": "q5.gguf"}, "/workspace/models/q5.gguf"),
}


@pytest.mark.parametrize(("given", "path"), HUB.values(), ids=HUB.keys())
def test_hub(given: dict[str, str], path: str) -> None:
    """Loaded to a path of its own; an engine that loads by itself gets the bare name, whatever the file."""
    hub = ModelHub.model_validate({"modelID": "meta-llama/Meta-Llama-3-8B", **given})
    found = source.read(ModelSource(model_hub=hub))
    assert found.path(skip=False) == path
    assert found.path(skip=True) == "meta-llama/Meta-Llama-3-8B"


URIS = {
    "oss directory": ("oss://bucket.endpoint/modelPath/subPath", "/workspace/models/models--subPath"),
    "oss file": ("oss://bucket.endpoint/modelPath/weight.gguf", "/workspace/models/weight.gguf"),
    "the protocol's case does not matter": ("OSS://bucket.endpoint/a/b", "/workspace/models/models--b"),
    "gguf anywhere in the path": ("s3://bucket/x.gguf.d/part", "/workspace/models/part"),
    "gcs": ("gcs://bucket/a/b", "/workspace/models/models--b"),
    "a trailing slash leaves no name": ("oss://b.e/p/", "/workspace/models/models--"),
}


@pytest.mark.parametrize(("uri", "path"), URIS.values(), ids=URIS.keys())
def test_object_stores(uri: str, path: str) -> None:
    """The last segment counts; an engine that loads by itself gets the URI untouched."""
    found = source.parse_uri(uri)
    assert found.path(skip=False) == path
    assert found.path(skip=True) == uri


def test_oss_parts() -> None:
    """The bucket ends at the first dot anywhere, the endpoint at the first slash after it."""
    found = source.parse_uri("oss://bucket.oss-eu.example.com/models/v1.0/x")
    assert found == source.ObjectStore(
        "oss", "bucket", "oss-eu.example.com", "models/v1.0/x", "oss://bucket.oss-eu.example.com/models/v1.0/x"
    )


def test_host() -> None:
    """A path of the node is the same with and without the loader."""
    found = source.parse_uri("host:///srv/models/m")
    assert (found.path(skip=False), found.path(skip=True)) == ("/srv/models/m", "/srv/models/m")


def test_ollama() -> None:
    """The address is ollama's own name for the model."""
    found = source.parse_uri("ollama://qwen2:0.5b")
    assert isinstance(found, source.Ollama)
    assert found.name == "qwen2:0.5b"


def test_hub_wins() -> None:
    """With both forms, the hub counts."""
    both = ModelSource.model_validate({"modelHub": {"modelID": "a/b"}, "uri": "s3://bucket/x"})
    assert isinstance(source.read(both), source.Hub)


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "invalid_uri",
        "oss://a://b",
        "gs://b/p",
        "hf://a/b",
        "oss://endpoint/model/to/path",
        "oss://bucket.endpoint",
        "oss://.e/x",
        "oss://b./x",
        "oss://b.e/",
        "oss://endpoint/models/v1.0/x",
        "s3://bucket",
        "s3:///x",
        "s3://b/",
        "gcs://",
        "ollama://",
        "host://relative/path",
        "host:///",
        "host:///srv/../etc",
        "host:///srv/a:b",
    ],
)
def test_unusable(uri: str) -> None:
    """Malformed or with an empty part (rules LZ-OM03 to LZ-OM05, LZ-N15, LZ-N16): the text says what to write."""
    with pytest.raises(source.SourceError, match=r"must be|unknown protocol"):
        source.parse_uri(uri)


def test_nothing() -> None:
    """A source without either form, or a hub without a repository, cannot be used."""
    for given in (ModelSource(), ModelSource(model_hub=ModelHub())):
        with pytest.raises(source.SourceError):
            source.read(given)

"""Sources of weights, and the paths at which an engine finds them (LZ-2.1 to LZ-2.3)."""

from __future__ import annotations

import pytest

from app.llmaz import source
from app.llmaz.openmodel.types import ModelHub, ModelSource

HUB = {
    "a repository": ({}, "/workspace/models/models--meta-llama--Meta-Llama-3-8B"),
    "one file of it": ({"filename": "q5.gguf"}, "/workspace/models/q5.gguf"),
}


@pytest.mark.parametrize(("given", "path"), HUB.values(), ids=HUB.keys())
def test_a_repository_names_its_path(given: dict[str, str], path: str) -> None:
    """The path is named after the repository or file; an engine that loads by itself gets the repository."""
    hub = ModelHub.model_validate({"modelID": "meta-llama/Meta-Llama-3-8B", **given})
    repository = source.read(ModelSource(model_hub=hub))
    assert repository.path(skip=False) == path
    assert repository.path(skip=True) == "meta-llama/Meta-Llama-3-8B"


URIS = {
    "oss directory": ("oss://bucket.endpoint/modelPath/subPath", "/workspace/models/models--subPath"),
    "oss file": ("oss://bucket.endpoint/modelPath/weight.gguf", "/workspace/models/weight.gguf"),
    "the protocol's case does not matter": ("OSS://bucket.endpoint/a/b", "/workspace/models/models--b"),
    "gguf anywhere in the path": ("s3://bucket/x.gguf.d/part", "/workspace/models/part"),
    "gs is another word for gcs": ("gs://bucket/a/b", "/workspace/models/models--b"),
    "gcs": ("gcs://bucket/a/b", "/workspace/models/models--b"),
    "a trailing slash leaves no name": ("oss://b.e/p/", "/workspace/models/models--"),
}


@pytest.mark.parametrize(("uri", "path"), URIS.values(), ids=URIS.keys())
def test_object_stores(uri: str, path: str) -> None:
    """The path ends with the last segment; an engine that loads by itself gets the URI unchanged."""
    address = source.parse_uri(uri)
    assert address.path(skip=False) == path
    assert address.path(skip=True) == uri


def test_oss_parts() -> None:
    """The bucket ends at the first dot, the endpoint at the first slash after it."""
    address = source.parse_uri("oss://bucket.oss-eu.example.com/models/v1.0/x")
    assert address == source.ObjectStore(
        "oss", "bucket", "oss-eu.example.com", "models/v1.0/x", "oss://bucket.oss-eu.example.com/models/v1.0/x"
    )


IMAGES = {
    "a directory that is not named": ("oci://example.com/a/qwen2:0.5b", ("models", ""), "models--qwen2"),
    "a directory": ("oci://qwen2#/srv//weights/", ("srv/weights", ""), "models--qwen2"),
    "a file": ("oci://a:5000/qwen2@sha256:" + "0" * 64 + "#/w/q4.gguf", ("w", "q4.gguf"), "models--qwen2/q4.gguf"),
    "a file at the root": ("oci://qwen2:1#/q4.gguf", ("", "q4.gguf"), "models--qwen2/q4.gguf"),
    "the image as a whole": ("oci://qwen2:1#/", ("", ""), "models--qwen2"),
}


@pytest.mark.parametrize(("uri", "inside", "path"), IMAGES.values(), ids=IMAGES.keys())
def test_an_image_names_its_path(uri: str, inside: tuple[str, str], path: str) -> None:
    """The path in the image follows the number sign; the directory in the pod is named after the repository."""
    address = source.parse_uri(uri)
    assert isinstance(address, source.Image)
    assert address.reference == uri.removeprefix("oci://").partition("#")[0]
    assert (address.directory, address.filename) == inside
    assert address.path(skip=False) == f"/workspace/models/{path}"
    assert address.path(skip=True) == uri


def test_a_path_of_the_node_is_the_same_without_the_loader() -> None:
    """A path of the node is the same with or without the loader."""
    address = source.parse_uri("host:///srv/models/m")
    assert (address.path(skip=False), address.path(skip=True)) == ("/srv/models/m", "/srv/models/m")


def test_an_address_of_ollama_is_its_name_for_the_model() -> None:
    """The address is ollama's own name for the model."""
    address = source.parse_uri("ollama://qwen2:0.5b")
    assert isinstance(address, source.Ollama)
    assert address.name == "qwen2:0.5b"


def test_hub_wins() -> None:
    """If both forms are set, the hub is used."""
    both = ModelSource.model_validate({"modelHub": {"modelID": "a/b"}, "uri": "s3://bucket/x"})
    assert isinstance(source.read(both), source.Hub)


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "invalid_uri",
        "oss://a://b",
        "gs://b",
        "oci://",
        "oci:///x",
        "oci://Registry/Qwen",
        "oci://registry.example.com/qwen:",
        "oci://registry.example.com/qwen@sha256:1",
        "oci://user:secret@registry.example.com/qwen",
        "oci://registry.example.com/qwen:1#models",
        "oci://registry.example.com/qwen:1#/../etc",
        "oci://" + "a/" * 500 + "a",
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
    """The error of a malformed URI tells the user what to write (LZ-OM03 to LZ-OM05, LZ-N15, LZ-N16)."""
    with pytest.raises(source.SourceError, match=r"; write \w+://|must be <protocol>|must be one of"):
        source.parse_uri(uri)


def test_a_source_without_an_address_cannot_be_used() -> None:
    """A source without either form, or a hub without a repository, cannot be used."""
    for given in (ModelSource(), ModelSource(model_hub=ModelHub())):
        with pytest.raises(source.SourceError):
            source.read(given)

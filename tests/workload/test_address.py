"""Addresses of models: hints about what was meant."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.kserve.sources import problem_of
from app.kube.base import FORMS
from app.llmaz.source import SourceError, parse_uri
from app.llmkube.model.types import SOURCE_PATTERN
from app.workload.address import linked, repository_and_tag, untagged


def of_llmaz(uri: str) -> str:
    try:
        parse_uri(uri)
    except SourceError as error:
        return str(error)
    return ""


REFUSED: dict[str, Callable[[str], str]] = {
    "LLMKube": FORMS[SOURCE_PATTERN],
    "llmaz": of_llmaz,
    "KServe": lambda uri: problem_of(uri, enabled=True),
}
"""Why an address is refused, by family."""


@pytest.mark.parametrize(
    ("family", "address"),
    [
        *[
            ("LLMKube", text)
            for text in ("s3://b/k", "https://h/f", "http://h/f", "pvc://c/p", "hf://a/b/c", "file:///p")
        ],
        *[("llmaz", text) for text in ("oss://b.e.com/k", "s3://b/k", "gs://b/k", "gcs://b/k", "oci://r/i:t#/p")],
        *[("llmaz", text) for text in ("ollama://qwen2:0.5b", "host:///models/a")],
        *[
            ("KServe", text)
            for text in ("hf://a/b", "s3://b/k", "gs://b/k", "https://h/f.zip", "http://h/f", "hdfs://p")
        ],
        *[("KServe", text) for text in ("webhdfs://p", "pvc://c/p", "oci://r/i:t", "oci+native://r/i:t")],
    ],
)
def test_the_slashes_of_every_scheme_are_suggested(family: str, address: str) -> None:
    scheme, _, rest = address.partition("://")
    for slashes in (":/", ":"):
        assert REFUSED[family](f"{scheme}{slashes}{rest.lstrip('/')}").endswith(f"; did you mean {address}?")


@pytest.mark.parametrize(
    ("family", "written", "meant"),
    [
        ("LLMKube", "htps://h/f", "https://h/f"),
        ("LLMKube", "HTTPS://h/f", "https://h/f"),
        ("LLMKube", "s3a:/b/k", "s3://b/k"),
        ("llmaz", "olama://qwen2:0.5b", "ollama://qwen2:0.5b"),
        ("llmaz", "file:///models/a", "host:///models/a"),
        ("llmaz", "hf://a/b", "modelHub: {modelID: a/b} in place of uri"),
        ("llmaz", "https://huggingface.co/a/b/tree/main", "modelHub: {modelID: a/b} in place of uri"),
    ],
)
def test_other_schemes_are_suggested(family: str, written: str, meant: str) -> None:
    assert REFUSED[family](written).endswith(f"; did you mean {meant}?")


def test_a_misspelt_scheme_is_corrected() -> None:
    assert REFUSED["KServe"]("pcv://c/p").startswith("pcv:// is not supported, write pvc://c/p;")


@pytest.mark.parametrize("address", ["C:/models/a", "localhost:8080/a", "ftp:/host/a", "https:/host/f?token=x"])
@pytest.mark.parametrize("family", REFUSED)
def test_no_other_address_is_suggested(family: str, address: str) -> None:
    assert "did you mean" not in REFUSED[family](address)


def test_no_password_is_repeated() -> None:
    assert "secret" not in REFUSED["KServe"]("https:/me:secret@host/f.zip")


@pytest.mark.parametrize(
    ("image", "repository", "tag"),
    [
        ("docker.io/vllm/vllm-openai:v0.11.2", "vllm/vllm-openai", "v0.11.2"),
        ("vllm/vllm-openai@sha256:0a", "vllm/vllm-openai", ""),
        ("registry:5000/mirror/llama.cpp:full-cuda", "registry:5000/mirror/llama.cpp", "full-cuda"),
        ("registry:5000/engine", "registry:5000/engine", ""),
        ("engine:v1", "engine", "v1"),
        ("", "", ""),
    ],
)
def test_the_repository_and_tag_of_an_image(image: str, repository: str, tag: str) -> None:
    """The port of a registry is not a tag."""
    assert repository_and_tag(image) == (repository, tag)


@pytest.mark.parametrize(
    ("image", "is_untagged"),
    [("r.io/m", True), ("r.io:5000/m", True), ("m", True), ("r.io/m:1", False), ("r.io/m@sha256:0", False)],
)
def test_the_port_of_a_registry_is_no_tag(image: str, is_untagged: bool) -> None:
    assert bool(untagged(image)) is is_untagged


@pytest.mark.parametrize(
    ("address", "is_refused"),
    [
        ("https://h/a/../b.zip", True),
        ("https://h/b.zip?from=/../a", False),
        ("http://h/b.zip#/../a", False),
        ("http://h/..", True),
        ("s3://b/k?/../a", True),
    ],
)
def test_a_query_is_no_path_in_which_one_goes_up(address: str, is_refused: bool) -> None:
    assert REFUSED["KServe"](address).startswith("the path must not contain '..'") is is_refused


def test_a_snapshot_of_a_cache_has_links() -> None:
    folder = "/cache/hub/models--org--chat/snapshots"
    assert linked(f"{folder}/{'0' * 40}") == (
        "a snapshot of the Hugging Face cache has links to the blobs beside it, which the pods do not mount; "
        "name a directory with the files themselves, as hf download --local-dir and cp -rL make one"
    )
    assert linked(folder) == ""

"""Parsing and formatting of ``model.uri``, as by Go's net/url."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kserve.modeluri import InvalidURL, parse


@pytest.mark.parametrize(
    ("text", "written", "scheme"),
    [
        ("hf://facebook/opt-125m", "hf://facebook/opt-125m", "hf"),
        ("HF://Org/Model", "hf://Org/Model", "hf"),
        ("pvc://claim/sub path", "pvc://claim/sub%20path", "pvc"),
        ("pvc://claim/a%2Fb", "pvc://claim/a%2Fb", "pvc"),
        ("oci://registry/image:tag", "oci://registry/image:tag", "oci"),
        ("oci://registry:5000/image@sha256:abc", "oci://registry:5000/image@sha256:abc", "oci"),
        ("hf://a/{{ .Spec.Model.Name }}", "hf://a/%7B%7B%20.Spec.Model.Name%20%7D%7D", "hf"),
        ("s3://bucket/key?versionId=1", "s3://bucket/key?versionId=1", "s3"),
        ("s3://bucket/a[1]", "s3://bucket/a[1]", "s3"),
        ("hf://", "hf:", ""),
        ("llama", "llama", ""),
        ("", "", ""),
    ],
)
def test_how_a_url_is_written_back(text: str, written: str, scheme: str) -> None:
    """The scheme is in lower case, and the path is escaped if necessary."""
    uri = parse(text)
    assert (uri.text, uri.scheme) == (written, scheme)


@pytest.mark.parametrize(
    "text",
    [
        "oci://image:tag",
        "hf://a b/c",
        "hf://{{ .Name }}/c",
        "hf://a/%zz",
        "hf://a%41/c",
        "hf://[::1/c",
        "s3://us er@bucket/key",
        "://a",
        "a b:c",
        "hf://a/\x01",
    ],
)
def test_rejects_invalid_urls(text: str) -> None:
    """KServe's Go types cannot hold these values."""
    with pytest.raises(InvalidURL):
        parse(text)


def test_a_registry_without_a_path_is_explained() -> None:
    """The most common mistake has a message with the remedy."""
    with pytest.raises(InvalidURL, match="oci://registry/image:tag"):
        parse("oci://image:tag")


@given(st.text())
def test_writing_back_is_stable(text: str) -> None:
    """Any string is refused, or formatting it a second time changes nothing."""
    try:
        written = parse(text).text
    except InvalidURL:
        return
    assert parse(written).text == written

"""URIs from which no model can be fetched, and the suggested correction."""

from __future__ import annotations

import pytest

from app.kserve.modeluri import parse
from app.kserve.sources import SCHEMES, Provider, doubt_of, problem_of, provider, shown


@pytest.mark.parametrize(
    ("uri", "who"),
    [
        ("modelscope://acme/llama:v1", Provider.MODELSCOPE),
        ("gs://bucket/llama", Provider.GS),
        ("GS://bucket", Provider.GS),
        ("hdfs://models/llama", Provider.HDFS),
        ("webhdfs://models/llama", Provider.HDFS),
        ("https://acme.blob.core.windows.net/models/llama", Provider.AZURE_BLOB),
        ("https://acme.z1.blob.storage.azure.net/models/", Provider.AZURE_BLOB),
        ("https://acme.file.core.windows.net/share/llama?sv=1", Provider.AZURE_FILES),
        ("https://example.com/llama.tar.gz", Provider.WEB),
        ("http://acme.blob.core.windows.net/models/llama", Provider.WEB),
        ("https://blob.core.windows.net.example.com/a/b", Provider.WEB),
        ("https://example.com/acme/llama.git", Provider.GIT),
    ],
)
def test_what_can_be_fetched(uri: str, who: Provider) -> None:
    """Providers are matched in the storage initializer's order."""
    assert problem_of(uri, enabled=True) == ""
    assert provider(parse(uri)) is who


def test_modelscope_needs_a_newer_image() -> None:
    assert "v0.21 or newer" in doubt_of("modelscope://acme/llama", own_command=True)


@pytest.mark.parametrize(
    ("uri", "remedy"),
    [
        ("abfs://models@acme.dfs.core.windows.net/llama", "https://acme.blob.core.windows.net/models/llama"),
        ("abfss://models/llama", "https://<account>.blob.core.windows.net/<container>/<path>"),
        ("wasbs://models@acme.blob.core.windows.net/a/b", "https://acme.blob.core.windows.net/models/a/b"),
        ("gcs://bucket/llama", "gs://bucket/llama"),
        ("s3a://bucket/llama", "s3://bucket/llama"),
        ("huggingface://acme/llama", "hf://acme/llama"),
        ("docker://registry.example.com/llama:1", "oci://registry.example.com/llama:1"),
        ("file:///models/llama", "pvc://<claim>/<path in the volume>"),
        ("git://example.com/llama", "https://<host>/<path>.git"),
        ("ftp://example.com/llama", ", ".join(f"{scheme}://" for scheme in SCHEMES)),
        ("modelscope://acme", "modelscope://<organisation>/<model>"),
        ("modelscope://acme/llama/config.json", "modelscope://<organisation>/<model>"),
        ("gs://", "as in hf://"),
        ("gs:///llama", "gs://<bucket>/<path>"),
        ("gs://Bucket/llama", "lower case"),
        ("gs://10.0.0.1/llama", "gs://<bucket>/<path>"),
        ("gs://key@bucket/llama", "Secret"),
        ("gs://bucket/../llama", "'..'"),
        ("hdfs://namenode:8020/llama", "HDFS_NAMENODE"),
        ("hdfs:///", "hdfs://<path below the root>"),
        ("https://acme.blob.core.windows.net/models", "https://<account>.blob.core.windows.net/<container>/<path>"),
        ("https://acme.file.core.windows.net/", "https://<account>.file.core.windows.net/<share>/<path>"),
        ("https://huggingface.co/acme/llama", "hf://acme/llama"),
        ("https://huggingface.co/acme/llama/tree/main", "hf://acme/llama"),
        ("https://example.com/models/", "https://<host>/<path>/<file>"),
        ("https://example.com?a=b", "https://<host>/<path>/<file>"),
        ("https://169.254.169.254/llama.tar", "link-local"),
    ],
)
def test_what_cannot_be_fetched(uri: str, remedy: str) -> None:
    """The message has a form that works."""
    assert remedy in problem_of(uri, enabled=True)


def test_containers_that_fetch_for_themselves_take_any_scheme() -> None:
    """Only hosts that expose a node's credentials are refused."""
    assert problem_of("abfs://models/llama", enabled=False) == ""
    assert problem_of("http://169.254.169.254/llama", enabled=False) != ""


@pytest.mark.parametrize(
    ("uri", "own_command", "said"),
    [
        ("https://example.com/llama.gguf", False, "/mnt/models/llama.gguf"),
        ("https://example.com/llama.gguf", True, ""),
        ("https://example.com/llama.tar.gz", False, ""),
        ("https://acme.dfs.core.windows.net/models/llama", True, "blob.core.windows.net"),
        ("gs://bucket/llama", False, ""),
    ],
)
def test_what_is_probably_not_meant(uri: str, own_command: bool, said: str) -> None:
    """For example, the URI is one file, but the server reads a directory."""
    doubt = doubt_of(uri, own_command=own_command)
    assert said in doubt
    assert bool(said) is bool(doubt)


def test_messages_have_no_token() -> None:
    """A signature in the query is a secret."""
    assert shown("https://u:p@acme.blob.core.windows.net/c/m?sv=1&sig=secret") == (
        "https://…@acme.blob.core.windows.net/c/m?…"
    )

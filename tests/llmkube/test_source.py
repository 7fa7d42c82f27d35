"""Classes of sources, and the paths of their files (LK-2.1 and LK-2.2)."""

import pytest

from app.llmkube.model.types import ModelSpec
from app.llmkube.source import SourceClass, cached_path, ephemeral_path, file_name, parse, source_of

TINYLLAMA = (
    "https://huggingface.co/TheBloke/TinyLlama-1.1B-Chat-v1.0-GGUF/resolve/main/tinyllama-1.1b-chat-v1.0.Q4_K_M.gguf"
)

KEYS = {
    "https://huggingface.co/Qwen/Qwen3-8B-GGUF/resolve/main/Qwen3-8B-Q4_K_M.gguf": "afeeaaf8515b5ed7",
    TINYLLAMA: "ffd7696959984b4f",
    "https://huggingface.co/TheBloke/Llama-2-13B-GGUF/resolve/main/llama-2-13b.Q4_K_M.gguf": "0e38d54121d62f7d",
    "https://huggingface.co/TheBloke/Llama-2-70B-GGUF/resolve/main/llama-2-70b.Q4_K_M.gguf": "438c170081007690",
    "https://example.com/model.gguf": "8cc5f1f83d631cc0",
    "pvc://claim/dir/m.gguf": "fe0bf5660017aef8",
    "file:///mnt/models/model.gguf": "83ba4c8d6adc390b",
    "/mnt/models/model.gguf": "be4b86615bb54771",
}


@pytest.mark.parametrize(("source", "key"), KEYS.items())
def test_cache_keys_are_upstreams(source: str, key: str) -> None:
    """The keys match those of the Go operator, so that its cache is reused."""
    assert parse(source).cache_key == key


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("pvc://claim/m.gguf", SourceClass.PVC),
        ("owner/repo", SourceClass.REPOSITORY),
        ("foo/bar.gguf", SourceClass.REPOSITORY),
        ("a/b/c/d", SourceClass.REPOSITORY),
        ("https://huggingface.co/owner/repo", SourceClass.REPOSITORY),
        ("https://huggingface.co/owner/repo/tree/main", SourceClass.REPOSITORY),
        ("https://huggingface.co/owner/repo/tree/v2/sub/dir?x=1", SourceClass.REPOSITORY),
        ("https://HuggingFace.co/owner/repo/resolve/v2", SourceClass.REPOSITORY),
        ("https://www.huggingface.co/owner/repo/blob/v2/#top", SourceClass.REPOSITORY),
        ("https://huggingface.co/owner/repo/blob/v2/m.gguf", SourceClass.HTTP),
        ("https://huggingface.co/owner/repo/resolve/main/m.gguf", SourceClass.HTTP),
        ("https://huggingface.co/datasets/x", SourceClass.HTTP),
        ("http://host/m.gguf", SourceClass.HTTP),
        ("file:///m.gguf", SourceClass.LOCAL),
        ("/m.gguf", SourceClass.LOCAL),
        ("gpt2", SourceClass.INVALID),
        ("model.gguf", SourceClass.INVALID),
    ],
)
def test_each_form_of_a_source_has_its_class(source: str, kind: SourceClass) -> None:
    assert parse(source).kind is kind


def test_only_the_first_slash_divides_a_claim_from_its_path() -> None:
    source = parse("pvc://claim/a/b.gguf")
    assert (source.claim, source.path, source.mounted_path) == ("claim", "a/b.gguf", "/model-source/a/b.gguf")


def test_a_repository_has_no_cache() -> None:
    """The runtime fetches the repository, so it needs no cache key."""
    assert parse("owner/repo").cache_key == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Qwen3 8B", "Qwen3-8B"),
        ("--a..b__", "a..b"),
        ("a---b", "a-b"),
        ("a / b", "a-b"),
        ("é", "model"),
        ("Mixtral (8x7B) v0.1", "Mixtral-8x7B-v0.1"),
    ],
)
def test_file_names(text: str, expected: str) -> None:
    assert file_name(text) == f"{expected}.gguf"


def test_a_cached_file_is_named_by_its_source_and_the_models_name() -> None:
    """The directory comes from the source and the file name from the object, so both are stable."""
    source = parse("https://example.com/model.gguf")
    assert cached_path(source, source.cache_key, "m") == "/models/8cc5f1f83d631cc0/m.gguf"
    assert ephemeral_path(source, "ns1", "m") == "/models/ns1-m.gguf"
    assert file_name("qwen2.5") == "qwen2.5.gguf"


@pytest.mark.parametrize(
    ("text", "kind", "repository", "revision", "files"),
    [
        ("hf://org/name", SourceClass.REPOSITORY, "org/name", "", ()),
        ("hf://org/name@v1.0", SourceClass.REPOSITORY, "org/name", "v1.0", ()),
        ("hf://org/name/m.gguf", SourceClass.FILES, "org/name", "", ("m.gguf",)),
        ("hf://org/name@abc/q4/m-1-of-2.gguf", SourceClass.FILES, "org/name", "abc", ("q4/m-1-of-2.gguf",)),
        ("hf://org/na.me-1_x/m.gguf", SourceClass.FILES, "org/na.me-1_x", "", ("m.gguf",)),
        ("hf://org", SourceClass.INVALID, "", "", ()),
        ("hf://org/", SourceClass.INVALID, "", "", ()),
        ("hf:///name", SourceClass.INVALID, "", "", ()),
        ("hf://org/name@", SourceClass.INVALID, "", "", ()),
        ("hf://org/name@a b", SourceClass.INVALID, "", "", ()),
        ("s3://bucket/a/m.gguf", SourceClass.S3, "", "", ()),
        ("https://huggingface.co/org/name/tree/v1", SourceClass.REPOSITORY, "org/name", "v1", ()),
        ("https://huggingface.co/org/name/tree/v1/q4", SourceClass.REPOSITORY, "org/name", "v1", ()),
        ("https://HuggingFace.co/org/name/resolve/v1?x=y", SourceClass.REPOSITORY, "org/name", "v1", ()),
        ("https://hf.co/org/name/blob/v1/#readme", SourceClass.REPOSITORY, "org/name", "v1", ()),
        ("https://huggingface.co/org/name/resolve/main/", SourceClass.REPOSITORY, "org/name", "", ()),
        ("https://huggingface.co/org/name/blob/v1/m.gguf", SourceClass.HTTP, "", "", ()),
        ("https://huggingface.co/datasets/name/tree/v1", SourceClass.HTTP, "", "", ()),
    ],
)  # fmt: skip
def test_newer_forms(text: str, kind: SourceClass, repository: str, revision: str, files: tuple[str, ...]) -> None:
    """Upstream's documentation names files of repositories in this form (LK-2.1)."""
    source = parse(text)
    assert (source.kind, source.repository, source.revision, source.files) == (kind, repository, revision, files)


def test_files_of_a_repository() -> None:
    """Each file is listed once, the served one first, for any form of the repository."""
    for text in ("org/name", "hf://org/name", "https://huggingface.co/org/name"):
        source = source_of(ModelSpec(source=text, files=["a/b.gguf", "c", "a/b.gguf"], mmproj="p.gguf"))
        assert (source.kind, source.files) == (SourceClass.FILES, ("a/b.gguf", "c", "p.gguf"))
        assert source.location == "https://huggingface.co/org/name/resolve/main/"
        assert cached_path(source, source.cache_key, "m") == f"/models/{source.cache_key}/a/b.gguf"
        assert ephemeral_path(source, "ns1", "m") == "/models/ns1-m/a/b.gguf"
    single = source_of(ModelSpec(source="hf://org/name@v/1.gguf", mmproj="p.gguf"))
    assert (single.files, single.location) == (("1.gguf", "p.gguf"), "https://huggingface.co/org/name/resolve/v/")


def test_objects_of_a_bucket() -> None:
    source = source_of(ModelSpec(source="s3://bucket/a/m.gguf"))
    assert (source.location, cached_path(source, source.cache_key, "m")) == (
        "s3://bucket/a/m.gguf",
        f"/models/{source.cache_key}/m.gguf",
    )
    several = source_of(ModelSpec(source="s3://bucket/a", files=["x", "y/z"]))
    assert (several.kind, several.location) == (SourceClass.S3, "s3://bucket/a/")
    assert cached_path(several, several.cache_key, "m") == f"/models/{several.cache_key}/x"


def test_other_sources_have_no_files() -> None:
    """Admission refuses ``files`` for other sources; a stored value has no effect."""
    source = source_of(ModelSpec(source="https://example.com/m.gguf", files=["x"]))
    assert source == parse("https://example.com/m.gguf")


@pytest.mark.parametrize(
    ("page", "revision"),
    [("", ""), ("/tree/main", ""), ("/tree/v2", "v2"), ("/resolve/a%2Fb", "a/b"), ("/blob/v2/", "v2")],
)
def test_pages_of_the_hub_name_a_revision(page: str, revision: str) -> None:
    source = parse(f"https://huggingface.co/owner/repo{page}")
    assert (source.repository, source.revision, source.hub_page) == ("owner/repo", revision, True)

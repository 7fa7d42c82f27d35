"""The rules of a Model (LK-6.1), each with a spec that breaks it and the message."""

import re
from typing import Any

import pytest
from pydantic import ValidationError

from app.kube.field import Advice
from app.settings import Settings
from tests.llmkube.objects import errors, model, verdict_of_update, warned

A = "a" * 64

REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("LK-V-M02", {"source": "gs://bucket/m.gguf"}, "spec.source: Invalid value"),
    ("LK-V-M02", {"source": "a"}, "spec.source: Invalid value"),
    ("LK-V-M03", {"source": "pvc://"}, "the claim is required"),
    ("LK-V-M03", {"source": "pvc://claim"}, "the path is required; write pvc://<claim>/"),
    ("LK-V-M03", {"source": "pvc:///m.gguf"}, "the claim is required"),
    ("LK-V-M04", {"source": "pvc://Claim/m.gguf"}, "the claim must be a valid PersistentVolumeClaim name"),
    ("LK-V-M04", {"source": "pvc://claim/a/../../m.gguf"}, "must not contain '..'"),
    ("LK-V-M04", {"source": "pvc://claim//m.gguf"}, "must not start with '/'"),
    ("LK-V-M05", {"source": "gpt2"}, "must be <owner>/<name>"),
    ("LK-V-M06", {"source": "file://models/m.gguf"}, "must be absolute; write file:///<path> or /<path>"),
    ("LK-V-M06", {"source": "/models/../etc/shadow"}, "must not contain '..'"),
    ("LK-V-M07", {"source": "https://"}, "the URL must have a host"),
    ("LK-V-M07", {"source": "https:///m.gguf"}, "the URL must have a host"),
    ("LK-V-M07", {"source": "http://host:99999/m.gguf"}, "port must be between 1 and 65535"),
    ("LK-V-M07", {"source": "http://a@b@c/m.gguf"}, "the host of the URL is ambiguous"),
    ("LK-V-M11", {"sha256": "abc"}, "spec.sha256: Invalid value"),
    ("LK-V-M13", {"refreshPolicy": "Always"}, 'supported values: "IfNotPresent", "OnChange"'),
    ("LK-V-M15", {"format": "hf-repo"}, "spec.format: Unsupported value"),
    ("LK-V-M17", {"hardware": {"accelerator": "tpu"}}, "spec.hardware.accelerator: Unsupported value"),
    ("LK-V-M18", {"hardware": {"gpu": {"count": 9}}}, "must be between 0 and 8"),
    ("LK-V-M18", {"hardware": {"gpu": {"count": -1}}}, "must be between 0 and 8"),
    ("LK-V-M19", {"hardware": {"gpu": {"vendor": "arm"}}}, "spec.hardware.gpu.vendor: Unsupported value"),
    ("LK-V-M20", {"hardware": {"gpu": {"layers": -2}}}, "must be at least -1"),
    ("LK-V-M20", {"hardware": {"gpu": {"layers": "all"}}}, "must be a whole number; did you mean -1?"),
    ("LK-V-M18", {"hardware": {"gpu": {"count": "all"}}}, "must be a whole number"),
    ("LK-V-M21", {"hardware": {"gpu": {"sharding": {"strategy": "x"}}}}, "sharding.strategy: Unsupported value"),
    ("LK-V-M27", {"hardware": {"gpu": {"memory": "lots"}}}, "must be a quantity"),
    ("LK-V-M30", {"hardware": {"memoryBudget": "some"}}, "must be a quantity"),
    ("LK-V-M30", {"hardware": {"memoryBudget": "0"}}, "must be above 0"),
    ("LK-V-M31", {"hardware": {"memoryFraction": 0}}, "must be above 0 and at most 1"),
    ("LK-V-M31", {"hardware": {"memoryFraction": 1.5}}, "must be above 0 and at most 1"),
    ("LK-V-M34", {"resources": {"cpu": "two"}}, "spec.resources.cpu: Invalid value"),
    ("LK-V-M34", {"resources": {"memory": "-1Gi"}}, "must be 0 or more"),
    ("LK-V-M05", {"source": "hf://org"}, "must be <owner>/<name>"),
    ("LK-V-M36", {"source": "s3://"}, "the bucket is required; write s3://<bucket>/<key"),
    ("LK-V-M36", {"source": "s3:///key"}, "the bucket is required"),
    ("LK-V-M36", {"source": "s3://bucket"}, "the path is required; write s3://<bucket>/<key"),
    ("LK-V-M36", {"source": "s3://bucket/a/../b"}, "must not contain '.', '..'"),
    ("LK-V-M37", {"source": "org/name", "files": ["a", ""]}, "spec.files[1]: Invalid value"),
    ("LK-V-M37", {"source": "org/name", "files": ["/a"]}, "must be a path of a file in the source"),
    ("LK-V-M37", {"source": "org/name", "files": ["a/../../b"]}, "without '..'"),
    ("LK-V-M37", {"source": "org/name", "files": ["*.gguf"]}, "patterns and control characters match nothing"),
    ("LK-V-M37", {"source": "org/name", "files": ["a\nb"]}, "patterns and control characters match nothing"),
    ("LK-V-M37", {"source": "hf://org/name/a/../b"}, "spec.source: Invalid value"),
    ("LK-V-M37", {"source": "org/name", "files": ["a"], "mmproj": "../p"}, "spec.mmproj: Invalid value"),
    ("LK-V-M37", {"source": "org/name", "files": ["x" * 200] * 200}, "spec.files: Too long"),
    ("LK-V-M38", {"source": "org/name", "mmproj": "p"}, "spec.files: Required value"),
    ("LK-V-M38", {"source": "hf://org/name/a", "files": ["b"]}, "the source already names a file, a"),
    ("LK-V-M38", {"files": ["b"]}, "only with a source hf://<owner>/<name> or s3://<bucket>/<prefix>"),
    ("LK-V-M38", {"source": "pvc://c/m", "files": ["b"]}, "spec.files: Forbidden"),
    ("LK-V-M39", {"sourceSecretRef": {"name": "No Name"}}, "spec.sourceSecretRef.name: Invalid value"),
    ("LK-V-M40", {"hardware": {"gpu": {"resourceName": "gpu"}}}, "must be <domain>/<name> in lower case"),
    ("LK-V-M40", {"hardware": {"gpu": {"tolerationKey": "A/b"}}}, "must be <domain>/<name> in lower case"),
    ("LK-V-M40", {"hardware": {"gpu": {"tolerationKey": "example.com/-gpu"}}}, "name part must consist of"),
    (
        "LK-V-M40",
        {"hardware": {"gpu": {"resourceName": "-a.com/gpu"}}},
        "prefix part must be a lower case DNS subdomain",
    ),
    ("LK-V-M41", {"hardware": {"gpu": {"runtime": "cuda"}}}, "spec.hardware.gpu.runtime: Unsupported value"),
]

WARNED: list[tuple[str, dict[str, Any], str]] = [
    ("LK-V-M40", {"hardware": {"gpu": {"resourceName": "amd.com/gpus"}}}, 'did you mean "amd.com/gpu"?'),
    ("LK-V-M08", {"source": "https://huggingface.co/Qwen/Qwen3-8B"}, "read as its repository; write Qwen/Qwen3-8B"),
    ("LK-V-M08", {"source": "https://huggingface.co/o/r/blob/main/m.gguf"}, "a file's URL has /resolve/ in it"),
    ("LK-V-M12", {"source": "owner/repo", "sha256": A}, "spec.sha256: no effect"),
    ("LK-V-M12", {"source": "pvc://claim/m.gguf", "sha256": A}, "spec.sha256: no effect"),
    ("LK-V-M12", {"hardware": {"accelerator": "metal"}, "sha256": A}, "spec.sha256: no effect"),
    ("LK-V-M14", {"source": "owner/repo", "refreshPolicy": "OnChange"}, "refreshPolicy: no effect"),
    ("LK-V-M14", {"source": "/mnt/m.gguf", "refreshPolicy": "OnChange"}, "refreshPolicy: no effect"),
    ("LK-V-M14", {"refreshPolicy": "OnChange", "sha256": A}, "refreshPolicy: no effect beside sha256"),
    (
        "LK-V-M14",
        {"hardware": {"accelerator": "metal"}, "refreshPolicy": "OnChange"},
        "refreshPolicy: no effect on metal",
    ),
    ("C.8", {"hardware": {"accelerator": "metal", "gpu": {"count": 1}}}, "gpu.count: no effect on metal"),
    ("C.8", {"hardware": {"accelerator": "metal", "gpu": {"sharding": {}}}}, "gpu.sharding: no effect on metal"),
    ("C.8", {"hardware": {"accelerator": "metal"}, "resources": {"cpu": "1"}}, "resources.cpu: no effect on metal"),
    ("LK-V-M16", {"format": "mlx"}, "only runtimes on metal load mlx"),
    ("LK-V-M22", {"hardware": {"gpu": {"count": 2, "sharding": {"strategy": "pipeline"}}}}, "acts like layer"),
    ("LK-V-M23", {"hardware": {"gpu": {"count": 1, "sharding": {}}}}, "there is nothing to split"),
    ("LK-V-M24", {"hardware": {"gpu": {"count": 2, "sharding": {"layerSplit": ["0-1"]}}}}, "1 entries for 2 GPUs"),
    ("LK-V-M24", {"hardware": {"gpu": {"count": 2, "sharding": {"layerSplit": ["0-1", "x"]}}}}, "not start-end"),
    ("LK-V-M24", {"hardware": {"gpu": {"count": 2, "sharding": {"layerSplit": ["5-3", "4-9"]}}}}, "not start-end"),
    (
        "LK-V-M25",
        {"hardware": {"gpu": {"sharding": {"strategy": "none", "layerSplit": ["0-1"]}}}},
        "with strategy none",
    ),
    ("LK-V-M25", {"hardware": {"gpu": {"count": 2, "sharding": {"layerSplit": ["0-5", "4-9"]}}}}, "gaps or overlaps"),
    ("LK-V-M26", {"hardware": {"gpu": {"enabled": False, "count": 1}}}, "requested although it is false"),
    ("LK-V-M26", {"hardware": {"gpu": {"enabled": True}}}, "without gpu.count no GPU is requested"),
    (
        "LK-V-M27",
        {"source": "https://x.example/Llama-3.1-70B-Q4_K_M.gguf", "hardware": {"gpu": {"count": 1, "memory": "24Gi"}}},
        "gpu.memory: the weights need at least 36.6 GiB (70.5B parameters, Q4_K_M, 4.5 to 5.3 bits each), and 1 x 24.0",
    ),
    ("LK-V-M28", {"hardware": {"accelerator": "cuda", "gpu": {"vendor": "amd"}}}, "does not go with accelerator cuda"),
    ("LK-V-M29", {"hardware": {"gpu": {"count": 1}}}, "accelerator: cpu, yet gpu.count requests 1"),
    ("LK-V-M32", {"hardware": {"memoryBudget": "1Gi", "memoryFraction": 0.5}}, "no effect beside memoryBudget"),
    ("LK-V-M33", {"hardware": {"accelerator": "cuda", "memoryBudget": "1Gi"}}, "unless accelerator is metal"),
    ("LK-V-M33", {"hardware": {"memoryFraction": 0.5}}, "unless accelerator is metal"),
    (
        "LK-V-M12",
        {"source": "org/name", "files": ["a", "b"], "sha256": A},
        "sha256: no effect: it is the checksum of one file",
    ),
    ("LK-V-M39", {"source": "s3://bucket/m.gguf"}, "only public buckets"),
    ("LK-V-M39", {"source": "org/name", "sourceSecretRef": {"name": "s"}}, "the server fetches the repository"),
    ("LK-V-M39", {"source": "pvc://c/m", "sourceSecretRef": {"name": "s"}}, "nothing is downloaded"),
    ("LK-V-M39", {"hardware": {"accelerator": "metal"}, "sourceSecretRef": {"name": "s"}}, "the agent fetches"),
    ("LK-V-M41", {"hardware": {"gpu": {"runtime": "vulkan"}}}, "no effect with vendor nvidia, only with amd"),
    ("LK-V-M43", {"prefetch": True}, "prefetch: accepted, no effect"),
    ("LK-V-M45", {"source": "s3://bucket/qwen", "format": "safetensors"}, "files: only the one object of the source"),
]

SETTINGS = Settings(
    llmkube_allowed_source_hosts=("mirror.corp", "*.example.com"), llmkube_allowed_host_paths=("/srv/m",)
)


@pytest.mark.parametrize(("rule", "spec", "words"), REFUSED)
def test_a_mistake_is_refused(rule: str, spec: dict[str, Any], words: str) -> None:
    """One mistake gives one error, which names its field."""
    messages = errors(model(**spec))
    assert len(messages) == 1, rule
    assert words in messages[0]


def test_a_source_that_is_not_allowed_is_refused_beside_a_value_of_the_wrong_type() -> None:
    document = model(source="/etc/m.gguf", hardware={"gpu": {"count": "all"}})
    places = [message.partition(":")[0] for message in errors(document, SETTINGS)]
    assert places == ["spec.hardware.gpu.count", "spec.source"]


@pytest.mark.parametrize(("rule", "spec", "words"), WARNED)
def test_warns_of_fields_without_effect(rule: str, spec: dict[str, Any], words: str) -> None:
    """These fields cause a warning and no error, because existing manifests have them."""
    assert errors(model(**spec)) == [], rule
    messages = [text for text in warned(model(**spec)) if words in text]
    assert messages, rule
    assert all(isinstance(text, Advice) and text.startswith(f"{text.path}: ") for text in messages), rule


@pytest.mark.parametrize(
    "spec",
    [
        {"refreshPolicy": "OnChange"},
        {"sha256": A},
        {"hardware": {"accelerator": "cuda", "gpu": {"count": 2, "sharding": {"layerSplit": ["0-15", "16-31"]}}}},
        {"hardware": {"accelerator": "metal", "memoryBudget": "24Gi", "gpu": {"layers": 32}}},
        {"hardware": {"gpu": {"enabled": True, "resourceClaims": [{"name": "g", "resourceClaimName": "c"}]}}},
    ],
)
def test_no_warning_for_valid_specs(spec: dict[str, Any]) -> None:
    assert errors(model(**spec)) == []
    assert warned(model(**spec)) == []


def test_a_missing_source_is_refused() -> None:
    """A Model requires a spec with a source (LK-V-M01)."""
    document = model()
    del document["spec"]["source"]
    assert errors(document) == ["spec.source: Required value"]
    document["spec"] = None
    assert errors(document) == ["spec: Required value"]


def test_a_name_that_no_label_can_carry_is_refused() -> None:
    """The name must be a valid label value (LK-V-M35)."""
    assert errors(model(name="m" * 63)) == []
    assert "metadata.name: Too long" in errors(model(name="m" * 64))[0]


def test_every_mistake_is_named_at_once() -> None:
    messages = errors(model("gpt2", hardware={"memoryFraction": 2, "memoryBudget": "x"}, resources={"cpu": "y"}))
    assert [text.partition(":")[0] for text in messages] == [
        "spec.source",
        "spec.hardware.memoryBudget",
        "spec.hardware.memoryFraction",
        "spec.resources.cpu",
    ]


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "169.254.0.1:8080",
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "169.254.43518",
        "[fe80::1]",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::a9fe:a9fe]",
        "[fd00:ec2::254]",
        "metadata.google.internal",
        "METADATA.google.internal.",
        "100.100.100.200",
        "user:password@169.254.169.254",
    ],
)
def test_metadata_services_are_never_a_source(host: str) -> None:
    """Metadata services are refused in any notation, because they return the node's credentials (LK-V-M09)."""
    assert re.search(r"^spec\.source: Forbidden: .* use another host$", errors(model(f"http://{host}/x"))[0])


@pytest.mark.parametrize("host", ["10.0.0.1", "192.168.1.1:8080", "model-server.internal.corp", "[fd12::1]"])
def test_private_hosts_are_a_source(host: str) -> None:
    """Without an allow-list, private hosts are accepted, as in v0.8.7 (LK-V-M09)."""
    assert errors(model(f"http://{host}/m.gguf")) == []


@pytest.mark.parametrize(
    ("source", "passes"),
    [
        ("https://mirror.corp/m.gguf", True),
        ("https://MIRROR.corp:8443/m.gguf", True),
        ("https://a.example.com/m.gguf", True),
        ("https://example.com/m.gguf", False),
        ("https://badexample.com/m.gguf", False),
        ("https://huggingface.co/o/r", False),
        ("/srv/m/x.gguf", True),
        ("file:///srv/m/x.gguf", True),
        ("/srv/models/x.gguf", False),
        ("/srv//m/x.gguf", True),
        ("/etc/shadow", False),
        ("owner/repo", True),
        ("pvc://claim/m.gguf", True),
    ],
)
def test_an_operators_lists_are_kept(source: str, passes: bool) -> None:
    """Hosts and paths that the operator does not list are refused; other sources are accepted (LK-V-M09)."""
    messages = errors(model(source), SETTINGS)
    assert (messages == []) is passes
    assert all(text.startswith("spec.source: Forbidden: ") for text in messages)


@pytest.mark.parametrize(
    ("listed", "source", "passes"),
    [
        ((), "/srv/m/x.gguf", False),
        (("/",), "/srv/m/x.gguf", True),
        (("/srv/m/",), "file:////srv/./m//x.gguf", True),
        (("/srv//./m",), "/srv/m/x.gguf", True),
        (("/srv/m",), "/srv/m", False),
        (("/srv/m/../n",), "/srv/n/x.gguf", True),
    ],
)
def test_files_of_nodes_lie_below_listed_directories(listed: tuple[str, ...], source: str, passes: bool) -> None:
    """No path is allowed by default, and the error names the setting. On metal the list does not apply."""
    settings = Settings(llmkube_allowed_host_paths=listed)
    messages = errors(model(source), settings)
    assert (messages == []) is passes
    assert passes or messages[0].endswith("ask for it to be listed in MODELHOOKS_LLMKUBE_ALLOWED_HOST_PATHS")
    assert errors(model(source, hardware={"accelerator": "metal"}), settings) == []


def test_a_directory_that_is_listed_is_absolute() -> None:
    with pytest.raises(ValidationError, match="'models' must be an absolute path"):
        Settings(llmkube_allowed_host_paths=("models",))


def test_a_model_from_before_may_be_changed() -> None:
    """An existing file stays accepted after a change of settings or an upgrade; another file is refused."""
    before = model("/srv/m/x.gguf")
    same = verdict_of_update(before, model("/srv/m/x.gguf", hardware={"accelerator": "cuda"}), Settings())
    assert same.errors == []
    assert any("(unchanged from before; accepted)" in text for text in same.warnings)
    assert verdict_of_update(before, model("/srv/m/y.gguf"), Settings()).errors


def test_the_operators_hosts_are_those_of_repositories_and_buckets_too() -> None:
    """With an allow-list, the Hub must be listed, and buckets are refused because their host is in a Secret."""
    of_hub = model("hf://org/name/m.gguf")
    assert "host huggingface.co is not among those" in errors(of_hub, SETTINGS)[0]
    assert errors(of_hub, Settings(llmkube_allowed_source_hosts=("huggingface.co",))) == []
    assert "the host of a bucket is in a Secret" in errors(model("s3://bucket/m.gguf"), SETTINGS)[0]
    assert errors(model("s3://bucket/m.gguf")) == []


def test_newer_fields_that_are_right_pass_without_a_word() -> None:
    secret = {"name": "hub"}
    assert errors(model("hf://org/name@v1/q4/m.gguf", mmproj="p.gguf", sourceSecretRef=secret)) == []
    assert warned(model("hf://org/name@v1/q4/m.gguf", mmproj="p.gguf", sourceSecretRef=secret)) == []
    assert warned(model("s3://bucket/prefix", files=["a", "b/c"], sourceSecretRef=secret)) == []
    assert warned(model("https://huggingface.co/o/n/resolve/main/m.gguf", sourceSecretRef=secret)) == []
    gpu = {"count": 1, "vendor": "amd", "runtime": "vulkan", "tolerationKey": "amd.com/gpu"}
    assert warned(model(hardware={"accelerator": "vulkan", "gpu": gpu})) == []


def test_a_move_to_metal_deletes_the_pods_of_services() -> None:
    """A service whose Model is on metal has no children (LK-C.1, LK-V-M48)."""
    metal, pods = model(hardware={"accelerator": "metal"}), model(hardware={"accelerator": "cuda"})
    for before, after, warns in (
        (pods, metal, True),
        (model(), metal, True),
        (metal, metal, False),
        (metal, pods, False),
    ):
        messages = [str(text) for text in verdict_of_update(before, after, Settings()).warnings]
        assert any(text.startswith("spec.hardware.accelerator: the pods of all") for text in messages) is warns

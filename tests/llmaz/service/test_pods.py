"""Models in pods: loaders, volumes, credentials and flavors (LZ-2.4 to LZ-2.9, LZ-4.3, 9)."""

from __future__ import annotations

from typing import Any

import pytest

from app.kube.base import Json
from app.settings import Settings
from tests.llmaz.world import (
    RUNNER,
    SERVICE,
    child,
    condition,
    config,
    model,
    model_at,
    names,
    pods,
    runner,
    service,
    state,
    sync,
)

HF = {"secretKeyRef": {"name": "modelhub-secret", "key": "HF_TOKEN", "optional": True}}
SKIP = {"llmaz.io/skip-model-loader": "true"}


def template(item: Json, *related: Json, **settings: Any) -> Json:
    answer = sync(SERVICE, item, *related, settings=Settings(**settings))
    pod_template: Json = child(answer, "Deployment")["spec"]["template"]
    return pod_template


def env(container: Json) -> Json:
    """Map names of variables to their value or valueFrom, in the order of the list."""
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container.get("env", [])}


def test_loader_of_a_hub() -> None:
    """One init container gets the source in its variables, in upstream's order."""
    source = {"modelHub": {"modelID": "a/b", "filename": "f.gguf"}}
    spec = template(service(), model(source=source))["spec"]
    (loader,) = spec["initContainers"]
    assert (loader["name"], loader["image"]) == ("model-loader", "inftyai/model-loader:v0.0.10")
    assert list(env(loader).items()) == [
        ("MODEL_SOURCE_TYPE", "modelhub"),
        ("MODEL_ID", "a/b"),
        ("MODEL_HUB_NAME", "Huggingface"),
        ("MODEL_FILENAME", "f.gguf"),
        ("REVISION", "main"),
        ("HUGGING_FACE_HUB_TOKEN", HF),
        ("HF_TOKEN", HF),
    ]
    assert loader["volumeMounts"] == [{"name": "model-volume", "mountPath": "/workspace/models/"}]
    assert spec["volumes"] == [{"name": "model-volume", "emptyDir": {}}]
    assert runner({"spec": spec})["volumeMounts"] == [
        {"name": "model-volume", "mountPath": "/workspace/models/", "readOnly": True}
    ]


def test_patterns_of_files_reach_the_loader() -> None:
    """Patterns are joined by commas; an empty list becomes a variable without a value."""
    source = {"modelHub": {"modelID": "a/b", "allowPatterns": ["x", "y"], "ignorePatterns": []}}
    (loader,) = template(service(), model(source=source))["spec"]["initContainers"]
    assert env(loader)["MODEL_ALLOW_PATTERNS"] == "x,y"
    assert {"name": "MODEL_IGNORE_PATTERNS"} in loader["env"]


def test_loader_of_an_object_store() -> None:
    """The loader gets the address of the bucket, and the keys from their Secret."""
    (loader,) = template(service(), model_at("oss://bucket.e.com/models/m"))["spec"]["initContainers"]
    told = env(loader)
    assert [told[n] for n in ("MODEL_SOURCE_TYPE", "PROVIDER", "ENDPOINT", "BUCKET", "MODEL_PATH")] == [
        "objstore",
        "OSS",
        "e.com",
        "bucket",
        "models/m",
    ]
    assert told["OSS_ACCESS_KEY_ID"]["secretKeyRef"]["name"] == "oss-access-secret"
    assert list(told)[-1] == "OSS_ACCESS_KEY_SECRET"


AWS = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]
BUCKETS: dict[str, tuple[str, list[str], list[str]]] = {
    "s3": ("s3://b/models/m", ["s3://b/models/m/", "/workspace/models/models--m"], AWS),
    "with a slash": ("S3://b/m/", ["s3://b/m/", "/workspace/models/models--"], AWS),
    "a file": ("s3://b/m/q4.gguf", ["s3://b/m/q4.gguf", "/workspace/models/"], AWS),
    "Google Cloud, as the pod's account": ("gs://b/m", ["gs://b/m/", "/workspace/models/models--m"], []),
    "by upstream's name": ("gcs://b/m.gguf", ["gs://b/m.gguf", "/workspace/models/"], []),
    "a variable is no text of an address": (
        "s3://b/$(AWS_SECRET_ACCESS_KEY)",
        ["s3://b/$$(AWS_SECRET_ACCESS_KEY)/", "/workspace/models/models--$$(AWS_SECRET_ACCESS_KEY)"],
        AWS,
    ),
}


@pytest.mark.parametrize(("uri", "args", "keys"), BUCKETS.values(), ids=BUCKETS.keys())
def test_loader_of_buckets(uri: str, args: list[str], keys: list[str]) -> None:
    """KServe's storage initializer writes the files to the path that the engine reads."""
    spec = template(service(), model_at(uri))["spec"]
    (loader,) = spec["initContainers"]
    assert (loader["name"], loader["image"]) == ("model-loader", "kserve/storage-initializer:v0.17.0")
    assert loader["args"] == args
    assert [env(loader)[key]["secretKeyRef"]["name"] for key in keys] == ["aws-access-secret"] * len(keys)
    assert list(env(loader)) == keys
    assert ("env" in loader) == bool(keys)
    assert loader["volumeMounts"] == [{"name": "model-volume", "mountPath": "/workspace/models/"}]
    assert spec["volumes"] == [{"name": "model-volume", "emptyDir": {}}]


def test_loader_of_buckets_is_the_operators_choice() -> None:
    """The loader gets the engine's variables for the store. Without an image, engines must load by themselves."""
    given = [{"name": "AWS_ENDPOINT_URL", "value": "http://minio"}, {"name": "AWS_ACCESS_KEY_ID", "value": "own"}]
    item = service(worker=pods({**RUNNER, "env": given}))
    (loader,) = template(item, model_at("s3://b/m"), llmaz_object_loader_image="l:1")["spec"]["initContainers"]
    assert loader["image"] == "l:1"
    assert [entry["name"] for entry in loader["env"]] == ["AWS_ENDPOINT_URL", *AWS]
    assert loader["env"][1]["value"] == "own"
    for uri in ("s3://b/m", "gs://b/m"):
        answer = sync(SERVICE, item, model_at(uri), settings=Settings(llmaz_object_loader_image=""))
        assert answer["children"] == []
        assert state(answer, "Ready") == ("False", "ModelNotLoadable")
        assert 'skip-model-loader: "true"' in condition(answer, "Ready")["message"]


IMAGES: dict[str, tuple[str, str, str]] = {
    "a directory": ("oci://e.com/m/qwen:1", "/models/.", "models"),
    "another": ("oci://e.com/m/qwen:1#/srv/w/", "/srv/w/.", "srv/w"),
    "a file": ("oci://e.com/m/qwen:1#/srv/q4.gguf", "/srv/q4.gguf", "srv"),
}


@pytest.mark.parametrize(("uri", "copied", "part"), IMAGES.values(), ids=IMAGES.keys())
def test_model_in_an_image(uri: str, copied: str, part: str) -> None:
    """A container of that image copies the files; with image volumes enabled, the image is mounted."""
    spec = template(service(), model_at(uri))["spec"]
    (loader,) = spec["initContainers"]
    assert (loader["name"], loader["image"]) == ("model-loader", "e.com/m/qwen:1")
    assert loader["command"][2:] == [
        'mkdir -p "$1" && cp -R "$0" "$1"',
        copied,
        "/workspace/models/models--qwen",
    ]
    assert spec["volumes"] == [{"name": "model-volume", "emptyDir": {}}]
    mounted = template(service(), model_at(uri), llmaz_image_volumes=True)["spec"]
    assert "initContainers" not in mounted
    assert mounted["volumes"] == [{"name": "model-volume", "image": {"reference": "e.com/m/qwen:1"}}]
    assert runner({"spec": mounted})["volumeMounts"] == [
        {"name": "model-volume", "mountPath": "/workspace/models/models--qwen", "subPath": part, "readOnly": True}
    ]


def test_model_in_an_image_of_nothing_else() -> None:
    """The image is mounted without subPath. If the loader is skipped, Ready has a note about the oci:// address."""
    of = model_at("oci://qwen:1#/")
    mounted = template(service(), of, llmaz_image_volumes=True)["spec"]
    assert "subPath" not in runner({"spec": mounted})["volumeMounts"][0]
    for mounts in (False, True):
        skipping = sync(SERVICE, service(annotations=SKIP), of, settings=Settings(llmaz_image_volumes=mounts))
        assert "volumes" not in child(skipping, "Deployment")["spec"]["template"]["spec"]
        assert "oci:// address" in condition(skipping, "Ready")["message"]


TWO = {"models": [{"name": "opt"}, {"name": "small", "role": "draft"}]}


def test_images_beside_other_models() -> None:
    """Beside a loaded model an image is copied, because its mount point would be in a read-only mount."""
    image = model_at("oci://qwen:1", "small")
    loaded = template(service(modelClaims=TWO), model(), image, llmaz_image_volumes=True)["spec"]
    assert names(loaded["initContainers"]) == ["model-loader", "model-loader-1"]
    assert names(loaded["volumes"]) == ["model-volume"]
    host = model_at("host:///srv/m")
    mounted = template(service(modelClaims=TWO), host, image, llmaz_image_volumes=True)["spec"]
    assert "initContainers" not in mounted
    assert [sorted(volume) for volume in mounted["volumes"]] == [["hostPath", "name"], ["image", "name"]]
    assert names(mounted["volumes"]) == ["model-volume", "model-volume-1"]


@pytest.mark.parametrize("mounts", [True, False])
def test_two_images_of_one_name(mounts: bool) -> None:
    """Ready reports that their files would share a directory."""
    related = [model_at("oci://a/qwen:7b"), model_at("oci://b/qwen:1b", "small")]
    settings = Settings(llmaz_image_volumes=mounts)
    answer = sync(SERVICE, service(modelClaims=TWO), *related, settings=settings)
    assert state(answer, "Ready") == ("False", "ModelNotLoadable")
    assert "one directory with those of OpenModel small" in condition(answer, "Ready")["message"]


def test_loader_inherits_the_first_containers_environment() -> None:
    """No name appears twice (LZ-T04): the loader's variables win, except over the user's credentials."""
    given = [
        {"name": "HTTP_PROXY", "value": "p"},
        {"name": "HF_TOKEN", "value": "own"},
        {"name": "MODEL_ID", "value": "x"},
    ]
    (loader,) = template(service(worker=pods({**RUNNER, "env": given})), model())["spec"]["initContainers"]
    assert names(loader["env"]).count("HF_TOKEN") == names(loader["env"]).count("MODEL_ID") == 1
    told = env(loader)
    assert (told["HTTP_PROXY"], told["HF_TOKEN"], told["MODEL_ID"]) == ("p", "own", "facebook/opt")
    assert list(told)[:2] == ["HTTP_PROXY", "HF_TOKEN"]


def test_two_models() -> None:
    """Each model has its loader, the main model's first, after the user's init containers."""
    claim = {"models": [{"name": "small", "role": "draft"}, {"name": "opt"}]}
    worker = pods(initContainers=[{"name": "prepare", "image": "x"}])
    spec = template(service(worker=worker, modelClaims=claim), model(), model("small"))["spec"]
    assert names(spec["initContainers"]) == ["prepare", "model-loader", "model-loader-1"]
    assert env(spec["initContainers"][1])["MODEL_ID"] == "facebook/opt"
    assert env(spec["initContainers"][2])["MODEL_ID"] == "facebook/small"


def test_host_model() -> None:
    """Only the node's directory is mounted, read-only, at the same path (LZ-T02)."""
    spec = template(service(), model_at("host:///srv/m"))["spec"]
    assert "initContainers" not in spec
    assert spec["volumes"] == [{"name": "model-volume", "hostPath": {"path": "/srv/m"}}]
    mounted = {"name": "model-volume", "mountPath": "/srv/m", "readOnly": True}
    assert runner({"spec": spec})["volumeMounts"] == [mounted]
    assert template(service(annotations=SKIP), model_at("host:///srv/m"))["spec"]["volumes"] == spec["volumes"]


@pytest.mark.parametrize("main_is_host", [True, False])
def test_host_model_beside_a_loaded_one(main_is_host: bool) -> None:
    """Each model has a volume; names and mount paths are unique."""
    claim = {"models": [{"name": "opt"}, {"name": "small", "role": "draft"}]}
    host, hub = ("opt", "small") if main_is_host else ("small", "opt")
    spec = template(service(modelClaims=claim), model_at("host:///srv/m", host), model(hub))["spec"]
    assert [next(iter(volume.keys() - {"name"})) for volume in spec["volumes"]] == ["emptyDir", "hostPath"]
    assert len(set(names(spec["volumes"]))) == 2
    assert len({mount["mountPath"] for mount in runner({"spec": spec})["volumeMounts"]}) == 2


def test_two_models_of_one_directory() -> None:
    """The directory is mounted once."""
    claim = {"models": [{"name": "opt"}, {"name": "small", "role": "draft"}]}
    related = [model_at("host:///srv/m", name) for name in ("opt", "small")]
    assert len(template(service(modelClaims=claim), *related)["spec"]["volumes"]) == 1


def test_a_place_that_is_taken() -> None:
    """Ready reports a path that template and model both mount, and no child is created."""
    worker = pods({**RUNNER, "volumeMounts": [{"name": "x", "mountPath": "/srv/m"}]})
    answer = sync(SERVICE, service(worker=worker), model_at("host:///srv/m"))
    assert answer["children"] == []
    assert state(answer, "Ready") == ("False", "TemplateConflict")


SKIPPED: dict[str, tuple[Json, list[str]]] = {
    "hub": (model(), ["HUGGING_FACE_HUB_TOKEN", "HF_TOKEN"]),
    "s3": (model_at("s3://b/x"), ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]),
    "gcs": (model_at("gcs://b/x"), ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]),
    "oss": (model_at("oss://b.e/x"), ["OSS_ACCESS_KEY_ID", "OSS_ACCESS_KEY_SECRET"]),
    "ollama": (model_at("ollama://m"), []),
}


@pytest.mark.parametrize(("source", "added"), SKIPPED.values(), ids=SKIPPED.keys())
def test_skipped_loader(source: Json, added: list[str]) -> None:
    """The engine gets missing credentials; no loader or volume is added."""
    own = [{"name": "HF_TOKEN", "value": "own"}]
    spec = template(service(worker=pods({**RUNNER, "env": own}), annotations=SKIP), source)["spec"]
    assert "initContainers" not in spec
    assert "volumes" not in spec
    got = env(runner({"spec": spec}))
    assert got["HF_TOKEN"] == "own"
    assert list(got) == ["HF_TOKEN", *(name for name in added if name != "HF_TOKEN")]


FLAVORS = [
    {"name": "a", "limits": {"nvidia.com/gpu": 1, "cpu": "2000m"}},
    {"name": "b", "limits": {"nvidia.com/gpu": 4}},
]
CLAIMED: dict[str, tuple[list[str] | None, Json]] = {
    "the model's first": (None, {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "1"}),
    "the claim's first": (["b", "a"], {"cpu": "8", "memory": "1Gi", "nvidia.com/gpu": "4"}),
    "one that the model does not have": (["c"], {"cpu": "8", "memory": "1Gi"}),
}


@pytest.mark.parametrize(("claimed", "limits"), CLAIMED.values(), ids=CLAIMED.keys())
def test_limits_of_the_flavor_replace_those_of_the_engine(claimed: list[str] | None, limits: Json) -> None:
    """The chosen flavor's limits override requests and limits of the engine's container."""
    container = {**RUNNER, "resources": {"limits": {"cpu": 8, "memory": "1024Mi"}}}
    claim: Json = {"models": [{"name": "opt"}], **({"inferenceFlavors": claimed} if claimed else {})}
    item = service(worker=pods(container, {"name": "side", "image": "x"}), modelClaims=claim)
    answer = sync(SERVICE, item, model(inferenceConfig={"flavors": FLAVORS}))
    pod_template = child(answer, "Deployment")["spec"]["template"]
    assert runner(pod_template)["resources"]["limits"] == limits
    assert runner(pod_template)["resources"].get("requests", {}).get("nvidia.com/gpu") == limits.get("nvidia.com/gpu")
    assert "resources" not in pod_template["spec"]["containers"][1]
    annotation = pod_template["metadata"].get("annotations", {}).get("llmaz.io/inference-service-flavors")
    assert annotation == (",".join(claimed) if claimed else None)
    assert ("no flavor c" in condition(answer, "Ready")["message"]) == (claimed == ["c"])


def test_labels_of_the_model_replace_the_users() -> None:
    """The model's labels and those of the selector overwrite the user's; all others are kept."""
    worker = {**pods(), "metadata": {"labels": {"team": "x", "llmaz.io/model-name": "y"}, "annotations": {"a": "b"}}}
    metadata = template(service(worker=worker), model())["metadata"]
    assert metadata == {
        "labels": {
            "team": "x",
            "llmaz.io/model-name": "opt",
            "llmaz.io/model-family-name": "opt",
            "llmaz.io/inference-service": "chat",
        },
        "annotations": {"a": "b"},
    }


CONFIGS: dict[str, tuple[str | None, str | None, str]] = {
    "none": (None, None, "inftyai/model-loader:v0.0.10"),
    "both": ("scheduler-name: s\ninit-container-image: i:1\nother: x\n", "s", "i:1"),
    "no image": ("scheduler-name: s\n", "s", "inftyai/model-loader:v0.0.10"),
    "empty": ("", None, "inftyai/model-loader:v0.0.10"),
}


@pytest.mark.parametrize(("text", "scheduler", "image"), CONFIGS.values(), ids=CONFIGS.keys())
def test_global_config(text: str | None, scheduler: str | None, image: str) -> None:
    """The ConfigMap sets scheduler and loader image; absent values have defaults (LZ-T12)."""
    related = [model()] if text is None else [model(), config(text)]
    spec = template(service(), *related)["spec"]
    assert spec.get("schedulerName") == scheduler
    assert spec["initContainers"][0]["image"] == image
    own = template(service(worker=pods(schedulerName="mine")), *related)["spec"]
    assert own["schedulerName"] == "mine"


MERGED = "a0: &a0 {k: v}\n" + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 12))
"""A few lines of YAML that expand to nine to the eleventh values."""


@pytest.mark.parametrize("text", ["{", "- a\n", "init-container-image: [x]\n", "a: &a [*a", "x" * 70000, MERGED])
def test_broken_global_config(text: str) -> None:
    """No child is created while the ConfigMap cannot be read."""
    answer = sync(SERVICE, service(), model(), config(text))
    assert answer["children"] == []
    assert state(answer, "Ready") == ("False", "GlobalConfigInvalid")


def test_stored_form() -> None:
    """The user's template is sent as the API server stores it, so that no sync finds a difference."""
    worker: Any = pods(
        {**RUNNER, "env": [{"name": "A", "value": ""}], "args": [], "resources": {"limits": {"cpu": 2}}},
        hostNetwork=False,
        nodeSelector={},
        tolerations=None,
        volumes=[{"name": "v", "emptyDir": {"sizeLimit": "1024Mi"}}, {"name": "w", "emptyDir": {}}],
    )
    spec = template(service(worker=worker, annotations=SKIP), model_at("ollama://m"))["spec"]
    assert spec == {
        "enableServiceLinks": False,
        "containers": [{**RUNNER, "env": [{"name": "A"}], "resources": {"limits": {"cpu": "2"}}}],
        "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "w", "emptyDir": {}}],
    }


def test_group_variables_without_a_group() -> None:
    """A container that uses the group's variables gets those of a group of one pod; others get none."""
    given = [{"name": "LWS_WORKER_INDEX", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['x']"}}}]
    speaks = {**RUNNER, "args": ["--peers=$(LWS_GROUP_SIZE)"], "env": [{"name": "Z", "value": "1"}, *given]}
    pod_template = template(service(worker=pods(speaks, {"name": "side", "image": "x"})), model())
    assert runner(pod_template)["env"] == [
        {"name": "LWS_GROUP_SIZE", "value": "1"},
        {"name": "LWS_WORKER_INDEX", "value": "0"},
        {"name": "Z", "value": "1"},
    ]
    assert "env" not in pod_template["spec"]["containers"][1]


SPEAKING: dict[str, Json] = {
    "a mount": {"volumeMounts": [{"name": "v", "mountPath": "/v", "subPathExpr": "$(LWS_WORKER_INDEX)"}]},
    "a probe": {"startupProbe": {"exec": {"command": ["sh", "-c", "test $LWS_WORKER_INDEX = 0"]}}},
    "a hook": {"lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", "leave $LWS_WORKER_INDEX"]}}}},
}


@pytest.mark.parametrize("part", SPEAKING.values(), ids=SPEAKING.keys())
def test_group_variables_anywhere(part: Json) -> None:
    """The variables are added for any part that uses them; a mount without its variable would never start."""
    pod_template = template(service(worker=pods({**RUNNER, **part}, volumes=[{"name": "v", "emptyDir": {}}])), model())
    assert runner(pod_template)["env"] == [{"name": "LWS_WORKER_INDEX", "value": "0"}]


def test_notes_on_what_engines_load() -> None:
    """Ready notes sources that engines cannot load by themselves (LZ-T17, LZ-T18)."""
    gcs = sync(SERVICE, service(annotations=SKIP), model_at("gcs://b/x"))
    scope = sync(
        SERVICE, service(annotations=SKIP), model(source={"modelHub": {"name": "ModelScope", "modelID": "a/b"}})
    )
    assert "gs://" in condition(gcs, "Ready")["message"]
    assert "Hugging Face" in condition(scope, "Ready")["message"]

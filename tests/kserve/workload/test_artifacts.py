"""Model download or mount in a pod, by the scheme of the model's URI, and the credentials for it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app import images
from app.kserve.operator import S3, StorageInitializer
from app.kserve.workload.artifacts import ArtifactError, artifact
from app.kserve.workload.credentials import HUB_DEFAULTS, s3_variables
from app.kube.base import Json
from tests.kserve.objects import Cluster, admit, service
from tests.kserve.workload.test_workloads import DP, account, group, template

PROVISION = "kserve-provision-location"


def pod(uri: str, *related: Json, **spec: Any) -> Json:
    """Return the main pod of a service with that model."""
    cluster = Cluster(service(uri=uri, **spec), *related)
    cluster.sync()
    pod_spec: Json = template(cluster)["spec"]
    return pod_spec


def named(items: list[Json], name: str) -> Json | None:
    return next((item for item in items if item["name"] == name), None)


def container(pod: Json, name: str = "main", where: str = "containers") -> Json:
    only = named(pod[where], name)
    assert only is not None
    return only


def operator(**documents: Json) -> Json:
    data = {key: json.dumps(value) for key, value in documents.items()}
    metadata = {"name": "inferenceservice-config", "namespace": "kserve"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


@pytest.mark.parametrize(
    ("uri", "claim", "path"),
    [
        ("pvc://claim", "claim", None),
        ("pvc://claim/", "claim", None),
        ("pvc://claim/a/b", "claim", "a/b"),
        ("PVC://claim/a b", "claim", "a%20b"),
    ],
)
def test_a_claim_is_mounted(uri: str, claim: str, path: str | None) -> None:
    """The claim is mounted at the usual path; a path in the URI becomes the subPath."""
    pod_spec = pod(uri)
    mount = named(container(pod_spec)["volumeMounts"], "kserve-pvc-source")
    wanted = {"name": "kserve-pvc-source", "mountPath": "/mnt/models", "readOnly": True}
    assert mount == ({**wanted, "subPath": path} if path else wanted)
    volume = named(pod_spec["volumes"], "kserve-pvc-source")
    assert volume == {"name": "kserve-pvc-source", "persistentVolumeClaim": {"claimName": claim}}
    assert "initContainers" not in pod_spec


@pytest.mark.parametrize(
    ("uri", "argument"), [("hf://a/b", "hf://a/b"), ("HF://a/b", "hf://a/b"), ("s3://bucket/m", "s3://bucket/m")]
)
def test_downloads_before_the_server_starts(uri: str, argument: str) -> None:
    """An init container downloads the model into a volume that is read-only for the server."""
    pod_spec = pod(uri)
    init = container(pod_spec, "storage-initializer", "initContainers")
    assert {key: value for key, value in init.items() if key != "env"} == {
        "name": "storage-initializer",
        "image": images.STORAGE_INITIALIZER,
        "args": [argument, "/mnt/models"],
        "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": PROVISION, "mountPath": "/mnt/models"}],
    }
    mount = named(container(pod_spec)["volumeMounts"], PROVISION)
    assert mount == {"name": PROVISION, "mountPath": "/mnt/models", "readOnly": True}
    assert named(pod_spec["volumes"], PROVISION) == {"name": PROVISION, "emptyDir": {}}


def test_an_image_is_a_model() -> None:
    """The image runs beside the server, which reads it in the shared process namespace. An init container checks it."""
    pod_spec = pod("oci://registry.example.com/llm/model:1")
    main, car = container(pod_spec), container(pod_spec, "modelcar")
    init = container(pod_spec, "modelcar-init", "initContainers")
    mount = {"name": PROVISION, "mountPath": "/mnt"}
    assert pod_spec["shareProcessNamespace"] is True
    assert main["securityContext"]["runAsUser"] == 1010
    assert {"name": "MODEL_INIT_MODE", "value": "async"} in main["env"]
    assert mount in main["volumeMounts"]
    assert car["volumeMounts"] == [mount]
    assert car["securityContext"] == {"runAsUser": 1010}
    assert car["image"] == init["image"] == "registry.example.com/llm/model:1"
    amounts = {"cpu": "10m", "memory": "15Mi"}
    assert car["resources"] == init["resources"] == {"requests": amounts, "limits": amounts}
    assert car["args"][:2] == init["args"][:2] == ["sh", "-c"]
    assert "/proc/$$$$/root/models" in car["args"][2]


def test_without_a_user_the_servers_security_stays() -> None:
    """A storageInitializer document without uidModelcar sets no user."""
    pod_spec = pod("oci://r.io/m:1", operator(storageInitializer={"cpuModelcar": "1000m"}))
    assert container(pod_spec)["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert "securityContext" not in container(pod_spec, "modelcar")
    assert container(pod_spec, "modelcar")["resources"]["limits"]["cpu"] == "1"


@pytest.mark.parametrize("uri", ["hf://a/b", "pvc://c", "oci://r.io/m:1", "gs://b/m"])
def test_nothing_happens_when_it_is_switched_off(uri: str) -> None:
    """The containers then fetch the model themselves, from any scheme."""
    pod_spec = pod(uri, storageInitializer={"enabled": False})
    assert "initContainers" not in pod_spec
    assert [volume["name"] for volume in pod_spec["volumes"]] == ["home", "tmp-dir", "dshm", "model-cache", "tls-certs"]


@pytest.mark.parametrize(
    ("uri", "enabled", "modelcar", "message"),
    [
        ("", True, True, "has no model: set model.uri"),
        ("a/b", False, True, "invalid model URI"),
        ("ftp://b/m", True, True, "ftp:// is not supported, use hf://"),
        ("gs://Bucket/m", True, True, "the bucket must be up to 222"),
        ("oci://r.io/m:1", True, False, "enableModelcar is off"),
        ("oci://image:tag", True, True, "port"),
    ],
)
def test_addresses_that_cannot_be_used(uri: str, enabled: bool, modelcar: bool, message: str) -> None:
    """Each message has the remedy."""
    with pytest.raises(ArtifactError, match=message):
        artifact(uri, StorageInitializer(enable_modelcar=modelcar), enabled=enabled)


def test_every_pod_of_a_group_has_the_model() -> None:
    """Leader and workers download it alike."""
    cluster = Cluster(service(worker={}, parallelism=DP))
    cluster.sync()
    for name in ("leaderTemplate", "workerTemplate"):
        pod_spec = group(cluster)["leaderWorkerTemplate"][name]["spec"]
        assert container(pod_spec, "storage-initializer", "initContainers")["args"][0] == "hf://facebook/opt-125m"


def test_only_a_container_called_main_gets_the_mount() -> None:
    """Other containers are the user's."""
    pod_spec = pod("hf://a/b", template={"containers": [{"name": "proxy", "image": "p"}]})
    assert "volumeMounts" not in container(pod_spec, "proxy")


def test_a_user_may_mount_the_volume_elsewhere() -> None:
    """A container that mounts the volume already is unchanged."""
    mounts = [{"name": PROVISION, "mountPath": "/weights"}]
    pod_spec = pod("hf://a/b", template={"containers": [{"name": "main", "volumeMounts": mounts}]})
    assert named(container(pod_spec)["volumeMounts"], PROVISION) == mounts[0]


def test_a_users_storage_initializer_is_completed() -> None:
    """The user's container is merged over the default one by name, so the model is still downloaded."""
    init = {
        "name": "storage-initializer",
        "image": "mine",
        "command": ["/mine"],
        "args": ["hf://other/model", "/mnt/models"],
        "env": [{"name": "X", "value": "1"}],
        "resources": {"limits": {"memory": "8Gi"}},
        "volumeMounts": [{"name": "home", "mountPath": "/home"}],
    }
    pod_spec = pod("hf://a/b", template={"initContainers": [init]})
    assert len(pod_spec["initContainers"]) == 1
    assert pod_spec["initContainers"][0]["image"] == "mine"
    assert pod_spec["initContainers"][0]["args"] == ["hf://a/b", "/mnt/models"]
    assert "command" not in pod_spec["initContainers"][0]
    warned = [str(w.path) for w in admit(service(template={"initContainers": [init]})).warnings]
    place = "spec.template.initContainers[0]"
    assert {f"{place}.command", f"{place}.args"} <= {*warned}
    assert pod_spec["initContainers"][0]["resources"]["limits"] == {"cpu": "1", "memory": "8Gi"}
    assert [mount["mountPath"] for mount in pod_spec["initContainers"][0]["volumeMounts"]] == ["/home", "/mnt/models"]


@pytest.mark.parametrize("uri", ["pvc://weights/m", "oci://example.com/m:1", "oci+native://example.com/m:1"])
def test_a_storage_initializer_without_a_download_is_left_out(uri: str) -> None:
    """A config for all services may set its resources; a running one that downloads nothing stays."""
    init = {"name": "storage-initializer", "resources": {"limits": {"memory": "8Gi"}}}
    pod = {
        "containers": [{"name": "main"}],
        "initContainers": [{"name": "mine", "image": "example.com/mine:1"}, init],
    }
    cluster = Cluster(service(model={"uri": "hf://a/b"}, template=pod))
    cluster.settle()
    assert "storage-initializer" in _steps(cluster)
    cluster.parent["spec"]["model"]["uri"] = uri
    cluster.settle()
    assert [name for name in _steps(cluster) if name != "modelcar-init"] == ["mine"]
    running = cluster.child("Deployment", "demo-kserve")
    running["spec"]["template"]["spec"]["initContainers"].append({**init, "image": "example.com/mine:1"})
    cluster.sync()
    assert "storage-initializer" in _steps(cluster)


def _steps(cluster: Cluster) -> list[str]:
    return [step["name"] for step in template(cluster)["spec"].get("initContainers", [])]


def test_the_running_image_is_kept() -> None:
    """A new release, or a change of the operator's settings, restarts no pods."""
    cluster = Cluster(service())
    cluster.sync()
    cluster.related.append(operator(storageInitializer={"image": "new:2"}))
    cluster.sync()
    init = container(template(cluster)["spec"], "storage-initializer", "initContainers")
    assert init["image"] == images.STORAGE_INITIALIZER


def test_pods_do_not_wait_for_a_secret_of_certificates() -> None:
    """Certificates are not created, so pods must not wait for the Secret, even if a config mounts it."""
    volume = named(pod("hf://a/b")["volumes"], "tls-certs")
    assert volume == {
        "name": "tls-certs",
        "secret": {"secretName": "demo-kserve-self-signed-certs", "optional": True},
    }


def test_a_share_is_served_from_the_path_within_it() -> None:
    """The download keeps the share's directories, so the server mounts the path of the URI."""
    pod_spec = pod("https://acme.file.core.windows.net/share/llm/llama/")
    assert container(pod_spec, "storage-initializer", "initContainers")["args"][1] == "/mnt/models"
    mount = named(container(pod_spec)["volumeMounts"], PROVISION)
    assert mount == {"name": PROVISION, "mountPath": "/mnt/models", "readOnly": True, "subPath": "llm/llama"}


# Credentials.

HF = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "HF_TOKEN", "optional": True}}}


def env(uri: str, *related: Json, notes: Json | None = None, **spec: Any) -> list[Json]:
    cluster = Cluster(service(uri=uri, notes=notes, **spec), *related)
    cluster.sync()
    variables: list[Json] = container(template(cluster)["spec"], "storage-initializer", "initContainers").get("env", [])
    return [variable for variable in variables if variable["name"] not in HUB_DEFAULTS]


def test_the_scheme_decides_what_a_secret_is_for() -> None:
    """Secrets are never read, so every key is optional."""
    default = account("default", secrets=[{"name": "s"}])
    assert env("hf://a/b", default) == [HF]
    variables = env("s3://b/m", default)
    assert [variable["name"] for variable in variables] == ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]
    assert all(variable["valueFrom"]["secretKeyRef"]["optional"] for variable in variables)


def test_the_first_secret_wins() -> None:
    """A variable can only have one source."""
    assert env("hf://a/b", account("default", secrets=[{"name": "s"}, {"name": "t"}])) == [HF]


def test_the_annotated_secret_is_the_only_one() -> None:
    notes = {"serving.kserve.io/storageSecretName": "s"}
    assert env("hf://a/b", account("default", secrets=[{"name": "t"}]), notes=notes) == [HF]


def test_an_account_of_the_pods_own_is_asked() -> None:
    """The pod's account takes precedence over the namespace's default one."""
    accounts = account("default", secrets=[{"name": "t"}]), account("mine", secrets=[{"name": "s"}])
    assert env("hf://a/b", *accounts, template={"serviceAccountName": "mine"}) == [HF]


def test_no_credentials_without_account() -> None:
    """Without an account, the annotation has no effect either."""
    assert env("hf://a/b", notes={"serving.kserve.io/storageSecretName": "s"}) == []


def test_a_cloud_role_brings_the_s3_variables() -> None:
    """The variables come from the account's annotations; no Secret is needed."""
    metadata = {
        "name": "default",
        "namespace": "default",
        "annotations": {
            "eks.amazonaws.com/role-arn": "arn",
            "serving.kserve.io/s3-endpoint": "s3.amazonaws.com",
            "serving.kserve.io/s3-region": "eu",
        },
    }
    variables = env("s3://b/m", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    assert variables == [
        {"name": "S3_ENDPOINT", "value": "s3.amazonaws.com"},
        {"name": "AWS_ENDPOINT_URL", "value": "https://s3.amazonaws.com"},
        {"name": "AWS_DEFAULT_REGION", "value": "eu"},
    ]


@pytest.mark.parametrize(
    ("endpoint", "use_https", "values"),
    [
        ("https://h", "", ["1", "h", "https://h"]),
        ("http://h:9000", "1", ["0", "h:9000", "http://h:9000"]),
        (" h ", "", ["h", "https://h"]),
        ("h", "1", ["1", "h", "https://h"]),
        ("h", "0", ["0", "h", "http://h"]),
        ("", "1", []),
    ],
)
def test_s3_endpoints(endpoint: str, use_https: str, values: list[str]) -> None:
    """A scheme in the endpoint takes precedence over the setting; the default is HTTPS."""
    variables = s3_variables({}, S3(endpoint=endpoint, use_https=use_https))
    assert [variable["value"] for variable in variables] == values


def test_s3_annotations_beat_the_operators_settings() -> None:
    variables = s3_variables({"serving.kserve.io/s3-region": "eu"}, S3(region="us", verify_ssl="0", use_accelerate="1"))
    assert variables == [
        {"name": "S3_VERIFY_SSL", "value": "0"},
        {"name": "AWS_DEFAULT_REGION", "value": "eu"},
        {"name": "S3_USE_ACCELERATE", "value": "1"},
    ]


def optional(variable: str, key: str) -> Json:
    return {"name": variable, "valueFrom": {"secretKeyRef": {"name": "s", "key": key, "optional": True}}}


AZURE = ("TENANT_ID", "CLIENT_ID", "CLIENT_SECRET")


@pytest.mark.parametrize(
    "uri", ["https://acme.blob.core.windows.net/models/llama/", "https://acme.z12.file.storage.azure.net/share/llama"]
)
def test_azure_takes_keys_of_both_spellings(uri: str) -> None:
    """Keys that the Secret lacks are not set; the initializer prefers the older spelling."""
    names = [*(f"AZURE_{name}" for name in AZURE), "AZURE_STORAGE_ACCESS_KEY", *(f"AZ_{name}" for name in AZURE)]
    assert env(uri, account("default", secrets=[{"name": "s"}])) == [optional(name, name) for name in names]


def test_modelscope_has_a_token_of_its_own() -> None:
    (token,) = env("modelscope://acme/llama", account("default", secrets=[{"name": "s"}]))
    assert token == optional("MODELSCOPE_API_TOKEN", "MODELSCOPE_API_TOKEN")


def test_google_reads_a_file() -> None:
    """Only the initializer mounts the Secret; a missing Secret does not block the pod."""
    pod_spec = pod("gs://bucket/llama", account("default", secrets=[{"name": "s"}]))
    init = container(pod_spec, "storage-initializer", "initContainers")
    path = "/var/secrets/gcloud-application-credentials.json"
    assert init["env"] == [{"name": "GOOGLE_APPLICATION_CREDENTIALS", "value": path}]
    assert {"name": "user-gcp-sa", "mountPath": "/var/secrets/", "readOnly": True} in init["volumeMounts"]
    assert named(pod_spec["volumes"], "user-gcp-sa") == {
        "name": "user-gcp-sa",
        "secret": {"secretName": "s", "optional": True},
    }
    assert named(container(pod_spec)["volumeMounts"], "user-gcp-sa") is None


def test_of_several_secrets_the_first_key_counts() -> None:
    """One volume has the files of all Secrets; the last source wins, so the first Secret comes last."""
    pod_spec = pod("gs://bucket/llama", account("default", secrets=[{"name": "s"}, {"name": "t"}]))
    volume = named(pod_spec["volumes"], "user-gcp-sa")
    assert volume is not None
    names = [source["secret"]["name"] for source in volume["projected"]["sources"]]
    assert names == ["t", "s"]


@pytest.mark.parametrize("uri", ["gs://bucket/llama", "hdfs://models/llama"])
def test_ignores_secrets_that_the_cluster_created(uri: str) -> None:
    """A path to a missing credentials file would disable Workload Identity."""
    generated = [{"name": "default-token-x7f2"}, {"name": "default-dockercfg-q8"}]
    pod_spec = pod(uri, account("default", secrets=generated))
    init = container(pod_spec, "storage-initializer", "initContainers")
    assert "env" not in init
    assert len(init["volumeMounts"]) == 1


def test_the_file_is_called_as_the_operators_settings_say() -> None:
    settings = operator(credentials={"gcs": {"gcsCredentialFileName": "key.json"}})
    variables = env("gs://bucket/llama", settings, account("default", secrets=[{"name": "s"}]))
    assert variables == [{"name": "GOOGLE_APPLICATION_CREDENTIALS", "value": "/var/secrets/key.json"}]


@pytest.mark.parametrize("uri", ["hdfs://models/llama", "webhdfs://models/llama"])
def test_hdfs_reads_its_secret_as_files(uri: str) -> None:
    pod_spec = pod(uri, account("default", secrets=[{"name": "s"}]))
    init = container(pod_spec, "storage-initializer", "initContainers")
    assert "env" not in init
    mount = {"name": "hdfs-secrets", "mountPath": "/var/secrets/kserve-hdfscreds", "readOnly": True}
    assert mount in init["volumeMounts"]


def test_headers_go_only_to_the_host_of_an_annotated_secret() -> None:
    """An account's Secret is not meant for a particular host, and a URI may name any host."""
    uri, default = "https://Models.example.com:8443/llama.tar.gz", account("default", secrets=[{"name": "s"}])
    assert env(uri, default) == []
    notes = {"serving.kserve.io/storageSecretName": "s"}
    assert env(uri, default, notes=notes) == [optional("models.example.com-headers", "headers")]
    assert env("https://git.example.com/llama.git", default, notes=notes) == [
        optional("GIT_USERNAME", "GIT_USERNAME"),
        optional("GIT_PASSWORD", "GIT_PASSWORD"),
    ]


LABELS = {"app.kubernetes.io/name": "demo", "app.kubernetes.io/part-of": "llminferenceservice"}
WAITING: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "default", "labels": LABELS},
    "status": {"phase": "Pending"},
}


@pytest.mark.parametrize(
    ("uri", "secrets", "said"),
    [
        ("s3://b/m", ["s"], "serving.kserve.io/s3-endpoint"),
        ("hdfs://models/llama", [], "HDFS_NAMENODE"),
        ("https://203.0.113.7/llama.tar", ["s"], "203.0.113.7-headers"),
    ],
)
def test_pods_that_cannot_download_hear_what_is_missing(uri: str, secrets: list[str], said: str) -> None:
    """``Ready`` names the required value that neither a Secret nor its annotations have."""
    notes = {"serving.kserve.io/storageSecretName": "s"} if said.endswith("headers") else None
    cluster = Cluster(
        service(uri=uri, notes=notes), account("default", secrets=[{"name": n} for n in secrets]), WAITING
    )
    cluster.settle()
    condition = cluster.condition("Ready")
    assert condition is not None
    assert said in condition["message"]


DENIED: Json = {"name": "storage-initializer", "state": {"terminated": {"exitCode": 1, "message": "401 gated"}}}
RUNNING: Json = {"name": "storage-initializer", "state": {"running": {}}}


@pytest.mark.parametrize("initializer", [DENIED, RUNNING], ids=["failed", "running"])
@pytest.mark.parametrize("side", ["template", "worker", "prefill"])
def test_ready_names_a_token_that_the_download_does_not_get(initializer: Json, side: str) -> None:
    """The hint follows the error of the download, and goes away once a Secret is named."""
    main = {"containers": [{"name": "main", "env": [{"name": "HF_TOKEN", "value": "x"}]}]}
    spec: Json = {"template": {"template": main}, "worker": {"worker": main, "parallelism": DP}}.get(
        side, {"prefill": {"template": main}}
    )
    pod = {**WAITING, "status": {"phase": "Pending", "initContainerStatuses": [initializer]}}
    for notes in (None, {"serving.kserve.io/storageSecretName": "s"}):
        cluster = Cluster(service(uri="hf://a/b", notes=notes, **spec), account("default"), pod)
        cluster.settle()
        condition = cluster.condition("Ready")
        assert condition is not None
        assert condition["reason"] != "TokenNotForDownload"
        download, _, hint = condition["message"].partition("; the init container ")
        assert "init container storage-initializer" in download
        assert ("HF_TOKEN" in hint and "serving.kserve.io/storageSecretName" in hint) is (notes is None)


@pytest.mark.parametrize("uri", ["gs://b/m", "https://h.example.com/m.tar", "https://a.blob.core.windows.net/c/m"])
def test_a_ca_bundle_is_mounted_for_every_other_host(uri: str) -> None:
    """HDFS has separate certificates and the Hugging Face hub is public, so neither gets the bundle."""
    settings = operator(storageInitializer={"caBundleConfigMapName": "ca"})
    assert named(pod(uri, settings)["volumes"], "cabundle-cert") is not None
    assert named(pod("hdfs://m/llama", settings)["volumes"], "cabundle-cert") is None
    assert named(pod("hf://a/b", settings)["volumes"], "cabundle-cert") is None


@pytest.mark.parametrize(("namespace", "name"), [("default", "global-ca-bundle"), ("kserve", "ca")])
def test_a_ca_bundle_is_mounted_for_s3(namespace: str, name: str) -> None:
    """In the system namespace it has the configured name, in others a common one."""
    parent = service(uri="s3://b/m")
    parent["metadata"]["namespace"] = namespace
    cluster = Cluster(parent, operator(storageInitializer={"caBundleConfigMapName": "ca"}))
    cluster.sync()
    pod_spec = template(cluster)["spec"]
    init = container(pod_spec, "storage-initializer", "initContainers")
    assert named(pod_spec["volumes"], "cabundle-cert") == {"name": "cabundle-cert", "configMap": {"name": name}}
    assert {"name": "cabundle-cert", "mountPath": "/etc/ssl/custom-certs", "readOnly": True} in init["volumeMounts"]
    assert init["env"] == [
        {"name": "CA_BUNDLE_CONFIGMAP_NAME", "value": name},
        {"name": "CA_BUNDLE_VOLUME_MOUNT_POINT", "value": "/etc/ssl/custom-certs"},
    ]


@pytest.mark.parametrize(
    ("uri", "settings"),
    [("oci+native://r.io/m:1", {}), ("oci://r.io/m:1", {"ociModelMode": "native"})],
)
def test_an_image_is_mounted(uri: str, settings: Json) -> None:
    """An image volume is used for that scheme, or for all images if the operator's settings choose so."""
    operator = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "inferenceservice-config", "namespace": "kserve"},
        "data": {"storageInitializer": json.dumps(settings)},
    }
    cluster = Cluster(service(uri=uri), operator)
    cluster.sync()
    pod_ = cluster.child("Deployment", "demo-kserve")["spec"]["template"]["spec"]
    assert [container["name"] for container in pod_["containers"]] == ["main"]
    assert "initContainers" not in pod_
    mount = {"name": "mnt-models", "mountPath": "/mnt/models", "readOnly": True, "subPath": "models"}
    assert pod_["containers"][0]["volumeMounts"][-1] == mount
    assert pod_["volumes"][-1] == {
        "name": "mnt-models",
        "image": {"reference": "r.io/m:1", "pullPolicy": "IfNotPresent"},
    }

"""A Model's children and status, by class of the source and observed state (LK-2)."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest

from app.kube.base import Json
from app.kube.conditions import rfc3339
from app.llmkube.download import script
from app.llmkube.kinds import MODEL
from app.settings import Settings
from tests.builders import NOW
from tests.llmkube.objects import KEY, child, condition, customize, model, observed, sync

SHA = "A" * 64
EARLIER = rfc3339(NOW - timedelta(seconds=60))


def claim_object(name: str, phase: str, storage_class: str = "") -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "ns1"},
        "spec": {"storageClassName": storage_class} if storage_class else {},
        "status": {"phase": phase} if phase else {},
    }


def job_status(type_: str, at: str = EARLIER, message: str = "") -> Json:
    return {
        "conditions": [{"type": type_, "status": "True", "reason": "Why", "message": message, "lastTransitionTime": at}]
    }


def job_pod(job: Json, exit_code: int, message: str, name: str = "p") -> Json:
    ended = {"exitCode": exit_code, "reason": "Completed" if exit_code == 0 else "Error", "message": message}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "ns1",
            "labels": {"batch.kubernetes.io/job-name": job["metadata"]["name"]},
        },
        "status": {
            "phase": "Succeeded" if exit_code == 0 else "Failed",
            "containerStatuses": [{"name": "model-downloader", "state": {"terminated": ended}}],
        },
    }


def job_and_claim(document: Json, settings: Settings | None = None) -> tuple[Json, Json]:
    """Return the Job and the claim of a new Model."""
    answer = sync(document, settings=settings)
    job, claim = child(answer, "Job"), child(answer, "PersistentVolumeClaim")
    assert job is not None
    assert claim is not None
    return job, claim


# The children.


def test_an_http_source_gets_a_job_and_a_claim() -> None:
    """The Job writes to the claim, and its name depends on the source."""
    job, claim = job_and_claim(model())
    assert job["metadata"]["name"] == f"m-dl-{KEY}"
    assert claim["metadata"]["name"] == "m-cache"
    assert claim["spec"] == {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "100Gi"}}}
    pod = job["spec"]["template"]["spec"]
    assert pod["volumes"] == [{"name": "model-cache", "persistentVolumeClaim": {"claimName": "m-cache"}}]
    assert pod["restartPolicy"] == "Never"
    assert pod["automountServiceAccountToken"] is False
    container = pod["containers"][0]
    assert {item["name"]: item.get("value") for item in container["env"]} == {
        "MODEL_SOURCE": "https://example.com/model.gguf",
        "CACHE_DIR": f"/models/{KEY}",
        "MODEL_PATH": f"/models/{KEY}/m.gguf",
    }
    assert "ttlSecondsAfterFinished" not in job["spec"]


def test_a_checksum_makes_another_job() -> None:
    """Jobs are immutable, so each checksum has a Job with another name."""
    documents = (model(), model(sha256=SHA), model(sha256="b" * 64))
    names = {job_and_claim(document)[0]["metadata"]["name"] for document in documents}
    assert len(names) == 3
    job, _ = job_and_claim(model(sha256=SHA))
    assert {"name": "MODEL_SHA256", "value": SHA.lower()} in job["spec"]["template"]["spec"]["containers"][0]["env"]


def downloader(document: Json) -> Json:
    """Return the container of the Model's Job."""
    return dict(job_and_claim(document)[0]["spec"]["template"]["spec"]["containers"][0])


def variables(container: Json) -> Json:
    return {item["name"]: item.get("value", "") for item in container["env"]}


def test_a_file_of_a_repository_is_fetched_by_a_job() -> None:
    """Upstream documents this form but cannot fetch it; the token comes from the Secret (LK-2.1)."""
    document = model("hf://org/name@v1/q4/m.gguf", sourceSecretRef={"name": "hub"})
    fetching = downloader(document)
    directory = f"/models/{sync(document)['status']['cacheKey']}"
    assert variables(fetching) == {
        "MODEL_SOURCE": "https://huggingface.co/org/name/resolve/v1/",
        "CACHE_DIR": directory,
        "MODEL_PATH": f"{directory}/q4/m.gguf",
        "MODEL_FILES": "q4/m.gguf",
    } | {key: value for key, value in variables(fetching).items() if key == "KEEP_KEYS"}
    assert fetching["envFrom"] == [{"secretRef": {"name": "hub"}}]
    assert "HF_TOKEN" in fetching["command"][2]
    assert sync(document)["status"]["path"] == f"{directory}/q4/m.gguf"


@pytest.mark.parametrize("source", ["org/name", "hf://org/name", "s3://bucket/prefix"])
def test_several_files_are_fetched_and_staged(source: str) -> None:
    """The first file is served; the status lists the files once all are downloaded."""
    document = model(source, files=["a/1.gguf", "a/2.gguf"], mmproj="p.gguf")
    assert variables(downloader(document))["MODEL_FILES"] == "a/1.gguf\na/2.gguf\np.gguf"
    assert "stagedFiles" not in sync(document)["status"]
    status = downloaded(document, gguf=HEADER)
    assert status["stagedFiles"] == ["a/1.gguf", "a/2.gguf", "p.gguf"]
    assert status["quantization"] == "Q4_K_M"
    other = sync(model("https://example.com/other.gguf", status=status))["status"]
    assert "stagedFiles" not in other


def test_other_files_or_another_secret_are_another_job() -> None:
    """Jobs are immutable, and a new Secret does not wait for the back-off of a failed Job (LK-2.9.4)."""
    documents = [
        model("hf://org/name", files=["a"]),
        model("hf://org/name", files=["a", "b"]),
        model("hf://org/name", files=["a"], sourceSecretRef={"name": "one"}),
        model("hf://org/name", files=["a"], sourceSecretRef={"name": "two"}),
        model(sourceSecretRef={"name": "one"}),
        model(),
    ]
    names = [job_and_claim(document)[0]["metadata"]["name"] for document in documents]
    assert len(set(names)) == len(names)
    assert names[-1] == f"m-dl-{KEY}", "as it always was"


def test_a_secret_that_nothing_reads_changes_nothing() -> None:
    with_secret = model("/srv/m.gguf", sourceSecretRef={"name": "one"})
    assert job_and_claim(with_secret) == job_and_claim(model("/srv/m.gguf"))
    assert sync(model("org/name", sourceSecretRef={"name": "one"}))["children"] == []


def test_an_object_of_a_bucket_is_fetched_by_a_job() -> None:
    """The Job gets the s3:// address as it is; the endpoint is in the Secret, which the hook does not read."""
    document = model("s3://bucket/some key/m.gguf", sourceSecretRef={"name": "keys"}, refreshPolicy="OnChange")
    fetching, status = downloader(document), sync(document)["status"]
    assert variables(fetching)["MODEL_SOURCE"] == "s3://bucket/some key/m.gguf"
    assert variables(fetching)["REFRESH_POLICY"] == "OnChange"
    assert status["path"] == f"/models/{status['cacheKey']}/m.gguf"
    assert "aws-sigv4" in fetching["command"][2]


def test_scripts_have_what_their_source_needs() -> None:
    """The script of a plain URL is unchanged; parts for credentials and several files are added if needed."""
    plain, with_token = downloader(model()), downloader(model(sourceSecretRef={"name": "hub"}))
    assert plain["command"][2] == script(in_job=True)
    assert "aws-sigv4" not in script(in_job=True)
    assert "envFrom" not in plain
    assert "aws-sigv4" in with_token["command"][2]
    assert "MODEL_FILES" not in with_token["command"][2]


def test_a_wrong_list_of_files_has_a_reason() -> None:
    answer = sync(model("org/name", files=["*.gguf"]))
    assert (condition(answer, "Degraded") or {})["reason"] == "InvalidFileSet"
    assert answer["status"]["phase"] == "Failed"


def test_a_local_source_is_copied_from_its_node() -> None:
    """The Job mounts the file read-only, with type File."""
    job, _ = job_and_claim(model("file:///mnt/x.gguf"))
    pod = job["spec"]["template"]["spec"]
    assert {"name": "host-model", "hostPath": {"path": "/mnt/x.gguf", "type": "File"}} in pod["volumes"]
    mount = {"name": "host-model", "mountPath": "/host-model/model.gguf", "readOnly": True}
    assert mount in pod["containers"][0]["volumeMounts"]


@pytest.mark.parametrize(
    ("document", "settings"),
    [
        (model("owner/repo"), Settings()),
        (model("https://huggingface.co/owner/repo"), Settings()),
        (model("pvc://claim/m.gguf"), Settings()),
        (model(hardware={"accelerator": "metal"}), Settings()),
        (model("/mnt/m.gguf", hardware={"accelerator": "metal"}), Settings()),
        (model(), Settings(llmkube_model_cache_path="")),
    ],
)
def test_no_children_without_download(document: Json, settings: Settings) -> None:
    assert sync(document, settings=settings)["children"] == []


def test_operator_settings_shape_the_claim() -> None:
    settings = Settings(
        llmkube_model_cache_size="1024Mi",
        llmkube_model_cache_storage_class="fast",
        llmkube_model_cache_access_mode="ReadWriteMany",
    )
    _, claim = job_and_claim(model(), settings)
    assert claim["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "fast",
    }


def test_a_typing_error_in_the_access_mode_means_one_writer() -> None:
    _, claim = job_and_claim(model(), Settings(llmkube_model_cache_access_mode="readwritemany"))
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]


def test_reports_an_invalid_size_and_keeps_children() -> None:
    """An invalid setting prevents new claims; existing children are kept."""
    settings = Settings(llmkube_model_cache_size="big")
    answer = sync(model(), settings=settings)
    assert answer["children"] == []
    assert answer["status"]["phase"] == "Failed"
    assert (
        "MODELHOOKS_LLMKUBE_MODEL_CACHE_SIZE must be a quantity, not 'big'"
        in (condition(answer, "Ready") or {})["message"]
    )
    job, claim = job_and_claim(model())
    assert [item["kind"] for item in sync(model(), [observed(job)], settings=settings)["children"]] == ["Job"]
    answer = sync(model(), [observed(job), observed(claim)], settings=settings)
    assert {item["kind"] for item in answer["children"]} == {"Job", "PersistentVolumeClaim"}


def test_certificates_and_image_are_the_operators() -> None:
    settings = Settings(
        llmkube_ca_cert_configmap="corp-ca", llmkube_init_container_image="reg/curl:1", llmkube_default_fsgroup=0
    )
    pod = job_and_claim(model(), settings)[0]["spec"]["template"]["spec"]
    assert {"name": "custom-ca-cert", "configMap": {"name": "corp-ca"}} in pod["volumes"]
    assert pod["containers"][0]["image"] == "reg/curl:1"
    assert pod["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}


def test_an_existing_claim_of_the_operator_is_used_instead() -> None:
    """The Go operator's shared claim is used in namespaces that have it (D.4)."""
    settings = Settings(llmkube_model_cache_claim="llmkube-model-cache")
    answer = sync(model(), related=[claim_object("llmkube-model-cache", "Bound")], settings=settings)
    job = child(answer, "Job")
    assert job is not None
    assert child(answer, "PersistentVolumeClaim") is None
    claim = job["spec"]["template"]["spec"]["volumes"][0]["persistentVolumeClaim"]
    assert claim == {"claimName": "llmkube-model-cache"}
    _, without_theirs = job_and_claim(model(), settings)
    assert without_theirs["metadata"]["name"] == "m-cache"


def test_a_changed_source_changes_the_job_and_keeps_the_claim() -> None:
    """The old Job is removed with its source; the claim is kept (LK-T-18)."""
    old_job, claim = job_and_claim(model())
    answer = sync(model("https://example.com/other.gguf"), [observed(old_job), observed(claim, {"phase": "Bound"})])
    job = child(answer, "Job")
    assert job is not None
    assert job["metadata"]["name"] != old_job["metadata"]["name"]
    assert child(answer, "PersistentVolumeClaim") is not None
    assert answer["status"]["phase"] == "Downloading"
    repository = sync(model("owner/repo"), [observed(old_job), observed(claim, {"phase": "Bound"})])
    assert [item["kind"] for item in repository["children"]] == ["PersistentVolumeClaim"]


def test_long_names_are_cut_to_what_a_name_can_be() -> None:
    job, claim = job_and_claim(model(name="m" * 63))
    assert len(job["metadata"]["name"]) <= 63
    assert len(claim["metadata"]["name"]) <= 63


# The status.


@pytest.mark.parametrize(
    ("document", "reason", "path"),
    [
        (model("owner/repo"), "RuntimeResolved", None),
        (model(hardware={"accelerator": "metal"}), "WorkloadResolved", None),
        (model("/mnt/m.gguf", hardware={"accelerator": "metal"}), "MetalAgentManaged", None),
    ],
)
def test_what_others_fetch_is_ready_at_once(document: Json, reason: str, path: str | None) -> None:
    """Models that a server or agent fetches are Ready at once (LK-2.4)."""
    answer = sync(document)
    assert answer["status"]["phase"] == "Ready"
    assert answer["status"]["size"] == "0"
    assert answer["status"].get("path") == path
    assert answer["status"]["acceleratorReady"] is True
    assert (condition(answer, "Available") or {})["reason"] == reason
    assert (condition(answer, "Ready") or {})["status"] == "True"


def test_pods_download_where_the_user_says_so() -> None:
    """With the annotation, pods download the file, and the Model has neither a Job nor a claim."""
    document = model(source="https://example.com/m.gguf")
    document["metadata"]["annotations"] = {"modelhooks.dev/download": "Pods"}
    answer = sync(document)
    assert answer["children"] == []
    assert (condition(answer, "Available") or {})["reason"] == "WorkloadResolved"
    assert [child["kind"] for child in sync({**document, "metadata": model()["metadata"]})["children"]]


def storage_class(name: str, mode: str, *, default: bool = False) -> Json:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, "annotations": annotations},
        "volumeBindingMode": mode,
    }


LATE = storage_class("late", "WaitForFirstConsumer", default=True)
AT_ONCE = storage_class("at-once", "Immediate")
ON_GPU = {"accelerator": "cuda", "gpu": {"count": 1}}


def kinds(answer: Json) -> list[str]:
    return sorted(item["kind"] for item in answer["children"])


def on_gpu(annotation: str = "", **spec: Any) -> Json:
    document = model(**{"hardware": ON_GPU, **spec})
    document["metadata"]["annotations"] = {"modelhooks.dev/download": annotation} if annotation else {}
    return document


@pytest.mark.parametrize(
    ("document", "classes", "settings", "expected"),
    [
        (on_gpu(), [LATE], {}, ["PersistentVolumeClaim"]),
        (on_gpu(hardware={"accelerator": "vulkan"}), [LATE], {}, ["PersistentVolumeClaim"]),
        (on_gpu(), [{**LATE, "metadata": {"name": "late"}}], {}, ["Job", "PersistentVolumeClaim"]),
        (on_gpu(), [AT_ONCE, LATE], {"storage_class": "at-once"}, ["Job", "PersistentVolumeClaim"]),
        (on_gpu(), [AT_ONCE, LATE], {"storage_class": "late"}, ["PersistentVolumeClaim"]),
        (on_gpu(), [LATE], {"access_mode": "ReadWriteMany"}, ["Job", "PersistentVolumeClaim"]),
        (on_gpu(hardware={"accelerator": "cpu"}), [LATE], {}, ["Job", "PersistentVolumeClaim"]),
        (on_gpu("FirstPod", hardware={"accelerator": "cpu"}), [], {}, ["PersistentVolumeClaim"]),
        (on_gpu("Job"), [LATE], {}, ["Job", "PersistentVolumeClaim"]),
    ],
)
def test_no_job_takes_a_volume_to_a_node_without_gpu(
    document: Json, classes: list[Json], settings: dict[str, str], expected: list[str]
) -> None:
    """A class that binds late gives the claim a volume where its first pod runs: with GPUs that is a service's."""
    set_ = Settings(**{f"llmkube_model_cache_{name}": value for name, value in settings.items()})
    assert kinds(sync(document, related=classes, settings=set_)) == expected


def test_the_first_pod_fills_the_claim_and_reports_its_file() -> None:
    """The Model is Ready once its claim is there, has the path for services, and learns of the file from the pod."""
    document = on_gpu()
    first = sync(document, related=[LATE])
    assert first["status"]["phase"] == "Downloading"
    claim = {**observed(child(first, "PersistentVolumeClaim") or {}), "status": {"phase": "Pending"}}
    claim["spec"] = {**claim["spec"], "storageClassName": "late"}
    waiting = sync({**document, "status": first["status"]}, children=[claim], related=[LATE])
    assert kinds(waiting) == ["PersistentVolumeClaim"]
    ready = condition(waiting, "Ready") or {}
    assert (waiting["status"]["phase"], ready["status"], ready["reason"]) == ("Ready", "True", "WorkloadResolved")
    assert "m-cache, which gets its volume where that runs" in ready["message"]
    assert waiting["status"]["path"] == f"/models/{KEY}/m.gguf"
    bound = {**claim, "status": {"phase": "Bound"}}
    pod = refreshing_pod("chat-0", EARLIER, SHA.lower())
    served = sync({**document, "status": waiting["status"]}, children=[bound], related=[LATE, pod])
    assert served["status"]["sha256"] == SHA.lower()
    assert "each pod fetches the file onto m-cache unless it is there" in (condition(served, "Ready") or {})["message"]


@pytest.mark.parametrize("phase", ["Pending", "Bound"])
def test_a_job_that_runs_or_ran_stays_although_the_class_binds_late(phase: str) -> None:
    """An upgrade takes nobody's Job away; a claim that was deleted with its Job gets no other Job."""
    job, claim = (observed(item) for item in job_and_claim(on_gpu()))
    claim = {**claim, "spec": {**claim["spec"], "storageClassName": "late"}, "status": {"phase": phase}}
    status = {"status": job_status("Complete")} if phase == "Bound" else {}
    kept_on = sync(on_gpu(), children=[{**job, **status}, claim], related=[LATE])
    assert kinds(kept_on) == ["Job", "PersistentVolumeClaim"]
    assert kinds(sync(on_gpu("FirstPod"), children=[{**job, **status}, claim], related=[LATE])) == [
        "PersistentVolumeClaim"
    ]
    assert kinds(sync(on_gpu(), related=[LATE])) == ["PersistentVolumeClaim"]


@pytest.mark.parametrize(("phase", "expected"), [("Pending", "Ready"), ("Bound", "Ready"), ("Lost", "Pending")])
def test_a_lost_claim_holds_the_model_up_and_a_waiting_one_does_not(phase: str, expected: str) -> None:
    claim = {**observed(job_and_claim(on_gpu())[1]), "status": {"phase": phase}}
    answer = sync(on_gpu("FirstPod", hardware=None), children=[claim])
    assert answer["status"]["phase"] == expected
    assert kinds(answer) == ["PersistentVolumeClaim"]


def test_without_a_cache_pods_download() -> None:
    answer = sync(model(), settings=Settings(llmkube_model_cache_path=""))
    assert (condition(answer, "Available") or {})["reason"] == "WorkloadResolved"
    assert answer["status"]["cacheKey"] == KEY


@pytest.mark.parametrize(
    ("claims", "phase", "type_", "reason", "resync"),
    [
        ([], "Failed", "Degraded", "PVCNotFound", 30),
        ([claim_object("claim", "Pending", "unknown")], "Pending", "Progressing", "PVCNotBound", 10),
        ([claim_object("claim", "", "unknown")], "Pending", "Progressing", "PVCNotBound", 10),
        ([claim_object("claim", "Lost")], "Pending", "Progressing", "PVCNotBound", 10),
        ([claim_object("claim", "Bound")], "Ready", "Available", "PVCModelReady", None),
        ([claim_object("claim", "Pending", "late")], "Ready", "Available", "PVCModelReady", None),
        ([claim_object("claim", "Pending", "at-once")], "Pending", "Progressing", "PVCNotBound", 10),
    ],
)
def test_claims_of_pvc_sources(claims: list[Json], phase: str, type_: str, reason: str, resync: int | None) -> None:
    """A claim must be Bound, unless its class is WaitForFirstConsumer (LK-2.3, LK-T-20)."""
    answer = sync(model("pvc://claim/dir/m.gguf"), related=[*claims, LATE, AT_ONCE])
    status = answer["status"]
    located = ("/model-source/dir/m.gguf", "fe0bf5660017aef8") if phase == "Ready" else (None, None)
    assert (status["phase"], status.get("path"), status.get("cacheKey")) == (phase, *located)
    judged = condition(answer, type_) or {}
    assert (judged["status"], judged["reason"]) == ("True", reason)
    assert answer.get("resyncAfterSeconds") == resync
    assert (condition(answer, "Ready") or {})["status"] == ("True" if phase == "Ready" else "False")
    assert answer["children"] == []


@pytest.mark.parametrize(("source", "path"), [("pvc://claim/m.gguf", "/model-source/m.gguf"), ("pvc://new/m", None)])
def test_a_claim_that_goes_takes_no_path_with_it(source: str, path: str | None) -> None:
    """Path and key are kept while the claim is missing, and dropped if the source changes (LK-2.3)."""
    bound = sync(model("pvc://claim/m.gguf"), related=[claim_object("claim", "Bound")])
    answer = sync(model(source, status=bound["status"]))
    assert answer["status"]["phase"] == "Failed"
    assert answer["status"].get("path") == path
    assert ("cacheKey" in answer["status"]) is (path is not None)


def test_a_file_of_a_node_that_is_not_allowed_is_not_mounted() -> None:
    """A Model may have bypassed admission. Once the path is listed, the Job is created."""
    document = model("/srv/x.gguf")
    answer = sync(document, settings=Settings())
    assert answer["children"] == []
    assert answer["status"]["phase"] == "Failed"
    assert "cacheKey" not in answer["status"]
    ready = condition(answer, "Ready") or {}
    assert (ready["status"], ready["reason"]) == ("False", "SourceNotAllowed")
    assert "MODELHOOKS_LLMKUBE_ALLOWED_HOST_PATHS" in ready["message"]
    again = sync({**document, "status": answer["status"]}, settings=Settings())
    assert again["children"] == []
    assert child(sync({**document, "status": answer["status"]}), "Job")


@pytest.mark.parametrize("ended", [False, True])
def test_a_model_from_before_keeps_its_file(ended: bool) -> None:
    """If the path is no longer listed, a running copy, a finished copy and the next attempt continue."""
    document = model("/srv/x.gguf")
    job, claim = job_and_claim(document)
    there = observed(claim, {"phase": "Bound"})
    answer = sync(
        document, [observed(job, job_status("Complete") if ended else {"active": 1}), there], settings=Settings()
    )
    assert answer["status"]["phase"] == ("Ready" if ended else "Copying")
    assert [item["kind"] for item in answer["children"]] == ["PersistentVolumeClaim", "Job"]
    assert (
        "a new Model with this source would be refused: path /srv/x.gguf"
        in (condition(answer, "Ready") or {})["message"]
    )
    again = sync({**document, "status": answer["status"]}, [there], settings=Settings())
    assert child(again, "Job") is not None


def earlier_claim() -> Json:
    """Return the claim of a Model that was deleted while a service used it."""
    owner = {"apiVersion": "inference.llmkube.dev/v1alpha1", "kind": "Model", "name": "m", "uid": "old"}
    claim = claim_object("m-cache", "Bound")
    owned = {"ownerReferences": [{**owner, "controller": True}], "deletionTimestamp": EARLIER}
    return {**claim, "metadata": {**claim["metadata"], **owned}}


def using_pod(claim: str, name: str = "chat-0", phase: str = "Running", node: str = "gpu-1") -> Json:
    labels = {"inference.llmkube.dev/model": "m"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns1", "labels": labels},
        "spec": {"nodeName": node, "volumes": [{"name": "model-cache", "persistentVolumeClaim": {"claimName": claim}}]},
        "status": {"phase": phase},
    }


def test_a_model_that_is_made_again_does_not_wait_for_its_old_claim() -> None:
    """Claim and Job get other names, and Ready names the pod that still uses the old claim."""
    related = [earlier_claim(), using_pod("m-cache"), using_pod("m-cache", "done", "Succeeded")]
    answer = sync(model(), related=related)
    job, claim = child(answer, "Job") or {}, child(answer, "PersistentVolumeClaim") or {}
    name = claim["metadata"]["name"]
    assert re.fullmatch("m-cache-[0-9a-f]{8}", name)
    assert answer["status"]["cacheClaim"] == name
    assert job["metadata"]["name"] != f"m-dl-{KEY}"
    volume = {"name": "model-cache", "persistentVolumeClaim": {"claimName": name}}
    assert job["spec"]["template"]["spec"]["volumes"] == [volume]
    message = (condition(answer, "Ready") or {})["message"]
    assert (
        "an earlier Model of this name: PersistentVolumeClaim m-cache is being deleted, still used by pod chat-0"
        in (message)
    )
    assert "done" not in message


@pytest.mark.parametrize("seen", [["Job"], ["PersistentVolumeClaim"], ["Job", "PersistentVolumeClaim"]])
def test_a_claim_of_another_name_stays(seen: list[str]) -> None:
    """The chosen name is kept after the old claim is gone, even without a status."""
    first = sync(model(), related=[earlier_claim()])
    present = [observed(item, job_status("Complete")) for item in first["children"] if item["kind"] in seen]
    again = sync(model(), present)
    assert again["children"] == first["children"]
    assert again["status"]["cacheClaim"] == first["status"]["cacheClaim"]
    assert "earlier Model" not in (condition(again, "Ready") or {})["message"]


def test_a_claim_of_our_own_that_is_being_deleted_stays_the_models() -> None:
    """The children stay, so that services do not restart; Ready names the pod that still uses the claim."""
    job, claim = job_and_claim(model())
    going = observed(claim, {"phase": "Bound"})
    going["metadata"]["deletionTimestamp"] = EARLIER
    answer = sync(model(), [observed(job, job_status("Complete")), going], [using_pod("m-cache")])
    assert answer["children"] == [claim, job]
    ready = condition(answer, "Ready") or {}
    assert ready["status"] == "True"
    assert ready["message"].endswith("PersistentVolumeClaim m-cache is being deleted, still used by pod chat-0")


@pytest.mark.parametrize("waiting", [[], [using_pod("m-cache", phase="Pending", node="")]], ids=["no pod", "pending"])
def test_a_deleted_claim_does_not_wait_for_the_finished_job(waiting: list[Json]) -> None:
    """Kubernetes keeps the claim while the Job's finished pod exists, and starts no other pod with it."""
    job, claim = job_and_claim(model())
    going = observed(claim, {"phase": "Bound"})
    going["metadata"]["deletionTimestamp"] = EARLIER
    finished = using_pod("m-cache", f"m-dl-{KEY}-x", "Succeeded")
    answer = sync(model(), [observed(job, job_status("Complete")), going], [finished, *waiting])
    assert [item["metadata"]["name"] for item in answer["children"]] == ["m-cache", f"m-dl-{KEY}-2"]
    ready = condition(answer, "Ready") or {}
    assert ready["status"] == "False"
    assert ready["message"].endswith("PersistentVolumeClaim m-cache is being deleted")


def test_leaves_foreign_claims() -> None:
    first = sync(model(), related=[claim_object("m-cache", "Bound")])
    assert (child(first, "PersistentVolumeClaim") or {})["metadata"]["name"] == "m-cache"


def test_a_running_job_is_progress() -> None:
    job, claim = job_and_claim(model())
    children = [observed(job, {"active": 1}), observed(claim, {"phase": "Bound"})]
    answer = sync(model(), children)
    assert answer["status"]["phase"] == "Downloading"
    assert (condition(answer, "Progressing") or {})["reason"] == "DownloadStarted"
    assert "downloads the file" in (condition(answer, "Ready") or {})["message"]
    assert answer["resyncAfterSeconds"] == 15
    local = job_and_claim(model("/mnt/m.gguf"))[0]
    copying = sync(model("/mnt/m.gguf"), [observed(local, {"active": 1})])
    assert copying["status"]["phase"] == "Copying"
    assert (condition(copying, "Progressing") or {})["reason"] == "CopyStarted"


BOUND, UNBOUND = {"phase": "Bound"}, {"phase": "Pending"}
OLD = "2020-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("claim_status", "job_counts", "created", "reason", "words"),
    [
        (BOUND, {"active": 1}, OLD, "DownloadStarted", "downloads the file"),
        (UNBOUND, {"active": 1}, OLD, "ClaimNotBound", "PersistentVolumeClaim m-cache has no volume yet"),
        (BOUND, {}, EARLIER, "DownloadStarted", "downloads the file"),
        (BOUND, {}, OLD, "JobWithoutPods", "has no pod: a quota or an admission policy rejects it"),
        (BOUND, {"failed": 1}, OLD, "DownloadStarted", "downloads the file"),
        (BOUND, job_status("Suspended"), OLD, "JobSuspended", "is suspended"),
    ],
)
def test_reports_what_holds_up_a_job(
    claim_status: Json, job_counts: Json, created: str, reason: str, words: str
) -> None:
    """An unbound claim and a Job without pods are reported even if pods are not watched."""
    job, claim = job_and_claim(model())
    running = observed(job, job_counts)
    running["metadata"]["creationTimestamp"] = created
    answer = sync(model(), [running, observed(claim, claim_status)])
    ready = condition(answer, "Ready") or {}
    assert (answer["status"]["phase"], ready["reason"]) == ("Downloading", reason)
    first, _, rest = ready["message"].partition("; ")
    assert ready["message"].endswith(words) or words in (first if reason != "DownloadStarted" else rest)


def test_a_job_that_is_held_up_is_not_said_to_download() -> None:
    job, claim = job_and_claim(model())
    pod = job_pod(job, 1, "")
    waits = {"waiting": {"reason": "CreateContainerConfigError", "message": 'secret "hub" not found'}}
    containers = [{"name": "model-downloader", "state": waits}]
    pod["status"] = {"phase": "Pending", "containerStatuses": containers}
    answer = sync(model(), [observed(job, {"active": 1}), observed(claim, BOUND)], [pod])
    ready = condition(answer, "Ready") or {}
    assert (answer["status"]["phase"], ready["reason"]) == ("Downloading", "CreateContainerConfigError")
    assert ready["message"].startswith("pod p: container model-downloader cannot be created")
    assert "downloads" not in ready["message"]


def test_reports_an_unbound_claim_beside_its_job() -> None:
    """For example, a storage quota rejects the claim but not the Job."""
    job, _ = job_and_claim(model())
    first = sync(model(), [observed(job, {"active": 1})])
    assert "PersistentVolumeClaim m-cache is being created" in (condition(first, "Ready") or {})["message"]
    later = sync(model(status=first["status"]), [observed(job, {"active": 1})], now=NOW + timedelta(seconds=90))
    assert "PersistentVolumeClaim m-cache cannot be created" in (condition(later, "Ready") or {})["message"]


UNSCHEDULED = {
    "phase": "Pending",
    "conditions": [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/1 nodes: 1 Insufficient cpu.",
        }
    ],
}


@pytest.mark.parametrize(
    ("status", "reason"), [(UNSCHEDULED, "Unschedulable"), ({"phase": "Pending"}, "ClaimNotBound")], ids=["why", "new"]
)
def test_a_claim_that_waits_for_its_pod_is_no_cause(status: Json, reason: str) -> None:
    """With WaitForFirstConsumer it gets its volume once the pod is scheduled, which has its own reason not to be."""
    job, claim = job_and_claim(model())
    pod = {**job_pod(job, 0, ""), "status": status}
    children = [observed(job, {"active": 1}), observed(claim, {"phase": "Pending"})]
    ready = condition(sync(model(), children, [pod]), "Ready") or {}
    assert ready["reason"] == reason
    assert ("has no volume yet" in ready["message"]) is (reason == "ClaimNotBound")


def test_a_job_gets_the_pull_secrets_of_the_settings() -> None:
    """Its image may be in the same private registry as the server's; the message names the setting."""
    settings = Settings(llmkube_download_pull_secrets=("registry-login",))
    (job,) = (child for child in sync(model(), settings=settings)["children"] if child["kind"] == "Job")
    assert job["spec"]["template"]["spec"]["imagePullSecrets"] == [{"name": "registry-login"}]
    plain, claim = job_and_claim(model())
    assert "imagePullSecrets" not in plain["spec"]["template"]["spec"]
    waits = {"waiting": {"reason": "ImagePullBackOff", "message": "401 Unauthorized"}}
    pod = {
        **job_pod(plain, 0, ""),
        "status": {"phase": "Pending", "containerStatuses": [{"name": "x", "state": waits}]},
    }
    children = [observed(plain, {"active": 1}), observed(claim, {"phase": "Bound"})]
    ready = condition(sync(model(), children, [pod]), "Ready") or {}
    assert ready["message"].endswith(
        "401 Unauthorized; a private registry needs MODELHOOKS_LLMKUBE_DOWNLOAD_PULL_SECRETS"
    )


def test_a_completed_job_makes_the_model_ready_and_its_report_the_status() -> None:
    """Size, checksum and ETag come from the termination message; Progressing becomes False (LK-2.5)."""
    job, claim = job_and_claim(model())
    before = sync(model())["status"]
    report = '{"size":4294967296,"sha256":"abc","etag":"\\"v1\\""}'
    answer = sync(
        model(status=before),
        [observed(job, job_status("Complete")), observed(claim, {"phase": "Bound"})],
        [job_pod(job, 0, report)],
    )
    status = answer["status"]
    assert status["phase"] == "Ready"
    assert status["path"] == f"/models/{KEY}/m.gguf"
    assert (status["size"], status["sha256"]) == ("4.0 GiB", "abc")
    assert (status["sourceETag"], status["sourceContentLength"]) == ('"v1"', 4294967296)
    assert (condition(answer, "Available") or {})["reason"] == "ModelReady"
    progressing = condition(answer, "Progressing") or {}
    assert (progressing["status"], progressing["reason"]) == ("False", "Superseded")
    assert "resyncAfterSeconds" not in answer
    assert {item["kind"] for item in answer["children"]} == {"Job", "PersistentVolumeClaim"}


def test_a_finished_job_with_an_earlier_script_is_not_made_again() -> None:
    """If a release changes the script, an existing Job keeps its name, and Jobs are never updated."""
    job, claim = job_and_claim(model())
    earlier = observed(job, job_status("Complete"))
    earlier["spec"]["template"]["spec"]["containers"][0]["command"][2] = "an earlier script"
    answer = sync(model(), [earlier, observed(claim, {"phase": "Bound"})])
    assert answer["status"]["phase"] == "Ready"
    assert [item["metadata"]["name"] for item in answer["children"] if item["kind"] == "Job"] == [f"m-dl-{KEY}"]
    assert next(child.update for child in MODEL.children if child.kind == "Job") == "OnDelete"


@pytest.mark.parametrize(("created", "attempt"), [(EARLIER, ""), (rfc3339(NOW), "-2")])
def test_a_claim_that_was_made_again_gets_its_file_again(created: str, attempt: str) -> None:
    """The Job completed before the claim existed, so the next one fetches the file, and the Model is not Ready."""
    job, claim = job_and_claim(model())
    empty = observed(claim, {"phase": "Bound"})
    empty["metadata"]["creationTimestamp"] = created
    answer = sync(model(), [observed(job, job_status("Complete", EARLIER)), empty])
    assert (child(answer, "Job") or {})["metadata"]["name"] == f"m-dl-{KEY}{attempt}"
    ready = condition(answer, "Ready") or {}
    assert ready["status"] == str(not attempt)
    assert ready["message"].startswith(f"Job m-dl-{KEY}{attempt} ")


@pytest.mark.parametrize(("size", "shown"), [(1023, "1023 B"), (1024, "1.0 KiB"), (1024**2, "1.0 MiB")])
def test_a_size_has_the_largest_unit_that_it_reaches(size: int, shown: str) -> None:
    job, claim = job_and_claim(model())
    children = [observed(job, job_status("Complete")), observed(claim, {"phase": "Bound"})]
    report = json.dumps({"size": size, "sha256": "abc", "etag": ""})
    assert sync(model(), children, [job_pod(job, 0, report)])["status"]["size"] == shown


def test_a_report_outlives_its_pod() -> None:
    """The report stays in the status after the pod is gone, until the source changes."""
    job, claim = job_and_claim(model())
    children = [observed(job, job_status("Complete")), observed(claim, {"phase": "Bound"})]
    first = sync(model(), children, [job_pod(job, 0, '{"size":1536,"sha256":"abc","etag":""}')])["status"]
    later = sync(model(status=first), children)["status"]
    assert later == first
    assert later["size"] == "1.5 KiB"
    other = sync(model("https://example.com/other.gguf", status=first), children)["status"]
    assert "sha256" not in other


HEADER = {
    "fileVersion": 3,
    "architecture": "llama",
    "modelName": "Tiny",
    "fileType": 15,
    "contextLength": 4096,
    "headCountKv": 4,
    "tensorCount": 2,
    "parameterCount": 8030261248,
}


def downloaded(document: Json, **report: Any) -> Json:
    """Return the status after the Job's report."""
    job, claim = job_and_claim(document)
    children = [observed(job, job_status("Complete")), observed(claim, {"phase": "Bound"})]
    text = json.dumps({"size": 1024, "sha256": "abc", "etag": "", **report})
    return dict(sync(document, children, [job_pod(job, 0, text)])["status"])


def test_the_header_of_the_file_is_in_the_status() -> None:
    """The status has the header that the Job read, and the name of the quantization (LK-2.9.12)."""
    status = downloaded(model(), gguf=HEADER)
    expected = {key: value for key, value in HEADER.items() if key != "fileType"}
    assert status["gguf"] == {**expected, "quantization": "Q4_K_M"}
    assert status["quantization"] == "Q4_K_M"


@pytest.mark.parametrize("number", [4, 33, 77, -1, None])
def test_omits_an_unknown_quantization(number: int | None) -> None:
    status = downloaded(model(), gguf={**HEADER, "fileType": number})
    assert "quantization" not in status
    assert "quantization" not in status["gguf"]


def test_a_quantization_is_surfaced_as_it_is_written() -> None:
    """The spec's value is used before the download, without a header, and instead of the file's (LK-B-04)."""
    assert sync(model(quantization="our-own"))["status"]["quantization"] == "our-own"
    assert sync(model("org/name", quantization="fp8"))["status"]["quantization"] == "fp8"
    status = downloaded(model(quantization="UD-Q4_K_XL"), gguf=HEADER)
    assert (status["quantization"], status["gguf"]["quantization"]) == ("UD-Q4_K_XL", "Q4_K_M")


def test_a_header_stays_as_long_as_its_file() -> None:
    """A report without a header keeps it for the same file; another file or source drops it."""
    before = downloaded(model(), gguf=HEADER)
    assert downloaded(model(status=before))["gguf"] == before["gguf"]
    assert "gguf" not in downloaded(model(status=before), sha256="other")
    another = sync(model("https://example.com/other.gguf", status=before))["status"]
    assert "gguf" not in another
    assert "quantization" not in another


def refreshing_pod(name: str, finished: str, sha256: str, path: str = f"/models/{KEY}/m.gguf") -> Json:
    """Return a serving pod whose init container refreshed the file."""
    ended = {
        "exitCode": 0,
        "finishedAt": finished,
        "message": json.dumps({"size": 2048, "sha256": sha256, "etag": "e"}),
    }
    pod = using_pod("m-cache", name)
    pod["spec"]["initContainers"] = [{"name": "model-downloader", "env": [{"name": "MODEL_PATH", "value": path}]}]
    pod["status"]["initContainerStatuses"] = [{"name": "model-downloader", "state": {"terminated": ended}}]
    return pod


def test_the_status_is_about_the_file_that_a_service_fetched_anew() -> None:
    """With OnChange the newest report of a serving pod wins over the Job's, and outlives the pod."""
    document = model(refreshPolicy="OnChange")
    job, claim = job_and_claim(document)
    children = [observed(job, job_status("Complete")), observed(claim, {"phase": "Bound"})]
    first = job_pod(job, 0, '{"size":1024,"sha256":"old","etag":""}')
    before = sync(document, children, [first])["status"]
    assert before["sha256"] == "old"
    pods = [
        first,
        refreshing_pod("a", "2026-01-01T10:00:00Z", "newest"),
        refreshing_pod("b", "2026-01-01T09:00:00Z", "new"),
        refreshing_pod("c", "2026-01-01T11:00:00Z", "other", "/models/0000000000000000/m.gguf"),
    ]
    after = sync({**document, "status": before}, children, pods)["status"]
    assert (after["sha256"], after["size"], after["sourceETag"]) == ("newest", "2.0 KiB", "e")
    assert sync({**document, "status": after}, children, [first])["status"]["sha256"] == "newest"
    pinned = sync(model(status=before), children, pods)["status"]
    assert pinned["sha256"] == "old"


# Files of earlier sources.

OTHER = "https://example.com/other.gguf"
BEFORE, SERVED = "0123456789abcdef", "fedcba9876543210"


def kept(answer: Json) -> str | None:
    """Return KEEP_KEYS of the Job in the answer, or ``None`` if it removes nothing."""
    job = child(answer, "Job")
    assert job is not None
    env = job["spec"]["template"]["spec"]["containers"][0]["env"]
    return next((item.get("value", "") for item in env if item["name"] == "KEEP_KEYS"), None)


def serving_pod(name: str, key: str, claim: str = "m-cache", phase: str = "Running") -> Json:
    pod = using_pod(claim, name, phase)
    path = {"name": "MODEL_PATH", "value": f"/models/{key}/m.gguf"}
    pod["spec"]["initContainers"] = [{"name": "theirs"}, {"name": "model-downloader", "env": [path]}]
    return pod


def test_a_new_job_leaves_the_files_that_pods_serve_and_those_of_the_source_before() -> None:
    """Ended pods and invalid keys are ignored. The Job's name does not depend on the list."""
    pods = [
        serving_pod("a", SERVED),
        serving_pod("b", SERVED),
        serving_pod("c", KEY),
        serving_pod("pending", "aaaaaaaaaaaaaaaa", phase="Pending"),
        serving_pod("done", "bbbbbbbbbbbbbbbb", phase="Succeeded"),
        serving_pod("elsewhere", "cccccccccccccccc", claim="other-cache"),
        serving_pod("strange", "../../etc"),
        using_pod("m-cache", "bare"),
    ]
    answer = sync(model(status={"cacheKey": BEFORE}), related=pods)
    assert kept(answer) == f"{BEFORE} aaaaaaaaaaaaaaaa {SERVED}"
    assert (child(answer, "Job") or {})["metadata"]["name"] == f"m-dl-{KEY}"
    assert kept(sync(model(status={"cacheKey": "no key; rm -rf /"}), related=[using_pod("m-cache")])) == ""


def test_an_existing_job_keeps_its_arguments() -> None:
    """Jobs are immutable, so a change of pods does not change the answer."""
    first = sync(model(status={"cacheKey": BEFORE}), related=[serving_pod("a", SERVED)])
    there = [observed(item) for item in first["children"]]
    later = sync(model(status=first["status"]), there, [serving_pod("b", KEY)])
    assert later["children"] == first["children"]
    untold = [observed(item) for item in job_and_claim(model())]
    assert kept(sync(model(), untold, [serving_pod("a", SERVED)])) is None


def test_a_job_that_is_not_made_yet_keeps_its_arguments() -> None:
    """The status has the key of the source before until there is a Job that keeps it."""
    first = sync(model(status={"cacheKey": BEFORE}), related=[using_pod("m-cache")])
    again = sync(model(status=first["status"]), related=[using_pod("m-cache")])
    assert kept(first) == BEFORE
    assert again == first
    there = [observed(item) for item in again["children"]]
    assert sync(model(status=again["status"]), there, [using_pod("m-cache")])["status"]["cacheKey"] == KEY


def test_the_next_attempt_leaves_what_the_failed_one_left() -> None:
    """The next attempt keeps the same keys, even if status and pods no longer have them."""
    first = sync(model(status={"cacheKey": BEFORE}), related=[serving_pod("a", SERVED)])
    failed = observed(child(first, "Job") or {}, job_status("Failed", rfc3339(NOW)))
    noticed = sync(model(status=first["status"]), [failed], [using_pod("m-cache")])
    due = NOW + timedelta(seconds=300)
    second = sync(model(status=noticed["status"]), [failed], [using_pod("m-cache")], now=due)
    assert (child(second, "Job") or {})["metadata"]["name"] == f"m-dl-{KEY}-2"
    assert kept(second) == f"{BEFORE} {SERVED}"


def test_a_changed_source_keeps_one_generation() -> None:
    """The previous file is kept until the next change, so that the user can go back to it."""
    first = sync(model(), related=[serving_pod("a", SERVED)])
    second = sync(model(OTHER, status=first["status"]), related=[serving_pod("b", KEY)])
    assert kept(second) == KEY
    jobs = [observed(child(second, "Job") or {})]
    second = sync(model(OTHER, status=second["status"]), jobs, [serving_pod("b", KEY)])
    third = sync(model(status=second["status"]), related=[serving_pod("c", second["status"]["cacheKey"])])
    assert kept(third) == second["status"]["cacheKey"]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("m", Settings(llmkube_keep_old_files=True)),
        ("m", Settings(llmkube_model_cache_claim="shared")),
        ("shared", Settings(llmkube_model_cache_claim="shared-cache")),
    ],
    ids=["setting", "shared claim", "shared claim of the Model's own name"],
)
def test_all_files_stay_where_they_may_be_others_or_the_operator_wants_it(name: str, settings: Settings) -> None:
    document = model(name=name, status={"cacheKey": BEFORE})
    shared = claim_object(settings.llmkube_model_cache_claim or "unrelated", "Bound")
    assert kept(sync(document, related=[shared, serving_pod("a", SERVED)], settings=settings)) is None


def test_all_files_stay_where_pods_are_not_seen() -> None:
    assert kept(sync(model(status={"cacheKey": BEFORE}))) is None


@pytest.mark.parametrize("message", ["", "null", "no json", '{"size":"x"}', "[]"])
def test_ignores_an_unreadable_report(message: str) -> None:
    job, claim = job_and_claim(model())
    children = [observed(job, job_status("Complete")), observed(claim, {"phase": "Bound"})]
    answer = sync(model(), children, [job_pod(job, 0, message)])
    assert answer["status"]["phase"] == "Ready"
    assert "sha256" not in answer["status"]


def test_a_failed_job_says_why_and_stays_for_a_while() -> None:
    """Ready has the pod's termination message; five minutes after that a new Job replaces it (LK-2.9.7)."""
    job, claim = job_and_claim(model())
    at = rfc3339(NOW - timedelta(seconds=100))
    children = [observed(job, job_status("Failed", at)), observed(claim, {"phase": "Bound"})]
    pods = [job_pod(job, 64, "curl: (22) The requested URL returned error: 404\n")]
    answer = sync(model(), children, pods)
    assert answer["status"]["phase"] == "Failed"
    degraded = condition(answer, "Degraded") or {}
    assert (degraded["status"], degraded["reason"]) == ("True", "DownloadFailed")
    assert "returned error: 404" in (condition(answer, "Ready") or {})["message"]
    assert child(answer, "Job") is not None
    assert answer["resyncAfterSeconds"] == 300
    assert sync(model(status=answer["status"]), children, pods) == answer

    due = sync(model(status=answer["status"]), children, pods, now=NOW + timedelta(seconds=300))
    second = child(due, "Job") or {}
    assert second["metadata"]["name"] == f"m-dl-{KEY}-2"
    assert second["metadata"]["annotations"] == {"inference.llmkube.dev/attempt": "2"}
    assert child(due, "PersistentVolumeClaim") is not None
    both = [observed(second, {"active": 1}), *children]
    both[0]["metadata"]["annotations"].update(second["metadata"]["annotations"])
    again = sync(model(status=due["status"]), both, pods, now=NOW + timedelta(seconds=302))
    assert child(again, "Job") == second
    assert again["status"]["phase"] == "Downloading"
    assert (condition(again, "Degraded") or {})["status"] == "False"


def test_a_second_failure_is_that_of_every_condition() -> None:
    """The second Job may fail before a sync has seen it run, so that Progressing was False all the time."""
    job, claim = job_and_claim(model())
    started = sync(model(), [observed(job, {"active": 1}), observed(claim, {"phase": "Bound"})])
    failed = sync(model(status=started["status"]), [observed(job, job_status("Failed", rfc3339(NOW))), observed(claim)])
    second = {**job, "metadata": {**job["metadata"], "name": f"m-dl-{KEY}-2"}}
    later = observed(second, job_status("Failed", rfc3339(NOW)))
    later["metadata"]["annotations"]["inference.llmkube.dev/attempt"] = "2"
    answer = sync(model(status=failed["status"]), [later, observed(claim)])
    for type_ in ("Progressing", "Degraded", "Ready"):
        assert (condition(answer, type_) or {})["message"].startswith(f"Job m-dl-{KEY}-2 failed")


@pytest.mark.parametrize(("attempt", "seconds"), [(1, 300), (2, 600), (3, 1200), (4, 2400), (5, 3600), (99999, 3600)])
def test_failed_downloads_back_off(attempt: int, seconds: int) -> None:
    """The number of attempts is an annotation of the Job, and doubles the delay up to an hour."""
    job, _ = job_and_claim(model())
    if attempt > 1:
        job["metadata"]["name"] += f"-{attempt}"
    failed = observed(job, job_status("Failed", rfc3339(NOW)))
    failed["metadata"]["annotations"]["inference.llmkube.dev/attempt"] = str(attempt)
    first = sync(model(), [failed])
    assert first["resyncAfterSeconds"] == seconds
    assert (child(first, "Job") or {})["metadata"]["name"] == job["metadata"]["name"]
    before = sync(model(status=first["status"]), [failed], now=NOW + timedelta(seconds=seconds - 1))
    assert (child(before, "Job") or {})["metadata"]["name"] == job["metadata"]["name"]
    due = sync(model(status=first["status"]), [failed], now=NOW + timedelta(seconds=seconds))
    assert (child(due, "Job") or {})["metadata"]["name"] == f"m-dl-{KEY}-{attempt + 1}"


def test_reports_the_last_attempt_while_the_job_retries() -> None:
    job, claim = job_and_claim(model())
    children = [observed(job, {"active": 1, "failed": 1}), observed(claim, {"phase": "Bound"})]
    answer = sync(model(), children, [job_pod(job, 1, "cannot connect (curl 7)")])
    assert answer["status"]["phase"] == "Downloading"
    assert "the last attempt failed: " in (condition(answer, "Ready") or {})["message"]
    assert "cannot connect (curl 7)" in (condition(answer, "Ready") or {})["message"]


def test_the_job_runs_where_pod_security_is_restricted() -> None:
    """The Job meets ``restricted``. Without an ``fsGroup`` the platform chooses the user (OpenShift)."""
    pod = job_and_claim(model())[0]["spec"]["template"]["spec"]
    assert pod["securityContext"] == {
        "fsGroup": 102,
        "runAsNonRoot": True,
        "runAsUser": 100,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = pod["containers"][0]["securityContext"]
    assert container["allowPrivilegeEscalation"] is False
    assert container["capabilities"] == {"drop": ["ALL"]}
    bare = job_and_claim(model(), Settings(llmkube_default_fsgroup=0))[0]["spec"]["template"]["spec"]
    assert bare["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}


def test_an_old_failure_is_shown_before_it_is_tried_again() -> None:
    """A failure that is noticed late, for example after an outage, is reported before the next attempt."""
    job, _ = job_and_claim(model())
    children = [observed(job, job_status("Failed", "2025-01-01T00:00:00Z"))]
    first = sync(model(), children)
    assert child(first, "Job") is not None
    second = sync(model(status=first["status"]), children, now=NOW + timedelta(seconds=1))
    assert child(second, "Job") is not None


@pytest.mark.parametrize(
    ("pods", "message"),
    [
        (True, ""),
        (False, "Container model-downloader for pod ns1/p failed with exit code 65 matching FailJob rule at index 0"),
    ],
)
def test_a_wrong_checksum_has_a_reason(pods: bool, message: str) -> None:
    """The reason comes from the pod's exit code, or from the Job's message if pods are not watched."""
    job, _ = job_and_claim(model(sha256=SHA))
    related = [job_pod(job, 65, "wrong SHA-256")] if pods else []
    answer = sync(model(sha256=SHA), [observed(job, job_status("Failed", message=message))], related)
    assert (condition(answer, "Degraded") or {})["reason"] == "IntegrityCheckFailed"


def test_a_missing_local_file_is_a_failure_although_no_container_ends() -> None:
    """The kubelet waits indefinitely for a missing hostPath file, so the status reports it."""
    document = model("/mnt/m.gguf")
    job, _ = job_and_claim(document)
    pod = job_pod(job, 0, "")
    scheduled = {
        "type": "PodScheduled",
        "status": "True",
        "lastTransitionTime": rfc3339(NOW - timedelta(seconds=300)),
    }
    waiting = {"name": "model-downloader", "state": {"waiting": {"reason": "ContainerCreating"}}}
    pod["status"] = {"phase": "Pending", "conditions": [scheduled], "containerStatuses": [waiting]}
    answer = sync(document, [observed(job, {"active": 1})], [pod])
    assert answer["status"]["phase"] == "Failed"
    assert (condition(answer, "Degraded") or {})["reason"] == "CopyFailed"
    assert "/mnt/m.gguf" in (condition(answer, "Ready") or {})["message"]
    assert child(answer, "Job") is not None


def test_a_child_that_never_comes_is_refused() -> None:
    """A name conflict causes no event, so the status reports it and the hook asks for a resync."""
    first = sync(model())
    assert first["resyncAfterSeconds"] == 65
    later = sync(model(status=first["status"]), now=NOW + timedelta(seconds=65))
    ready = condition(later, "Ready") or {}
    assert (ready["status"], ready["reason"]) == ("False", "CreateRefused")
    assert later["resyncAfterSeconds"] == 65
    assert {item["kind"] for item in later["children"]} == {"Job", "PersistentVolumeClaim"}


def test_a_model_that_is_being_deleted_says_so() -> None:
    job, claim = job_and_claim(model())
    document = model()
    document["metadata"]["deletionTimestamp"] = EARLIER
    answer = sync(document, [observed(job, job_status("Complete")), observed(claim)])
    ready = condition(answer, "Ready") or {}
    assert (ready["status"], ready["reason"]) == ("False", "Terminating")
    assert len(answer["children"]) == 2


def node(**capacity: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"capacity": {key.replace("__", "/").replace("_", "."): value for key, value in capacity.items()}},
    }


@pytest.mark.parametrize(
    ("accelerator", "nodes", "ready"),
    [
        ("cpu", [], True),
        ("metal", [], True),
        ("cuda", [node(cpu="8")], False),
        ("cuda", [node(nvidia_com__gpu="0")], False),
        ("cuda", [node(nvidia_com__gpu="4")], True),
        ("rocm", [node(nvidia_com__gpu="4")], False),
        ("rocm", [node(amd_com__gpu="1")], True),
        ("intel", [node(gpu_intel_com__i915="2")], True),
        ("cuda", None, True),
    ],
)
def test_accelerator_ready(accelerator: str, nodes: list[Json] | None, ready: bool) -> None:
    """acceleratorReady follows the nodes' capacity; it is true if nodes are not watched (LK-2.8)."""
    document = model("owner/repo", hardware={"accelerator": accelerator})
    related = [node()] if nodes == [] else nodes or []
    assert sync(document, related=related)["status"].get("acceleratorReady", False) is ready


@pytest.mark.parametrize(
    ("accelerator", "gpu", "resource"),
    [
        ("vulkan", {}, "devic_es__dri-render"),
        ("rocm", {"vendor": "amd", "runtime": "rocm"}, "devic_es__dri-render"),
        ("cuda", {"resourceName": "nvidia.com/mig-1g.10gb"}, "nvidia_com__mig-1g.10gb"),
    ],
)
def test_the_device_of_any_name_is_looked_for(accelerator: str, gpu: Json, resource: str) -> None:
    """The nodes are checked for the resource that pods request (LK-2.8)."""
    document = model("owner/repo", hardware={"accelerator": accelerator, "gpu": gpu})
    assert "acceleratorReady" not in sync(document, related=[node(nvidia_com__gpu="1")])["status"]
    assert sync(document, related=[node(**{resource: "1"})])["status"]["acceleratorReady"] is True


def test_a_mistake_keeps_every_child_and_is_the_status() -> None:
    """An invalid spec keeps the children, and Degraded and Ready report it (decision 5)."""
    job, claim = job_and_claim(model())
    answer = sync(model("gpt2"), [observed(job), observed(claim)])
    assert {item["kind"] for item in answer["children"]} == {"Job", "PersistentVolumeClaim"}
    assert answer["status"]["phase"] == "Failed"
    assert (condition(answer, "Degraded") or {})["reason"] == "InvalidSource"
    assert (condition(answer, "Ready") or {})["reason"] == "InvalidSpec"
    forbidden = sync(model("http://169.254.169.254/latest"), [observed(job)])
    assert (condition(forbidden, "Degraded") or {})["reason"] == "SourceNotAllowed"
    assert len(forbidden["children"]) == 1


def test_nothing_moves_when_nothing_changed() -> None:
    """The same request two minutes later gives the same answer, so the status does not depend on the clock."""
    job, claim = job_and_claim(model())
    children = [observed(job, job_status("Complete")), observed(claim, {"phase": "Bound"})]
    first = sync(model(), children)
    second = sync(model(status=first["status"]), children, now=NOW + timedelta(seconds=120))
    assert second == first


def test_foreign_conditions_and_file_facts_survive() -> None:
    """Foreign conditions and the file's header are kept while the source is the same."""
    foreign = {"type": "Foreign", "status": "True", "reason": "X", "message": "", "lastTransitionTime": EARLIER}
    status = {"cacheKey": KEY, "gguf": {"architecture": "llama"}, "conditions": [foreign]}
    answer = sync(model(status=status))
    assert foreign in answer["status"]["conditions"]
    assert answer["status"]["gguf"] == {"architecture": "llama"}


# Related objects.


def rules(document: Json, **settings: Any) -> list[tuple[str, Any]]:
    return [
        (rule["resource"], rule.get("names") or rule.get("labelSelector"))
        for rule in customize(document, Settings(**settings))
    ]


def test_only_what_a_model_needs_is_asked_for() -> None:
    """There are few rules, because Metacontroller evaluates all of them at every event (D.2)."""
    pods = {"matchLabels": {"inference.llmkube.dev/model": "m"}}
    assert rules(model("owner/repo")) == []
    assert rules(model()) == [("persistentvolumeclaims", ["m-cache"]), ("pods", pods)]
    assert rules(model(), watch_pods=False) == [("persistentvolumeclaims", ["m-cache"])]
    assert rules(model("pvc://claim/x")) == [("persistentvolumeclaims", ["claim"]), ("storageclasses", {})]
    assert rules(model(), llmkube_model_cache_claim="shared") == [
        ("persistentvolumeclaims", ["shared", "m-cache"]),
        ("pods", pods),
    ]
    for annotation in ("", "Job", "FirstPod"):  # Metacontroller asks again only when the spec changes
        assert ("storageclasses", {}) in rules(on_gpu(annotation))
    cuda = model("owner/repo", hardware={"accelerator": "cuda"})
    assert rules(cuda) == [("nodes", {})]
    assert rules(cuda, llmkube_watch_nodes=False) == []
    assert all(
        rule["namespace"] == "ns1"
        for document in (model(), model("pvc://claim/x"))
        for rule in customize(document)
        if rule["resource"] != "storageclasses"
    )


def test_a_model_with_mistakes_is_asked_for_without_failing() -> None:
    """Customize does not fail on an invalid spec, because a deletion waits for it too."""
    assert customize(model("gpt2")) == []
    assert customize({**model(), "spec": {"source": 5}}) == []

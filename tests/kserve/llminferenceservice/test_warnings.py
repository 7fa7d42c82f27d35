"""Warnings about valid services (KS-5 and KS-7.6)."""

from __future__ import annotations

import re
from itertools import permutations
from typing import Any

import pytest

from app.kube.base import Json
from app.limits import MAX_UNKNOWN_NAMES
from tests.kserve.objects import Cluster, admit, config, service

ROOT: Json = {"securityContext": {"runAsNonRoot": False}}
WORKER: Json = {"worker": {"containers": [{"name": "main"}]}, "parallelism": {"data": 4, "dataLocal": 2}}
SCALING: Json = {"scaling": {"maxReplicas": 2, "wva": {"hpa": {}}}}
TP = "--tensor-parallel-size"
EIGHT: Json = {"limits": {"nvidia.com/gpu": "8"}}
HTTPS: Json = {"httpGet": {"path": "/health", "port": 8000, "scheme": "HTTPS"}}


def main(**fields: Any) -> Json:
    return {"containers": [{"name": "main", **fields}]}


def warnings_of(parent: Json) -> list[str]:
    """Return the warnings of admission but those about GPUs and KV connectors, which have tests of their own."""
    other = ("needs an NVIDIA GPU", "has no KV connector")
    return [text for text in admit(parent).warnings if not any(words in text for words in other)]


SPREAD: Json = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
FULL_ROUTER: Json = {"route": {}, "scheduler": {}}

WARNED: dict[str, tuple[Json, str]] = {
    "limits without adapters": (
        {"model": {"uri": "hf://a/b", "lora": {"maxRank": 8}}},
        r"spec\.model\.lora: .*no effect",
    ),
    "a tolerance, which KEDA before 2.18 does not have": (
        {
            "scaling": {
                "maxReplicas": 2,
                "wva": {
                    "keda": {
                        "advanced": {
                            "horizontalPodAutoscalerConfig": {"behavior": {"scaleUp": {"tolerance": "0.1"}}},
                        },
                    },
                },
            },
        },
        r"spec\.scaling\.wva\.keda\.advanced\..*behavior\.scaleUp\.tolerance: .*no effect; KEDA has this .*2\.18",
    ),
    "an idle number that KEDA's HorizontalPodAutoscaler raises again": (
        {"scaling": {"minReplicas": 2, "maxReplicas": 2, "wva": {"keda": {"idleReplicaCount": 1}}}},
        r"spec\.scaling\.wva\.keda\.idleReplicaCount: .*no effect",
    ),
    "an image whose user the kubelet has to verify": (
        {"model": {"uri": "oci://r.example/m:1"}, "template": {"securityContext": {"runAsNonRoot": True}}},
        r"spec\.template\.securityContext\.runAsNonRoot: modelcar-init runs the image of the model.*runAsUser",
    ),
    "no model": ({"uri": None}, r"spec\.model: without a model"),
    "ingress": ({"router": {"ingress": {}}}, r"spec\.router\.ingress: .*no effect"),
    "a reserved label": ({"labels": {"llm-d.ai/role": "x"}}, r"spec\.labels\[llm-d\.ai/role\]: overrides"),
    "a reserved label of the scheduler": (
        {"router": {"route": {}, "scheduler": {"labels": {"app.kubernetes.io/name": "x"}}}},
        r"spec\.router\.scheduler\.labels\[app\.kubernetes\.io/name\]: overrides",
    ),
    "an annotation that no pod can have": (
        {"annotations": {"a/b/c": "d"}},
        r"spec\.annotations: Invalid value.*refused",
    ),
    "a base in a namespace": (
        {"baseRefs": [{"name": "team/defaults"}]},
        r'spec\.baseRefs\[0\]\.name: Invalid value.*did you mean "defaults"\?',
    ),
    "a Gateway of no name that it can have": (
        {"router": {"route": {}, "gateway": {"refs": [{"name": "Public", "namespace": "a"}]}}},
        r"spec\.router\.gateway\.refs\[0\]\.name: Invalid value",
    ),
    "a pool of no name that it can have": (
        {"router": {"route": {}, "scheduler": {"pool": {"ref": {"name": "my_pool"}}}}},
        r'scheduler\.pool\.ref\.name: Invalid value.*did you mean "my-pool"',
    ),
    "a ConfigMap of no name that it can have": (
        {"router": {"route": {}, "scheduler": {"config": {"ref": {"name": "A", "key": "b"}}}}},
        r"scheduler\.config\.ref\.name: Invalid value",
    ),
    "a scheduler on nodes that there are none of": (
        {"router": {"route": {}, "scheduler": {"template": {"nodeSelector": {"kubernetes.io/os": "Linux"}}}}},
        r"scheduler\.template\.nodeSelector\[kubernetes\.io/os\]: no node has",
    ),
    "a shell's variable where no shell is": (
        {
            "template": main(
                image="vllm/vllm-openai:v0.20.0", command=["vllm", "serve"], args=["--api-key", "$KEY"], **ROOT
            )
        },
        r"spec\.template\.containers\[0\]\.args\[1\]: no shell reads it",
    ),
    "a program with its arguments in a hook": (
        {"template": main(lifecycle={"preStop": {"exec": {"command": ["sleep 9"]}}})},
        r"lifecycle\.preStop\.exec\.command\[0\]: no program has this name",
    ),
    "pods that are not spread": (
        {
            "template": {
                **main(),
                "topologySpreadConstraints": [{**SPREAD, "labelSelector": {"matchLabels": {"a": "b"}}}],
            }
        },
        r"matchLabels\[a\]: no pod of this workload has this label.*add it to spec\.labels",
    ),
    "a label that no pod can have": ({"labels": {"a": "b c"}}, r"spec\.labels\[a\]: Invalid value.*refused"),
    "copies that do not divide": (
        {**WORKER, "parallelism": {"data": 10, "dataLocal": 3}},
        r"spec\.parallelism: data, 10, is not a multiple of dataLocal, 3",
    ),
    "experts with nothing to spread them over": (
        {"parallelism": {"expert": True}},
        r"spec\.parallelism\.expert: .*no effect.*set one of them",
    ),
    "a pipeline in one pod": (
        {"parallelism": {"pipeline": 2}},
        r"spec\.parallelism\.pipeline: .*no effect.*add worker",
    ),
    "a port that copies in one pod do not need": (
        {"parallelism": {"data": 2, "dataLocal": 2, "dataRPCPort": 6000}},
        r"spec\.parallelism\.dataRPCPort: .*no effect",
    ),
    "other GPUs than parallelism needs": (
        {
            "parallelism": {"tensor": 8},
            "template": main(resources={"limits": {"nvidia.com/gpu": "4"}}, args=[TP + "=8"]),
        },
        r"spec\.parallelism: each pod needs 8 GPUs, and container main requests 4",
    ),
    "fewer GPUs than each of several pods needs": (
        {
            "parallelism": {"tensor": 2, "data": 4, "dataLocal": 2},
            "template": main(resources={"limits": {"nvidia.com/gpu": "4"}}),
            "worker": main(resources={"limits": {"nvidia.com/gpu": "2"}}),
        },
        r"spec\.parallelism: each pod needs 4 GPUs, tensor times dataLocal, and container main requests 2",
    ),
    "another size in the arguments": (
        {
            "prefill": {"parallelism": {"tensor": 8}, "template": main(args=["-tp", "4"], resources=EIGHT)},
            "router": FULL_ROUTER,
        },
        r"spec\.prefill\.parallelism\.tensor: is 8, and container main passes --tensor-parallel-size 4",
    ),
    "a contradiction that no base mends": (
        {"parallelism": {"tensor": 8}, "template": main(args=[TP, "4"]), "baseRefs": [{"name": "b"}]},
        r"spec\.parallelism\.tensor: is 8, and container main passes --tensor-parallel-size 4",
    ),
    "parts of GPUs without the argument": (
        {"parallelism": {"tensor": 8}, "template": main(resources={"limits": {"nvidia.com/gpucores": "8"}})},
        r"spec\.parallelism: container main requests GPUs itself.*add --tensor-parallel-size 8",
    ),
    "the argument without GPUs": (
        {"parallelism": {"tensor": 8}, "template": main(args=[TP, "8"])},
        r"spec\.parallelism: container main passes --tensor-parallel-size itself.*request 8 of nvidia.com/gpu",
    ),
    "a server of another kind": (
        {"parallelism": {"tensor": 8}, "template": main(command=["python3", "serve.py"])},
        r"spec\.parallelism: accepted, no effect; container main does not pass its args to vLLM",
    ),
    "nothing that brings the model": (
        {
            "storageInitializer": {"enabled": False},
            "template": {"containers": [{"name": "main", "args": ["--enforce-eager"]}]},
        },
        r"spec\.storageInitializer\.enabled: the model is not mounted at /mnt/models",
    ),
    "a false that undoes nothing": (
        {"baseRefs": [{"name": "b"}], "parallelism": {"expert": False}},
        r"spec\.parallelism\.expert: .*no effect",
    ),
    "data parallelism that single nodes ignore": (
        {"parallelism": {"data": 4, "dataLocal": 2}},
        r"spec\.parallelism\.data: .*no effect; 4 copies, 2 in each pod, need 2 pods",
    ),
    "a base without a name": ({"baseRefs": [{"name": "b"}, {}]}, r"spec\.baseRefs\[1\]: has no name"),
    "a route without a name": (
        {"router": {"route": {"http": {"refs": [{"name": ""}]}}}},
        r"spec\.router\.route\.http\.refs\[0\]: has no name",
    ),
    "a gateway without a name": (
        {"router": {"route": {}, "gateway": {"refs": [{"namespace": "infra"}]}}},
        r"spec\.router\.gateway\.refs\[0\]: has no name",
    ),
    "a pool without a name": (
        {"router": {"route": {}, "scheduler": {"pool": {"ref": {}}}}},
        r"spec\.router\.scheduler\.pool\.ref: .*no effect",
    ),
    "no main container": (
        {"template": {"containers": [{"name": "side", "image": "x"}]}},
        r"spec\.template\.containers: no container is named main",
    ),
    "a scheduler that nothing routes to": ({"router": {"scheduler": {}}}, r"spec\.router\.scheduler: without"),
    "a gateway that nothing routes to": ({"router": {"gateway": {}}}, r"spec\.router\.gateway: .*no effect"),
    "prefill without a scheduler": ({"prefill": {}, "router": {"route": {}}}, r"spec\.prefill: without"),
    "a gateway without a namespace": (
        {"router": {"route": {}, "gateway": {"refs": [{"name": "g"}]}}},
        r"spec\.router\.gateway\.refs\[0\]: no namespace",
    ),
    "a route without rules": (
        {"router": {"route": {"http": {"spec": {"hostnames": ["a.example.com"]}}}}},
        r"spec\.router\.route\.http\.spec: no rules",
    ),
    "a route with the rules that the API server fills in": (
        {
            "router": {
                "route": {"http": {"spec": {"rules": [{"matches": [{"path": {"type": "PathPrefix", "value": "/"}}]}]}}}
            }
        },
        r"spec\.router\.route\.http\.spec: no rules",
    ),
    "an optional reference": (
        {"router": {"route": {}, "scheduler": {"config": {"ref": {"name": "c", "key": "k", "optional": True}}}}},
        r"config\.ref\.optional: .*no effect",
    ),
    "a scheduler beside a pool of one's own": (
        {"router": {"route": {}, "scheduler": {"pool": {"ref": {"name": "p"}}, "replicas": 2}}},
        r"spec\.router\.scheduler: .*remove replicas",
    ),
    "a scheme that a base may allow": (
        {"model": {"uri": "ftp://b/m"}, "baseRefs": [{"name": "b"}]},
        r"spec\.model\.uri: ftp:// is not supported",
    ),
    "a certificate that nobody makes": (
        {"template": main(args=["--ssl-certfile", "/var/run/kserve/tls/tls.crt"])},
        r"spec\.template\.containers\[0\]: reads /var/run/kserve/tls, .* into Secret demo-kserve-self-signed-certs",
    ),
    "a probe by HTTPS of a server without it": (
        {"prefill": {"template": main(livenessProbe=HTTPS)}, "router": FULL_ROUTER},
        r"spec\.prefill\.template\.containers\[0\]\.livenessProbe\.httpGet\.scheme: the server speaks HTTP",
    ),
    "an unknown field": ({"replica": 1}, r'unknown field "spec\.replica", did you mean "replicas"'),
}


@pytest.mark.parametrize("case", WARNED)
def test_a_doubtful_field_is_accepted_with_one_warning_that_names_it(case: str) -> None:
    """The object is accepted with one warning, which names the field."""
    spec, pattern = WARNED[case]
    assert admit(service(**spec)).errors == []
    (warning,) = warnings_of(service(**spec))
    assert re.search(pattern, warning)


@pytest.mark.parametrize("scaled", [SCALING, {"prefill": SCALING, "router": FULL_ROUTER}, {**WORKER, **SCALING}])
def test_scaling_is_acted_on(scaled: Json) -> None:
    """Admission does not warn about scaling: the status reports kinds that are not installed."""
    assert warnings_of(service(**scaled)) == []


MOUNT: Json = {"volumeMounts": [{"name": "mine", "mountPath": "/var/run/kserve/tls"}]}


@pytest.mark.parametrize(
    "spec",
    [
        {"template": main(args=["--ssl-keyfile=/certs/tls.key"], livenessProbe=HTTPS)},
        {"template": main(command=["/server"], livenessProbe=HTTPS)},
        {"template": main(args=["--ssl-certfile=/var/run/kserve/tls/tls.crt"], livenessProbe=HTTPS, **MOUNT)},
        {"template": main(args=["--ssl-certfile=/var/run/kserve/tls/tls.crt"]), "baseRefs": [{"name": "b"}]},
    ],
)
def test_servers_with_certificates_of_their_own(spec: Json) -> None:
    warnings = admit(service(**spec)).warnings
    assert [text for text in warnings if "certificate" in text or "speaks HTTP" in text] == []


MODEL = "internal.serving.kserve.io/model-criticality"
ADAPTERS = "internal.serving.kserve.io/lora-criticalities"
OWN_ROUTE: Json = {"route": {"http": {"refs": [{"name": "mine"}]}}, "scheduler": {}}


@pytest.mark.parametrize(
    ("word", "router", "warning"),
    [
        ("Critical", FULL_ROUTER, ""),
        (
            "Critical",
            {"route": {}},
            "accepted, no effect; without router.scheduler no endpoint picker sees the requests",
        ),
        (
            "Critical",
            OWN_ROUTE,
            "counts for requests that name the InferenceObjective in x-gateway-inference-objective",
        ),
        ("Urgent", FULL_ROUTER, "must be Critical, Standard, Sheddable; other values have no effect"),
    ],
)
def test_a_criticality_without_effect_is_warned_of(word: str, router: Json, warning: str) -> None:
    """Criticality warns alike as a field of v1alpha1 and as an annotation of v1alpha2, for models and adapters."""
    model = {"uri": "hf://a/b", "lora": {"adapters": [{"name": "c", "uri": "hf://c/d"}]}}
    notes = {MODEL: word, ADAPTERS: f'{{"0": "{word}"}}'}
    warned = [w for w in warnings_of(service(model=model, router=router, notes=notes)) if "model.lora" not in w]
    expected = [f"metadata.annotations[{key}]: {warning}" for key in (MODEL, ADAPTERS)] if warning else []
    assert [w[: len(e)] for w, e in zip(warned, expected, strict=True)] == expected
    if word == "Critical":
        model = {
            **model,
            "criticality": word,
            "lora": {"adapters": [{"name": "c", "uri": "x://", "criticality": word}]},
        }
        written = {**service(model=model, router=router), "apiVersion": "serving.kserve.io/v1alpha1"}
        places = [w.partition(":")[0] for w in admit(written).warnings if "criticality" in w]
        adapter = "spec.model.lora.adapters[0].criticality"
        assert places == (["spec.model.criticality", adapter] if warning else [])


GROUPS = {30: 1000, 38: 1000, 39: 100, 40: 10, 41: 1000, 53: 1000, 63: 1000}
"""How many groups have room by the length of a service's name, and so by ``<name>-kserve-mn``."""


@pytest.mark.parametrize("length", GROUPS)
def test_names_of_groups_with_too_long_labels(length: int) -> None:
    """A label of the workers has the LeaderWorkerSet's name, the number of their group, and a hash."""
    name, room = "a" * length, GROUPS[length]

    def about_names(**spec: Any) -> list[str]:
        return [text for text in admit(service(name, **WORKER, **spec)).warnings if "has room for" in text]

    assert about_names(replicas=room) == []
    (warning,) = about_names(replicas=room + 1) if room < 1000 else ("",)
    assert warning == "" or f"has room for {room} groups, and may have {room + 1}" in warning
    scaled = {"scaling": {"maxReplicas": 11, "wva": {"hpa": {}}}}
    assert bool(about_names(**scaled)) is (room < 11)


def test_the_name_of_prefill_groups_is_longer() -> None:
    prefill = {"replicas": 11, "template": main(), **WORKER}
    for length, is_found in ((31, False), (32, True), (33, False)):
        warnings = admit(service("a" * length, prefill=prefill, router=FULL_ROUTER)).warnings
        assert any("-kserve-mn-prefill has room for 10 groups" in text for text in warnings) is is_found


@pytest.mark.parametrize(
    "spec",
    [
        {"model": {"uri": ""}},
        {"parallelism": {"tensor": 2}},
        {"prefill": {}},
        {"router": {"scheduler": {}}},
        {"uri": None},
        {"worker": {}, "parallelism": {"pipeline": 2}},
    ],
)
def test_what_a_base_may_supply_is_not_missed(spec: Json) -> None:
    """With baseRefs, missing fields cause no warnings."""
    assert admit(service(baseRefs=[{"name": "b"}], **spec)).warnings == []


@pytest.mark.parametrize(
    "main", [{"command": ["serve"]}, {"volumeMounts": [{"name": "models", "mountPath": "/mnt/models/"}]}]
)
def test_a_pod_that_brings_its_own_model(main: Json) -> None:
    """Disabling the storage initializer is fine if the container has a command or mounts the model."""
    volumes = [{"name": mount["name"], "emptyDir": {}} for mount in main.get("volumeMounts", ())]
    template = {"containers": [{"name": "main", **main}], "volumes": volumes}
    assert warnings_of(service(storageInitializer={"enabled": False}, template=template)) == []


ONE: Json = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}


ADDRESS: Json = {"fieldRef": {"fieldPath": "status.podIP"}}
CONNECTED: Json = {
    "args": ["--kv-transfer-config", '{"kv_connector":"NixlConnector","kv_role":"kv_both"}'],
    "env": [{"name": "VLLM_NIXL_SIDE_CHANNEL_HOST", "valueFrom": ADDRESS}],
}


def test_a_complete_service_has_no_warnings() -> None:
    router, pod = {**FULL_ROUTER, "gateway": {}}, main(**ONE, **CONNECTED)
    assert admit(service(template=pod, router=router, prefill={"template": pod}, replicas=1)).warnings == []


AMD: Json = {"resources": {"limits": {"amd.com/gpu": "2"}}}
ROCM = "vllm/vllm-openai-rocm:v0.20.0"
NO_GPU: dict[str, tuple[Json, str]] = {
    "no template": ({}, "spec.template: image ghcr.io/llm-d/llm-d-cuda needs an NVIDIA GPU, but none is requested"),
    "another maker": (
        {"template": main(**AMD)},
        "spec.template: image ghcr.io/llm-d/llm-d-cuda needs an NVIDIA GPU, but",
    ),
    "an image for another maker": ({"template": main(image=ROCM, **ONE)}, f"image {ROCM[:21]}"),
    "data-parallel pods, for which tensor requests none": (
        {"parallelism": {"tensor": 4, "data": 4, "dataLocal": 2}, "worker": main(**ONE)},
        "but none is requested; set limits of container main, or its image",
    ),
    "a worker of data-parallel pods": ({**WORKER, "template": main(**ONE)}, "spec.worker: image"),
    "prefill": ({"template": main(**ONE), "prefill": {}, "router": FULL_ROUTER}, "spec.prefill.template: image"),
}


@pytest.mark.parametrize("case", NO_GPU)
def test_a_server_without_the_gpu_of_its_image(case: str) -> None:
    """The engine would end when it starts."""
    spec, text = NO_GPU[case]
    (warning,) = [w for w in admit(service(**spec)).warnings if " needs an " in w]
    assert text in warning


@pytest.mark.parametrize(
    "spec",
    [
        {"parallelism": {"tensor": 2}},
        {"parallelism": {"tensor": 2, "pipeline": 2}, "worker": {}},
        {"template": main(image=ROCM, **AMD)},
        {"template": main(image=ROCM, resources={"limits": {"amd.com/cpx_nps4": "2"}})},
        {"template": main(resources={"limits": {"nvidia.com/GH100_H100_SXM5_80GB": "1"}})},
        {"template": main(resources={"limits": {"nvidia.com/pgpu": "1"}})},
        {"template": main(image="example.com/vllm:cpu")},
        {"template": {**main(), "runtimeClassName": "nvidia"}},
        {"template": main(resources={"limits": {"example.com/vgpu": "1"}})},
        {"template": main(image=ROCM, resources={"limits": {"squat.ai/dri": "1"}})},
        {"template": {**main(resources={"claims": [{"name": "a"}]}), "resourceClaims": [{"name": "a"}]}},
        {"notes": {"serving.kserve.io/exp-dra-device-class": "gpu.nvidia.com"}},
        {"baseRefs": [{"name": "b"}]},
    ],
)
def test_a_server_that_may_have_its_gpu(spec: Json) -> None:
    assert [text for text in admit(service(**spec)).warnings if " needs an " in text] == []


TOKEN: Json = {"env": [{"name": "A"}, {"name": "HF_TOKEN", "value": "x"}]}
INITIALIZER: Json = {"initContainers": [{"name": "storage-initializer", **TOKEN}]}
SECRET = "serving.kserve.io/storageSecretName"
ADAPTED: Json = {"uri": "pvc://claim/m", "lora": {"adapters": [{"name": "a", "uri": "hf://a/b"}]}}


@pytest.mark.parametrize("uri", ["hf://a/b", "s3://bucket/a", "pvc://claim/a", "oci://r.example.com/a:1"])
@pytest.mark.parametrize("extra", [{}, {"storageInitializer": {"enabled": False}}], ids=["initializer", "disabled"])
def test_a_storage_initializer_needs_no_image_where_one_is_generated(uri: str, extra: Json) -> None:
    """What a user writes is laid over the generated container, or left out where nothing is downloaded."""
    parent = service(template={**main(), **INITIALIZER}, uri=uri, **extra)
    warned = any("initContainers[0].image" in text for text in advice(parent))
    cluster = Cluster(parent)
    cluster.sync()
    assert warned is bool(extra)
    assert (cluster.says("PresetsCombined") == "CombineBaseError") is warned


@pytest.mark.parametrize(("uri", "is_started"), [("hf://a/b", True), ("pvc://claim/a", False)])
def test_the_user_of_a_storage_initializer_matters_where_there_is_one(uri: str, is_started: bool) -> None:
    root = {"securityContext": {"runAsUser": 0, "runAsNonRoot": True}}
    steps = {"initContainers": [{"name": "storage-initializer", **root}]}
    answers = advice(service(template={**main(), **steps}, uri=uri))
    assert any("contradicts runAsNonRoot" in text for text in answers) is is_started


def advice(parent: Json) -> list[str]:
    return [str(warning) for warning in admit(parent).warnings]


@pytest.mark.parametrize(
    ("parent", "path"),
    [
        (service(template=main(**TOKEN)), "spec.template.containers[0].env[1]"),
        (service(prefill={"template": main(**TOKEN)}), "spec.prefill.template.containers[0].env[1]"),
        (service(worker=main(**TOKEN)), "spec.worker.containers[0].env[1]"),
        (service(template=main(**TOKEN), model=ADAPTED), "spec.template.containers[0].env[1]"),
        (service(template=main(**TOKEN), notes={SECRET: ""}), "spec.template.containers[0].env[1]"),
        (service(template=main(**TOKEN), notes={SECRET: "hf"}), ""),
        (service(template={**main(**TOKEN), **INITIALIZER}), ""),
        (service(template=main(**TOKEN), storageInitializer={"enabled": False}), ""),
        (service(template=main(**TOKEN), uri="pvc://claim/m"), ""),
        (service(template=main()), ""),
    ],
)
def test_token_that_the_download_does_not_get(parent: Json, path: str) -> None:
    """The server has HF_TOKEN, but the storage initializer, which downloads the gated model, does not."""
    about_tokens = [text for text in advice(parent) if "does not get this HF_TOKEN" in text]
    assert [text.partition(": ")[0] for text in about_tokens] == ([path] if path else [])
    assert all(SECRET in text for text in about_tokens)


REDIRECT = {"type": "RequestRedirect", "requestRedirect": {"statusCode": 308}}
CORS = {"type": "CORS", "cors": {"allowOrigins": ["*"]}}


def test_fields_of_a_newer_gateway_api() -> None:
    """An API server with an older Gateway API refuses such a route; services and configs warn."""
    filters = [CORS, {"type": "RequestRedirect", "requestRedirect": {"statusCode": 301}}]
    backends = [{"name": "s", "port": 80, "filters": [REDIRECT]}]
    router = {"route": {"http": {"spec": {"rules": [{"filters": filters, "backendRefs": backends}]}}}, "scheduler": {}}
    rule = "spec.router.route.http.spec.rules[0]"
    needs = "Gateway API 1.5 or newer; with an older one the HTTPRoute is refused"
    for document in (service(router=router), config(router=router)):
        assert [text for text in admit(document).warnings if "Gateway API" in text] == [
            f"{rule}.filters[0].cors: needs {needs}",
            f"{rule}.backendRefs[0].filters[0].requestRedirect.statusCode: 303, 307, 308 need {needs}",
        ]


def test_pod_template_in_place_of_a_pod() -> None:
    (warning,) = (text for text in advice(service(template={"spec": main()})) if "spec.template.spec" in text)
    assert warning.endswith("remove this level: containers must be directly below spec.template")


def test_the_search_for_options_of_all_containers_is_bounded() -> None:
    """Each unknown option costs a search for a similar one."""
    container = {"image": "vllm/vllm-openai:v0.20.0", "args": ["--enforce"] * 10 + ["--max-model-lne"] * 60}
    pod = {"containers": [{"name": f"c{number}", **container} for number in range(3)]}
    warnings = admit(service(template=pod, prefill={"template": pod})).warnings
    assert len([text for text in warnings if "has no option" in text]) == MAX_UNKNOWN_NAMES


PODS: Json = {"parallelism": {"data": 4, "dataLocal": 2}}
"""Two pods per replica, which cannot change; without ``worker`` they come to nothing."""
SHAPES: dict[str, Json] = {
    "one node": PODS,
    "with prefill": {**PODS, "prefill": PODS},
    "groups": WORKER,
    "groups with prefill": {**WORKER, "prefill": PODS},
    "prefill in groups": {**PODS, "prefill": WORKER},
    "all in groups": {**WORKER, "prefill": WORKER},
}
SIDES = ({"demo-kserve", "demo-kserve-mn"}, {"demo-kserve-prefill", "demo-kserve-mn-prefill"})
"""Names of the workloads of the service's own pods, and of those of prefill."""


@pytest.mark.parametrize(("before", "after"), [*permutations(SHAPES, 2)])
def test_updates_that_end_all_pods_at_once(before: str, after: str) -> None:
    """There is a warning for each side of a service that goes on with another workload."""
    old, new = service(replicas=1, **SHAPES[before]), service(replicas=1, **SHAPES[after])
    cluster = Cluster(old)
    cluster.settle()
    running = _workloads(cluster)
    cluster.parent = {**new, "status": cluster.parent["status"]}
    cluster.sync()
    ended = running - _workloads(cluster)
    cluster.settle()
    replaced = [side for side in SIDES if side & ended and side & _workloads(cluster)]
    verdict = admit(new, old)
    assert verdict.errors == []
    about_ends = [text for text in verdict.warnings if "running pods end" in text]
    assert len(about_ends) == len(replaced), about_ends


def _workloads(cluster: Cluster) -> set[str]:
    workloads = (child for child in cluster.children if child["kind"] in ("Deployment", "LeaderWorkerSet"))
    return {child["metadata"]["name"] for child in workloads}


def test_updates_without_running_pods_are_not_warned_about() -> None:
    stop = {"serving.kserve.io/stop": "true"}
    prefill: Json = {"prefill": {}}
    for old, new in (
        (service(notes=stop), service(notes=stop, **prefill)),
        (service(notes=stop, **prefill), service()),
        (service(), service(notes=stop, **prefill)),
        (service(replicas=0), service(replicas=1, **prefill)),
        (service(baseRefs=[{"name": "base"}]), service(**prefill)),
        (service(), service(**prefill, baseRefs=[{"name": "base"}])),
    ):
        assert not [text for text in admit(new, old).warnings if "running pods end" in text]


QUIET = "--disable-log-stats"


@pytest.mark.parametrize(
    ("spec", "reader"),
    [
        ({"scaling": {"maxReplicas": 2, "wva": {"hpa": {}}}, "template": main(args=[QUIET])}, "scaling.wva"),
        ({"router": FULL_ROUTER, "template": main(args=[QUIET])}, "router.scheduler"),
        ({"template": main(args=[QUIET])}, ""),
        ({"router": FULL_ROUTER, "template": main()}, ""),
    ],
)
def test_a_server_without_metrics_that_something_reads(spec: Json, reader: str) -> None:
    said = [text for text in admit(service(**spec)).warnings if "shows no metrics" in text]
    assert [reader in text for text in said] == ([True] if reader else [])

"""HTTP-6.5: values that try to exceed the rights of their author.

Values that the author of a Pod may write in the same namespace are accepted (the corpus' precedence). For these the
tests show that the value remains data: one argument, variable or field, in the parent's namespace, in no shell program.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.kube.base import Json
from tests.corpus.contained import is_contained, pods, shells, texts
from tests.corpus.requests import (
    API_VERSION,
    CUSTOMIZE,
    REVIEW,
    REVIEW_MODEL,
    SYNC,
    SYNC_MODEL,
    is_allowed,
    is_denied,
    is_frozen,
    model,
    review,
    spec_with,
    sync,
    verdict,
)
from tests.corpus.requests import service as inference_service
from tests.hookcalls import unnoted
from tests.service import Answer, Service, running


@pytest.fixture(scope="module")
def guarded() -> Iterator[Service]:
    """A service whose operator allows some hosts and one directory."""
    lists = {
        "MODELHOOKS_LLMKUBE_ALLOWED_SOURCE_HOSTS": "good.example,*.models.example",
        "MODELHOOKS_LLMKUBE_ALLOWED_HOST_PATHS": "/models",
    }
    with running(environment=lists) as started:
        yield started


def sync_model(service: Service, source: str) -> Answer:
    document = model({"source": source})
    return service.post(
        SYNC_MODEL, sync(document, children={"Job.batch/v1": {}, "PersistentVolumeClaim.v1": {}}, related={})
    )


def review_source(service: Service, source: str) -> Answer:
    return service.post(REVIEW_MODEL, review(model({"source": source})))


# References to other namespaces.


def test_ignores_a_namespace_in_a_secret_reference(service: Service) -> None:
    """A pod can only refer to Secrets in its namespace (HTTP-X01)."""
    reference = {"name": "s", "key": "k", "namespace": "other"}
    for spec, path in (
        ({"env": [{"name": "A", "valueFrom": {"secretKeyRef": reference}}]}, "spec.env[0].valueFrom.secretKeyRef"),
        ({"runtime": "vllm", "vllmConfig": {"hfTokenSecretRef": reference}}, "spec.vllmConfig.hfTokenSecretRef"),
    ):
        document = inference_service(spec_with(**spec))
        warnings = is_allowed(service.post(REVIEW, review(document)))
        assert any(f'unknown field "{path}.namespace"' in text for text in warnings)
        is_contained(service.post(SYNC, sync(document)))


@pytest.mark.parametrize("reference", ["other/m", "../other/m", "m;x", "*", "m m", "-m", "{{m}}", "m\n"])
def test_rejects_a_reference_with_a_path(service: Service, reference: str) -> None:
    """A name with a path is invalid (HTTP-X02)."""
    document = inference_service(spec_with(modelRef=reference))
    is_denied(service.post(REVIEW, review(document)), "spec.modelRef", "Invalid", "Forbidden")
    is_frozen(service.post(SYNC, sync(document)))


def test_rejects_a_pull_secret_with_a_path(service: Service) -> None:
    """HTTP-X02 for pull secrets."""
    document = inference_service(spec_with(imagePullSecrets=[{"name": "other/s"}]))
    is_denied(service.post(REVIEW, review(document)), "spec.imagePullSecrets[0].name", "Invalid")


SELECTING: dict[str, Json] = {
    "modelRef of everything": spec_with(modelRef=""),
    "modelRef elsewhere": spec_with(modelRef="other/m"),
    "namespaceSelector": spec_with(namespaceSelector={}, labelSelector={}, namespace="other"),
    "speculative": spec_with(runtime="vllm", vllmConfig={"speculative": {"enabled": True, "model": "other/m"}}),
}
CLUSTER_WIDE = {"priorityclasses", "runtimeclasses", "nodes", "storageclasses"}


@pytest.mark.parametrize("spec", SELECTING.values(), ids=list(SELECTING))
def test_a_spec_cannot_widen_related_rules(service: Service, spec: Json) -> None:
    """Metacontroller would send any object that a rule selects (HTTP-X03)."""
    document = inference_service(spec, metadata={"name": "s", "namespace": "ns", "uid": "u", "labels": {"a": "b"}})
    answer = service.post(CUSTOMIZE, {"controller": {"spec": {"childResources": []}}, "parent": document})
    assert answer.status == 200
    for rule in answer.json["relatedResources"]:
        assert rule.get("namespace") == "ns" or rule["resource"] in CLUSTER_WIDE
        assert rule["resource"] != "secrets"
        assert rule.get("names") != []
        assert "" not in rule.get("names", [])


# Values that the author of a Pod may write too.

PASSED_ON: dict[str, Json] = {
    "X05": {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "any", "key": "k"}}}]},
    "X07": {"runtime": "generic", "args": ["--x=$(HF_TOKEN)"]},
    "X12": {"securityContext": {"privileged": True}},
    "X13": {"securityContext": {"capabilities": {"add": ["SYS_ADMIN", "all"]}}},
    "X14": {"securityContext": {"runAsUser": 0}},
    "X15": {"podSecurityContext": {"seccompProfile": {"type": "Unconfined"}}},
    "X16": {"podSecurityContext": {"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]}},
    "X26": {"imagePullSecrets": [{"name": "any"}]},
    "X18": {"tolerations": [{"operator": "Exists"}], "priorityClassName": "system-node-critical"},
    "X22": {"image": "evil.example/x"},
    "X23": {"image": "registry.good.example@evil.example/x"},
    "X24": {"image": "a`id`$(id) b"},
    "X56": {"podAnnotations": {"sidecar.istio.io/inject": "false"}},
    "X57": {"extraArgs": ["{{ .Env.HF_TOKEN }}", "{% import os %}", "<%= %>", "#{}"]},
    "X61": {"runtime": "vllm", "extraArgs": ["--trust-remote-code", "--api-key=x"]},
    "X62": {"extraArgs": ["--port", "1", "--host=0.0.0.0", "--model=/etc/passwd"]},
}


@pytest.mark.parametrize("spec", PASSED_ON.values(), ids=list(PASSED_ON))
def test_what_a_pod_may_say_stays_data(service: Service, spec: Json) -> None:
    """The pod has every string of the user unchanged, and no shell program has one."""
    document = inference_service(spec_with(**spec))
    is_allowed(service.post(REVIEW, review(document)))
    children = is_contained(service.post(SYNC, sync(document)))
    strings = set(texts(children))
    for text in texts({key: value for key, value in spec.items() if key != "runtime"}):
        assert text in strings
        assert not any(text in program for program in shells(children) if len(text) > 4)


UNKNOWN_POD_FIELDS = [
    {"hostNetwork": True},
    {"hostPID": True},
    {"nodeName": "n"},
    {"serviceAccountName": "metacontroller"},
    {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]},
    {"initContainers": [{"name": "x", "image": "x"}]},
    {"schedulerName": "x"},
]


@pytest.mark.parametrize("spec", UNKNOWN_POD_FIELDS, ids=lambda spec: str(next(iter(spec))))
def test_drops_pod_fields_that_the_kind_lacks(service: Service, spec: Json) -> None:
    """There is a warning, and the pod is the same (HTTP-X11)."""
    document = inference_service(spec_with(**spec))
    (name,) = spec
    assert any(f'unknown field "spec.{name}"' in text for text in is_allowed(service.post(REVIEW, review(document))))
    plain = is_contained(service.post(SYNC, sync(inference_service())))
    assert unnoted(is_contained(service.post(SYNC, sync(document)))) == unnoted(plain)


USERS = [("securityContext", "runAsUser", -1), ("podSecurityContext", "fsGroup", 2**31)]


@pytest.mark.parametrize(("context", "field", "value"), USERS)
def test_rejects_invalid_user_ids(service: Service, context: str, field: str, value: int) -> None:
    """Kubernetes would only refuse the pod (HTTP-X14)."""
    document = inference_service(spec_with(**{context: {field: value}}))
    is_denied(service.post(REVIEW, review(document)), f"spec.{context}.{field}", "Invalid")
    is_frozen(service.post(SYNC, sync(document)))


# Sources.

REFUSED_SOURCES: dict[str, str] = {
    "X27 word": "a;rm -rf /",
    "X28 newline in a repository": "org/repo\nrm",
    "X29 option": "-K/etc/x",
    "X29 long option": "--config=/x",
    **{f"X31 {s}": f"{s}://host/x" for s in ("ftp", "gopher", "dict", "ldap", "jar", "javascript", "FILE", "hTTp")},
    "X31 data": "data:text/plain,x",
    "X34 outside": "../../x",
    "X37": "http://169.254.169.254/latest/meta-data",
    "X39 one number": "http://2852039166/latest",
    "X39 hexadecimal": "http://0xa9fea9fe/latest",
    "X39 octal": "http://0251.0376.0251.0376/latest",
    "X39 short": "http://169.254.43518/latest",
    "X40 mapped": "http://[::ffff:169.254.169.254]/x",
    "X40 compatible": "http://[::169.254.169.254]/x",
    "X40 translated": "http://[64:ff9b::a9fe:a9fe]/x",
    "X40 zone": "http://[fe80::1%25eth0]/x",
    "X40 AWS": "http://[fd00:ec2::254]/x",
    "X42 Google": "http://metadata.google.internal/x",
    "X42 trailing dot": "http://metadata.google.internal./x",
    "X42 capitals": "http://METADATA.google.internal/x",
    "X43 backslash": "http://good.example\\@evil.example/x",
    "X43 two users": "http://a@b@evil.example/x",
    "X43 no host": "http:///x",
    "X43 tab": "http://good\t.example/x",
    "X45 claim outside": "pvc://claim/../../x",
    "X45 claim absolute": "pvc://claim//etc/x",
    "X45 no file": "pvc://claim/",
    "X45 node outside": "/models/../etc/shadow",
    "X45 node outside, as URL": "file:///models/../etc/shadow",
    "X48 backslashes": "..\\..\\x",
}


@pytest.mark.parametrize("source", REFUSED_SOURCES.values(), ids=list(REFUSED_SOURCES))
def test_sources_that_are_refused(service: Service, source: str) -> None:
    """They are refused with any configuration, and nothing is downloaded."""
    is_denied(review_source(service, source), "spec.source", "Invalid", "Forbidden")
    assert sync_model(service, source).json["children"] == []


ODD_SOURCES: dict[str, str] = {
    "X27 separator": "https://h.example/x; rm -rf /",
    "X27 substitution": "https://h.example/$(id)`id`${IFS}",
    "X27 operators": "https://h.example/a&&b||c>d<e",
    "X28 newline": "https://h.example/x\nrm -rf /",
    "X30 quotes": "https://h.example/'x\"y\\z*?[~{a,b}",
    "X30 quotes on the node": "/models/'$(id)\"",
    "X32 userinfo": "https://user:pass-word@h.example/x",
    "X33 fragment": "https://h.example/x#frag",
    "X33 query": "https://h.example/x?token=secret-token",
    "X44 any name": "https://rebinding.example/x",
    "S45 international": "https://h\u00f6st.example/x",
    "S45 punycode": "https://xn--hst-sna.example/x",
    "S47 encoded dots": "https://h.example/%2e%2e/%252e/x",
    "X34 deep repository": "a/b/c/d",
    "X49 archive": "https://h.example/x.tar.gz",
    "X50 link": "https://h.example/x -> /etc",
}


@pytest.mark.parametrize("source", ODD_SOURCES.values(), ids=list(ODD_SOURCES))
def test_sources_that_are_odd_stay_data(service: Service, source: str) -> None:
    """They are refused, or are the value of one variable (of one path), and never part of a shell program."""
    response = verdict(review_source(service, source))
    children = is_contained(sync_model(service, source))
    if not response["allowed"]:
        assert children == []
        return
    downloads = [pod for pod in pods(children) if pod]
    for pod in downloads:
        strings = {text.replace("$$", "$") for text in texts(pod)}  # as the kubelet reads it
        assert any(source.removeprefix("file://") in text for text in strings)
        assert not any(part in program for program in shells(children) for part in (source, "h.example", "rm -rf /"))


def test_never_repeats_a_password(service: Service) -> None:
    """The source is also refused for its host (HTTP-X32)."""
    answer = review_source(service, "http://user:pass-word@169.254.169.254/x")
    is_denied(answer, "spec.source", "Forbidden")
    assert b"pass-word" not in answer.body
    assert b"pass-word" not in b"".join(
        text.encode() for text in texts(sync_model(service, "http://user:pass-word@169.254.169.254/x").json)
    )


@pytest.mark.parametrize("rest", ["/x", "h.example:0/x", "@h.example/x"])
def test_never_repeats_a_password_of_an_invalid_address(service: Service, rest: str) -> None:
    """Admission and the status name the mistake without the credentials (HTTP-X32)."""
    source = f"https://user:pass-word@{rest}"
    answer = review_source(service, source)
    is_denied(answer, "spec.source", "Invalid")
    assert b"pass-word" not in answer.body + sync_model(service, source).body


GUARDED: dict[str, tuple[str, bool]] = {
    "X09 other directory": ("file:///etc/shadow", False),
    "X09 plain path": ("/etc/shadow", False),
    "X09 allowed": ("/models/a.gguf", True),
    "X10 sibling": ("/models-evil/a.gguf", False),
    "X10 double slash": ("/models//a.gguf", True),
    "X10 dots": ("/models/../etc/x", False),
    "X08 docker": ("/var/run/docker.sock", False),
    "X23 exact": ("https://good.example/x.gguf", True),
    "X23 port": ("https://good.example:443/x.gguf", True),
    "X23 below": ("https://a.models.example/x.gguf", True),
    "X23 suffix": ("https://good.example.evil.example/x", False),
    "X23 user": ("https://good.example@evil.example/x", False),
    "X23 prefix": ("https://evilgood.example/x", False),
    "X23 wildcard itself": ("https://xmodels.example/x", False),
    "X38 loopback": ("http://127.0.0.1/x", False),
    "X38 localhost": ("http://localhost/x", False),
    "X38 IPv6": ("http://[::1]/x", False),
    "X41 private": ("http://10.0.0.1/x", False),
    "X42 service": ("http://kubernetes.default.svc/x", False),
    "X43 fragment": ("http://evil.example#@good.example/x", False),
    "X43 backslash": ("http://evil.example\\@good.example/x", False),
    "capitals": ("https://GOOD.example/x", True),
    "trailing dot": ("https://good.example./x", True),
}


@pytest.mark.parametrize(("source", "allowed"), GUARDED.values(), ids=list(GUARDED))
def test_allow_lists_hold(guarded: Service, source: str, *, allowed: bool) -> None:
    """A source must be on an allowed host or below an allowed directory, in admission and in sync."""
    answer = review_source(guarded, source)
    if allowed:
        assert is_allowed(answer) == []
        return
    is_denied(answer, "spec.source", "Forbidden", "Invalid")
    assert sync_model(guarded, source).json["children"] == []


# Names and labels.


@pytest.mark.parametrize("key", ["controller-uid", "metacontroller.k8s.io/last-applied-configuration"])
def test_rejects_metacontrollers_labels(service: Service, key: str) -> None:
    """Metacontroller finds its children by them (HTTP-X51)."""
    for place in ("labels", "annotations"):
        metadata = {"name": "s", "namespace": "ns", "uid": "u", place: {key: "x"}}
        is_denied(service.post(REVIEW, review(inference_service(metadata=metadata))), f"metadata.{place}[{key}]")
    for field in ("podLabels", "podAnnotations"):
        document = inference_service(spec_with(**{field: {key: "x"}}))
        is_denied(service.post(REVIEW, review(document)), f"spec.{field}[{key}]", "Forbidden")


@pytest.mark.parametrize("key", ["app", "inference.llmkube.dev/service", "inference.llmkube.dev/model"])
def test_keeps_selector_labels(service: Service, key: str) -> None:
    """User labels cannot make another service's selector match a pod (HTTP-X53)."""
    document = inference_service(spec_with(podLabels={key: "payments", "team": "x"}))
    deployment = next(
        c
        for c in is_contained(service.post(SYNC, sync(document, children={"Deployment.apps/v1": {}})))
        if c["kind"] == "Deployment"
    )
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert (labels["team"], labels[key]) != ("x", "payments")
    assert deployment["spec"]["selector"]["matchLabels"].items() <= labels.items()


BAD_LABELS = [("k" * 64, "v"), ("-bad-/k", "v"), ("k", "v" * 64), ("a/b/c", "v"), ("ключ", "v"), ("k", "a b")]


@pytest.mark.parametrize(("key", "value"), BAD_LABELS, ids=lambda part: part[:8])
def test_rejects_invalid_labels(service: Service, key: str, value: str) -> None:
    """HTTP-X54: on the object and on its pods."""
    document = inference_service(metadata={"name": "s", "namespace": "ns", "labels": {key: value}})
    errors = verdict(service.post(REVIEW, review(document)))["status"]["details"]["causes"]
    assert all(cause["field"].startswith("metadata.labels") for cause in errors)
    document = inference_service(spec_with(podLabels={key: value}))
    errors = verdict(service.post(REVIEW, review(document)))["status"]["details"]["causes"]
    assert all(cause["field"].startswith("spec.podLabels") for cause in errors)
    is_frozen(service.post(SYNC, sync(document)))


def test_rejects_annotations_over_their_limit(service: Service) -> None:
    """HTTP-X55: the limit is for all annotations together."""
    metadata = {"name": "s", "namespace": "ns", "annotations": {f"a{n}": "x" * 100_000 for n in range(3)}}
    is_denied(service.post(REVIEW, review(inference_service(metadata=metadata))), "metadata.annotations", "TooLong")


def test_models_never_share_a_file(service: Service) -> None:
    """Names and sources that are equal when joined have different paths (HTTP-X47)."""
    paths = set()
    for name, source in (
        ("a-b", "https://h.example/c"),
        ("a", "https://h.example/b-c"),
        ("a.b", "https://h.example/c"),
    ):
        document = model({"source": source}, metadata={"name": name, "namespace": "ns", "uid": name})
        request = sync(document, children={"Job.batch/v1": {}, "PersistentVolumeClaim.v1": {}}, related={})
        children = is_contained(service.post(SYNC_MODEL, request))
        claim = next(c["metadata"]["name"] for c in children if c["kind"] == "PersistentVolumeClaim")
        paths.add((claim, next(text for text in texts(children) if text.endswith(".gguf"))))
    assert len(paths) == 3


def test_ignores_other_kinds_of_related_objects(service: Service) -> None:
    """Related objects that were not requested are not in the answer (HTTP-X20)."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}, "data": {"password": "c2VjcmV0LXZhbHVl"}}
    request = sync()
    request["related"] = {**request["related"], "Secret.v1": {"ns/x": secret}, f"Model.{API_VERSION}/x": {"a": 1}}
    answer = service.post(SYNC, request)
    is_contained(answer)
    assert b"c2VjcmV0" not in answer.body

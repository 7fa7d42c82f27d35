"""HTTP-6.5 where users write whole pod specs: llmaz' Services and KServe's services.

LLMKube has none of these fields (HTTP-X11 in ``test_security``). Fields that the author of a Pod may set are passed on;
invalid names, and fields that a long-running pod cannot have, are refused at their path.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest

from app.desk.cluster.simulate import Cluster
from app.kube.base import Json
from tests.corpus.contained import containers, is_contained, pods, shells, texts
from tests.corpus.families import (
    CONFIG,
    LLM,
    SERVICE,
    are_kept,
    is_refused_everywhere,
    request,
    reviewing,
    running,
    syncing,
    valid,
)
from tests.corpus.requests import is_allowed, is_denied, ready
from tests.service import Service

WORKER = "spec.workloadTemplate.workerTemplate"
LAST_APPLIED = "metacontroller.k8s.io/last-applied-configuration"
MAIN = {SERVICE: "model-runner", LLM: "main"}
"""The serving container."""
POD = {SERVICE: f"{WORKER}.spec", LLM: "spec.template"}
"""The path of the pod spec."""
BOTH = (SERVICE, LLM)


def spec_of(kind: str, *, runner: Json | None = None, beside: list[Json] | None = None, **pod: Any) -> Json:
    """Return a valid spec with changes to the serving container, more containers, and fields of the pod."""
    container = {"name": MAIN[kind], "image": "tool:v1", **(runner or {})}
    template = {"containers": [container, *(beside or [])], **pod}
    if kind == LLM:
        return {**valid(LLM), "template": template}
    return {**valid(SERVICE), "workloadTemplate": {"workerTemplate": {"spec": template}}}


@dataclass(frozen=True)
class Case:
    """``field`` is below the pod spec; the other fields are the arguments of :func:`spec_of`."""

    id: str
    spec: Json
    field: str
    type: str = "Invalid"
    kinds: tuple[str, ...] = BOTH


X = {"name": "x", "image": "x"}
DENIED = [
    Case("X17 the server twice", {"beside": [{"name": "model-runner"}]}, "containers[1]", "Duplicate", (SERVICE,)),
    Case("X17 the server twice", {"beside": [{"name": "main"}]}, "containers", "Duplicate", (LLM,)),
    Case("X17 ephemeral", {"ephemeralContainers": [X]}, "ephemeralContainers", "Forbidden"),
    *(
        Case(
            "X17 init container like the server", {"initContainers": [X, given]}, "initContainers[1].name", kind, (of,)
        )
        for kind, of, given in (
            ("Duplicate", SERVICE, {"name": "model-runner"}),
            ("Duplicate", LLM, {"name": "main"}),
            ("Invalid", SERVICE, {"name": "model-loader"}),
        )
    ),
    *(
        Case(f"X21 {name!r}", {"serviceAccountName": name}, "serviceAccountName")
        for name in ("../x", "a/b", "Default", "a b", "$(id)")
    ),
    Case("X25 lower case", {"runner": {"imagePullPolicy": "never"}}, "containers[0].imagePullPolicy", "NotSupported"),
    Case("X26 elsewhere", {"imagePullSecrets": [{"name": "a"}, {"name": "../x"}]}, "imagePullSecrets[1].name"),
]
REFUSED = [(kind, case) for case in DENIED for kind in case.kinds]


@pytest.mark.parametrize(("kind", "case"), REFUSED, ids=[f"{case.id} {kind}" for kind, case in REFUSED])
def test_pods_that_no_server_takes(service: Service, cluster: Cluster, kind: str, case: Case) -> None:
    """They are denied at their field, and the children are kept."""
    document = running(cluster, kind, spec_of(kind, **case.spec))
    is_refused_everywhere(service, cluster, document, f"{POD[kind]}.{case.field}", case.type)


VOLUMES: dict[str, Json] = {
    "csi": {"driver": "d.example", "volumeAttributes": {"share": "any"}},
    "flexVolume": {"driver": "d.example/any"},
    "nfs": {"server": "h.example", "path": "/any"},
    "iscsi": {"targetPortal": "192.0.2.1:3260", "iqn": "iqn.2001-04.example:any", "lun": 1},
    "rbd": {"monitors": ["192.0.2.1:6789"], "image": "any"},
}
PASSED_ON: dict[str, Json] = {
    "X06": {"runner": {"envFrom": [{"secretRef": {"name": "any-secret"}}]}},
    "X17 sidecar": {"initContainers": [{"name": "side", "image": "side:v1", "restartPolicy": "Always"}]},
    "X17 beside": {"beside": [{"name": "beside", "image": "beside:v1", "args": ["; rm -rf /"]}]},
    **{f"X19 {name}": {"volumes": [{"name": "given", name: volume}]} for name, volume in VOLUMES.items()},
    "X25": {"runner": {"imagePullPolicy": "Never", "image": "local-image"}},
    "X26": {"imagePullSecrets": [{"name": "any-secret"}]},
}
PASSED = [(kind, case) for case in PASSED_ON for kind in BOTH]


@pytest.mark.parametrize(("kind", "case"), PASSED, ids=[f"{case} {kind}" for kind, case in PASSED])
def test_what_a_pods_author_may_write(service: Service, cluster: Cluster, kind: str, case: str) -> None:
    """The pod has the values unchanged, in the parent's namespace, and in no shell program."""
    document = running(cluster, kind, spec_of(kind, **PASSED_ON[case]))
    is_allowed(reviewing(service, document))
    children = is_contained(syncing(service, request(cluster, document)))
    strings = set(texts(pods(children)))
    for text in texts(PASSED_ON[case]):
        assert text in strings
        assert not any(text in program for program in shells(children) if len(text) > 4)


@pytest.mark.parametrize("name", ["metacontroller", "default"])
def test_accepts_any_account_of_the_namespace(service: Service, cluster: Cluster, name: str) -> None:
    """Only the pod names the account, so it cannot be one of another namespace (HTTP-X21)."""
    document = running(cluster, SERVICE, spec_of(SERVICE, serviceAccountName=name))
    assert is_allowed(reviewing(service, document)) == []
    children = is_contained(syncing(service, request(cluster, document)))
    assert [pod["serviceAccountName"] for pod in pods(children)] == [name]


def test_reports_a_missing_account(service: Service, cluster: Cluster) -> None:
    """KServe checks the ServiceAccount before any change (HTTP-X21)."""
    document = running(cluster, LLM, spec_of(LLM, serviceAccountName="metacontroller"))
    assert is_allowed(reviewing(service, document)) == []
    sent = request(cluster, document)
    answer = syncing(service, sent)
    assert ready(answer)["message"] == "ServiceAccount metacontroller does not exist in namespace ns"
    are_kept(answer, sent)


def test_ignores_a_namespace_in_a_template(service: Service, cluster: Cluster) -> None:
    """Pods are created in the namespace of their workload (HTTP-X04)."""
    spec = spec_of(SERVICE)
    spec["workloadTemplate"]["workerTemplate"]["metadata"] = {"name": "n", "namespace": "other"}
    document = running(cluster, SERVICE, spec)
    assert is_allowed(reviewing(service, document)) == []
    children = is_contained(syncing(service, request(cluster, document)))
    assert {child["metadata"]["namespace"] for child in children} == {"ns"}
    assert {child["metadata"]["name"] for child in children} == {"there", "there-lb", "there-llmaz"}


def test_rejects_a_change_of_the_group_size(service: Service, cluster: Cluster) -> None:
    """The size of a group is immutable (HTTP-R15)."""
    new = spec_of(SERVICE)
    new["workloadTemplate"]["size"] = 2
    document = running(cluster, SERVICE, new)
    old = running(cluster, SERVICE, spec_of(SERVICE))
    answer = reviewing(service, document, old)
    is_denied(answer, "spec.workloadTemplate.size", "Invalid")
    assert "field is immutable" in answer.json["response"]["status"]["message"]


# Keys by which Metacontroller finds its children.

TEMPLATE = {"spec": spec_of(SERVICE)["workloadTemplate"]["workerTemplate"]["spec"]}
MARKED: dict[str, tuple[str, Json, str]] = {
    "worker": (SERVICE, {"workloadTemplate": {"workerTemplate": TEMPLATE}}, f"{WORKER}.metadata"),
    "leader": (
        SERVICE,
        {"workloadTemplate": {"workerTemplate": TEMPLATE, "leaderTemplate": TEMPLATE}},
        "spec.workloadTemplate.leaderTemplate.metadata",
    ),
    "service": (LLM, {}, "spec"),
    "prefill": (LLM, {"prefill": {}}, "spec.prefill"),
    "scheduler": (LLM, {"router": {"scheduler": {}}}, "spec.router.scheduler"),
    "config": (CONFIG, {}, "spec"),
}


def marked(spec: Any, path: str, maps: Json) -> Any:
    """Return a copy of the spec with labels and annotations at that path."""
    if not path:
        return {**spec, **maps}
    head, _, rest = path.partition(".")
    return {**spec, head: marked(spec.get(head) or {}, rest, maps)}


@pytest.mark.parametrize(("kind", "spec", "path"), MARKED.values(), ids=list(MARKED))
def test_drops_metacontrollers_own_metadata(
    service: Service, cluster: Cluster, kind: str, spec: Json, path: str
) -> None:
    """A template may set neither Metacontroller's record nor its label (HTTP-X51, HTTP-X52)."""
    maps = {"annotations": {LAST_APPLIED: "{}"}, "labels": {"controller-uid": "x"}}
    document = running(
        cluster, kind, marked({**valid(kind), **spec}, path.removeprefix("spec").removeprefix("."), maps)
    )
    is_refused_everywhere(service, cluster, document, f"{path}.annotations[{LAST_APPLIED}]", "Forbidden")
    is_denied(reviewing(service, document), f"{path}.labels[controller-uid]", "Forbidden")


def with_adapter(name: str) -> Json:
    adapter = {"uri": "hf://organisation/adapter", "name": name}
    return {"model": {**valid(LLM)["model"], "lora": {"adapters": [adapter]}}}


@pytest.mark.parametrize("name", [".", ".."])
def test_an_adapters_name_is_a_unique_directory(service: Service, cluster: Cluster, name: str) -> None:
    """A name must give a separate directory (HTTP-X46)."""
    document = running(cluster, LLM, with_adapter(name))
    is_refused_everywhere(service, cluster, document, "spec.model.lora.adapters[0].name", "Invalid")


@pytest.mark.parametrize("name", ["a/b", "a:b", "../x", "a b", "$(id)"])
def test_escapes_an_adapters_name_in_its_directory(service: Service, cluster: Cluster, name: str) -> None:
    """Special characters are replaced in the directory's name (HTTP-X46)."""
    document = running(cluster, LLM, with_adapter(name))
    is_allowed(reviewing(service, document))
    servers = containers(syncing(service, request(cluster, document)).json["children"])
    paths = {
        word for c in servers for word in (*(c.get("command") or []), *(c.get("args") or [])) if "/mnt/lora/" in word
    }
    places = {place for word in paths for place in re.findall(r"/mnt/lora/([^\s,\"}]*)", word)}
    assert places == {re.sub(r"[^A-Za-z0-9._-]", "-", name)}


@pytest.mark.parametrize("name", [".", "..", "a/b", "a:b"])
def test_rejects_a_draft_models_name_with_a_path(service: Service, cluster: Cluster, name: str) -> None:
    """llmaz' draft models are OpenModels, so their names must be valid (HTTP-X46)."""
    claims = {"models": [{"name": "opt"}, {"name": name, "role": "draft"}]}
    document = running(cluster, SERVICE, {**valid(SERVICE), "modelClaims": claims})
    warnings = is_allowed(reviewing(service, document))
    assert any(text.startswith("spec.modelClaims.models[1].name: no OpenModel can be named") for text in warnings)
    sent = request(cluster, document)
    answer = syncing(service, sent)
    assert ready(answer)["reason"] == "ModelNotFound"
    are_kept(answer, sent)

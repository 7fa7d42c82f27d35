"""HTTP-X58 to X60: documents inside of documents are neither run nor expanded; an invalid one is named as the cause."""

from __future__ import annotations

import time

import orjson
import pytest

from app.desk.cluster.simulate import Cluster
from app.kube.base import Json
from tests.corpus.contained import containers, is_contained, shells
from tests.corpus.families import (
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
from tests.corpus.kinds import SETTINGS
from tests.corpus.requests import REVIEW, UNREADABLE, is_allowed, is_denied, is_refused, ready, review, spec_with
from tests.corpus.requests import service as inference_service
from tests.service import NEVER, Service

LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)
MERGES = "a0: &a0 {k: v}\n" + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 12))
CALL = "!!python/object/apply:os.system ['id']"


def config_map(namespace: str, name: str, key: str, text: str) -> Json:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {key: text}}


def with_config(sent: Json, given: Json) -> Json:
    """Return the request with that ConfigMap among the related objects."""
    inner = f"{given['metadata']['namespace']}/{given['metadata']['name']}"
    group = {**(sent["related"].get("ConfigMap.v1") or {}), inner: given}
    return {**sent, "related": {**sent["related"], "ConfigMap.v1": group}}


def llmaz_config(text: str) -> Json:
    return config_map(SETTINGS.llmaz_system_namespace, "llmaz-global-config", "config.data", text)


BROKEN_YAML: dict[str, str] = {
    "X58 aliases": f"{LAUGHS}scheduler-name: *a11\n",
    "X58 merges": f"{MERGES}<<: *a11\n",
    "X58 a call": f"scheduler-name: {CALL}\n",
    "X58 a call beside": f"other: {CALL}\n",
    "X58 an alias of itself": "scheduler-name: &a [*a]\n",
    "X58 no anchor": "scheduler-name: *a\n",
    "X58 two documents": "scheduler-name: a\n---\nscheduler-name: b\n",
    "X58 deep": "scheduler-name: " + "[" * 5000,
    "X58 long": "scheduler-name: " + "x" * 1_000_000,
    "X59 NaN": "scheduler-name: .nan\n",
}


@pytest.mark.parametrize("text", BROKEN_YAML.values(), ids=list(BROKEN_YAML))
def test_names_broken_yaml_as_the_cause(service: Service, cluster: Cluster, text: str) -> None:
    """The status names llmaz' ConfigMap, and the children are kept (HTTP-X58)."""
    sent = with_config(request(cluster, running(cluster, SERVICE, valid(SERVICE))), llmaz_config(text))
    begin = time.monotonic()
    answer = syncing(service, sent)
    assert time.monotonic() - begin < NEVER
    condition = ready(answer)
    assert (condition["status"], condition["reason"]) == ("False", "GlobalConfigInvalid")
    assert "ConfigMap llmaz-system/llmaz-global-config, key config.data" in condition["message"]
    are_kept(answer, sent)


def test_does_not_expand_yaml_aliases(service: Service, cluster: Cluster) -> None:
    """Aliases are not expanded: the answer is fast, and the other keys are used (HTTP-X58)."""
    text = f"{LAUGHS}scheduler-name: mine\n"
    sent = with_config(request(cluster, running(cluster, SERVICE, valid(SERVICE))), llmaz_config(text))
    begin = time.monotonic()
    children = is_contained(syncing(service, sent))
    assert time.monotonic() - begin < NEVER
    assert [
        child["spec"]["template"]["spec"]["schedulerName"] for child in children if "template" in child["spec"]
    ] == ["mine"]


@pytest.mark.parametrize("text", [LAUGHS, CALL, '{"a": NaN}', '{"a": 1, "a": 2}', "no: [document"])
def test_passes_the_pickers_configuration_unread(service: Service, cluster: Cluster, text: str) -> None:
    """KServe's configuration of the endpoint picker is passed unchanged as one argument (HTTP-X58, HTTP-X59)."""
    spec = {**valid(LLM), "router": {"scheduler": {"config": {"ref": {"name": "picker", "key": "k"}}}}}
    document = running(cluster, LLM, spec)
    is_allowed(reviewing(service, document))
    sent = with_config(request(cluster, document), config_map("ns", "picker", "k", text))
    children = is_contained(syncing(service, sent))
    arguments = [container.get("args") or [] for container in containers(children)]
    assert sum(words[-2:] == ["--config-text", text] for words in arguments) == 1
    assert not any(text in program for program in shells(children))


def test_keeps_strings_of_an_inline_configuration(service: Service, cluster: Cluster) -> None:
    """YAML tags and anchors have no meaning in JSON, in which they are passed (HTTP-X58)."""
    inline = {"plugins": [{"type": CALL}, {"type": "*a0"}]}
    spec = {**valid(LLM), "router": {"scheduler": {"config": {"inline": inline}}}}
    document = running(cluster, LLM, spec)
    is_allowed(reviewing(service, document))
    children = is_contained(syncing(service, request(cluster, document)))
    texts = [words[-1] for c in containers(children) if (words := c.get("args") or [])[-2:-1] == ["--config-text"]]
    assert texts == [f'{{"plugins":[{{"type":"{CALL}"}},{{"type":"*a0"}}]}}']


def operator_config(text: str) -> Json:
    namespace = SETTINGS.kserve_system_namespace
    return config_map(namespace, "inferenceservice-config", "storageInitializer", text)


BROKEN_JSON = [
    '{"memoryRequest": NaN}',
    '{"uidModelcar": 1e400}',
    '{"memoryRequest": "1Gi"',
    '{"memoryRequest": "\\x"}',
    "",
]


@pytest.mark.parametrize("text", BROKEN_JSON)
def test_rejects_invalid_json_settings(service: Service, cluster: Cluster, text: str) -> None:
    """The status names the invalid key of KServe's settings, and the children are kept (HTTP-X59)."""
    sent = with_config(request(cluster, running(cluster, LLM, valid(LLM))), operator_config(text))
    answer = syncing(service, sent)
    condition = ready(answer)
    assert (condition["status"], condition["reason"]) == ("False", "OperatorConfigInvalid")
    assert "storageInitializer" in condition["message"]
    are_kept(answer, sent)


def test_uses_the_last_of_duplicate_keys(service: Service, cluster: Cluster) -> None:
    """The last value is checked and used, as by the Go operator (HTTP-J12, HTTP-X59)."""
    document = running(cluster, LLM, valid(LLM))
    sent = request(cluster, document)
    text = '{"memoryRequest": "no quantity", "memoryRequest": "2Gi"}'
    children = is_contained(syncing(service, with_config(sent, operator_config(text))))
    loader = next(c for c in containers(children) if c["name"] == "storage-initializer")
    assert loader["resources"]["requests"]["memory"] == "2Gi"
    swapped = '{"memoryRequest": "2Gi", "memoryRequest": "no quantity"}'
    assert ready(syncing(service, with_config(sent, operator_config(swapped))))["reason"] == "OperatorConfigInvalid"


TEMPLATE = "{{ messages }}\n" * 75_000
"""A chat template larger than one megabyte."""


def test_rejects_a_chat_template_of_one_megabyte(service: Service, cluster: Cluster) -> None:
    """No child with it could be stored: admission denies the field and does not repeat the value (HTTP-X60)."""
    assert len(TEMPLATE) > 1024 * 1024
    document = inference_service(spec_with(extraArgs=["--chat-template", TEMPLATE]))
    answer = service.post(REVIEW, review(document))
    is_denied(answer, "spec.extraArgs", "TooLong")
    assert b"messages" not in answer.body
    template = {"containers": [{"name": "model-runner", "image": "tool:v1", "args": [TEMPLATE]}]}
    pod: Json = {**valid(SERVICE), "workloadTemplate": {"workerTemplate": {"spec": template}}}
    where = "spec.workloadTemplate.workerTemplate.spec.containers"
    is_refused_everywhere(service, cluster, running(cluster, SERVICE, pod), where, "TooLong")
    served: Json = {**valid(LLM), "template": {"containers": [{"name": "main", "args": [TEMPLATE]}]}}
    is_refused_everywhere(service, cluster, running(cluster, LLM, served), "spec.template.containers", "TooLong")


@pytest.mark.parametrize("end", ["\\ud800", "\\x"], ids=["half a character", "no escape"])
def test_rejects_a_long_invalid_string(service: Service, end: str) -> None:
    """A long string that is not valid JSON is refused like a short one (HTTP-J13, HTTP-X60)."""
    body = orjson.dumps(review(inference_service(spec_with(extraArgs=["@@"])))).replace(
        b"@@", b"x" * 300_000 + end.encode()
    )
    reason = is_refused(service.post(REVIEW, body))
    assert reason.startswith(UNREADABLE[REVIEW])
    assert "xx" not in reason


def test_passes_a_chat_template_as_one_argument(service: Service, cluster: Cluster) -> None:
    """The engine renders the template; here it is one argument, passed unchanged (HTTP-X60)."""
    template = TEMPLATE[:60_000]
    container = {"name": "model-runner", "image": "tool:v1", "args": ["--chat-template", template]}
    spec: Json = {**valid(SERVICE), "workloadTemplate": {"workerTemplate": {"spec": {"containers": [container]}}}}
    document = running(cluster, SERVICE, spec)
    assert is_allowed(reviewing(service, document)) == []
    children = is_contained(syncing(service, request(cluster, document)))
    assert sum(template in (c.get("args") or []) for c in containers(children)) == 1

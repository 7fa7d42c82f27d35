"""Warnings about prefill servers whose caches do not reach the decode servers, and about pods in the node's network."""

from __future__ import annotations

from typing import Any

import pytest

from app.kube.base import Json
from tests.kserve.objects import admit, service

HOST: Json = {"name": "VLLM_NIXL_SIDE_CHANNEL_HOST", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
NIXL = '{"kv_connector":"NixlConnector","kv_role":"kv_both"}'
ROUTED: Json = {"scheduler": {}}
GOOD: Json = {"args": ["--kv-transfer-config", NIXL], "env": [HOST]}


def warnings(main: Json, prefill: Json = GOOD, **spec: Any) -> list[str]:
    """Return the warnings about the connectors of a service."""
    pods = [{"containers": [{"name": "main", **fields}]} for fields in (main, prefill)]
    template = {**pods[0], **spec.pop("template", {})}
    texts = admit(service(template=template, prefill={"template": pods[1]}, router=ROUTED, **spec)).warnings
    return [text for text in texts if "onnector" in text or "SIDE_CHANNEL" in text]


def additional(value: str) -> Json:
    return {"env": [HOST, {"name": "VLLM_ADDITIONAL_ARGS", "value": value}]}


@pytest.mark.parametrize(
    "main",
    [
        GOOD,
        {"args": [f"--kv-transfer-config={NIXL}"], "env": [HOST]},
        {"args": [f"--kv-transfer-config '{NIXL}'"], "env": [HOST]},
        {"args": ["--kv_transfer_config", NIXL], "env": [HOST]},
        {"args": ["--kv-transfer-config.kv_connector=NixlConnector"], "env": [HOST]},
        {"args": ["--kv-transfer-config.kv_connector", "NixlConnector"], "env": [HOST]},
        {"args": ["--kv_transfer_config.kv-connector=NixlConnector"], "env": [HOST]},
        additional(f"--kv_transfer_config '{NIXL}'"),
        additional(f"--seed 1 --kv-transfer-config={NIXL}"),
        additional("--kv-transfer-config.kv_connector=NixlConnector"),
        {"command": ["vllm", "serve", "--kv-transfer-config", NIXL], "env": [HOST]},
        {"command": ["sh", "-c", f"vllm serve /m --kv-transfer-config '{NIXL}'"], "env": [HOST]},
        {"args": ["--kv-transfer-config", "$(KV)"], "env": [HOST]},
        {"image": "lmsysorg/sglang:v0.5.0", "args": ["--disaggregation-mode", "decode"]},
        {
            "args": [
                "--kv-transfer-config",
                (
                    '{"kv_connector":"MultiConnector","kv_role":"kv_both","kv_connector_extra_config":{"connectors":'
                    '[{"kv_connector":"OffloadingConnector"},{"kv_connector":"NixlConnector"}]}}'
                ),
            ],
            "env": [HOST],
        },
    ],
)
def test_a_server_with_a_connector_has_no_warning(main: Json) -> None:
    for spec in ((main, GOOD), (GOOD, main)):
        assert [text for text in warnings(*spec) if "KV connector" in text or "connector " in text] == []


@pytest.mark.parametrize(
    "main", [{}, {"args": ["--seed=1"]}, additional("--seed 1"), {"image": "vllm/vllm-openai:v0.23.0"}]
)
def test_a_side_without_a_connector_is_reported(main: Json) -> None:
    """Neither side's caches move, and nothing else would say so."""
    assert [text.split(":")[0] for text in warnings(main)] == ["spec.template"]
    assert [text.split(":")[0] for text in warnings(GOOD, main)] == ["spec.prefill.template"]
    assert "each prompt is computed twice" in warnings(main)[0]


@pytest.mark.parametrize(
    ("sidecar", "connector", "is_wrong"),
    [
        (None, "LMCacheConnectorV1", True),
        (None, "OffloadingConnector", True),
        ({"args": ["--kv-connector=lmcache"]}, "NixlConnector", True),
        ({"args": ["--connector", "lmcache"]}, "LMCacheConnectorV1", False),
        ({"command": ["/app/pd-sidecar", "--kv-connector=nixlv2"]}, "NixlConnector", False),
        ({"args": ["--kv-connector=another"]}, "NixlConnector", False),
    ],
)
def test_another_connector_than_the_sidecars_is_reported(sidecar: Json | None, connector: str, is_wrong: bool) -> None:
    main = {"args": [f"--kv-transfer-config.kv_connector={connector}"], "env": [HOST]}
    init = [{"name": "llm-d-routing-sidecar", **sidecar}] if sidecar is not None else []
    texts = warnings(main, main, template={"initContainers": init} if init else {})
    assert [text.split(":")[0] for text in texts] == (["spec.template", "spec.prefill.template"] if is_wrong else [])
    assert all("is not the routing sidecar's" in text for text in texts)


def test_nixl_needs_the_pods_address() -> None:
    assert ["env has no VLLM_NIXL_SIDE_CHANNEL_HOST" in text for text in warnings({"args": GOOD["args"]})] == [True]


def test_a_base_may_have_what_is_missing() -> None:
    assert warnings({}, {}, baseRefs=[{"name": "base"}]) == []


def test_without_prefill_no_connector_is_needed() -> None:
    assert not [text for text in admit(service(router=ROUTED)).warnings if "onnector" in text]


@pytest.mark.parametrize(
    ("fields", "is_reported"),
    [
        ({"hostNetwork": True}, True),
        ({"hostNetwork": True, "dnsPolicy": "ClusterFirst"}, True),
        ({"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}, False),
        ({"hostNetwork": True, "dnsPolicy": "Default"}, False),
        ({"hostNetwork": False}, False),
    ],
)
def test_names_in_the_nodes_network(fields: Json, is_reported: bool) -> None:
    """Each side has a template of its own, and so a name server of its own."""
    pod = {"containers": [{"name": "main"}], **fields}
    for spec, path in (({"template": pod}, "spec.template"), ({"prefill": {"template": pod}}, "spec.prefill.template")):
        texts = admit(service(router=ROUTED, **spec)).warnings
        assert any(text.startswith(f"{path}.dnsPolicy: with hostNetwork") for text in texts) == is_reported

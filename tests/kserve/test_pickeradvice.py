"""Warnings of what the endpoint picker's version does not read of a configuration, and what it gets instead."""

from __future__ import annotations

from typing import Any

import pytest

from app.kserve.constants import PICKER_VERSION
from app.kube.base import Json
from app.kube.field import go_quote
from tests.kserve.objects import admit, service

CONFIG: Json = {"apiVersion": "inference.networking.x-k8s.io/v1alpha1", "kind": "EndpointPickerConfig"}
PARAMETERS = "spec.router.scheduler.config.inline.plugins[0].parameters"


def config(type_: str, parameters: Any) -> Json:
    return {**CONFIG, "plugins": [{"type": type_, "parameters": parameters}]}


def said(scheduler: Json) -> list[str]:
    """Return the warnings about what is not used as it is written."""
    verdict = admit(service(router={"route": {}, "gateway": {}, "scheduler": scheduler}))
    return [text for text in verdict.warnings if "as written" in text]


CASES: dict[str, tuple[str, Json, list[str], str]] = {
    "a threshold": (
        "disagg-profile-handler",
        {"threshold": 64, "primaryPort": 8000},
        ["threshold", "primaryPort"],
        '"nonCachedTokens":16',
    ),
    "a former profile": (
        "disagg-profile-handler",
        {"deciders": {"prefill": "a"}, "decodeProfile": "b"},
        ["decodeProfile"],
        '"profiles":{"decode":"b"}',
    ),
    "blocks of the approximate scorer": (
        "prefix-cache-scorer",
        {"blockSize": 5, "autoTune": False},
        ["blockSize", "autoTune"],
        "{}",
    ),
    "blocks of the precise scorer": (
        "precise-prefix-cache-scorer",
        {"indexerConfig": {"tokenProcessorConfig": {"blockSize": 64}, "prefixStoreConfig": {"cacheSize": 1}}},
        ["indexerConfig.tokenProcessorConfig", "indexerConfig.prefixStoreConfig"],
        '"tokenProcessorConfig":{"blockSize":64}',
    ),
    "another tokenizer": (
        "precise-prefix-cache-scorer",
        {"indexerConfig": {"tokenizersPoolConfig": {"modelName": "other", "workersCount": 5}}},
        ["indexerConfig.tokenizersPoolConfig.modelName"],
        '"modelName":"base"',
    ),
    "a size of hashes": ("any", {"hashBlockSize": 5, "weight": 1}, ["hashBlockSize"], '{"weight":1}'),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_moved_or_left_out_is_named(case: str) -> None:
    type_, parameters, names, instead = CASES[case]
    (text,) = said({"config": {"inline": config(type_, parameters)}})
    place, _, message = text.partition(": ")
    assert place == PARAMETERS
    listed, _, given = message.partition(" as written; it gets ")
    assert listed == "the endpoint picker of version 0.9 does not use " + ", ".join(map(go_quote, names))
    assert instead in given


@pytest.mark.parametrize(
    "scheduler",
    [
        {"config": {"inline": config("disagg-profile-handler", {"deciders": {"prefill": "a"}})}},
        {"config": {"inline": config("any", {"anything": 1})}},
        {"config": {"inline": config("disagg-profile-handler", [])}},
        {
            "config": {"inline": config("pd-profile-handler", {"threshold": 0})},
            "annotations": {PICKER_VERSION: "0.4.0"},
        },
        {"config": {"inline": config("pd-profile-handler", {"threshold": 0})}, "pool": {"ref": {"name": "mine"}}},
    ],
    ids=["present", "unknown type", "no parameters", "an older picker", "a pool of one's own"],
)
def test_nothing_is_said_of_what_the_picker_reads(scheduler: Json) -> None:
    assert said(scheduler) == []


def test_a_configuration_that_is_text_is_read_too() -> None:
    text = "kind: EndpointPickerConfig\nplugins:\n- {type: prefix-cache-scorer, parameters: {blockSize: 5}}\n"
    (found,) = said({"config": {"inline": text}})
    assert found.startswith(
        'spec.router.scheduler.config.inline: the endpoint picker of version 0.9 does not use "blockSize"'
    )
    main = {"name": "main", "image": "picker:1", "args": ["--config-text", text]}
    (found,) = said({"template": {"containers": [main]}})
    assert found.startswith("spec.router.scheduler.template.containers[0].args[1]: ")

"""Recorded scenarios of Metacontroller, each moved to its own API group so that many can run on one control plane."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from app.kube.base import Json
from tests.contract.recordings import records

RECORDED_GROUP = "demo.dev"


@dataclass(frozen=True)
class Addresses:
    """URLs of the hook server, HTTP and HTTPS, that replace `hook.example`, and the CA of its certificate."""

    plain: str
    tls: str
    ca_pem: str


@dataclass(frozen=True)
class Scenario:
    """A recorded scenario: `data` is the recording, and the properties are its parts as they are replayed."""

    name: str
    data: Json
    crds: Json
    addresses: Addresses
    shard: str

    @property
    def id(self) -> str:
        """The number, such as `t04`, which is also the main namespace and the path of the hook."""
        return self.name.partition("-")[0]

    @property
    def group(self) -> str:
        """The API group here. It has the same position among the built-in groups as the recorded one."""
        return f"demo-{self.id}.dev"

    @cached_property
    def steps(self) -> list[Json]:
        """The steps as recorded, with references resolved."""
        return [dict(step) for step in self.data["steps"]]

    @cached_property
    def namespaces(self) -> list[str]:
        """All namespaces in the scenario."""
        return sorted({self.id, *re.findall(rf"\b{self.id}[a-z]\b", json.dumps(self.data))})

    @cached_property
    def controller(self) -> Json:
        """The CompositeController, labelled for the process that runs it."""
        controller: Json = self.here(self.data["controller"])
        controller["metadata"]["labels"] = {"shard": self.shard}
        return controller

    @cached_property
    def initial(self) -> list[Json]:
        """Objects created before the controller."""
        return [self.here(obj) for obj in self.data["initial"]]

    @cached_property
    def definitions(self) -> list[Json]:
        """The CRDs that exist beforehand, without those that `initial` or a step creates."""
        text = json.dumps(self.data)
        made_later = {"extras.demo.dev"}
        names = [
            name
            for name, crd in self.crds.items()
            if name not in made_later and (name in self.data["crds"] or f'"{crd["spec"]["names"]["plural"]}"' in text)
        ]
        return [self.here(self.crds[name]) for name in names]

    def here(self, value: Any) -> Any:
        """Return a recorded value with the names and addresses used here."""
        return json.loads(self._spell(json.dumps(value)))

    def recorded(self, text: str) -> str:
        """Return JSON or plain text from here with the recording's names and addresses."""
        text = text.replace(self.group, RECORDED_GROUP)
        text = text.replace(self.addresses.tls, "https://hook.example").replace(
            self.addresses.plain, "http://hook.example"
        )
        return text.replace(_escaped(self.addresses.ca_pem), _escaped(self._recorded_ca)) if self._recorded_ca else text

    @cached_property
    def _recorded_ca(self) -> str:
        """The CA of the recorded hook's certificate, which ours replaces."""
        for obj in self.data["initial"]:
            if "ca.crt" in (obj.get("data") or {}):
                return str(obj["data"]["ca.crt"])
        return ""

    def _spell(self, text: str) -> str:
        text = text.replace(RECORDED_GROUP, self.group)
        text = text.replace("https://hook.example", self.addresses.tls)
        text = text.replace("http://hook.example", self.addresses.plain)
        return text.replace(_escaped(self._recorded_ca), _escaped(self.addresses.ca_pem)) if self._recorded_ca else text


def load(addresses: Addresses, own_process: frozenset[str]) -> list[Scenario]:
    """Return all recorded scenarios; those in `own_process` get a separate Metacontroller."""
    recorded = _recorded()
    crds = recorded.pop(_CRDS)["crds"]
    return [_scenario(name, data, crds, addresses, own_process) for name, data in recorded.items()]


def names() -> list[str]:
    """Return the names of all scenarios."""
    return [name for name in _recorded() if name != _CRDS]


_CRDS = "crds"


def _recorded() -> dict[str, Json]:
    return {trace["name"]: trace["data"] for trace in records("traces")}


def _scenario(name: str, data: Json, crds: Json, addresses: Addresses, own_process: frozenset[str]) -> Scenario:
    resolved = _resolve(data, data.get("shared", {}))
    number = name.partition("-")[0]
    return Scenario(name, resolved, crds, addresses, number if number in own_process else "common")


def _resolve(value: Any, shared: Json) -> Any:
    if isinstance(value, dict):
        if set(value) == {"$ref"}:
            return _resolve(shared[value["$ref"]], shared)
        return {key: _resolve(item, shared) for key, item in value.items()}
    if isinstance(value, list):
        return [_resolve(item, shared) for item in value]
    return value


def _escaped(text: str) -> str:
    return json.dumps(text)[1:-1]

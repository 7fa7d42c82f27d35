"""Where requests go by our routes, with the translators of Envoy Gateway and of Istio, and a real Envoy.

`python -m tests.world.test_translation` writes the table of tests/world/README.md anew.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
import yaml

from app.desk.cluster import simulate
from app.desk.cluster.offline import direct
from app.desk.cluster.store import stored
from app.kube.base import Json
from app.settings import Settings
from tests.builders import NOW
from tests.e2e.installation import ROOT
from tests.world.translation import Outcome, Proxy, Request, Translation, by_envoy_gateway, by_istio, speaks_tls

pytestmark = [pytest.mark.e2e, pytest.mark.world("egctl", "istioroutes")]

EXAMPLES = ROOT / "examples" / "kserve"
PAGE = ROOT / "tests" / "world" / "README.md"
QWEN, SMALL = (
    "publishers/default/models/Qwen/Qwen2.5-7B-Instruct",
    "publishers/default/models/Qwen/Qwen2.5-0.5B-Instruct",
)
BY_MODEL = "X-Gateway-Model-Name"
CHAT = "/v1/chat/completions"


def documents(name: str) -> list[Json]:
    return [document for document in yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text()) if document]


def objects_of(*services: Json, namespace: str = "default") -> list[Json]:
    """Return what modelhooks makes of services, in a cluster in which everything becomes ready."""
    cluster = simulate.Cluster(direct(Settings(kserve_presets="v0.20"), lambda: NOW), ())
    gateway = yaml.safe_load((EXAMPLES / "cluster" / "gateway.yaml").read_text())
    for document in (gateway, *services):
        cluster.put(stored(document, namespace))
    cluster.settle()
    kinds = ("HTTPRoute", "Service", "InferencePool", "DestinationRule")
    return [_sent(document) for document in cluster.objects.values() if document["kind"] in kinds]


def _sent(document: Json) -> Json:
    """Return an object without what only the simulation has; the older of two routes is the first by name."""
    meta = {key: value for key, value in document["metadata"].items() if key in ("name", "namespace", "labels")}
    created = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    kept = {key: value for key, value in document.items() if key not in ("status", "metadata")}
    return {**kept, "metadata": {**meta, **created}}


def changed(service: Json, *, stopped: bool = False, scheduler: bool = False, weight: int | None = None) -> Json:
    """Return a service of the group with another weight, stopped, or with a scheduler."""
    meta, spec = dict(service["metadata"]), dict(service["spec"])
    if stopped:
        meta["annotations"] = {"serving.kserve.io/stop": "true"}
    router = dict(spec["router"])
    if scheduler:
        router["scheduler"] = {}
    if weight is not None:
        router["route"] = {**router["route"], "weight": weight}
    return {**service, "metadata": meta, "spec": {**spec, "router": router}}


def group(**changes: Json) -> list[Json]:
    base, stable, canary = documents("canary")
    return [base, changed(stable, **changes.get("stable", {})), changed(canary, **changes.get("canary", {}))]


def without_rules(service: Json) -> Json:
    """Return a service of the group with the built-in rules alone."""
    route = {key: value for key, value in service["spec"]["router"]["route"].items() if key != "http"}
    return {**service, "spec": {**service["spec"], "router": {**service["spec"]["router"], "route": route}}}


def without_scheduler(service: Json) -> Json:
    router = {key: value for key, value in service["spec"].get("router", {}).items() if key != "scheduler"}
    return {**service, "spec": {**service["spec"], "router": router}} if router else service


BOTH = {"stable": {"scheduler": True}, "canary": {"scheduler": True}}
TWO = [*documents("routed"), *documents("lora")]
SETS: Mapping[str, list[Json]] = {
    "two services": [without_scheduler(document) for document in TWO],
    "two services with schedulers": TWO,
    "a group": group(),
    "a group with a stopped canary": group(canary={"stopped": True}),
    "a group with schedulers": [without_rules(each) if "router" in each["spec"] else each for each in group(**BOTH)],
}
REQUESTS: Mapping[str, list[Request]] = {
    "two services": [
        Request(f"/default/routed-chat{CHAT}"),
        Request(f"/default/chat-with-adapters{CHAT}"),
        Request("/default/routed-chat/v1/models"),
        Request("/default/routed-chatter/v1/models"),
        Request(CHAT, {BY_MODEL: QWEN}),
        Request(CHAT, {BY_MODEL: SMALL}),
        Request(CHAT, {BY_MODEL: SMALL.replace("Qwen/Qwen2.5-0.5B-Instruct", "legal-de")}),
        Request("/v1/models", {BY_MODEL: QWEN}),
        Request(f"/{QWEN}{CHAT}"),
        Request(f"/{QWEN}/v1/models"),
    ],
    "two services with schedulers": [
        Request(f"/default/routed-chat{CHAT}"),
        Request(f"/default/chat-with-adapters{CHAT}"),
        Request("/default/routed-chat/v1/models"),
        Request(CHAT, {BY_MODEL: QWEN}),
        Request(CHAT, {BY_MODEL: SMALL.replace("Qwen/Qwen2.5-0.5B-Instruct", "legal-de")}),
        Request(f"/{QWEN}{CHAT}"),
    ],
    "a group": [
        Request(f"/chat{CHAT}"),
        Request(f"/default/chat-stable{CHAT}"),
        Request(f"/default/chat-canary{CHAT}"),
        Request(CHAT, {BY_MODEL: QWEN}),
    ],
    "a group with a stopped canary": [Request(f"/chat{CHAT}"), Request(f"/default/chat-canary{CHAT}")],
    "a group with schedulers": [Request(CHAT, {BY_MODEL: QWEN}), Request(f"/default/chat-canary{CHAT}")],
}


Translator = Callable[[Sequence[Json], Path], Translation]


class Gateway:
    """What a gateway does with the requests to each set; each is translated once."""

    def __init__(self, translator: Translator, folder: Path) -> None:
        self._translator = translator
        self._folder = folder
        self._found: dict[str, list[Outcome]] = {}
        self.conditions: dict[str, Mapping[str, list[Json]]] = {}

    def outcomes(self, name: str) -> list[Outcome]:
        if name not in self._found:
            folder = self._folder / str(len(self._found))
            folder.mkdir(parents=True)
            translation = self._translator(objects_of(*SETS[name]), folder)
            self.conditions[name] = translation.conditions
            with Proxy(translation, folder).running() as proxy:
                self._found[name] = [proxy.outcome(request) for request in REQUESTS[name]]
        return self._found[name]


TRANSLATORS: Mapping[str, Translator] = {
    "Envoy Gateway": by_envoy_gateway,
    "Istio": lambda objects, _: by_istio(objects),
}
Gateways = Mapping[str, Gateway]


def gateways_in(folder: Path) -> Gateways:
    return {name: Gateway(translator, folder / name) for name, translator in TRANSLATORS.items()}


@pytest.fixture(scope="module")
def gateways(tmp_path_factory: pytest.TempPathFactory) -> Gateways:
    return gateways_in(tmp_path_factory.mktemp("gateways"))


def table(gateways: Gateways) -> str:
    """Return the page's table: a row for each request."""
    lines = [f"| Services | Request | {' | '.join(gateways)} |", f"|---|---|{'---|' * len(gateways)}"]
    for name, requests in REQUESTS.items():
        outcomes = [gateway.outcomes(name) for gateway in gateways.values()]
        for request, *answers in zip(requests, *outcomes, strict=True):
            lines.append(f"| {name} | {_shown(request)} | {' | '.join(map(_described, answers))} |")
    return "\n".join(lines)


def _shown(request: Request) -> str:
    headers = "".join(f", `{name}: {value}`" for name, value in request.headers.items())
    return f"`{request.path}`{headers}"


def _described(outcome: Outcome) -> str:
    if not outcome.backends:
        return str(outcome.status)
    cut = "" if outcome.timeout == "0s" else f", ends after {outcome.timeout}"
    picker = f" by {outcome.picker}" if outcome.picker else ""
    return f"{', '.join(outcome.backends)}{picker}, as `{outcome.path}`{cut}"


_SECTION = re.compile(r"(<!-- requests -->\n).*?(<!-- end -->)", re.DOTALL)


def page(gateways: Gateways) -> str:
    return _SECTION.sub(lambda match: f"{match[1]}{table(gateways)}\n{match[2]}", PAGE.read_text())


def test_the_page_says_where_requests_go(gateways: Gateways) -> None:
    assert page(gateways) == PAGE.read_text()


@pytest.mark.parametrize("gateway", TRANSLATORS)
@pytest.mark.parametrize("name", SETS)
def test_no_answer_is_cut_off(gateways: Gateways, gateway: str, name: str) -> None:
    assert {outcome.timeout for outcome in gateways[gateway].outcomes(name) if outcome.backends} <= {"0s"}


@pytest.mark.parametrize("gateway", TRANSLATORS)
def test_a_group_of_services_is_divided_by_weight(gateways: Gateways, gateway: str) -> None:
    """A stopped member leaves."""
    shared = gateways[gateway].outcomes("a group")[0]
    assert set(shared.backends) == {"chat-canary-kserve-workload-svc (10)", "chat-stable-kserve-workload-svc (90)"}
    assert shared.path == CHAT
    stopped = gateways[gateway].outcomes("a group with a stopped canary")
    assert stopped[0].backends == ("chat-stable-kserve-workload-svc",)


def test_a_stopped_member_leaves_nothing_that_a_gateway_cannot_resolve(gateways: Gateways) -> None:
    gateway = gateways["Envoy Gateway"]
    gateway.outcomes("a group with a stopped canary")
    (conditions,) = gateway.conditions["a group with a stopped canary"].values()
    assert {c["status"] for c in conditions if c["type"] in ("Accepted", "ResolvedRefs")} == {"True"}


def routed(example: str) -> list[Json]:
    """Return the services of an example that have the built-in rules, so that each has a path of its own."""
    services = [each for each in documents(example) if each["kind"] == "LLMInferenceService"]
    routes = [(each, each["spec"].get("router", {}).get("route")) for each in services]
    return [service for service, route in routes if route is not None and "http" not in route]


@pytest.mark.parametrize("gateway", TRANSLATORS)
@pytest.mark.parametrize("example", [file.stem for file in sorted(EXAMPLES.glob("*.yaml")) if routed(file.stem)])
def test_every_example_is_reached_by_its_own_path(gateway: str, example: str, tmp_path: Path) -> None:
    translation = TRANSLATORS[gateway](objects_of(*documents(example)), tmp_path)
    with Proxy(translation, tmp_path).running() as proxy:
        for service in routed(example):
            name = service["metadata"]["name"]
            outcome = proxy.outcome(Request(f"/default/{name}{CHAT}"))
            if "scheduler" not in service["spec"]["router"]:
                assert outcome == Outcome(200, (f"{name}-kserve-workload-svc",), CHAT, "0s")
            elif gateway == "Istio":
                assert outcome == Outcome(200, (f"{name}-inference-pool",), CHAT, "0s", f"{name}-epp-service")
            else:
                assert outcome == Outcome(500)


def test_istio_asks_each_service_s_own_picker(gateways: Gateways) -> None:
    """Two services at one Gateway; a picker is for the pool that the request goes to."""
    name = "two services with schedulers"
    asked = {outcome.backends: outcome.picker for outcome in gateways["Istio"].outcomes(name)}
    assert asked == {
        ("routed-chat-inference-pool",): "routed-chat-epp-service",
        ("chat-with-adapters-inference-pool",): "chat-with-adapters-epp-service",
        ("routed-chat-kserve-workload-svc",): "",
    }


def test_istio_reaches_pickers_by_tls_with_the_destination_rule_alone() -> None:
    objects = objects_of(*TWO)
    plain = [each for each in objects if each["kind"] != "DestinationRule"]
    for sent, expected in ((objects, True), (plain, False)):
        clusters = by_istio(sent).clusters
        for service in ("routed-chat", "chat-with-adapters"):
            picker = clusters[f"outbound|9002||{service}-epp-service.default.svc.cluster.local"]
            assert speaks_tls(picker) is expected


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        PAGE.write_text(page(gateways_in(Path(scratch))))

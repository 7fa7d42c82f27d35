"""Fields that KServe v0.18 to v0.20 added: tracing, listeners, string configurations, templates, routing by model."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from app.kserve.gatewayapi import HTTPRouteSpec, has_room
from app.kube.base import Json
from app.kube.names import LAST_APPLIED
from app.kube.reading.decode import decode_document
from tests.kserve.objects import AVAILABLE, Cluster, admit, config, customize, fields, gateway, service
from tests.kserve.workload.test_artifacts import container, operator
from tests.kserve.workload.test_workloads import DP, group, template

ENDPOINT = "http://otel-collector:4317"


def env(container_: Json) -> dict[str, str]:
    return {variable["name"]: variable.get("value", "") for variable in container_.get("env", ())}


# Tracing.


def test_traces_with_the_defaults() -> None:
    """An empty object enables tracing; servers, prefill servers and the picker have different service names."""
    cluster = Cluster(service(tracing={}, prefill={}, router={"scheduler": {}, "route": {}}), gateway())
    cluster.sync()
    names = {"demo-kserve": "decode", "demo-kserve-prefill": "prefill"}
    for name, side in names.items():
        main = container(template(cluster, name)["spec"])
        assert main["args"] == ["--otlp-traces-endpoint", ENDPOINT, "--collect-detailed-traces", "all"]
        assert env(main)["OTEL_SERVICE_NAME"] == f"inference-server-{side}"
    picker = container(template(cluster, "demo-kserve-router-scheduler")["spec"])
    assert (picker["args"][0], picker["args"][2:]) == ("--config-text", ["--tracing=true"])
    assert env(picker)["OTEL_SERVICE_NAME"] == "inference-scheduler"
    assert list(env(picker)) == [
        "SSL_CERT_DIR",
        "OTEL_SERVICE_NAME",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "OTEL_TRACES_EXPORTER",
        "OTEL_TRACES_SAMPLER",
        "OTEL_TRACES_SAMPLER_ARG",
        "OTEL_RESOURCE_ATTRIBUTES_NODE_NAME",
        "OTEL_RESOURCE_ATTRIBUTES_POD_NAME",
        "OTEL_RESOURCE_ATTRIBUTES",
    ]
    assert env(picker)["OTEL_RESOURCE_ATTRIBUTES"] == (
        "k8s.namespace.name=default,k8s.node.name=$(OTEL_RESOURCE_ATTRIBUTES_NODE_NAME),"
        "k8s.pod.name=$(OTEL_RESOURCE_ATTRIBUTES_POD_NAME),llmisvc.name=demo"
    )


def test_an_empty_endpoint_turns_traces_of_the_servers_off() -> None:
    """An empty endpoint overrides the preset's."""
    cluster = Cluster(service(tracing={"exporterEndpoint": ""}, router={"scheduler": {}}))
    cluster.sync()
    main = container(template(cluster)["spec"])
    assert "args" not in main
    assert "OTEL_SERVICE_NAME" not in env(main)
    picker = container(template(cluster, "demo-kserve-router-scheduler")["spec"])
    assert "--tracing=true" in picker["args"]
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" not in env(picker)


def test_what_the_user_says_of_traces_counts() -> None:
    """Values of the field, of a base and of the container override the defaults."""
    main = {
        "name": "main",
        "args": ["--collect-detailed-traces=model"],
        "env": [{"name": "OTEL_SERVICE_NAME", "value": "mine"}],
    }
    parent = service(
        tracing={"exporterEndpoint": "http://here:4317"}, template={"containers": [main]}, baseRefs=[{"name": "base"}]
    )
    cluster = Cluster(parent, config(tracing={"exporterEndpoint": "http://base:4317", "samplerArg": "1"}))
    cluster.sync()
    server = container(template(cluster)["spec"])
    assert server["args"] == ["--collect-detailed-traces=model", "--otlp-traces-endpoint", "http://here:4317"]
    assert env(server)["OTEL_SERVICE_NAME"] == "mine"
    assert env(server)["OTEL_TRACES_SAMPLER_ARG"] == "1"
    assert env(server)["OTEL_TRACES_SAMPLER"] == "parentbased_traceidratio"


def test_an_administrators_defaults_stand_in_for_ours() -> None:
    """A config of that name replaces the preset, as for every preset; this one is not pinned."""
    preset = config("kserve-config-llm-tracing", "kserve", tracing={"exporterEndpoint": "http://central:4317"})
    cluster = Cluster(service(tracing={}), preset)
    cluster.sync()
    assert env(container(template(cluster)["spec"]))["OTEL_EXPORTER_OTLP_ENDPOINT"] == "http://central:4317"
    assert "serving.kserve.io/config-llm-tracing" not in cluster.answer["status"]["annotations"]


def test_every_pod_of_a_group_sends_traces() -> None:
    cluster = Cluster(service(tracing={}, worker={}, parallelism=DP))
    cluster.sync()
    for name in ("leaderTemplate", "workerTemplate"):
        main = container(group(cluster)["leaderWorkerTemplate"][name]["spec"])
        assert main["args"][:2] == ["--otlp-traces-endpoint", ENDPOINT]


def test_without_tracing_nothing_is_added() -> None:
    cluster = Cluster(service())
    cluster.sync()
    assert not [name for name in env(container(template(cluster)["spec"])) if name.startswith("OTEL")]


# The scheduler's configuration as a string.

TEXT = "kind: EndpointPickerConfig\nplugins:\n- type: queue-scorer\n"


def scheduled(inline: Any) -> Json:
    return service(router={"scheduler": {"config": {"inline": inline}}})


def test_passes_a_configuration_as_string() -> None:
    """The string is passed unchanged."""
    assert fields(scheduled(TEXT)) == []
    cluster = Cluster(scheduled(TEXT))
    cluster.sync()
    args = container(template(cluster, "demo-kserve-router-scheduler")["spec"])["args"]
    assert args[-2:] == ["--config-text", TEXT]


@pytest.mark.parametrize(
    ("inline", "type_"), [("", "Invalid"), (" \n ", "Invalid"), ({}, "Invalid"), (5, "TypeInvalid")]
)
def test_a_configuration_that_says_nothing(inline: Any, type_: str) -> None:
    assert fields(scheduled(inline)) == [("spec.router.scheduler.config.inline", type_)]


# Listeners.


def routed(*refs: Json, **http: Any) -> Json:
    return service(router={"route": http, "gateway": {"refs": list(refs)}})


def test_a_route_attaches_to_one_listener() -> None:
    cluster = Cluster(
        routed({"name": "gw", "namespace": "infra", "sectionName": "public"}),
        gateway("gw", "infra", listeners=[{"name": "public", "port": 80, "protocol": "HTTP"}]),
    )
    cluster.sync()
    (parent,) = cluster.child("HTTPRoute", "demo-kserve-route")["spec"]["parentRefs"]
    assert parent["sectionName"] == "public"
    assert cluster.answer["status"]["url"].startswith("http://203.0.113.1/")


@pytest.mark.parametrize(("section", "wrong"), [("public", False), ("private", True)])
def test_listeners_are_compared_where_refs_have_them(section: str, wrong: bool) -> None:
    """A route's parentRefs may repeat the Gateways of the spec, with the same listeners."""
    parents = [{"name": "gw", "namespace": "infra", "sectionName": section}]
    errors = fields(
        routed({"name": "gw", "namespace": "infra", "sectionName": "public"}, http={"spec": {"parentRefs": parents}})
    )
    assert errors == ([("spec.router.route.http.spec", "Invalid")] if wrong else [])
    without = routed({"name": "gw", "namespace": "infra"}, http={"spec": {"parentRefs": parents}})
    assert fields(without) == []


# Templates.


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{{ .GlobalConfig.EnableTLS }}", "false"),
        ("{{ .GlobalConfig.ModelBasedRoutingHeaderName }}", "X-Gateway-Model-Name"),
        ("{{ .GlobalConfig.InferencePoolNamespacedName }}", "default/demo-inference-pool"),
        ("{{ shutdownTimeout .Spec.Template 15 }}", "40"),
        ("{{ shutdownTimeout .Spec.Worker 0 }}", "55"),
        ("x{{ kvTransferConfig .Spec.KVCacheOffloading }}", "x"),
        ("{{ if .Spec.Tracing }}traced{{ end }}.", "."),
    ],
)
def test_what_newer_presets_ask_for(text: str, shown: str) -> None:
    main = {"name": "main", "env": [{"name": "X", "value": text}]}
    parent = service(template={"containers": [main]})
    assert fields(parent) == []
    cluster = Cluster(parent)
    cluster.sync()
    assert env(container(template(cluster)["spec"]))["X"] == shown


# Routing by model.

HEADER = {"name": "X-Gateway-Model-Name", "value": "publishers/default/models/{{ .Spec.Model.Name }}"}
ENABLED = {"serving.kserve.io/model-based-routing-enabled": "true"}


def matches(annotations: Json | None, of_gateway: Json | None = None, **ingress: str) -> list[list[str]]:
    """Return the header's values by rule; a match without the header has an empty string."""
    prefix = {"path": {"type": "PathPrefix", "value": "/default/demo"}}
    rules = [
        {"matches": [prefix], "backendRefs": [{"name": "s", "port": 80}]},
        {"matches": [{"headers": [HEADER]}], "backendRefs": [{"name": "s", "port": 80}]},
    ]
    base = config(router={"route": {"http": {"spec": {"rules": rules}}}})
    adapters = [{"name": name, "uri": "hf://a/b"} for name in ("b", "a")]
    parent = service(
        model={"uri": "hf://a/b", "lora": {"adapters": adapters}},
        baseRefs=[{"name": "base"}],
        annotations=annotations,
        router={"gateway": {"refs": [{"name": "mine"}]}} if of_gateway else {},
    )
    users_gateway = gateway("mine", "default")
    users_gateway["metadata"]["annotations"] = of_gateway or {}
    cluster = Cluster(parent, base, gateway(), users_gateway, operator(ingress=ingress))
    cluster.sync()
    route = cluster.child("HTTPRoute", "demo-kserve-route")["spec"]
    return [
        [
            (match.get("headers") or [{"value": ""}])[0]["value"].removeprefix("publishers/default/models/")
            for match in m
        ]
        for m in (rule["matches"] for rule in route["rules"])
    ]


def test_rules_by_model_stand_where_they_are_asked_for() -> None:
    """The rule matches the model and its adapters; if it is not enabled, or the operator disables it, it is removed."""
    assert matches(ENABLED) == [[""], ["demo", "a", "b"]]
    assert matches(dict.fromkeys(ENABLED, "false")) == [[""]]
    assert matches(ENABLED, modelBasedRoutingMode="Disabled") == [[""]]
    assert matches(ENABLED, modelBasedRoutingHeaderName="X-Model") == [[""], ["demo"]]


@pytest.mark.parametrize(
    ("adapters", "sizes"),
    [(6, [56, 7]), (7, [64, 8]), (8, [64, 8, 9]), (12, [64, 40, 13]), (13, [60, 14]), (21, [64, 28, 22]), (22, [8, 1])],
)
def test_rules_by_model_have_room_in_a_route(adapters: int, sizes: list[int]) -> None:
    """A rule has at most 64 matches, and a route 128: from 13 adapters on, paths with a slash at the end have none.

    With 22 only the model is routed by the header. Admission warns, and the status lists only names that are routed.
    """
    listed = [{"name": f"a{number}", "uri": "hf://a/b"} for number in range(adapters)]
    cluster = Cluster(service(model={"uri": "hf://a/b", "lora": {"adapters": listed}}, router={"route": {}}), gateway())
    cluster.sync()
    rules = cluster.child("HTTPRoute", "demo-kserve-route")["spec"]["rules"]
    by_model = [len(rule["matches"]) for rule in rules if "headers" in rule["matches"][0]]
    assert by_model == sizes
    assert has_room(rules)
    assert any("lora.adapters: a route has room" in w for w in admit(cluster.parent).warnings) == (adapters > 21)
    shared = [entry for entry in cluster.answer["status"]["addresses"] if entry["name"].endswith("-model-routing")]
    assert [len(entry["models"]) for entry in shared] == [1 if adapters > 21 else 1 + adapters]


@pytest.mark.parametrize("name", ["my model", "a//b", "50%", "a#b", "a/../b", "x" * 1010, "modèle", "a%2Fb"])
def test_a_model_name_that_is_no_path_keeps_the_rest_of_the_route(name: str) -> None:
    """The API server would refuse the whole route for its rules by the model's path."""
    parent = service(model={"uri": "hf://a/b", "name": name}, router={"route": {}, "scheduler": {}})
    cluster = Cluster(parent, gateway())
    cluster.sync()
    spec = cluster.child("HTTPRoute", "demo-kserve-route")["spec"]
    assert decode_document(spec, HTTPRouteSpec)[1] == []
    assert len(spec["rules"]) == 7
    assert not any("/publishers/" in match["path"]["value"] for rule in spec["rules"] for match in rule["matches"])
    (warning,) = (w for w in admit(parent).warnings if w.startswith("spec.model.name: "))
    assert "URL" in warning


@pytest.mark.parametrize("name", ["org/model:v1@x+y", "a.b*c(d)", "Qwen/Qwen2.5-7B-Instruct"])
def test_a_model_name_that_is_a_path_has_its_rules(name: str) -> None:
    parent = service(model={"uri": "hf://a/b", "name": name}, router={"route": {}})
    cluster = Cluster(parent, gateway())
    cluster.sync()
    assert len(cluster.child("HTTPRoute", "demo-kserve-route")["spec"]["rules"]) == 12
    assert not any(w.startswith("spec.model.name: ") for w in admit(parent).warnings)


@pytest.mark.parametrize(
    ("timeouts", "warned"), [(None, True), ({}, True), ({"request": "0s"}, False), ({"backendRequest": "5m"}, False)]
)
def test_a_rule_without_timeouts_is_warned_of(timeouts: Json | None, warned: bool) -> None:
    """Envoy ends such answers after 15 seconds, in the middle of a stream."""
    rule = {"backendRefs": [{"name": "s", "port": 80}]} | ({} if timeouts is None else {"timeouts": timeouts})
    for document in (service(router=router_of(rule)), config(router=router_of(rule))):
        assert any("rules[0].timeouts: " in w for w in admit(document).warnings) == warned


def router_of(*rules: Json) -> Json:
    return {"route": {"http": {"spec": {"rules": list(rules)}}}}


def test_a_redirect_needs_no_timeouts() -> None:
    redirect = {"type": "RequestRedirect", "requestRedirect": {"scheme": "https"}}
    assert not any("timeouts" in w for w in admit(service(router=router_of({"filters": [redirect]}))).warnings)


def test_many_adapters_for_one_place() -> None:
    """vLLM computes for one adapter at a time unless it is told otherwise."""
    adapters = [{"name": name, "uri": "hf://a/b"} for name in "ab"]

    def warns(lora: Json, args: tuple[str, ...] = ()) -> bool:
        pod = {"containers": [{"name": "main", "args": list(args)}]}
        parent = service(model={"uri": "hf://a/b", "lora": lora}, template=pod)
        return any(w.startswith("spec.model.lora.maxAdapters: vLLM") for w in admit(parent).warnings)

    assert warns({"adapters": adapters})
    assert not warns({"adapters": adapters[:1]})
    assert not warns({"adapters": adapters, "maxAdapters": 2})
    assert not warns({"adapters": adapters}, ("--max-loras=2",))


@pytest.mark.parametrize(
    ("settings", "has_rules", "timeouts"),
    [
        ({}, False, True),
        ({"disableHTTPRouteTimeout": True}, False, False),
        ({"disableHTTPRouteTimeout": True}, True, True),
    ],
)
def test_timeouts_of_presets_can_be_left_out(settings: Json, has_rules: bool, timeouts: bool) -> None:
    """Some gateways refuse routes with timeouts (kserve issue 5707); those of the service's own rules stay."""
    rules = [{"timeouts": {"request": "0s"}, "backendRefs": [{"name": "s", "port": 80}]}]
    parent = service(router={"route": {"http": {"spec": {"rules": rules}}} if has_rules else {}})
    cluster = Cluster(parent, gateway(), operator(ingress=settings))
    cluster.sync()
    spec = cluster.child("HTTPRoute", "demo-kserve-route")["spec"]
    assert {"timeouts" in rule for rule in spec["rules"]} == {timeouts}


def test_a_gateway_switches_rules_by_model_off() -> None:
    """A Gateway's annotation disables the rules, unless the operator's settings force them."""
    off = dict.fromkeys(ENABLED, "false")
    assert matches(ENABLED, of_gateway=off) == [[""]]
    assert matches(ENABLED, of_gateway=ENABLED) == [[""], ["demo", "a", "b"]]
    assert matches(ENABLED, of_gateway=off, modelBasedRoutingMode="Forced") == [[""], ["demo", "a", "b"]]


def named_rules(header: str) -> Json:
    """Return a config whose rules all have a name, as KServe's own preset has since v0.19."""
    value = "publishers/{{ .ObjectMeta.Namespace }}/models/{{ .Spec.Model.Name }}"
    match = {"path": {"type": "Exact", "value": "/v1/models"}, "headers": [{"name": header, "value": value}]}
    path = {"path": {"type": "PathPrefix", "value": "/{{ .ObjectMeta.Namespace }}/{{ .ObjectMeta.Name }}"}}
    backends = [{"name": "s", "port": 80}]
    rules = [
        {"name": "path", "matches": [path], "backendRefs": backends},
        {"name": "models", "matches": [match], "backendRefs": backends},
    ]
    return config(router={"route": {"http": {"spec": {"rules": rules}}}}, annotations=ENABLED)


GLOBAL_HEADER = "{{ .GlobalConfig.ModelBasedRoutingHeaderName }}"


def test_rules_of_configs_keep_the_matches_of_all_adapters() -> None:
    """Metacontroller would merge matches of named rules by path; without names it replaces the rules as a whole."""
    adapters = [{"name": name, "uri": "hf://a/b"} for name in ("b", "a")]
    parent = service(model={"uri": "hf://a/b", "lora": {"adapters": adapters}}, baseRefs=[{"name": "base"}])
    cluster = Cluster(parent, named_rules(GLOBAL_HEADER), gateway())
    cluster.settle()
    path, models = cluster.child("HTTPRoute", "demo-kserve-route")["spec"]["rules"]
    assert not any("name" in rule for rule in (path, models))
    sent = [match["headers"][0] for match in models["matches"]]
    assert [header["value"].rpartition("/")[2] for header in sent] == ["demo", "a", "b"]
    assert {header["name"] for header in sent} == {"X-Gateway-Model-Name"}


def test_status_lists_what_belongs_to_the_service() -> None:
    """Each address has its origin and the model names that requests may use."""
    adapters = [{"name": "sql", "uri": "hf://a/b"}]
    parent = service(
        model={"uri": "hf://a/b", "name": "m", "lora": {"adapters": adapters}},
        baseRefs=[{"name": "base"}],
        router={"scheduler": {}, "gateway": {}},
    )
    cluster = Cluster(parent, named_rules(GLOBAL_HEADER), gateway())
    cluster.settle()
    cluster.report("Deployment", "demo-kserve", **AVAILABLE)
    status = cluster.sync()["status"]
    assert status["url"] == "http://203.0.113.1/default/demo"
    origin = {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "kserve-ingress-gateway"}
    qualified = [{"name": f"publishers/default/models/{name}"} for name in ("m", "sql")]
    routed, of_the_service = status["addresses"][1], status["addresses"][0]
    assert of_the_service["models"] == [qualified[0], {"name": "m"}, qualified[1], {"name": "sql"}]
    assert routed["url"] == "http://203.0.113.1/v1/models"
    assert of_the_service["origin"] == {**origin, "namespace": "kserve"}
    (at,) = status["router"]["gateways"]
    assert [route["name"] for route in at["httpRoutes"]] == ["demo-kserve-route"]
    assert status["router"]["scheduler"]["inferencePool"]["name"] == "demo-inference-pool"
    primary = status["workloads"]["primary"]
    assert "app.kubernetes.io/name=demo" in primary.pop("selector")
    assert primary == {"apiGroup": "apps", "kind": "Deployment", "name": "demo-kserve", "readyReplicas": 1}
    assert status["workloads"]["scheduler"]["name"] == "demo-kserve-router-scheduler"
    assert [(config["name"], config["source"]) for config in status["appliedConfigs"]][-2:] == [
        ("kserve-config-llm-template", "Preset"),
        ("base", "UserRef"),
    ]
    parent["metadata"]["annotations"] = {"serving.kserve.io/stop": "true"}
    stopped = cluster.sync()["status"]
    assert not {"workloads", "router", "url", "addresses"} & stopped.keys()


def test_a_header_of_a_config_is_judged_after_rendering() -> None:
    assert fields(named_rules(GLOBAL_HEADER)) == []
    cluster = Cluster(service(baseRefs=[{"name": "base"}]), named_rules("X {{ .ObjectMeta.Name }}"), gateway())
    cluster.sync()
    assert cluster.says("PresetsCombined") == "CombineBaseError"
    assert 'headers[0].name: Invalid value: "X demo"' in (cluster.condition("PresetsCombined") or {})["message"]


def test_a_named_rule_may_have_two_matches_of_one_path() -> None:
    """The rule's name is left out, with a warning."""
    rules = named_rules("X-A")["spec"]["router"]["route"]["http"]["spec"]["rules"]
    two = [{**rules[1]["matches"][0], "headers": [{"name": "X-A", "value": value}]} for value in "ab"]
    spec = {"rules": [{**rules[1], "matches": two}]}
    verdict = admit(service(router={"route": {"http": {"spec": spec}}}))
    assert verdict.errors == []
    (warning,) = (w for w in verdict.warnings if w.startswith("spec.router.route.http.spec.rules[0].name: "))
    assert "accepted, no effect" in warning


def route_of(cluster: Cluster) -> Json:
    return cluster.child("HTTPRoute", "demo-kserve-route")


def test_rules_of_presets_and_configs_have_no_name() -> None:
    """Istio keys endpoint pickers by the names of rules, in all routes of a Gateway: one service gets another's."""
    specs: list[Json] = [{"router": {"route": {}, "scheduler": {}}}, {"baseRefs": [{"name": "base"}]}]
    for spec in specs:
        cluster = Cluster(service(**spec), named_rules(GLOBAL_HEADER), gateway())
        cluster.sync()
        assert not any("name" in rule for rule in route_of(cluster)["spec"]["rules"])


def test_names_of_an_earlier_release_go_in_one_write() -> None:
    """No item of the observed list stays, and none is there twice: Metacontroller replaces the list as a whole."""
    adapters = [{"name": name, "uri": "hf://a/b"} for name in ("b", "a")]
    model = {"uri": "hf://a/b", "lora": {"adapters": adapters}}
    cluster = Cluster(service(model=model, router={"route": {}, "scheduler": {}}), gateway())
    cluster.settle()
    wanted, route = copy.deepcopy(route_of(cluster)["spec"]), route_of(cluster)
    earlier = [{**rule, "name": f"rule-{number}"} for number, rule in enumerate(wanted["rules"])]
    earlier[4] = {key: value for key, value in earlier[4].items() if key != "name"}
    for names in (earlier, [{**rule, "name": f"rule-{n}"} for n, rule in enumerate(earlier)]):
        route["spec"] = {**wanted, "rules": copy.deepcopy(names)}
        record = {"apiVersion": route["apiVersion"], "kind": "HTTPRoute", "spec": {**wanted, "rules": names}}
        route["metadata"].setdefault("annotations", {})[LAST_APPLIED] = json.dumps(record)
        cluster.sync()
        assert route_of(cluster)["spec"] == wanted


def test_a_rule_of_ones_own_keeps_its_name() -> None:
    """Policies refer to it; a name that routes of other services may have, too, is warned of."""
    match = {"path": {"type": "PathPrefix", "value": "/chat"}}
    rules = [{"name": name, "matches": [match], "backendRefs": [{"name": "s", "port": 80}]} for name in ("demo-a", "b")]
    parent = service(router={"route": {"http": {"spec": {"rules": rules}}}})
    cluster = Cluster(parent, gateway())
    cluster.sync()
    assert [rule["name"] for rule in route_of(cluster)["spec"]["rules"]] == ["demo-a", "b"]
    (warning,) = (w for w in admit(parent).warnings if ".name: " in w)
    assert warning.startswith("spec.router.route.http.spec.rules[1].name: ")
    assert "Istio" in warning


# Pods.


def test_prefill_pods_have_labels_of_their_own() -> None:
    """Labels of the main workload are on its pods and Service only; the annotation about the route is on neither."""
    prefill = {"labels": {"p": "1"}, "annotations": {"q": "2"}}
    cluster = Cluster(service(labels={"a": "b"}, annotations={"c": "d", **ENABLED}, prefill=prefill))
    cluster.sync()
    meta = template(cluster)["metadata"]
    assert (meta["labels"]["a"], meta["annotations"]) == ("b", {"c": "d"})
    meta = template(cluster, "demo-kserve-prefill")["metadata"]
    assert ("a" in meta["labels"], meta["labels"]["p"], meta["annotations"]) == (False, "1", {"q": "2"})
    meta = cluster.child("Service", "demo-kserve-workload-svc")["metadata"]
    assert (meta["labels"]["a"], meta["annotations"]["c"]) == ("b", "d")
    assert not ENABLED.keys() & meta["annotations"].keys()


def test_running_prefill_pods_keep_the_labels_of_an_earlier_release() -> None:
    """Removing the labels would restart the pods."""
    cluster = Cluster(service(labels={"a": "b"}, prefill={}))
    cluster.settle()
    deployment = next(c for c in cluster.children if c["metadata"]["name"] == "demo-kserve-prefill")
    deployment["spec"]["template"]["metadata"]["labels"] |= {"a": "b"}
    cluster.sync()
    assert template(cluster, "demo-kserve-prefill")["metadata"]["labels"]["a"] == "b"


def test_a_modelcar_keeps_the_security_context() -> None:
    """Pod Security ``restricted`` then admits the pod. A running pod without the context is not restarted."""
    cluster = Cluster(service(uri="oci://registry.example.com/m:1"))
    cluster.sync()
    context = container(template(cluster)["spec"])["securityContext"]
    assert (context["runAsUser"], context["allowPrivilegeEscalation"]) == (1010, False)
    cluster.settle()
    (deployment,) = (c for c in cluster.children if c["metadata"]["name"] == "demo-kserve")
    container(deployment["spec"]["template"]["spec"])["securityContext"] = {"runAsUser": 1010}
    cluster.sync()
    assert container(template(cluster)["spec"])["securityContext"] == {"runAsUser": 1010}


def test_downloads_from_the_hub_are_fast() -> None:
    def variables(uri: str) -> Json:
        cluster = Cluster(service(uri=uri))
        cluster.sync()
        (init,) = template(cluster)["spec"]["initContainers"]
        return {item["name"]: item.get("value") for item in init.get("env") or ()}

    assert variables("hf://a/b")["HF_XET_NUM_CONCURRENT_RANGE_GETS"] == "8"
    assert variables("gs://bucket/m") == {}


# Features without effect.

PREDICTOR: Json = {"kind": "EndpointPickerConfig", "plugins": [{"type": "predicted-latency-producer"}, 1]}
TOKENIZED = "kind: EndpointPickerConfig\nplugins:\n- type: precise-prefix-cache-scorer\n"


def picked(config: Any, *containers: str) -> Json:
    """Return a router whose endpoint picker has a configuration, and these containers."""
    scheduler: Json = {"config": {"inline": config}}
    if containers:
        scheduler["template"] = {"containers": [{"name": name, "image": "x"} for name in containers]}
    return {"route": {}, "scheduler": scheduler}


def beside_a_pool(config: Any) -> Json:
    """Return a router with a configuration for a picker that is not made, because the user has a pool with one."""
    return {"route": {}, "scheduler": {"config": {"inline": config}, "pool": {"ref": {"name": "pool"}}}}


@pytest.mark.parametrize(
    ("parent", "ingress", "reason", "text"),
    [
        (service(), {"enableLLMInferenceServiceTLS": True}, None, ""),
        (
            service(notes={"serving.kserve.io/exp-dra-device-class": "gpu"}),
            {},
            "DevicesNotSupported",
            "annotations serving.kserve.io/exp-dra-… have no effect",
        ),
        (service(router=picked(PREDICTOR)), {}, None, ""),
        (service(router=picked(PREDICTOR, "predictor")), {}, None, ""),
        (service(router=picked(TOKENIZED)), {}, None, ""),
        (service(router=picked(TOKENIZED, "tokenizer")), {}, None, ""),
        (service(uri="oci://registry.example.com/m:1", router=picked(TOKENIZED, "tokenizer")), {}, None, ""),
        (service(router=beside_a_pool(PREDICTOR)), {}, None, ""),
        (
            service(
                uri="custom://store/m",
                storageInitializer={"enabled": False},
                router=picked(TOKENIZED, "tokenizer"),
            ),
            {},
            "PluginServerMissing",
            "the tokenizer gets no files",
        ),
        (
            service(uri="custom://store/m", storageInitializer={"enabled": False}, router=picked(PREDICTOR)),
            {},
            None,
            "",
        ),
        (service(router=picked("plugins: [")), {}, None, ""),
        (service(), {"enableLLMInferenceServiceTLS": False}, None, ""),
        (service(notes={"serving.kserve.io/stop": "true"}), {"enableLLMInferenceServiceTLS": True}, None, ""),
    ],
)
def test_features_without_effect_are_in_the_status(parent: Json, ingress: Json, reason: str | None, text: str) -> None:
    """``Ready`` does not depend on them."""
    cluster = Cluster(parent, gateway(), operator(ingress=ingress))
    cluster.sync()
    assert cluster.says("FeaturesApplied") == reason
    assert text in (cluster.condition("FeaturesApplied") or {"message": ""})["message"]
    assert reason is None or reason not in str(cluster.condition("Ready"))


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"router": {"scheduler": {"tokenizer": {}}}}, "spec.router.scheduler.tokenizer"),
        ({"model": {"uri": "pvc://claim/m", "confidential": {"enabled": True}}}, "spec.model.confidential"),
    ],
)
def test_warns_of_fields_without_effect(spec: Json, path: str) -> None:
    verdict = admit(service(**spec))
    assert verdict.errors == []
    assert [warning for warning in verdict.warnings if warning.startswith(f"{path}: accepted, no effect; ")]


CLAIM = {"fileSystem": {"pvc": {"ref": {"name": "caches", "path": "chat"}}}}
OWN_CLAIM_SPEC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Ti"}}}
OWN_CLAIM = {"fileSystem": {"pvc": {"spec": OWN_CLAIM_SPEC}}}
NODE = {"fileSystem": {"emptyDir": {"sizeLimit": "1Gi"}}}


def test_key_value_caches_leave_the_gpu() -> None:
    """They are offloaded to host memory and volumes; prefill has a separate field."""
    caches = {"cpu": "10Gi", "secondary": [CLAIM, OWN_CLAIM, NODE]}
    cluster = Cluster(service(kvCacheOffloading=caches, prefill={}, router={"scheduler": {}}))
    cluster.sync()
    pod = template(cluster)["spec"]
    script = container(pod)["command"][2]
    flag = (
        r"--kv-transfer-config '{\"kv_connector\":\"OffloadingConnector\",\"kv_connector_extra_config\":"
        r"{\"cpu_bytes_to_use\":10737418240,\"eviction_policy\":\"lru\",\"secondary_tiers\":["
        r"{\"root_dir\":\"/mnt/kv-cache-0\",\"type\":\"fs\"},{\"root_dir\":\"/mnt/kv-cache-1\",\"type\":\"fs\"},"
        r"{\"root_dir\":\"/mnt/kv-cache-2\",\"type\":\"fs\"}],\"spec_name\":\"TieringOffloadingSpec\"},"
        r"\"kv_role\":\"kv_both\"}'"
    )
    assert f'if since 0.22; then\n  words kvCacheOffloading "{flag}"\nfi' in script
    mounts = [mount for mount in container(pod)["volumeMounts"] if mount["name"].startswith("kv-cache-")]
    assert mounts == [
        {"name": "kv-cache-secondary-0", "mountPath": "/mnt/kv-cache-0", "subPath": "chat"},
        {"name": "kv-cache-secondary-1", "mountPath": "/mnt/kv-cache-1"},
        {"name": "kv-cache-secondary-2", "mountPath": "/mnt/kv-cache-2"},
    ]
    sources = [volume for volume in pod["volumes"] if volume["name"].startswith("kv-cache-")]
    assert sources == [
        {"name": "kv-cache-secondary-0", "persistentVolumeClaim": {"claimName": "caches"}},
        {
            "name": "kv-cache-secondary-1",
            "ephemeral": {"volumeClaimTemplate": {"spec": OWN_CLAIM_SPEC}},
        },
        {"name": "kv-cache-secondary-2", "emptyDir": {"sizeLimit": "1Gi"}},
    ]
    assert container(pod)["resources"] == {"requests": {"ephemeral-storage": "1Gi"}}
    assert "kv-transfer-config" not in str(template(cluster, "demo-kserve-prefill"))
    assert cluster.says("FeaturesApplied") is None


@pytest.mark.parametrize(
    ("resources", "wanted"),
    [
        ({}, {"requests": {"ephemeral-storage": "50Gi"}}),
        ({"requests": {"cpu": "1"}}, {"requests": {"cpu": "1", "ephemeral-storage": "50Gi"}}),
        ({"requests": {"ephemeral-storage": "9Gi"}}, {"requests": {"ephemeral-storage": "59Gi"}}),
        ({"requests": {"ephemeral-storage": "1G"}}, {"requests": {"ephemeral-storage": "54687091200"}}),
        (
            {"limits": {"ephemeral-storage": "50Gi"}},
            {"limits": {"ephemeral-storage": "50Gi"}, "requests": {"ephemeral-storage": "50Gi"}},
        ),
        ({"limits": {"ephemeral-storage": "9Gi"}}, {"limits": {"ephemeral-storage": "9Gi"}}),
    ],
)
def test_caches_on_the_node_have_its_storage(resources: Json, wanted: Json) -> None:
    """KServe's ``size`` is the limit of the volume, and the request of the container."""
    directories = [{"fileSystem": {"emptyDir": directory}} for directory in ({"size": "20Gi"}, {"sizeLimit": "30Gi"})]
    main = {"name": "main", "resources": resources}
    caches = {"cpu": "10Gi", "secondary": directories}
    cluster = Cluster(service(kvCacheOffloading=caches, template={"containers": [main]}))
    cluster.sync()
    pod = template(cluster)["spec"]
    volumes = [volume["emptyDir"] for volume in pod["volumes"] if volume["name"].startswith("kv-cache-")]
    assert volumes == [{"sizeLimit": "20Gi"}, {"sizeLimit": "30Gi"}]
    assert container(pod)["resources"] == wanted


def test_a_server_without_the_flag_is_reported() -> None:
    """A container with a command does not get the flag."""
    main = {"name": "main", "command": ["vllm", "serve"]}
    cluster = Cluster(service(kvCacheOffloading={"cpu": "10Gi"}, template={"containers": [main]}))
    cluster.sync()
    assert cluster.says("FeaturesApplied") == "OffloadingNotSupported"


CACHES = "spec.kvCacheOffloading"


@pytest.mark.parametrize(
    ("caches", "errors"),
    [
        ({"cpu": "0"}, []),
        ({"evictionPolicy": "lru"}, []),
        ({"cpu": "lots"}, [(f"{CACHES}.cpu", "Invalid")]),
        ({"cpu": "1Gi", "evictionPolicy": "fifo"}, [(f"{CACHES}.evictionPolicy", "NotSupported")]),
        ({"secondary": [NODE]}, [(f"{CACHES}.cpu", "Required")]),
        (
            {"cpu": "1Gi", "secondary": [{"fileSystem": {"emptyDir": {"size": "much"}}}]},
            [(f"{CACHES}.secondary[0].fileSystem.emptyDir.size", "Invalid")],
        ),
        (
            {"cpu": "1Gi", "secondary": [{"fileSystem": {"emptyDir": {"size": "1Gi", "sizeLimit": "1Gi"}}}]},
            [(f"{CACHES}.secondary[0].fileSystem.emptyDir.sizeLimit", "Forbidden")],
        ),
        ({"cpu": "1Gi", "secondary": [{}]}, [(f"{CACHES}.secondary[0].fileSystem", "Required")]),
        ({"cpu": "1Gi", "secondary": [{"fileSystem": {}}]}, [(f"{CACHES}.secondary[0].fileSystem", "Required")]),
        (
            {"cpu": "1Gi", "secondary": [{"fileSystem": CLAIM["fileSystem"] | NODE["fileSystem"]}]},
            [(f"{CACHES}.secondary[0].fileSystem", "Invalid")],
        ),
        (
            {"cpu": "1Gi", "secondary": [{"fileSystem": {"pvc": {}}}]},
            [(f"{CACHES}.secondary[0].fileSystem.pvc", "Required")],
        ),
        (
            {"cpu": "1Gi", "secondary": [{"fileSystem": {"pvc": {"ref": {"path": "p"}}}}]},
            [(f"{CACHES}.secondary[0].fileSystem.pvc.ref.name", "Required")],
        ),
        (
            {"cpu": "1Gi", "secondary": [{"fileSystem": {"pvc": {"ref": {"name": "a", "path": "/b"}}}}]},
            [(f"{CACHES}.secondary[0].fileSystem.pvc.ref.path", "Invalid")],
        ),
    ],
)
def test_rules_for_key_value_caches(caches: Json, errors: list[tuple[str, str]]) -> None:
    """The rules are those in KServe v0.20."""
    assert fields(service(kvCacheOffloading=caches)) == errors
    partial = [error for error in errors if error != (f"{CACHES}.cpu", "Required")]
    assert fields(service(kvCacheOffloading=caches, baseRefs=[{"name": "base"}])) == partial
    assert fields(config(kvCacheOffloading=caches)) == partial


def test_an_encrypted_model_is_decrypted() -> None:
    """The storage initializer decrypts it; its variables name the key."""
    key = "kbs:///default/keys/llama"
    cluster = Cluster(service(model={"uri": "gs://bucket/m", "confidential": {"enabled": True, "resourceId": key}}))
    cluster.sync()
    variables = env(container(template(cluster)["spec"], "storage-initializer", "initContainers"))
    assert variables == {"CONFIDENTIAL_ENABLED": "true", "CONFIDENTIAL_RESOURCE_ID": key}
    wrong = service(model={"uri": "gs://bucket/m", "confidential": {"enabled": True, "resourceId": "default/keys/x"}})
    assert fields(wrong) == [("spec.model.confidential.resourceId", "Invalid")]


def test_the_bundle_of_downloads_is_asked_for() -> None:
    """The URI of the model, or of an adapter, requires the bundle."""
    adapters = {"adapters": [{"name": "a", "uri": "gs://bucket/a"}]}
    for model in ({"uri": "gs://bucket/m"}, {"uri": "hf://a/b", "lora": adapters}):
        rules = customize(service(model=model))
        assert any("global-ca-bundle" in rule.get("names", ()) for rule in rules), json.dumps(rules)

"""The effective spec: choice of presets, precedence of layers, data of templates, and errors."""

from __future__ import annotations

from typing import Any

import pytest

from app.kserve.constants import PIN_PREFIX
from app.kserve.conversion import V1ALPHA1, V1ALPHA2, convert
from app.kserve.spec import presets
from app.kserve.spec.find import choose_presets, pins_of
from app.kserve.spec.merge import document
from app.kube.base import Json
from app.settings import Settings
from tests.kserve.objects import V017, Cluster, config, context, gateway, service


def main(cluster: Cluster, kind: str = "Deployment", name: str = "demo-kserve") -> Json:
    """Return the main container of the main workload."""
    cluster.sync()
    pod = cluster.child(kind, name)["spec"]["template"]["spec"]
    return next(c for c in pod["containers"] if c["name"] == "main")


def problem(cluster: Cluster) -> str:
    """Return the message of ``PresetsCombined``, which must be false."""
    cluster.sync()
    condition = cluster.condition("PresetsCombined")
    assert condition is not None
    assert condition["status"] == "False"
    assert cluster.says("Ready") == condition["reason"]
    assert condition["reason"] == (
        "ConfigNotFound" if " neither in namespace " in condition["message"] else "CombineBaseError"
    )
    return str(condition["message"])


# Presets.

DP: Json = {"data": 4, "dataLocal": 2}
POD: Json = {"containers": []}


@pytest.mark.parametrize(
    ("spec", "chosen"),
    [
        ({}, ["config-llm-template"]),
        ({"worker": {}, "parallelism": DP}, ["config-llm-worker-data-parallel"]),
        ({"worker": {}, "parallelism": {"pipeline": 2}}, ["config-llm-worker-pipeline-parallel"]),
        ({"worker": {}, "parallelism": {"tensor": 2}}, []),
        ({"prefill": {}}, ["config-llm-prefill-template", "config-llm-decode-template"]),
        (
            {"prefill": {}, "worker": {}, "parallelism": DP},
            ["config-llm-prefill-template", "config-llm-decode-worker-data-parallel"],
        ),
        (
            {"prefill": {"worker": {}, "parallelism": DP}},
            ["config-llm-prefill-worker-data-parallel", "config-llm-decode-template"],
        ),
        ({"router": {}}, ["config-llm-template"]),
        ({"router": {"scheduler": {}}}, ["config-llm-scheduler", "config-llm-template"]),
        ({"router": {"scheduler": {"pool": {"ref": {"name": "p"}}}}}, ["config-llm-template"]),
        ({"router": {"scheduler": {"pool": {"ref": {"name": ""}}}}}, ["config-llm-scheduler", "config-llm-template"]),
        ({"router": {"route": {}}}, ["config-llm-router-route", "config-llm-template"]),
        ({"router": {"route": {"http": {"refs": [{"name": "r"}]}}}}, ["config-llm-template"]),
        ({"router": {"route": {"http": {"refs": []}}}}, ["config-llm-router-route", "config-llm-template"]),
    ],
)
def test_presets_by_topology(spec: Json, chosen: list[str]) -> None:
    """Presets are chosen by the table of KS-2.3, in merge order."""
    assert choose_presets([document(spec)]) == chosen


def test_a_base_takes_part_in_the_choice() -> None:
    """Fields of a base count for the choice of presets."""
    cluster = Cluster(service(baseRefs=[{"name": "base"}]), config(prefill={}))
    cluster.sync()
    assert ("Deployment", "demo-kserve-prefill") in cluster.names


def test_a_config_of_a_pipeline_presets_name_starts_the_group_its_own_way() -> None:
    """Its pods are used unchanged: neither arguments nor GPUs are added."""
    parent = service(worker={}, parallelism={"pipeline": 2, "tensor": 4})
    pod = {"containers": [{"name": "main", "image": "i"}]}
    supplied = config("kserve-config-llm-worker-pipeline-parallel", "kserve", template=pod, worker=pod)
    cluster = Cluster(parent, supplied)
    cluster.sync()
    template = cluster.child("LeaderWorkerSet", "demo-kserve-mn")["spec"]["leaderWorkerTemplate"]
    assert template["size"] == 2
    server = template["workerTemplate"]["spec"]["containers"][0]
    assert (server["image"], server.get("args"), server.get("resources")) == ("i", None, None)


@pytest.mark.parametrize("data", [{"data": 4, "dataLocal": 2}, {"pipeline": 2}])
def test_a_worker_takes_its_parallelism_from_a_base(data: Json) -> None:
    """If the merged spec has none for several nodes, it is an error."""
    parent = service(worker={}, baseRefs=[{"name": "base"}])
    cluster = Cluster(parent, config(parallelism=data))
    cluster.sync()
    assert cluster.child("LeaderWorkerSet", "demo-kserve-mn")["spec"]["leaderWorkerTemplate"]["size"] == 2
    assert "several nodes need data parallelism" in problem(Cluster(parent, config(parallelism={"tensor": 2})))


@pytest.mark.parametrize("namespace", ["default", "kserve"])
def test_a_config_shadows_the_preset_of_its_name(namespace: str) -> None:
    """The config may be in the service's namespace or in the system namespace."""
    pod = {"containers": [{"name": "main", "image": "mine"}]}
    shadow = config("kserve-config-llm-template", namespace, template=pod)
    assert main(Cluster(service(), shadow))["image"] == "mine"


def test_the_own_namespace_comes_first() -> None:
    """If both namespaces have the config, the one in the service's namespace is used."""
    configs = [
        config(namespace=namespace, template={"containers": [{"name": "main", "image": namespace}]})
        for namespace in ("default", "kserve")
    ]
    assert main(Cluster(service(baseRefs=[{"name": "base"}]), *configs))["image"] == "default"


def test_an_empty_address_does_not_hide_a_bases() -> None:
    """A model requires ``uri``, so a service that only sets the name leaves it empty (KS-2.4)."""
    base = config(model={"uri": "hf://a/b"})
    cluster = Cluster(service(model={"uri": "", "name": "mine"}, baseRefs=[{"name": "base"}]), base, settings=V017)
    assert "mine" in main(cluster)["command"]
    pod = cluster.child("Deployment", "demo-kserve")["spec"]["template"]["spec"]
    assert pod["initContainers"][0]["args"][0] == "hf://a/b"


def test_claims_of_devices_are_replaced() -> None:
    """Kubernetes defines no merge key for the list."""

    def containers(claim: str) -> Json:
        return {"containers": [{"name": "main", "resources": {"claims": [{"name": claim}]}}]}

    claims = [{"name": name, "resourceClaimName": name} for name in "ab"]
    base = config(template={**containers("a"), "resourceClaims": claims})
    cluster = Cluster(service(template=containers("b"), baseRefs=[{"name": "base"}]), base)
    assert main(cluster)["resources"]["claims"] == [{"name": "b"}]


# Pins.


def test_all_presets_are_pinned_from_the_start() -> None:
    """All eight are pinned for every topology, even if the spec cannot be combined."""
    cluster = Cluster(service(baseRefs=[{"name": "none"}]))
    cluster.sync()
    wanted = {PIN_PREFIX + suffix: f"kserve-{suffix}" for suffix in presets.PINNED}
    assert len(wanted) == 8
    assert cluster.answer["status"]["annotations"] == wanted


def test_a_pin_is_kept_and_used() -> None:
    """A service keeps its pinned presets, except the route's, which is always the current one."""
    old_pins = {f"{PIN_PREFIX}config-llm-template": "old-template", f"{PIN_PREFIX}config-llm-router-route": "old-route"}
    pins = pins_of(context(pins=old_pins).service, Settings())
    parent = {**service(router={"route": {}}), "status": {"annotations": pins}}
    old = config("old-template", "kserve", template={"containers": [{"name": "main", "image": "old"}]})
    cluster = Cluster(parent, old, gateway())
    assert main(cluster)["image"] == "old"
    assert ("HTTPRoute", "demo-kserve-route") in cluster.names
    assert cluster.answer["status"]["annotations"] == pins


def test_a_pinned_preset_that_is_gone_is_named_with_its_pin() -> None:
    """A distribution whose presets have its version in their names pins those; children stay as they are."""
    cluster = Cluster(service())
    before = cluster.settle()["children"]
    pin = f"{PIN_PREFIX}config-llm-template"
    cluster.parent["status"] = {"annotations": {pin: "v9-config-llm-template"}}
    cluster.sync()
    assert cluster.answer["children"] == before
    assert cluster.says("Ready") == "ConfigNotFound"
    words = f"preset v9-config-llm-template, which status.annotations[{pin}] keeps, is neither in namespace default"
    assert words in problem(cluster)


def test_pinning_can_be_switched_off() -> None:
    """No pins are written, and existing ones are ignored."""
    parent = {**service(), "status": {"annotations": {f"{PIN_PREFIX}config-llm-template": "gone"}}}
    cluster = Cluster(parent, settings=Settings(kserve_versioned_config=False))
    cluster.sync()
    assert cluster.says("PresetsCombined") == "True"
    assert "annotations" not in cluster.answer["status"]


def test_another_prefix_names_other_presets() -> None:
    """Built-in presets have the configured prefix."""
    cluster = Cluster(service(), settings=Settings(kserve_config_prefix="v2-"))
    cluster.sync()
    assert cluster.says("PresetsCombined") == "True"
    assert cluster.answer["status"]["annotations"][f"{PIN_PREFIX}config-llm-template"] == "v2-config-llm-template"


# Precedence.


def test_the_service_overrides_base_refs_and_these_the_preset() -> None:
    """The service overrides baseRefs, a later baseRef an earlier one, and every baseRef the preset."""

    def pod(**env: str) -> Json:
        return {"containers": [{"name": "main", "env": [{"name": n, "value": v} for n, v in env.items()]}]}

    cluster = Cluster(
        service(baseRefs=[{"name": "a"}, {"name": "b"}], template=pod(D="own", HOME="own")),
        config("a", template=pod(A="a", B="a", D="a")),
        config("b", template=pod(B="b", D="b")),
    )
    env = {variable["name"]: variable["value"] for variable in main(cluster)["env"]}
    assert env == {
        "A": "a",
        "B": "b",
        "D": "own",
        "HOME": "own",
        "VLLM_LOGGING_LEVEL": "INFO",
        "HF_HUB_CACHE": "/models",
    }


def served_as(cluster: Cluster) -> str:
    command = main(cluster)["command"]
    return str(command[command.index("--served-model-name") + 1])


@pytest.mark.parametrize(
    ("in_spec", "bases", "name"),
    [
        (None, [], "demo"),
        ("own", [], "own"),
        ("own", [None], "own"),
        ("own", ["a"], "a"),
        (None, ["a", "b"], "b"),
        ("own", ["a", None], "a"),
    ],
)
def test_the_last_base_with_a_model_name_beats_the_service(
    in_spec: str | None, bases: list[str | None], name: str
) -> None:
    """The model's name is the only value for which a baseRef overrides the service (KS-2.1 step 3)."""
    model = {"uri": "hf://a/b", **({"name": in_spec} if in_spec else {})}
    configs = [config(f"c{n}", model={"name": base} if base else {}) for n, base in enumerate(bases)]
    parent = service(model=model, baseRefs=[{"name": f"c{n}"} for n in range(len(bases))])
    assert served_as(Cluster(parent, *configs, settings=V017)) == name


def test_pointers_override_with_zero_and_plain_fields_do_not() -> None:
    """``replicas: 0`` and ``runAsNonRoot: false`` override; ``expert: false`` and an empty variable do not (KS-2.4)."""
    pod = {
        "containers": [
            {
                "name": "main",
                "env": [{"name": "HOME", "value": ""}],
                "securityContext": {"allowPrivilegeEscalation": True, "seccompProfile": {"type": ""}},
                "readinessProbe": {"periodSeconds": 0},
            }
        ]
    }
    base = config(replicas=3, parallelism={**DP, "expert": True}, template={"hostNetwork": True})
    cluster = Cluster(
        service(
            baseRefs=[{"name": "base"}],
            replicas=0,
            parallelism={"expert": False},
            template={**pod, "hostNetwork": False},
        ),
        base,
    )
    container = main(cluster)
    deployment = cluster.child("Deployment", "demo-kserve")
    assert deployment["spec"]["replicas"] == 0
    assert container["securityContext"]["allowPrivilegeEscalation"] is True
    assert container["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert {"name": "HOME", "value": "/home"} in container["env"]
    assert container["readinessProbe"]["periodSeconds"] == 1
    assert deployment["spec"]["template"]["spec"]["hostNetwork"] is True


def test_a_user_container_comes_before_the_presets() -> None:
    """As in Kubernetes' strategic merge, new items of the override come first."""
    cluster = Cluster(service(template={"containers": [{"name": "proxy", "image": "p"}]}))
    cluster.sync()
    pod = cluster.child("Deployment", "demo-kserve")["spec"]["template"]["spec"]
    assert [c["name"] for c in pod["containers"]] == ["proxy", "main"]


def test_scheduler_template_without_containers_keeps_the_presets() -> None:
    """A template without containers overrides only its own fields."""
    parent = service(router={"scheduler": {"template": {"nodeSelector": {"a": "b"}}}})
    cluster = Cluster(parent)
    cluster.sync()
    pod = cluster.child("Deployment", "demo-kserve-router-scheduler")["spec"]["template"]["spec"]
    assert [c["name"] for c in pod["containers"]] == ["main"]
    assert pod["nodeSelector"] == {"a": "b"}


# Templates.


def test_templates_see_the_merged_spec() -> None:
    """Parallelism of a base reaches the preset's script."""
    base = config(worker={}, parallelism={**DP, "expert": True, "dataRPCPort": 7777})
    cluster = Cluster(service(baseRefs=[{"name": "base"}]), base)
    cluster.sync()
    group = cluster.child("LeaderWorkerSet", "demo-kserve-mn")["spec"]["leaderWorkerTemplate"]
    script = group["leaderTemplate"]["spec"]["containers"][0]["command"][2]
    assert "--enable-expert-parallel" in script
    assert "--data-parallel-rpc-port 7777" in script
    assert "--tensor-parallel-size" not in script


def test_users_may_write_templates() -> None:
    """Every string of the spec may be a template."""
    value = "tcp://{{ ChildName .ObjectMeta.Name `-epp-service` }}:5557"
    pod = {"containers": [{"name": "main", "env": [{"name": "EVENTS", "value": value}]}]}
    assert {"name": "EVENTS", "value": "tcp://demo-epp-service:5557"} in main(Cluster(service(template=pod)))["env"]


def test_keeps_quotes_in_a_model_name() -> None:
    """Strings are rendered one by one, so quotes need no escaping."""
    assert served_as(Cluster(service(model={"uri": "hf://a/b", "name": 'a"b\\c'}), settings=V017)) == 'a"b\\c'


def test_a_replaced_command_is_never_rendered() -> None:
    """Merging comes before rendering, so a replaced template may refer to fields that are not set."""
    parent = service(
        worker={"containers": [{"name": "main", "command": ["sim"]}]},
        template={"containers": [{"name": "main", "command": ["sim"]}]},
        parallelism=DP,
        baseRefs=[{"name": "base"}],
    )
    broken = {"containers": [{"name": "main", "command": ["{{ .Spec.Prefill.Replicas }}"]}]}
    cluster = Cluster(parent, config(template=broken, worker=broken))
    cluster.sync()
    assert cluster.says("PresetsCombined") == "True"


def test_a_broken_template_names_config_place_and_line() -> None:
    """The message names the config, the field and the line."""
    pod = {"containers": [{"name": "main", "args": ["fine", "first\n{{ .Spec.Nothing }}"]}]}
    message = problem(Cluster(service(baseRefs=[{"name": "base"}]), config(template=pod)))
    place = "LLMInferenceServiceConfig default/base: spec.template.containers[0].args[1], line 2"
    assert message.startswith(f"{place}: .Spec.Nothing does not exist")


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (
            "{{ .GlobalConfig.StorageConfig }}",
            "fields are SystemNamespace, IngressGatewayNamespace, IngressGatewayName",
        ),
        ("{{ .Status.URL }}", "must not depend on its own status"),
        ("{{ .Spec.Prefill.Replicas }}", "Prefill is not set"),
        ("{{ .Labels.team }}", "team is not set"),
        ("{{ .NonExistent }}", "does not exist"),
        ("{{", "unclosed action"),
    ],
)
def test_what_templates_cannot_see(template: str, message: str) -> None:
    """Fields that do not exist or are not set are errors."""
    pod = {"containers": [{"name": "main", "args": [template]}]}
    assert message in problem(Cluster(service(baseRefs=[{"name": "base"}]), config(template=pod)))


@pytest.mark.parametrize(("field", "is_set"), [("Prefill", True), ("Parallelism", True), ("Worker", False)])
def test_an_object_that_is_set_is_true(field: str, is_set: bool) -> None:
    """An empty object is true, as in Go, where it is a pointer."""
    pod = {"containers": [{"name": "main", "args": [f"{{{{ if .Spec.{field} }}}}set{{{{ else }}}}not{{{{ end }}}}"]}]}
    cluster = Cluster(service(prefill={}, parallelism={}, template=pod))
    assert main(cluster)["args"] == ["set" if is_set else "not"]


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ .Name }}/{{ .Namespace }}", "demo/default"),
        ("{{ .ObjectMeta.Annotations }}", "map[]"),
        ("{{ .Spec.Model.URI }}", "hf://facebook/opt-125m"),
        ("{{ .Spec.Replicas }} {{ .Spec.Model.Name }}", "<nil> demo"),
        ("{{ .Spec.Labels.team }}", "ml"),
        ("{{ .GlobalConfig.IngressGatewayNamespace }}", "kserve"),
        ("{{ if .Spec.Router }}r{{ else }}none{{ end }}", "none"),
        ("{{ len .Spec.Template.Containers }}", "1"),
        ("{{ .Kind }} {{ .Generation }}", "LLMInferenceService 1"),
    ],
)
def test_what_templates_see(template: str, text: str) -> None:
    """Templates can read the metadata, the spec by Go's field names, and the operator's configuration."""
    pod = {"containers": [{"name": "main", "args": [template]}]}
    assert main(Cluster(service(template=pod, labels={"team": "ml"})))["args"] == [text]


# Scheduler configuration by reference.


def config_map(name: str, namespace: str = "default", **data: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


def picker_text(cluster: Cluster) -> str:
    cluster.sync()
    pod = cluster.child("Deployment", "demo-kserve-router-scheduler")["spec"]["template"]["spec"]
    args = pod["containers"][0]["args"]
    return str(args[args.index("--config-text") + 1])


def referring(name: str, key: str = "", **spec: Any) -> Json:
    return service(router={"scheduler": {"config": {"ref": {"name": name, "key": key}}}}, **spec)


@pytest.mark.parametrize(
    ("key", "document", "text"),
    [
        ("", config_map("c", epp="kind: A"), "kind: A"),
        ("other", config_map("c", other="kind: B"), "kind: B"),
    ],
)
def test_scheduler_config_is_taken_as_it_is(key: str, document: Json, text: str) -> None:
    """The value of the key is used unchanged; the key defaults to ``epp``."""
    assert picker_text(Cluster(referring("c", key), document)) == text


def test_scheduler_config_of_the_system_namespace() -> None:
    """Only names that begin with config-scheduler- are also looked up there."""
    assert (
        picker_text(Cluster(referring("config-scheduler-x"), config_map("config-scheduler-x", "kserve", epp="kind: S")))
        == "kind: S"
    )
    assert 'ConfigMap "default/c" not found' in problem(Cluster(referring("c"), config_map("c", "kserve", epp="s")))


def test_scheduler_config_key_that_is_missing() -> None:
    assert "has no key epp" in problem(Cluster(referring("c"), config_map("c", other="x")))


def test_inline_of_the_service_beats_a_reference_of_a_base() -> None:
    """The last layer that sets either of the two wins."""
    base = config(router={"scheduler": {"config": {"ref": {"name": "c", "key": "epp"}}}})
    parent = service(baseRefs=[{"name": "base"}], router={"scheduler": {"config": {"inline": {"kind": "Mine"}}}})
    assert picker_text(Cluster(parent, base, config_map("c", epp="base"))) == '{"kind":"Mine"}'


# The route.


def backends(cluster: Cluster) -> list[tuple[str, str]]:
    cluster.sync()
    rules = cluster.child("HTTPRoute", "demo-kserve-route")["spec"]["rules"]
    return [(ref["kind"], ref["name"]) for rule in rules for ref in rule["backendRefs"]]


def test_without_scheduler_every_backend_is_the_service() -> None:
    """There must be no references to a pool that is not created."""
    assert backends(Cluster(service(router={"route": {}}), gateway())) == [("Service", "demo-kserve-workload-svc")] * 12


def test_a_pool_of_the_users_own_takes_the_place_of_the_managed_one() -> None:
    pool = {"scheduler": {"pool": {"ref": {"name": "mine"}}}}
    targets = backends(Cluster(service(router={"route": {}, **pool}), gateway(), settings=V017))
    assert targets == [("InferencePool", "mine"), ("InferencePool", "mine"), ("Service", "demo-kserve-workload-svc")]


def test_gateway_refs_become_the_routes_parents() -> None:
    """A missing namespace stays missing, which means the service's namespace."""
    refs = [{"name": "g", "namespace": "infra"}, {"name": "h"}]
    cluster = Cluster(
        service(router={"route": {}, "gateway": {"refs": refs}}), gateway("g", "infra"), gateway("h", "default")
    )
    cluster.sync()
    parents = cluster.child("HTTPRoute", "demo-kserve-route")["spec"]["parentRefs"]
    group = {"group": "gateway.networking.k8s.io", "kind": "Gateway"}
    assert parents == [{**group, "name": "g", "namespace": "infra"}, {**group, "name": "h"}]


def test_rules_that_only_the_api_server_put_in_do_not_replace_the_presets() -> None:
    """The API server adds default rules to hostnames; these do not count as rules of the user (KS-4.1)."""
    stub = [{"matches": [{"path": {"type": "PathPrefix", "value": "/"}}]}]
    route = {"http": {"spec": {"hostnames": ["a.example.com"], "rules": stub}}}
    cluster = Cluster(service(router={"route": route}), gateway())
    assert len(backends(cluster)) == 12
    assert cluster.child("HTTPRoute", "demo-kserve-route")["spec"]["hostnames"] == ["a.example.com"]


def test_parts_of_pools_merge_and_versions_mix() -> None:
    """A config of v1alpha1 is converted by the API server; the child is an InferencePool of v1."""
    old = config("old", router={"scheduler": {"pool": {"spec": {"selector": {"a": "1"}, "targetPortNumber": 9000}}}})
    old = convert({**old, "apiVersion": V1ALPHA1}, V1ALPHA2)
    new = config("new", router={"scheduler": {"pool": {"spec": {"selector": {"matchLabels": {"b": "2"}}}}}})
    cluster = Cluster(service(baseRefs=[{"name": "old"}, {"name": "new"}], router={"scheduler": {}}), old, new)
    cluster.sync()
    spec = cluster.child("InferencePool", "demo-inference-pool")["spec"]
    assert spec["targetPorts"] == [{"number": 9000}]
    assert {"a": "1", "b": "2"}.items() <= spec["selector"]["matchLabels"].items()
    assert spec["endpointPickerRef"]["port"] == {"number": 9002}


# Errors.


@pytest.mark.parametrize(
    ("base", "message"),
    [
        (config("other"), "LLMInferenceServiceConfig 'base' is neither in namespace default nor in kserve"),
        (config(template={"containers": "x"}), "LLMInferenceServiceConfig default/base: spec.template.containers"),
        (config(worker={}), "spec.worker"),
        (
            config(
                template={
                    "containers": [
                        {
                            "name": "main",
                            "volumeMounts": [{"name": "a", "mountPath": "/x"}, {"name": "b", "mountPath": "/x"}],
                        }
                    ],
                    "volumes": [{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}],
                }
            ),
            "",
        ),
        (config(router={"route": {"http": {"refs": [{"name": "r"}], "spec": {}}}}), "spec.router.route.http"),
    ],
)
def test_a_base_that_cannot_be_used(base: Json, message: str) -> None:
    """If a base is missing or invalid, or the merged spec breaks a rule, no children are created."""
    cluster = Cluster(service(baseRefs=[{"name": "base"}]), base)
    if message:
        assert message in problem(cluster)
        assert cluster.answer["children"] == []
    else:
        assert len([m for m in main(cluster)["volumeMounts"] if m["mountPath"] == "/x"]) == 1


def test_a_running_service_is_kept_when_its_base_goes() -> None:
    """Children stay unchanged, and ``Ready`` has the reason."""
    parent = service(baseRefs=[{"name": "base"}])
    cluster = Cluster(parent, config())
    before = cluster.settle()["children"]
    cluster.related.clear()
    cluster.sync()
    assert cluster.answer["children"] == before
    assert cluster.says("Ready") == "ConfigNotFound"

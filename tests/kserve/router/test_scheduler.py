"""The endpoint picker (KS-4.3 and KS-4.4)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from app.kserve.llminferenceservice.types import SchedulerSpec
from app.kserve.names import Names
from app.kserve.router import scheduler
from app.kserve.router.scheduler import plan_scheduler
from app.kserve.spec.pickerconfig import Picker, picker_config
from app.kserve.workload.children import accounts
from app.kserve.workload.plan import AccountPlan, DeploymentPlan
from app.kube.base import Json
from app.kube.objects import ObservedDeployment

NAMES = Names("demo")
BASE = {
    "app.kubernetes.io/name": "demo",
    "app.kubernetes.io/part-of": "llminferenceservice",
    "app.kubernetes.io/component": "llminferenceservice-router-scheduler",
}


def plan(
    *,
    config: Any = None,
    disaggregated: bool = False,
    adapters: bool = False,
    picker: Picker = Picker(),  # noqa: B008 - frozen
    rbac: bool = True,
    observed: ObservedDeployment | None = None,
    args: list[str] | None = None,
    pod: Json | None = None,
    **spec: Any,
) -> tuple[DeploymentPlan, AccountPlan]:
    main: Json = {"name": "main", **({"args": args} if args is not None else {})}
    template = {"containers": [main], **(pod or {})}
    return plan_scheduler(
        NAMES,
        SchedulerSpec(template=template, **spec),
        picker_config(config, picker, disaggregated=disaggregated, adapters=adapters),
        managed_account=rbac,
        observed=observed,
    )


def args_of(planned: tuple[DeploymentPlan, AccountPlan]) -> list[str]:
    arguments: list[str] = planned[0].pod.spec["containers"][0].get("args", [])
    return arguments


def live(spec: Json, sent: Json | None = None) -> ObservedDeployment:
    """Return an observed Deployment; ``sent`` is the spec in Metacontroller's record."""
    record = {"kind": "Deployment", "spec": sent} if sent is not None else None
    notes = {"metacontroller.k8s.io/last-applied-configuration": json.dumps(record)} if record else {}
    document = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "demo-kserve-router-scheduler", "annotations": notes},
        "spec": spec,
    }
    return msgspec.json.decode(json.dumps(document), type=ObservedDeployment)


# Arguments.


@pytest.mark.parametrize("disaggregated", [False, True])
def test_a_loaded_adapter_counts_most(disaggregated: bool) -> None:
    """The scorer for adapters follows the filter of its profile, and precedes the other scorers."""
    document = json.loads(args_of(plan(disaggregated=disaggregated, adapters=True))[1])
    assert {"type": "lora-affinity-scorer"} in document["plugins"]
    for profile in document["schedulingProfiles"]:
        scorers = [plugin for plugin in profile["plugins"] if "weight" in plugin]
        assert scorers[0] == {"pluginRef": "lora-affinity-scorer", "weight": 4}
        assert len(profile["plugins"]) == (5 if disaggregated else 4)


@pytest.mark.parametrize(
    ("disaggregated", "handler"), [(False, "single-profile-handler"), (True, "pd-profile-handler")]
)
def test_the_default_configuration_follows_the_topology(disaggregated: bool, handler: str) -> None:
    """With prefill there is one profile per side, and every request is disaggregated."""
    flag, text = args_of(plan(disaggregated=disaggregated))
    document = json.loads(text)
    plugins = {plugin["type"]: plugin for plugin in document["plugins"]}
    assert flag == "--config-text"
    assert handler in plugins
    assert [profile["name"] for profile in document["schedulingProfiles"]] == (
        ["prefill", "decode"] if disaggregated else ["default"]
    )
    if disaggregated:
        assert plugins[handler]["parameters"] == {"threshold": 0}


@pytest.mark.parametrize(
    ("config", "text"),
    [({"b": [1, 2], "a": {"z": 1, "y": "ü"}}, '{"a":{"y":"ü","z":1},"b":[1,2]}'), ("a: 1\n", "a: 1\n")],
)
def test_uses_a_users_configuration(config: Any, text: str) -> None:
    """An inline configuration is sent as compact JSON with sorted keys, one from a ConfigMap unchanged."""
    assert args_of(plan(config=config, args=["--v", "1"])) == ["--v", "1", "--config-text", text]


@pytest.mark.parametrize(
    "flag",
    ["--config-text", "-config-text", "--configText", "-configText", "--config-file", "-config-file", "--configFile"],
)
def test_a_configuration_in_the_template(flag: str) -> None:
    """The user's flag is kept, and no second one is added."""
    assert args_of(plan(args=[flag, "x"])) == [flag, "x"]


@pytest.mark.parametrize("args", [["--config-text=x"], ["--config-file"]])
def test_ignores_other_arguments(args: list[str]) -> None:
    """Only a flag whose value is a separate argument is recognized."""
    assert args_of(plan(args=args))[len(args)] == "--config-text"


def test_a_configuration_beside_a_flag_in_the_template() -> None:
    """The configuration of the spec is appended: the last flag wins."""
    assert args_of(plan(config="new", args=["--config-text", "old"])) == [
        "--config-text",
        "old",
        "--config-text",
        "new",
    ]


@pytest.mark.parametrize(
    ("replicas", "args", "elected"),
    [
        (None, [], False),
        (1, [], False),
        (2, [], True),
        (2, ["--ha-enable-leader-election"], False),
        (2, ["-ha-enable-leader-election"], False),
    ],
)
def test_several_of_them_elect_a_leader(replicas: int | None, args: list[str], elected: bool) -> None:
    """The flag is added once, before the configuration."""
    given = args_of(plan(replicas=replicas, args=args))
    assert given[: len(args) + 1] == [*args, "--ha-enable-leader-election" if elected else "--config-text"]


def test_only_the_main_container_gets_arguments() -> None:
    """Other containers are unchanged, even if the template has no main container."""
    assert plan(pod={"containers": [{"name": "side"}]})[0].pod.spec == {
        "containers": [{"name": "side"}],
        "serviceAccountName": "demo-epp-sa",
    }


# Labels, replicas, accounts.


def test_labels_for_pods_only() -> None:
    """Labels in the spec are set on pods, not on the Deployment or its immutable selector."""
    planned = plan(labels={"a": "b"}, annotations={"c": "d"})
    built = scheduler.scheduler_deployment(planned[0], "ns")
    assert built["metadata"]["labels"] == BASE
    assert built["spec"]["selector"]["matchLabels"] == BASE
    assert built["spec"]["template"]["metadata"] == {"labels": {**BASE, "a": "b"}, "annotations": {"c": "d"}}
    assert built["spec"]["strategy"] == {"type": "Recreate"}


def test_the_selector_follows_a_label_that_the_user_replaces() -> None:
    """Otherwise the Deployment would not select its pods."""
    assert plan(labels={"app.kubernetes.io/name": "x"})[0].selector == {**BASE, "app.kubernetes.io/name": "x"}


def test_an_observed_selector_is_kept_while_the_pods_satisfy_it() -> None:
    """A selector is immutable, and one from another operator may have more keys."""
    selector = {**BASE, "a": "b"}
    observed = live({"selector": {"matchLabels": selector}})
    assert plan(labels={"a": "b"}, observed=observed)[0].selector == selector
    assert plan(labels={"a": "c"}, observed=observed)[0].selector == BASE


@pytest.mark.parametrize(
    ("wanted", "observed", "sent"),
    [
        (3, None, 3),
        (3, live({"replicas": 5}, {"replicas": 5}), 3),
        (None, None, None),
        (None, live({"replicas": 5}, {}), None),
        (None, live({"replicas": 5}, {"replicas": 1}), 5),
        (None, live({"replicas": 5}), None),
    ],
)
def test_replicas_that_nobody_set_are_sent_as_observed(
    wanted: int | None, observed: ObservedDeployment | None, sent: int | None
) -> None:
    """Without a number in the spec, replicas are not sent; once sent, they are sent as observed."""
    assert plan(replicas=wanted, observed=observed)[0].replicas == sent


@pytest.mark.parametrize(
    ("named", "rbac", "account", "managed"),
    [
        ("", True, "demo-epp-sa", True),
        ("demo-epp-sa", True, "demo-epp-sa", True),
        ("mine", True, "mine", False),
        ("", False, "", False),
        ("mine", False, "mine", False),
        ("demo-epp-sa", False, "", False),
    ],
)
def test_the_pickers_account_is_the_users_or_a_managed_one(named: str, rbac: bool, account: str, managed: bool) -> None:
    """The managed account is only used if ServiceAccounts are declared; an account that the user names always is."""
    planned = plan(rbac=rbac, pod={"serviceAccountName": named} if named else {})
    assert (planned[1].account, planned[1].managed) == (account, managed)
    assert planned[0].pod.spec.get("serviceAccountName", "") == account


@pytest.mark.parametrize("named", ["", "mine"])
def test_the_pickers_account_gets_a_role(named: str) -> None:
    """Role and binding are created for any account, the account only if the user names none."""
    objects = accounts(plan(pod={"serviceAccountName": named} if named else {})[1], "ns")
    kinds = {item["kind"]: item for item in objects}
    assert ("ServiceAccount" in kinds) is (not named)
    assert kinds["RoleBinding"]["subjects"] == [
        {"kind": "ServiceAccount", "name": named or "demo-epp-sa", "namespace": "ns"}
    ]
    assert kinds["RoleBinding"]["roleRef"]["name"] == kinds["Role"]["metadata"]["name"] == "demo-epp-role"
    granted = {
        (group, resource)
        for rule in kinds["Role"]["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert {
        ("", "pods"),
        ("coordination.k8s.io", "leases"),
        ("inference.networking.k8s.io", "inferencepools"),
    } <= granted


# The Service.


def ports(*containers: list[Json]) -> dict[str, int]:
    pod = {"containers": [{"name": str(n), "ports": list(listed)} for n, listed in enumerate(containers)]}
    service = scheduler.scheduler_service(plan(pod=pod)[0], NAMES.scheduler_service, "ns")
    return {port["name"]: port["port"] for port in service["spec"]["ports"]}


def port(name: str, number: int, **more: str) -> Json:
    return {"name": name, "containerPort": number, **more}


def test_service_ports() -> None:
    """Ports of all containers that have a known name, sorted by name."""
    assert list(ports([port("zmq", 5557), port("grpc", 9002)], [port("metrics", 9090), port("other", 1)]).items()) == [
        ("grpc", 9002),
        ("metrics", 9090),
        ("zmq", 5557),
    ]


def test_ports_that_clash() -> None:
    """For duplicate names, the last container's port wins; each number occurs once."""
    assert ports([port("metrics", 9999)], [port("metrics", 9090)]) == {"metrics": 9090}
    assert ports([port("grpc", 9002), port("metrics", 9002)]) == {"grpc": 9002}


def test_the_service_selects_by_the_base_labels() -> None:
    """The target port is a name, so that pods may use another number."""
    main: Json = {"name": "main", "ports": [port("grpc", 1, protocol="UDP")]}
    planned = plan(labels={"a": "b"}, pod={"containers": [main]})
    service = scheduler.scheduler_service(planned[0], NAMES.scheduler_service, "ns")
    assert service["spec"] == {
        "selector": BASE,
        "ports": [{"name": "grpc", "port": 1, "targetPort": "grpc", "protocol": "UDP"}],
    }

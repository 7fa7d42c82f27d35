"""Properties of every service: each sync answers, the answers converge, and no child is lost."""

from __future__ import annotations

import copy
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kube.base import Json
from tests.builders import NOW
from tests.kserve.objects import OPTIONAL_KINDS, RBAC_KINDS, Cluster, admit, config, gateway, service

pytestmark = pytest.mark.no_cover

names = st.sampled_from(["main", "side", "a", "b"])
texts = st.sampled_from(["", "x", "{{ .Name }}", "{{ .Spec.Model.Name }}", "{{ .Nothing }}", "{{", "1", "ü"])
env = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from(["HOME", "A", "B"])}, optional={"value": texts}), max_size=3
)
containers = st.lists(
    st.fixed_dictionaries(
        {"name": names},
        optional={
            "image": texts,
            "env": env,
            "args": st.lists(texts, max_size=2),
            "ports": st.lists(st.fixed_dictionaries({"containerPort": st.integers(1, 3)}), max_size=2),
            "resources": st.fixed_dictionaries(
                {"limits": st.dictionaries(names, st.sampled_from(["1", "1000m", "1Gi"]))}
            ),
            "livenessProbe": st.sampled_from([{"periodSeconds": 3}, {"exec": {"command": ["true"]}}, {}]),
            "volumeMounts": st.lists(
                st.fixed_dictionaries({"name": names, "mountPath": st.sampled_from(["/home", "/x"])}), max_size=2
            ),
        },
    ),
    max_size=3,
)
pods = st.fixed_dictionaries(
    {},
    optional={
        "containers": containers,
        "initContainers": containers,
        "serviceAccountName": st.sampled_from(["", "mine", "demo-kserve"]),
        "volumes": st.lists(
            st.fixed_dictionaries(
                {"name": names}, optional={"emptyDir": st.just({}), "secret": st.just({"secretName": "s"})}
            ),
            max_size=2,
        ),
        "nodeSelector": st.dictionaries(names, texts, max_size=2),
    },
)
parallelism = st.fixed_dictionaries(
    {},
    optional={
        "data": st.integers(1, 8),
        "dataLocal": st.integers(1, 4),
        "pipeline": st.integers(1, 3),
        "tensor": st.integers(1, 2),
        "expert": st.booleans(),
    },
)
labels = st.dictionaries(st.sampled_from(["team", "app.kubernetes.io/name"]), st.sampled_from(["x", "y"]), max_size=2)
workload: Json = {
    "replicas": st.integers(0, 3),
    "parallelism": parallelism,
    "labels": labels,
    "annotations": labels,
    "template": pods,
    "worker": pods,
}
rules = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "matches": st.lists(st.just({"headers": [{"name": "h", "value": "v"}]}), max_size=1),
            "backendRefs": st.lists(
                st.fixed_dictionaries({"name": st.sampled_from(["s", "demo-inference-pool"]), "port": st.just(8000)}),
                max_size=2,
            ),
        },
    ),
    max_size=2,
)
refs = st.lists(st.fixed_dictionaries({"name": st.sampled_from(["r", ""])}), max_size=1)
router = st.fixed_dictionaries(
    {},
    optional={
        "route": st.fixed_dictionaries(
            {},
            optional={
                "http": st.fixed_dictionaries(
                    {}, optional={"refs": refs, "spec": st.fixed_dictionaries({}, optional={"rules": rules})}
                )
            },
        ),
        "gateway": st.fixed_dictionaries(
            {}, optional={"refs": st.lists(st.fixed_dictionaries({"name": st.just("g")}), max_size=2)}
        ),
        "scheduler": st.fixed_dictionaries(
            {},
            optional={
                "template": pods,
                "replicas": st.integers(0, 3),
                "labels": labels,
                "pool": st.fixed_dictionaries({}, optional={"ref": st.just({"name": "p"})}),
                "config": st.fixed_dictionaries(
                    {},
                    optional={"inline": st.dictionaries(names, texts), "ref": st.just({"name": "c", "key": ""})},
                ),
            },
        ),
    },
)
specs = st.fixed_dictionaries(
    {},
    optional={
        **workload,
        "prefill": st.fixed_dictionaries({}, optional=workload),
        "router": router,
        "baseRefs": st.lists(st.sampled_from([{"name": "base"}, {"name": "gone"}]), max_size=2),
        "storageInitializer": st.fixed_dictionaries({}, optional={"enabled": st.booleans()}),
    },
)
uris = st.sampled_from(
    [
        "hf://a/b",
        "s3://b/m",
        "pvc://c/d",
        "oci://r.io/m:1",
        "gs://b/m",
        "https://h/m.tar",
        "hdfs://m",
        "abfs://m/x",
        "",
        "x",
    ]
)
optional_kinds = st.sampled_from([frozenset[str](), OPTIONAL_KINDS, OPTIONAL_KINDS | RBAC_KINDS])

many = settings(max_examples=120)


def cluster(spec: Json, base: Json, uri: str, optional: frozenset[str]) -> Cluster:
    return Cluster(
        service(uri=uri, **copy.deepcopy(spec)),
        config(**copy.deepcopy(base)),
        gateway(),
        gateway("g", "default"),
        optional=optional,
    )


@many
@given(specs, specs, uris, optional_kinds)
def test_every_spec_is_answered_and_comes_to_rest(spec: Json, base: Json, uri: str, optional: frozenset[str]) -> None:
    """No spec or base causes an exception; answers repeat, and names are unique."""
    seen = cluster(spec, base, uri, optional)
    seen.sync()
    first = seen.sync()
    assert seen.sync() == first
    identities = [(child["kind"], child["metadata"]["name"]) for child in first["children"]]
    assert len(set(identities)) == len(identities)
    assert {child["metadata"]["namespace"] for child in first["children"]} <= {"default"}
    assert {"Ready", "WorkloadsReady", "RouterReady"} <= {c["type"] for c in first["status"]["conditions"]}


@many
@given(specs, uris)
def test_selectors_fit_their_pods(spec: Json, uri: str) -> None:
    """The API server refuses a Deployment whose selector does not match its pods."""
    seen = cluster(spec, {}, uri, OPTIONAL_KINDS)
    for child in seen.sync()["children"]:
        if child["kind"] == "Deployment":
            pods_labels = child["spec"]["template"]["metadata"]["labels"]
            assert child["spec"]["selector"]["matchLabels"].items() <= pods_labels.items()


@many
@given(specs, specs, uris)
def test_times_move_only_with_status(spec: Json, base: Json, uri: str) -> None:
    """If nothing changes, the status is the same an hour later."""
    seen = cluster(spec, base, uri, OPTIONAL_KINDS)
    seen.settle()
    before = seen.answer["status"]
    assert seen.sync(NOW + timedelta(hours=1))["status"] == before


@many
@given(specs, uris)
def test_what_admission_accepts_is_synced(spec: Json, uri: str) -> None:
    """``Ready`` is InvalidSpec exactly if admission reports errors."""
    parent = service(uri=uri, **spec)
    verdict = admit(parent)
    seen = Cluster(parent, gateway(), gateway("g", "default"))
    seen.sync()
    assert (seen.says("Ready") == "InvalidSpec") == bool(verdict.errors)


@many
@given(specs, specs, uris)
def test_a_broken_spec_keeps_every_child(spec: Json, base: Json, uri: str) -> None:
    """An unusable spec changes no child."""
    seen = cluster(spec, base, uri, OPTIONAL_KINDS)
    before = sorted(seen.settle()["children"], key=_identity)
    seen.parent = {**seen.parent, "spec": {"model": {"uri": 5}}}
    seen.sync()
    assert sorted(seen.answer["children"], key=_identity) == before


def _identity(child: Json) -> tuple[str, str]:
    return child["kind"], child["metadata"]["name"]

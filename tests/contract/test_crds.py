"""The CRDs match upstream's in every property, type, enumeration, default, bound, requirement and rule.

Intended differences are in :data:`REVIEWED`, with their reasons. Any other difference fails, and so does an entry of
:data:`REVIEWED` without a difference.
"""

from __future__ import annotations

import functools
import re

import pytest

from app.families import RESOURCES
from app.kube.base import Json
from app.kube.resource import CustomResource
from app.llmkube.kinds import MODEL
from app.llmkube.model.types import SOURCE_PATTERN
from tests.contract.recordings import FAMILIES, records
from tests.contract.schemas import Properties, below, differences, properties
from tools import structural
from tools.crds import custom_resource_definition

METACONTROLLER = "Metacontroller writes it, and it must not be pruned"
CONDITIONS = "conditions are a map by type, and their status is one of three words; nothing bounds what others wrote"
TEMPLATED = "a config may hold a template here, as in upstream's v1alpha2, or a part"
QUANTITY = "the texts that Kubernetes reads as quantities, without upstream's regular expression"
NEWER = "a field of KServe v0.18 to v0.20"
CONFIGS = "llminferenceserviceconfigs"
SERVICES = "llminferenceservices"

NEWER = (
    "affinity|bindAddress|disruption|endpoint\\.(gateway|nodePort)|extraVolumes|extraVolumeMounts|hotCacheMaxSize|"
    "maxPodLifetime(IdleTimeout)?Seconds|mode|modelCache|pagedSSDCache(Dir|MaxSize)|"
    "resources\\.(ephemeralStorage|gpuSharing)|revisionHistoryLimit|rolloutPolicy|sglangConfig|slo|suspend|"
    "speculativeDecoding|topologySpreadConstraints|turboQuantBits"
)
"""Fields of an InferenceService that LLMKube v0.9 added."""

REVIEWED: dict[tuple[str, str, str], str] = {
    (".*", r"status\.observedGeneration", "property"): METACONTROLLER,
    (
        ".*",
        "status",
        "default",
    ): "a program that waits by the rules of kstatus takes an object without a status for ready",
    ("models", r"status\.cacheClaim", "property"): "a Model that is made again may have to take another claim",
    ("models", r"spec\.source", "pattern"): "the same texts, with \\w and \\s written out (test_both_patterns_agree)",
    ("inferenceservices", f"spec\\.({NEWER})([.\\[].*)?", "property"): "a field of LLMKube v0.9",
    ("inferenceservices", r"status\.(mode|acceleration|gateway).*", "property"): "a field of LLMKube v0.9",
    ("inferenceservices", r"status\.selector", "property"): "autoscalers of the scale subresource need it",
    ("inferenceservices", r"spec\.(runtime|vllmConfig\.quantization)|status\.phase", "enum"): "values of LLMKube v0.9",
    (
        "models",
        r"(spec|status)\.(files|mmproj|prefetch|sourceSecretRef|stagedFiles|hardware\.gpu\.(resource(Name|Claims)|tolerationKey|runtime))([.\[].*)?",
        "property",
    ): "a field of LLMKube v0.9",
    ("models", r"spec\.hardware\.accelerator", "enum"): "a value of LLMKube v0.9",
    (
        "models",
        r"status\.(quantization|gguf\.(headCountKv|parameterCount|keyLength|valueLength|slidingWindow|kvLoraRank))",
        "property",
    ): "surfaced here",
    ("services", r"status\.readyReplicas", "property"): "a Playground counts them while nothing can be changed",
    ("services", r"spec\.rolloutStrategy", "default"): "the hook takes the same default; nothing is written",
    ("services", r"spec\.rolloutStrategy", "required"): "its one required field has a default",
    ("backendruntimes|openmodels|playgrounds|services", r"status\.conditions.*", ".*"): CONDITIONS,
    ("backendruntimes|openmodels|playgrounds|services", ".*", "pattern"): QUANTITY,
    ("playgrounds|services", "status", "required"): "whoever writes a part of a status must not be refused",
    ("backendruntimes", r"spec\.recommendedConfigs\[\]\.paramArgs.*", "property"): "arguments that follow the flavor",
    (SERVICES, r".*\.selector(\.matchLabels)?\{\}|.*\.endpointPickerRef\.group", "minLength"): "it may be empty",
    (f"{SERVICES}|{CONFIGS}", r"status\.conditions", "x-kubernetes-list-.*"): CONDITIONS,
    (f"{SERVICES}|{CONFIGS}", r"status\.conditions\[\]\.status", "enum"): CONDITIONS,
    (CONFIGS, r"spec\.model", "required"): "a config may give a model's name alone",
    (CONFIGS, r".*\.parentRefs\[\]\.namespace", "pattern|minLength|maxLength"): TEMPLATED,
    (CONFIGS, r".*\.(parentRefs|backendRefs)\[\]\.name", "maxLength"): TEMPLATED,
    (CONFIGS, r".*\.matches\[\]\.headers\[\]\.name", "pattern"): f"{TEMPLATED} from v0.20 on",
    (CONFIGS, r".*\.path\.(value|replaceFullPath|replacePrefixMatch)", "maxLength"): TEMPLATED,
    (CONFIGS, r".*\.(urlRewrite|matches\[\])\.path", "rules"): TEMPLATED,
    (CONFIGS, r"spec\.router\.scheduler\.pool\.spec", "required"): "a config may give a part of a pool",
    (CONFIGS, r"spec\.router\.scheduler\.pool\.spec\..*", ".*Length|minItems|pattern"): TEMPLATED,
    (CONFIGS, r"status.*", "property|type"): "upstream's configs have no status; Metacontroller needs one",
    (f"{SERVICES}|{CONFIGS}", r".*\.variantCost", "pattern"): "the same texts: \\d takes other digits outside of Go",
    (
        f"{SERVICES}|{CONFIGS}",
        r"spec\.(tracing|(prefill\.)?kvCacheOffloading|model\.confidential).*",
        "property",
    ): NEWER,
    (f"{SERVICES}|{CONFIGS}", r"spec\.(model\.lora\.max|router\.(route\.(group|weight)|gateway)).*", "property"): NEWER,
    (
        f"{SERVICES}|{CONFIGS}",
        r".*filters\[\]\.(type|requestRedirect\.statusCode)",
        "enum",
    ): "values of Gateway API 1.5",
    (f"{SERVICES}|{CONFIGS}", r"spec\.router\.scheduler\.(tokenizer.*|pool\.spec\.appProtocol)", "property"): NEWER,
    (SERVICES, r"status\.(address(es\[\])?\.(models|origin)|appliedConfigs|workloads|router).*", "property"): NEWER,
    (f"{SERVICES}|{CONFIGS}", r".*\.(group|name)", "default"): "an empty text is what absent means",
    (f"{SERVICES}|{CONFIGS}", r".*\.matches\[\]\.path", "default"): "completed before the route is sent",
    (f"{SERVICES}|{CONFIGS}", r".*\.forwardBody\.maxSize", "format|minimum"): "an unsigned 16-bit number in Go",
    (f"{SERVICES}|{CONFIGS}", r".*\.keda\.fallback\.\w+", "minimum"): "KEDA refuses less than 0",
    (f"{SERVICES}|{CONFIGS}", r".*\.keda\.idleReplicaCount", "minimum"): "0 is KEDA's only value; KServe has merged it",
}
"""Reason of a difference by plural, path and aspect, which are patterns."""

ADDED_COLUMNS = {("models", "Quantization")}
"""Columns of ``-o wide`` that upstream does not have."""

ADDED_SCALE = {SERVICES, "inferenceservices"}
"""Kinds with a scale subresource here, but not upstream, or with a selector in it."""

VERSIONS = [version for resource in RESOURCES for version in (resource, *resource.older)]
resources = pytest.mark.parametrize("resource", VERSIONS, ids=lambda resource: f"{resource.plural}-{resource.version}")


@functools.cache
def recorded() -> dict[str, Json]:
    """Return the CRDs of the compared releases, by name."""
    return {crd["name"]: crd for crd in records("crds") if crd["source"] in FAMILIES}


def upstream(resource: CustomResource) -> tuple[Json, Json]:
    """Return the recorded CRD, and its version that is served here."""
    crd = recorded()[f"{resource.plural}.{resource.group}"]
    return crd, next(v for v in crd["versions"] if v["name"] == resource.version)


def here(resource: CustomResource) -> tuple[Json, Json]:
    hub = next(other for other in RESOURCES if other.plural == resource.plural and other.group == resource.group)
    spec = custom_resource_definition(hub)["spec"]
    return spec, next(v for v in spec["versions"] if v["name"] == resource.version)


def ours(resource: CustomResource) -> Properties:
    return properties(here(resource)[1]["schema"]["openAPIV3Schema"])


def compared(resource: CustomResource) -> set[tuple[str, str]]:
    theirs, mine = upstream(resource)[1]["properties"], ours(resource)
    return {difference for difference in differences(theirs, mine) if difference[0].startswith(("spec", "status"))}


def reason(resource: CustomResource, path: str, aspect: str) -> tuple[str, str, str] | None:
    where = (resource.plural, path, aspect)
    return next((row for row in REVIEWED if all(map(re.fullmatch, row, where))), None)


@resources
def test_every_property_agrees(resource: CustomResource) -> None:
    """Only reviewed properties differ."""
    assert {difference for difference in compared(resource) if reason(resource, *difference) is None} == set()


def test_every_reviewed_difference_exists() -> None:
    """A stale entry would hide the next difference there."""
    used = {reason(resource, *difference) for resource in VERSIONS for difference in compared(resource)}
    assert REVIEWED.keys() - used == set()


@resources
def test_names_columns_and_subresources_agree(resource: CustomResource) -> None:
    """``kubectl get`` prints the same table, and ``kubectl scale`` writes the same field."""
    (crd, theirs), (spec, mine) = upstream(resource), here(resource)
    assert (spec["group"], spec["scope"], spec["names"]) == (crd["group"], crd["scope"], crd["names"])
    assert (mine["served"], mine["storage"]) == (True, resource.stored)
    assert [v["name"] for v in spec["versions"]] == [v["name"] for v in crd["versions"]]
    columns = mine.get("additionalPrinterColumns") or []
    if resource.plural == CONFIGS:
        assert mine["subresources"] == {"status": {}}, "Metacontroller refuses a parent without it"
    else:
        added = {"scale": mine["subresources"]["scale"]} if resource.plural in ADDED_SCALE else {}
        assert mine["subresources"] == {**theirs["subresources"], **added}
        agreed = [column for column in columns if (resource.plural, column["name"]) not in ADDED_COLUMNS]
        assert [{k: c[k] for k in ("name", "type", "jsonPath", "priority") if k in c} for c in agreed] == (
            theirs["columns"]
        )


@resources
def test_the_schema_is_structural(resource: CustomResource) -> None:
    """Checked without an API server."""
    assert list(structural.lint(custom_resource_definition(resource))) == []


EMBEDDED = {
    "models": set[str](),
    "openmodels": set[str](),
    "inferenceservices": {
        *("spec.env[]", "spec.tolerations[]", "spec.imagePullSecrets[]"),
        *("spec.probeOverrides.startup", "spec.probeOverrides.liveness", "spec.probeOverrides.readiness"),
        *("spec.podSecurityContext", "spec.securityContext", "spec.vllmConfig.hfTokenSecretRef"),
        *("spec.tgiConfig.hfTokenSecretRef", "spec.personaPlexConfig.hfTokenSecretRef"),
        *("spec.sglangConfig.hfTokenSecretRef", "spec.affinity", "spec.topologySpreadConstraints[]"),
        *("spec.extraVolumes[]", "spec.extraVolumeMounts[]"),
    },
    "backendruntimes": {
        *("spec.envs[]", "spec.lifecycle", "spec.livenessProbe", "spec.readinessProbe", "spec.startupProbe"),
        "spec.recommendedConfigs[].scaleTrigger.hpa.metrics[]",
        "spec.recommendedConfigs[].scaleTrigger.hpa.behavior",
    },
    "playgrounds": {
        "spec.backendRuntimeConfig.envs[]",
        "spec.elasticConfig.scaleTrigger.hpa.metrics[]",
        "spec.elasticConfig.scaleTrigger.hpa.behavior",
    },
    "services": {"spec.workloadTemplate.workerTemplate", "spec.workloadTemplate.leaderTemplate"},
}
"""Kubernetes' own types are open, so that newer fields are not dropped; the webhook checks them."""


@pytest.mark.parametrize("plural", EMBEDDED)
def test_only_kubernetes_own_types_are_open(plural: str) -> None:
    """The API server does not check open objects."""
    resource = next(r for r in RESOURCES if r.plural == plural)
    opened = {path for path, about in ours(resource).items() if about.get("open")}
    assert {path for path in opened if not below(path, opened)} == EMBEDDED[plural]


@pytest.mark.parametrize(
    "text",
    [
        *("https://example.com/a b", "pvc://c/p", "file://", "/a", "/a b", "/a\tb", "/", "a", "ab", "a/b_c-d.e", "a b"),
        *("-a/b", "s3://bucket/key", "hf://a/b", "HTTPS://x", "é/b", "a/é", "/é", "/a\u00a0b", ""),
    ],
)
def test_both_patterns_agree(text: str) -> None:
    """Our pattern of ``source`` accepts the same strings as upstream's, with Go's meaning of its character classes.

    Upstream's is the recorded one with the schemes of v0.9.
    """
    theirs = upstream(MODEL)[1]["properties"]["spec.source"]["pattern"].replace("pvc)", "pvc|hf|s3)")
    assert bool(re.search(SOURCE_PATTERN, text, re.ASCII)) == bool(re.search(theirs, text, re.ASCII))

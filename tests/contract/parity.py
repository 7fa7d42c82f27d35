"""Compares, field by field, the children of a recorded operator with those of the hooks."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from app.desk.cluster.store import outer_key
from app.kube.base import Json
from app.kube.names import LAST_APPLIED
from app.kube.quantity import parse
from app.llmkube.runtimes.registry import runtime
from app.workload.engines.engine import engine_of
from tests.contract.world import NOW_TEXT, World, expanded, key, namespace

_NEVER_COMPARED = re.compile(
    r"metadata\.(uid|resourceVersion|generation|creationTimestamp|managedFields|ownerReferences|finalizers)\b"
    r'|metadata\.annotations\["metacontroller\.k8s\.io/'
    r"|metadata\.labels\.controller-uid"
    r"|^status\.\w+\.observedGeneration$"
)
_LIST_KEYS = ("type", "mountPath", "containerPort", "name", "key", "port")
"""Keys by which list items are paired: the first that all items have."""
_BUILT_IN = ("", "apps", "batch", "autoscaling", "policy", "networking.k8s.io", "rbac.authorization.k8s.io")
_REDACTED = ("<script>", "<message>", "<error>")


@dataclass(frozen=True)
class Difference:
    """A difference at one path. ``side`` is the only one with a value, ``ours`` or ``upstream``; ``value`` for both."""

    path: str
    side: str
    upstream: Any
    ours: Any
    child: str = ""
    """Name of the child; empty for a status."""

    def __str__(self) -> str:
        return f"{self.path} [{self.side}]: upstream {self.upstream!r}, here {self.ours!r}"


@dataclass
class Rules:
    """Reviewed differences. A rule permits a difference if its path and facts match; the difference need not occur."""

    entries: list[Json]
    used: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._patterns = [re.compile(_pattern(entry["path"])) for entry in self.entries]

    def permit(self, path: str, side: str, facts: Json, child: str = "") -> bool:
        """Return whether a rule permits this difference."""
        for number, (pattern, entry) in enumerate(zip(self._patterns, self.entries, strict=True)):
            is_about = re.search(entry.get("child", ""), child) is not None
            if is_about and "arguments" not in entry and self._matches(entry, pattern, path, side, facts):
                self.used[number] += 1
                return True
        return False

    def permit_arguments(self, difference: Difference, facts: Json) -> bool:
        """Return whether a command line differs only in the flags that rules list in ``arguments``.

        ``arguments`` is a list, or the name of a fact that is a list.
        """
        matching = [
            number
            for number, (pattern, entry) in enumerate(zip(self._patterns, self.entries, strict=True))
            if "arguments" in entry and self._matches(entry, pattern, difference.path, difference.side, facts)
        ]
        named = [self.entries[number]["arguments"] for number in matching]
        flags = {flag for names in named for flag in (facts[names] if isinstance(names, str) else names)}
        theirs, mine = difference.upstream or (), difference.ours or ()
        if not flags or _without(theirs, mine, flags) != _without(mine, theirs, flags):
            return False
        self.used.update(matching)
        return True

    @staticmethod
    def _matches(entry: Json, pattern: re.Pattern[str], path: str, side: str, facts: Json) -> bool:
        if entry.get("only", "any") not in ("any", side) or not pattern.fullmatch(path):
            return False
        return all(_holds(facts.get(name), wanted) for name, wanted in entry.get("when", {}).items())


def _pattern(path: str) -> str:
    """Compile a path: ``[*]`` is any item or quoted key, ``*`` one segment, ``**`` any rest."""
    escaped = re.escape(path).replace(r"\[\*\]", r"\[[^\]]*\]")
    return escaped.replace(r"\*\*", ".*").replace(r"\*", r"[^.\[\]]*")


def _without(encoded: tuple[str, ...], other: tuple[str, ...], flags: set[str]) -> list[str]:
    """Return the arguments without the given switches, and without the first of each option that ``other`` lacks.

    If both have an option equally often, the first is removed from both. The flag "" is a model before all flags. Empty
    arguments are ignored.
    """
    arguments: list[str] = [text for item in encoded if (text := json.loads(item))]
    if "" in flags and arguments and not arguments[0].startswith("-"):
        del arguments[0]
    for flag in flags.intersection(arguments):
        at = arguments.index(flag)
        if arguments[at + 1 : at + 2] and not arguments[at + 1].startswith("-"):
            if arguments.count(flag) >= other.count(json.dumps(flag)):
                del arguments[at : at + 2]
        else:
            arguments = [item for item in arguments if item != flag]
    return arguments


def _holds(fact: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return re.search(wanted["regex"], str(fact)) is not None
    return fact in wanted if isinstance(wanted, list) else fact == wanted


def differences(case: Json, world: World, rules: Rules) -> list[Difference]:
    """Return all differences in children, deletions, timers and statuses that no rule permits."""
    about = facts(case)
    all_differences = [*_children(case, world), *_rest(case, world)]
    compared = [d for d in all_differences if not _NEVER_COMPARED.search(d.path)]
    return [
        d for d in compared if not rules.permit(d.path, d.side, about, d.child) and not rules.permit_arguments(d, about)
    ]


def _children(case: Json, world: World) -> Iterator[Difference]:
    declared = world.declared()
    theirs = {key(c): c for c in case["expect"].get("children") or () if outer_key(c) in declared}
    ours = {k: _blurred(_bare(child)) for k, child in world.children().items()}
    pairs = {k: (child, ours.pop(k, None)) for k, child in theirs.items()}
    for k, (child, mine) in pairs.items():
        # A renamed child: the only one left of its kind.
        left = [other for other in ours if other[:2] == k[:2]] if mine is None else []
        twin = ours.pop(left[0]) if len(left) == 1 else mine
        if twin is None:
            yield Difference(_prefix(child), "upstream", child["metadata"]["name"], None)
        else:
            name = child["metadata"]["name"]
            yield from (dataclasses.replace(d, child=name) for d in _compared(_prefix(child), child, twin))
    for child in ours.values():
        yield Difference(_prefix(child), "ours", None, child["metadata"]["name"])


def _rest(case: Json, world: World) -> Iterator[Difference]:
    expect = case["expect"]
    there = {(k[0].partition(".")[0], *k[1:]) for k in world.objects}
    present = {(c["kind"], namespace(c), c["metadata"]["name"]) for c in expect.get("children") or ()}
    for gone in expect.get("deleted") or ():
        identity = tuple(gone.split("/"))
        if identity in there and identity not in present:
            yield Difference(f"deleted.{identity[0]}", "value", True, False)
    for name, seconds in (expect.get("requeueAfterSeconds") or {}).items():
        if world.timers.get(name) != seconds:
            side = "value" if world.timers.get(name) is not None else "upstream"
            yield Difference(f"timer.{name.partition('/')[0]}", side, seconds, world.timers.get(name))
    for name, status in (expect.get("status") or {}).items():
        kind, _, short = name.partition("/")
        parent = world.parent(kind, short) or {}
        mine = _blurred(parent.get("status") or {})
        yield from _compared(f"status.{kind}", _without_zeros(status), _without_zeros(mine))


def _compared(path: str, theirs: Json, ours: Json) -> Iterator[Difference]:
    left, right = (dict(_flat(side, path)) if side else {} for side in (theirs, ours))
    for place in sorted(left.keys() | right.keys()):
        if place in (f"{path}.apiVersion", f"{path}.kind"):
            continue
        up, mine = left.get(place), right.get(place)
        if isinstance(up, tuple) and isinstance(mine, tuple):
            up = tuple(m if u == '"<script>"' else u for u, m in zip(up, mine, strict=False)) + up[len(mine) :]
        elif up in _REDACTED and isinstance(mine, str):
            continue
        if up != mine:
            yield Difference(place, "ours" if up is None else "upstream" if mine is None else "value", up, mine)


def _flat(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield leaves by path. Items of lists of objects are paired by a key; any other list is one leaf."""
    if isinstance(value, dict) and value:
        for name, member in value.items():
            if member is not None:
                yield from _flat(member, path + _segment(name))
    elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        yield from _flat_items(value, path)
    elif isinstance(value, list):
        yield path, tuple(json.dumps(item, sort_keys=True) for item in value)
    else:
        yield path, "{}" if value == {} else value


def _flat_items(items: list[Json], path: str) -> Iterator[tuple[str, Any]]:
    by = next((k for k in _LIST_KEYS if all(isinstance(item.get(k), str | int) for item in items)), None)
    if path.endswith(("tolerations", "metrics", "rules")):
        by = None
    seen: Counter[str] = Counter()
    for number, item in enumerate(items):
        label = str(number) if by is None else f"{by}={item[by]}"
        seen[label] += 1
        again = f"#{seen[label]}" if seen[label] > 1 else ""
        yield from _flat(item, f"{path}[{label}{again}]")
    if path.endswith(".env") and len(items) > 1:
        yield f"{path}.(order)", tuple(item.get("name") for item in items)


def _segment(name: str) -> str:
    return f".{name}" if re.fullmatch(r"[A-Za-z_][\w-]*", name) else f'["{name}"]'


def _prefix(item: Json) -> str:
    group = item["apiVersion"].rpartition("/")[0]
    return str(item["kind"]) if group in _BUILT_IN else f"{item['kind']}({group})"


def _bare(child: Json) -> Json:
    """Return a child without status and record, and without maps that are empty as a result."""
    child = copy.deepcopy(child)
    child.pop("status", None)
    annotations = child["metadata"].get("annotations") or {}
    annotations.pop(LAST_APPLIED, None)
    if not annotations:
        child["metadata"].pop("annotations", None)
    if child["kind"] == "Deployment" and child["spec"].get("strategy") == {}:
        del child["spec"]["strategy"]
    return child


def _blurred(value: Any) -> Any:
    """Return a value with the time of the run replaced as in the recordings."""
    return json.loads(json.dumps(value).replace(NOW_TEXT, "<time>"))


def _without_zeros(value: Any) -> Any:
    """Return a value without empty and zero values, which Go leaves out."""
    if isinstance(value, dict):
        return {k: _without_zeros(v) for k, v in value.items() if v not in (None, 0, False, "", {}, [])}
    return [_without_zeros(item) for item in value] if isinstance(value, list) else value


def facts(case: Json) -> Json:
    """Return the facts of a case's input that rules use in ``when``."""
    of_family = {"llmkube": _llmkube_facts, "llmaz": _llmaz_facts, "kserve": _kserve_facts}
    case_facts: Json = of_family[case["family"]](case)
    case_facts |= {"name": case["name"], "class": case.get("class", "")}
    expected = [c for c in case["expect"].get("children") or () if c["kind"] == "Deployment"]
    chosen = {key(child): child["spec"].get("selector") for child in expected}
    deployments = [o for o in case["objects"] if o["kind"] == "Deployment"]
    case_facts["observedSelectorDiffers"] = any(
        key(o) in chosen and chosen[key(o)] != o["spec"].get("selector") for o in deployments
    )
    lists = list(_environments(case["expect"].get("children") or []))
    case_facts["duplicateEnv"] = any(len(env) != len({item["name"] for item in env}) for env in lists)
    return case_facts


def _kserve_facts(case: Json) -> Json:
    """Return facts of services: scaling, criticality, ineffective fields, parallelism, pipelines, missing volumes."""
    text, settings = json.dumps(case["objects"]), json.dumps(case.get("settings"))
    named = {o["metadata"]["name"] for o in case["objects"] if o["kind"] == "LLMInferenceServiceConfig"}
    specs = [o.get("spec") or {} for o in case["objects"] if o["kind"] == "LLMInferenceService"]
    workloads = [workload for spec in specs for workload in (spec, spec.get("prefill") or {})]
    based = [*workloads, *_base_workloads(case, specs)]
    alone = [workload.get("parallelism") or {} for workload in based if workload.get("worker") is None]
    groups = [workload.get("parallelism") or {} for workload in workloads if workload.get("worker") is not None]
    bases = {ref["name"] for spec in specs for ref in spec.get("baseRefs") or ()}
    return {
        "v0.17": case.get("version", "v0.17.0") == "v0.17.0",
        "configMissing": not bases <= named,
        "severalPaths": any(len(_paths(spec)) > 1 for spec in specs),
        "scales": '"scaling": {' in text,
        "adapters": '"adapters": [{' in text,
        "routingGroup": any(((spec.get("router") or {}).get("route") or {}).get("group") for spec in specs),
        "namesPickerService": '"extensionRef": {' in text or '"endpointPickerRef": {' in text,
        "tokenizerUnused": any(_has_unused_tokenizer(child) for child in case["expect"].get("children") or ()),
        "poolProtocolUnset": '"appProtocol"' not in json.dumps([o for o in case["objects"] if o["kind"] != "Service"]),
        "defaultAccountMissing": not any(
            o["kind"] == "ServiceAccount" and o["metadata"]["name"] == "default" for o in case["objects"]
        ),
        "withoutEffect": any(word in text for word in _WITHOUT_EFFECT),
        "critical": '"criticality": "' in text or "-criticalit" in text,
        "parallelInOnePod": any(
            "tensor" in sizes or 1 < sizes.get("data", 1) <= sizes.get("dataLocal", 1) for sizes in alone
        ),
        "builtInPipeline": any("pipeline" in sizes for sizes in groups)
        and not any(name.endswith("pipeline-parallel") for name in named),
        "mountWithoutVolume": any(
            _mounts_nothing(workload.get(key) or {}) for workload in workloads for key in _TEMPLATES
        ),
        "modelScheme": next((_scheme(spec) for spec in specs), ""),
        "modelInImage": '"uri": "oci://' in text,
        "olderPicker": re.search(r'"app.kubernetes.io/version": "v?0\.[0-6]\b', text) is not None,
        "traces": '"tracing": {' in text,
        "pickerEnds": any(map(_has_former_parameters, case["expect"].get("children") or ())),
        "olderPoolGroup": '"--pool-group=inference.networking.x-k8s.io"' in text,
        "foreignService": any(_is_foreign_service(item) for item in case["objects"]),
        "settingRemoved": "null" in settings,
        "adaptersWithoutInitializer": '"adapters": [{' in text and '"storageInitializer": {"enabled": false' in text,
        "hasSecrets": any(o["kind"] == "Secret" or o.get("secrets") for o in case["objects"]),
        "templateRefused": re.search(r"{{-? *(range|with|define|block) ", text) is not None,
        "routesMissing": bool({"HTTPRoute", "Gateway", "InferencePool"} & {*case.get("noCRDs", ())}),
        "stopped": '"serving.kserve.io/stop": "true"' in text.lower(),
        "stoppedMember": '"group": ' in text and '"serving.kserve.io/stop": "true"' in text,
        "groupsMissing": "LeaderWorkerSet" in case.get("noCRDs", ()),
        "ownCommand": any(_has_command(workload) for workload in workloads),
        "defaultRules": any(map(_has_default_rules, specs)),
        **_base_facts(case, specs),
        **_kserve_outcomes(case, '"scaling": {' in text),
        **_refused_worlds(case, specs),
    }


def _refused_worlds(case: Json, specs: list[Json]) -> Json:
    """Return facts of services that v0.20 refuses when it combines or starts them."""
    refused = case["expect"].get("error") in ("merge", "workload")
    return {
        "adaptersRefused": refused
        and any(((spec.get("model") or {}).get("lora") or {}).get("adapters") for spec in specs),
        "mixedScalingRefused": refused and any(map(_scales_differently, specs)),
    }


def _scales_differently(spec: Json) -> bool:
    """Return whether the two workloads of a service name different autoscalers."""
    named = [
        {"hpa", "keda"} & ((part.get("scaling") or {}).get("wva") or {}).keys()
        for part in (spec, spec.get("prefill") or {})
    ]
    return all(named) and named[0] != named[1]


def _base_facts(case: Json, specs: list[Json]) -> Json:
    """Return facts of configs that services refer to: values that a preset of v0.20 looks for in the service alone."""
    parts = _base_workloads(case, specs)
    return {
        "countedOfBase": any(part.keys() & {"parallelism", "kvCacheOffloading"} for part in parts),
        "graceOfBase": any(
            "terminationGracePeriodSeconds" in (part.get(key) or {}) for part in parts for key in _TEMPLATES
        ),
    }


def _base_workloads(case: Json, specs: list[Json]) -> list[Json]:
    bases = {ref["name"] for spec in specs for ref in spec.get("baseRefs") or ()}
    configs = [
        o for o in case["objects"] if o["kind"] == "LLMInferenceServiceConfig" and o["metadata"]["name"] in bases
    ]
    return [part for o in configs for part in (o.get("spec") or {}, (o.get("spec") or {}).get("prefill") or {})]


def _has_command(workload: Json) -> bool:
    """Return whether a workload's own template starts the server by another command than the preset's."""
    containers = [container for key in _TEMPLATES for container in (workload.get(key) or {}).get("containers") or ()]
    return any("command" in container for container in containers if container["name"] == "main")


def _has_default_rules(spec: Json) -> bool:
    """Return whether a service's route has nothing but rules that the API server adds."""
    http = ((spec.get("router") or {}).get("route") or {}).get("http") or {}
    rules = (http.get("spec") or {}).get("rules") or ()
    return bool(rules) and all(rule.keys() <= {"matches"} for rule in rules)


def _scheme(spec: Json) -> str:
    return str((spec.get("model") or {}).get("uri", "")).partition("://")[0]


def _is_foreign_service(item: Json) -> bool:
    """Return whether an object has the name of a workload Service and another owner."""
    metadata = item["metadata"]
    is_owned = any(owner["kind"] == "LLMInferenceService" for owner in metadata.get("ownerReferences") or ())
    return item["kind"] == "Service" and metadata["name"].endswith("-kserve-workload-svc") and not is_owned


def _kserve_outcomes(case: Json, scales: bool) -> Json:
    """Return facts of the recorded answer: the phase that failed, and children."""
    children, error = case["expect"].get("children") or (), case["expect"].get("error")
    observed = {key(o): o["spec"] for o in case["objects"] if o["kind"] == "InferencePool"}
    pools = [child for child in children if key(child) in observed]
    return {
        "presetsMissing": (case.get("settings") or {}).get("presets") == "none",
        "workloadFails": error == "workload",
        "settingsFail": error == "settings",
        "scalingFails": scales and error == "workload",
        "mergeFails": error == "merge",
        "poolRewritten": any(observed[key(pool)] != pool["spec"] for pool in pools),
        "poolUnresolved": any(map(_is_unresolved, case["objects"])),
        "probeWithoutAction": any(_has_probe_without_action(child) for child in children),
    }


def _is_unresolved(item: Json) -> bool:
    """Return whether an object is a pool whose endpoint picker a Gateway cannot find."""
    parents = (item.get("status") or {}).get("parents") or () if item["kind"] == "InferencePool" else ()
    conditions = [condition for parent in parents for condition in parent.get("conditions") or ()]
    return any((condition["type"], condition["status"]) == ("ResolvedRefs", "False") for condition in conditions)


def _has_probe_without_action(child: Json) -> bool:
    spec = child.get("spec") or {}
    groups = spec.get("leaderWorkerTemplate") or {}
    templates = [template for template in (spec.get("template"), *groups.values()) if isinstance(template, dict)]
    containers = [
        container for template in templates for container in (template.get("spec") or {}).get("containers") or ()
    ]
    probes = [
        container[name] for container in containers for name in ("livenessProbe", "readinessProbe") if name in container
    ]
    return any(not {"exec", "grpc", "httpGet", "tcpSocket"} & probe.keys() for probe in probes)


def _has_unused_tokenizer(child: Json) -> bool:
    """Return whether an endpoint picker has the model's files, but no tokenizer that reads them."""
    pod = child["spec"]["template"]["spec"] if child["kind"] == "Deployment" else {}
    mounts = [
        mount["name"] for container in pod.get("containers") or () for mount in container.get("volumeMounts") or ()
    ]
    volumes = {volume["name"] for volume in pod.get("volumes") or ()}
    is_picker = child["metadata"]["name"].endswith("-kserve-router-scheduler")
    with_image = any(container["name"] == "modelcar" for container in pod.get("containers") or ())
    reads = any(container["name"] == "tokenizer" for container in pod.get("containers") or ())
    return is_picker and (bool(volumes & _MODEL_VOLUMES - {*mounts}) or (with_image and not reads))


def _has_former_parameters(child: Json) -> bool:
    """Return whether an endpoint picker has a configuration with parameters that v0.9 refuses, so that it ends."""
    if not child["metadata"]["name"].endswith("-kserve-router-scheduler"):
        return False
    args = [arg for container in child["spec"]["template"]["spec"]["containers"] for arg in container.get("args") or ()]
    texts = [text for flag, text in itertools.pairwise(args) if flag == "--config-text" and text.startswith("{")]
    plugins = [plugin for text in texts for plugin in json.loads(text).get("plugins") or ()]
    typed = [(plugin.get("type"), plugin.get("parameters") or {}) for plugin in plugins]
    return any(
        "tokenProcessorConfig" in parameters.get("indexerConfig", {})
        if type_ == "precise-prefix-cache-scorer"
        else type_ == "disagg-profile-handler" and "deciders" in parameters and parameters.keys() - _DECIDERS
        for type_, parameters in typed
    )


def _paths(spec: Json) -> set[Any]:
    """Return the paths of the route rules that a service specifies."""
    http = ((spec.get("router") or {}).get("route") or {}).get("http") or {}
    rules = (http.get("spec") or {}).get("rules") or ()
    return {(match.get("path") or {}).get("value") for rule in rules for match in rule.get("matches") or ()}


_WITHOUT_EFFECT = ("precise-prefix-cache-scorer", "token-producer", "predicted-latency-producer")
_TEMPLATES = ("template", "worker")
_MODEL_VOLUMES = {"kserve-provision-location", "kserve-pvc-source", "mnt-models-base"}
_DECIDERS = {"deciders", "profiles"}
_PRESETS_VOLUMES = {"home", "tmp-dir", "dshm", "model-cache", "tls-certs"}


def _mounts_nothing(pod: Json) -> bool:
    volumes = {volume["name"] for volume in pod.get("volumes") or ()} | _PRESETS_VOLUMES
    mounts = [mount for container in pod.get("containers") or () for mount in container.get("volumeMounts") or ()]
    return any(mount["name"] not in volumes for mount in mounts)


def _llmaz_facts(case: Json) -> Json:
    """Return facts of llmaz: a limit below a preset's request, a chosen preset with a trigger, flavors."""
    specs = [(o["kind"], o.get("spec") or {}) for o in case["objects"]]
    configs = [spec.get("backendRuntimeConfig") or {} for kind, spec in specs if kind == "Playground"]
    presets = [
        preset for kind, spec in specs if kind == "BackendRuntime" for preset in spec.get("recommendedConfigs") or ()
    ]
    chosen = {config.get("configName") for config in configs}
    configs_of_models = [(spec.get("inferenceConfig") or {}) for kind, spec in specs if kind == "OpenModel"]
    return {
        "flavorNodes": any(
            flavor.get("nodeSelector") or (flavor.get("params") or {}).get("INSTANCE-TYPE")
            for c in configs_of_models
            for flavor in c.get("flavors") or ()
        ),
        "limitBelowPreset": any(_is_below(config, preset) for config in configs for preset in presets),
        "chosenTrigger": any("scaleTrigger" in preset and preset["name"] in chosen for preset in presets),
    }


def _is_below(config: Json, preset: Json) -> bool:
    resources = config.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    of_preset = (preset.get("resources") or {}).get("requests") or {}
    alone = [name for name in limits if name in of_preset and name not in requests]
    return any(parse(str(limits[name])) < parse(str(of_preset[name])) for name in alone)


def _llmkube_facts(case: Json) -> Json:
    def spec(kind: str) -> Json:
        return next((o["spec"] for o in case["objects"] if o["kind"] == kind), {})

    model, service = spec("Model"), spec("InferenceService")
    hardware, source = model.get("hardware") or {}, model.get("source", "")
    gpu, name = hardware.get("gpu") or {}, service.get("runtime", "")
    count = gpu.get("count") or (service.get("resources") or {}).get("gpu") or 0
    parallel = (service.get("vllmConfig") or {}).get("tensorParallelSize") or 0
    return {
        "gpuCount": count,
        "sourceClass": _source_class(model),
        "accelerator": hardware.get("accelerator", ""),
        "vendor": gpu.get("vendor", ""),
        "amd": hardware.get("accelerator") == "rocm" or gpu.get("vendor") == "amd",
        "runtime": name,
        "skipModelInit": bool(service.get("skipModelInit")),
        "autoscaling": "autoscaling" in service,
        "priorityClassName": "priorityClassName" in service,
        "replicas": service.get("replicas", 1),
        "extraMetrics": "--metrics" in (service.get("extraArgs") or ()),
        "hubPage": re.fullmatch(rf"https://huggingface\.co/[^/]+/[^/]+{_REVISION}?/?", source) is not None,
        "slicesOfOtherNames": _has_slices_of_other_names(case),
        "severalOverrides": any(len(service.get(name) or ()) > 1 for name in ("metadataOverrides", "tensorOverrides")),
        "engineRefuses": _refused_flags(case, service),
        "extraArguments": [item for item in service.get("extraArgs") or () if item.startswith("-")],
        "ownImage": bool(service.get("image")),
        "ownStartupProbe": "startup" in (service.get("probeOverrides") or {}),
        "quantize": bool((service.get("tgiConfig") or {}).get("quantize")),
        "speculative": any("speculative" in name.lower() for name in _configured(service)),
        "adapters": any(_configured(service).get(name) for name in ("loraAdapters", "loraModules")),
        "tensorParallelAboveGPUs": name == "vllm" and parallel > max(count, 1),
        **_newer_facts(model, service, count),
        **_life_facts(case, service),
    }


def _life_facts(case: Json, service: Json) -> Json:
    """Return facts of a case's cluster and of the operator's settings."""
    observed = [o for o in case["objects"] if o["kind"] in ("Deployment", "InferenceService")]
    scaling, replicas = service.get("autoscaling") or {}, service.get("replicas", 1)
    statuses = (case["expect"].get("status") or {}).values()
    return {
        "minReplicasAboveReplicas": (scaling.get("minReplicas") or 1) > (replicas or 0) > 0,
        "scalesWithoutMetric": bool(scaling)
        and not scaling.get("metrics")
        and service.get("runtime") in ("generic", "personaplex"),
        "resumes": bool(scaling)
        and any(o["kind"] == "Deployment" and o["spec"].get("replicas") == 0 for o in observed),
        "claimWithoutPhase": any(
            o["kind"] == "PersistentVolumeClaim" and not (o.get("status") or {}).get("phase") for o in case["objects"]
        ),
        "agentScheduling": any("schedulingStatus" in (o.get("status") or {}) for o in observed),
        "intelGPUResource": (case.get("settings") or {}).get("intelGPUResource", ""),
        "release": "v0.9" if any("mode" in s for s in statuses) else "v0.8",
        "modelFailed": any(s.get("phase") == "Failed" for s in statuses),
    }


_REVISION = r"(?:/tree/[^/?#]+(?:/[^?#]*)?|/(?:resolve|blob)/[^/?#]+)"


def _newer_facts(model: Json, service: Json, count: int) -> Json:
    """Return facts for the rules about LLMKube v0.9."""
    gpu = (model.get("hardware") or {}).get("gpu") or {}
    drafts = service.get("speculativeDecoding") or {}
    sglang = service.get("sglangConfig") or {}
    parts = (sglang.get("tensorParallelSize") or 1) * (sglang.get("dataParallelSize") or 1)
    sizes = {
        "vllm": (service.get("vllmConfig") or {}).get("tensorParallelSize") or 0,
        "sglang": max(parts, sglang.get("expertParallelSize") or 0),
    }
    above = {name for name, size in sizes.items() if size > count > 0}
    addressed = {flag.partition("=")[0] for flag in service.get("extraArgs") or ()} & {"--host", "--hostname"}
    return {
        "ownHost": bool(addressed),
        "bindAddress": service.get("bindAddress", ""),
        "parallelismAboveGPUs": service.get("runtime") in above,
        "sharesMemory": service.get("runtime") in ("vllm", "tgi", "sglang") and count > 1,
        "parallelismOfAnotherRuntime": bool(above) and service.get("runtime") not in above,
        "protectAlways": bool((service.get("disruption") or {}).get("protectAlways")),
        "resourceClaims": bool(gpu.get("resourceClaims")),
        "draftModel": bool(drafts.get("draftModelRef")),
        "gateway": bool(((service.get("endpoint") or {}).get("gateway") or {}).get("enabled")),
        "prefetch": bool(model.get("prefetch")),
        "hubFile": _names_file(model.get("source", "")),
        "invalidBucket": re.fullmatch(r"s3://([^/]{0,2}(/.*)?|[^/]+/?)", model.get("source", "")) is not None,
        "cpuOffload": ((service.get("vllmConfig") or {}).get("cpuOffloadGB") or 0) > 0,
        "invalidProfile": _is_invalid_profile((service.get("resources") or {}).get("gpuSharing") or {}),
    }


def _names_file(source: str) -> bool:
    return source.startswith("hf://") and source.removeprefix("hf://").count("/") > 1


def _is_invalid_profile(shares: Json) -> bool:
    return bool(shares.get("profile")) and re.fullmatch(r"[0-9]+g\.[0-9]+gb", shares["profile"]) is None


def _source_class(model: Json) -> str:
    source = model.get("source", "")
    prefixes = {"pvc://": "pvc", "s3://": "s3", "/": "local", "file://": "local"}
    page = re.fullmatch(
        rf"https?://(?:www\.)?huggingface\.co/[^/]+/[^/]+?{_REVISION}?/?(?:[?#].*)?", source, re.IGNORECASE
    )
    hub = re.fullmatch(r"(?:hf://)?[A-Za-z0-9][A-Za-z0-9@_./-]*", source) and "/" in source
    if (hub and not source.startswith(tuple(prefixes))) or (page and model.get("files")):
        return "files" if model.get("files") or _names_file(source) else "hf"
    if source.startswith(("http://", "https://")):
        return "http"
    classes = (name for prefix, name in prefixes.items() if source.startswith(prefix))
    return next(classes, "invalid" if source else "none")


def _configured(service: Json) -> Json:
    """Return the fields of a service, with those of its runtime's own configuration."""
    return service | (service.get(f"{service.get('runtime')}Config") or {})


def _refused_flags(case: Json, service: Json) -> list[str]:
    """Return the recorded flags that the image's engine refuses by name or by value, except for the user's own."""
    deployments = [child for child in case["expect"].get("children") or () if child["kind"] == "Deployment"]
    pods = [child["spec"]["template"]["spec"]["containers"][0] for child in deployments]
    engine = engine_of(service.get("image") or runtime(service.get("runtime", "")).image)
    arguments = [item for pod in pods for item in pod.get("args") or () if item not in (service.get("extraArgs") or ())]
    return [
        name
        for name, value in itertools.pairwise([*arguments, ""])
        if engine is not None
        and name.startswith("--")
        and not (engine.accepts(name, value) or (engine.has(name) and value.startswith("-")))
    ]


def _has_slices_of_other_names(case: Json) -> bool:
    """Return whether a service has EndpointSlices that are not named like its Service, as a metal agent's is."""
    slices = [o["metadata"] for o in case["objects"] if o["kind"] == "EndpointSlice"]
    services = {o["metadata"]["name"] for o in case["objects"] if o["kind"] == "InferenceService"}
    return any(o["name"] not in services and o["labels"]["kubernetes.io/service-name"] in services for o in slices)


def _environments(value: Any) -> Iterator[list[Json]]:
    if isinstance(value, dict):
        for name, member in value.items():
            if name == "env" and isinstance(member, list):
                yield member
            else:
                yield from _environments(member)
    elif isinstance(value, list):
        for item in value:
            yield from _environments(item)


def review(case: Json) -> Json:
    """Return the AdmissionReview of a recorded admission case."""
    item = case["object"]
    group, _, version = item["apiVersion"].rpartition("/")
    request = {
        "uid": "u",
        "operation": case["operation"],
        "kind": {"group": group, "version": version, "kind": item["kind"]},
        "name": item["metadata"]["name"],
        "namespace": item["metadata"].get("namespace", ""),
        "object": expanded(item),
        "oldObject": case.get("oldObject"),
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def _review_facts(case: Json, response: Json) -> Json:
    """Return facts of an admission case: what is asked, and the first cause of our refusal."""
    item = case["object"]
    spec = item.get("spec") or {}
    scheduler = (spec.get("router") or {}).get("scheduler") or {}
    pool = (scheduler.get("pool") or {}).get("spec") or {}
    causes = ((response.get("status") or {}).get("details") or {}).get("causes") or [{}]
    return {
        "name": case["name"],
        "operation": case["operation"],
        "refusedFor": causes[0].get("field", ""),
        "refusedWith": causes[0].get("message", ""),
        "deleting": "deletionTimestamp" in item["metadata"],
        "inlineText": isinstance((scheduler.get("config") or {}).get("inline"), str),
        "pickerWithoutPort": "endpointPickerRef" in pool and "port" not in pool["endpointPickerRef"],
        "pickerMissing": bool(pool) and not {"endpointPickerRef", "extensionRef"} & pool.keys(),
        "mixedScaling": _scales_differently(spec),
    }


def verdict(case: Json, response: Json, rules: Rules) -> list[str]:
    """Return the differences from a recorded verdict: the decision, and fields of causes that ours lacks."""
    expect, about = case["expect"], _review_facts(case, response)
    if response["allowed"] != expect["allowed"]:
        if rules.permit("admission.allowed", "value", about):
            return []
        return [f"allowed: upstream {expect['allowed']}, here {response['allowed']}"]
    if expect["allowed"]:
        return []
    named = [cause.get("field", "") for cause in response["status"]["details"]["causes"]]
    wanted = [cause["field"] for cause in expect.get("causes") or ()]
    if rules.permit("admission.field", "value", about):
        return []
    return [
        f"{path} is not among {named}"
        for path in wanted
        if not any(n == path or n.startswith((f"{path}.", f"{path}[")) for n in named)
    ]

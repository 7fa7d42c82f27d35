"""Configuration of the endpoint picker: the default, and every configuration in the form of the picker's version.

Source: KS-4.3. An annotation of the picker's pods names its version.
"""

import itertools
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import orjson

from app.hooks.reader import read_yaml
from app.kserve.constants import PICKER_VERSION
from app.kube.base import Json
from app.kube.field import Advice, Path, advice, go_quote, name_meant, with_hint
from app.kube.spelling import closest_name
from app.limits import MAX_UNKNOWN_NAMES, MAX_WORD_CHARACTERS, MAX_YAML_BYTES

Version = tuple[int, int]
"""Major and minor version of an endpoint picker."""

PRECISE = "precise-prefix-cache-scorer"
"""Plugin that asks the tokenizer."""
PREDICTED_LATENCY = "predicted-latency-producer"
"""Plugin that asks the latency predictor."""

TEXT_FLAGS = frozenset(dashes + name for dashes in ("--", "-") for name in ("config-text", "configText"))
FILE_FLAGS = frozenset(dashes + name for dashes in ("--", "-") for name in ("config-file", "configFile"))
CONFIG_FLAGS = TEXT_FLAGS | FILE_FLAGS
_VERSION = re.compile(r"v?(\d{1,9})\.(\d{1,9})(?![\d])")
_KIND = "EndpointPickerConfig"
_API_VERSIONS = ("inference.networking.x-k8s.io/v1alpha1", "llm-d.ai/v1alpha1")
"""Of the configuration; the second from v0.9 on."""
_HANDLERS = {"prefill-header-handler": "disagg-headers-handler", "pd-profile-handler": "disagg-profile-handler"}
_ALWAYS, _BY_PREFIX = "always-disagg-pd-decider", "prefix-based-pd-decider"
_FORMER_HANDLER = "pd-profile-handler"
_SINGLE = "single-profile-handler"
_PROFILE_HANDLERS = (_SINGLE, _FORMER_HANDLER, _HANDLERS[_FORMER_HANDLER], "data-parallel-profile-handler")
"""Types of the plugin that chooses the profiles of a request. The picker adds the first one beside a single profile."""
_FORMER_DECIDERS = {
    "deciderPluginName": "prefill",
    "prefillDeciderPluginName": "prefill",
    "encodeDeciderPluginName": "encode",
}
_FORMER_PROFILES = {"prefillProfile": "prefill", "decodeProfile": "decode", "encodeProfile": "encode"}
_HANDLER_PARAMETERS = frozenset(("deciders", "profiles"))
"""The parameters of the handler from v0.7 on. From v0.9 on it refuses others beside them."""
_PRECISE_PARAMETERS: Mapping[str, frozenset[str]] = {
    "indexerConfig": frozenset(("kvBlockIndexConfig", "kvCacheBackendConfigs", "tokenizersPoolConfig")),
    "tokenizersPoolConfig": frozenset(("modelName", "workersCount", "uds")),
}
"""Parameters of the precise scorer from v0.9 on; it refuses any other."""
_QUEUE: Json = {"pluginRef": "queue-scorer", "weight": 2}
_KV_CACHE: Json = {"pluginRef": "kv-cache-utilization-scorer", "weight": 2}
_ACTIVE: Json = {"pluginRef": "active-request-scorer", "weight": 2}
_PREFIX: Json = {"pluginRef": "prefix-cache-scorer", "weight": 3}
_COLD: Json = {"pluginRef": "no-hit-lru-scorer", "weight": 2}
_ADAPTER: Json = {"pluginRef": "lora-affinity-scorer", "weight": 4}
_BEST: Json = {"pluginRef": "max-score-picker"}
_TYPES = (
    *("active-request-scorer", "core-metrics-extractor", "decode-filter", "encode-filter", "latency-scorer"),
    *("kv-cache-utilization-scorer", "lora-affinity-scorer", "max-score-picker", "model-server-protocol-metrics"),
    *("no-hit-lru-scorer", "prefill-filter", "prefix-cache-scorer", "queue-scorer", "random-picker"),
    *(_SINGLE, "token-producer", PRECISE, PREDICTED_LATENCY, _ALWAYS, _BY_PREFIX),
    *(*_HANDLERS, *_HANDLERS.values()),
)
"""Types of plugins of the endpoint picker, of all its versions; it has more."""
_METRIC_FLAGS = {
    "total-queued-requests-metric": ("vllm:num_requests_waiting", "queuedRequestsSpec"),
    "total-running-requests-metric": ("vllm:num_requests_running", "runningRequestsSpec"),
    "kv-cache-usage-percentage-metric": ("vllm:kv_cache_usage_perc", "kvUsageSpec"),
    "lora-info-metric": ("vllm:lora_requests_info", "loraSpec"),
    "cache-info-metric": ("vllm:cache_config_info", "cacheInfoSpec"),
}
"""Options that pickers from v0.7 on refuse: the values that they have without them, and the plugin's parameters."""
_EXTRACTORS = ("model-server-protocol-metrics", "core-metrics-extractor")
"""The plugin with these parameters, before v0.8 and since."""
_SOCKET = "/tmp/tokenizer/tokenizer-uds.socket"  # noqa: S108 - in the pod
_PRODUCER = "prefixMatchInfoProducerName"
"""The only parameter of the prefix cache's scorer from v0.9 on."""
_CHARACTERS_OF_A_TOKEN = 4

_BLOCKS = "tokenProcessorConfig"
"""Parameter of the precise scorer that has to equal the servers' block size and hash seed."""


class Picker(msgspec.Struct, frozen=True):
    """An endpoint picker, as far as its configuration depends on it."""

    version: Version | None = None
    """``None``: unknown, as of the pickers before v0.5, which have no annotation."""
    has_tokenizer: bool = False
    metrics: tuple[tuple[str, str], ...] = ()
    """Names of metrics by the plugin's parameters, which the version wants in the configuration, not as arguments."""

    def is_at_least(self, *version: int) -> bool:
        return self.version is not None and self.version >= version


def picker_version(annotations: Mapping[str, str] | None) -> Version | None:
    """Parse the version in the annotations of the picker's pods."""
    return version_of((annotations or {}).get(PICKER_VERSION, ""))


def version_of(text: str) -> Version | None:
    """Parse a version, or the tag of an image; ``None`` for another text."""
    match = _VERSION.match(text)
    return (int(match[1]), int(match[2])) if match else None


def document_of(config: object) -> Json | None:
    """Return an EndpointPickerConfig, which is an object or a string with one; ``None`` for anything else."""
    if isinstance(config, str):
        document = read_yaml(config, _encoded)
        config = orjson.loads(document) if isinstance(document, bytes) else None
    return config if isinstance(config, dict) and config.get("kind") == _KIND else None


def _encoded(document: object) -> bytes | str:
    """Encode a YAML document as JSON. Values are counted: aliases may stand for more of them than memory holds."""
    pending, count = [document], 0
    while pending:
        value = pending.pop()
        count += 1
        if count > MAX_YAML_BYTES:
            return "has too many values"
        pending.extend(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
    try:
        return orjson.dumps(document) if isinstance(document, dict) else "is not an object"
    except TypeError:
        return "cannot be written as JSON"


def plugins(document: Json | None) -> list[Json]:
    return objects((document or {}).get("plugins"))


def objects(listed: object) -> list[Json]:
    return [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []


def config_advice(config: Json, path: Path) -> Iterator[Advice]:
    """Warn of a configuration with which the endpoint picker ends, or that has plugins of a misspelt type."""
    rules = (_invalid_types, _unresolved, _unnamed, _unhandled)
    return itertools.islice(itertools.chain.from_iterable(rule(config, path) for rule in rules), MAX_UNKNOWN_NAMES)


def _invalid_types(config: Json, path: Path) -> Iterator[Advice]:
    """Warn of a wrong kind, a missing apiVersion, and types of plugins that are misspelt."""
    if config.get("kind") != _KIND:
        yield advice(path.child("kind"), f"must be {_KIND}, or the endpoint picker ends")
    if not config.get("apiVersion"):
        yield advice(path, "has no apiVersion, without which the endpoint picker ends")
    elif config.get("apiVersion") not in _API_VERSIONS:
        message = "the endpoint picker ends with another than {}, or, from v0.9 on, {}".format(*_API_VERSIONS)
        yield advice(path.child("apiVersion"), message)
    types = ((where, str(plugin.get("type"))) for where, plugin in path.child("plugins").each(plugins(config)))
    for where, type_ in itertools.islice((item for item in types if item[1] not in _TYPES), MAX_UNKNOWN_NAMES):
        if suggestion := closest_name(type_, _TYPES):
            message = f"no known plugin has the type {go_quote(type_)}"
            yield advice(where.child("type"), with_hint(message, name_meant(suggestion)))


def _unresolved(config: Json, path: Path) -> Iterator[Advice]:
    """Warn of plugins without a type, two of one name, and references to none."""
    names: set[str] = set()
    for where, plugin in path.child("plugins").each(plugins(config)):
        name = str(plugin.get("name") or plugin.get("type"))
        if not plugin.get("type"):
            yield advice(where, "has no type, without which the endpoint picker ends")
        elif name in names:
            yield advice(where, f"another plugin is named {go_quote(name)}, with which the endpoint picker ends")
        names.add(name)
    for profile_path, profile in path.child("schedulingProfiles").each(objects(config.get("schedulingProfiles"))):
        for where, item in profile_path.child("plugins").each(objects(profile.get("plugins"))):
            name = str(item.get("pluginRef"))
            if name not in names and name not in _TYPES:  # the picker adds some types itself
                message = f"plugins has none of the name {go_quote(name)}, and the endpoint picker ends"
                suggestion = closest_name(name, names) if len(name) <= MAX_WORD_CHARACTERS else ""
                yield advice(where.child("pluginRef"), with_hint(message, name_meant(suggestion)))


def _unnamed(config: Json, path: Path) -> Iterator[Advice]:
    """Warn of profiles without a name, and of two of one name."""
    names: set[object] = set()
    for where, profile in path.child("schedulingProfiles").each(objects(config.get("schedulingProfiles"))):
        name = profile.get("name")
        if not name:
            yield advice(where, "has no name, without which the endpoint picker ends")
        elif name in names:
            yield advice(where, f"another profile is named {go_quote(str(name))}, with which the endpoint picker ends")
        names.add(str(name))


def _unhandled(config: Json, path: Path) -> Iterator[Advice]:
    """Warn of profiles that no plugin chooses among, and of several plugins that choose."""
    count = len(objects(config.get("schedulingProfiles")))
    types = [str(plugin.get("type")) for plugin in plugins(config)]
    handlers = [type_ for type_ in types if type_ in _PROFILE_HANDLERS]
    if len(handlers) > 1:
        message = f"{' and '.join(handlers)} each choose the profile, and the endpoint picker ends; remove one of them"
        yield advice(path.child("plugins"), message)
    elif count > 1 and (handlers == [_SINGLE] or (not handlers and all(map(_TYPES.__contains__, types)))):
        why = f"{_SINGLE} takes one profile" if handlers else "no plugin chooses among profiles"
        message = f"{why}, and there are {count}: the endpoint picker ends, or refuses every request; leave one profile"
        yield advice(path.child("schedulingProfiles"), message)


def plugin_types(config: object) -> list[str]:
    return [str(plugin.get("type")) for plugin in plugins(document_of(config))]


def may_have_plugin(config: object, type_: str) -> bool:
    """Report whether a configuration has a plugin of a type, or cannot be read."""
    document = document_of(config)
    unknown = config is not None and document is None
    return unknown or any(plugin.get("type") == type_ for plugin in plugins(document))


class PickerConfig(msgspec.Struct, frozen=True):
    text: str
    picker: Picker
    chosen: bool
    """True if the user chose it."""


def picker_config(
    config: object, picker: Picker, *, disaggregated: bool, adapters: bool, running: Sequence[str] = ()
) -> PickerConfig:
    """Return the configuration of a picker: ``config``, the effective ``config.inline``, or the default.

    ``adapters``: whether the servers load LoRA adapters. A picker that runs, with the arguments ``running``, keeps the
    default of KServe v0.17.
    """
    if config is not None:
        return PickerConfig(configuration(config, picker), picker, chosen=True)
    former = _default(Picker(), disaggregated=disaggregated, adapters=adapters)
    keeps = any(a in TEXT_FLAGS and document_of(b) == former for a, b in itertools.pairwise(running))
    default = former if keeps else _default(picker, disaggregated=disaggregated, adapters=adapters)
    return PickerConfig(compact(_for_picker(default, picker)), picker, chosen=False)


def configuration(config: object, picker: Picker) -> str:
    """Return a user's configuration for a picker; a string that needs no change is returned as it is."""
    document = document_of(config)
    changed = None if document is None else _for_picker(document, picker)
    return config if isinstance(config, str) and changed == document else compact(changed or config)


def compact(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _default(picker: Picker, *, disaggregated: bool, adapters: bool) -> Json:
    """Return the default configuration, with the first names of plugins.

    It prefers a short queue, a cached prefix more, and a loaded adapter above all. With separate prefill and decode
    pods, each request gets one of both.
    """
    has_version = picker.version is not None
    first = [_ADAPTER] if adapters else []
    if disaggregated:
        prefill = [_PREFIX, _QUEUE, _KV_CACHE] if has_version else [_QUEUE, _PREFIX]
        decode = [_ACTIVE, _PREFIX] if has_version else [_QUEUE, _PREFIX]
        scorers = [_QUEUE, _KV_CACHE, _ACTIVE, _PREFIX] if has_version else [_QUEUE, _PREFIX]
        before = ["prefill-header-handler", "prefill-filter", "decode-filter"]
        after: list[Json] = [{"type": "pd-profile-handler", "parameters": {"threshold": 0}}]
        profiles = [
            {"name": side, "plugins": [{"pluginRef": f"{side}-filter"}, *first, *chosen, _BEST]}
            for side, chosen in (("prefill", prefill), ("decode", decode))
        ]
    else:
        scorers = [_QUEUE, _KV_CACHE, _PREFIX, _COLD] if has_version else [_QUEUE, _PREFIX]
        before, after = [_SINGLE], []
        profiles = [{"name": "default", "plugins": [*first, *scorers, _BEST]}]
    listed = [*([] if has_version else first), *scorers, _BEST]
    types = [*before, *(scorer["pluginRef"] for scorer in listed)]
    last = [{"type": scorer["pluginRef"]} for scorer in first] if has_version else []
    return {
        "apiVersion": _API_VERSIONS[0],
        "kind": _KIND,
        "plugins": [*({"type": type_} for type_ in types), *after, *last],
        "schedulingProfiles": profiles,
    }


def _for_picker(document: Json, picker: Picker) -> Json:
    """Return a configuration with the picker's tokenizer, and its version's names of plugins and their parameters."""
    if picker.is_at_least(0, 6):
        document = _changed(document, "prefix-cache-scorer", _in_tokens)
    if picker.is_at_least(0, 7):
        types = {str(plugin.get("type")) for plugin in plugins(document)}
        for handler in (_FORMER_HANDLER, _HANDLERS[_FORMER_HANDLER]):
            document = _changed(document, handler, partial(_with_decider, types))
        document = _renamed(document, _HANDLERS)
        document = _with_metrics(_changed(document, None, _without_hash_size), picker.metrics)
    if picker.is_at_least(0, 8):
        document = _renamed(document, {_EXTRACTORS[0]: _EXTRACTORS[1]})
    if picker.is_at_least(0, 9):
        document = _changed(document, "prefix-cache-scorer", _without_own_parameters)
        document = _changed(document, PRECISE, _without_former_parameters)
        document = _changed(document, _HANDLERS[_FORMER_HANDLER], _with_known_parameters)
    return _changed(document, PRECISE, _with_tokenizer) if picker.has_tokenizer else document


def converted(plugin: Json, picker: Picker) -> list[Json]:
    """Return what a picker gets for a plugin: the plugins that are added for it, and the plugin, which is the last."""
    return plugins(_for_picker({"plugins": [plugin]}, picker))


def _changed(document: Json, type_: str | None, change: Callable[[Json, Json], list[Json]]) -> Json:
    """Replace each plugin of a type, or of any; ``change`` gets it and its parameters."""
    if not isinstance(document.get("plugins"), list):
        return document
    changed: list[Any] = []
    for plugin in document["plugins"]:
        is_of_type = isinstance(plugin, dict) and type_ in (None, plugin.get("type"))
        changed += change(plugin, _object(plugin.get("parameters"))) if is_of_type else [plugin]
    return {**document, "plugins": changed}


def _renamed(document: Json, names: Mapping[str, str]) -> Json:
    """Rename types of plugins, and names after a type with the references to them: a plugin without a name has one."""
    changed = {**document}
    if isinstance(document.get("plugins"), list):
        changed["plugins"] = [_with(_with(plugin, "type", names), "name", names) for plugin in document["plugins"]]
    if isinstance(document.get("schedulingProfiles"), list):
        changed["schedulingProfiles"] = [
            {**profile, "plugins": [_with(reference, "pluginRef", names) for reference in profile["plugins"]]}
            if isinstance(profile, dict) and isinstance(profile.get("plugins"), list)
            else profile
            for profile in document["schedulingProfiles"]
        ]
    return changed


def _with(item: Any, key: str, names: Mapping[str, str]) -> Any:
    value = item.get(key) if isinstance(item, dict) else None
    return {**item, key: names[value]} if isinstance(value, str) and value in names else item


def _in_tokens(plugin: Json, parameters: Json) -> list[Json]:
    """Give the size of a block of the prefix cache in tokens, too."""
    if "blockSize" not in parameters:
        return [plugin]
    return [{**plugin, "parameters": {"blockSizeTokens": parameters["blockSize"], **parameters}}]


def _without_own_parameters(plugin: Json, parameters: Json) -> list[Json]:
    """Leave out what another plugin counts from v0.9 on."""
    remaining = {key: value for key, value in parameters.items() if key == _PRODUCER}
    others = {key: value for key, value in plugin.items() if key != "parameters"}
    return [{**others, "parameters": remaining} if remaining else others]


def _without_hash_size(plugin: Json, parameters: Json) -> list[Json]:
    if "hashBlockSize" not in parameters:
        return [plugin]
    return [{**plugin, "parameters": {key: value for key, value in parameters.items() if key != "hashBlockSize"}}]


def _with_metrics(document: Json, metrics: Sequence[tuple[str, str]]) -> Json:
    """Add the plugin with the names of metrics that the picker's arguments had, unless it is there."""
    listed = document.get("plugins", [])
    if (
        not metrics
        or not isinstance(listed, list)
        or any(plugin.get("type") in _EXTRACTORS for plugin in plugins(document))
    ):
        return document
    parameters = {
        "engineLabelKey": "inference.networking.k8s.io/engine-type",
        "defaultEngine": "vllm",
        "engineConfigs": [{"name": "vllm", **dict(metrics)}],
    }
    plugin = {"name": _EXTRACTORS[0], "type": _EXTRACTORS[0], "parameters": parameters}
    return {**document, "plugins": [*listed, plugin]}


def _with_decider(types: Collection[str], plugin: Json, parameters: Json) -> list[Json]:
    """Replace the threshold of characters by the plugin that decides whether a request needs a prefill pod.

    ``types`` are those of the plugins that the configuration has. A handler of the present type without a threshold or
    a decider stays as it is: it has no separate prefill, or parameters that the picker still reads alone.
    """
    is_former = plugin.get("type") == _FORMER_HANDLER
    asks = is_former or parameters.keys() & {"threshold", "deciderPluginName"}
    if parameters.keys() & _HANDLER_PARAMETERS or not asks:
        return [plugin]
    threshold = parameters.get("threshold") or 0
    deciders, profiles = _by_side(parameters, _FORMER_DECIDERS), _by_side(parameters, _FORMER_PROFILES)
    added: list[Json] = []
    if "prefill" not in deciders and (is_former or "threshold" in parameters):
        deciders["prefill"] = _BY_PREFIX if threshold else _ALWAYS
        tokens = {"parameters": {"nonCachedTokens": _tokens(threshold)}} if threshold else {}
        added += [] if deciders["prefill"] in types else [{"type": deciders["prefill"], **tokens}]
    changed = {"deciders": deciders, **({"profiles": profiles} if profiles else {})}
    return [*added, {**plugin, "parameters": changed}]


def _by_side(parameters: Json, names: Mapping[str, str]) -> Json:
    return {side: parameters[name] for name, side in names.items() if parameters.get(name)}


def _with_known_parameters(plugin: Json, parameters: Json) -> list[Json]:
    """Give the prefill handler what it reads from v0.9 on, in the one of its two forms that the parameters have."""
    if parameters.keys() & _HANDLER_PARAMETERS:
        forms = (("deciders", _FORMER_DECIDERS), ("profiles", _FORMER_PROFILES))
        nested = {name: {**_by_side(parameters, names), **_object(parameters.get(name))} for name, names in forms}
        recognized = {name: sides for name, sides in nested.items() if sides or name in parameters}
    else:
        former = _FORMER_DECIDERS.keys() | _FORMER_PROFILES.keys()
        recognized = {name: value for name, value in parameters.items() if name in former}
    return [plugin if recognized == parameters else {**plugin, "parameters": recognized}]


def _without_former_parameters(plugin: Json, parameters: Json) -> list[Json]:
    """Move block size and hash seed out of ``indexerConfig``, and leave out what the precise scorer refuses there."""
    if "indexerConfig" not in parameters:
        return [plugin]
    indexer = _object(parameters["indexerConfig"])
    moved = {_BLOCKS: indexer[_BLOCKS]} if indexer.get(_BLOCKS) is not None else {}
    read = _read_of("indexerConfig", indexer)
    if "tokenizersPoolConfig" in read:
        read["tokenizersPoolConfig"] = _read_of("tokenizersPoolConfig", _object(read["tokenizersPoolConfig"]))
    return [{**plugin, "parameters": {**moved, **parameters, "indexerConfig": read}}]


def _read_of(name: str, parameters: Json) -> Json:
    return {key: value for key, value in parameters.items() if key in _PRECISE_PARAMETERS[name]}


def _tokens(threshold: object) -> int:
    """Return how many tokens a threshold of characters is about, as KServe counts them; at least 1."""
    try:
        return max(1, math.ceil(float(str(threshold)) / _CHARACTERS_OF_A_TOKEN))
    except (ValueError, OverflowError):
        return 1


def metrics(args: Sequence[str]) -> dict[str, str]:
    """Return the names of metrics that a picker's arguments have, by the plugin's parameters for them."""
    names = {}
    for argument, following in itertools.pairwise((*args, "")):
        name, equals, value = argument.lstrip("-").partition("=")
        if argument.startswith("-") and name in _METRIC_FLAGS:
            names[_METRIC_FLAGS[name][1]] = value if equals or following.startswith("-") else following
    return names


def _without_metrics(args: Sequence[str]) -> list[str]:
    remaining: list[str] = []
    takes_value = False
    for argument in args:
        name, equals, value = argument.lstrip("-").partition("=")
        is_metric = argument.startswith("-") and name in _METRIC_FLAGS
        if not is_metric and not (takes_value and not argument.startswith("-")):
            remaining.append(argument)
        takes_value = is_metric and not (equals and value)
    return remaining


def arguments(args: Sequence[str], picker: Picker) -> list[str]:
    """Return a picker's arguments for its version, with the configuration among them."""
    args = _without_metrics(args) if picker.metrics else args
    result: list[str] = []
    for argument in args:
        previous = result[-1] if result else ""
        if previous in TEXT_FLAGS:
            result.append(configuration(argument, picker))
        elif picker.is_at_least(0, 7) and _default_of(previous.lstrip("-")) == argument:
            result.pop()
        elif not (picker.is_at_least(0, 7) and _is_default(argument)):
            result.append(argument)
    return result


def _is_default(argument: str) -> bool:
    """Report whether an argument such as ``--option=value`` sets a deprecated option to its default."""
    name, equals, value = argument.lstrip("-").partition("=")
    return bool(equals) and argument.startswith("-") and _default_of(name) == value


def _default_of(name: str) -> str | None:
    return _METRIC_FLAGS.get(name, (None, ""))[0]


def _with_tokenizer(plugin: Json, parameters: Json) -> list[Json]:
    """Ask the tokenizer in the picker's pod, by its socket.

    Pickers with a tokenizer read block size and hash seed beside ``indexerConfig``, in which earlier ones had them.
    """
    indexer = _object(parameters.get("indexerConfig"))
    pool = _object(indexer.get("tokenizersPoolConfig"))
    pool = {**pool, "modelName": "base", "uds": {**_object(pool.get("uds")), "socketFile": _SOCKET}}
    moved = {_BLOCKS: indexer[_BLOCKS]} if indexer.get(_BLOCKS) is not None else {}
    changed = {**moved, **parameters, "indexerConfig": {**indexer, "tokenizersPoolConfig": pool}}
    return [{**plugin, "parameters": changed}]


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}

"""Write which releases keep the newer pod fields (app/kube/embedded): ``python -m tools.field_releases``.

The sources are Go modules of Kubernetes, which ``go mod download`` fetches: the types of each release with the feature
gates that their comments name, the releases in which each gate is on, and the newest release's OpenAPI document, for
fields that the API server of ``types.json`` beside it does not know. A field is kept by default since the first release
that has both the field and, without configuration, its gate. For values that newer releases take in older fields there
is a table of gates here; constants of the newest release that are not in it end the program.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path

from tools.embedded_types import DOCUMENTS, ROOTS, TABLE, Schema, Schemas, form_of, reachable

RELEASES = Path(__file__).resolve().parent.parent / "app" / "kube" / "embedded" / "field_releases.json"
OLDEST = 30
"""The oldest release that the documentation names: what it keeps needs no entry."""
MODULES = ("0.30.14", "0.31.14", "0.32.10", "0.33.6", "0.34.2", "0.35.1", "0.36.3", "0.37.2")
GATES = ("1.34.2", "1.36.3", "1.37.2")
"""Releases whose list of gates is read; it keeps those that are gone for three releases."""
NEVER = "never"

_TYPE = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r'((?:^\t//.*\n|^\n)*)^\t(?:(\w+)\s+)?([\w.*\[\]]+)\s+`json:"([\w]*),?(inline)?', re.MULTILINE)
_GATE = re.compile(r"^\t(\w+): \{\n(.*?)^\t\},", re.MULTILINE | re.DOTALL)
_CONSTANT = re.compile(r'^\t\w+ +(\w+) += "([^"]*)"', re.MULTILINE)
_DEFAULT = re.compile(r'MustParse\("1\.(\d+)"\), Default: (\w+)')

_MARKER = "featureGate="
OF_VALUES = {
    "ClusterTrustBundleProjection": {"name", "optional"},
    "HorizontalPodAutoscalerSpec": {"minReplicas"},
    "PersistentVolumeClaimSpec": {"dataSourceRef", "resources"},
    "PodResourceClaim": {"resourceClaimTemplateName"},
    "PodSecurityContext": {"supplementalGroups"},
    "Toleration": {"operator"},
    "Volume": {"portworxVolume"},
}
"""Fields whose comments name a gate of something else: a value, another field, the way a volume is mounted."""
VALUES = {
    "Container.restartPolicy": ("OnFailure|Never", "ContainerRestartRules"),
    "EnvVar.name": (r"\.|\.\..*|[^-._a-zA-Z].*|.*[^-._a-zA-Z0-9].*", "RelaxedEnvironmentVariableValidation"),
    "PodDNSConfig.searches": (r"\.|.*_.*", "RelaxedDNSSearchValidation"),
    "SleepAction.seconds": ("0", "PodLifecycleSleepActionAllowZero"),
}
"""A pattern of the values that newer releases take, and their gate."""
NO_LIMIT = {"EphemeralContainer.restartPolicy", "PodReadinessGate.conditionType", "Toleration.operator"}
"""Fields that no child has, whose constants do not limit them, and that an advice names with their gate."""
OTHER_GATES = {
    "Lifecycle.stopSignal": "ContainerStopSignals",
    "VolumeProjection.podCertificate": "PodCertificateRequest",
}
"""Gates of fields whose comments do not name them."""

Fields = dict[str, set[str]]
"""Gates, among other words, in the comments by ``Type.field``."""


@cache
def module(name: str, version: str) -> Path:
    """Return the folder of a Go module."""
    command = ["go", "mod", "download", "-json", f"{name}@v{version}"]
    info = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)  # noqa: S603
    return Path(info["Dir"])


@cache
def source(version: str) -> str:
    groups = ("core/v1", "autoscaling/v2")
    return "".join((module("k8s.io/api", version) / group / "types.go").read_text() for group in groups)


def declared(version: str) -> dict[str, tuple[str, str]]:
    """Return comment and Go type of each field of a release's types, those of types that are embedded in others too."""
    types = {name: [*_FIELD.findall(body)] for name, body in _TYPE.findall(source(version))}

    def of(type_: str) -> Iterator[tuple[str, str, str]]:
        for comment, name, go_type, key, inline in types.get(type_, ()):
            if inline or not key:
                yield from of((go_type or name).lstrip("*"))
            else:
                yield key, comment, go_type.lstrip("*[]")

    return {f"{type_}.{key}": (comment, go_type) for type_ in types for key, comment, go_type in of(type_)}


def fields(version: str) -> Fields:
    return {name: _gates_in(comment) for name, (comment, _) in declared(version).items()}


def constants(version: str) -> dict[str, set[str]]:
    """Return the values of each field whose Go type has constants."""
    of_type: dict[str, set[str]] = {}
    for go_type, value in _CONSTANT.findall(source(version)):
        if go_type != "string":
            of_type.setdefault(go_type, set()).add(value)
    return {name: of_type.get(go_type, set()) for name, (_, go_type) in declared(version).items()}


def untold(types: Collection[str]) -> Iterator[str]:
    """Yield the values that the newest release has and the oldest has not, in fields of both, and not in VALUES."""
    older = constants(MODULES[0])
    for name, values in constants(MODULES[-1]).items():
        if name in older and name.partition(".")[0] in types and name not in NO_LIMIT:
            pattern, _ = VALUES.get(name, ("", ""))
            yield from (f"{name}: {value}" for value in values - older[name] if not re.fullmatch(pattern, value))


def _gates_in(comment: str) -> set[str]:
    """Return the gates that a comment marks, otherwise all its words."""
    return {*re.findall(rf"{_MARKER}(\w+)", comment)} or {*re.findall(r"\w+", comment)}


def gates() -> dict[str, int | None]:
    """Return the release since which each gate is on; ``None`` for one that is off."""
    result: dict[str, int | None] = {}
    for version in GATES:
        text = (module("k8s.io/kubernetes", version) / "pkg/features/kube_features.go").read_text()
        for name, body in _GATE.findall(text):
            steps = [(int(minor), default == "true") for minor, default in _DEFAULT.findall(body)]
            if steps:
                result[name] = min((minor for minor, on in steps if on), default=None) if steps[-1][1] else None
    return result


def since(releases: Mapping[int, Fields], on: Mapping[str, int | None]) -> dict[str, str]:
    """Return the first release that keeps a field by default, for fields that the oldest release drops.

    A field that is as old as its type has no entry: the field of that type has one.
    """
    result = {}
    types = [{name.partition(".")[0] for name in release} for release in releases.values()]
    for name in dict.fromkeys(chain.from_iterable(releases.values())):
        present = [minor for minor, release in releases.items() if name in release]
        if sum(name.partition(".")[0] in names for names in types) == len(present) < len(types):
            continue
        words = releases[present[-1]][name] & on.keys() or set[str]().union(*(releases[n][name] for n in present))
        words |= {OTHER_GATES.get(name, "")}
        starts = [min(present), *(on[word] for word in words & on.keys())]
        first = NEVER if None in starts else f"1.{max(filter(None, starts))}"
        if first != f"1.{OLDEST}" and (first == NEVER or int(first[2:]) > OLDEST):
            result[name] = first
    return result


def values(on: Mapping[str, int | None]) -> dict[str, Schema]:
    """Return the entries of fields with values that not every release takes."""
    return {
        name: {"newer": pattern, "newer_since": f"1.{on[gate]}" if on[gate] else NEVER}
        for name, (pattern, gate) in VALUES.items()
    }


def newest() -> Schemas:
    folder = module("k8s.io/kubernetes", GATES[-1]) / "api/openapi-spec/v3"
    texts = ((folder / f"{name.replace('/', '__')}_openapi.json").read_text() for name in DOCUMENTS)
    return {name: schema for text in texts for name, schema in json.loads(text)["components"]["schemas"].items()}


def table(
    known: Mapping[str, Schema],
    schemas: Schemas,
    kept: Mapping[str, str],
    newer: Mapping[str, Schema],
    roots: Iterable[str] = ROOTS,
) -> str:
    """Return the content of the generated file: a line per field; the form of fields that ``known`` lacks."""
    result: dict[str, Schema] = {}
    for full, schema in sorted(reachable(schemas, roots), key=lambda item: item[0].rpartition(".")[2]):
        type_ = full.rpartition(".")[2]
        for field, form in form_of(schema, schemas):
            is_new = field not in known.get(type_, {})
            release = "" if field in OF_VALUES.get(type_, ()) else kept.get(f"{type_}.{field}", "")
            entry = {**(form if is_new else {}), **({"since": release} if release and type_ in known else {})}
            entry |= newer.get(f"{type_}.{field}", {})
            if entry:
                result.setdefault(type_, {})[field] = entry
    lines = (
        f' "{type_}": {{\n' + ",\n".join(f'  "{name}": {json.dumps(e)}' for name, e in entries.items()) + "\n }"
        for type_, entries in result.items()
    )
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    described = json.loads(TABLE.read_text())
    if missing := sorted(untold(described)):
        sys.exit(f"add to VALUES, with the gate: {missing}")
    by_release = {int(version.split(".")[1]): fields(version) for version in MODULES}
    kept_since = since(by_release, gates())
    RELEASES.write_text(table(described, newest(), kept_since, values(gates())), encoding="utf-8")

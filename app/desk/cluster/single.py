"""The findings about one object: those of admission, and the fields that a cluster would drop."""

from collections.abc import Iterable, Iterator
from weakref import WeakKeyDictionary

import msgspec
import orjson

from app.admission.metadata import decode_metadata
from app.admission.protocol import ReviewedObject
from app.admission.review import judge
from app.desk import processes
from app.desk.cluster.kinds import find_version, not_served, type_problem
from app.desk.files.findings import Finding, unmuted
from app.desk.files.manifests import Manifest
from app.hooks.kind import AnyKind
from app.kube import field, modelfields, unknown
from app.kube.base import Json
from app.kube.embedded import checks as embedded
from app.kube.field import METADATA, Advice, Error, ErrorType, invalid
from app.kube.names import is_dns1123_label, is_dns1123_subdomain, validate_annotation_keys
from app.kube.objects import ObservedMeta
from app.kube.spelling import closest_name
from app.settings import Settings

_TOP = ("apiVersion", "kind", "metadata", "spec", "status")
_NAME = "must be lower case letters, digits, '-' and '.', with a letter or digit at both ends, at most 253 characters"
"""The API server's rule for an object's name, which it checks before it calls webhooks."""


class Judged(msgspec.Struct, frozen=True):
    """The verdict on one object."""

    findings: tuple[Finding, ...] = ()
    is_refused: bool = False
    """True if the rules of its kind refuse it. An unknown field is an error too, and no reason to refuse it."""
    has_advice: bool = True
    """False if only its errors were looked for."""


_JUDGED: WeakKeyDictionary[Manifest, dict[Settings, Judged]] = WeakKeyDictionary()
"""Verdicts on the manifests that are in use: several parts of a command need them, and each is reached once."""


def judged(manifest: Manifest, settings: Settings, *, advise: bool = False) -> Judged:
    """Return the verdict on one object, in the version that it is written in; empty for kinds that are not served."""
    verdict = _known(manifest, settings, advise=advise)
    if verdict is None:
        verdict = _JUDGED.setdefault(manifest, {})[settings] = _judged(manifest, settings, advise=advise)
    return verdict


def _known(manifest: Manifest, settings: Settings, *, advise: bool) -> Judged | None:
    verdict = _JUDGED.get(manifest, {}).get(settings)
    return None if verdict is None or (advise and not verdict.has_advice) else verdict


def judge_all(manifests: Iterable[Manifest], settings: Settings, *, advise: bool = False) -> None:
    """Reach the verdicts on objects, on many of them in processes. The first of each kind loads what the others use."""
    new = [manifest for manifest in dict.fromkeys(manifests) if _known(manifest, settings, advise=advise) is None]
    first = {(manifest.api_version, manifest.kind): manifest for manifest in reversed(new)}
    for manifest in first.values():
        judged(manifest, settings, advise=advise)
    verdicts = processes.each(new, lambda manifest: judged(manifest, settings, advise=advise), "objects checked")
    for manifest, verdict in zip(new, verdicts, strict=True):
        _JUDGED.setdefault(manifest, {})[settings] = verdict


def check(manifest: Manifest, settings: Settings) -> list[Finding]:
    """Return the findings of one object; empty for kinds that are not served."""
    return [*judged(manifest, settings, advise=True).findings]


def all_errors_of(manifest: Manifest, settings: Settings) -> list[Finding]:
    """Return the errors of one object, of which a comment may mute some."""
    return [finding for finding in judged(manifest, settings).findings if finding.level == "error"]


def errors_of(manifest: Manifest, settings: Settings) -> list[Finding]:
    """Return the errors of one object, without muted ones; an object with any makes nothing offline."""
    return unmuted(all_errors_of(manifest, settings), {manifest.file: manifest.lines})


def _judged(manifest: Manifest, settings: Settings, *, advise: bool) -> Judged:
    kind = find_version(manifest.api_version, manifest.kind)
    if kind is None:
        return Judged(tuple(_not_served(manifest)))
    errors, warnings = findings_of(kind, manifest.document, settings, advise=advise)
    findings = [
        manifest.finding("error", e.place or e.path, field.Hint(e.body, *e.suggested), ERROR_IDS[e.type])
        for e in errors
    ]
    findings += [_unknown(manifest, kind, key) for key in manifest.document if key not in _TOP]
    warnings += _unknown_metadata(manifest.document.get("metadata"))
    findings += [warning(manifest, advice, advice.id) for advice in warnings]
    return Judged(tuple(findings), bool(errors), advise)


def _not_served(manifest: Manifest) -> Iterator[Finding]:
    """Yield a finding about a kind that is not served; none about one that nobody takes for a served one."""
    if words := not_served(manifest.api_version, manifest.kind):
        yield manifest.finding("warning", field.Path("kind"), words, "unknown-kind")
        return
    name, words = type_problem(manifest.api_version, manifest.kind)
    id_ = "unknown-kind" if manifest.api_version and manifest.kind else "untyped"
    if not manifest.api_version and not manifest.kind:
        name, words = "apiVersion", "Required value: must have apiVersion and kind"
    if name:
        yield manifest.finding("error", field.Path(name), words, id_)


def _unknown_metadata(metadata: object) -> list[field.Advice]:
    """Warn of fields that no object's metadata has; those with wrong types are errors of the review."""
    findings = embedded.TypeCheck(lambda _: (unknown.Level(_TOP, tuple),))
    findings.check(metadata, "ObjectMeta", field.Path("metadata"))
    return findings.warnings


def _unknown(manifest: Manifest, kind: AnyKind, key: str) -> Finding:
    """Return the finding about a field beside the spec: a misspelt one, or one that is not indented."""
    name = key.strip()
    hint = field.name_meant(closest_name(name, _TOP), separator=",")
    inner = {"spec": modelfields.fields(kind.resource.spec), "metadata": ObservedMeta.__struct_encode_fields__}
    for outer in (outer for outer, names in inner.items() if name in names):
        hint = field.Hint(f"; it is a field of {outer}: indent it below {outer}")
    message = field.with_hint(f"unknown field {field.go_quote(key)}", hint)
    return manifest.finding("error", field.Path(key), message, "unknown-field")


ERROR_IDS = {
    field.ErrorType.REQUIRED: "required",
    field.ErrorType.INVALID: "invalid-value",
    field.ErrorType.TYPE_INVALID: "wrong-type",
    field.ErrorType.NOT_SUPPORTED: "unsupported-value",
    field.ErrorType.DUPLICATE: "duplicate-value",
    field.ErrorType.FORBIDDEN: "forbidden",
    field.ErrorType.TOO_LONG: "too-long",
    field.ErrorType.TOO_MANY: "too-many",
}


def warning(manifest: Manifest, advice: field.Advice, id_: str) -> Finding:
    """A warning at its place. An unknown field is an error here: a cluster would drop it."""
    level = "error" if advice.id == "unknown-field" else "warning"
    return manifest.finding(level, advice.path, advice.message, id_)


def findings_of(
    kind: AnyKind, document: Json, settings: Settings, *, advise: bool = True
) -> tuple[list[Error], list[Advice]]:
    """Return errors and warnings of one object, by the functions that answer admission; see :func:`judge`."""
    written = document.get("metadata")
    metadata, errors = decode_metadata(orjson.dumps({} if written is None else written))
    reviewed = ReviewedObject(spec=msgspec.Raw(orjson.dumps(document.get("spec"))))
    verdict = judge(kind, metadata, reviewed, None, settings, advise=advise)
    errors += verdict.errors
    name, namespace = METADATA.child("name"), METADATA.child("namespace")
    if metadata.name and not is_dns1123_subdomain(metadata.name) and name not in [error.path for error in errors]:
        errors.append(invalid(name, metadata.name, _NAME))
    if metadata.namespace and not is_dns1123_label(metadata.namespace):
        errors.append(invalid(namespace, metadata.namespace, "must be at most 63 lower case letters, digits and '-'"))
    keys = validate_annotation_keys(metadata.annotations or {}, METADATA.child("annotations"))
    errors += (error for error in keys if error.type is not ErrorType.FORBIDDEN)  # Metacontroller's, on a child
    return errors, verdict.warnings

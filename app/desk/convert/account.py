"""The account of a user's own workload: every leaf is carried over, a default that changes nothing, or lost."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from app.desk.convert.translate import Entry, Keys, Translation, collapsed, leaves
from app.desk.convert.workloads import DATA
from app.desk.files.manifests import Manifest
from app.kube.base import Json

POD: Keys = ("spec", "template", "spec")
LABELS: Keys = ("spec", "template", "metadata", "labels")
_BY_CLUSTER = "the cluster or a tool writes it"
_SERVER_FIELDS = frozenset(
    {"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "ownerReferences"}
)
_ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}
DEFAULT_STRATEGIES = (_ROLLING, {"type": "RollingUpdate"})


@dataclass
class Account:
    """The outcome for each part of one object. A leaf has the mark of the smallest part that contains it."""

    manifest: Manifest
    went: dict[Keys, list[str]] = field(default_factory=dict)
    reasons: dict[Keys, str] = field(default_factory=dict)
    defaults: dict[Keys, str] = field(default_factory=dict)

    def carry(self, keys: Keys, target: str) -> None:
        self.went.setdefault(keys, []).append(target)

    def lose(self, keys: Keys, reason: str) -> None:
        self.went.pop(keys, None)
        self.reasons[keys] = reason

    def same(self, keys: Keys, reason: str = "a default") -> None:
        self.defaults[keys] = reason

    def settle(self, result: Translation, otherwise: str) -> None:
        """Add the account to the result; ``otherwise`` is the reason for the parts without a mark."""
        if reason := self.reasons.get(()):
            result.lost.append(Entry(self.manifest, (), self.manifest.document, reason=reason))
            return
        lost: dict[Keys, str] = {}
        for keys, value in leaves(self.manifest.document):
            kind, words = self._mark(keys) or (self.reasons, otherwise)
            if kind is self.went:
                self._carried(result, keys, value)
            elif kind is self.defaults:
                result.defaults.append(Entry(self.manifest, keys, value, reason=words))
            else:
                lost[keys] = words
        rows = collapsed(self.manifest.document, (), lost)
        result.lost += [Entry(self.manifest, keys, value, reason=why) for keys, value, why in rows]

    def _carried(self, result: Translation, keys: Keys, value: object) -> None:
        targets = next(self.went[keys[:end]] for end in range(len(keys), -1, -1) if keys[:end] in self.went)
        result.carried.append(Entry(self.manifest, keys, value, target=tuple(targets)))

    def _mark(self, keys: Keys) -> tuple[object, str] | None:
        for end in range(len(keys), -1, -1):
            for marks in (self.reasons, self.went, self.defaults):
                if keys[:end] in marks:
                    return marks, str(marks[keys[:end]])
        return None


def mark_cluster(account: Account) -> None:
    """Mark what the API server and tools write."""
    document = account.manifest.document
    for name in ("apiVersion", "kind", "status"):
        account.same((name,), _BY_CLUSTER)
    for keys, value in _metadata(document):
        if value is None or (keys[-2] == "metadata" and keys[-1] in _SERVER_FIELDS) or is_of_tool(str(keys[-1])):
            account.same(keys, _BY_CLUSTER)


def _metadata(document: Json) -> Iterator[tuple[Keys, object]]:
    metadata: list[tuple[Keys, Json]] = [(("metadata",), document["metadata"])]
    metadata.append((LABELS[:-1], document["spec"]["template"].get("metadata") or {}))
    for keys, metadata_ in metadata:
        for name, value in metadata_.items():
            yield (*keys, name), value
            if name in ("labels", "annotations"):
                yield from (((*keys, name, key), item) for key, item in (value or {}).items())


def is_of_tool(key: str) -> bool:
    return key in DATA.tools.keys or key.partition("/")[0] in DATA.tools.groups


def is_default(place: str, value: object) -> bool:
    """Report whether a field has the API server's default; ``place`` is one of ``own.toml``."""
    return value in (None, [], {}) or (place in DATA.defaults and DATA.defaults[place] == value)

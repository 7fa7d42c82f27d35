"""The objects of a cluster in memory, found by kind, by owner and by name without a search through all of them."""

from collections import UserDict
from collections.abc import Mapping

from app.kube.base import Json
from app.kube.names import CONTROLLER_UID

Key = tuple[str, str]
"""Metacontroller's keys: ``Deployment.apps/v1`` and ``namespace/name``."""


class Store(UserDict[Key, Json]):
    """Objects by kind and name. Who owns an object, and its labels, are read when it is put here."""

    def __init__(self, objects: Mapping[Key, Json] | None = None) -> None:
        self._kinds: dict[str, dict[str, Json]] = {}
        self._owned: dict[str, dict[Key, Json]] = {}
        self._labelled: dict[tuple[str, str, str], dict[str, Json]] = {}
        super().__init__(objects or {})

    def __setitem__(self, key: Key, document: Json) -> None:
        if key in self.data:
            self._forget(key)
        self.data[key] = document
        self._kinds.setdefault(key[0], {})[key[1]] = document
        if uid := owner(document):
            self._owned.setdefault(uid, {})[key] = document
        for label, value in _labels(document).items():
            self._labelled.setdefault((key[0], label, value), {})[key[1]] = document

    def __delitem__(self, key: Key) -> None:
        self._forget(key)
        del self._kinds[key[0]][key[1]]
        if not self._kinds[key[0]]:
            del self._kinds[key[0]]
        del self.data[key]

    def of_kind(self, outer: str) -> Mapping[str, Json]:
        """The objects of one kind by ``namespace/name``."""
        return self._kinds.get(outer, {})

    def owned_by(self, uid: str) -> Mapping[Key, Json]:
        """Return the objects that the object with this uid owns."""
        return self._owned.get(uid, {})

    def labelled(self, outer: str, label: str, value: str) -> Mapping[str, Json]:
        """The objects of one kind that carry a label, by ``namespace/name``."""
        return self._labelled.get((outer, label, value), {})

    def _forget(self, key: Key) -> None:
        document = self.data[key]
        self._owned.get(owner(document), {}).pop(key, None)
        for label, value in _labels(document).items():
            self._labelled.get((key[0], label, value), {}).pop(key[1], None)


def owner(document: Json) -> str:
    """The uid of the parent that Metacontroller made the object for; empty without one.

    Objects without the label are identified by their owner reference, which other operators also write.
    """
    labelled = _labels(document).get(CONTROLLER_UID)
    if labelled:
        return str(labelled)
    references = document["metadata"].get("ownerReferences") or ()
    return next((str(reference.get("uid", "")) for reference in references if reference.get("controller")), "")


def _labels(document: Json) -> dict[str, str]:
    labels: dict[str, str] = document["metadata"].get("labels") or {}
    return labels

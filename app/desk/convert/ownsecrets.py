"""Take what is secret out of users' own workloads: their pods read it from a Secret, and no output has it."""

import copy
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, count

from app.desk.convert.translate import Entry, Keys
from app.desk.convert.workloads import DATA, server_of
from app.desk.files.manifests import Manifest
from app.kube.base import Json

_WITHHELD = "a secret is not written into manifests: put it into the Secret {}, key {}, which the new pods read"
_VALUE = r"""(?P<text>'[^']+'|"[^"$`]+"|[^\s"'`$;&|<>()-][^\s"'`$;&|<>()]*)"""
_ASSIGNED = re.compile(rf"(?P<name>(?<![\w-])[A-Za-z_]\w*)={_VALUE}")
_OPTION = re.compile(rf"(?P<name>(?<![\w-])--[\w-]+)(?:=|\s+(?:\\\n\s*)?){_VALUE}")


@dataclass
class Withheld:
    """The secrets taken out of a workload."""

    secret: str
    """The name of the Secret in which the new pods read it."""
    lost: list[Entry] = field(default_factory=list)
    keys: dict[str, str] = field(default_factory=dict)
    """The values by their keys in the Secret."""

    def key(self, name: str, value: str, taken: Collection[str] = ()) -> str:
        """Return the key of a value: the name of its variable, with a number where that is taken by another."""
        names = chain([name], (f"{name}_{number}" for number in count(2)))
        return next(key for key in names if key not in taken and self.keys.setdefault(key, value) == value)

    def command(self) -> str:
        """Return the command that makes the Secret, from variables of the shell that must be set."""
        variables = ((key, re.sub(r"\W", "_", key)) for key in self.keys)
        return f"create secret generic {self.secret} " + " ".join(
            f'--from-literal={key}="${{{variable}:?}}"' for key, variable in variables
        )


def without_secrets(manifest: Manifest, secret: str) -> tuple[Manifest, Withheld]:
    """Return a workload whose containers read from a Secret what they have in clear text, and what that is."""
    document, withheld = copy.deepcopy(manifest.document), Withheld(secret)
    pod: Json = document["spec"]["template"]["spec"]
    changed = replace(manifest, document=document)
    for kind in ("initContainers", "containers"):
        for place, container in enumerate(pod.get(kind) or ()):
            keys: Keys = ("spec", "template", "spec", kind, place)
            for where, key in _ServerContainer(container, withheld).run():
                reason = _WITHHELD.format(secret, key)
                withheld.lost.append(Entry(changed, (*keys, *where), {}, reason=reason))
    return (changed, withheld) if withheld.lost else (manifest, withheld)


def is_secret_variable(name: str) -> bool:
    """Report whether a variable of this name has a token, a key or a password."""
    return f"_{name.upper()}".endswith(tuple(f"_{ending}" for ending in DATA.secrets.endings))


class _ServerContainer:
    def __init__(self, container: Json, withheld: Withheld) -> None:
        self.container, self.withheld = container, withheld
        self.widths = _widths(container)

    def run(self) -> Iterator[tuple[Keys, str]]:
        """Write references in place of values; yield the place of each, and its key in the Secret."""
        for place, variable in enumerate(self.container.get("env") or ()):
            name, value = str(variable.get("name")), variable.get("value")
            named = (variable.get("valueFrom") or {}).get("secretKeyRef") or {}
            if named.get("name") == self.withheld.secret:  # of a shell's variable without a value
                self.withheld.key(named["key"], "")
            if isinstance(value, str) and value and is_secret_variable(name) and "$(" not in value:
                del variable["value"]
                key = self.withheld.key(name, value)
                variable["valueFrom"] = self._source(key)
                yield ("env", place), key
        end = 0
        for name in ("command", "args"):
            words = self.container.get(name) or []
            start, end = end, end + len(words)
            for at in range(len(words)):
                if isinstance(words[at], str):
                    words[at], keys = self._word(words[at], start + at)
                    yield from (((name, at), key) for key in keys)

    def _word(self, word: str, position: int) -> tuple[str, list[str]]:
        """Return a word with variables in place of secrets, and their keys."""
        option, equals, value = word.partition("=")
        if variable := self.widths.get(position):
            return self._variable(variable, word)
        if equals and value and option in DATA.secrets.options:
            text, keys = self._variable(DATA.secrets.options[option], value)
            return f"{option}={text}", keys
        all_keys: list[str] = []

        def reference(match: re.Match[str]) -> str:
            name, text = match["name"], match["text"]
            variable = DATA.secrets.options.get(name, "") if name.startswith("-") else name * is_secret_variable(name)
            if not variable:
                return match[0]
            quote = text[0] if text[0] in "'\"" else ""
            written, keys = self._variable(variable, text.strip(quote) if quote else text)
            all_keys.extend(keys)
            quote *= not re.fullmatch(r"[\w./+=:-]+", text.strip(quote or None))  # needless around a plain word
            return f"{match[0].removesuffix(text)}{quote}{written}{quote}"

        return _OPTION.sub(reference, _ASSIGNED.sub(reference, word)), all_keys

    def _variable(self, name: str, value: str) -> tuple[str, list[str]]:
        """Return the reference to the variable of a secret, which the kubelet replaces by its value, and its key."""
        if "$(" in value:
            return value, []
        variables = self.container.setdefault("env", [])
        others = {
            variable.get("name")
            for variable in variables
            if variable.get("valueFrom") != self._source(str(variable.get("name")))
        }
        key = self.withheld.key(name, value, others)
        reference = {"name": key, "valueFrom": self._source(key)}
        if reference not in variables:
            variables.append(reference)
        return f"$({key})", [key]

    def _source(self, key: str) -> Json:
        return {"secretKeyRef": {"name": self.withheld.secret, "key": key}}


def _widths(container: Json) -> Mapping[int, str]:
    """Return the positions of words that are the values of secret options, with the variables to read them from."""
    words = [str(word) for name in ("command", "args") for word in container.get(name) or ()]
    server = server_of(container)
    first = len(words) - len(server.words)
    options = DATA.secrets.options
    positions = {at + 1: options[word] for at, word in enumerate(words[:-1]) if word in options}
    if server.parsed is not None and not server.in_script:
        for occurrence in server.parsed.occurrences:
            variable = options.get(occurrence.option)
            at = first + occurrence.at
            positions |= {at + more: variable for more in range(1, occurrence.width) if variable is not None}
    return {at: variable for at, variable in positions.items() if not words[at].startswith("-")}

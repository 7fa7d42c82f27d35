"""JSON data as YAML: block style, the order given, and nothing that two YAML readers could understand differently."""

import re
from collections.abc import Sequence
from typing import Any

import yaml

from app.desk.files.printing import is_plain, lines

_NUMBER_LIKE = re.compile(r"[-+.]?[0-9][0-9a-fA-FxXoOeE_.:+-]*")
_STRING = "tag:yaml.org,2002:str"
_BOOLEAN_LIKE = frozenset({"y", "Y", "n", "N"})
"""YAML 1.1 booleans that PyYAML reads and writes as text, but the YAML library of kubectl does not."""


_Base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""libyaml writes the same text in a fifth of the time, where PyYAML was built with it."""
_FORM: Any = {"sort_keys": False, "default_flow_style": False}


class _Dumper(_Base):  # type: ignore[misc]  # libyaml's class or PyYAML's, whose stubs have no common base
    """No anchors and aliases: equal parts are written out each time."""

    def ignore_aliases(self, _data: object) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Represent a string in the plainest style that every reader takes for a string."""
    style = None
    if not text.replace("\n", "").isprintable() or text in _BOOLEAN_LIKE or _NUMBER_LIKE.fullmatch(text):
        style = '"'
    elif "\n" in text:
        style = "|"
    return dumper.represent_scalar(_STRING, text, style=style)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(tuple, lambda dumper, items: dumper.represent_list(list(items)))


class _QuotingDumper(_Dumper):
    """Every string in double quotes, so that its lines can have escapes."""


_QuotingDumper.add_representer(str, lambda dumper, text: dumper.represent_scalar(_STRING, text, style='"'))


def dump(document: object) -> str:
    """One document, ending in a newline. What :func:`.printing.escaped` would change is escaped in quotes."""
    text: str = yaml.dump(document, Dumper=_Dumper, allow_unicode=True, width=110, **_FORM)
    if is_plain(text):
        return text
    return lines(yaml.dump(document, Dumper=_QuotingDumper, width=2**31 - 1, **_FORM).splitlines())


def dump_all(documents: Sequence[object]) -> str:
    return "---\n".join(dump(document) for document in documents)

"""The words of a user's arguments for a server that a preset's script starts. Source: KS-2.7.2.

KServe's scripts have the shell evaluate the arguments, which drops, changes or runs what the kubelet put there in place
of ``$(NAME)``. Here the template's string is read as words before the kubelet sees it: quotes and backslashes are
those of a shell, and ``$NAME`` of a variable that the container has becomes the kubelet's ``$(NAME)``. The script
passes the arguments on as they are. ``VLLM_ADDITIONAL_ARGS`` may come from elsewhere, so the script splits it by the
same grammar (``presets/words.sh``), and then fills in ``$(NAME)``, once.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Literal, NamedTuple

from app.kserve.constants import MAIN, MODEL_SERVERS
from app.kserve.spec.presets.parts import WORDS
from app.kube import podspec
from app.kube.base import Json
from app.kube.merge import find, replaced
from app.limits import MAX_SHELL_CHARACTERS
from app.workload.engines.engine import ADDITIONAL

_OPTION_AND_MORE = re.compile(r"--?[A-Za-z][\w.-]*\s+\S.*", re.DOTALL)
_QUOTED = re.compile(r"""(?:--?[A-Za-z][\w.-]*=)?(?:'.*'|".*")""", re.DOTALL)
_JSON = re.compile(r"(?:--[^=]*=)?[\[{].*", re.DOTALL)
_BEFORE_JSON = re.compile(r"(?:-[^=]*=)?")
_BLANKS, _TEXT = r"(?:[ \t\r\n]|\\\r?\n)+", r"""(?:\$\{\w+\}|[^][{}'"\\ \t\r\n])+|[][{}]"""
_PIECE = re.compile(
    rf"""(?P<blanks>{_BLANKS})|(?P<single>'[^']*')|(?P<double>"(?:[^"\\]|\\.)*")|(?P<escaped>\\.)|(?P<text>{_TEXT})""",
    re.DOTALL,
)
_IN_JSON = re.compile(r'"(?:[^"\\]|\\.)*"|[^][{}"\\]+|(?P<escaped>\\.)|(?P<open>[\[{])|(?P<close>[\]}])', re.DOTALL)
_IN_DOUBLE = re.compile(r'\\(?:([\\"$`])|\n)')
_VARIABLE = re.compile(r"(?<![\\$])\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_]\w*)\)")
_GROUP_VARIABLES = ("LWS_LEADER_ADDRESS", "LWS_GROUP_SIZE", "LWS_WORKER_INDEX")
"""Variables that LeaderWorkerSet's controller adds to the pods of a group."""
_EVALUATED = re.compile(r"""[\s'"`\\;&|<>()*?$]|^[#~]|^$|\{.*(?:,|\.\.).*\}""")
"""Matches a word that is something else for a shell."""
Kind = Literal["blanks", "single", "double", "escaped", "text", "json"]


class UnreadableError(ValueError):
    """A quote, a bracket or a backslash has no end."""


class _Piece(NamedTuple):
    kind: Kind
    raw: str

    @property
    def value(self) -> str:
        return _VALUES[self.kind](self.raw)


_VALUES: Mapping[Kind, Callable[[str], str]] = {
    "blanks": lambda raw: raw,
    "single": lambda raw: raw[1:-1],
    "double": lambda raw: _IN_DOUBLE.sub(r"\1", raw[1:-1]),
    "escaped": lambda raw: raw[1:],
    "text": lambda raw: raw,
    "json": lambda raw: _IN_JSON.sub(lambda m: m[0][1:] if m["escaped"] else m[0], raw),
}


def _pieces(text: str) -> Iterator[_Piece]:
    """Yield the parts of words and the blanks between them. Raises :class:`UnreadableError`."""
    word, position = "", 0
    while position < len(text):
        if text[position] in "[{" and _BEFORE_JSON.fullmatch(word):
            piece = _Piece("json", text[position : _end_of_json(text, position)])
        else:
            piece = _piece(text, position)
        yield piece
        word = "" if piece.kind == "blanks" else word + piece.value
        position += len(piece.raw)


def _piece(text: str, position: int) -> _Piece:
    match = _PIECE.match(text, position)
    if match is None:
        raise UnreadableError
    return _Piece(match.lastgroup, match[0])  # type: ignore[arg-type]  # the names of the groups


def _end_of_json(text: str, position: int) -> int:
    depth = 0
    while match := _IN_JSON.match(text, position):
        position = match.end()
        depth += (match["open"] is not None) - (match["close"] is not None)
        if not depth:
            return position
    raise UnreadableError


def split(text: str, known: Collection[str] = ()) -> list[str]:
    """Return the words of a string, ``$NAME`` of known variables as ``$(NAME)``. Raises :class:`UnreadableError`."""
    words: list[list[str]] = [[]]
    for piece in _pieces(text):
        if piece.kind == "blanks":
            words.append([])
        else:
            words[-1].append(_referring(piece, known).value)
    return ["".join(word) for word in words if word]


def _referring(piece: _Piece, known: Collection[str]) -> _Piece:
    """Write a shell's variables as the kubelet's, where a shell reads them: neither in single quotes nor in JSON."""
    return _Piece(piece.kind, _referred(piece.raw, known)) if piece.kind in ("text", "double") else piece


def _referred(text: str, known: Collection[str]) -> str:
    def reference(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        return f"$({name})" if name in known else match[0]

    return _VARIABLE.sub(reference, text)


def is_for_shells(argument: str) -> bool:
    """Report whether an argument is written for a shell: options and values in one string, or quotes around a value."""
    is_short = len(argument) <= MAX_SHELL_CHARACTERS
    return is_short and bool(_OPTION_AND_MORE.fullmatch(argument) or _QUOTED.fullmatch(argument))


def argument_words(argument: str, known: Collection[str] = ()) -> list[str]:
    """Return the words of one of ``args``, which is a single one, unless it is written for a shell."""
    try:
        if is_for_shells(argument):
            return split(argument, known)
    except UnreadableError:
        pass
    return [argument if _JSON.fullmatch(argument) else _referred(argument, known)]


def was_evaluated(argument: str, known: Collection[str]) -> bool:
    """Report whether a shell would have made something else of an argument that is passed on as it is."""
    if argument_words(argument) != [argument] or _JSON.fullmatch(argument):
        return False
    return bool(_EVALUATED.search(_REFERENCE.sub("x", _referred(argument, known))))


def unknown_variable(argument: str, known: Collection[str]) -> str:
    """Return the name of a shell's variable in an argument that the container does not have."""
    names = (match[1] or match[2] for match in _VARIABLE.finditer(argument) if not _JSON.fullmatch(argument))
    single = "'" in argument
    return "" if single else next((name for name in names if name not in (*known, *_GROUP_VARIABLES)), "")


def with_words(document: Json) -> Json:
    """Write the arguments of servers that a preset's script starts as the words that they are."""
    for path in MODEL_SERVERS:
        pod = find(document, path)
        if pod and pod.get("containers"):
            in_group = find(document, (*path[:-1], "worker")) is not None
            read = podspec.with_container(pod, MAIN, partial(_read, in_group=in_group))
            document = replaced(document, path, read)
    return document


def _read(main: Json, in_group: bool) -> Json:
    if not any(WORDS in str(part) for part in main.get("command") or ()):
        return main
    env = main.get("env") or []
    names = {str(variable.get("name")) for variable in env} | set(_GROUP_VARIABLES if in_group else ())
    lists = {variable["name"]: value for variable in env if (value := _options(variable))}
    changed = dict(main)
    if args := main.get("args"):
        texts = (_inlined(str(argument), lists) for argument in args)
        changed["args"] = [word for text in texts for word in argument_words(text, names)]
    if any(variable.get("name") == ADDITIONAL for variable in env):
        changed["env"] = [_deferred(variable, lists, names) for variable in env]
    return changed


def _options(variable: Json) -> str:
    """Return the value of a variable that holds options, which may be several words where it is referred to."""
    value = str(variable.get("value") or "")
    return value if variable.get("name") != ADDITIONAL and value.startswith("--") else ""


def _inlined(text: str, lists: Mapping[str, str]) -> str:
    return _REFERENCE.sub(lambda match: lists.get(match[1] or "", match[0]), text)


def _deferred(variable: Json, lists: Mapping[str, str], known: Collection[str]) -> Json:
    """Leave the references in additional arguments to the script, so that no value is read as words."""
    text = variable.get("value")
    if variable.get("name") != ADDITIONAL or not text or len(text) > MAX_SHELL_CHARACTERS:
        return variable
    try:
        pieces = list(_pieces(_inlined(text, lists)))
    except UnreadableError:
        return variable
    referring = "".join(_referring(piece, known).raw for piece in pieces)
    return {
        **variable,
        "value": _REFERENCE.sub(lambda match: f"${match[0]}" if match[1] in known else match[0], referring),
    }

"""Read a shell's script as far as it can be known before it runs: its commands, and the words of each.

What only the running script knows is written as the kubelet writes a reference, ``$(NAME)``, which readers of words
take for any value.
"""

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

import msgspec

from app.kube.regex import regex
from app.limits import MAX_SHELL_CHARACTERS, MAX_SHELL_DEPTH


class _Change(NamedTuple):
    name: str
    value: str | None = None
    is_export: bool = False


class ShellCommand(msgspec.Struct, frozen=True):
    words: tuple[str, ...]
    is_open: bool = False
    """There may be other words beside them, of an expression without quotes."""
    settings: tuple[tuple[str, str | None], ...] = ()
    """The variables that are set for this command alone; ``None`` for any value."""
    earlier: Sequence[_Change] = ()
    """Changes of variables in the script, of which the first ``changes`` are in front of the command."""
    changes: int = 0
    branches: tuple[tuple[Hashable, int], ...] = ()
    """The conditions around it, each with the number of its branch."""
    place: int = 0
    is_last: bool = False
    """Nothing of the script runs behind it: it takes the place of the shell."""
    may_not_run: bool = False

    def environment(self, inherited: Iterable[str]) -> dict[str, str | None]:
        """Return the variables that the script hands to the program, beside those with ``inherited`` names.

        Of these too, if the script changes them; ``None`` for any value.
        """
        exported, values = {*inherited}, dict[str, str | None]()
        for change in self.earlier[: self.changes]:
            if change.is_export:
                exported.add(change.name)
            else:
                values[change.name] = change.value
        return {**{name: value for name, value in values.items() if name in exported}, **dict(self.settings)}

    def excludes(self, later: "ShellCommand") -> bool:
        """Report whether a run of the script that starts this command does not start a later one."""
        others = dict(later.branches)
        return self.is_last or any(others.get(block, branch) != branch for block, branch in self.branches)


class ScriptError(ValueError):
    """A quote, bracket or here-document has no end, or the script, or what its words become, is too long or deep."""


def commands(script: str, variables: Sequence[tuple[str, str | None]], arguments: Sequence[str]) -> list[ShellCommand]:
    """Return the commands of a script in the order in which they are written. Raises :class:`ScriptError`.

    ``variables`` are those of the container, ``None`` for a value from elsewhere; ``arguments`` the words behind the
    script, of which the first is its name.
    """
    values = dict(variables)
    inserted = (values.get(match[2]) or "" for match in _REFERENCE.finditer(script))
    if len(script) > MAX_SHELL_CHARACTERS or len(script) + sum(map(len, inserted)) > MAX_SHELL_CHARACTERS:
        raise ScriptError
    text = _REFERENCE.sub(lambda match: match[1] or values.get(match[2]) or match[0], script)
    reader = _Commands(values, arguments)
    return [command for part in [*_Lexer(text).tokens(), ";"] if (command := reader.take(part)) is not None]


_NAME = r"[A-Za-z_]\w*"
_REFERENCE = regex(rf"\$(\$)|\$\(({_NAME})\)")
"""References that the kubelet replaces before the shell reads the script."""


# Tokens: words, of which each part is a text or an expression, and operators.


class _Part(msgspec.Struct, frozen=True):
    text: str
    is_expression: bool = False
    is_quoted: bool = False


_Word = tuple[_Part, ...]
_AT_START = r"(?<![^\s;&|()])"
_EXPRESSION = rf"(?P<call>\$\(|`)|(?P<variable>\$(?:\{{[^{{}}]*\}}|{_NAME}|[@*\#?$!\d-]))"
_TOKEN = regex(
    rf"""(?P<blank>[ \t\r]+)|(?P<joined>\\\n)|(?P<newline>\n)|(?P<comment>{_AT_START}\#[^\n]*)
    |(?P<redirect>(?:{_AT_START}\d+)?(?:<<<|<<-?|>>|<>|>&|<&|>\||&>>?|<|>))|(?P<operator>&&|\|\||;;|[;&|()])
    |(?P<array>{_AT_START}{_NAME}\+?=\()|(?P<single>'[^']*')|(?P<ansi>\$'(?:[^'\\]|\\.)*')|(?P<quote>")
    |(?P<escaped>\\.)|{_EXPRESSION}|(?P<text>\{{\{{[^{{}}]*\}}\}}|[^\s;&|()<>'"\\$`{{]+|\{{|\$)""",
    re.DOTALL | re.VERBOSE,
)
_IN_QUOTES = regex(
    rf"""(?P<quote>")|(?P<joined>\\\n)|(?P<escaped>\\["\\$`])|{_EXPRESSION}|(?P<text>[^"\\$`]+|.)""",
    re.DOTALL | re.VERBOSE,
)
_IN_CALL = regex(r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.|(?P<open>\()|(?P<close>\))|[^'"\\()]+""", re.DOTALL)
_INNER = {"single": slice(1, -1), "ansi": slice(2, -1), "escaped": slice(1, None), "joined": slice(0, 0)}


class _Lexer:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.word: list[_Part] = []
        self.redirection = ""
        """The operator whose target the next word is."""
        self.documents: list[str] = []
        """The last lines of the here-documents behind the present line."""

    def tokens(self) -> Iterator[_Word | str]:
        while self.at < len(self.text):
            match = self._match(_TOKEN)
            kind, raw = str(match.lastgroup), match[0]
            if kind == "comment" and self.word:  # behind a blank that is a part of the word
                self.word.append(_Part("#"))
                self.at = match.start() + 1
                continue
            if kind == "joined":  # two lines, of which a word may be at the end of one and the start of the other
                continue
            if kind not in ("blank", "comment", "newline", "operator", "redirect"):
                self.word += self._parts(kind, raw)
                continue
            yield from self._end_of_word()
            if kind == "redirect":
                self.redirection = raw
            elif kind == "operator":
                yield raw
            elif kind == "newline":
                yield ";"
                self._skip_documents()
        yield from self._end_of_word()
        if self.documents:
            raise ScriptError

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise ScriptError
        self.at = match.end()
        return match

    def _end_of_word(self) -> Iterator[_Word]:
        word, self.word = tuple(self.word), []
        if word and self.redirection:
            self.documents += (_text(word),) if self.redirection.endswith(("<<", "<<-")) else ()
            self.redirection = ""
        elif word:
            yield word

    def _skip_documents(self) -> None:
        while self.documents:
            line, end, _ = self.text[self.at :].partition("\n")
            if line.strip("\t\r") == self.documents[0]:
                self.documents.pop(0)
            elif not end:
                raise ScriptError
            self.at += len(line) + len(end)

    def _parts(self, kind: str, raw: str, *, is_quoted: bool = False) -> list[_Part]:
        match kind:
            case "quote":
                return self._quoted()
            case "variable":
                return [_Part(raw, True, is_quoted)]
            case "call":
                return [_Part(self._call(raw), True, is_quoted)]
            case "array":
                return [_Part(raw[:-1]), _Part(self._call("$("), True)]
            case _:
                return [_Part(raw[_INNER[kind]] if kind in _INNER else raw)]

    def _quoted(self) -> list[_Part]:
        parts = [_Part("")]
        while (match := self._match(_IN_QUOTES)).lastgroup != "quote":
            parts += self._parts(str(match.lastgroup), match[0], is_quoted=True)
        return parts

    def _call(self, opening: str) -> str:
        """Return a command whose output is inserted, up to its end."""
        start, depth = self.at - len(opening), 1
        if opening == "`":
            self.at = self.text.find("`", self.at) + 1 or len(self.text)
            return self.text[start : self.at]
        while depth:
            match = self._match(_IN_CALL)
            depth += (match["open"] is not None) - (match["close"] is not None)
        return self.text[start : self.at]


def _text(word: Iterable[_Part]) -> str:
    return "".join(part.text for part in word)


# Commands, with what is known of the variables where they stand.

_ALL = ("$@", "${@}")
_PARAMETER = regex(rf"\$\{{?({_NAME}|[0-9])\}}?")
_NAMED = regex(_NAME)
_ASSIGNED = regex(rf"({_NAME})\+?=")
_OPENING, _CLOSING = ("if", "while", "until", "for", "select", "case", "{"), ("fi", "done", "esac", "}")
_OTHERWISE = ("else", "elif")
_BETWEEN = ("then", *_OTHERWISE, "do", "!", "time")
_KEYWORDS = (*_OPENING, *_CLOSING, *_BETWEEN)
_NAMING = ("for", "select", "case")
_GOES_ON = ("&", "|", "||")
"""Ends of commands behind which the shell goes on at once, or if the command fails."""
_SETTERS = ("export", "readonly", "local", "declare", "typeset")


class _Commands:
    def __init__(self, variables: dict[str, str | None], arguments: Sequence[str]) -> None:
        self.variables = {**variables, "0": next(iter(arguments), None)}
        self.arguments: Sequence[str] | None = arguments[1:]
        self.around: list[str] = []
        """Conditions, loops, functions and subshells around the place, whose commands may not run."""
        self.branches: tuple[tuple[int, int], ...] = ()
        """The number of each of them, with the number of its branch."""
        self.blocks, self.commands = 0, 0
        self.changes: list[_Change] = []
        self.words: list[_Word] = []
        self.rest = MAX_SHELL_CHARACTERS * _EXPANSION
        """Characters that the words may still become."""
        self.is_else = False
        """The command runs only if the one in front of it fails."""
        self.is_then = False
        """The command runs only if the one in front of it does not fail."""

    def take(self, part: _Word | str) -> ShellCommand | None:
        """Take the next word or operator, and return the command that ends with it."""
        if not isinstance(part, str):
            self.words.append(part)
            return None
        words, self.words = self._without_keywords(self.words), []
        in_case = self.around[-1:] == ["case"]
        is_command = words and part != "(" and not (in_case and part == ")")  # which ends a pattern
        command = self._command(words, part) if is_command else None
        if part == "(":
            self.arguments = None if words else self.arguments  # those of a function are others
            self._open(part)
        elif part == ")" and self.around[-1:] == ["("]:
            self._close()
        elif part == ";;" and in_case:
            self._next_branch()
        self.is_else, self.is_then = part == "||", part == "&&"
        return command

    def _open(self, keyword: str) -> None:
        if len(self.around) == MAX_SHELL_DEPTH:
            raise ScriptError
        self.around.append(keyword)
        self.branches = (*self.branches, (self.blocks, 0))
        self.blocks += 1

    def _close(self) -> None:
        self.around, self.branches = self.around[:-1], self.branches[:-1]

    def _next_branch(self) -> None:
        block, branch = self.branches[-1]
        self.branches = (*self.branches[:-1], (block, branch + 1))

    def _without_keywords(self, words: list[_Word]) -> list[_Word]:
        for place, word in enumerate(words):
            keyword = _text(word)
            if keyword not in _KEYWORDS:
                return words[place:]
            if keyword in _CLOSING:
                self._close()
            elif keyword in _OPENING:
                self._open(keyword)
            elif keyword in _OTHERWISE and self.around[-1:] == ["if"]:
                self._next_branch()
            if keyword in _NAMING:
                self.variables.update(dict.fromkeys(map(_text, words[place + 1 : place + 2])))
                return []
        return []

    def _command(self, words: list[_Word], end: str) -> ShellCommand | None:
        start = sum(1 for _ in takewhile(_ASSIGNED.match, map(_text, words)))
        settings, rest = words[:start], words[start:]
        if not rest:
            self._assign(words)
            return None
        fields = [self._fields(word) for word in rest]
        argv = [text for texts, _ in fields for text in texts]
        assignments, changes = tuple(map(self._setting, settings)), len(self.changes)
        self._run(argv[:1], argv[1:], rest[1:])
        self.commands += 1
        return ShellCommand(
            tuple(argv),
            any(is_open for _, is_open in fields),
            assignments,
            self.changes,
            changes,
            self.branches,
            self.commands,
            is_last=argv[:1] == ["exec"] and end not in _GOES_ON and "(" not in self.around,
            may_not_run=self._may_not_run or self.is_then,
        )

    def _run(self, name: list[str], operands: list[str], words: list[_Word]) -> None:
        """Follow what a command does to variables and arguments."""
        match name:
            case [setter] if setter in _SETTERS:
                self._assign([word for word in words if _ASSIGNED.match(_text(word))])
                if setter == "export" or "-x" in operands:
                    names = (operand.partition("=")[0].removesuffix("+") for operand in operands)
                    self.changes += (_Change(name, is_export=True) for name in names)
            case ["unset" | "read"]:
                self.variables.update(dict.fromkeys(operands))
                self.changes += map(_Change, operands)
            case ["set"] if "--" in operands:
                self.arguments = None if self._may_not_run else operands[operands.index("--") + 1 :]
            case ["shift"]:
                self.arguments = None
            case ["source" | "." | "eval"]:
                self.variables = {}

    @property
    def _may_not_run(self) -> bool:
        return bool(self.around) or self.is_else

    def _assign(self, words: Iterable[_Word]) -> None:
        for word in words:
            name, value = self._setting(word)
            self.variables[name] = None if self._may_not_run else value
            self.changes.append(_Change(name, self.variables[name]))

    def _setting(self, word: _Word) -> tuple[str, str | None]:
        """Return a variable and the value that a word gives it; ``None`` for one that is not known."""
        name, _, value = " ".join(self._fields(word, divides=False)[0]).partition("=")
        return name.removesuffix("+"), None if name.endswith("+") or "$(" in value else value

    def _fields(self, word: _Word, *, divides: bool = True) -> tuple[list[str], bool]:
        """Return the words that a word becomes, and whether there may be others."""
        fields: list[str] = []
        is_open = is_ended = False
        is_alone = len(_text(part for part in word if not part.is_expression)) <= _BESIDE
        for part in word:
            values, is_divided = self._values(part, divides), _is_divided(part, divides)
            if values is None:
                is_list = part.text in _ALL or "[@]" in part.text
                is_open |= is_alone and divides and (is_list or not part.is_quoted)
                values, is_divided = [f"$({_name(part.text)})"], False
            self._spend(values)
            for place, text in enumerate(values):
                is_ended |= place > 0
                if text or not is_divided:
                    fields[-1:] = [*fields[-1:], text] if is_ended else ["".join((*fields[-1:], text))]
                    is_ended = False
        is_nothing = fields == [""] and any(part.text in _ALL for part in word)
        return ([] if is_nothing else fields), is_open

    def _values(self, part: _Part, divides: bool) -> Sequence[str] | None:
        """Return the words of a part, with an empty one where a blank starts or ends it; ``None`` if not known."""
        if not part.is_expression:
            return [part.text]
        if part.text in (*_ALL, "$*", "${*}"):
            values = self.arguments
        else:
            match = _PARAMETER.fullmatch(part.text)
            value = self._value(match[1]) if match is not None else None
            values = None if value is None else [value]
        if values is None or (part.is_quoted and part.text in _ALL):
            return values
        text = " ".join(values)
        return _BLANKS.split(text) if _is_divided(part, divides) else [text]

    def _spend(self, texts: Sequence[str]) -> None:
        """Count texts, which variables may repeat over and over."""
        self.rest -= len(texts) + sum(map(len, texts))
        if self.rest < 0:
            raise ScriptError

    def _value(self, name: str) -> str | None:
        if self.arguments is None or name == "0" or not name.isdecimal():
            return self.variables.get(name)
        return "".join(self.arguments[int(name) - 1 : int(name)])


def _is_divided(part: _Part, divides: bool) -> bool:
    """Report whether blanks divide what an expression becomes."""
    return divides and part.is_expression and not part.is_quoted


_BLANKS = regex(r"[ \t\n]+")
_EXPANSION = 4
"""The most by which variables and arguments may lengthen a script."""
_BESIDE = 1
"""Characters beside an expression that may still become several words."""


def _name(expression: str) -> str:
    match = _NAMED.search(expression)
    return match[0] if match is not None and expression.startswith("$") else "output"

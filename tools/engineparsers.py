"""Run the own parser of vLLM or SGLang from an unpacked wheel: ``python engineparsers.py FOLDER describe|judge``.

``describe`` prints the options of the parser as JSON. ``judge`` reads command lines as a JSON list of lists, and prints
why each ends the server, or an empty string. For an interpreter that has what the parsers themselves need
(:data:`tools.engines.NEEDED`): their other imports, such as torch, are replaced by stand-ins. This module
imports nothing of the project.
"""

from __future__ import annotations

import abc
import argparse
import contextlib
import dataclasses
import importlib
import importlib.abc
import importlib.machinery
import io
import json
import os
import sys
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

_PACKAGES = ("vllm", "sglang")
_COMPILED = ("vllm._C", "vllm._moe_C", "vllm.vllm_flash_attn._")
"""Compiled modules of the wheels, which are not unpacked."""
_HEAVY = ("vllm.ir", "vllm.v1.executor")
"""Modules of vLLM that declare nothing of the parser, and compute with torch when they are imported."""
_OTHER_DEVICES = frozenset({"get_current_target", "hpu", "mps", "musa", "npu"})
"""Attributes of torch and triton by whose presence the packages tell what they run on."""
_NO_MODULES = frozenset({"sphinx", "torch_npu", "torch_xla"})


# Stand-ins: values that can be called, indexed, compared, inherited from and annotated with.


def _attribute(owner: Any, name: str) -> Any:
    if (name.startswith("__") and name.endswith("__")) or name in _OTHER_DEVICES:
        raise AttributeError(name)
    stand_in = _stand_in(name)
    setattr(owner, name, stand_in)
    return stand_in


def _added(self: Any, other: Any) -> Any:
    return other if isinstance(other, str | int | list | tuple) else self


def _called(self: Any, *arguments: Any, **keywords: Any) -> Any:
    """Return a decorated function or class as it is."""
    decorates = len(arguments) == 1 and not keywords and isinstance(arguments[0], types.FunctionType | type)
    return arguments[0] if decorates else self


_ARITHMETIC = (
    *("and", "floordiv", "mul", "neg", "or", "pow", "rmul"),
    *("ror", "rpow", "rsub", "rtruediv", "sub", "truediv"),
)
_OPERATORS: dict[str, Any] = {
    **{f"__{sign}__": lambda self, *_: self for sign in _ARITHMETIC},
    **dict.fromkeys(("__add__", "__radd__"), _added),
    **{f"__{sign}__": lambda _, __: False for sign in ("lt", "gt", "contains")},
    **{f"__{sign}__": lambda _, __: True for sign in ("le", "ge")},
    "__iter__": lambda _: iter(()),
    "__len__": lambda _: 0,
    "__bool__": lambda _: False,
    "__int__": lambda _: 0,
    "__index__": lambda _: 0,
    "__getitem__": lambda self, _: self,
    "__enter__": lambda self: self,
    "__exit__": lambda *_: None,
}


class _StandInType(abc.ABCMeta):
    def __getattr__(cls, name: str) -> Any:
        return _attribute(cls, name)

    def register(cls, *_: Any, **__: Any) -> Any:
        return cls

    def __or__(cls, other: Any) -> Any:
        return typing.Union[cls, other]  # noqa: UP007 - the operator is this function

    def __ror__(cls, other: Any) -> Any:
        return typing.Union[other, cls]  # noqa: UP007

    def __call__(cls, *arguments: Any, **keywords: Any) -> Any:
        if type.__getattribute__(cls, "__init__") is not _no_init:
            return super().__call__(*arguments, **keywords)
        result = _called(None, *arguments, **keywords)
        return super().__call__() if result is None else result


for _name in _OPERATORS.keys() - {"__or__", "__ror__"}:
    setattr(_StandInType, _name, _OPERATORS[_name])


def _no_init(self: Any, *_: Any, **__: Any) -> None:
    pass


def _any_schema(cls: type, *_: Any) -> Any:
    return importlib.import_module("pydantic_core").core_schema.any_schema()


def _stand_in(name: str) -> Any:
    body = {
        **_OPERATORS,
        "__module__": "standins",
        "__init__": _no_init,
        "__init_subclass__": classmethod(lambda _cls, **_: None),
        "__call__": _called,
        "__eq__": lambda self, other: type(self) is type(other),
        "__hash__": lambda self: hash(type(self)),
        "__getattr__": lambda self, attribute: _attribute(type(self), attribute),
        "__get_pydantic_core_schema__": classmethod(_any_schema),
    }
    return _StandInType(name, (), body)


class Module(types.ModuleType):
    __version__ = "2.99.0"

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)

    def __getattr__(self, name: str) -> Any:
        return _attribute(self, name)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a stand-in for each missing module that one of the packages, or a stand-in, imports."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:  # noqa: ARG002 - of the protocol
        root, _, below = name.partition(".")
        if root in sys.stdlib_module_names or root in _NO_MODULES:
            return None
        if root in _PACKAGES:
            return _spec(name, self) if name.startswith(_COMPILED) else None
        if below:
            return _spec(name, self) if isinstance(sys.modules.get(name.rpartition(".")[0]), Module) else None
        return _spec(name, self) if _importer() in _PACKAGES else None

    def create_module(self, spec: Any) -> Any:
        return Module(spec.name)

    def exec_module(self, module: Any) -> None:
        pass


def _spec(name: str, finder: _Finder) -> Any:
    return importlib.machinery.ModuleSpec(name, finder, is_package=True)


def _importer() -> str:
    """Return the package that imports."""
    frame: Any = sys._getframe(2)  # noqa: SLF001 - the import system tells no other way
    while frame is not None and "importlib" in frame.f_code.co_filename:
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] if frame is not None else ""


def prepare(folder: str) -> None:
    sys.path.insert(0, folder)
    transformers: Any = importlib.import_module("transformers")
    utils: Any = importlib.import_module("transformers.utils")
    imports: Any = importlib.import_module("transformers.utils.import_utils")
    decorators: Any = importlib.import_module("transformers.utils.auto_docstring")
    importlib.import_module("transformers.models.auto")
    for name in dir(imports):
        if name.startswith("is_torch"):
            with contextlib.suppress(Exception):
                getattr(imports, name)()  # remembers that there is none
    imports.requires_backends = lambda *_, **__: None
    imports.DummyObject.__getattribute__ = type.__getattribute__
    imports.DummyObject.__getattr__ = lambda _, name: _attribute(types.SimpleNamespace(), name)
    transformers.AutoConfig.register = lambda *_, **__: None
    for name in ("AutoImageProcessor", "AutoProcessor", "AutoVideoProcessor", "ProcessorMixin"):
        setattr(transformers, name, _stand_in(name))
    utils.auto_docstring = decorators.auto_docstring = lambda found=None, **_: found or (lambda later: later)
    sys.meta_path.append(_Finder())
    for name in ("torch", "dill", *_HEAVY):
        sys.modules[name] = Module(name)
    torch: Any = sys.modules["torch"]
    torch.iinfo = lambda *_: types.SimpleNamespace(min=-(2**63), max=2**63 - 1)
    dill: Any = sys.modules["dill"]
    dill.dumps = lambda _: b""


# The parsers.


def _imported(*names: str) -> Any:
    """Return the attribute that the first of several ``module:attribute`` has."""
    for name in names:
        module, _, attribute = name.partition(":")
        with contextlib.suppress(ImportError):
            return getattr(importlib.import_module(module), attribute)
    raise ImportError(", ".join(names))


def _vllm() -> tuple[Any, Callable[[list[str]], Any]]:
    """Return the parser of ``vllm serve``, and the function that reads a command line."""
    platforms: Any = importlib.import_module("vllm.platforms")
    cuda: Any = importlib.import_module("vllm.platforms.cuda")
    platforms._current_platform = cuda.NonNvmlCudaPlatform()  # noqa: SLF001 - no GPU is there to find
    parser_type = _imported("vllm.utils.argparse_utils:FlexibleArgumentParser", "vllm.utils:FlexibleArgumentParser")
    modules = ("vllm.entrypoints.common.cli_args", "vllm.entrypoints.openai.cli_args")
    build = _imported(*(f"{module}:make_arg_parser" for module in modules))
    parser = parser_type()
    serve = build(parser.add_subparsers(dest="subparser").add_parser("serve"))
    validate = _imported(*(f"{module}:validate_parsed_serve_args" for module in modules))
    if not any(action.dest == "model_tag" for action in serve._actions):  # noqa: SLF001 - of argparse
        serve.add_argument("model_tag", nargs="?")  # which vLLM 0.7.3 adds in its command, like the next one
        serve.add_argument("--config")
    return serve, lambda words: validate(parser.parse_args(["serve", *words]))


def _sglang() -> tuple[Any, Callable[[list[str]], Any]]:
    arguments: Any = importlib.import_module("sglang.srt.server_args")
    parser = argparse.ArgumentParser()
    arguments.ServerArgs.add_cli_args(parser)
    merger = "sglang.srt.utils.server_args_config_parser", "sglang.srt.server_args_config_parser"

    def parse(words: list[str]) -> Any:
        if "--config" in words:
            words = _imported(*(f"{module}:ConfigArgumentMerger" for module in merger))(parser).merge_config_with_args(
                words
            )
        return parser.parse_args(words)

    return parser, parse


_TYPES = {
    "int": "integer",
    "float": "number",
    "human_readable_int_or_auto": "size-or-auto",
    "json_list_type": "json",
    "loads": "json",
    "parse_dataclass": "object",
    "union_dict_and_str": "text-or-json",
}
"""Types of a catalogue by the names of functions; any other function reads text."""
_OPTIONAL = ("optional_type", "nullable_str")


def _describe(parser: Any, engine: str) -> Iterator[dict[str, Any]]:
    for action in parser._actions:  # noqa: SLF001 - argparse has no other list
        if action.option_strings:
            spelled = [name for name, other in parser._option_string_actions.items() if other is action]  # noqa: SLF001
            yield {"names": spelled, **_options_of(action, engine)}


def _options_of(action: Any, engine: str) -> dict[str, Any]:
    negative = getattr(action, "negative_option_strings", None)
    if isinstance(action, argparse.BooleanOptionalAction):
        negatives = negative if negative is not None else [n for n in action.option_strings if n.startswith("--no-")]
        return {"type": "switch", "off": sorted(negatives)}
    if action.nargs == 0:
        return {"type": "switch"}
    if type(action).__name__ == "StoreBoolean":
        return {"type": "boolean", "count": "?"}
    if type(action).__name__ == "LoRAParserAction":
        return {"type": "pair-or-json", "count": str(action.nargs or "")}
    functions = list(_functions(action.type))
    names = [getattr(function, "__name__", "") for function in functions]
    kind = next((_TYPES[name] for name in names if name in _TYPES), "text")
    if "human_readable_int" in names:
        kind = "size" if engine == "vllm" else "size-si"
    if kind == "object" and any("_expand_json" in name for function in functions for name in _names_in(function)):
        kind = "object-sizes"
    owner = next((function for function in functions if getattr(function, "__name__", "") == "parse_dataclass"), None)
    return {
        "type": kind,
        "count": str(action.nargs or ""),
        "default": action.default if kind == "number" else None,
        "optional": _reads_nothing(action) and (not action.choices or None in action.choices),
        "values": sorted(_values(action)),
        "folds": bool(action.choices) and "<lambda>" in names,
        "keys": _keys(owner),
        "choices": _choices(owner),
    }


def _reads_nothing(action: Any) -> bool:
    """Report whether the parser reads the empty text and ``None`` as no value, which its choices may not have."""
    return any(name in getattr(action.type, "__qualname__", "") for name in _OPTIONAL)


def _values(action: Any) -> Iterator[str]:
    unread = (None, "None") if _reads_nothing(action) else (None,)
    return (str(choice) for choice in action.choices or () if choice not in unread)


def _functions(function: Any) -> Iterator[Any]:
    """Yield a function, and those that it calls with the value."""
    if function is not None:
        yield function
        for cell in getattr(function, "__closure__", None) or ():
            if callable(cell.cell_contents):
                yield from _functions(cell.cell_contents)


def _names_in(function: Any) -> Sequence[str]:
    return getattr(getattr(function, "__code__", None), "co_names", ())


def _keys(function: Any) -> list[str]:
    """Return the keys of a configuration that refuses all others."""
    owner: Any = (getattr(function, "__defaults__", None) or (None,))[0]
    config = getattr(owner, "__pydantic_config__", None) or {}
    is_closed = owner is not None and config.get("extra") == "forbid"
    return [field.name for field in dataclasses.fields(owner)] if is_closed else []


def _choices(function: Any) -> dict[str, list[str]]:
    """Return the words that keys of a configuration take, of those that take no others and are read as they stand."""
    owner: Any = (getattr(function, "__defaults__", None) or (None,))[0]
    if owner is None or not hasattr(owner, "__pydantic_decorators__"):
        return {}
    validators = owner.__pydantic_decorators__.field_validators.values()
    changed = {name for validator in validators if validator.info.mode != "after" for name in validator.info.fields}
    hints = typing.get_type_hints(owner, include_extras=False)
    choices = {
        field.name: _words(hints[field.name]) for field in dataclasses.fields(owner) if field.name not in changed
    }
    return {name: sorted(words) for name, words in choices.items() if words}


def _words(hint: Any) -> set[str]:
    """Return the values of a type that has only strings and ``None``; empty for any other type."""
    parts = [part for part in _members(hint) if part is not type(None)]
    if not parts or any(typing.get_origin(part) is not typing.Literal for part in parts):
        return set()
    values = {value for part in parts for value in typing.get_args(part) if value is not None}
    return values if all(isinstance(value, str) for value in values) else set()


def _members(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)


def _judge(parse: Callable[[list[str]], Any], words: list[str]) -> str:
    """Return the last line with which a parser ends; empty if it does not."""
    stderr = io.StringIO()
    try:
        with contextlib.redirect_stderr(stderr), contextlib.redirect_stdout(io.StringIO()):
            parse(words)
    except SystemExit as end:
        return (stderr.getvalue().strip().splitlines() or [""])[-1] or "ends" if end.code else ""
    except Exception as error:  # noqa: BLE001 - whatever it is ends the server
        return f"{type(error).__name__}: {error}"
    return ""


def main(arguments: Sequence[str]) -> None:
    """Print the answer of the unpacked wheel's parser."""
    folder, request = arguments
    engine = next(name for name in _PACKAGES if (Path(folder) / name).is_dir())
    output, sys.stdout = sys.stdout, sys.stderr
    sys.argv[1:] = []
    os.environ["COLUMNS"] = "400"
    prepare(folder)
    parser, parse = _vllm() if engine == "vllm" else _sglang()
    if request == "describe":
        answer: list[Any] = list(_describe(parser, engine))
    else:
        answer = [_judge(parse, words) for words in json.load(sys.stdin)]
    output.write(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1:])

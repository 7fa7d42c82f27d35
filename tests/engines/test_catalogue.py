"""The catalogues agree with the engines' own sources."""

from __future__ import annotations

import ast
import json
import zipfile
from pathlib import Path

import pytest

from tools import engines

ARGUMENTS = """
from enum import Enum

class Backend(Enum):
    FAST = "a.b"
    ABSENT = ""
    NONE = None

class ModelConfig:
    dtype: Literal["auto", "half"] | None = None
    name: Literal["x"] | str = "x"
    backend: Backend | None = None

class BaseFrontendArgs:
    host: str | None = None

class FrontendArgs(BaseFrontendArgs):
    chat_template: str | None = None

model_kwargs = get_kwargs(ModelConfig)
CHOICES = ["one", *MORE]
MORE = {"two": 2}
group.add_argument("--dtype", "-d", **model_kwargs["dtype"])
group.add_argument("--name", **model_kwargs["name"])
group.add_argument("--attention-backend", **model_kwargs["backend"])
group.add_argument("--listed", choices=["auto"] + CHOICES)
group.add_argument("--quantization")
QuantizationMethods = Literal["awq", "fp8"]

class ServerArgs:
    tp_size: A[int, Arg(help="size", aliases=["--tensor-parallel-size"])] = 1
    load_format: A[str, Arg(help="format", choices=CHOICES)] = "auto"
    hidden: A[str, Arg(no_cli=True)] = ""
    internal: int = 0
"""


def test_reads_the_options_of_a_parser() -> None:
    declared = engines.Declarations()
    declared.add(ast.parse(ARGUMENTS))
    assert declared.options() == {
        "--dtype": ["auto", "half"],
        "-d": ["auto", "half"],
        "--name": [],
        "--attention-backend": ["FAST"],
        "--listed": ["auto", "one", "two"],
        "--quantization": [],
        "--host": [],
        "--chat-template": [],
        "--tp-size": [],
        "--tensor-parallel-size": [],
        "--load-format": ["one", "two"],
    }


KINDS = """
class ModelConfig:
    trust: bool = False
    seed: int | None = None
    cache: bool | str | None = None
    length: SkipValidation[int] = None

class FrontendArgs:
    enable_tools: bool = False
    max_log_len: int | None = None

class ServerArgs:
    size: A[int, Arg(aliases=["--tp"])] = 1
    share: A[Optional[float], Arg()] = None
    on: A[bool, Arg()] = False
    levels: A[int, Arg(nargs="+")] = 1

kwargs = get_kwargs(ModelConfig)
group.add_argument("--trust", "-t", **kwargs["trust"])
group.add_argument("--seed", **kwargs["seed"])
group.add_argument("--cache", **kwargs["cache"])
group.add_argument("--length", **{**kwargs["length"], "default": None})
group.add_argument("--eager", action="store_true")
group.add_argument("--old", action=StoreBoolean, nargs="?")
group.add_argument("--port", type=int)
group.add_argument("--level", type=int, choices=["1", "2"])
group.add_argument("--seed", type=float, dest="other")
"""


def test_reads_which_options_take_no_value_or_a_number() -> None:
    """One of two declarations that differ, and one with optional or several values, is none of them."""
    declared = engines.Declarations()
    declared.add(ast.parse(KINDS))
    assert declared.kinds() == {
        "switch": ["--eager", "--enable-tools", "--on", "--trust", "-t"],
        "integer": ["--length", "--max-log-len", "--port", "--size", "--tp"],
        "number": ["--share"],
    }


def test_reads_a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalogue has values that the engine checks after parsing, metrics and paths."""
    wheel = tmp_path / "vllm-1.2.3-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("vllm/engine/arg_utils.py", ARGUMENTS)
        archive.writestr("vllm/entrypoints/openai/cli_args.py", 'group.add_argument("--tool-call-parser")')
        archive.writestr("vllm/tool_parsers/__init__.py", '_TOOL_PARSERS_TO_REGISTER = {"hermes": ("file", "Class")}')
        archive.writestr("vllm/metrics.py", 'Gauge("vllm:num_requests_running"); app.get("/health")')
    monkeypatch.setattr(engines, "FOLDER", tmp_path)
    assert engines.main([str(wheel)]) == 0
    written = json.loads((tmp_path / "vllm-1.2.3.json").read_text())
    assert written["options"]["--quantization"] == ["awq", "fp8"]
    assert written["options"]["--tool-call-parser"] == ["hermes"]
    assert written["options"]["--attention-backend"] == ["FAST", "fast"]
    assert (written["metrics"], written["paths"]) == (["vllm:num_requests_running"], ["/health"])
    assert written["kinds"] == {"switch": [], "integer": ["--tensor-parallel-size", "--tp-size"], "number": []}
    assert written["source"].startswith("vllm-1.2.3-py3-none-any.whl sha256:")


HELP = """\
----- common params -----

-c,    --ctx-size N                     size of the context (default: 0)
                                        (env: LLAMA_ARG_CTX_SIZE)
-fa,   --flash-attn [on|off|auto]       set Flash Attention use ('on', 'off', or 'auto', default: 'auto')
-ctk,  --cache-type-k TYPE              KV cache data type for K
                                        allowed values: f32, f16, q8_0
--perf, --no-perf                       whether to enable timings
--draft, --draft-max N                  the argument has been removed. use --spec-draft-n-max or
                                        --spec-ngram-mod-n-max
"""


def test_reads_the_help_of_llama_cpp() -> None:
    assert engines.help_options(HELP) == {
        "-c": [],
        "--ctx-size": [],
        "-fa": ["on", "off", "auto"],
        "--flash-attn": ["on", "off", "auto"],
        "-ctk": ["f32", "f16", "q8_0"],
        "--cache-type-k": ["f32", "f16", "q8_0"],
        "--perf": [],
        "--no-perf": [],
    }


def test_refuses_what_it_does_not_know(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="nor the source of an engine"):
        engines.read(tmp_path)


def test_reads_parsers_that_decorators_register(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of vLLM 0.7.3, whose option has no list of values."""
    wheel = tmp_path / "vllm-0.7.3-py3-none-any.whl"
    modules = {"internlm2": '["internlm", "other"]', "hermes": '"hermes"'}
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("vllm/entrypoints/openai/cli_args.py", 'group.add_argument("--tool-call-parser")')
        for name, registered in modules.items():
            text = f"@ToolParserManager.register_module({registered})\nclass Parser: pass\n"
            archive.writestr(f"vllm/entrypoints/openai/tool_parsers/{name}_tool_parser.py", text)
    monkeypatch.setattr(engines, "FOLDER", tmp_path)
    assert engines.main([str(wheel)]) == 0
    written = json.loads((tmp_path / "vllm-0.7.3.json").read_text())
    assert written["options"]["--tool-call-parser"] == ["hermes", "internlm", "other"]

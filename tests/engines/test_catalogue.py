"""The catalogues agree with the engines' own sources."""

from __future__ import annotations

import ast
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tools import engines

LISTS = """
from enum import Enum

class AttentionBackendEnum(Enum):
    FAST = "a.b"
    ABSENT = ""
    NONE = None

MORE = {"two": 2}
QuantizationMethods = Literal["awq", "fp8"]
_TOOL_PARSERS_TO_REGISTER = {"hermes": ("file", "Class"), **MORE}
"""

SERVER = """
parser.add_argument("--port", "-p", type=int)
parser.add_argument("--ssl", action="store_true")
parser.add_argument("--level", choices=["low"] + MORE)
MORE = ["high"]
"""


def test_reads_the_calls_of_a_parser() -> None:
    declared = engines.Declarations()
    declared.add(ast.parse(SERVER))
    assert declared.options() == {
        "--port": {"type": "integer", "also": ["-p"]},
        "--ssl": {"type": "switch", "also": []},
        "--level": {"values": ["low", "high"], "also": []},
    }


DESCRIBED: list[dict[str, Any]] = [
    {"names": ["-tp", "--tensor-parallel-size"], "type": "integer", "count": ""},
    {
        "names": ["--enable-x", "--no-enable-x", "--disable-x"],
        "type": "switch",
        "off": ["--disable-x", "--no-enable-x"],
    },
    {"names": ["--quantization"], "type": "text", "values": []},
    {"names": ["--attention-backend"], "type": "text", "values": []},
    {"names": ["--tool-call-parser"], "type": "text", "values": []},
]


def test_reads_a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalogue has what the parser says, values that the engine checks after parsing, metrics and paths."""
    wheel = tmp_path / "vllm-1.2.3-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("vllm/engine/arg_utils.py", LISTS)
        archive.writestr("vllm/metrics.py", 'Gauge("vllm:num_requests_running_v2"); app.get("/health")')
    monkeypatch.setattr(engines, "FOLDER", tmp_path)
    monkeypatch.setattr(engines, "parser_says", lambda *_: json.dumps(DESCRIBED))
    assert engines.main([str(wheel)]) == 0
    written = json.loads((tmp_path / "vllm-1.2.3.json").read_text())
    assert written["options"] == {
        "--attention-backend": {"values": ["FAST"], "folds": True},
        "--enable-x": {"type": "switch", "off": ["--disable-x", "--no-enable-x"]},
        "--quantization": {"values": ["awq", "fp8"], "folds": True},
        "--tensor-parallel-size": {"type": "integer", "also": ["-tp"]},
        "--tool-call-parser": {"values": ["hermes"]},
    }
    assert (written["metrics"], written["paths"]) == (["vllm:num_requests_running_v2"], ["/health"])
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
    options = {name: {key: value for key, value in entry.items() if value} for name, entry in read_help().items()}
    assert options == {
        "--ctx-size": {"also": ["-c"], "variable": "LLAMA_ARG_CTX_SIZE"},
        "--flash-attn": {"also": ["-fa"], "values": ["on", "off", "auto"]},
        "--cache-type-k": {"also": ["-ctk"], "values": ["f32", "f16", "q8_0"]},
        "--perf": {"off": ["--no-perf"]},
    }


def read_help() -> engines.Options:
    return engines.help_options(HELP)


@pytest.mark.parametrize(
    ("told", "entry"),
    [
        ("error: invalid argument: no-number", {"type": "switch"}),
        ('error while handling argument "-c": stoi\n\nusage:', {"type": "integer"}),
        ('warning: old\nerror while handling argument "--temp": stof', {"type": "number"}),
        ('error while handling argument "-j": [json.exception.parse_error.101] bad', {"type": "json"}),
        ('error while handling argument "-fa": unknown value', {"type": "form"}),
        ("error: invalid argument: --no-option", {}),
    ],
)
def test_reads_the_type_of_an_option_of_llama_cpp(told: str, entry: engines.Options) -> None:
    assert engines.kind_by(told) == entry


def test_reads_the_types_of_the_launcher() -> None:
    source = "struct Args {\n    /// The model\n    model_id: String,\n    port: u16,\n    json_output: bool,\n"
    source += "    sharded: Option<bool>,\n    rope_factor: Option<f32>,\n    cuda_graphs: Option<Vec<usize>>,\n}\n"
    types = {
        "--model-id": "",
        "--port": "integer",
        "--json-output": "switch",
        "--sharded": "",
        "--rope-factor": "number",
        "--cuda-graphs": "",
    }
    assert engines.launcher_types(source) == types


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
    monkeypatch.setattr(engines, "parser_says", lambda *_: json.dumps(DESCRIBED))
    assert engines.main([str(wheel)]) == 0
    written = json.loads((tmp_path / "vllm-0.7.3.json").read_text())
    assert written["options"]["--tool-call-parser"]["values"] == ["hermes", "internlm", "other"]

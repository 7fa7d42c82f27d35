"""A runtime is added with its module, the registry and the enum; no other code refers to a runtime by name."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.llmkube.inferenceservice.types import InferenceServiceSpec
from app.llmkube.kinds import INFERENCE_SERVICE
from app.llmkube.runtimes.registry import RUNTIMES, readers
from tests.repository.test_readme import ROOT
from tools.fieldpages import reading

MODULE = """
from app.kube.field import SPEC, advice
from app.llmkube.runtimes.runtime import Runtime, flag
from app.workload.readiness.cause import Cause, Stage

OMLX = Runtime(
    name="omlx",
    container="omlx",
    image="example.com/omlx:1",
    port=30000,
    health="/health_generate",
    metric="omlx:num_running_reqs",
    scraped=True,
    variables={"OMLX_SET": "1"},
    arguments=lambda s: ["--model-path", s.repository, *flag("--context-length", s.spec.context_size)],
    formats=("safetensors",),
    repositories_only=True,
    gpu_fields={"layers": 1},
    reads=("contextSize",),
    overrides=(("contextSize", "containerPort"),),
    advice=lambda spec: [advice(SPEC.child("runtime"), "omlx is new here")],
    mistakes=lambda spec: [Cause(Stage.SPEC, "omlx wants a GPU", "NoGPU")] if not spec.requests.gpu else [],
    condition="OMLXHappy",
    judge=lambda spec: ("Because", "omlx is never happy"),
)
"""

PROGRAM = """
import json
from tests.llmkube.inferenceservice.world import args, container, model, service, sync
from tests.llmkube.objects import condition, warned

served = service(runtime="omlx", contextSize=4096, containerPort=1, jinja=True)
answer = sync(served, model(source="org/repo", format="safetensors", hardware={"gpu": {"layers": 3}}))
unfit = sync(service(runtime="omlx"), model(source="https://example.com/m.gguf", format="pytorch"))
print(json.dumps({
    "args": args(answer),
    "container": container(answer),
    "ready": condition(answer, "Ready"),
    "own": condition(answer, "OMLXHappy"),
    "unfit": condition(unfit, "Ready")["message"],
    "warned": warned(served),
    "elsewhere": warned(service(runtime="tgi", contextSize=4096)),
}))
"""


def added(tree: Path) -> None:
    """Add a runtime to a copy of the project, as a contributor would."""
    shutil.copytree(ROOT / "app", tree / "app", ignore=shutil.ignore_patterns("__pycache__"))
    runtimes, types = tree / "app/llmkube/runtimes", tree / "app/llmkube/inferenceservice/types.py"
    (runtimes / "omlx.py").write_text(MODULE)
    registry = (runtimes / "registry.py").read_text()
    assert "PERSONAPLEX, GENERIC)" in registry
    line = "from app.llmkube.runtimes.omlx import OMLX\nfrom app.llmkube.runtimes.tgi"
    registry = registry.replace("from app.llmkube.runtimes.tgi", line)
    (runtimes / "registry.py").write_text(registry.replace("PERSONAPLEX, GENERIC)", "PERSONAPLEX, OMLX, GENERIC)"))
    enum = types.read_text()
    assert '"generic"]' in enum
    types.write_text(enum.replace('"generic"]', '"omlx", "generic"]'))


def test_a_runtime_is_added_with_a_module_a_line_and_a_word(tmp_path: Path) -> None:
    added(tmp_path)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    run = [sys.executable, "-P", "-c", PROGRAM]
    done = subprocess.run(run, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["args"] == "--model-path org/repo --context-length 4096"
    assert said["container"]["image"] == "example.com/omlx:1"
    assert said["container"]["env"] == [{"name": "OMLX_SET", "value": "1"}]
    assert said["container"]["readinessProbe"]["httpGet"] == {"path": "/health_generate", "port": 1}
    assert said["ready"]["message"].startswith("omlx wants a GPU")
    assert (said["own"]["status"], said["own"]["reason"]) == ("False", "Because")
    assert "runtime omlx only serves Hugging Face repositories" in said["unfit"]
    assert "runtime omlx cannot load format pytorch" in said["unfit"]
    assert said["warned"] == [
        "spec.jinja: no effect with runtime omlx, only with llamacpp",
        "spec.runtime: omlx is new here",
        "spec.contextSize: no effect beside containerPort",
    ]
    assert said["elsewhere"] == ["spec.contextSize: no effect with runtime tgi, only with llamacpp and omlx"]


FILES = sorted(path for path in (ROOT / "app/llmkube").rglob("*.py") if path.parent.name != "runtimes")
NAMED = re.compile(rf"(?<![\w./-])(?:{'|'.join(RUNTIMES)})(?![\w./:-])")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_else_names_a_runtime(path: Path) -> None:
    """Only the kind's types may, in the enum and in descriptions for the CRD."""
    tree = ast.parse(path.read_text())
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
    ]
    imported = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    modules = [name for name in imported if name.startswith("app.llmkube.runtimes.")]
    assert {name.rpartition(".")[2] for name in modules} <= {"flag", "options", "registry", "runtime", "types", "usage"}
    if path.name != "types.py":
        assert [text for text in texts if NAMED.search(text)] == []


def test_what_a_runtime_reads_are_fields() -> None:
    fields = {info.alias or name for name, info in InferenceServiceSpec.model_fields.items()}
    for runtime in RUNTIMES.values():
        assert runtime.fields <= fields
        assert not runtime.config or runtime.config in runtime.fields
        assert {*(runtime.not_on_metal or ())} <= runtime.fields


def test_documents_which_runtimes_read_a_field() -> None:
    assert readers("extraArgs") == ["llamacpp", "llamacpp-router", "vllm", "tgi", "sglang", "personaplex"]
    assert reading(INFERENCE_SERVICE, "ropeScaling.type") == "llamacpp, metal"
    assert reading(INFERENCE_SERVICE, "skipModelInit") == "llamacpp, vllm, sglang"
    assert reading(INFERENCE_SERVICE, "image") == ""

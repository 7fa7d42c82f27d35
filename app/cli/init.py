"""Print a commented manifest that serves a model, to start from; it passes validate.

MODEL is a repository of the Hugging Face Hub (owner/name) or, for llmkube, the URL of a GGUF file:

  modelhooks init llmkube meta-llama/Llama-3.1-8B-Instruct --gpu L4 > chat.yaml

Without --gpus, the smallest usual number of these GPUs is chosen on which the model certainly fits. A model whose name
does not tell its size needs --parameters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from math import ceil

import click

from app.cli import CommandError, options
from app.kube.field import go_quote
from app.kube.fit import FitAnswer
from app.kube.names import is_dns1035_label
from app.workload.gpumodels import GPU_MODELS, GPUModel, gpu_model
from app.workload.memory import GPU_COUNTS, Question, Usage, judge, weights

CONTEXT = 8192
"""Tokens of the context that the manifest asks for, as most models support them and one GPU can hold them."""
NAME_MAX = 40
_VLLM_SHARE = 0.9
_SERVER_GIB = 1
"""Host memory of llama.cpp besides the file, with a context of this length."""
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


@dataclass(frozen=True)
class Request:
    """A model and the GPUs to serve it on."""

    name: str
    model: str
    gpu: GPUModel | None
    gpus: int
    parameters: float
    """In billions; 0 if the model's name tells its size."""
    note: str
    """The sum behind the number of GPUs, or an empty string."""

    @property
    def gpu_name(self) -> str:
        return self.gpu.name if self.gpu else ""

    @property
    def is_file(self) -> bool:
        return self.model.endswith(".gguf")

    @property
    def shown(self) -> str:
        return self.model.rpartition("/")[2] if self.is_file else self.model

    @property
    def question(self) -> Question:
        """The question whether the model fits on its GPUs."""
        return Question(
            names=(self.model,),
            formats=(self.model,),
            gguf=self.is_file,
            size=0,
            parameters=int(self.parameters * 1e9),
            shape=None,
            use=Usage(context=CONTEXT, usual_share=1.0 if self.is_file else _VLLM_SHARE),
            gpus=self.gpus,
            memory=self.gpu.memory if self.gpu else 0,
            memory_from=self.gpu_name,
        )

    @property
    def memory(self) -> int:
        """GiB of host memory for a file that is mapped into it; raises if the size is not known."""
        most = weights(self.question).most
        assert most is not None, "requests for models of unknown size are refused"
        return ceil(most / 2**30) + _SERVER_GIB


@click.command(help=options.doc(__doc__))
@click.argument("family", type=click.Choice(["llmkube", "llmaz", "kserve"]))
@click.argument("model")
@click.option("--gpu", metavar="NAME", default="", help="The GPU, such as L4 or H100. Without it: CPUs.")
@click.option("--gpus", type=click.IntRange(1, 64), help="Number of GPUs of a pod.")
@click.option(
    "--parameters", metavar="BILLIONS", type=click.FloatRange(min=0, min_open=True), help="Size of the model."
)
@click.option("--name", default="", help="Name of the objects. Default: made from the model's.")
def command(*, family: str, model: str, gpu: str, gpus: int | None, parameters: float | None, name: str) -> int:
    """Print the manifest; 2 for a model or a GPU that cannot be used."""
    click.echo(_WRITERS[family](_request(family, model, gpu, gpus, parameters, name)), nl=False)
    return 0


def _request(family: str, model: str, gpu: str, gpus: int | None, parameters: float | None, name: str) -> Request:
    """Return the request. Raises :class:`CommandError` where there can be no manifest."""
    is_file = model.endswith(".gguf") and "://" in model
    if not is_file and not _REPOSITORY.fullmatch(model):
        raise CommandError(f"{go_quote(model)} is neither a repository (owner/name) nor the URL of a GGUF file")
    if is_file and family != "llmkube":
        raise CommandError(f"{family} serves repositories here; for a GGUF file use llmkube")
    if not gpu and not is_file:
        raise CommandError("--gpu is required for a repository; a GGUF file also runs on CPUs (llmkube)")
    hardware = gpu_model(gpu) if gpu else None
    if gpu and hardware is None:
        raise CommandError(f"--gpu: unknown GPU {go_quote(gpu)}; known: {', '.join(g.name for g in GPU_MODELS)}")
    name = name or _name_of(model)
    if not is_dns1035_label(name):
        raise CommandError(
            f"--name: {go_quote(name)} must be lower case letters, digits and '-', and begin with a letter"
        )
    request = Request(name, model, hardware, gpus or 1, parameters or 0, "")
    if weights(request.question).most is None:
        problem = f"the name {go_quote(model)} does not tell the model's size; write it as --parameters BILLIONS"
        raise CommandError(problem)
    return _sized(request, gpus) if hardware is not None else request


def _sized(request: Request, gpus: int | None) -> Request:
    """Choose the number of GPUs, and explain it."""
    fits = {count: judge(replace(request, gpus=count).question) for count in ([gpus] if gpus else GPU_COUNTS)}
    largest = max(fits)
    if fits[largest].answer is FitAnswer.DOES_NOT_FIT:
        enough = " or ".join(fits[largest].enough)
        why = f"{fits[largest].why}{'; enough: ' if enough else ''}{enough}"
        raise CommandError(f"the model does not fit into {largest} x {request.gpu_name}: {why}")
    possible = [count for count, fit in fits.items() if fit.answer is not FitAnswer.DOES_NOT_FIT]
    count = next((count for count in possible if fits[count].answer is FitAnswer.FITS), possible[0])
    fit = fits[count]
    note = fit.why if fit.answer is FitAnswer.FITS else f"whether it fits is not certain: {fit.why}"
    return replace(request, gpus=count, note=note)


def _name_of(model: str) -> str:
    """Return a DNS label from the last part of a model's address."""
    last = model.rpartition("/")[2].removesuffix(".gguf").lower()
    label = re.sub(r"[^a-z0-9]+", "-", last).strip("-")[:NAME_MAX].strip("-")
    return label if label[:1].isalpha() else f"m-{label}"


@dataclass(frozen=True)
class _Engine:
    """The server of a model of LLMKube, and the fields that are its own."""

    name: str
    note: str
    """A comment about the source."""
    model_format: str
    fields: str
    """Of the service."""


def _llmkube(request: Request) -> str:
    engine = _file(request) if request.is_file else _repository(request)
    return f"""\
# {request.shown}, served by {engine.name}. Check: modelhooks validate FILE
apiVersion: inference.llmkube.dev/v1alpha1
kind: Model
metadata:
  name: {request.name}
spec:
  # {engine.note}
  source: {request.model}
  format: {engine.model_format}
{_hardware(request)}---
apiVersion: inference.llmkube.dev/v1alpha1
kind: InferenceService
metadata:
  name: {request.name}
spec:
  modelRef: {request.name}
  replicas: 1
{engine.fields}"""


_CONTEXT = "# Tokens of a request and its answer together; more take more memory."


def _file(request: Request) -> _Engine:
    return _Engine(
        "llama.cpp",
        "Downloaded once into a cache of the namespace. A private file needs sourceSecretRef.",
        "gguf",
        f"""\
  {_CONTEXT}
  contextSize: {CONTEXT}
  resources:
    cpu: "2"
    # The file and the server.
    memory: {request.memory}Gi
""",
    )


def _repository(request: Request) -> _Engine:
    return _Engine(
        "vLLM",
        "A repository of the Hugging Face Hub. A gated one needs vllmConfig.hfTokenSecretRef in the service below.",
        "safetensors",
        f"""\
  runtime: vllm
  # vLLM downloads the repository itself.
  skipModelInit: true
  vllmConfig:
    {_CONTEXT}
    maxModelLen: {CONTEXT}
    # The GPUs that share the model.
    tensorParallelSize: {request.gpus}
""",
    )


def _hardware(request: Request) -> str:
    if request.gpu is None:
        return ""
    return f"""\
  hardware:
    accelerator: cuda
    gpu:
      enabled: true
{_note(request, 6)}      count: {request.gpus}
      # Memory of one GPU ({request.gpu.name}): validate and fit compare the model with it.
      memory: {request.gpu.mebibytes}Mi
"""


def _note(request: Request, indent: int) -> str:
    return f"{' ' * indent}# {request.note[:1].upper()}{request.note[1:]}.\n" if request.note else ""


def _llmaz(request: Request) -> str:
    return f"""\
# {request.model}, served by the BackendRuntime vllm. Check: modelhooks validate FILE
apiVersion: llmaz.io/v1alpha1
kind: OpenModel
metadata:
  name: {request.name}
spec:
  familyName: {request.name}
  source:
    modelHub:
      modelID: {request.model}
  inferenceConfig:
    flavors:
      - name: gpu
        limits:
{_note(request, 10)}          nvidia.com/gpu: {request.gpus}
        # Choose the nodes by a label of yours, for example:
        # nodeSelector:
        #   nvidia.com/gpu.product: NVIDIA-{request.gpu_name.partition(" ")[0]}
---
apiVersion: inference.llmaz.io/v1alpha1
kind: Playground
metadata:
  name: {request.name}
spec:
  replicas: 1
  modelClaim:
    modelName: {request.name}
  backendRuntimeConfig:
    backendName: vllm
    {_CONTEXT}
    args: ["--max-model-len", "{CONTEXT}"]
"""


def _kserve(request: Request) -> str:
    parallelism = f"  parallelism:\n    tensor: {request.gpus}\n" if request.gpus > 1 else ""
    return f"""\
# {request.model}, served by the preset of KServe. Check: modelhooks validate FILE
apiVersion: serving.kserve.io/v1alpha2
kind: LLMInferenceService
metadata:
  name: {request.name}
spec:
  model:
    uri: hf://{request.model}
    name: {request.model}
  replicas: 1
{parallelism}  template:
    # Choose the nodes by a label of yours, for example:
    # nodeSelector:
    #   nvidia.com/gpu.product: NVIDIA-{request.gpu_name.partition(" ")[0]}
    containers:
      - name: main
        {_CONTEXT}
        args: ["--max-model-len", "{CONTEXT}"]
        resources:
          limits:
{_note(request, 12)}            nvidia.com/gpu: "{request.gpus}"
  # Uncomment for a route through the Gateway of the installation:
  # router:
  #   gateway: {{}}
  #   route: {{}}
"""


_WRITERS = {"llmkube": _llmkube, "llmaz": _llmaz, "kserve": _kserve}

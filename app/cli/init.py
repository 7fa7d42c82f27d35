"""Print a commented manifest that serves a model, to start from; it passes validate.

MODEL is a repository of the Hugging Face Hub (owner/name) or, for llmkube, the URL of a GGUF file:

  modelhooks init llmkube meta-llama/Llama-3.1-8B-Instruct --gpu L4 > chat.yaml

Without --gpus, the smallest usual number of these GPUs is chosen on which the model certainly fits. A model whose name
does not tell its size needs --parameters.
"""

import re
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from string import Template

import click

from app import images
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
"""Host memory of llama.cpp besides the file, which is mapped into it, with a context of this length."""
_TEMPLATES = Path(__file__).with_name("templates")
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


@dataclass(frozen=True)
class Request:
    name: str
    model: str
    gpu: GPUModel | None
    gpus: int
    parameters: float
    """In billions; 0 if the model's name tells its size."""
    note: str = ""
    """The sum behind the number of GPUs."""

    @property
    def gpu_name(self) -> str:
        return self.gpu.name if self.gpu else ""

    @property
    def is_file(self) -> bool:
        return self.model.endswith(".gguf")

    @property
    def question(self) -> Question:
        return Question(
            names=(self.model,),
            formats=(self.model,),
            gguf=self.is_file,
            parameters=int(self.parameters * 1e9),
            use=Usage(context=CONTEXT, usual_share=1.0 if self.is_file else _VLLM_SHARE),
            gpus=self.gpus,
            memory=self.gpu.memory if self.gpu else 0,
            memory_from=self.gpu_name,
        )


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
        problem = "must be lower case letters, digits and '-', and begin with a letter"
        raise CommandError(f"--name: {go_quote(name)} {problem}")
    request = Request(name, model, hardware, gpus or 1, parameters or 0)
    if weights(request.question).most is None:
        problem = f"the name {go_quote(model)} does not tell the model's size; write it as --parameters BILLIONS"
        raise CommandError(problem)
    click.echo(_manifest(family, _sized(request, gpus) if hardware is not None else request), nl=False)
    return 0


def _sized(request: Request, gpus: int | None) -> Request:
    fits = {count: judge(replace(request, gpus=count).question) for count in ([gpus] if gpus else GPU_COUNTS)}
    largest = max(fits)
    if fits[largest].answer is FitAnswer.DOES_NOT_FIT:
        enough = f"; enough: {' or '.join(fits[largest].enough)}" if fits[largest].enough else ""
        raise CommandError(f"the model does not fit into {largest} x {request.gpu_name}: {fits[largest].why}{enough}")
    possible = [count for count, fit in fits.items() if fit.answer is not FitAnswer.DOES_NOT_FIT]
    count = next((count for count in possible if fits[count].answer is FitAnswer.FITS), possible[0])
    fit = fits[count]
    note = fit.why if fit.answer is FitAnswer.FITS else f"whether it fits is not certain: {fit.why}"
    return replace(request, gpus=count, note=note)


def _name_of(model: str) -> str:
    last = model.rpartition("/")[2].removesuffix(".gguf").lower()
    label = re.sub(r"[^a-z0-9]+", "-", last).strip("-")[:NAME_MAX].strip("-")
    return label if label[:1].isalpha() else f"m-{label}"


def _manifest(family: str, request: Request) -> str:
    """Fill in the template for the family and the kind of address; one of a file depends on the GPU, too."""
    form = "repository"
    if request.is_file:
        form = "file-gpu" if request.gpu else "file-cpu"
    most = weights(request.question).most
    assert most is not None, "requests for models of unknown size are refused"
    template = Template(_TEMPLATES.joinpath(f"{family}-{form}.template").read_text())
    return template.substitute(
        name=request.name,
        model=request.model,
        file=request.model.rpartition("/")[2],
        context=CONTEXT,
        memory=ceil(most / 2**30) + _SERVER_GIB,
        note=f"{request.note[:1].upper()}{request.note[1:]}.",
        gpu=request.gpu_name,
        gpus=request.gpus,
        gpu_memory=request.gpu.mebibytes if request.gpu else 0,
        version=images.VLLM.rpartition(":")[2],
        product=request.gpu_name.partition(" ")[0],
        parallelism=f"\n  parallelism:\n    tensor: {request.gpus}" if request.gpus > 1 else "",
    )

"""Print a commented manifest that serves a model, to start from; it passes validate.

MODEL is a repository of the Hugging Face Hub (owner/name), a directory in a bucket or on a claim (s3://BUCKET/PATH,
pvc://CLAIM/PATH) or, for llmkube and llmaz, the URL of a GGUF file:

  modelhooks init llmkube meta-llama/Llama-3.1-8B-Instruct --gpu L4 > chat.yaml

Without --gpus, the smallest usual number of these GPUs is chosen on which the model certainly fits. A model whose name
does not tell its size needs --parameters, or a file of it with --config, such as its config.json.
"""

import json
import re
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from string import Template

import click

from app import images
from app.cli import options
from app.errors import CommandError
from app.hooks.fit import FitAnswer
from app.kube.field import go_quote
from app.kube.names import is_dns1035_label
from app.llmkube.runtimes.vllm import VLLM
from app.workload.fit.gpumodels import GPU_MODELS, GPUModel, gpu_model
from app.workload.fit.memory import GPU_COUNTS, Question, Usage, cache, judge, weights, with_facts
from app.workload.fit.modelfacts import ModelFacts
from app.workload.fit.models import Shape, shape_of

CONTEXT = 8192
"""Tokens of the context that the manifest asks for, as most models support them and one GPU can hold them."""
NAME_MAX = 40
_SERVER_GIB = 1
"""Host memory of llama.cpp besides the file, which is mapped into it, with a context of this length."""
_VLLM_GIB = 3
"""Host memory of vLLM on CPUs, besides weights and cache."""
_TEMPLATES = Path(__file__).with_name("templates")
REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
"""``owner/name`` on the Hugging Face Hub."""
_DIRECTORY = re.compile(r"(?:s3|pvc)://[a-z0-9][a-z0-9.-]*/[\w./-]+")
_HUB_FILE = re.compile(r"https://huggingface\.co/([\w.-]+/[\w.-]+)/(?:resolve|blob)/([\w.-]+)/([\w./-]+)")

_KSERVE_ANNOTATION = "  # annotations:\n  #   serving.kserve.io/storageSecretName:"
_BUCKET_KEYS = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
_ON_CLAIM = "# The directory on the PersistentVolumeClaim has config.json and the weights."
_ACCESS = {
    ("kserve", "hub"): "# For a gated repository name the Secret with your token, under the key HF_TOKEN:\n"
    f"{_KSERVE_ANNOTATION} hub-token",
    (
        "kserve",
        "s3",
    ): f"# For a private bucket name the Secret with {_BUCKET_KEYS}:\n{_KSERVE_ANNOTATION} weights-bucket",
    ("kserve", "pvc"): _ON_CLAIM,
    ("llmaz", "hub"): "# A gated repository needs the Secret modelhub-secret with your token, under the key HF_TOKEN.",
    ("llmaz", "s3"): f"# A private bucket needs the Secret aws-access-secret with {_BUCKET_KEYS}.",
    ("llmkube", "hub"): "# A repository of the Hugging Face Hub. A gated one needs vllmConfig.hfTokenSecretRef below.",
    ("llmkube", "pvc"): _ON_CLAIM,
    ("llmkube", "https file"): "# Downloaded once into a cache of the namespace. A private file needs sourceSecretRef.",
    ("llmkube", "s3 file"): f"# The Secret has {_BUCKET_KEYS}, and AWS_ENDPOINT_URL of a store that is not Amazon's.\n"
    "  sourceSecretRef:\n    name: weights-bucket",
    ("llmkube", "pvc file"): "# A file on a PersistentVolumeClaim of the namespace.",
    ("llmaz", "https file"): "",
}
"""Comments and fields for access to the model, by family and place. Places without an entry need more."""
_KINDS = (
    ("a reranker", re.compile(r"(?<![a-z0-9])(?:rerank|cross-?encoder)"), "rerank", "/v1/rerank"),
    (
        "an embedding model",
        re.compile(r"(?<![a-z0-9])(?:embed|(?:bge|e5|gte)(?![a-z0-9]))"),
        "embedding",
        "/v1/embeddings",
    ),
)
"""Kinds of models that generate nothing: what their names tell, LLMKube's mode, and where requests go."""
_SPEECH = re.compile(r"(?<![a-z0-9])(?:whisper|asr)(?![a-z0-9])")
_TOKENS = "# Tokens of a request and its answer together; more take more memory."
_DOWNLOAD = "# vLLM downloads the repository itself.\n  skipModelInit: true"
_SERVED_BY_PATH = "# Clients ask for the model under its path; --served-model-name in extraArgs gives it a name."


@dataclass(frozen=True)
class Pooling:
    """A model that generates nothing: it makes a vector, or a mark, of each input."""

    kind: str
    mode: str
    path: str

    @property
    def comment(self) -> str:
        return f"# {self.kind[:1].upper()}{self.kind[1:]}: requests go to {self.path}."


@dataclass(frozen=True)
class Request:
    name: str
    model: str
    gpu: GPUModel | None
    gpus: int
    """Of one pod."""
    nodes: int
    parameters: float
    """In billions; 0 if the model's name tells its size."""
    facts: ModelFacts | None = None
    """The facts read from the model's files."""
    note: str = ""
    """The sum behind the number of GPUs."""

    @property
    def gpu_name(self) -> str:
        return self.gpu.name if self.gpu else ""

    @property
    def is_file(self) -> bool:
        return self.model.endswith(".gguf")

    @property
    def title(self) -> str:
        """The last part of the model's address, which tells what it is."""
        return self.model.rstrip("/").rpartition("/")[2].lower()

    @property
    def place(self) -> str:
        scheme, separator, _ = self.model.partition("://")
        if not separator:
            return "hub"
        return f"{scheme.replace('http:', 'https:')} file" if self.is_file else scheme

    @property
    def shape(self) -> Shape | None:
        return (self.facts.shape if self.facts is not None else None) or shape_of([self.model])

    @property
    def pooling(self) -> Pooling | None:
        kinds = (Pooling(kind, *more) for kind, name, *more in _KINDS if name.search(self.title))
        is_encoder = self.shape is not None and not self.shape.layers
        return next(kinds, Pooling(_KINDS[1][0], *_KINDS[1][2:]) if is_encoder else None)

    @property
    def has_context(self) -> bool:
        """Report whether the manifest limits the tokens of a request, of which an encoder has its own number."""
        return self.pooling is None or self.is_file or (self.shape is not None and self.shape.context >= CONTEXT)

    @property
    def use(self) -> Usage:
        if self.is_file:
            return Usage(context=CONTEXT, keeps_windows=True)
        share, tensor = VLLM.memory_share, self.gpus
        return Usage(context=CONTEXT, usual_share=share, keeps_latent=True, keeps_windows=True, tensor=tensor)

    @property
    def question(self) -> Question:
        question = Question(
            names=(self.model,),
            formats=(self.model,),
            gguf=self.is_file,
            parameters=int(self.parameters * 1e9),
            use=self.use,
            gpu=self.gpu,
            gpus=self.gpus * self.nodes,
            memory=self.gpu.memory if self.gpu else 0,
            memory_from=self.gpu_name,
        )
        return question if self.facts is None else with_facts(question, self.facts)


_ROCM = """
        image: {image}
        securityContext:
          runAsNonRoot: false  # the image runs as root"""

_MODE = """
  {comment}
  # The pooling is the last token's, unless the model's card names another, such as extraArgs: [--pooling, cls].
  mode: {mode}
  endpoint: {{path: {path}}}
  # A whole input is computed in one batch.
  batchSize: {context}
  uBatchSize: {context}
  parallelSlots: 1"""


@click.command(help=options.doc(__doc__))
@click.argument("family", type=click.Choice(["llmkube", "llmaz", "kserve"]))
@click.argument("model")
@click.option("--gpu", metavar="NAME", default="", help="Name of the GPU, such as L4 or H100. Default: only CPUs.")
@click.option("--gpus", type=click.IntRange(1, 64), help="Number of GPUs of a pod.")
@click.option("--nodes", type=click.IntRange(1, 64), default=1, help="Number of nodes that share the model (kserve).")
@click.option(
    "--parameters", metavar="BILLIONS", type=click.FloatRange(min=0, min_open=True), help="Size of the model."
)
@options.model_files
@click.option("--name", default="", help="Name of the objects. Default: derived from the model's.")
def command(
    *,
    family: str,
    model: str,
    gpu: str,
    gpus: int | None,
    nodes: int,
    parameters: float | None,
    facts: ModelFacts | None,
    name: str,
) -> int:
    hardware = gpu_model(gpu) if gpu else None
    if gpu and hardware is None:
        raise CommandError(f"--gpu: unknown GPU {go_quote(gpu)}; known: {', '.join(g.name for g in GPU_MODELS)}")
    name = name or _name_of(model)
    if not is_dns1035_label(name):
        problem = "must be lower case letters, digits and '-', and begin with a letter"
        raise CommandError(f"--name: {go_quote(name)} {problem}")
    request = Request(name, model, hardware, gpus or 1, nodes, parameters or 0, facts)
    if problem := _unsupported(family, request):
        raise CommandError(problem)
    if weights(request.question).most is None:
        problem = f"the name {go_quote(model)} does not tell the model's size; write it as --parameters BILLIONS"
        raise CommandError(f"{problem}, or name its config.json with --config")
    click.echo(_manifest(family, _sized(request, gpus) if hardware is not None else request), nl=False)
    return 0


def _unsupported(family: str, request: Request) -> str:
    """Return why no manifest of the family serves a request; empty if one does."""
    model, gpu, is_file = request.model, request.gpu, request.is_file
    is_address = "://" in model
    if not (is_file and is_address) and not (_DIRECTORY if is_address else REPOSITORY).fullmatch(model):
        forms = "a repository (owner/name), a directory (s3://BUCKET/PATH, pvc://CLAIM/PATH) nor the URL of a GGUF file"
        return f"{go_quote(model)} is neither {forms}"
    if is_file and family != "llmkube" and not (family == "llmaz" and _HUB_FILE.fullmatch(model)):
        return f"{family} serves repositories here; for a GGUF file use llmkube, or llmaz for one of the Hub"
    if (family, request.place) not in _ACCESS:
        return f"a model in {request.place}:// needs more with {family}; see docs/howto/sources.md"
    if _SPEECH.search(request.title):
        return f"{go_quote(model)} needs an image with audio libraries; see docs/howto/model-types.md#speech"
    if (pooling := request.pooling) is not None and is_file and family != "llmkube":
        return f"{go_quote(model)} is {pooling.kind}: use llmkube for a GGUF file; see docs/howto/model-types.md"
    if gpu is None and not is_file and family != "kserve":
        return "--gpu is required for a repository; a GGUF file also runs on CPUs (llmkube, llmaz)"
    if gpu is not None and ((is_file or family == "llmaz") if gpu.is_amd else (is_file and family == "llmaz")):
        return f"{family} needs an image of your own for this model on {gpu.name}; see docs/howto/hardware.md"
    if request.nodes > 1 and (family != "kserve" or gpu is None):
        return "--nodes is for kserve with GPUs; see docs/howto/several-gpus.md"
    return ""


def _sized(request: Request, gpus: int | None) -> Request:
    fits = {count: judge(replace(request, gpus=count).question) for count in ([gpus] if gpus else GPU_COUNTS)}
    largest = max(fits)
    possible = [count for count, fit in fits.items() if fit.answer is not FitAnswer.DOES_NOT_FIT]
    if not possible:
        enough = f"; enough: {' or '.join(fits[largest].enough)}" if fits[largest].enough else ""
        declared = f"{largest * request.nodes} x {request.gpu_name}"
        raise CommandError(f"the model does not fit into {declared}: {fits[largest].why}{enough}")
    count = next((count for count in possible if fits[count].answer is FitAnswer.FITS), possible[0])
    fit = fits[count]
    note = fit.why if fit.answer is FitAnswer.FITS else f"whether it fits is not certain: {fit.why}"
    return replace(request, gpus=count, note=note)


def _name_of(model: str) -> str:
    last = model.rstrip("/").rpartition("/")[2].removesuffix(".gguf").lower()
    label = re.sub(r"[^a-z0-9]+", "-", last).strip("-")[:NAME_MAX].strip("-")
    return label if label[:1].isalpha() else f"m-{label}"


def _form(family: str, request: Request) -> str:
    if request.is_file:
        return f"{family}-file-{'gpu' if request.gpu else 'cpu'}"
    return f"{family}-{'repository' if request.gpu else 'cpu'}"


def _manifest(family: str, request: Request) -> str:
    """Fill in the template for the family, the kind of address and the hardware."""
    most = weights(request.question).most
    assert most is not None, "requests for models of unknown size are refused"
    cache_gib = ceil((cache(request.question).most or 2**30) / 2**30)
    host = _SERVER_GIB if request.is_file else _VLLM_GIB + cache_gib
    template = Template(_TEMPLATES.joinpath(f"{_form(family, request)}.template").read_text())
    pooling = request.pooling
    hub_file = _HUB_FILE.fullmatch(request.model)
    repository, revision, file = hub_file.groups() if hub_file else ("", "", request.model.rpartition("/")[2])
    return template.substitute(
        _gpu_values(request),
        name=request.name,
        model=request.model,
        repository=repository,
        revision=revision,
        file=file,
        context=CONTEXT,
        memory=ceil(most / 2**30) + host,
        cache=cache_gib,
        note=f"{request.note[:1].upper()}{request.note[1:]}.",
        version=images.VLLM.rpartition(":")[2],
        access=_ACCESS[family, request.place],
        uri=request.model if "://" in request.model else f"hf://{request.model}",
        served=request.model if request.place == "hub" else request.name,
        source=f"uri: {request.model}" if "://" in request.model else f"modelHub:\n      modelID: {request.model}",
        download=_DOWNLOAD if request.place == "hub" else _SERVED_BY_PATH,
        length=f"\n    {_TOKENS}\n    maxModelLen: {CONTEXT}" if request.has_context else "",
        words=pooling.comment if pooling else _TOKENS,
        runner=f"\n  {pooling.comment}\n  endpoint: {{path: {pooling.path}}}\n  extraArgs: [--runner, pooling]"
        if pooling
        else "",
        mode=_MODE.format(comment=pooling.comment, mode=pooling.mode, path=pooling.path, context=CONTEXT)
        if pooling
        else "",
        parallelism=_parallelism(request),
    )


def _gpu_values(request: Request) -> dict[str, object]:
    """Return the values that depend on the GPU; without one a template has none of them but the arguments."""
    gpu = request.gpu
    is_amd, is_older = gpu is not None and gpu.is_amd, gpu is not None and not gpu.has_bfloat16
    arguments = ["--runner", "pooling"] if request.pooling else []
    arguments += ["--max-model-len", str(CONTEXT)] if request.has_context else []
    arguments += ["--dtype", "half"] if is_older else []
    return {
        "gpu": request.gpu_name,
        "gpus": request.gpus,
        "gpu_memory": gpu.mebibytes if gpu else 0,
        "label": f"{'amd.com/gpu.product-name' if is_amd else 'nvidia.com/gpu.product'}: {gpu.label if gpu else ''}",
        "resource": "amd.com/gpu" if is_amd else "nvidia.com/gpu",
        "accelerator": "rocm" if is_amd else "cuda",
        "vendor": "\n      vendor: amd" if is_amd else "",
        "server": "vLLM" if is_amd else "the preset of KServe",
        "image": _ROCM.format(image=images.VLLM_ROCM) if is_amd else "",
        "args": ", ".join(map(json.dumps, arguments)),
        "dtype": "\n    # This GPU has no bfloat16.\n    dtype: float16" if is_older else "",
    }


def _parallelism(request: Request) -> str:
    """Return how several GPUs and nodes share the model: each node holds a part of the layers."""
    if request.gpus * request.nodes == 1:
        return ""
    stages = f"\n    pipeline: {request.nodes}\n  worker: {{}}" if request.nodes > 1 else ""
    return f"\n  parallelism:\n    tensor: {request.gpus}{stages}"

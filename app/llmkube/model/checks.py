"""The rules and warnings of a Model that its types cannot express. The numbers are those of LK-6.1."""

from collections.abc import Iterator
from itertools import pairwise

from app.hooks import sendable
from app.kube import field, quantity
from app.kube.field import SPEC, Advice, advice, without_user
from app.kube.hosts import FORBIDDEN, allowed, is_metadata_host
from app.kube.names import LABEL_MAX, is_dns1123_label
from app.kube.schema import fieldclass, rules
from app.llmkube import names
from app.llmkube import source as sources
from app.llmkube.model.plan import refusal
from app.llmkube.model.types import GPU, Hardware, Model, ModelResources, ModelSpec, Sharding, layers, source_hint
from app.llmkube.source import SOURCE, Source, SourceClass, parse, source_of
from app.settings import Settings
from app.workload import address, ggufparts
from app.workload.advice import podadvice
from app.workload.advice.advise import advise
from app.workload.advice.podview import ContainerView, PodView
from app.workload.devices import device_meant
from app.workload.engines.commandline import CommandLine
from app.workload.fit.memory import other_quantization, too_large
from app.workload.rules import fieldrules

Errors = Iterator[field.Error]

GPU_PATH = SPEC.child("hardware", "gpu")


def validate(model: Model, _: Model | None, settings: Settings) -> Errors:
    """Reject a name or source that pods cannot have, and amounts that are not quantities (LK-V-M03 to LK-V-M07)."""
    spec = model.spec
    source = source_of(spec)
    if len(model.metadata.name) > LABEL_MAX:  # LK-V-M35
        path = field.METADATA.child("name")
        yield field.too_long(path, LABEL_MAX, "pods carry the name as a label")
    if message := sources.problem(source):
        yield field.invalid(SOURCE, without_user(source.text), message)
    else:
        yield from _forbidden(source, settings)
    yield from _file_set(spec)
    if spec.source_secret_ref:
        yield from fieldrules.object_name(spec.source_secret_ref.name, SPEC.child("sourceSecretRef", "name"))
    if spec.hardware:
        yield from _hardware(spec.hardware, SPEC.child("hardware"))
    if spec.resources:
        path = SPEC.child("resources")
        yield from _quantity(spec.resources.cpu, path.child("cpu"), example="500m")
        yield from _quantity(spec.resources.memory, path.child("memory"))


MAX_FILES = 32768
"""Maximum number of characters of all paths together: they are a variable of the downloader."""


def _file_set(spec: ModelSpec) -> Errors:
    """Reject several files unless the source is a repository or prefix, and too many of them (LK-V-M37, LK-V-M38)."""
    source, files, projector = parse(spec.source), SPEC.child("files"), SPEC.child("mmproj")
    for path, text in files.each(spec.files):
        yield from _file(text, path)
    if spec.mmproj:
        yield from _file(spec.mmproj, projector)
    if source.files:
        yield from _file(source.files[0], SOURCE)
    if spec.mmproj and not spec.files and not source.files:
        yield field.required(files, "mmproj is fetched beside the model's own file; name it here")
    if not (spec.files or spec.mmproj):
        return
    if source.files and spec.files:
        yield field.forbidden(files, f"the source already names a file, {source.files[0]}; leave one out")
    elif source.kind not in (SourceClass.REPOSITORY, SourceClass.FILES, SourceClass.S3):
        detail = f"only with a source {sources.HUB_SCHEME}<owner>/<name> or {sources.BUCKET_SCHEME}<bucket>/<prefix>"
        yield field.forbidden(files if spec.files else projector, detail)
    elif sum(map(len, spec.files)) > MAX_FILES:
        yield field.too_long(files, MAX_FILES, "all paths together")


def _file(text: str, path: field.Path) -> Errors:
    """Require the path of one file, without ``..`` and patterns (LK-V-M37)."""
    if not text or text.startswith("/") or set(text.split("/")) & {"", ".", ".."}:
        detail = "must be a path of a file in the source, without '..', for example weights/model-q4_k_m.gguf"
        yield field.invalid(path, text, detail)
    elif set(text) & set("*?[\\") or not text.isprintable():
        yield field.invalid(path, text, "must be the path of one file: patterns and control characters match nothing")


def _forbidden(source: Source, settings: Settings) -> Errors:
    """Reject sources that no Model may have, or that the cluster's operator does not allow (LK-V-M09, LK-T-23)."""
    if source.kind is SourceClass.S3 and settings.llmkube_allowed_source_hosts is not None:
        detail = "the operator of this cluster lists the hosts of sources, and the host of a bucket is in a Secret"
        yield field.forbidden(SOURCE, detail)
        return
    fetched = source.location if source.kind is SourceClass.FILES else source.text
    if fetched.startswith(("http://", "https://")):
        name = sources.host(fetched)
        if is_metadata_host(name):
            yield field.forbidden(SOURCE, f"{name} {FORBIDDEN}")
        elif not allowed(name, settings.llmkube_allowed_source_hosts):
            listed = ", ".join(settings.llmkube_allowed_source_hosts or ()) or "none"
            detail = f"host {name} is not among those that the operator of this cluster allows: {listed}"
            yield field.forbidden(SOURCE, detail)


def admit(model: Model, settings: Settings) -> list[field.Error]:
    """Reject a source that is not allowed in new and changed Models only; existing ones get a note in their status."""
    refused = refusal(model.spec, settings)
    return [field.forbidden(SOURCE, refused)] if refused else []


def update_warnings(model: Model, old: Model, settings: Settings) -> Iterator[Advice]:
    """Warn of a change by which services lose their pods (LK-V-M48)."""
    if model.spec.on_metal and not old.spec.on_metal:
        message = "the pods of all InferenceServices that use the Model are deleted: a metal agent has to serve it"
        yield advice(SPEC.child("hardware", "accelerator"), message)


def _hardware(hardware: Hardware, path: field.Path) -> Errors:
    """Require a share of memory above 0 and at most 1 (LK-V-M30, LK-V-M31)."""
    yield from _quantity(hardware.memory_budget, path.child("memoryBudget"), positive=True)
    fraction = hardware.memory_fraction
    if fraction is not None and not 0 < fraction <= 1:  # LK-V-M31
        detail = "must be above 0 and at most 1, for example 0.75"
        yield field.invalid(path.child("memoryFraction"), fraction, detail)
    if hardware.gpu:
        yield from _gpu(hardware.gpu, path.child("gpu"))


def _gpu(gpu: GPU, path: field.Path) -> Errors:
    """Require distinct resource claims, which exclude other resources of GPUs (LK-V-M44)."""
    yield from _quantity(gpu.memory, path.child("memory"))
    for name, key in (("resourceName", gpu.resource_name), ("tolerationKey", gpu.toleration_key)):
        yield from fieldrules.label_key(key, path.child(name)) if key else ()
    yield from rules.violations(gpu, path)
    claims = path.child("resourceClaims")
    sent = [claim.model_dump(by_alias=True, exclude_none=True) for claim in gpu.resource_claims]
    yield from sendable.check(sent, claims)
    for claim_path, claim in claims.each(gpu.resource_claims):
        if not is_dns1123_label(claim.name):
            detail = "must be at most 63 lower case letters, digits and '-'"
            yield field.invalid(claim_path.child("name"), claim.name, detail)
        for name, value in claim.model_dump(by_alias=True, exclude={"name"}, exclude_none=True).items():
            yield from fieldrules.object_name(value, claim_path.child(name))


def _quantity(text: str, path: field.Path, *, positive: bool = False, example: str = "16Gi") -> list[field.Error]:
    return [] if not text else quantity.quantity_errors(text, path, positive=positive, example=example)


# Warnings of fields without effect, and of probable mistakes.


def warnings(model: Model) -> list[Advice]:
    spec, source = model.spec, source_of(model.spec)
    metal = spec.on_metal
    advices = [
        *podadvice.annotation_warnings(
            model.metadata, {names.DOWNLOAD: (names.BY_PODS, names.BY_FIRST_POD, names.BY_JOB)}
        )
    ]
    advices += [*_source_advice(source), *_file_advice(spec, source, metal=metal)]
    advices += _quantization_advice(spec, source)
    advices += fieldclass.without_effect(spec, SPEC)
    advices += _secret_advice(spec, source, metal=metal)
    advices += advise([_pod_view(spec)])
    if metal:
        advices += _metal_advice(spec)
    if spec.hardware:
        advices += _hardware_advice(spec.hardware, metal=metal)
        advices += () if metal else _memory_advice(spec, source)
    return advices


def _pod_view(spec: ModelSpec) -> PodView:
    """Return what a Model adds to the pods of its services; the pod that downloads it has nothing of the user's."""
    resources = spec.resources.model_dump() if spec.resources else {}
    amounts = [(GPU_PATH, {"memory": spec.gpu.memory}), (SPEC.child("resources"), resources)]
    container = ContainerView({}, SPEC, line=CommandLine((), SPEC), amounts=amounts)
    return PodView({}, SPEC, containers=[container], is_whole=False)


def _memory_advice(spec: ModelSpec, source: Source) -> Iterator[Advice]:
    """Warn of weights that do not fit (LK-7.5), unless ``layers`` keep a part of them in host memory."""
    gpu = spec.gpu
    if not gpu.count or (gpu.layers or 0) > 0 or not quantity.is_quantity(gpu.memory):
        return
    names, memory = (source.text, *source.files), int(quantity.parse(gpu.memory))
    why = too_large(names, (spec.quantization, *names), gguf=spec.format == "gguf", gpus=gpu.count, memory=memory)
    if why:
        yield advice(GPU_PATH.child("memory"), f"{why}: only a service that keeps a part in host memory can start")


def _no_effect(path: field.Path, why: str) -> Advice:
    return advice(path, f"no effect{why}", "no-effect")


def _source_advice(source: Source) -> Iterator[Advice]:
    """Warn of addresses that are not a model's file: a page of the Hub, an archive (LK-V-M08, HTTP-X49)."""
    on_hub = source.kind is SourceClass.HTTP and sources.host(source.text) in address.HUB_HOSTS
    if source.hub_page:
        written = f"hf://{source.repository}@{source.revision}" if source.revision else source.repository
        text = f"the address of a Hugging Face page is read as its repository; write {written}"
        yield advice(SOURCE, field.Hint(text, written))
    elif on_hub and "/resolve/" not in source.text:
        yield advice(SOURCE, "a page of the Hugging Face Hub, not a file: a file's URL has /resolve/ in it")
    elif source.kind is SourceClass.HTTP and " " in source.text:
        written = source.text.replace(" ", "%20")
        yield advice(SOURCE, field.with_hint("a URL has no spaces", field.did_you_mean(written)))
    elif sources.host(source.text) == "github.com" and "/blob/" in source.text:
        written = source.text.replace("/blob/", "/raw/", 1)
        yield advice(SOURCE, field.with_hint("a page of GitHub, not a file", field.did_you_mean(written)))
    elif sources.lacks_scheme(source):
        hint = field.did_you_mean(f"https://{source.text}")
        yield advice(SOURCE, field.with_hint("read as a repository of the Hugging Face Hub", hint))
    elif source.repository and source.text == source.repository and source.text.count("/") > 1:
        text = "read as a repository of the Hugging Face Hub, which is <owner>/<name>"
        yield advice(SOURCE, field.with_hint(text, source_hint(source.text)))
    elif sources.is_archive(source):
        yield advice(SOURCE, "an archive, and nothing unpacks it; write the address of the model's own file")


def _file_advice(spec: ModelSpec, source: Source, *, metal: bool) -> Iterator[Advice]:
    """Warn of fields that do not apply to the files of the source, and of files that are missing (LK-V-M46)."""
    if source.kind is SourceClass.S3 and not source.files and spec.format == "safetensors":  # LK-V-M45
        text = "only the one object of the source is fetched; list all files of the model, such as its config"
        yield advice(SPEC.child("files"), text)
    if spec.sha256 and len(source.files) > 1:  # LK-V-M12
        yield _no_effect(SPEC.child("sha256"), f": it is the checksum of one file, and {len(source.files)} are fetched")
    elif spec.sha256 and (metal or not source.is_file):
        yield _no_effect(SPEC.child("sha256"), ": the file is not downloaded by a Job or a pod of this cluster")
    fetched = source.is_file and not (metal and source.kind is SourceClass.LOCAL)
    if fetched and (missing := ggufparts.problem(source.files or (source.text.partition("?")[0],))):
        yield advice(SPEC.child("files") if spec.files else SOURCE, missing)
    if spec.refresh_policy == "OnChange":  # LK-V-M14. A checksum pins the file, so there is nothing to refresh either.
        path = SPEC.child("refreshPolicy")
        if not source.is_remote:
            yield _no_effect(path, ": only files that come from a server are compared")
        elif metal:
            yield _no_effect(path, " on metal: the agent fetches the file once")
        elif spec.sha256:
            yield _no_effect(path, " beside sha256, which pins the file")
    if spec.format == "mlx" and not metal:  # LK-V-M16
        message = "only runtimes on metal load mlx, and hardware.accelerator is not metal"
        yield advice(SPEC.child("format"), message)


def _quantization_advice(spec: ModelSpec, source: Source) -> Iterator[Advice]:
    """Warn of another quantization than the one in the name of a GGUF file (LK-V-M47)."""
    file = (source.files or (source.text.partition("?")[0],))[0].rpartition("/")[2]
    if spec.format == "gguf" and (named := other_quantization(spec.quantization, file)):
        message = f"the file is {named} by its name; write {named}, or leave it out"
        yield advice(SPEC.child("quantization"), field.Hint(message, named))


def _secret_advice(spec: ModelSpec, source: Source, *, metal: bool) -> Iterator[Advice]:
    """Warn of credentials that are missing or unused (LK-V-M39)."""
    secret, path = spec.source_secret_ref and spec.source_secret_ref.name, SPEC.child("sourceSecretRef")
    if source.kind is SourceClass.S3 and not secret and not metal:
        yield advice(path, "without it only public buckets of Amazon's can be read, in us-east-1")
    elif secret and metal:
        yield _no_effect(path, " on metal: the agent fetches the file")
    elif secret and source.kind is SourceClass.REPOSITORY:
        yield _no_effect(path, ": the server fetches the repository; give it the token, as hfTokenSecretRef or env")
    elif secret and not source.is_remote:
        yield _no_effect(path, ": nothing is downloaded")


def _metal_advice(spec: ModelSpec) -> Iterator[Advice]:
    """Warn of fields that describe pods: the agent starts one process, and reads only a GPU's layers (LK-V-X11)."""
    gpu = spec.gpu
    resources = spec.resources or ModelResources()
    unread = {
        GPU_PATH.child("count"): gpu.count,
        GPU_PATH.child("sharding"): gpu.sharding,
        SPEC.child("resources", "cpu"): resources.cpu,
        SPEC.child("resources", "memory"): resources.memory,
    }
    yield from (_no_effect(path, " on metal, which has no pods") for path, value in unread.items() if value)


def _hardware_advice(hardware: Hardware, *, metal: bool) -> Iterator[Advice]:
    """Warn of a limit of memory that is given twice, or off metal."""
    path = SPEC.child("hardware")
    if hardware.memory_budget and hardware.memory_fraction is not None:  # LK-V-M32
        yield _no_effect(path.child("memoryFraction"), " beside memoryBudget")
    if not metal:  # LK-V-M33
        if hardware.memory_budget:
            yield _no_effect(path.child("memoryBudget"), " unless accelerator is metal")
        if hardware.memory_fraction is not None:
            yield _no_effect(path.child("memoryFraction"), " unless accelerator is metal")
    if hardware.gpu:
        yield from _gpu_advice(hardware.gpu, hardware.accelerator)


_OTHER_VENDORS = {"cuda": ("amd", "intel"), "rocm": ("intel",), "intel": ("amd",)}
"""Pairs that contradict each other. ``nvidia`` is a default that the user may not have written."""


def _gpu_advice(gpu: GPU, accelerator: str) -> Iterator[Advice]:
    """Warn of fields of a GPU that contradict each other, and of misspelt devices."""
    count = gpu.count or 0
    if gpu.enabled is False and count > 0:  # LK-V-M26
        yield _no_effect(GPU_PATH.child("enabled"), f": {count} GPUs are requested although it is false")
    if gpu.enabled and count == 0 and not gpu.resource_claims:
        yield _no_effect(GPU_PATH.child("enabled"), ": without gpu.count no GPU is requested by the Model")
    if gpu.runtime and gpu.vendor != "amd":  # LK-V-M41
        yield _no_effect(GPU_PATH.child("runtime"), f" with vendor {gpu.vendor}, only with amd")
    if gpu.vendor in _OTHER_VENDORS.get(accelerator, ()):  # LK-V-M28
        yield advice(GPU_PATH.child("vendor"), f"{gpu.vendor} does not go with accelerator {accelerator}")
    if accelerator == "cpu" and count > 0:  # LK-V-M29
        message = f"cpu, yet gpu.count requests {count} GPUs; name the accelerator"
        yield advice(SPEC.child("hardware", "accelerator"), message)
    if gpu.resource_name and (suggestion := device_meant(gpu.resource_name)):
        message = field.with_hint("no known device has this name", field.name_meant(suggestion))
        yield advice(GPU_PATH.child("resourceName"), message)
    if count > 1 and (message := podadvice.one_of_several(gpu.resource_name, count)):
        yield advice(GPU_PATH.child("count"), message)
    if gpu.sharding:
        yield from _sharding_advice(gpu.sharding, gpu.count)


def _sharding_advice(sharding: Sharding, count: int | None) -> Iterator[Advice]:
    """Warn of a split that llama.cpp ignores, or replaces by equal shares."""
    path = GPU_PATH.child("sharding")
    if sharding.strategy == "pipeline":  # LK-V-M22
        yield advice(path.child("strategy"), "pipeline does not exist in llama.cpp and acts like layer")
    if count is not None and count < 2:  # LK-V-M23
        yield _no_effect(path, f" with gpu.count {count}: there is nothing to split")
    if not sharding.layer_split:
        return
    # LK-V-M24 and LK-V-M25
    path, ranges = path.child("layerSplit"), [layers(entry) for entry in sharding.layer_split]
    valid = [entry for entry in ranges if entry is not None]
    if sharding.strategy == "none":
        yield _no_effect(path, " with strategy none")
    elif count is not None and count > 1 and len(ranges) != count:
        yield advice(path, f"{len(ranges)} entries for {count} GPUs: every GPU gets an equal share")
    elif len(valid) < len(ranges):
        yield advice(path, "an entry is not start-end with start <= end: every GPU gets an equal share")
    elif any(later[0] != earlier[1] + 1 for earlier, later in pairwise(valid)):
        yield advice(path, "there are gaps or overlaps: only the numbers of layers count, as shares")

"""Estimate whether a model fits into the memory of its GPUs, from a minimum and a maximum of what it needs (LK-7).

The sum of weights, key-value cache and overhead. The bounds are close where the file's size and the model's shape are
known, and far apart where only names are. An answer holds for both bounds.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from math import inf

import msgspec
from msgspec.structs import replace

from app.hooks.fit import Fit, FitAnswer
from app.kube.regex import regex
from app.workload.devices import Counts, counts
from app.workload.fit.gpumodels import BFLOAT16, MIB, USUAL_GPUS, GPUModel
from app.workload.fit.modelfacts import ModelFacts
from app.workload.fit.models import Ends, Shape, shape_of

GIB = 2**30
GPU_COUNTS = (1, 2, 4, 8)
_NAMES = ("weights", "key-value cache", "overhead", "needed")
_COUNT = regex(
    r"(?<![a-z0-9.])(?:([0-9]{1,2})x)?([0-9]{1,4}(?:\.[0-9]{1,3})?)(b|(?<=[0-9]{2})m)(?![a-z0-9]|-[0-9]+e\b)",
    re.IGNORECASE,
)
"""A number of parameters in a name. One digit before an M is a context length: ``Qwen2.5-7B-Instruct-1M``; the number
before experts counts those of one token: ``17B-16E``."""
_UNITS = {"B": 1e9, "M": 1e6}
OVERHEAD = int(2.5 * GIB)
"""Maximum memory of each GPU that a server uses for its context, buffers and graphs."""


class Amount(msgspec.Struct, frozen=True):
    """A number between two bounds; ``most`` is ``None`` without an upper bound. ``how`` is its source."""

    least: float
    most: float | None
    how: str

    def __str__(self) -> str:
        low = _gib(self.least)
        if self.most is None:
            return f"at least {low} GiB" if self.least else "an amount that is not known"
        high = _gib(self.most)
        return f"{low} GiB" if low == high else f"{low} to {high} GiB"


def _gib(number: float) -> str:
    return f"{number / GIB:.1f}"


UNKNOWN_USE = "it is not known what this server loads, and how much memory that takes"


class Usage(msgspec.Struct, frozen=True):
    """Use of the memory of GPUs by a server, as far as its options describe it."""

    context: int | None = None
    """Minimum number of tokens in the key-value cache; ``None`` for the server's choice."""
    cache: tuple[str, str] = ("f16", "f16")
    """Data types of keys and values."""
    share: float | None = None
    """Fraction of the memory that the server takes, where the user sets it."""
    usual_share: float = 1.0
    """The server's default for it."""
    tensor: int | None = 1
    """Number of GPUs that share the heads of a layer (tensor parallelism); ``None`` for all that it uses."""
    gpus: int | None = None
    """Number of the pod's GPUs that it uses; ``None`` for all."""
    quantization: str = ""
    keeps_latent: bool = False
    """Caches the vector that keys and values are made from, in models that have one, instead of all heads."""
    keeps_windows: bool = False
    """Keeps no more than the window, and the tokens of one step, in layers with one."""
    elsewhere: tuple[str, ...] = ()
    """Settings that may keep a part of the model in host memory, so that less may be needed."""
    more: tuple[str, ...] = ()
    """Settings that use further memory, of an unknown amount."""
    prompts: float = 0
    """Bytes of host memory to which the states of earlier prompts grow."""
    unknown: str = ""
    """Reason why the server cannot be judged; empty where it can."""


class Question(msgspec.Struct, frozen=True):
    """A model, a server and its GPUs. Unknown values are ``None``, empty or 0."""

    names: tuple[str, ...]
    """Strings that may contain the model's name and number of parameters, the most reliable first."""
    formats: tuple[str, ...]
    """Strings that may contain its quantization, the most reliable first."""
    gguf: bool
    """One file in GGUF, not a repository of tensors."""
    use: Usage
    gpus: int
    memory: int
    """Bytes of one GPU."""
    gpu: GPUModel | None = None
    """The GPU, if its name is known."""
    claimed: bool = False
    """Devices are requested by ResourceClaims, so that 0 GPUs does not mean none."""
    memory_from: str = ""
    size: int = 0
    """Bytes of the weights."""
    parameters: int = 0
    shape: Shape | None = None
    dtype: str = ""
    """Data type of weights without quantization."""
    memory_field: str = "write the memory of one GPU into the Model's hardware.gpu.memory"
    """Advice to a user whose objects do not name the memory of a GPU."""
    resource: str = ""
    """The resource that counts the GPUs."""
    host: int = 0
    """Bytes of host memory that the server has: its limit, else its request; 0 if neither is known."""


def judge(question: Question, facts: ModelFacts | None = None) -> Fit:
    """Return the answer, which is CANNOT_KNOW unless it is certain, and GPUs that would be enough.

    ``facts``: what a file of the model tells, which is more certain than names.
    """
    question = question if facts is None else with_facts(question, facts)
    return with_enough(question, answer(question))


def with_enough(question: Question, fit: Fit) -> Fit:
    """Return the answer with the GPUs that would be enough, which take much longer to find."""
    if fit.answer is FitAnswer.FITS or not fit.rows or not question.gpus:
        return fit
    return replace(fit, enough=tuple(_enough(question)))


def with_facts(question: Question, facts: ModelFacts) -> Question:
    """Return a question with what a file of the model tells."""
    use = replace(question.use, keeps_latent=question.use.keeps_latent or facts.keeps_latent)
    if facts.shape is None:
        return replace(question, use=use, size=facts.size or question.size)
    bits = facts.shape.bits
    is_published = bits is not None and bits[0] < _UNQUANTIZED_BITS and not question.gguf
    formats = () if is_published else question.formats
    return replace(question, use=use, shape=facts.shape, size=facts.size or question.size, formats=formats)


def _with_prompts(question: Question, fit: Fit) -> Fit:
    """Return the answer with the host memory for earlier prompts, and a warning where the server has less."""
    prompts = question.use.prompts
    if not prompts or not fit.rows:
        return fit
    grown = "without a limit" if prompts == inf else f"up to {_gib(prompts)} GiB"
    fit = replace(fit, rows=(*fit.rows, ("prompt cache", grown, "earlier prompts, in host memory")))
    model = 0 if question.gpus else sum(part.least for part in _amounts(question))
    if not 0 < question.host <= prompts + model:
        return fit
    held = f"{_gib(question.host)} GiB of host memory"
    if question.host <= prompts:
        return replace(fit, why=f"{fit.why}; earlier prompts grow {grown}, and the server has {held}: set --cache-ram")
    return replace(fit, why=f"{fit.why}; with {grown} for earlier prompts that is more than the server's {held}")


def _enough(question: Question) -> Iterator[str]:
    """Yield the smallest GPU on which the model certainly fits, for each usual number of them."""
    previous, question = len(USUAL_GPUS), _with_shape(question)
    formats = _formats(question)
    for count in (number for number in GPU_COUNTS if not indivisible(question, number)):
        most = _total(question.use, _amounts(replace(question, gpus=count))).most
        for index, gpu in enumerate(USUAL_GPUS[:previous]):
            if _too_old(formats, gpu):
                continue
            if most is not None and most <= _usable(question.use, count * gpu.memory):
                yield f"{count} x {gpu.name}"
                previous = index
                break


def _with_shape(question: Question) -> Question:
    """Look the model up once for all parts of the answer."""
    return replace(question, shape=question.shape or shape_of(question.names))


def answer(question: Question) -> Fit:
    """Return the answer, which is CANNOT_KNOW unless it is certain."""
    question = _with_shape(question)
    return _with_prompts(question, _answer(question))


def _answer(question: Question) -> Fit:
    use = question.use
    if use.unknown:
        return Fit(FitAnswer.CANNOT_KNOW, use.unknown, ())
    used = min(use.gpus or question.gpus, question.gpus)
    amounts = _amounts(replace(question, gpus=used))
    total = _total(use, amounts)
    rows = tuple((name, str(part), part.how) for name, part in zip(_NAMES, (*amounts, total), strict=True))
    if not question.gpus and question.claimed:
        return Fit(FitAnswer.CANNOT_KNOW, f"it needs {total}; only the ResourceClaims say which GPUs there are", rows)
    if not question.gpus:
        return Fit(FitAnswer.CANNOT_KNOW, f"no GPU is requested; of host memory it needs {total}", rows)
    if not question.memory:
        return Fit(FitAnswer.CANNOT_KNOW, f"it needs {total}; {_unknown_memory(question)}", rows)
    available = used * question.memory
    source = f"{used} x {_gib(question.memory)} GiB, {question.memory_from}"
    rows = (*rows, ("available", f"{_gib(available)} GiB", source))
    if why := indivisible(question, used) or _too_old(_formats(question), question.gpu):
        return Fit(FitAnswer.DOES_NOT_FIT, why, rows)
    fit = _compared(use, total, available, rows)
    idle = f"; the server uses {used} of the pod's {question.gpus} GPUs" if used < question.gpus else ""
    return replace(fit, why=fit.why + idle)


def _unknown_memory(question: Question) -> str:
    is_whole = not question.resource or counts(question.resource) is Counts.DEVICES
    part = "" if is_whole else f"how much memory a {question.resource} has is not known: "
    return part + question.memory_field


def indivisible(question: Question, gpus: int) -> str:
    """Return why a server cannot divide the model's heads among its GPUs; empty if it can, or may."""
    shape, parts = question.shape or shape_of(question.names), question.use.tensor or gpus
    if question.gguf or shape is None or not shape.queries or parts < 2:
        return ""
    if shape.queries % parts:
        return f"it has {shape.queries} attention heads, which {parts} GPUs cannot share"
    heads = 0 if shape.is_latent else shape.kv_heads
    if heads and heads % parts and parts % heads:
        return f"it has {heads} heads for keys and values, which {parts} GPUs cannot share"
    return ""


_CAPABILITIES = dict.fromkeys(("bfloat16", "mxfp4", "fp8", "nvfp4", "fp4"), BFLOAT16)
"""The least compute capability for formats of weights, in engines that load repositories."""


def _formats(question: Question) -> frozenset[str]:
    """Return the formats of the weights that a GPU may be too old for: none in GGUF."""
    if question.gguf:
        return frozenset()
    shape = question.shape or shape_of(question.names)
    written = formats_in(" ".join((question.use.quantization, *question.formats)))
    return frozenset({*written, question.dtype, shape.format if shape and not written else ""})


def _too_old(formats: Collection[str], gpu: GPUModel | None) -> str:
    """Return why a GPU cannot compute with the formats of the weights; empty if it can, or may."""
    needed = max((_CAPABILITIES.get(name, 0.0) for name in formats), default=0.0)
    if gpu is None or not 0 < gpu.capability < needed:
        return ""
    names = ", ".join(sorted(name.upper() for name in formats if _CAPABILITIES.get(name)))
    return f"{names} needs compute capability {needed}, and {gpu.name} has {gpu.capability}"


def _amounts(question: Question) -> tuple[Amount, Amount, Amount]:
    weight = weights(question)
    overhead_most = max(question.gpus, 1) * OVERHEAD + (weight.most or 0) / 20
    overhead = Amount(0, overhead_most, "at most 2.5 GiB for each GPU, and a twentieth of the weights")
    return weight, cache(question), overhead


def _total(use: Usage, amounts: Sequence[Amount]) -> Amount:
    least = sum(part.least for part in amounts)
    unknown = next((part.how for part in amounts if part.most is None), "")
    if use.more:
        unknown = f"not counted: {', '.join(use.more)}"
    return Amount(least, None if unknown else sum(part.most or 0 for part in amounts), unknown)


def _usable(use: Usage, available: int) -> float:
    return available * (use.share or use.usual_share)


def _compared(use: Usage, total: Amount, available: int, rows: tuple[tuple[str, str, str], ...]) -> Fit:
    usable = _usable(use, available)
    capacity = f"{_gib(available)} GiB"
    if use.share is not None or use.usual_share < 1:
        share = f"{(use.share or use.usual_share):.0%} of it"
        rows = (*rows, ("usable", f"{_gib(usable)} GiB", share + ("" if use.share else ", the server's default")))
        capacity = f"{_gib(usable)} GiB of {capacity}"
    if total.most is not None and total.most <= usable:
        return Fit(FitAnswer.FITS, f"it needs at most {_gib(total.most)} GiB, and has {capacity}", rows)
    if total.least <= available * (use.share or 1.0):
        unknown = f"; {total.how}" if total.most is None else ""
        return Fit(FitAnswer.CANNOT_KNOW, f"it needs {total}, and has {capacity}{unknown}", rows)
    why = f"it needs at least {_gib(total.least)} GiB, and has {capacity}"
    if use.elsewhere:
        why += f"; but {', '.join(use.elsewhere)} may keep a part of it in host memory"
        return Fit(FitAnswer.CANNOT_KNOW, why, rows)
    return Fit(FitAnswer.DOES_NOT_FIT, why, rows)


def weights(question: Question) -> Amount:
    """Return the bytes of the weights: the file's size if known, else parameters times bits."""
    if question.size:
        return Amount(question.size, question.size, "the size of the file")
    shape = question.shape or shape_of(question.names)
    if question.parameters:
        count = _count((question.parameters * 0.99, question.parameters * 1.01))
    elif shape is not None and shape.billions[0]:
        count = _count((shape.billions[0] * 1e9, shape.billions[1] * 1e9))
    else:
        count = parameters(question.names)
    bits = _bits(question, shape, is_large=count.least >= _LARGE)
    if count.most is None or bits.most is None:
        return Amount(0, None, "neither the size of the file nor a number of parameters is known")
    tables = _TABLES if question.gguf and count.most < _SMALL else 0
    return Amount(count.least * bits.least / 8, count.most * bits.most / 8 + tables, f"{count.how}, {bits.how}")


def _count(ends: Ends) -> Amount:
    return Amount(*ends, f"{sum(ends) / 2e9:.{1 if ends[0] > 1e9 else 2}f}B parameters")


def _bits(question: Question, shape: Shape | None, *, is_large: bool) -> Amount:
    """Return the bits per weight: as named, else as published, else of the data type.

    Files in GGUF keep experts that are published in MXFP4, whichever quantization their names tell.
    """
    method, published = question.use.quantization, shape.bits if shape else None
    named = quantization((method, *question.formats), gguf=question.gguf, is_large=is_large)
    if question.gguf and published and published[0] < _MXFP4[1]:
        return _bits_each("MXFP4", (_MXFP4[0], max(_MXFP4[1], named.most or 0)))
    if named.how != UNQUANTIZED:
        return named
    if published:
        return _bits_each("as published", published)
    if method:
        return Amount(2, 16.1, f"2 to 16.1 bits each, by quantization {method}")
    if shape is None and not question.gguf:
        return Amount(4, 16.1, "4 to 16.1 bits each, as a publisher may have quantized it")
    return quantization([question.dtype], gguf=False)


def too_large(names: tuple[str, ...], formats: tuple[str, ...], *, gguf: bool, gpus: int, memory: int) -> str:
    """Return why the weights cannot fit on the GPUs, judged by names alone; empty if they may."""
    use, available = Usage(), gpus * memory
    weight = weights(Question(names, formats, gguf, use, gpus, memory))
    if weight.least <= available:
        return ""
    declared = f"{gpus} x {_gib(memory)} GiB"
    return f"the weights need at least {_gib(weight.least)} GiB ({weight.how}), and {declared} are declared"


def parameters(names: Iterable[str]) -> Amount:
    """Return the number of parameters in a name, such as ``8B``, ``8x7B`` or ``135M``, rounded; experts may share."""
    for name in names:
        matches = _COUNT.findall(name)
        counts = [float(n) * _UNITS[unit.upper()] * int(experts or 1) for experts, n, unit in matches]
        if counts and all(counts):
            mixed = any(experts for experts, _, _ in matches)
            experts, number, unit = matches[counts.index(max(counts))]
            text = f"{f'{experts}x' if mixed else ''}{number}{unit.upper()} parameters by the name"
            return Amount(min(counts) * (0.7 if mixed else 0.9), max(counts) * 1.3, text)
    return Amount(0, None, "")


_MXFP4 = (4.2, 5.8)
_UNQUANTIZED_BITS = 16
_METHODS = "gptq bnb bitsandbytes autoround hqq aqlm exl2 exl3 mlx bitnet"
"""Methods with several bit widths, which names often contain: ``GPTQ-Int4``."""
_SMALL, _TABLES = 3e9, 0.15e9
"""Parameters of a small model, and bytes in its GGUF file for tables of tokens that are kept larger."""
_BITS: dict[str, Ends] = {
    word: ends
    for words, ends in (
        ("f32 fp32 float32", (32, 32)),
        ("f16 fp16 bf16 float16 bfloat16 half", (16, 16.1)),
        ("q8_0", (8.5, 8.6)),
        ("q8_k_xl", (8.5, 12)),
        ("q6_k q6_k_l", (6.5, 7)),
        ("q6_k_xl", (6.4, 8)),
        ("q5_k_m q5_k q5_1 q5_k_l", (5.5, 6.4)),
        ("q5_k_xl", (5.3, 6.6)),
        ("q5_k_s q5_0", (5.5, 5.8)),
        ("q4_k_m q4_k q4_1", (4.5, 5.3)),
        ("q4_k_l q4_k_xl", (4.3, 5.7)),
        ("q4_k_s q4_0 iq4_nl", (4.5, 4.9)),
        ("iq4_xs", (4.2, 4.7)),
        ("mxfp4", _MXFP4),
        ("q3_k_l q3_k_m q3_k", (3.4, 4.6)),
        ("q3_k_xl", (3.3, 5)),
        ("q3_k_s", (3.4, 3.9)),
        ("q2_k q2_k_s", (2.5, 3.6)),
        ("q2_k_l q2_k_xl q2_k_xs", (2.3, 4)),
        ("iq3_m iq3_s iq3_xs iq3_xxs", (3, 4.1)),
        ("iq2_m iq2_s iq2_xs iq2_xxs", (2, 3.2)),
        ("iq1_m iq1_s tq1_0 tq2_0", (1.5, 2.8)),
        ("fp8 int8 8bit w8a8 w8a16 eetq", (8, 10)),
        ("awq int4 4bit w4a16 w4a8 fp4 nvfp4 nf4", (4, 8)),
        (_METHODS, (1.5, 9)),
    )
    for word in words.split()
}
"""Bits per weight: of the format of the smallest tensors, and of a whole file, in which some are kept larger."""
_LARGE = 20e9
_OF_LARGE: dict[str, Ends] = {
    **dict.fromkeys(("fp8", "int8", "8bit", "w8a8", "w8a16"), (8, 8.7)),
    **dict.fromkeys(("awq", "int4", "4bit", "w4a16", "w4a8", "nf4"), (4, 5.6)),
    **dict.fromkeys(("nvfp4", "fp4"), (4, 6.5)),
}
"""The same of a model with many parameters, of which the tables that are kept larger are a small part."""
_WORD = regex(rf"(?<![a-z0-9])(?:{'|'.join(sorted(_BITS, reverse=True))})(?![a-z0-9])")
_GGUF = regex(r"[it]?q[0-9]|b?f16|f32")


def formats_in(name: str) -> list[str]:
    """Return the quantizations in a name, in lower case."""
    return _WORD.findall(name.lower())


def other_quantization(written: str, file: str) -> str:
    """Return the quantization in the name of a file if another one is written; empty if a name has none or several."""
    ours, theirs = formats_in(written), formats_in(file)
    is_gguf = len(ours) == len(theirs) == 1 and all(map(_GGUF.match, (ours[0], theirs[0])))
    is_other = is_gguf and _BITS[ours[0]] != _BITS[theirs[0]]
    return theirs[0].upper() if is_other else ""


def quantization(names: Iterable[str], *, gguf: bool, is_large: bool = False) -> Amount:
    """Return the bits per weight, by the first name that contains a quantization."""
    bits = _BITS | _OF_LARGE if is_large else _BITS
    for name in names:
        words = formats_in(name)
        if formats := [word for word in words if word not in _METHODS.split()] or words:
            ends = [bits[word] for word in formats]
            bounds = min(least for least, _ in ends), max(most for _, most in ends)
            return _bits_each(formats[-1].upper(), bounds)
    if gguf:
        return Amount(1.5, 32, "1.5 to 32 bits each, as no name tells")
    return Amount(16, 16.1, UNQUANTIZED)


def bits_of(word: str, *, count: float) -> Ends:
    """Return the bits per weight of a format in a model of so many weights; wide ones for an empty word."""
    bits = _BITS | _OF_LARGE if count >= _LARGE else _BITS
    return bits.get(word, (2, 16.1))


def _bits_each(source: str, ends: Ends) -> Amount:
    return Amount(*ends, f"{source}, {ends[0]:g} to {ends[1]:g} bits each")


UNQUANTIZED = "16 bits each, as in a repository without quantization"


# The key-value cache: two vectors per token, layer and key-value head.

_CACHE_BITS = {
    **dict.fromkeys(("f16", "bf16", "float16", "bfloat16", "auto"), 16.0),
    **dict.fromkeys(("fp8", "fp8_e4m3", "fp8_e5m2"), 8.0),
    "f32": 32.0,
    "q8_0": 8.5,
    "q5_1": 6.0,
    "q5_0": 5.5,
    "q4_1": 5.0,
    "q4_0": 4.5,
    "iq4_nl": 4.5,
}


def cache(question: Question) -> Amount:
    """Return the bytes of the cache. A server that chooses the context may choose a small one."""
    shape, use = question.shape or shape_of(question.names), question.use
    if shape is None:
        return Amount(0, None, "the model's layers and heads are not known")
    if not shape.layers:
        return Amount(0, 0, "none: the model is an encoder")
    tokens = use.context or shape.context
    if not tokens:
        return Amount(0, None, "neither the service nor the model has a context length")
    formats = use.cache[:1] if shape.is_latent else use.cache
    is_certain = use.context and all(text in _CACHE_BITS for text in formats)
    least = (_layers(shape, formats, tokens, shape.window) + shape.state / 2) * shape.ends[0] if is_certain else 0
    if shape.is_latent and not use.keeps_latent:
        return Amount(least, None, "this server or file may keep all heads of latent attention")
    window = shape.window + _BATCH if use.keeps_windows else tokens
    padding = _PADDING if shape.windowed and use.keeps_windows else 1
    most = _layers(shape, formats, tokens, window, question.gpus) * padding
    return Amount(least, (most + _STATES * shape.state) * shape.ends[1], _cached(shape, use, tokens))


_BATCH = 8192
"""Tokens of one step, which layers with a window keep beside the window."""
_PADDING = 1.1
"""Factor of models with windows, because the caches of all kinds of layers share pages of one size."""
_SCALES = 80
"""Bytes that sparse attention adds to a vector in FP8: scales, and a part in 16 bits."""
_STATES = 4
"""Requests whose states a server keeps at least room for, as llama.cpp does."""


def _layers(shape: Shape, formats: Sequence[str], tokens: int, window: int, gpus: int = 1) -> float:
    """Return the bytes of all layers; a GPU holds at least one head of each."""
    bits = sum(_CACHE_BITS.get(text, 32.0) for text in formats)
    heads, width = shape.windowed_heads or shape.kv_heads, shape.windowed_width or shape.head
    latent = _SCALES if shape.index and bits == _CACHE_BITS["fp8"] else 0
    full = max(shape.kv_heads, gpus) * (shape.head + latent) * tokens * (shape.layers - shape.windowed)
    limited = max(heads, gpus) * width * min(tokens, window) * shape.windowed
    return (full + limited) * bits / 8 + shape.index * max(1, gpus) * tokens * shape.layers


def _cached(shape: Shape, use: Usage, tokens: int) -> str:
    """Return what the cache has, in words."""
    if shape.is_latent:
        how = f"{tokens} tokens x {shape.layers} layers x {shape.head} latent values in {use.cache[0]}"
        how += "; each GPU may have a copy"
    else:
        end = "up to " if shape.ends[0] != shape.ends[1] else ""
        layout = f"{shape.layers} layers x {shape.kv_heads} heads x {end}{int(shape.head * shape.ends[1])} values"
        how = f"{tokens} tokens x {layout}, keys and values in {' and '.join(dict.fromkeys(use.cache))}"
    if 0 < shape.window < tokens:
        how += f"; {shape.windowed} layers {'' if use.keeps_windows else 'may '}keep {shape.window} tokens only"
    if shape.state:
        how += f"; the other layers keep {shape.state / MIB:.0f} MiB for each request"
    if not use.context:
        how += "; with less room, the server takes fewer tokens or does not start: set a context length"
    return how

"""The shape of a model by its ``config.json``."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from app.workload.fit.memory import bits_of
from app.workload.fit.modelfacts import ModelFacts
from app.workload.fit.models import Ends, Shape

Config = Mapping[str, Any]
_NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
"""Keys below which models for images and sound have the configuration of their language model."""
_ENCODERS = frozenset(
    {
        *("albert", "bert", "deberta", "deberta-v2", "distilbert", "electra", "modernbert", "mpnet", "new"),
        *("nomic_bert", "roberta", "xlm-roberta"),
    }
)
"""Types of models that keep no keys and values."""
_FULL, _WINDOWED = frozenset({"full_attention", "attention"}), frozenset({"sliding_attention", "chunked_attention"})
_PERIODS = {"gemma2": 2, "gemma3_text": 6, "gemma3": 6, "cohere2": 4, "llama4_text": 4, "gpt_oss": 2}
"""Types of models of which one layer of so many has no window, where the configuration does not list its layers."""
_ALL_WINDOWED = frozenset({"mistral", "mixtral", "phi3", "starcoder2"})
_STATES = ("mamba", "ssm", "linear", "conv_", "rwkv", "lightning")
"""Beginnings of keys, and of types of models, of layers without a cache."""


def facts_of(config: Config) -> ModelFacts | None:
    """Return what a configuration tells; ``None`` for another document."""
    text = _language(config)
    if not _count(text):
        return None
    shape = _shape(text)
    billions = _billions(text, shape, is_nested=config is not text)
    quantization = config.get("quantization_config") or text.get("quantization_config")
    word = _quantization(quantization) if isinstance(quantization, Mapping) and quantization else "bf16"
    word = "mxfp4" if text.get("expert_dtype") == "fp4" and word == "fp8" else word
    bits = bits_of(word, count=billions[0] * 1e9)
    return ModelFacts(replace(shape, billions=billions, bits=bits, format=word if word in _CHECKED else ""))


_LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")


def _language(config: Config) -> Config:
    for name in _NESTED:
        nested = config.get(name)
        if isinstance(nested, Mapping):
            return _language(nested)
    return config


def _number(config: Config, *names: str) -> int:
    """Return the first positive whole number among keys; 0 without one."""
    values = (config.get(name) for name in names)
    return next((value for value in values if type(value) is int and 0 < value < _MOST), 0)


_MOST = 10**9


def _shape(config: Config) -> Shape:
    queries = _number(config, "num_attention_heads", "n_head", "num_heads", "n_heads")
    context = _number(config, "max_position_embeddings", "n_positions", "seq_length", "max_sequence_length", "n_ctx")
    kinds = _kinds(config)
    if config.get("model_type") in _ENCODERS:
        return Shape(layers=0, kv_heads=0, head=0, context=context, queries=queries)
    if ratios := _ratios(config):
        return _compressed(config, ratios, context, queries)
    if rank := _number(config, "kv_lora_rank"):
        index = _number(config, "index_head_dim")
        return Shape(
            layers=kinds.full or _cached_layers(config),
            kv_heads=1,
            head=rank + _number(config, "qk_rope_head_dim"),
            context=context,
            queries=queries,
            is_latent=True,
            index=index + 4 if index else 0,  # one byte for each value, and a scale
            state=_states(config, kinds.others),
            ends=kinds.ends,
        )
    shape = Shape(
        layers=kinds.full + kinds.windowed,
        kv_heads=_kv_heads(config, queries),
        head=_width(config, queries),
        context=context,
        queries=queries,
        windowed=kinds.windowed,
        window=kinds.window,
        state=_states(config, kinds.others),
        ends=kinds.ends,
    )
    return _with_other_heads(config, shape)


def _ratios(config: Config) -> list[int]:
    """Return how many tokens each layer keeps as one, of models that compress them; 0 for a window alone."""
    ratios = config.get("compress_ratios")
    is_list = isinstance(ratios, Sequence) and not isinstance(ratios, str)
    return [number for number in ratios or () if type(number) is int][: _number(config, *_LAYERS)] if is_list else []


def _compressed(config: Config, ratios: Sequence[int], context: int, queries: int) -> Shape:
    """Return the shape of a model whose layers keep one vector for several tokens, in 8 or 16 bits."""
    shares = [1 / ratio for ratio in ratios if ratio > 0]
    share, window = sum(shares) / max(1, len(shares)), _number(config, "sliding_window")
    head, index = _number(config, "head_dim"), _number(config, "index_head_dim")
    return Shape(
        layers=len(shares),
        kv_heads=1,
        head=head,
        context=context,
        queries=queries,
        is_latent=True,
        index=index + 4 if index else 0,
        state=len(ratios) * window * head * 2,
        ends=(share * 0.5, share),
    )


def _kv_heads(config: Config, queries: int) -> int:
    if config.get("multi_query") is True and not config.get("new_decoder_architecture"):
        return 1
    names = ("num_key_value_heads", "num_kv_heads", "multi_query_group_num", "n_head_kv", "num_query_groups")
    others, attention = ("num_attention_groups", "n_kv_heads"), config.get("attn_config")
    nested = _number(attention, "kv_n_heads") if isinstance(attention, Mapping) else 0
    shared = max(_blocks(config), default=0)
    return _number(config, *names, *others) or nested or (queries // shared if shared else queries)


def _width(config: Config, queries: int) -> int:
    """Return the width of a head; the mean of those for keys and values, where they differ."""
    hidden = _number(config, "hidden_size", "n_embd", "d_model")
    keys = _number(config, "head_dim", "attention_head_dim", "kv_channels") or (hidden // queries if queries else 0)
    return (keys + (_number(config, "v_head_dim") or keys)) // 2


def _with_other_heads(config: Config, shape: Shape) -> Shape:
    """Return the shape with the heads of either kind of layers, where the configuration tells them apart."""
    if width := _number(config, "global_head_dim"):
        heads = _number(config, "num_global_key_value_heads") or shape.kv_heads
        return replace(shape, kv_heads=heads, head=width, windowed_heads=shape.kv_heads, windowed_width=shape.head)
    if heads := _number(config, "swa_num_key_value_heads"):
        keys = _number(config, "swa_head_dim") or shape.head
        width = (keys + (_number(config, "swa_v_head_dim") or keys)) // 2
        return replace(shape, windowed_heads=heads, windowed_width=width)
    return shape


class _Kinds:
    """The numbers of layers of each kind, and bounds where they are not known."""

    def __init__(self, full: int, windowed: int = 0, window: int = 0, others: int = 0, ends: Ends = (1, 1)) -> None:
        self.full, self.windowed, self.window, self.others, self.ends = full, windowed, window, others, ends


def _cached_layers(config: Config) -> int:
    """Return the number of layers that have their own keys and values."""
    return max(0, _count(config) - _number(config, "num_kv_shared_layers"))


def _count(config: Config) -> int:
    return _number(config, *_LAYERS) or len(_listed(config))


def _kinds(config: Config) -> _Kinds:
    layers = _cached_layers(config)
    window = _number(config, "sliding_window", "attention_chunk_size", "sliding_window_size")
    listed = _listed(config)[:layers]
    if listed:
        counts = Counter("full" if kind in _FULL else "windowed" if kind in _WINDOWED else "other" for kind in listed)
        return _Kinds(counts["full"], counts["windowed"], window, counts["other"])
    if groups := _blocks(config):
        heads = {size for size in groups if size}
        return _Kinds(len(groups) - groups.count(0), ends=(1, 1) if len(heads) == 1 else (0, 1))
    linear = config.get("linear_attn_config")
    numbers = linear.get("full_attn_layers") if isinstance(linear, Mapping) else None
    if isinstance(numbers, Sequence) and not isinstance(numbers, str):
        return _Kinds(len(numbers), others=layers - len(numbers))
    if interval := _number(config, "full_attention_interval"):
        return _Kinds(layers // interval, others=layers - layers // interval)
    if period := _number(config, "attn_layer_period"):
        return _Kinds(layers // period, others=layers - layers // period)
    if any(key.startswith(_STATES) for key in (*config, str(config.get("model_type")))):
        return _Kinds(layers, ends=(0, 1))
    if config.get("use_cla") and (shared := _number(config, "cla_share_factor")):  # layers share one cache
        return _Kinds(layers, ends=(1 / shared, 1))
    if not window or config.get("use_sliding_window") is False:
        return _Kinds(layers)
    return _windows(config, layers, window)


def _windows(config: Config, layers: int, window: int) -> _Kinds:
    pattern, type_ = config.get("sliding_window_pattern"), str(config.get("model_type"))
    period = pattern if type(pattern) is int else _PERIODS.get(type_, 0)
    if isinstance(pattern, str) and pattern:
        full = sum(pattern[at % len(pattern)] == "G" for at in range(layers))
    elif period > 0:
        full = layers // period
    elif type_ in _ALL_WINDOWED:
        full = 0
    else:  # which of the layers have the window is not known
        return _Kinds(layers, ends=(0, 1))
    return _Kinds(full, layers - full, window)


def _blocks(config: Config) -> list[int]:
    """Return how many attention heads share those for keys and values, by layer; 0 for a layer without attention."""
    blocks, sizes = config.get("block_configs"), []
    for block in blocks if isinstance(blocks, Sequence) and not isinstance(blocks, str) else ():
        attention = block.get("attention") if isinstance(block, Mapping) else None
        is_there = isinstance(attention, Mapping) and not attention.get("no_op")
        sizes.append(_number(attention, "n_heads_in_group") if is_there and isinstance(attention, Mapping) else 0)
    return sizes


def _listed(config: Config) -> list[str]:
    """Return the kinds of the layers, where the configuration lists them."""
    kinds, pattern = config.get("layer_types") or config.get("layers_block_type"), config.get("hybrid_override_pattern")
    if isinstance(kinds, Sequence) and not isinstance(kinds, str):
        return [str(kind) for kind in kinds]
    attended = config.get("attn_layer_indices")
    if isinstance(attended, Sequence) and not isinstance(attended, str):
        return ["attention" if at in attended else "mamba" for at in range(_number(config, *_LAYERS))]
    typed = config.get("attn_type_list")
    if isinstance(typed, Sequence) and not isinstance(typed, str):
        return ["attention" if kind else "linear" for kind in typed]
    if isinstance(pattern, str):
        return ["attention" if letter == "*" else "mamba" if letter == "M" else "none" for letter in pattern]
    numbered = config.get("hybrid_layer_pattern")
    if isinstance(numbered, Sequence) and not isinstance(numbered, str):
        return ["sliding_attention" if number else "full_attention" for number in numbered]
    return []


def _states(config: Config, layers: int) -> int:
    """Return the bytes of a request in layers without a cache: states in 32 bits, and inputs of convolutions."""
    heads, keys = _number(config, "linear_num_value_heads"), _number(config, "linear_key_head_dim")
    values, kernel = _number(config, "linear_value_head_dim"), _number(config, "linear_conv_kernel_dim")
    if heads and keys and values:
        inputs = 2 * _number(config, "linear_num_key_heads") * keys + heads * values
        return layers * (heads * keys * values * 4 + inputs * kernel * 2)
    linear = config.get("linear_attn_config")
    if isinstance(linear, Mapping) and (heads := _number(linear, "num_heads")):
        width, kernel = _number(linear, "head_dim"), _number(linear, "short_conv_kernel_size")
        return layers * heads * width * (width * 4 + 3 * kernel * 2)
    heads, values = (
        _number(config, "mamba_n_heads", "mamba_num_heads"),
        _number(config, "mamba_d_head", "mamba_head_dim"),
    )
    size, kernel = _number(config, "mamba_d_state", "ssm_state_size"), _number(config, "mamba_d_conv", "conv_kernel")
    if heads and values and size:
        groups = _number(config, "mamba_n_groups", "n_groups")
        layers = _listed(config).count("mamba") or layers
        return layers * (heads * values * size * 4 + (heads * values + 2 * groups * size) * kernel * 2)
    return layers * _number(config, "hidden_size") * _number(config, "conv_L_cache") * 2


_CHECKED = frozenset({"fp8", "mxfp4", "nvfp4"})
"""Formats for which a GPU has to be new enough."""


def _quantization(published: Config) -> str:
    """Return the word for the format of the weights; empty for one that is not known."""
    bits, kind, form = _group(published)
    loaded = 4 if published.get("load_in_4bit") else 8 if published.get("load_in_8bit") else 0
    bits = bits or _number(published, "bits", "weight_bits", "w_bit") or loaded
    named = " ".join(str(published.get(key) or "").lower() for key in ("quant_method", "quant_algo", "format")) + form
    floats = {8: "fp8", 4: "nvfp4"} if kind == "float" else {8: "int8", 4: "int4"}
    words = (word for word in ("mxfp4", "nvfp4", "fp8") if word in named)
    return next(words, floats.get(bits, ""))


def _group(quantization: Config) -> tuple[int, str, str]:
    """Return the bits, the type and the format of the weights of the first group of compressed-tensors."""
    groups = quantization.get("config_groups")
    group = next(iter(groups.values()), None) if isinstance(groups, Mapping) else None
    weights = group.get("weights") if isinstance(group, Mapping) else None
    if not isinstance(weights, Mapping):
        return 0, "", ""
    form = group.get("format") if isinstance(group, Mapping) else ""
    return _number(weights, "num_bits"), str(weights.get("type") or ""), str(form or "").lower()


def _billions(config: Config, shape: Shape, *, is_nested: bool) -> Ends:
    """Return bounds of the number of weights; zeros where the configuration does not tell it.

    Layers have two or three matrices besides attention. What sees and hears is not in the configuration of the
    language model.
    """
    hidden, inner = _number(config, "hidden_size", "n_embd", "d_model"), _inner(config)
    experts = _number(config, "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
    layers = _number(config, *_LAYERS)
    if (
        not hidden
        or not inner
        or (shape.state and not _ratios(config))
        or (shape.ends[0] < 1 and not _ratios(config))
        or "hybrid_override_pattern" in config
        or {*_listed(config)} - _FULL - _WINDOWED
        or "attn_layer_period" in config
        or (not experts and _has_experts(config))
    ):
        return (0, 0)
    table, is_tied = _number(config, "vocab_size") * hidden, config.get("tie_word_embeddings")
    attention = _attention(config, shape, hidden, layers)
    dense, sparse = _dense_layers(config, layers, experts), layers - _dense_layers(config, layers, experts)
    each = _number(config, "moe_intermediate_size", "expert_intermediate_size") or inner
    shared = _number(config, "shared_expert_intermediate_size") or each * _number(config, "n_shared_experts")
    routed = _number(config, "routed_expert_hidden_size", "moe_latent_size") or hidden
    mixed = sparse * (experts * each * routed + shared * hidden)
    matrices = dense * (_number(config, "intermediate_size_mlp") or inner) * hidden + mixed
    least = table * (2 if is_tied is False else 1) + attention + (3 if _is_gated(config) else 2) * matrices
    most = table * (1 if is_tied is True else 2) + attention + 3 * matrices
    most += (most // 10 + 10**9) if is_nested else most // 50
    return (least * 0.98 / 1e9, most / 1e9)


_GATED = frozenset({"silu", "swish", "swiglu"})


def _is_gated(config: Config) -> bool:
    """Report whether layers certainly have three matrices. With GELU Gemma has three, Phi-2 and StarCoder2 two."""
    function = str(config.get("hidden_act") or config.get("hidden_activation") or "").lower()
    return function in _GATED or (function.startswith("gelu") and str(config.get("model_type")).startswith("gemma"))


def _has_experts(config: Config) -> bool:
    """Report whether a configuration has experts, be their number a list or under another key."""
    return any("expert" in key and value for key, value in config.items())


def _inner(config: Config) -> int:
    return _number(config, "intermediate_size", "ffn_dim", "n_inner", "moe_intermediate_size")


def _dense_layers(config: Config, layers: int, experts: int) -> int:
    if not experts:
        return layers
    only, step = config.get("mlp_only_layers"), _number(config, "interleave_moe_layer_step")
    if step:
        return layers - layers // step
    return min(layers, _number(config, "first_k_dense_replace") or (len(only) if isinstance(only, Sequence) else 0))


def _attention(config: Config, shape: Shape, hidden: int, layers: int) -> int:
    """Return the weights of the attention of all layers."""
    if shape.is_latent:
        rank, rope = _number(config, "kv_lora_rank"), _number(config, "qk_rope_head_dim")
        nope, values = _number(config, "qk_nope_head_dim"), _number(config, "v_head_dim")
        query_width, low = shape.queries * (nope + rope), _number(config, "q_lora_rank")
        queries = hidden * low + low * query_width if low else hidden * query_width
        rest = hidden * (rank + rope) + rank * shape.queries * (nope + values) + shape.queries * values * hidden
        return layers * (queries + rest)
    if low := _number(config, "q_lora_rank"):
        return layers * (hidden * low + low * shape.queries * shape.head)
    windowed = shape.windowed * layers // shape.layers if shape.layers else 0
    full = (layers - windowed) * shape.head * (shape.queries + shape.kv_heads)
    width, heads = shape.windowed_width or shape.head, shape.windowed_heads or shape.kv_heads
    return 2 * hidden * (full + windowed * width * (shape.queries + heads))

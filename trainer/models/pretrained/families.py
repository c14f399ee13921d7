"""Families of Hugging Face models: the decoder's shape from config.json, and its tensor names from the files'.

Facts are those of the configuration classes of transformers 5.23 (defaults for absent keys included); tests compare
logits with that package for every family.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from trainer.models.decoder.config import (
    AttentionConfig,
    DecoderConfig,
    FeedForwardConfig,
    NormConfig,
)
from trainer.models.decoder.layers import ACTIVATIONS
from trainer.models.pretrained.refusals import NotBuiltInError, not_built_in, unsupported
from trainer.models.pretrained.rope import rope_config
from trainer.runtime.errors import TrainerError

Raw = Mapping[str, Any]
# Bounds that no network meets: beyond them numbers overflow in torch.
MOST_SIZE, MOST_LAYERS = 2**24, 2**12
SIZES = (
    *("vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"),
    *("num_key_value_heads", "head_dim", "max_position_embeddings", "sliding_window"),
    *("n_embd", "n_layer", "n_head", "n_inner", "n_positions"),
)
# What transformers 5.23 computes, too.
ACTIVATIONS_BY_OWN_CLASS = ("gelu_fast", "quick_gelu", "relu2", "relu6", "mish", "tanh", "sigmoid", "xielu")


def is_built_in(raw: Raw) -> bool:
    """Return whether the built-in decoder computes a model, or refuses it for what is wrong with it.

    Args:
        raw: content of config.json.
    """
    if raw.get("model_type") not in FAMILIES:
        return False
    try:
        decoder_config(raw)
    except NotBuiltInError:
        return False
    except TrainerError:
        return True  # whoever reads it gets the reason
    return True


def decoder_config(raw: Raw) -> DecoderConfig:
    """Return the decoder's shape for the content of config.json.

    Raises:
        TrainerError: RM701 for another family, RM707 for a value that is not implemented or missing.
    """
    family = raw.get("model_type")
    if family not in FAMILIES:
        known = ", ".join(sorted(FAMILIES))
        raise TrainerError("RM701", what=f"model_type {family!r}", where="config.json", why=f"built in: {known}")
    require_dense(raw)
    try:
        return _of_sensible_sizes(FAMILIES[str(family)](raw))
    except KeyError as error:
        what = f"config.json of model_type {family!r} lacks {error.args[0]!r}"
        raise TrainerError("RM707", what=what, next="Add the value, as in the model's original config.json.") from None
    except (TypeError, ValueError, AttributeError, ArithmeticError) as error:
        what = _no_size(raw) or f"config.json has an invalid value: {error}"
        raise TrainerError(
            "RM707", what=what, next="Correct the value, as in the model's original config.json."
        ) from None


def _no_size(raw: Raw) -> str | None:
    """Return the first size that is no whole number of at least 1 as a sentence, None without one."""
    wrong = [(key, raw[key]) for key in SIZES if raw.get(key) is not None]
    wrong = [(key, value) for key, value in wrong if type(value) is not int or value < 1]
    return f"{wrong[0][0]} = {wrong[0][1]!r} is no whole number of at least 1" if wrong else None


def require_dense(raw: Raw) -> None:
    """Raise RM707 for a folder of quantised weights, which the library that wrote them computes."""
    if found := raw.get("quantization_config"):
        how = found.get("quant_method", found) if isinstance(found, dict) else found
        next = "Give a folder of the model in 16 or 32 bits; --adapter qlora quantises it by itself."
        raise TrainerError("RM707", what=f"quantization_config: the weights are quantised ({how})", next=next)


def _of_sensible_sizes(config: DecoderConfig) -> DecoderConfig:
    """Return the shape if its sizes are whole numbers from 1 up to what any network has. Raises TrainerError RM707."""
    heads = config.attention
    sizes: dict[str, Any] = {
        "vocabulary": config.vocabulary,
        "width": config.width,
        "attention heads": heads.heads,
        "key-value heads": heads.kv_heads,
        "width of a head": heads.head_dim,
        "feed-forward width": config.feed_forward.width,
        "table of positions": 1 if config.positions is None else config.positions,
    }
    windows = [("window of attention", window) for window in {*config.windows} - {None}]
    for name, size in [*sizes.items(), *windows]:
        if not isinstance(size, int) or not 1 <= size <= MOST_SIZE:
            raise TrainerError("RM707", what=f"{name}: {size!r} is no whole number from 1 to {MOST_SIZE:,}")
    if config.rope is not None and heads.head_dim % 2:
        raise TrainerError("RM707", what=f"rotary positions need an even width of a head, not {heads.head_dim}")
    return config


def _layers(raw: Raw, key: str = "num_hidden_layers") -> int:
    """Return the number of blocks. Raises TrainerError RM707 for one that no network has."""
    layers = int(raw[key])
    if not 1 <= layers <= MOST_LAYERS:
        raise TrainerError("RM707", what=f"{key} = {layers} is not within 1 to {MOST_LAYERS:,}", where="config.json")
    return layers


def _activation(raw: Raw, key: str, default: str) -> str:
    name = raw.get(key) or default
    if name in ACTIVATIONS_BY_OWN_CLASS:
        raise not_built_in(key, name)
    if name not in ACTIVATIONS:
        raise unsupported(key, name)
    return str(name)


def _heads(raw: Raw, **options: Any) -> AttentionConfig:
    heads = int(raw["num_attention_heads"])
    head_dim = raw.get("head_dim") or options.pop("head_dim", None) or raw["hidden_size"] // heads
    options.pop("head_dim", None)
    kv_heads = raw.get("num_key_value_heads") or options.pop("kv_heads", None) or heads
    options.pop("kv_heads", None)
    if heads % kv_heads:
        raise TrainerError("RM707", what=f"{heads} attention heads cannot share {kv_heads} key-value heads")
    dropout = float(raw.get("attention_dropout") or 0.0)
    return AttentionConfig(heads=heads, kv_heads=int(kv_heads), head_dim=int(head_dim), dropout=dropout, **options)


def _llama_like(raw: Raw, attention: AttentionConfig, windows: tuple[int | None, ...], **options: Any) -> DecoderConfig:
    feed = FeedForwardConfig(
        width=int(raw["intermediate_size"]),
        activation=options.pop("activation", None) or _activation(raw, "hidden_act", "silu"),
        bias=bool(options.pop("mlp_bias", False)),
    )
    kind, default = options.pop("norm", "rms"), options.pop("tied", False)
    tied = raw.get("tie_word_embeddings")
    return DecoderConfig(
        vocabulary=int(raw["vocab_size"]),
        width=int(raw["hidden_size"]),
        windows=windows,
        attention=attention,
        feed_forward=feed,
        norm=NormConfig(kind=kind, epsilon=float(raw.get("rms_norm_eps", 1e-6))),
        rope=rope_config(raw),
        tied=bool(default if tied is None else tied),
        initial_std=float(raw.get("initializer_range", 0.02)),
        **options,
    )


def _everywhere(raw: Raw, window: int | None) -> tuple[int | None, ...]:
    return (window,) * _layers(raw)


def _llama(raw: Raw) -> DecoderConfig:
    bias = bool(raw.get("attention_bias", False))
    attention = _heads(raw, qkv_bias=bias, output_bias=bias)
    return _llama_like(raw, attention, _everywhere(raw, None), mlp_bias=raw.get("mlp_bias", False))


def _mistral(raw: Raw) -> DecoderConfig:
    if raw.get("layer_types"):
        raise not_built_in("layer_types", raw["layer_types"])
    return _llama_like(raw, _heads(raw, kv_heads=8), _everywhere(raw, raw.get("sliding_window", 4096)))


def _qwen2(raw: Raw) -> DecoderConfig:
    return _llama_like(raw, _heads(raw, qkv_bias=True), _qwen_windows(raw))


def _qwen3(raw: Raw) -> DecoderConfig:
    bias = bool(raw.get("attention_bias", False))
    attention = _heads(raw, qkv_bias=bias, output_bias=bias, qk_norm=True, head_dim=128)
    return _llama_like(raw, attention, _qwen_windows(raw))


def _qwen_windows(raw: Raw) -> tuple[int | None, ...]:
    """Return each layer's window: `layer_types` where given, otherwise the layers from `max_window_layers` on."""
    layers = _layers(raw)
    if not raw.get("use_sliding_window", False) or raw.get("sliding_window", 4096) is None:
        return (None,) * layers
    window, first = int(raw.get("sliding_window", 4096)), int(raw.get("max_window_layers", 28))
    kinds = raw.get("layer_types")
    if kinds is None:
        return tuple(window if layer >= first else None for layer in range(layers))
    if len(kinds) != layers or not set(kinds) <= {"full_attention", "sliding_attention"}:
        raise unsupported("layer_types", kinds)
    return tuple(window if kind == "sliding_attention" else None for kind in kinds)


def _gemma(raw: Raw) -> DecoderConfig:
    if raw.get("use_bidirectional_attention"):
        raise unsupported("use_bidirectional_attention", True)
    bias = bool(raw.get("attention_bias", False))
    act = raw.get("hidden_activation") or raw.get("hidden_act") or "gelu_pytorch_tanh"
    # "gelu" stands in Gemma's first releases, which were trained with the approximation.
    act = "gelu_pytorch_tanh" if act == "gelu" else _activation({"act": act}, "act", act)
    scale = float(raw["hidden_size"]) ** 0.5
    attention = _heads(raw, qkv_bias=bias, output_bias=bias, head_dim=256)
    return _llama_like(
        raw,
        attention,
        _everywhere(raw, None),
        activation=act,
        norm="rms_plus_one",
        tied=True,
        embedding_scale=scale,
    )


def _gpt2(raw: Raw) -> DecoderConfig:
    if raw.get("add_cross_attention"):
        raise unsupported("add_cross_attention", True)
    width, heads = int(raw["n_embd"]), int(raw["n_head"])
    if width % heads:
        raise TrainerError("RM707", what=f"n_embd {width} is no multiple of n_head {heads}")
    attention = AttentionConfig(
        heads=heads,
        kv_heads=heads,
        head_dim=width // heads,
        qkv_bias=True,
        output_bias=True,
        fused=True,
        scaled=bool(raw.get("scale_attn_weights", True)),
        scale_by_layer=bool(raw.get("scale_attn_by_inverse_layer_idx", False)),
        dropout=float(raw.get("attn_pdrop", 0.1)),
    )
    activation = _activation(raw, "activation_function", "gelu_new")
    tied = raw.get("tie_word_embeddings")
    return DecoderConfig(
        vocabulary=int(raw["vocab_size"]),
        width=width,
        windows=(None,) * _layers(raw, "n_layer"),
        attention=attention,
        feed_forward=FeedForwardConfig(
            width=int(raw.get("n_inner") or 4 * width), activation=activation, gated=False, bias=True
        ),
        norm=NormConfig(kind="layer", epsilon=float(raw.get("layer_norm_epsilon", 1e-5))),
        rope=None,
        positions=int(raw.get("n_positions", 1024)),
        tied=True if tied is None else bool(tied),
        dropout=float(raw.get("resid_pdrop", 0.1)),
        initial_std=float(raw.get("initializer_range", 0.02)),
    )


FAMILIES: dict[str, Callable[[Raw], DecoderConfig]] = {
    "llama": _llama,
    "mistral": _mistral,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "gemma": _gemma,
    "gpt2": _gpt2,
}

_GPT2_MODULES = (
    (r"model\.embed_tokens", "transformer.wte"),
    (r"model\.embed_positions", "transformer.wpe"),
    (r"model\.norm", "transformer.ln_f"),
    (r"model\.layers\.(\d+)\.input_layernorm", r"transformer.h.\1.ln_1"),
    (r"model\.layers\.(\d+)\.post_attention_layernorm", r"transformer.h.\1.ln_2"),
    (r"model\.layers\.(\d+)\.self_attn\.qkv_proj", r"transformer.h.\1.attn.c_attn"),
    (r"model\.layers\.(\d+)\.self_attn\.o_proj", r"transformer.h.\1.attn.c_proj"),
    (r"model\.layers\.(\d+)\.mlp\.up_proj", r"transformer.h.\1.mlp.c_fc"),
    (r"model\.layers\.(\d+)\.mlp\.down_proj", r"transformer.h.\1.mlp.c_proj"),
)


def file_module(family: str, module: str) -> str:
    """Return the name that Hugging Face files give to a module of the decoder."""
    if family == "gpt2":
        for pattern, name in _GPT2_MODULES:
            if re.fullmatch(pattern, module):
                return re.sub(pattern, name, module)
    return module


def file_tensor(family: str, parameter: str) -> tuple[str, bool]:
    """Return a parameter's name in the files, and whether the file holds it transposed (GPT-2's projections)."""
    module, _, kind = parameter.rpartition(".")
    transposed = family == "gpt2" and kind == "weight" and module.endswith("_proj")
    return f"{file_module(family, module)}.{kind}", transposed


def is_ignored(family: str, name: str) -> bool:
    """Return whether a tensor in the files is a constant of older versions, not a weight."""
    if family == "gpt2":
        return re.search(r"\.attn\.(masked_)?bias$", name) is not None
    return name.endswith("rotary_emb.inv_freq")

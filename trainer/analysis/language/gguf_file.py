"""A model as one GGUF file for llama.cpp: F16 or Q8_0, with tokenizer and chat template, read again and compared."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from trainer.analysis.language.loading import Loaded
from trainer.data.tokens.tokenizer import FILE, ByteTokenizer
from trainer.models.decoder.rope import frequencies
from trainer.models.pretrained.families import decoder_config
from trainer.models.pretrained.folder import file_weights
from trainer.models.pretrained.own_class import OwnClassDecoder
from trainer.runtime.errors import TrainerError
from trainer.storage.output_file import whole

ARCHITECTURES = {"llama": "LLAMA", "mistral": "LLAMA", "qwen2": "QWEN2", "qwen3": "QWEN3"}  # the names there
CONVERT = "Use llama.cpp's own convert_hf_to_gguf.py on the model folder; of an adapter, on what `merge` writes."
# How text is split before merging: expressions of tokenizer.json, and llama.cpp's names (src/llama-vocab.cpp). Under a
# wrong name it would split, and so tokenise, differently without a word.
_SPACES = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
_UPPER, _LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_TEKKEN = rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+|[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*|\p{{N}}"
SPLITS = {
    _WORDS + r"\p{N}{1,3}" + _SPACES: "llama-bpe",
    _WORDS + r"\p{N}" + _SPACES: "qwen2",
    _TEKKEN + _SPACES.replace(r"[\r\n]*", r"[\r\n/]*", 1): "tekken",
}
# llama.cpp loads no BPE tokenizer without a merge (src/llama-vocab.cpp), and each byte a token has none. Bytes 0xFF are
# in no text, so this one is never applied.
NO_MERGE = "ÿ ÿ"
Values = NDArray[Any]


def export(loaded: Loaded, path: Path, *, kind: str) -> dict[str, Any]:
    """Write the model to `path`, read it again, and return how far the values are from the weights.

    Args:
        path: file to write.
        kind: number format of the weights, such as "q8_0".

    Raises:
        TrainerError: RM716 without the package gguf, RM707 and RM705 for what the format cannot hold.
    """
    try:
        import gguf
    except ImportError:
        raise TrainerError("RM716", what="GGUF needs the package gguf, which is not installed") from None
    family = loaded.made.family
    if isinstance(loaded.made.model, OwnClassDecoder) and family in ARCHITECTURES:
        decoder_config(loaded.made.raw)  # raises with the value that is not built in
        raise TrainerError("RM707", what="GGUF of an adapter by peft", next="Write it as one model by `merge` first.")
    if family not in ARCHITECTURES:
        raise TrainerError("RM707", what=f"GGUF of the family {family} is not implemented", next=CONVERT)
    architecture = gguf.MODEL_ARCH[ARCHITECTURES[family]]
    with whole(path) as partial:
        written = _write(loaded, gguf.GGUFWriter(partial, gguf.MODEL_ARCH_NAMES[architecture]), kind)
        errors = compare(partial, written)
    return {"file": str(path), "kind": kind, "tensors": len(written), "bytes": path.stat().st_size} | errors


def _write(loaded: Loaded, writer: Any, kind: str) -> dict[str, tuple[NDArray[Any], str]]:
    """Write the file and return what it holds: each tensor's values and number format by its name.

    Args:
        writer: gguf's writer of an empty file.
        kind: number format of the weights, such as "q8_0".
    """
    import gguf

    family = loaded.made.family
    architecture = gguf.MODEL_ARCH[ARCHITECTURES[family]]
    _describe(writer, loaded)
    _tokenizer(writer, loaded)
    names = gguf.get_tensor_name_map(architecture, loaded.made.model.config.layers)
    written = {}
    for name, values in weights_of(loaded):
        stored = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if stored is None:
            raise TrainerError("RM707", what=f"GGUF of the family {family} has no tensor for {name}")
        written[stored] = (values, _stored_kind(values, kind))
        _add(writer, stored, *written[stored])
    for stored, values in rope_factors(loaded).items():
        written[stored] = (values, "f32")
        _add(writer, stored, *written[stored])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return written


def _describe(writer: Any, loaded: Loaded) -> None:
    """Write the numbers that llama.cpp builds the network from."""
    import gguf

    config, raw = loaded.made.model.config, loaded.made.raw
    attention, rope = config.attention, config.rope
    assert rope is not None
    _require_rope(loaded)
    writer.add_name(loaded.tokenizer.name)
    writer.add_context_length(int(raw.get("max_position_embeddings") or 2048))
    writer.add_embedding_length(config.width)
    writer.add_block_count(config.layers)
    writer.add_feed_forward_length(config.feed_forward.width)
    writer.add_head_count(attention.heads)
    writer.add_head_count_kv(attention.kv_heads)
    writer.add_key_length(attention.head_dim)
    writer.add_value_length(attention.head_dim)
    writer.add_rope_dimension_count(attention.head_dim)
    writer.add_rope_freq_base(rope.theta)
    if rope.kind in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType[rope.kind.upper()])
        writer.add_rope_scaling_factor(rope.factor)
    if rope.kind == "yarn":
        writer.add_rope_scaling_orig_ctx_len(rope.original_length)
    writer.add_layer_norm_rms_eps(config.norm.epsilon)
    writer.add_vocab_size(config.vocabulary)
    if len(set(config.windows)) > 1:
        what = "GGUF with windows of attention in some layers alone is not implemented"
        raise TrainerError("RM707", what=what, next=CONVERT)
    if config.windows[0] is not None:
        writer.add_sliding_window(config.windows[0])


def _require_rope(loaded: Loaded) -> None:
    """Raise RM707 for positions that llama.cpp computes otherwise: it has the usual numbers of YaRN alone."""
    rope = loaded.made.model.config.rope
    assert rope is not None
    usual = (32.0, 1.0, 0.1 * math.log(max(rope.factor, 1.0)) + 1.0, True)
    given = (rope.beta_fast, rope.beta_slow, rope.attention_factor, rope.truncate)
    if rope.kind == "yarn" and any(abs(one - other) > 1e-6 for one, other in zip(given, usual, strict=True)):
        what = f"GGUF with YaRN's numbers {given} is not implemented; the usual are {usual}"
        raise TrainerError("RM707", what=what, next=CONVERT)
    if rope.kind == "llama3" and ARCHITECTURES[loaded.made.family] != "LLAMA":
        what = f"GGUF of the family {loaded.made.family} with rope scaling llama3"
        raise TrainerError("RM707", what=what, next=CONVERT)


def rope_factors(loaded: Loaded) -> dict[str, Values]:
    """Return by what llama3's scaling divides each frequency, as the tensor that llama.cpp reads; none of others."""
    config = loaded.made.model.config
    if config.rope is None or config.rope.kind != "llama3":
        return {}
    plain = frequencies(replace(config.rope, kind="default"), config.attention.head_dim)
    factors = plain / frequencies(config.rope, config.attention.head_dim)
    return {"rope_freqs.weight": factors.numpy().astype(np.float32)}


def split_of(content: dict[str, Any]) -> str:
    """Return llama.cpp's name of how a tokenizer splits text before merging.

    Args:
        content: of tokenizer.json.

    Raises:
        TrainerError: RM705 for a way without a name here.
    """
    given = content.get("pre_tokenizer") or {}
    steps = given.get("pretokenizers", [given])
    kinds = [step.get("type") for step in steps]
    if kinds == ["ByteLevel"] and steps[0].get("use_regex", True):
        return "gpt-2"
    if kinds == ["Digits", "ByteLevel"] and steps[0].get("individual_digits") and steps[1].get("use_regex", True):
        return "smollm"
    pattern = (steps[0].get("pattern") or {}).get("Regex", "")
    if kinds == ["Split", "ByteLevel"] and pattern in SPLITS and not steps[1].get("use_regex", True):
        return SPLITS[pattern]
    known = ", ".join(["gpt-2", "smollm", *SPLITS.values()])
    what = f"how the tokenizer splits text ({', '.join(map(str, kinds))}) is none of those that can be named: {known}"
    raise TrainerError("RM705", what=what, next=CONVERT)


def _tokenizer(writer: Any, loaded: Loaded) -> None:
    """Write the tokens, merges, stop token and chat template.

    Raises:
        TrainerError: RM705 for a tokenizer that is no byte-level BPE.
    """
    import gguf

    content = _tokenizer_json(loaded)
    model = content["model"]
    if model.get("type") != "BPE" or model.get("byte_fallback"):
        raise TrainerError("RM705", what="GGUF is written with byte-level BPE tokenizers only", next=CONVERT)
    size = loaded.made.model.config.vocabulary
    tokens = [f"[PAD{number}]" for number in range(size)]
    kinds = [int(gguf.TokenType.UNUSED)] * size
    for word, number in model["vocab"].items():
        tokens[number], kinds[number] = word, int(gguf.TokenType.NORMAL)
    for number, (word, special) in loaded.tokenizer.added().items():
        kind = gguf.TokenType.CONTROL if special else gguf.TokenType.USER_DEFINED
        tokens[number], kinds[number] = word, int(kind)
    writer.add_tokenizer_model("gpt2")
    is_bytes = isinstance(loaded.tokenizer, ByteTokenizer)  # each byte is a token, however text is split
    writer.add_tokenizer_pre("gpt-2" if is_bytes else split_of(content))
    begins = loaded.tokenizer.begins
    writer.add_add_bos_token(bool(begins))
    if begins:
        writer.add_bos_token_id(begins[0])
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    writer.add_token_merges(merges or [NO_MERGE])
    writer.add_eos_token_id(loaded.tokenizer.stops[0])
    if loaded.template is not None:
        writer.add_chat_template(loaded.template.text)


def _tokenizer_json(loaded: Loaded) -> dict[str, Any]:
    if isinstance(loaded.tokenizer, ByteTokenizer):
        text = loaded.tokenizer.files()[FILE].decode()
    else:
        folder = loaded.made.tokenizer_from or loaded.made.source
        assert folder is not None
        text = (folder / FILE).read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def weights_of(loaded: Loaded) -> Iterator[tuple[str, Values]]:
    """Yield each tensor's name in Hugging Face files and its fp32 values in GGUF's order."""
    attention = loaded.made.model.config.attention
    for name, value in file_weights(loaded.made.model, loaded.made.family).items():
        values = value.float().numpy()
        if ARCHITECTURES[loaded.made.family] == "LLAMA" and ".self_attn." in name:
            heads = {"q_proj": attention.heads, "k_proj": attention.kv_heads}.get(name.split(".")[-2])
            values = values if heads is None else interleaved(values, heads)
        yield name, np.ascontiguousarray(values)


def interleaved(values: Values, heads: int) -> Values:
    """Return rows of (heads * head_dim, …) so that neighbours rotate against each other, as Llama's do in GGUF."""
    halves = values.reshape(heads, 2, values.shape[0] // heads // 2, *values.shape[1:])
    return halves.swapaxes(1, 2).reshape(values.shape)


def _stored_kind(values: Values, kind: str) -> str:
    """Return f32 for vectors, and f16 for matrices whose rows are no whole blocks of 32."""
    if values.ndim < 2:
        return "f32"
    return "f16" if kind == "q8_0" and values.shape[-1] % 32 else kind


def _add(writer: Any, name: str, values: Values, kind: str) -> None:
    import gguf

    if kind == "q8_0":
        quantized = gguf.quants.quantize(values, gguf.GGMLQuantizationType.Q8_0)
        writer.add_tensor(name, quantized, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    else:
        writer.add_tensor(name, values.astype(np.float16 if kind == "f16" else np.float32))


def compare(path: Path, written: dict[str, tuple[Values, str]]) -> dict[str, Any]:
    """Read the file again; return the largest error, in the tensor's largest value.

    Raises:
        TrainerError: RM718 where a tensor is missing or further away than its format's rounding.
    """
    import gguf

    found = {each.name: each for each in gguf.GGUFReader(path).tensors}
    worst = 0.0
    for name, (values, kind) in written.items():
        if name not in found:
            raise TrainerError("RM718", what=f"tensor {name} is not in the file", where=str(path))
        again = gguf.quants.dequantize(found[name].data, found[name].tensor_type).reshape(values.shape)
        largest = max(float(np.abs(values).max()), float(np.finfo(np.float16).tiny))
        error = float(np.abs(again.astype(np.float64) - values).max()) / largest
        if not error <= {"f32": 0.0, "f16": 1e-3, "q8_0": 5e-3}[kind]:
            raise TrainerError("RM718", what=f"{name} is off by {error:.2g} of its largest value", where=str(path))
        worst = max(worst, error)
    return {"largest_error": worst, "torch": torch.__version__}

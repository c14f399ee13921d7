"""A model as one GGUF file for llama.cpp: F16 or Q8_0, with tokenizer and chat template, read again and compared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from trainer.analysis.language.loading import Loaded
from trainer.data.tokens.tokenizer import FILE, ByteTokenizer
from trainer.models.pretrained.folder import file_weights
from trainer.runtime.errors import TrainerError

# The architecture's name there, and how the tokenizer splits text before merging (llama.cpp's names).
ARCHITECTURES = {"llama": ("LLAMA", "llama-bpe"), "mistral": ("LLAMA", "tekken"), "qwen2": ("QWEN2", "qwen2")}
ARCHITECTURES |= {"qwen3": ("QWEN3", "qwen2")}
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
    if family not in ARCHITECTURES:
        raise TrainerError("RM707", what=f"GGUF of the family {family} is not implemented", next="Use Llama or Qwen.")
    architecture = gguf.MODEL_ARCH[ARCHITECTURES[family][0]]
    writer = gguf.GGUFWriter(path, gguf.MODEL_ARCH_NAMES[architecture])
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
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return {"file": str(path), "kind": kind, "tensors": len(written), "bytes": path.stat().st_size} | compare(
        path, written
    )


def _describe(writer: Any, loaded: Loaded) -> None:
    """Write the numbers that llama.cpp builds the network from."""
    import gguf

    config, raw = loaded.made.model.config, loaded.made.raw
    attention, rope = config.attention, config.rope
    assert rope is not None
    if rope.kind not in ("default", "linear"):
        raise TrainerError("RM707", what=f"GGUF with rope scaling {rope.kind} is not implemented")
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
    if rope.kind == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope.factor)
    writer.add_layer_norm_rms_eps(config.norm.epsilon)
    writer.add_vocab_size(config.vocabulary)
    if config.windows[0] is not None:
        writer.add_sliding_window(config.windows[0])


def _tokenizer(writer: Any, loaded: Loaded) -> None:
    """Write the tokens, merges, stop token and chat template.

    Raises:
        TrainerError: RM705 for a tokenizer that is no byte-level BPE.
    """
    import gguf

    content = _tokenizer_json(loaded)
    model = content["model"]
    if model.get("type") != "BPE" or model.get("byte_fallback"):
        raise TrainerError("RM705", what="GGUF is written with byte-level BPE tokenizers only")
    size = loaded.made.model.config.vocabulary
    tokens = [f"[PAD{number}]" for number in range(size)]
    kinds = [int(gguf.TokenType.UNUSED)] * size
    for word, number in model["vocab"].items():
        tokens[number], kinds[number] = word, int(gguf.TokenType.NORMAL)
    for added in content.get("added_tokens") or []:
        kind = gguf.TokenType.CONTROL if added["special"] else gguf.TokenType.USER_DEFINED
        tokens[added["id"]], kinds[added["id"]] = added["content"], int(kind)
    writer.add_tokenizer_model("gpt2")
    is_bytes = isinstance(loaded.tokenizer, ByteTokenizer)
    writer.add_tokenizer_pre("gpt-2" if is_bytes else ARCHITECTURES[loaded.made.family][1])
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
    if merges:
        writer.add_token_merges(merges)
    writer.add_eos_token_id(loaded.tokenizer.stops[0])
    if loaded.template is not None:
        writer.add_chat_template(loaded.template.text)


def _tokenizer_json(loaded: Loaded) -> dict[str, Any]:
    if isinstance(loaded.tokenizer, ByteTokenizer):
        text = loaded.tokenizer.files()[FILE].decode()
    else:
        assert loaded.made.source is not None
        text = (loaded.made.source / FILE).read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def weights_of(loaded: Loaded) -> Iterator[tuple[str, Values]]:
    """Yield each tensor's name in Hugging Face files and its fp32 values in GGUF's order."""
    attention = loaded.made.model.config.attention
    for name, value in file_weights(loaded.made.model, loaded.made.family).items():
        values = value.float().numpy()
        if ARCHITECTURES[loaded.made.family][0] == "LLAMA" and ".self_attn." in name:
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

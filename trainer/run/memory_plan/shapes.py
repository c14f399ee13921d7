"""A planned training as a value, and shapes of known models by name. No weights.

A shape is what a model's config.json holds that decides memory and time.

Sources: pytorch/torchtune@47a9e198 torchtune/models/qwen2_5/_model_builders.py for Qwen 2.5; the others from general
knowledge of the models' config.json, each held by a test against the number of weights published for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.data.tokens.row import sequences_of
from trainer.models.pretrained.families import decoder_config
from trainer.models.pretrained.folder import read_config
from trainer.models.pretrained.shards import read_json
from trainer.runtime.errors import TrainerError, suggestion


@dataclass(frozen=True, kw_only=True)
class Program:
    """A training to plan. `raw` is the content of the model's config.json.

    adapter: none, lora, qlora or peft. method: pretrain, sft, dpo or kto. rows: of a micro-batch; for dpo pairs, for
    kto groups of `group` answers. attention: kernel without and with a mask. fast: whether the faster ways of --fast
    auto are expected, compiler: those that Triton compiles, too. pieces: micro-batches of a step; from two on the
    gradients of earlier ones are there during the next. packed: a row holds several documents. wide_product: the head's
    gradient is summed in fp32 by the product itself. card: the memory is a card's, and not the host's. units: see
    `PlannedAttention`. optimizer: value of --optimizer. shards: cards over which fully_shard spreads weights, gradients
    and optimizer states. targets, dropout: of LoRA, as the settings have them. best: whether a copy of the best weights
    is on the device. peft: of adapter peft, the content of its adapter_config.json.
    """

    raw: Mapping[str, Any]
    adapter: str = "none"
    method: str = "pretrain"
    precision: str = "bf16"
    rows: int = 1
    sequence: int = 1024
    checkpointing: str = "off"
    group: int = 4
    rank: int = 16
    clip_norm: float | None = None
    fast: bool = True
    compiler: bool = True
    pieces: int = 1
    attention: tuple[str, str] = ("flash", "efficient")
    packed: bool = False
    wide_product: bool = False
    card: bool = True
    units: int = 0
    optimizer: str = "adamw"
    shards: int = 1
    targets: Sequence[str] = ("all",)
    dropout: float = 0.0
    best: bool = False
    peft: Mapping[str, Any] | None = None

    @property
    def answers(self) -> int:
        """Sequences that are computed at a time for one row."""
        return sequences_of(self.method, self.group)

    @property
    def tokens(self) -> int:
        """Tokens of a step on a card."""
        return self.rows * self.sequence * self.pieces * self.answers


_QWEN: dict[str, Any] = {
    "model_type": "qwen2",
    "vocab_size": 151936,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32768,
    "rope_theta": 1e6,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": True,
}
_QWEN_LARGE = {**_QWEN, "vocab_size": 152064, "tie_word_embeddings": False}
_QWEN_3: dict[str, Any] = {
    **{**_QWEN, "model_type": "qwen3", "max_position_embeddings": 40960},
    **{"num_key_value_heads": 8, "head_dim": 128},
}
_LLAMA_3: dict[str, Any] = {
    "model_type": "llama",
    "vocab_size": 128256,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
    "rope_theta": 5e5,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
}
_LLAMA_2: dict[str, Any] = {**_LLAMA_3, "vocab_size": 32000, "max_position_embeddings": 4096, "rope_theta": 1e4}
_SMOL: dict[str, Any] = {
    **{**_LLAMA_2, "vocab_size": 49152, "max_position_embeddings": 8192, "rope_theta": 1e5},
    "tie_word_embeddings": True,
}
_GEMMA: dict[str, Any] = {"model_type": "gemma", "vocab_size": 256000, "head_dim": 256, "max_position_embeddings": 8192}


def _of(base: Mapping[str, Any], width: int, inner: int, layers: int, heads: int, **more: Any) -> dict[str, Any]:
    own = {"hidden_size": width, "intermediate_size": inner, "num_hidden_layers": layers, "num_attention_heads": heads}
    return {**base, **own, **more}


SHAPES: dict[str, dict[str, Any]] = {
    "gpt2-124m": {
        **{"model_type": "gpt2", "vocab_size": 50304, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12},
        **{"activation_function": "gelu_new", "attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0},
    },
    "smollm2-135m": _of(_SMOL, 576, 1536, 30, 9, num_key_value_heads=3),
    "smollm2-360m": _of(_SMOL, 960, 2560, 32, 15, num_key_value_heads=5),
    "smollm2-1.7b": _of(_SMOL, 2048, 8192, 24, 32, num_key_value_heads=32),
    "qwen2.5-0.5b": _of(_QWEN, 896, 4864, 24, 14),
    "qwen2.5-1.5b": _of(_QWEN, 1536, 8960, 28, 12),
    "qwen2.5-3b": _of(_QWEN, 2048, 11008, 36, 16),
    "qwen2.5-7b": _of(_QWEN_LARGE, 3584, 18944, 28, 28, num_key_value_heads=4),
    "qwen2.5-14b": _of(_QWEN_LARGE, 5120, 13824, 48, 40, num_key_value_heads=8),
    "qwen2.5-32b": _of(_QWEN_LARGE, 5120, 27648, 64, 40, num_key_value_heads=8),
    "qwen2.5-72b": _of(_QWEN_LARGE, 8192, 29568, 80, 64, num_key_value_heads=8),
    "qwen3-0.6b": _of(_QWEN_3, 1024, 3072, 28, 16),
    "qwen3-1.7b": _of(_QWEN_3, 2048, 6144, 28, 16),
    "qwen3-4b": _of(_QWEN_3, 2560, 9728, 36, 32),
    "qwen3-8b": _of(_QWEN_3, 4096, 12288, 36, 32, tie_word_embeddings=False),
    "qwen3-14b": _of(_QWEN_3, 5120, 17408, 40, 40, tie_word_embeddings=False),
    "qwen3-32b": _of(_QWEN_3, 5120, 25600, 64, 64, tie_word_embeddings=False),
    "llama-3.2-1b": _of(_LLAMA_3, 2048, 8192, 16, 32, tie_word_embeddings=True),
    "llama-3.2-3b": _of(_LLAMA_3, 3072, 8192, 28, 24, tie_word_embeddings=True),
    "llama-3-8b": _of(_LLAMA_3, 4096, 14336, 32, 32, max_position_embeddings=8192),
    "llama-3.1-8b": _of(_LLAMA_3, 4096, 14336, 32, 32),
    "llama-3.1-70b": _of(_LLAMA_3, 8192, 28672, 80, 64),
    "mistral-7b": _of(
        {**_LLAMA_3, "model_type": "mistral", "sliding_window": None, "max_position_embeddings": 32768},
        *(4096, 14336, 32, 32),
        vocab_size=32768,
    ),
    "tinyllama-1.1b": _of(_LLAMA_2, 2048, 5632, 22, 32, num_key_value_heads=4, max_position_embeddings=2048),
    "llama-2-7b": _of(_LLAMA_2, 4096, 11008, 32, 32, num_key_value_heads=32),
    "llama-2-13b": _of(_LLAMA_2, 5120, 13824, 40, 40, num_key_value_heads=40),
    "llama-2-70b": _of(_LLAMA_2, 8192, 28672, 80, 64),
    "gemma-2b": _of(_GEMMA, 2048, 16384, 18, 8, num_key_value_heads=1),
    "gemma-7b": _of(_GEMMA, 3072, 24576, 28, 16, num_key_value_heads=16),
}
# Other names of one shape; what follows a size (-Instruct, -chat, -hf, -v0.3) changes no shape and is left out.
ALSO = {
    "gpt2": "gpt2-124m",
    "llama-3.3-70b": "llama-3.1-70b",
    "llama-3-70b": "llama-3.1-70b",
    "tinyllama": "tinyllama-1.1b",
    **{f"qwen2-{size}": f"qwen2.5-{size}" for size in ("0.5b", "1.5b", "7b", "72b")},
}
_BEHIND_SIZE = re.compile(r"(?<=\d[bm])-(?:instruct|chat|base|hf|it|v\d[\w.]*|intermediate|step)\b.*")


def shape_named(model: str) -> str | None:
    """Return the shape that a model's name on a hub is of, such as Qwen/Qwen2.5-7B-Instruct; None for another."""
    name = model.lower().replace("_", "-").rpartition("/")[2].removeprefix("meta-")
    bare = _BEHIND_SIZE.sub("", name)
    return next((each for each in (name, bare, ALSO.get(name), ALSO.get(bare)) if each in SHAPES), None)


def config_of(model: str) -> dict[str, Any]:
    """Return config.json's content of a shape's name, also as a hub has it, a model folder, or a config.json alone.

    Raises:
        TrainerError: RM736 for what is none of these, RM700 for a folder without config.json, RM707 for a file that
            is no JSON object, or lacks what a network is made of, RM701 for a family that is not built in.
    """
    path = Path(model)
    if model in SHAPES:
        return SHAPES[model]
    if path.is_dir():
        return _checked(read_config(path))
    if path.is_file() and path.suffix == ".json":
        return _checked(read_json(path, code="RM707"))
    if named := shape_named(model):
        return SHAPES[named]
    raise TrainerError("RM736", what=f"no model folder and no shape {model!r}", why=suggestion(model, SHAPES))


def _checked(raw: dict[str, Any]) -> dict[str, Any]:
    """Return config.json's content if a decoder can be made of it."""
    decoder_config(raw)
    return raw

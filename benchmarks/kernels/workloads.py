"""What the trainer has torch.compile compile, as small calls: each runs forward and backward once.

Shapes are those of known models, for block sizes follow from them; weights are random.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainer.data.tokens.labels import IGNORED
from trainer.models.adapters.lora import LoraConfig, add_lora
from trainer.models.decoder.masks import AttentionLayout
from trainer.models.decoder.model import Block, Decoder
from trainer.models.fast import compiled, cross_entropy, elementwise
from trainer.models.fast.adapted import AdaptedBlock
from trainer.models.fast.choose import hold_frozen_weights_in
from trainer.models.mlp import mlp
from trainer.models.pretrained.families import decoder_config
from trainer.models.residual import residual
from trainer.models.transformer import transformer
from trainer.run.memory_plan.shapes import SHAPES

ROWS, TOKENS, VOCABULARY = 1, 512, 50304
GEMMA: dict[str, Any] = {  # norms with weights less 1 and tanh-gelu; 2B by its config.json
    **{"model_type": "gemma", "vocab_size": 256000, "hidden_size": 2048, "intermediate_size": 16384},
    **{"num_hidden_layers": 18, "num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 256},
}
QWEN_3: dict[str, Any] = {  # heads with norms of their own; 0.6B by its config.json
    **{"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 1024, "intermediate_size": 3072},
    **{"num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128},
}
MODELS = {"Qwen 2.5": SHAPES["qwen2.5-0.5b"], "Qwen 3": QWEN_3, "GPT-2": SHAPES["gpt2-124m"], "Gemma": GEMMA}
Work = Callable[[torch.device], None]


def gradients(outputs: Tensor) -> None:
    """Run the backward pass, all gradients of the outputs 1."""
    torch.autograd.backward([outputs], [torch.ones_like(outputs)])


def decoder_of(model: str, device: torch.device) -> Decoder:
    """Return a decoder of one layer and a small vocabulary on the device, otherwise of the model's shape."""
    few = {"n_layer": 1, "num_hidden_layers": 1, "vocab_size": 32000}
    with torch.device(device):
        return Decoder(decoder_config({**MODELS[model], **few}))


def rotation(config: Any, device: torch.device) -> tuple[Tensor, Tensor] | None:
    """Return cosine and sine for ROWS of TOKENS, None for a decoder without rotary positions."""
    if config.rope is None:
        return None
    size = (ROWS, 1, TOKENS, config.attention.head_dim)
    return torch.rand(size, device=device), torch.rand(size, device=device)


def states(config: Any, device: torch.device, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return hidden states (ROWS, TOKENS, width) that need a gradient."""
    return torch.randn(ROWS, TOKENS, config.width, device=device, dtype=dtype).requires_grad_()


def autocast(device: torch.device, dtype: torch.dtype) -> Any:
    """Return what the trainer computes in: autocast for bf16."""
    return torch.autocast(device.type, dtype=dtype, enabled=dtype != torch.float32)


def decoder_block(model: str, dtype: torch.dtype, device: torch.device) -> None:
    """A trained block as `--fast` compiles it: up to attention, and from it on."""
    decoder = decoder_of(model, device)
    layout = AttentionLayout(rows=ROWS, tokens=TOKENS, device=device)
    inputs, turn = states(decoder.config, device, dtype), rotation(decoder.config, device)
    with autocast(device, dtype):
        outputs = compiled.CompiledBlock()(cast(Block, decoder.model.layers[0]), inputs, layout, turn)
    gradients(outputs)


def adapted_block(model: str, device: torch.device) -> None:
    """A block with LoRA adapters over frozen weights in bf16, its elementwise parts compiled."""
    decoder, dtype = decoder_of(model, device), torch.bfloat16
    add_lora(decoder, LoraConfig(rank=16), seed=0)
    hold_frozen_weights_in(decoder.to(device), dtype)
    block, config = cast(Block, decoder.model.layers[0]), decoder.config
    ops = elementwise.compiled(dynamic=False)
    fast = AdaptedBlock(block, config.feed_forward.activation, dtype=dtype, stream=dtype, ops=ops)
    layout = AttentionLayout(rows=ROWS, tokens=TOKENS, device=device)
    gradients(fast(block, states(config, device, dtype), layout, rotation(config, device)))


def loss_chunk(dtype: torch.dtype, device: torch.device) -> None:
    """A chunk of cross entropy over the vocabulary, with its gradient."""
    logits = torch.randn(1024, VOCABULARY, device=device, dtype=dtype)
    labels = torch.randint(VOCABULARY, (1024,), device=device)
    labels[::7] = IGNORED
    cross_entropy._compiled()(logits, labels, torch.rand(1024, device=device))


def attention_math(dtype: torch.dtype, device: torch.device) -> None:
    """Attention without a fused kernel: causal scores, softmax and their gradients."""

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        scores = (query @ key.transpose(-1, -2)) * query.shape[-1] ** -0.5
        causal = torch.ones(TOKENS, TOKENS, dtype=torch.bool, device=device).tril()
        attended: Tensor = scores.masked_fill(~causal, -torch.inf).softmax(-1).to(dtype) @ value
        return attended

    inputs = [torch.randn(ROWS, 8, TOKENS, 64, device=device, dtype=dtype).requires_grad_() for _ in range(3)]
    gradients(torch.compile(attend, dynamic=False)(*inputs))


def whole_decoder(model: str, dtype: torch.dtype, device: torch.device) -> None:
    """`--compile on` over a decoder of one layer and its logits: embeddings, block, the last norm."""
    tokens = torch.randint(32000, (ROWS, TOKENS), device=device)
    with autocast(device, dtype):
        logits = torch.compile(decoder_of(model, device), dynamic=False)(tokens)
        loss = functional.cross_entropy(logits.flatten(0, 1).float(), tokens.flatten())
    gradients(loss)


def rows_network(make: Callable[[], nn.Module], columns: int, dtype: torch.dtype, device: torch.device) -> None:
    """`--compile on` over a network of bars or tables."""
    with torch.device(device):
        model = make()
    inputs = torch.randn(4096, columns, device=device)
    with autocast(device, dtype):
        outputs = torch.compile(model, dynamic=False)(inputs)
    gradients(outputs)


def adamw(device: torch.device) -> None:
    """AdamW over several weights at once, fp32."""
    weights = [
        torch.randn(size, device=device, requires_grad=True) for size in ((896, 4864), (4864,), (896, 896), (7,))
    ]
    for weight in weights:
        weight.grad = torch.randn_like(weight)
    optimizer = torch.optim.AdamW(weights, lr=1e-3, foreach=True, capturable=device.type == "cuda")
    torch.compile(optimizer.step)()


def two_types(work: Callable[..., None], name: str, *arguments: Any) -> dict[str, Work]:
    """Return the workload in fp32 and in bf16."""
    types = {"fp32": torch.float32, "bf16": torch.bfloat16}
    return {f"{name}, {key}": partial(work, *arguments, dtype) for key, dtype in types.items()}


def norms(how: str) -> Callable[[], nn.Module]:
    """Return what makes a network of dense layers with batch or layer norm."""
    return lambda: mlp(64, [512, 256], 3, activation="GELU", norm=how, dropout=0.0)


WORKLOADS: dict[str, Work] = {
    **two_types(decoder_block, "block of Qwen 2.5", "Qwen 2.5"),
    **two_types(decoder_block, "block of GPT-2", "GPT-2"),
    "block of Qwen 3, bf16": partial(decoder_block, "Qwen 3", torch.bfloat16),
    "LoRA over Qwen 2.5, bf16": partial(adapted_block, "Qwen 2.5"),
    "LoRA over GPT-2, bf16": partial(adapted_block, "GPT-2"),
    "LoRA over Gemma, bf16": partial(adapted_block, "Gemma"),
    **two_types(loss_chunk, "cross entropy of a chunk"),
    **two_types(attention_math, "attention without a fused kernel"),
    "decoder of Qwen 2.5, one layer, bf16": partial(whole_decoder, "Qwen 2.5", torch.bfloat16),
    "mlp, layer norm, fp32": partial(rows_network, norms("layer"), 64, torch.float32),
    "mlp, batch norm, fp32": partial(rows_network, norms("batch"), 64, torch.float32),
    "residual, bf16": partial(
        rows_network,
        lambda: residual(64, [256, 256], 3, activation="SiLU", norm="layer", dropout=0.0),
        64,
        torch.bfloat16,
    ),
    "transformer over columns, fp32": partial(
        rows_network,
        lambda: transformer(32, [256, 256], 3, token_width=64, heads=4, activation="GELU"),
        32,
        torch.float32,
    ),
    "AdamW, foreach": adamw,
}

"""The faster ways that `--fast auto` is expected to choose on a card, without the trials that decide there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn

from trainer.device.precision import DTYPES
from trainer.models.decoder.attention import Attention
from trainer.models.decoder.masks import AttentionLayout
from trainer.models.decoder.model import Block, Decoder
from trainer.models.fast import adapted, attention, compiled, cross_entropy, elementwise, feed_forward, own_gelu
from trainer.models.fast.block_trial import MOST
from trainer.models.fast.choose import hold_frozen_weights_in, last_norm
from trainer.models.fast.kernels import own_gated
from trainer.models.language.linear_cross_entropy import Head, softmax_gradient
from trainer.run.memory_plan.compiled import PlannedCompile
from trainer.run.memory_plan.shapes import Program


def use_expected(model: nn.Module, program: Program, compile_: PlannedCompile) -> None:
    """Have the model compute as a card's trials are expected to decide: see `trainer.models.fast.choose`.

    Args:
        model: network with a decoder, changed in place.
    """
    dtype = DTYPES[program.precision]
    if dtype.itemsize == 2:
        hold_frozen_weights_in(model, dtype)
    decoder: Decoder = model.decoder  # type: ignore[assignment]
    _attention(decoder, program)
    tokens = program.rows * program.sequence * program.answers
    own, tile = tokens >= own_gelu.LEAST, feed_forward.tile_of(program.checkpointing)
    _blocks(decoder, dtype, compile_ if program.compiler else None, own=own, tile=tile)
    model.head = _head(decoder, program, dtype)  # type: ignore[assignment]


def _attention(decoder: Decoder, program: Program) -> None:
    windows = decoder.config.windows
    plain = program.attention[0]
    if any(window is not None and window < program.sequence for window in windows) or plain == "math":
        return
    kernel = attention.Kernel(name=plain, grouped=plain == "flash")
    for module in decoder.modules():
        if isinstance(module, Attention):
            module.kernel = kernel


def _blocks(decoder: Decoder, dtype: torch.dtype, compile_: PlannedCompile | None, *, own: bool, tile: int) -> None:
    """Have blocks computed as expected; own: with own kernels of GELU where a layer can have them.

    Args:
        tile: see `feed_forward.FeedForward`.
    """
    blocks = [cast(Block, block) for block in decoder.model.layers]
    activation = decoder.config.feed_forward.activation
    stream = torch.float32 if dtype == torch.float16 else dtype
    ops = elementwise.compiled(compile_=compile_) if compile_ else elementwise.PLAIN
    if compile_ and own_gated.suits(blocks[0].mlp.gated, dtype, tile):
        ops = replace(ops, inner_backward_over=_over)
    make: Callable[[Block], Any] | None = None
    if not {adapted.why_not(block, activation) for block in blocks} - {None}:
        how: dict[str, Any] = {"dtype": dtype, "stream": stream, "tile": tile}
        make = partial(adapted.AdaptedBlock, activation=activation, ops=ops, **how)
    elif compile_ and not any(adapted.is_adapted(block) or compiled.why_not(block) for block in blocks):
        with_own = own and not any(own_gelu.why_not(block, activation, dtype) for block in blocks)
        shared = compiled.CompiledBlock(gelu=_PlannedGelu() if with_own else None, compile_=compile_)
        make = lambda block: shared  # noqa: E731
    decoder.model.stream = stream if dtype.itemsize == 2 else None
    if make is None:
        return
    for block in blocks:
        block.fast = make(block)
    decoder.model.last_norm = partial(last_norm, ops, dtype)


def _over(joint: Tensor, gradient: Tensor, kind: str, gated: bool) -> tuple[Tensor, Tensor]:
    """Hold what own_gated's kernel holds: nothing more."""
    return joint, gradient


class _PlannedGelu:
    """Holds what own_gelu's kernels hold; their partial sums are fp32, a row for 128 tokens."""

    def forward(self, inputs: Tensor) -> Tensor:
        return torch.empty_like(inputs)

    def backward(self, inputs: Tensor, upstream: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        again, gradient = torch.empty_like(inputs), torch.empty_like(inputs)
        sums = inputs.new_empty(-(-len(inputs) // 128), inputs.shape[1], dtype=torch.float32)
        return again, gradient, sums.sum(0)


def _head(decoder: Decoder, program: Program, dtype: torch.dtype) -> Head:
    softmax, chunk = in_place if program.compiler else softmax_gradient, _call(decoder, program, dtype).chunk
    return Head(softmax=softmax, chunk=chunk, wide=program.wide_product, in_place=program.compiler)


def _call(decoder: Decoder, program: Program, dtype: torch.dtype) -> cross_entropy.Call:
    return cross_entropy.Call(
        tokens=program.rows * program.sequence * program.answers,
        vocabulary=decoder.config.vocabulary,
        dtype=dtype,
        device=torch.device("cpu"),
        checkpointing=program.checkpointing,
    )


def in_place(logits: Tensor, labels: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Hold what the Triton kernel holds: losses, and the gradient in the logits' place.

    Args:
        logits: (tokens, vocabulary).
        labels: token ids, (tokens,).
        scale: each token's factor of the gradient, (tokens,).
    """
    return torch.empty(len(logits), dtype=torch.float32, device=logits.device), logits


def trials(decoder: Decoder, program: Program) -> None:
    """Hold what the trials before the first step hold at most: attention by its scores, a block and the loss by torch.

    Where memory runs out there, the way that is tried is refused, and the run goes on.
    """
    dtype, rows = DTYPES[program.precision], program.rows * program.answers
    config, device = decoder.config.attention, torch.device("cpu")
    call = attention.Call(config=config, scale=1.0, rows=rows, tokens=program.sequence, device=device, dtype=dtype)
    _scores(call, timed=program.attention[0] == "math")
    _plain_block(decoder, program, replace(call, rows=rows))
    loss = _call(decoder, program, dtype)
    softmax_gradient(*cross_entropy.drawn(replace(loss, tokens=loss.timed)))


def _scores(call: attention.Call, *, timed: bool) -> None:
    """Hold what attention by math holds where it is compared with fp64, and timed where no other kernel is right."""
    most = attention.MOST_SCORES // (call.config.heads * call.tokens**2)
    call = replace(call, rows=max(1, min(call.rows, most))) if timed else call.small
    query, key, value, upstream = attention.drawn(call)
    leaves = [each.detach().requires_grad_() for each in (query, key, value)]
    grouped = {"enable_gqa": True} if call.config.heads != call.config.kv_heads else {}
    outputs = torch.ops.aten._scaled_dot_product_attention_math(*leaves, None, 0.0, True, scale=1.0, **grouped)[0]
    torch.autograd.grad(outputs, leaves, upstream)


def _plain_block(decoder: Decoder, program: Program, call: attention.Call) -> None:
    """Hold what plain torch holds for a block and its gradients, with which the faster ways are compared."""
    block = cast(Block, decoder.model.layers[0])
    fast, block.fast = block.fast, None
    rows = max(1, min(call.rows, MOST // call.tokens))
    stream = decoder.model.stream or torch.float32
    states = torch.empty(rows, call.tokens, decoder.config.width, dtype=stream, requires_grad=True)
    turn = tuple(torch.empty(rows, 1, call.tokens, call.config.head_dim) for _ in range(2))
    half = call.dtype.itemsize == 2
    try:
        with torch.autocast("cpu", dtype=call.dtype if half else None, enabled=half):
            layout = AttentionLayout(rows=rows, tokens=call.tokens, device=call.device)
            plain: Any = getattr(type(block), "recomputed", type(block))  # a run tries before it computes again
            outputs = plain.forward(block, states, layout, turn if decoder.config.rope is not None else None)
        weights = [weight for weight in block.parameters() if weight.requires_grad]
        torch.autograd.grad(outputs, [states, *weights], torch.empty_like(outputs))
    finally:
        block.fast = fast  # where memory runs out, too

"""Try one way of computing a block: its error against fp64 on few tokens, its time and what it holds on many."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from trainer.device.memory import OutOfMemory
from trainer.models.adapters.lora import LoraLinear
from trainer.models.adapters.nf4 import hold_dense
from trainer.models.decoder.masks import AttentionLayout
from trainer.models.decoder.model import Block
from trainer.models.fast.proof import Trial, judged, relative_error, seconds_of

FEW = 64  # tokens of the comparison with fp64, on the host
MOST = 2**16  # tokens of the timing: fewer would measure launches where training measures arithmetic
SPREAD = 0.05  # of the residual stream's numbers in the comparison: the block's own part then outweighs its input


@dataclass(frozen=True, kw_only=True)
class Request:
    """What training computes: rows of so many tokens at a time, products in `dtype`, under which checkpointing.

    before: the names chosen by an unfinished run, which keeps its bits; empty for a new one. refused: attention kernels
    by name, and "compile" and "triton", that are not to be tried, and why.
    """

    rows: int
    tokens: int
    dtype: torch.dtype
    device: torch.device
    checkpointing: str = "off"
    before: Mapping[str, str] | None = None
    rotated: bool = True
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def stream(self) -> torch.dtype:
        """The dtype of the residual stream: bf16 has the range for it, fp16 has not."""
        return torch.promote_types(self.dtype, torch.float32) if self.dtype == torch.float16 else self.dtype

    def earlier(self, part: str) -> str | None:
        """Return what an unfinished run chose for a part."""
        return None if self.before is None else self.before.get(part)


def examined(
    block: Block, plain: Trial | None, request: Request, exact: list[Tensor] | None = None, *, name: str
) -> Trial:
    """Return the error against fp64 on few tokens and the seconds on many, of the block as it computes now.

    Args:
        plain: plain torch's trial, next to whose error this one's is judged; None for plain torch itself.
        exact: what `exact_results` returned, which takes the host seconds for a large block; None to compute it.
        name: of the way, for the record.
    """
    small = few(request)
    exact = exact or exact_results(block, small)
    with _adapters_drawn(block):
        error = relative_error(_results(block, small), exact)
        judgement = judged(name, error, request.dtype, None if plain is None else plain.error)
        if judgement.refused:
            return judgement
        return replace(judgement, held=_held(block, small), seconds=_time_of_most(block, request))


def timed_again(block: Block, trial: Trial, request: Request) -> Trial:
    """Return the trial of the block as it computes now with the least of its seconds and those of another timing."""
    assert trial.seconds is not None
    with _adapters_drawn(block):
        return replace(trial, seconds=min(trial.seconds, _time_of_most(block, request)))


def few(request: Request) -> Request:
    """Return the request with as many tokens as are compared with fp64."""
    return replace(request, rows=2, tokens=FEW // 2)


@contextmanager
def _adapters_drawn(block: Block) -> Iterator[None]:
    """Have B of the adapters drawn at random within: it begins as 0, and such an adapter would prove nothing."""
    adapters = [module for module in block.modules() if isinstance(module, LoraLinear)]
    before = [module.lora_B.detach().clone() for module in adapters]
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for module in adapters:
            size = module.base.in_features**-0.5
            module.lora_B.copy_(size * torch.randn(module.lora_B.shape, generator=generator))
    try:
        yield
    finally:
        with torch.no_grad():
            for module, weight in zip(adapters, before, strict=True):
                module.lora_B.copy_(weight)


def exact_results(block: Block, request: Request) -> list[Tensor]:
    """Return the results of a copy of the block in fp64 on the host, from the weights as they are but for B."""
    with _adapters_drawn(block):
        twin = _plain_copy(block)
    hold_dense(twin, torch.float64)  # otherwise 4-bit weights are dequantised twice, slowly on the host
    exact = replace(request, dtype=torch.float64, device=torch.device("cpu"))
    return _results(twin, exact, drawn_in=request)


def _plain_copy(block: Block) -> Block:
    kernel = block.self_attn.kernel
    block.self_attn.kernel = None
    try:
        twin = copy.deepcopy(block).cpu().double()
    finally:
        block.self_attn.kernel = kernel
    twin.fast = None
    return twin


def _inputs(block: Block, request: Request, drawn_in: Request) -> tuple[Tensor, Tensor, Any]:
    """Return states, the gradient of the output, and the rotation (None for learned positions)."""
    width, config = block.self_attn.o_proj, block.self_attn.config
    outputs = width.base.out_features if isinstance(width, LoraLinear) else width.out_features
    generator = torch.Generator().manual_seed(0)
    size = (request.rows, request.tokens, outputs)
    states, upstream = (torch.randn(size, generator=generator).to(drawn_in.stream) for _ in range(2))
    if not request.rotated:
        return (states * SPREAD).to(request.device), upstream.to(request.device), None
    angles = torch.rand(request.rows, 1, request.tokens, config.head_dim // 2, generator=generator) * 6.28
    doubled = torch.cat([angles, angles], dim=-1)
    wide = torch.float64 if request.dtype == torch.float64 else torch.float32
    turn = tuple(each.to(request.device, wide) for each in (doubled.cos(), doubled.sin()))
    return (states * SPREAD).to(request.device), upstream.to(request.device), turn


def _results(block: Block, request: Request, *, drawn_in: Request | None = None) -> list[Tensor]:
    """Return output, gradient of the input and of each trained weight in order."""
    states, upstream, turn = _inputs(block, request, drawn_in or request)
    if request.dtype == torch.float64:
        states, upstream = states.double(), upstream.double()
    leaf = states.detach().requires_grad_()
    output = _forward(block, leaf, request, turn)
    weights = [weight for weight in block.parameters() if weight.requires_grad]
    return [output.detach(), *torch.autograd.grad(output, [leaf, *weights], upstream.to(output.dtype))]


def _held(block: Block, request: Request) -> int | None:
    """Return the bytes that a forward pass leaves for backward, its output included; None where none are counted."""
    if request.device.type != "cuda":
        return None
    states, _, turn = _inputs(block, request, request)
    leaf = states.detach().requires_grad_()
    before = torch.cuda.memory_allocated(request.device)
    output = _forward(block, leaf, request, turn)
    held: int = torch.cuda.memory_allocated(request.device) - before
    del output
    return held


def _forward(block: Block, states: Tensor, request: Request, turn: Any) -> Tensor:
    layout = AttentionLayout(rows=request.rows, tokens=request.tokens, device=request.device)
    half = request.dtype.itemsize == 2
    with torch.autocast(request.device.type, dtype=request.dtype if half else None, enabled=half):
        output: Tensor = block(states, layout, turn)
    return output


def _time_of_most(block: Block, request: Request) -> float:
    """Return the seconds of a forward and backward over a micro-batch, of fewer rows where memory runs out."""
    rows = max(1, min(request.rows, MOST // request.tokens))
    while True:
        try:
            return _time(block, replace(request, rows=rows)) * request.rows / rows
        except OutOfMemory:
            if rows == 1:
                raise
            rows //= 2
            torch.cuda.empty_cache()


def _time(block: Block, request: Request) -> float:
    states, upstream, turn = _inputs(block, request, request)
    leaf = states.detach().requires_grad_()
    weights = [weight for weight in block.parameters() if weight.requires_grad]

    def work() -> None:
        output = _forward(block, leaf, request, turn)
        torch.autograd.grad(output, [leaf, *weights], upstream.to(output.dtype))

    return seconds_of(work, request.device)

"""Benchmark `transformer`: the time of one transformer block, forward and backward, without an optimizer.

The block is torch's own encoder layer, norms first, no dropout. Its result on the first sequence is compared with
fp64, and its gradients must be finite.
"""

from __future__ import annotations

import copy
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainer.diagnostics.bench import timing
from trainer.diagnostics.probes import entry, numerics, placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.verdict import Check, Device, Number, Verdict, at_most, conclude, equal

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True)
class Block:
    """A block and its input (batch, length, width). `limit` is the relative error allowed."""

    precision: str
    batch: int
    length: int
    width: int
    heads: int
    limit: float

    @property
    def name(self) -> str:
        """The format and the input's shape."""
        return f"{self.precision} {self.batch}x{self.length}x{self.width}"


SMALL = Block(precision="fp32", batch=4, length=128, width=512, heads=8, limit=1e-4)
LARGE = Block(precision="bf16", batch=8, length=1024, width=1024, heads=16, limit=3e-2)


def measure(request: Request) -> Verdict:
    """Time the small block, and on a card a large one in bf16 as well.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    device = placement.place(request.expect)
    numerics.strict_fp32()
    blocks = (SMALL,) if device.kind == "cpu" else (SMALL, LARGE)
    checks: list[Check] = []
    numbers: list[Number] = []
    for block in blocks:
        found = stepped(block, device, request.seconds / len(blocks))
        checks, numbers = [*checks, *found[0]], [*numbers, *found[1]]
    return conclude(
        probe="transformer",
        summary=f"A block stepped forward and backward {timing.place_text(device)}.",
        checks=checks,
        numbers=numbers,
        device=device,
        versions=placement.versions(),
    )


def stepped(block: Block, device: Device, share: float) -> tuple[list[Check], list[Number]]:
    """Check one block, and time its step.

    Args:
        share: measuring time in seconds.
    """
    import torch

    torch.manual_seed(0)
    layer = block_module(block).to(device.torch_type)
    inputs = torch.randn(block.batch, block.length, block.width, device=device.torch_type, requires_grad=True)

    def step() -> None:
        torch.autograd.backward(forward(layer, inputs, block, device).square().mean())

    taken = timing.samples(step, device.torch_type, share)
    gradients = [weight.grad for weight in layer.parameters()]
    broken = sum(each is None or not bool(each.isfinite().all()) for each in gradients)
    checks = [
        at_most(f"{block.name}, forward", error_of(layer, inputs.detach(), block, device), block.limit, "rel. error"),
        equal(f"{block.name}, gradients", broken, 0, "missing or not finite"),
    ]
    return checks, timing.milliseconds(f"{block.name} forward and backward", taken)


def block_module(block: Block) -> Any:
    """Return the layer, its weights from torch's generator."""
    import torch

    return torch.nn.TransformerEncoderLayer(
        block.width, block.heads, 4 * block.width, dropout=0.0, batch_first=True, norm_first=True
    )


def forward(layer: Any, inputs: torch.Tensor, block: Block, device: Device) -> torch.Tensor:
    """Return the block's result in fp32 or, under autocast, in bf16.

    Args:
        layer: the transformer layer.
        inputs: shape (batch, tokens, width).
    """
    import torch

    with torch.autocast(device.torch_type, dtype=torch.bfloat16, enabled=block.precision == "bf16"):
        result: torch.Tensor = layer(inputs)
    return result


def error_of(layer: Any, inputs: torch.Tensor, block: Block, device: Device) -> float:
    """Return the relative error of the first sequence's result against the same layer in fp64.

    Args:
        layer: the transformer layer.
        inputs: shape (batch, tokens, width).
    """
    import torch

    with torch.no_grad():
        exact = copy.deepcopy(layer).double()(inputs[:1].double())
    return numerics.relative_error(forward(layer, inputs[:1], block, device), exact.cpu())


if __name__ == "__main__":
    sys.exit(entry.main("transformer", measure))

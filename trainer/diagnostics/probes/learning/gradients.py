"""Probe `gradients`: the gradients of what training uses are right, and a small network learns as on the CPU.

A build may compute every product right and train to NaN all the same, because kernels of the backward pass are wrong
(unslothai/unsloth PR #8412, on gfx1033). So each operator's gradient in fp64 is compared with difference quotients of
the operator itself, and sixty steps in fp32 with the CPU's in fp64.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from trainer.diagnostics.probes import entry, numerics, placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.learning import loss_curve
from trainer.diagnostics.probes.learning.operators import Operator, operators
from trainer.diagnostics.probes.verdict import Check, Number, Verdict, at_most, conclude

if TYPE_CHECKING:
    import torch

STEP = 1e-5  # of the difference quotient: its error is about STEP squared, and rounding adds 1e-16 / STEP
# `python -m trainer smoke --probe gradients --expect cpu` on an x86-64 CPU, 2026-11-22: gradients were off by 9.1e-11
# at most over two seeds, the curve by 0.6 to 1.0e-7 of the first loss over three.
LIMIT = 1e-6  # relative
CURVE_LIMIT = 1e-3  # of the first loss
FALL = 0.5  # of the first loss that has to be gone at the end: a network that learns nothing shows nothing


def measure(request: Request) -> Verdict:
    """Compare the gradients of each operator, then the loss curve, on the device asked for."""
    import torch

    device, seed = placement.place(request.expect), numerics.fresh_seed()
    numerics.strict_fp32()
    errors = {each.name: gradient_error(each, device.torch_type, seed) for each in operators(device.torch_type)}
    found = loss_curve.losses(device.torch_type, torch.float32, seed)
    reference = loss_curve.losses("cpu", torch.float64, seed)
    largest = numerics.worst(errors.values())
    worst = next(name for name, error in errors.items() if error is largest)
    return conclude(
        probe="gradients",
        summary=f"{len(errors)} operators have the gradients of their difference quotients; the network learns.",
        checks=[*(_check(name, error) for name, error in errors.items()), *curve_checks(found, reference)],
        numbers=[
            Number(name="seed", value=seed, unit=""),
            Number(name=f"worst gradient: {worst}", value=errors[worst], unit="relative error"),
            Number(name="last loss", value=found[-1], unit=""),
        ],
        device=device,
        versions=placement.versions(),
    )


def _check(name: str, error: float) -> Check:
    return at_most(f"gradient of {name}", error, LIMIT, "relative error to difference quotients, fp64")


def curve_checks(found: list[float], reference: list[float]) -> list[Check]:
    """Return the checks of the loss curve: it is the reference's, and it fell.

    Args:
        found: losses on the device, in fp32.
        reference: losses on the CPU, in fp64.
    """
    gap = loss_curve.largest_gap(found, reference)
    return [
        at_most("loss curve of 60 steps", gap, CURVE_LIMIT, "largest difference to fp64 on the CPU, of the first loss"),
        at_most("loss after 60 steps", found[-1] / reference[0], FALL, "of the first loss"),
    ]


def gradient_error(operator: Operator, device: str, seed: int) -> float:
    """Return the relative error of an operator's gradients to central differences, in fp64 on `device`.

    The operator's result is weighed by a random tensor, so that each gradient is of one number.

    Args:
        operator: function with the shapes of its inputs.
        device: device of torch, such as "cuda" or "cpu".
        seed: seed of inputs and weights.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    inputs = [_draw(shape, generator, positive=operator.positive).to(device) for shape in operator.shapes]
    for tensor in inputs:
        tensor.requires_grad_()
    result = operator.function(*inputs)
    weights = torch.randn(result.shape, generator=generator, dtype=torch.float64).to(device)
    gradients = torch.autograd.grad((result * weights).sum(), inputs)
    with torch.no_grad():
        quotients = [_quotients(operator, inputs, place, weights) for place in range(len(inputs))]
    found = torch.cat([gradient.flatten() for gradient in gradients])
    return numerics.relative_error(found, torch.cat(quotients).cpu())


def _quotients(operator: Operator, inputs: list[torch.Tensor], place: int, weights: torch.Tensor) -> torch.Tensor:
    """Return the central difference of each element of one input, flat."""
    import torch

    flat = inputs[place].detach().view(-1)
    found = []
    for element in range(flat.numel()):
        kept = flat[element].clone()
        ends = []
        for step in (STEP, -STEP):
            flat[element] = kept + step
            ends.append((operator.function(*inputs) * weights).sum())
        flat[element] = kept
        found.append((ends[0] - ends[1]) / (2 * STEP))
    return torch.stack(found)


def _draw(shape: tuple[int, ...], generator: torch.Generator, *, positive: bool) -> torch.Tensor:
    """Return fp64 numbers of a random order, one in each of equal parts of (-1.5, 1.5), and none near the kink at 0."""
    import torch

    count = int(torch.Size(shape).numel())
    place = torch.rand(count, generator=generator, dtype=torch.float64) * 0.5 + 0.25
    spread = (torch.randperm(count, generator=generator) + place) / count
    centred = (spread - 0.5) * 3
    moved = 0.5 + spread if positive else centred + torch.where(centred < 0, -0.013, 0.013)
    return moved.view(shape)


if __name__ == "__main__":
    sys.exit(entry.main("gradients", measure))

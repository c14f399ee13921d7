"""Probe `compile`: a compiled model trains like an eager one, over several steps, and how much faster it is.

A hang of the compiler is a verdict by the runner's time limit. Without a compiler for C there is nothing to
prove: on a card torch's generated kernels are launched by code that it compiles, on the CPU they are C++.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.diagnostics.probes import entry, numerics, placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.verdict import Check, Device, Number, Verdict, absent, at_least, at_most, conclude

if TYPE_CHECKING:
    import torch

STEPS = 6
TIMED_STEPS = 20
CACHE = "TORCHINDUCTOR_CACHE_DIR"
C_COMPILERS = {"cpu": ("CXX", ("g++", "clang++", "c++")), "card": ("CC", ("gcc", "clang"))}
WEIGHT_LIMIT = 1e-4  # relative, after STEPS steps in fp32; fused kernels sum in another order
MOVED_LIMIT = 1e-3  # relative; weights that hardly moved would prove nothing


@dataclass(frozen=True, kw_only=True)
class Trained:
    """Result of STEPS steps: weights and losses, and the seconds of the first and of a later step."""

    weights: torch.Tensor
    losses: list[float]
    first_s: float
    step_s: float


def measure(request: Request) -> Verdict:
    """Train twice from the same weights, eager and compiled.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    device = placement.place(request.expect)
    if reason := why_not(device):
        return absent(probe="compile", reason=reason, device=device, versions=placement.versions())
    seed = numerics.fresh_seed()
    numerics.strict_fp32()
    with tempfile.TemporaryDirectory(dir=os.environ.get(CACHE) or None) as folder:
        os.environ[CACHE] = folder  # so that nothing compiled earlier stands in for what is compiled now
        eager, fused = train(device, seed, compiled=False), train(device, seed, compiled=True)
        graphs = compiled_graphs()
    return conclude(
        probe="compile",
        summary=f"{STEPS} compiled steps on {device.name} gave the weights of eager ones.",
        checks=checks(eager, fused, graphs, start(seed)),
        numbers=[Number(name="seed", value=seed, unit=""), *numbers(eager, fused)],
        device=device,
        versions=placement.versions() | triton_version(),
    )


def why_not(device: Device) -> str:
    """Return why nothing can be compiled here, in a sentence; empty if it can."""
    variable, names = C_COMPILERS["cpu" if device.kind == "cpu" else "card"]
    chosen = os.environ.get(variable)
    if not any(map(shutil.which, [chosen] if chosen else names)):
        looked = f"{variable}={chosen}" if chosen else ", ".join(names)
        return f"torch.compile was not tried: no compiler for its generated code here ({looked})."
    import torch
    from torch._dynamo.eval_frame import is_dynamo_supported

    if not is_dynamo_supported():
        return f"torch.compile was not tried: torch {torch.__version__} has none for this Python."
    return "" if device.kind == "cpu" else refused_by_triton(device)


def refused_by_triton(device: Device) -> str:
    """Return why Triton compiles no kernel for this card, in a sentence; empty if it compiles the trainer's own.

    It has no code generator for some architectures, gfx906 with most of its releases (triton-lang/triton#8992): a card
    is not at fault then. An image whose Triton has one promises this probe, and fails by the same sentence.
    """
    if importlib.util.find_spec("triton") is None:
        return ""
    from trainer.models.fast.kernels import triton_softmax

    try:
        triton_softmax.compile_only(device.torch_type)
    except Exception as error:  # Triton raises what its compiler raises
        why = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no reason'}"
        version = triton_version()["triton"]
        return f"torch.compile was not tried: Triton {version} compiles no kernel for {device.arch} ({why})."
    return ""


def triton_version() -> dict[str, str]:
    """Return Triton's version, where it is installed."""
    if importlib.util.find_spec("triton") is None:
        return {}
    return {"triton": str(importlib.import_module("triton").__version__)}


def model(seed: int) -> torch.nn.Module:
    """Return a network with what compilers fuse: products, a norm, an activation."""
    import torch

    torch.manual_seed(seed)
    layers = torch.nn.Linear(64, 128), torch.nn.LayerNorm(128), torch.nn.GELU(), torch.nn.Linear(128, 8)
    return torch.nn.Sequential(*layers)


def start(seed: int) -> torch.Tensor:
    """Return the weights that both begin with."""
    return weights(model(seed))


def weights(network: torch.nn.Module) -> torch.Tensor:
    """Return all weights in one dimension, on the CPU."""
    import torch

    return torch.nn.utils.parameters_to_vector(network.parameters()).detach().cpu().clone()


def train(device: Device, seed: int, *, compiled: bool) -> Trained:
    """Train for STEPS steps from the same weights on the same batches, then time further ones.

    Args:
        seed: seed of weights and batches.
        compiled: train the compiled model.
    """
    import torch

    network = model(seed).to(device.torch_type)
    forward = compile_model(network) if compiled else network
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    batches = draw(seed, device)
    begun = time.monotonic()
    losses = [step(forward, optimizer, batches[0])]
    first = time.monotonic() - begun
    losses += [step(forward, optimizer, batch) for batch in batches[1:STEPS]]
    after = weights(network)
    each = numerics.best_seconds(lambda: step(forward, optimizer, batches[0]), device.torch_type, TIMED_STEPS)
    return Trained(weights=after, losses=losses, first_s=first, step_s=each)


def compile_model(network: torch.nn.Module) -> torch.nn.Module:
    """Return the network, to be compiled at its first call, as one graph."""
    import torch

    return torch.compile(network, fullgraph=True)  # type: ignore[return-value]


def draw(seed: int, device: Device) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Return a batch for each step: x (batch, 64), y (batch, 8)."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    pairs = [
        (torch.randn(256, 64, generator=generator), torch.randn(256, 8, generator=generator)) for _ in range(STEPS)
    ]
    return [(x.to(device.torch_type), y.to(device.torch_type)) for x, y in pairs]


def step(forward: torch.nn.Module, optimizer: torch.optim.Optimizer, batch: tuple[torch.Tensor, torch.Tensor]) -> float:
    """Take one step; return its loss.

    Args:
        forward: the model, possibly compiled.
        optimizer: optimizer of its weights.
        batch: inputs and targets.
    """
    import torch

    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(forward(batch[0]), batch[1])
    torch.autograd.backward(loss)
    optimizer.step()
    return float(loss.detach())


def compiled_graphs() -> int:
    """Return how many graphs torch has compiled in this process."""
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"])


def checks(eager: Trained, fused: Trained, graphs: int, begin: torch.Tensor) -> list[Check]:
    """Check that something was compiled, the weights moved, and they and the losses agree.

    Args:
        graphs: number of graphs that were compiled.
        begin: weights before training, flattened.
    """
    losses = numerics.worst(abs(a - b) / abs(a) for a, b in zip(eager.losses, fused.losses, strict=True))
    error = numerics.relative_error(fused.weights, eager.weights.double())
    moved = numerics.relative_error(eager.weights, begin.double())
    return [
        at_least("graphs compiled", graphs, 1, "graphs"),
        at_least("weights moved", moved, MOVED_LIMIT, "relative change"),
        at_most("weights against eager", error, WEIGHT_LIMIT, "relative Frobenius error"),
        at_most("losses against eager", losses, WEIGHT_LIMIT, "relative difference"),
    ]


def numbers(eager: Trained, fused: Trained) -> list[Number]:
    """Return the time to compile, times of a step, and the gain."""
    return [
        Number(name="first compiled step", value=round(fused.first_s, 3), unit="s"),
        Number(name="eager step", value=round(1e6 * eager.step_s, 1), unit="µs"),
        Number(name="compiled step", value=round(1e6 * fused.step_s, 1), unit="µs"),
        Number(name="gain", value=round(eager.step_s / fused.step_s, 3), unit="eager time / compiled time"),
    ]


if __name__ == "__main__":
    sys.exit(entry.main("compile", measure))

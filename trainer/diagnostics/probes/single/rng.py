"""Probe `rng`: the same seed gives the same numbers, a state can be restored, and training repeats its bits."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from trainer.device.compiler_import import avoid_compiler_import
from trainer.diagnostics.probes import entry, numerics, placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.verdict import Check, Device, Number, Verdict, at_least, at_most, conclude

if TYPE_CHECKING:
    import torch

COUNT = 1 << 16
SIGMAS = 6.0  # a mean this far off is no chance: 2 in 10^9
STEPS = 5
DROPPED = 0.3


def measure(request: Request) -> Verdict:
    """Draw, go back, draw again; then train twice.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what torch demands for repeatable products
    device, seed = placement.place(request.expect), numerics.fresh_seed()
    return conclude(
        probe="rng",
        summary=f"Numbers, dropout and {STEPS} training steps repeat to the bit on {device.name}.",
        checks=[
            *seed_checks(device, seed),
            *replay_checks(device, seed),
            *shape_checks(device, seed),
            training_check(device, seed),
        ],
        numbers=[Number(name="seed", value=seed, unit=""), Number(name="drawn", value=COUNT, unit="numbers")],
        device=device,
        versions=placement.versions(),
    )


Draw = Callable[["torch.Generator | None", str], "torch.Tensor"]


def normal(generator: torch.Generator | None, where: str) -> torch.Tensor:
    """Return COUNT numbers of the normal distribution."""
    import torch

    return torch.randn(COUNT, generator=generator, device=where)


def uniform(generator: torch.Generator | None, where: str) -> torch.Tensor:
    """Return COUNT numbers of [0, 1)."""
    import torch

    return torch.rand(COUNT, generator=generator, device=where)


def dropout(generator: torch.Generator | None, where: str) -> torch.Tensor:
    """Return COUNT ones, some dropped; takes the default generator only."""
    import torch

    return torch.nn.functional.dropout(torch.ones(COUNT, device=where), DROPPED)


DRAWS: dict[str, Draw] = {"normal": normal, "uniform": uniform, "dropout": dropout}


def seed_checks(device: Device, seed: int) -> list[Check]:
    """Check that the same seed repeats every bit, and that another one does not."""
    checks = []
    for name, draw in DRAWS.items():
        first, again, other = (seeded(draw, device, each) for each in (seed, seed, seed + 1))
        differ = numerics.bits_changed(first, other)
        checks += [
            at_most(f"{name} by the same seed", numerics.bits_changed(first, again), 0, "numbers that differ"),
            at_least(f"{name} by another seed", differ, COUNT // 10, "numbers that differ"),
        ]
    return checks


def seeded(draw: Draw, device: Device, seed: int) -> torch.Tensor:
    """Return what is drawn after the default generators were seeded.

    Args:
        draw: draws a tensor on a device.
        seed: seed of the default generators.
    """
    import torch

    torch.manual_seed(seed)
    return draw(None, device.torch_type).cpu()


def replay_checks(device: Device, seed: int) -> list[Check]:
    """Check that a saved state repeats what was drawn after it, for the default and an own generator."""
    import torch

    own = torch.Generator(device=device.torch_type).manual_seed(seed)
    get, put = default_state(device)
    checks = []
    for name, draw in DRAWS.items():
        draw(None, device.torch_type)  # so that the state is not that of a fresh seed
        state = get()
        first = draw(None, device.torch_type).cpu()
        put(state)
        again = draw(None, device.torch_type).cpu()
        checks.append(at_most(f"{name} from a saved state", numerics.bits_changed(first, again), 0, "that differ"))
    normal(own, device.torch_type)
    saved = own.get_state()
    first = normal(own, device.torch_type).cpu()
    own.set_state(saved)
    again = normal(own, device.torch_type).cpu()
    return [*checks, at_most("own generator from a saved state", numerics.bits_changed(first, again), 0, "that differ")]


def default_state(device: Device) -> tuple[Callable[[], torch.Tensor], Callable[[torch.Tensor], None]]:
    """Return how the default generator's state of this kind of device is read and set."""
    import torch

    if device.kind == "cpu":
        return torch.get_rng_state, torch.set_rng_state
    return torch.cuda.get_rng_state, torch.cuda.set_rng_state


def shape_checks(device: Device, seed: int) -> list[Check]:
    """Check that the numbers are those of the distribution: moments, range, no run that repeats, no neighbours alike.

    Each moment may be off by SIGMAS of its own deviation over COUNT numbers, which stands next to it.
    """
    a, b, kept = (seeded(draw, device, seed).double() for draw in DRAWS.values())
    return [
        *moment_checks("normal", a, mean=0.0, variance=1.0, fourth=3.0, deviations=(1.0, math.sqrt(2), math.sqrt(24))),
        *moment_checks("uniform", b, mean=0.5, variance=1 / 12, fourth=1.8, deviations=UNIFORM_DEVIATIONS),
        at_least("uniform least", float(b.min()), 0.0, ""),
        at_most("uniform largest", float(b.max()), math.nextafter(1.0, 0.0), ""),
        *dropout_checks(kept),
    ]


# of mean, variance and standardized fourth moment of numbers of [0, 1); the third is 1.144 over 1,500 draws of COUNT
UNIFORM_DEVIATIONS = (1 / math.sqrt(12), math.sqrt(1 / 180), 1.15)


def moment_checks(
    name: str, drawn: torch.Tensor, *, mean: float, variance: float, fourth: float, deviations: tuple[float, ...]
) -> list[Check]:
    """Check mean, variance, fourth moment of the standardized numbers, correlation of neighbours, and repetitions.

    Args:
        name: name of the distribution.
        drawn: numbers, shape (COUNT,), fp64.
        mean: mean of the distribution.
        variance: variance of the distribution.
        fourth: its fourth moment once it is standardized.
        deviations: standard deviations of these three, times the root of COUNT.
    """
    error = 1 / math.sqrt(COUNT)
    standard = (drawn - drawn.mean()) / drawn.std().clamp(min=1e-30)
    alike = float((standard[1:] * standard[:-1]).mean())
    repeats = COUNT - int(drawn.unique().numel())
    limits = [SIGMAS * each * error for each in deviations]
    return [
        at_most(f"{name} mean", abs(float(drawn.mean()) - mean), limits[0], f"off {mean:g}"),
        at_most(f"{name} variance", abs(float(drawn.var()) - variance), limits[1], f"off {variance:g}"),
        at_most(f"{name} fourth moment", abs(float(standard.pow(4).mean()) - fourth), limits[2], f"off {fourth:g}"),
        at_most(f"{name} neighbours", abs(alike), SIGMAS * error, "correlation"),
        at_most(f"{name} repeats", repeats, COUNT // 50, "numbers that came before"),
    ]


def dropout_checks(kept: torch.Tensor) -> list[Check]:
    """Check the mean after dropout, the share that is dropped, and that neighbours are dropped apart.

    Args:
        kept: what dropout left of ones, shape (COUNT,), fp64.
    """
    error = 1 / math.sqrt(COUNT)
    dropped = (kept == 0).double()
    pairs = float((dropped[1:] * dropped[:-1]).mean())
    # of two neighbours both dropped; each number is in two pairs
    of_pairs = math.sqrt(DROPPED**2 * (1 - DROPPED**2) + 2 * (DROPPED**3 - DROPPED**4))
    of_share, of_mean = math.sqrt(DROPPED * (1 - DROPPED)), math.sqrt(DROPPED / (1 - DROPPED))
    return [
        at_most("dropout mean", abs(float(kept.mean()) - 1), SIGMAS * of_mean * error, "off 1"),
        at_most("dropout share", abs(float(dropped.mean()) - DROPPED), SIGMAS * of_share * error, f"off {DROPPED:g}"),
        at_most("dropout neighbours", abs(pairs - DROPPED**2), SIGMAS * of_pairs * error, "of pairs, off its share"),
    ]


def training_check(device: Device, seed: int) -> Check:
    """Check that two trainings by torch's deterministic algorithms end in the same weights."""
    import torch

    torch.use_deterministic_algorithms(True)
    first, again = trained(device, seed), trained(device, seed)
    return at_most("training repeats", numerics.bits_changed(first, again), 0, "weights that differ")


def trained(device: Device, seed: int) -> torch.Tensor:
    """Return the weights after STEPS steps with dropout, on the CPU."""
    import torch

    torch.manual_seed(seed)
    layers = torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Dropout(DROPPED), torch.nn.Linear(64, 4)
    network = torch.nn.Sequential(*layers).to(device.torch_type)
    avoid_compiler_import()
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2)
    for _ in range(STEPS):
        x = torch.randn(128, 32, device=device.torch_type)
        optimizer.zero_grad()
        torch.autograd.backward(network(x).square().mean())
        optimizer.step()
    return torch.nn.utils.parameters_to_vector(network.parameters()).detach().cpu()


if __name__ == "__main__":
    sys.exit(entry.main("rng", measure))

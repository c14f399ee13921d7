"""Choice of a run's device, with the reason; seeds, threads and determinism. One path for CPU, CUDA and ROCm."""

from __future__ import annotations

import os
import platform
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from trainer.device.rng import seed_all
from trainer.runtime.errors import TrainerError

# Deterministic BLAS must be asked for before a device's first matrix product.
DETERMINISTIC_ENVIRONMENT = {
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",  # torch refuses deterministic mode on CUDA without it; ROCm reads it too
    "ROCBLAS_DEFAULT_ATOMICS_MODE": "0",  # rocBLAS adds with atomics, in any order, unless it is switched off
}
INDUCTOR_SWITCH = "TORCHINDUCTOR_DETERMINISTIC"


@dataclass(frozen=True, kw_only=True)
class Accelerator:
    """The chosen device. `arch` is the gfx name on ROCm, sm_NN on CUDA, machine and vector set on CPU."""

    device: str
    kind: str
    name: str
    arch: str
    memory_bytes: int
    reason: str = ""


def choose(requested: str) -> Accelerator:
    """Return the device for `auto`, `cpu`, `cuda` or `cuda:N`; torch calls ROCm cards cuda as well.

    `auto` takes the card with most memory that computes, else the CPU.

    Raises:
        TrainerError: RM520, naming the devices that exist, where the one asked for does not or fails.
    """
    cards = [_card(index) for index in range(torch.cuda.device_count())]
    return _automatic(cards) if requested == "auto" else _named(requested, cards)


def alike_cards(chosen: Accelerator) -> list[Accelerator]:
    """Return the cards of this machine that have the architecture of `chosen`, itself among them."""
    return [card for card in map(_card, range(torch.cuda.device_count())) if card.arch == chosen.arch]


def unused_cards(chosen: Accelerator) -> str:
    """Return a sentence on cards of the same architecture that a run of one process leaves idle; empty for none."""
    alike = [] if chosen.kind == "cpu" else alike_cards(chosen)
    if len(alike) < 2:
        return ""
    return (
        f"{len(alike)} cards of {chosen.arch} are here and this run takes one: {chosen.device}. --ranks {len(alike)} "
        "takes all; a small network trains slower so, for each step waits for the sum of the gradients. --ranks auto "
        "measures both for some seconds and takes all where that is faster"
    )


def make_reproducible(*, seed: int, threads: int, deterministic: bool = True) -> None:
    """Seed all generators, fix the CPU thread count and allow deterministic kernels only; call before a device is used.

    The thread count is set, not taken from the machine: sums over several threads round otherwise with each.

    Args:
        seed: of Python, numpy and torch on all devices.
        threads: of torch's operations on the CPU, 1 or more.
        deterministic: False leaves kernels and their workspaces to torch, and results differ from run to run on a card.
    """
    if deterministic:
        os.environ.update(DETERMINISTIC_ENVIRONMENT)
    set_deterministic(deterministic)
    # Torch would fill all memory it is given with NaN, in a kernel of its own: a captured small step takes 8 % longer.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    torch.set_num_threads(threads)
    seed_all(seed)


def set_deterministic(deterministic: bool) -> None:
    """Allow deterministic kernels only, or all of them.

    As `torch.use_deterministic_algorithms`, which since torch 2.10 imports the compiler to set a switch of it: 2.7 s of
    processor time at each start (torch 2.13.0+cpu, byte code compiled). The compiler reads the switch from the
    environment where it is imported later.
    """
    torch.set_deterministic_debug_mode("error" if deterministic else "default")
    os.environ[INDUCTOR_SWITCH] = str(int(deterministic))
    inductor = sys.modules.get("torch._inductor.config")
    if hasattr(inductor, "deterministic"):
        inductor.deterministic = deterministic  # type: ignore[union-attr]


def _automatic(cards: list[Accelerator]) -> Accelerator:
    if not cards:
        return _cpu(f"auto: {_build()}, sees no accelerator")
    faults = {card.device: _fault(card.device) for card in cards}
    working = [card for card in cards if faults[card.device] is None]
    if not working:
        found = "; ".join(f"{device} does not compute: {fault}" for device, fault in faults.items())
        return _cpu(f"auto: {found}")
    best = max(working, key=lambda card: card.memory_bytes)
    return replace(best, reason=f"auto: most memory of {len(working)} working accelerator(s)")


def _named(requested: str, cards: list[Accelerator]) -> Accelerator:
    name = "cuda:0" if requested == "cuda" else requested
    known = {device.device: device for device in (_cpu(), *cards)}
    if name not in known:
        here = ", ".join(f"{device.device} ({device.name}, {device.arch})" for device in known.values())
        raise TrainerError("RM520", what=f"no device {requested!r} with {_build()}", why=f"here are: {here}")
    if fault := _fault(name):
        raise TrainerError("RM520", what=f"{name} ({known[name].name}) does not compute", why=fault)
    return replace(known[name], reason="asked for with --device")


def _build() -> str:
    """Return torch's version with what it was built for."""
    versions = {"ROCm": torch.version.hip, "CUDA": torch.version.cuda}
    built = [f"{name} {version}" for name, version in versions.items() if version]
    return f"torch {torch.__version__} built for {' '.join(built) or 'CPU only'}"


def _card(index: int) -> Accelerator:
    properties = torch.cuda.get_device_properties(index)
    hip = torch.version.hip is not None
    return Accelerator(
        device=f"cuda:{index}",
        kind="rocm" if hip else "cuda",
        name=properties.name,
        # gcnArchName carries feature flags, as in gfx90a:sramecc+:xnack-
        arch=properties.gcnArchName.split(":")[0] if hip else f"sm_{properties.major}{properties.minor}",
        memory_bytes=properties.total_memory,
    )


def _cpu(reason: str = "") -> Accelerator:
    return Accelerator(
        device="cpu",
        kind="cpu",
        name=_cpu_name(),
        arch=f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}",
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        reason=reason,
    )


def _cpu_name() -> str:
    information = Path("/proc/cpuinfo")
    text = information.read_text() if information.exists() else ""
    named = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return named[1] if named else platform.processor() or platform.machine()


def _fault(device: str) -> str | None:
    """Return why `device` cannot add two numbers, or None; a card the build has no kernels for fails here."""
    try:
        works = (torch.ones(2, device=device).sum() == 2).item()
    except RuntimeError as error:
        return str(error).splitlines()[0].partition(". ")[0]  # without the advice that follows
    return None if works else "1 + 1 was not 2"


def memory_of(device: torch.device) -> int:
    """Return the bytes of memory of `device`; for the CPU what the machine has."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    return _cpu().memory_bytes

"""Probe `allocator`: batches of changing size neither overlap in memory nor fill it with holes.

Runs have died after 30 to 50 batches of changing length, with memory that was free but in pieces. The same
pattern runs here in a small part of the card's memory, with expandable segments off and on, each in a process
of its own, as the setting is read once. On a CPU it runs once over the system's allocator.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from trainer.diagnostics.probes import entry, numerics, placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.verdict import Check, Device, Number, Verdict, at_most, conclude, equal, not_applicable
from trainer.runtime.child_process import run_limited
from trainer.runtime.memory_limit import held_bytes

if TYPE_CHECKING:
    import torch

MODULE = "trainer.diagnostics.probes.single.allocator"
MIB = 1 << 20
BATCHES, LAYERS = 80, 12
SEEN_TO_KILL = 30  # batches after which runs have died
ON_CARD, ON_CPU = 8 * MIB, MIB // 2  # the largest of a batch's tensors, bytes
GROWTH_LIMIT = 1.25  # what is reserved at the end over what was at SEEN_TO_KILL batches
RESERVED_LIMIT = 2.0  # what is reserved over the most that tensors ever held at once
# torch 2.9 renamed the variable; earlier ROCm builds read the second or the third name.
VARIABLES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")
SETTINGS = {"off": "expandable_segments:False", "on": "expandable_segments:True"}
SHARE = 0.4  # of the time, for each setting


@dataclass(frozen=True, kw_only=True)
class Found:
    """The result of a run of batches; `expandable` is whether the allocator reports any segment as such."""

    batches: int
    overlaps: int
    live_peak: int
    reserved_at: int
    reserved_end: int
    left_over: int
    expandable: bool
    ran_out: str = ""


def measure(request: Request) -> Verdict:
    """Run the pattern under each setting.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    device, seed = placement.place(request.expect), numerics.fresh_seed()
    if device.kind == "cpu":
        found = run(device, seed)
        skipped = not_applicable("expandable segments", "the CPU has no caching allocator of torch's")
        checks, numbers = [*judge("system allocator", found, card=False), skipped], figures("system allocator", found)
    else:
        checks, numbers = under_settings(request, seed)
    return conclude(
        probe="allocator",
        summary=summarise(device),
        checks=checks,
        numbers=[Number(name="seed", value=seed, unit=""), *numbers],
        device=device,
        versions=placement.versions(),
    )


def summarise(device: Device) -> str:
    """Return one sentence on what ran."""
    if device.kind == "cpu":
        return f"{BATCHES} batches of changing size kept apart in host memory; no card's allocator was tried."
    return f"{BATCHES} batches of changing size kept apart on {device.name} and left no holes that grow."


def under_settings(request: Request, seed: int) -> tuple[list[Check], list[Number]]:
    """Run the pattern with expandable segments off and on."""
    checks: list[Check] = []
    numbers: list[Number] = []
    for name, setting in SETTINGS.items():
        label = f"expandable segments {name}"
        found = in_process(setting, request, seed)
        if isinstance(found, str):
            made = [Check(name=label, status="fail", detail=found)]
        elif name == "on" and not found.expandable:
            made = [not_applicable(label, "this torch ignores the setting: no segment was expandable")]
        else:
            made, numbers = judge(label, found), [*numbers, *figures(label, found)]
        checks += made if name == used() else [as_note(check) for check in made]
    return checks, numbers


def used(environment: Mapping[str, str] = os.environ) -> str:
    """Return which of SETTINGS runs here use: "off", unless a variable of torch's allocator switches it on.

    Args:
        environment: variables of the process by name.
    """
    given = next((environment[name] for name in VARIABLES if environment.get(name)), "")
    return "on" if "expandable_segments:true" in given.replace(" ", "").casefold() else "off"


def as_note(check: Check) -> Check:
    """Return a check that counts neither way where it failed: no run here uses the setting that it is of."""
    if check.status != "fail":
        return check
    words = f"it failed, and no run here uses this setting: {check.detail or f'{check.measured} {check.unit}'}"
    return replace(check, status="not-applicable", detail=words)


def in_process(setting: str, request: Request, seed: int) -> Found | str:
    """Return what the pattern comes to under `setting`, or how its process ended.

    Args:
        setting: value of PYTORCH_ALLOC_CONF.
        seed: seed of the sizes.
    """
    limit = request.timeout_seconds * SHARE
    argv = [sys.executable, "-m", MODULE, "--expect", request.expect, "--found", str(seed)]
    outcome = run_limited(argv, seconds=limit, env={**os.environ, **dict.fromkeys(VARIABLES, setting)})
    if outcome.timed_out:
        return f"no end within {limit:g} s"
    if outcome.returncode != 0:
        sys.stderr.write(outcome.stderr)
        return f"ended by {outcome.signal_name or f'status {outcome.returncode}'}"
    return Found(**json.loads(outcome.stdout))


def run(device: Device, seed: int) -> Found:
    """Hold a few tensors for good and, a batch at a time, many of sizes that follow the batch's length."""
    memory = Memory(device)
    sizes = random.Random(seed)
    kept: list[tuple[int, torch.Tensor]] = []
    overlaps = live_peak = reserved_at = batch = 0
    ran_out = ""
    for batch in range(1, BATCHES + 1):
        length = sizes.uniform(0.05, 1.0)
        try:
            live = activations(memory, sizes, length, batch)
        except RuntimeError as error:  # torch.OutOfMemoryError, which torch 2.4 calls otherwise
            ran_out = str(error).strip().splitlines()[0]
            break
        live_peak = max(live_peak, sum(tensor.numel() for _, tensor in [*live, *kept]))
        overlaps += spoiled([*live, *kept])
        kept = [*kept, live[len(live) // 2]][-LAYERS:]  # as an optimizer's state or a metric that outlives its batch
        reserved_at = memory.reserved() if batch == SEEN_TO_KILL else reserved_at
        del live
    reserved_end, expandable = memory.reserved(), memory.expandable()
    kept.clear()
    return Found(
        batches=batch,
        overlaps=overlaps,
        live_peak=live_peak,
        reserved_at=reserved_at,
        reserved_end=reserved_end,
        left_over=memory.left_over(),
        expandable=expandable,
        ran_out=ran_out,
    )


def activations(memory: Memory, sizes: random.Random, length: float, batch: int) -> list[tuple[int, torch.Tensor]]:
    """Return a batch's tensors with the byte that fills each; every second one is freed before the next ones come.

    Args:
        sizes: source of the sizes.
        length: factor of the sizes.
        batch: number of the batch; decides the bytes that fill its tensors.
    """
    live: list[tuple[int, torch.Tensor]] = []
    for layer in range(LAYERS):
        fill = (batch * LAYERS + layer) % 251
        size = max(512, int(length * sizes.uniform(0.2, 1.0) * memory.largest))
        passing = memory.take(size // 2, 255)
        live.append((fill, memory.take(size, fill)))
        del passing
    return live


class Memory:
    """The memory of a device as torch hands it out."""

    def __init__(self, device: Device) -> None:
        self.card, self.torch_type = device.kind != "cpu", device.torch_type
        self.largest = ON_CARD if self.card else ON_CPU
        if self.card:
            self._leave_little()
        self.begun = self.held()

    def _leave_little(self) -> None:
        """Allow this process no more than RESERVED_LIMIT of the most that the pattern can hold, and a little."""
        import torch

        total = torch.cuda.get_device_properties(0).total_memory
        most = 2.5 * LAYERS * self.largest  # this batch's, the kept ones', and one that is passing
        torch.cuda.set_per_process_memory_fraction(min(1.0, RESERVED_LIMIT * most / total))

    def take(self, size: int, fill: int) -> torch.Tensor:
        """Return a tensor of `size` bytes, all `fill`."""
        import torch

        return torch.full((size,), fill, dtype=torch.uint8, device=self.torch_type)

    def held(self) -> int:
        """Return the bytes that tensors hold on the card; not counted on a CPU."""
        import torch

        return torch.cuda.memory_allocated() if self.card else 0

    def reserved(self) -> int:
        """Return the bytes that torch keeps on the card; on a CPU, all that this process holds."""
        import torch

        return torch.cuda.memory_reserved() if self.card else held_bytes(os.getpid())

    def left_over(self) -> int:
        """Return the bytes still reserved in addition to those at the start, after everything was released."""
        import torch

        if not self.card:
            return 0
        torch.cuda.empty_cache()
        return self.held() - self.begun

    def expandable(self) -> bool:
        """Return whether any segment can grow, by the allocator's own snapshot."""
        import torch

        return self.card and any(segment.get("is_expandable") for segment in torch.cuda.memory_snapshot())


def spoiled(live: Sequence[tuple[int, torch.Tensor]]) -> int:
    """Return how many tensors no longer hold what was written to them: another one overlaps them."""
    return sum(bool((tensor != fill).any()) for fill, tensor in live)


def judge(name: str, found: Found, *, card: bool = True) -> list[Check]:
    """Check that all batches ran, none overlapped, and on a card what is reserved is bounded and released.

    Args:
        name: name of the setting.
        card: ran on a card, not on a CPU.
    """
    checks = [
        equal(f"{name} batches", found.batches, BATCHES, "batches", found.ran_out),
        at_most(f"{name} overlapping tensors", found.overlaps, 0, "tensors"),
    ]
    if not card:
        return checks
    grown = found.reserved_end / max(1, found.reserved_at)
    bounded = found.reserved_end / max(1, found.live_peak)
    return [
        *checks,
        equal(f"{name} ran out of memory", found.ran_out or "no", "no"),
        at_most(f"{name} growth after {SEEN_TO_KILL} batches", grown, GROWTH_LIMIT, "reserved at the end / then"),
        at_most(f"{name} holes", bounded, RESERVED_LIMIT, "reserved / most held"),
        equal(f"{name} given back", found.left_over, 0, "bytes left"),
    ]


def figures(name: str, found: Found) -> list[Number]:
    """Return the most held and what was reserved for it."""
    named = {"most held": found.live_peak, "reserved at the end": found.reserved_end}
    return [Number(name=f"{name} {what}", value=round(value / MIB, 2), unit="MiB") for what, value in named.items()]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the probe, or with `--found SEED` what one setting's process does."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--found", type=int)
    own, rest = parser.parse_known_args(argv)
    if own.found is None:
        return entry.main("allocator", measure, rest)
    answer = entry.claim_stdout()
    found = run(placement.place(entry.parse_request(rest).expect), own.found)
    print(json.dumps(asdict(found)), file=answer, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Probe `convert`: fp32, bf16 and fp16 become each other with the right bits, on the card and on the way to it.

Drivers have turned whole models into zeros when a copy to the card also changed the dtype. The right bits come
from the formats' definition, in fp64 and integers, so that no conversion instruction judges another one.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainer.diagnostics.probes import entry, numerics, placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.verdict import Check, Device, Number, Verdict, at_most, conclude

if TYPE_CHECKING:
    import torch

COUNT = 1 << 18
HALVES = {"bfloat16": (8, 7), "float16": (5, 10)}  # bits of exponent and of mantissa
PAIRS = list(itertools.permutations(("float32", *HALVES), 2))
SPECIAL = (0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1.0, 65504.0, 65520.0, 65519.99, 3.4028235e38, 6e-8)


@dataclass(frozen=True, kw_only=True)
class Count:
    """Errors of a conversion of `size` elements: wrong bits, of these zeros, and flushed subnormals."""

    wrong: int
    zeros: int
    flushed: int
    size: int


def measure(request: Request) -> Verdict:
    """Convert random bit patterns and the edges of each format, by each route.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    device = placement.place(request.expect)
    seed = numerics.fresh_seed()
    counts = {(pair, route): count(pair, route, device, seed) for pair in PAIRS for route in ROUTES}
    flushed = sum(each.flushed for each in counts.values())
    return conclude(
        probe="convert",
        summary=f"{len(counts)} conversions gave the right bits on {where(device)}.",
        checks=[check(pair, route, each) for (pair, route), each in counts.items()],
        numbers=[
            Number(name="seed", value=seed, unit=""),
            Number(name="converted", value=sum(each.size for each in counts.values()), unit="elements"),
            Number(name="subnormals flushed to zero", value=flushed, unit="elements"),
        ],
        device=device,
        versions=placement.versions(),
    )


def where(device: Device) -> str:
    """Return the device as text."""
    return f"{device.name} ({device.arch})" if device.kind != "cpu" else "the CPU; no card was tried"


def on_device(source: torch.Tensor, dtype: torch.dtype, target: str) -> torch.Tensor:
    """Copy first, convert there.

    Args:
        source: tensor on the host, shape (elements,).
        dtype: type to convert to.
        target: device type of torch.
    """
    return source.to(target, copy=True).to(dtype).cpu()


def on_the_way(source: torch.Tensor, dtype: torch.dtype, target: str) -> torch.Tensor:
    """Copy and convert in one call, as `model.to(device, dtype)` does.

    Args:
        source: tensor on the host, shape (elements,).
        dtype: type to convert to.
        target: device type of torch.
    """
    return source.to(target, dtype, copy=True).cpu()


def on_the_way_back(source: torch.Tensor, dtype: torch.dtype, target: str) -> torch.Tensor:
    """Copy back and convert in one call.

    Args:
        source: tensor on the host, shape (elements,).
        dtype: type to convert to.
        target: device type of torch.
    """
    return source.to(target, copy=True).to("cpu", dtype)


def strided(source: torch.Tensor, dtype: torch.dtype, target: str) -> torch.Tensor:
    """Convert there what does not lie in one piece: every element of the first column of two.

    Args:
        source: tensor on the host, shape (elements,).
        dtype: type to convert to.
        target: device type of torch.
    """
    pair = source.to(target, copy=True).repeat_interleave(2).view(-1, 2)
    return pair[:, 0].to(dtype).contiguous().cpu()


Route = Callable[["torch.Tensor", "torch.dtype", str], "torch.Tensor"]
ROUTES: dict[str, Route] = {
    "on the device": on_device,
    "on the way there": on_the_way,
    "on the way back": on_the_way_back,
    "strided": strided,
}


def count(pair: tuple[str, str], route: str, device: Device, seed: int) -> Count:
    """Convert by one route and compare the bits with those of the definition.

    Args:
        pair: names of source and destination type.
        route: name of one of ROUTES.
        seed: seed of the bit patterns.
    """
    import torch

    target: torch.dtype = getattr(torch, pair[1])
    source = draw(pair[0], seed)
    found, right = ROUTES[route](source, target, device.torch_type), exact(source, target)
    kinds = bits(found), bits(right)
    wrong = (kinds[0] != kinds[1]) & ~(found.isnan() & right.isnan())
    tiny = torch.finfo(target).tiny
    subnormal = (right.double().abs() < tiny) | (source.double().abs() < torch.finfo(source.dtype).tiny)
    flushed = wrong & subnormal & (found == 0) & (right != 0)
    zeros = wrong & ~flushed & (found == 0)
    return Count(
        wrong=int((wrong & ~flushed).sum()), zeros=int(zeros.sum()), flushed=int(flushed.sum()), size=len(found)
    )


def draw(dtype: str, seed: int) -> torch.Tensor:
    """Return every bit pattern of a 16-bit format; of fp32 random ones, such as are common in training, and edges."""
    import torch

    if dtype in HALVES:
        return torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16).view(getattr(torch, dtype))
    generator = torch.Generator().manual_seed(seed)
    patterns = torch.randint(-(1 << 31), 1 << 31, (COUNT,), generator=generator, dtype=torch.int64)
    common = torch.randn(COUNT, generator=generator)
    return torch.cat([patterns.to(torch.int32).view(torch.float32), common, torch.tensor(SPECIAL), ties()])


def ties() -> torch.Tensor:
    """Return fp32 numbers half-way between neighbours of each 16-bit format: those that rounding to even decides."""
    import torch

    middles = [(values[1:] + values[:-1]) / 2 for values in map(magnitudes, HALVES)]
    return torch.cat(middles).float()


def exact(source: torch.Tensor, target: torch.dtype) -> torch.Tensor:
    """Return `source` in `target` by the formats' definition: the nearest number, ties to the even pattern."""
    import torch

    wide = widened(source)
    if target == torch.float32:
        return wide.float()  # every bf16 and fp16 number is an fp32 number: nothing is rounded
    values = magnitudes(str(target).removeprefix("torch."))
    middles = (values[1:] + values[:-1]) / 2
    size = wide.abs().nan_to_num(posinf=float("inf"))
    below, above = torch.searchsorted(middles, size), torch.searchsorted(middles, size, right=True)
    pattern = torch.where(below % 2 == 0, below, above)  # they differ on a tie only, by one: one of them is even
    result = torch.where(wide.isnan(), torch.full_like(pattern, len(values)), pattern)
    sign = (torch.signbit(source)).to(torch.int64) << 15
    return (result | sign).to(torch.int16).view(target)


def widened(source: torch.Tensor) -> torch.Tensor:
    """Return `source` in fp64, which holds every number of the three formats; 16-bit formats by their definition."""
    import torch

    if source.dtype == torch.float32:
        return source.double()
    values = magnitudes(str(source.dtype).removeprefix("torch."))
    values[-1] = math.inf
    pattern = source.view(torch.int16).long() & 0x7FFF
    size = torch.where(pattern < len(values), values[pattern.clamp(max=len(values) - 1)], math.nan)
    return torch.where(source.view(torch.int16) < 0, -size, size)


def magnitudes(dtype: str) -> torch.Tensor:
    """Return the numbers that patterns 0, 1, 2, … of a 16-bit format stand for, in fp64, up to infinity.

    Infinity stands at the end as the number that would follow the largest: what rounds there is infinite.
    """
    import torch

    exponent_bits, mantissa_bits = HALVES[dtype]
    pattern = torch.arange(((1 << exponent_bits) - 1 << mantissa_bits) + 1, dtype=torch.int64)
    exponent, mantissa = pattern >> mantissa_bits, pattern & (1 << mantissa_bits) - 1
    normal = (exponent > 0).long()
    power = exponent.clamp(min=1) - ((1 << exponent_bits - 1) - 1) - mantissa_bits
    return torch.ldexp((mantissa + (normal << mantissa_bits)).double(), power)


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return the bit patterns as integers."""
    import torch

    return tensor.view(torch.int32 if tensor.dtype == torch.float32 else torch.int16)


def check(pair: tuple[str, str], route: str, counted: Count) -> Check:
    """Check that no bits are wrong; a subnormal that became zero is counted and not held against the card.

    Args:
        pair: names of source and destination type.
        route: name of one of ROUTES.
        counted: what was wrong.
    """
    detail = f"{counted.zeros} of them zeros" if counted.wrong else ""
    return at_most(f"{pair[0]} to {pair[1]} {route}", counted.wrong, 0, "wrong elements", detail)


if __name__ == "__main__":
    sys.exit(entry.main("convert", measure))

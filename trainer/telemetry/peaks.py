"""What a card could compute at most, to state a model's FLOPs as a share of it (MFU).

A peak is a product: compute units x FLOPs per unit and clock x boost clock. The result is compared with the
published figure in the tests. A card that is not here has no peak: a share of another card's would be made up.

Per unit and clock: an FMA counts as two. RDNA3 and 4 count dual issue for fp32, as AMD's figures do; ordinary code
reaches it seldom. Matrix figures are without sparsity: lists that give 2,615 TFLOPS for an MI300X count it.
Device code of gfx906 and gfx103x has no bf16 arithmetic, so there is no bf16 peak for them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

GCN = {"fp32": 128, "fp16": 256}
RDNA2 = {"fp32": 128, "fp16": 256}
RDNA3 = {"fp32": 256, "fp16": 512, "bf16": 512}
RDNA4 = {"fp32": 256, "fp16": 1024, "bf16": 1024}
CDNA1 = {"fp32": 256, "fp16": 1024, "bf16": 512}
CDNA2 = {"fp32": 256, "fp16": 1024, "bf16": 1024}
CDNA3 = {"fp32": 256, "fp16": 2048, "bf16": 2048}
HOPPER = {"fp32": 256 * 1980 / 1830, "fp16": 4096, "bf16": 4096}  # NVIDIA states fp32 at 1980 MHz, the rest at 1830
CDNA4 = {"fp32": 256, "fp16": 4096, "bf16": 4096}

INSTINCT = "Wikipedia, AMD Instinct (table of products), read 2026-11-21; figures of AMD's data sheets"
RX_7900 = "reviews of 2022-11 with AMD's table: 61.4 and 51.6 TFLOPS fp32, 123 and 103 fp16"
STRIX = (
    "whylucian/softab docs/hardware-specs: 512 per unit and clock, 40 units, 2.9 GHz; four public repositories agree"
)
GENERAL = "general knowledge of AMD's product pages; no source was read for this card"
NVIDIA = "NVIDIA's data sheets as cited by torchtitan's table: 989 TFLOPS bf16, 312 for the A100"


@dataclass(frozen=True, kw_only=True)
class Peak:
    """A card as torch names it. `units` and `mhz` of one device as torch counts them: half of an MI250X."""

    arch: str
    names: tuple[str, ...]
    units: int
    mhz: int
    per_clock: Mapping[str, float]
    source: str
    confidence: str = "reported"

    def flops(self, dtype: str) -> float | None:
        """Return FLOPs a second in `dtype` (fp32, fp16, bf16), None where the card has no such arithmetic."""
        each = self.per_clock.get(dtype)
        return None if each is None else each * self.units * self.mhz * 1e6


def _peak(arch: str, name: str, units: int, mhz: int, per_clock: Mapping[str, float], source: str = GENERAL) -> Peak:
    return Peak(
        arch=arch,
        names=tuple(name.split("|")),
        units=units,
        mhz=mhz,
        per_clock=per_clock,
        source=source,
        confidence="general knowledge" if source is GENERAL else "reported",
    )


PEAKS = (
    _peak("gfx906", "MI50", 60, 1725, GCN, INSTINCT),
    _peak("gfx906", "MI60", 64, 1800, GCN, INSTINCT),
    _peak("gfx906", "Radeon VII", 60, 1750, GCN),
    _peak("gfx908", "MI100", 120, 1502, CDNA1, INSTINCT),
    _peak("gfx90a", "MI210", 104, 1700, CDNA2, INSTINCT),
    _peak("gfx90a", "MI250", 104, 1700, CDNA2, INSTINCT),
    _peak("gfx90a", "MI250X", 110, 1700, CDNA2, INSTINCT),
    _peak("gfx942", "MI300X|MI325X", 304, 2100, CDNA3, INSTINCT),
    _peak("gfx942", "MI300A", 228, 2100, CDNA3, INSTINCT),
    _peak("gfx950", "MI350X", 256, 2200, CDNA4),
    _peak("gfx950", "MI355X", 256, 2400, CDNA4),
    _peak("gfx1030", "RX 6800", 60, 2105, RDNA2),
    _peak("gfx1030", "RX 6800 XT", 72, 2250, RDNA2),
    _peak("gfx1030", "RX 6900 XT", 80, 2250, RDNA2),
    _peak("gfx1030", "RX 6950 XT", 80, 2310, RDNA2, RX_7900),
    _peak("gfx1100", "RX 7900 XTX", 96, 2500, RDNA3, RX_7900),
    _peak("gfx1100", "RX 7900 XT", 84, 2400, RDNA3, RX_7900),
    _peak("gfx1100", "RX 7900 GRE", 80, 2245, RDNA3),
    _peak("gfx1101", "RX 7800 XT", 60, 2430, RDNA3),
    _peak("gfx1101", "RX 7700 XT", 54, 2544, RDNA3),
    _peak("gfx1102", "RX 7600", 32, 2655, RDNA3),
    _peak("gfx1102", "RX 7600 XT", 32, 2755, RDNA3),
    _peak("gfx1151", "8060S", 40, 2900, RDNA3, STRIX),
    _peak("gfx1151", "8050S", 32, 2800, RDNA3),
    _peak("gfx1200", "RX 9060 XT", 32, 3130, RDNA4),
    _peak("gfx1201", "RX 9070", 56, 2520, RDNA4),
    _peak("gfx1201", "RX 9070 XT", 64, 2970, RDNA4),
    _peak("gfx1201", "R9700", 64, 2920, RDNA4),
    # Streaming multiprocessors; without TF32, which torch leaves off for fp32 products.
    _peak("sm_80", "A100", 108, 1410, {"fp32": 128, "fp16": 2048, "bf16": 2048}, NVIDIA),
    _peak("sm_90", "H100 80GB HBM3|H200", 132, 1830, HOPPER, NVIDIA),
)


def find(name: str, arch: str) -> Peak | None:
    """Return the peak of the card that torch calls `name`, None for one unknown or ambiguous.

    A card's name holds one of `names` as whole words, and its architecture agrees; of "RX 7900 XT" and
    "RX 7900 XTX" only one does. "MI60 / MI50" means either and so neither.
    """
    fits = [(peak, word) for peak in PEAKS for word in peak.names if peak.arch == arch and _holds(name, word)]
    longest = [(peak, word) for peak, word in fits if not any(word != other and word in other for _, other in fits)]
    return longest[0][0] if len(longest) == 1 else None


def _holds(name: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", name, re.IGNORECASE) is not None

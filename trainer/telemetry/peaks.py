"""Peak throughput of a card, to state a model's FLOPs as a share of it (MFU).

A peak is a product: compute units x FLOPs per unit and clock x boost clock. The result is compared with the
published figure in the tests. A card that is not here has no peak: a share of another card's would be made up.

Per unit and clock: an FMA counts as two. RDNA3 and 4 count dual issue for fp32, as AMD's figures do; ordinary code
reaches it seldom. Matrix figures are without sparsity: lists that give 2,615 TFLOPS for an MI300X count it.
Device code of gfx906 and gfx103x has no bf16 arithmetic, so there is no bf16 peak for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from trainer.device import architectures

HOPPER = {"fp32": 256 * 1980 / 1830, "fp16": 4096, "bf16": 4096}  # NVIDIA states fp32 at 1980 MHz, the rest at 1830
AMPERE = {"fp32": 128, "fp16": 2048, "bf16": 2048}

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


def _of_amd() -> Iterator[Peak]:
    for arch, each in architectures.KNOWN.items():
        for row in each["peaks"]:
            yield Peak(
                arch=arch,
                names=tuple(row["cards"]),
                units=row["units"],
                mhz=row["mhz"],
                per_clock=each["per_clock"],
                source=row["source"] or GENERAL,
                confidence="reported" if row["source"] else "general knowledge",
            )


PEAKS = (
    *_of_amd(),
    # Streaming multiprocessors; without TF32, which torch leaves off for fp32 products.
    Peak(arch="sm_80", names=("A100",), units=108, mhz=1410, per_clock=AMPERE, source=NVIDIA),
    Peak(arch="sm_90", names=("H100 80GB HBM3", "H200"), units=132, mhz=1830, per_clock=HOPPER, source=NVIDIA),
)


def find(name: str, arch: str) -> Peak | None:
    """Return the peak of the card that torch calls `name`, None for one unknown or ambiguous.

    A card's name holds one of `names` as whole words, and its architecture agrees; of "RX 7900 XT" and
    "RX 7900 XTX" only one does. "MI60 / MI50" means either and so neither.
    """
    named = {word: peak for peak in PEAKS if peak.arch == arch for word in peak.names}
    fits = longest(name, named)
    return named[fits[0]] if len(fits) == 1 else None


def longest(name: str, words: Iterable[str]) -> list[str]:
    """Return those of `words` that a card's name holds, less those that another of them contains.

    Args:
        name: name of a card as torch reports it.
        words: names of cards, such as "RX 7900 XT".
    """
    fits = [word for word in words if _holds(name, word)]
    return [word for word in fits if not any(word != other and word in other for other in fits)]


def _holds(name: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", name, re.IGNORECASE) is not None

"""Cards by name: memory, the attention that they have, number format and peak; from matrix/architectures.yaml."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from trainer.device import architectures
from trainer.runtime.errors import TrainerError, suggestion
from trainer.telemetry import peaks

GIB = 2**30
# What is no tensor's: the runtime's context and code, BLAS workspaces. An assumption; on Radeon a desktop adds more.
CONTEXT = int(0.9 * GIB)
UNIFIED_SHARE = 0.5  # of an APU's memory: what the kernel's ttm lets a GPU map unless pages_limit is raised
BRANDS = re.compile(
    r"(?<![a-z])(?:amd|ati|radeon|instinct|rx|pro|ai|graphics|gpu|with|tm|oam|pcie)(?![a-z])|gfx[0-9a-f]+"
)
# Processors by their graphics, without brands and spaces; both are cards of one entry of matrix/architectures.yaml.
ALSO = dict.fromkeys(("strixhalo", "frameworkdesktop"), "8060S")
ALSO |= {f"ryzenmax{number}": "8060S" for number in (388, 392, 395)} | {"ryzenmax390": "8050S", "ryzenmax385": "8050S"}
MAX = re.compile(r"(?:ryzen)?(?:max\+?|hx|max\+?hx)(?=(?:38[58]|39[025])$)")  # as people type a Ryzen AI Max+
COUNTED = re.compile(r"(?:^\s*(\d+)\s*[x\u00d7]\s+(?=\S)|\s[x\u00d7]\s*(\d+)\s*$)", re.IGNORECASE)  # 2 x RX 7900 XTX
SEVERAL = re.compile(r"\s*(?:[,;&]|\s\+\s|\b(?:and|plus)\b)\s*", re.IGNORECASE)
OTHER_MAKERS = re.compile(
    r"nvidia|geforce|\b[rg]tx\b|tesla|quadro|\b(?:[abhl]\d{2,3}|v100)\b|intel|\barc\b|apple|\bm[1-5]\b", re.IGNORECASE
)  # V340 and V710 are AMD's
SIZE = re.compile(r"[\s,(]*\b(\d+)\s*G(?:i?B)?\b\)?", re.IGNORECASE)
WITHOUT_TRITON = re.compile(r"gfx(8|90[0-69c]|10)")  # no compiled code is counted on there


@dataclass(frozen=True, kw_only=True)
class Card:
    """A card to plan for. `memory` is in bytes, `why` states where the number is from.

    fused: whether flash and efficient attention are there: yes, flag (only with an experimental flag), or no.
    precision: the 16-bit format of its hardware, fp32 where none is known.
    """

    name: str
    arch: str
    memory: int
    why: str
    fused: str
    precision: str
    peak: peaks.Peak | None = None

    @property
    def budget(self) -> int:
        """Bytes for tensors."""
        return max(0, self.memory - CONTEXT)

    @property
    def compiler(self) -> bool:
        """Whether code that Triton compiles is counted on."""
        return WITHOUT_TRITON.match(self.arch) is None

    def attention(self, *, flag: bool, precision: str = "bf16") -> tuple[str, str]:
        """Return the kernels of attention without and with a mask; flash takes 16 bits alone.

        Args:
            flag: whether experimental kernels are switched on.
            precision: number format of the products.
        """
        there = self.fused == "yes" or (self.fused == "flag" and flag)
        if not there:
            return ("math", "math")
        return ("flash" if precision in ("bf16", "fp16") else "efficient", "efficient")

    def flops(self, precision: str) -> float | None:
        """Return the peak in FLOP/s, None where none is known."""
        return self.peak.flops(precision) if self.peak else None


def named(text: str, known: Iterable[str]) -> str | None:
    """Return the card that a text names: its name behind a brand, or as people type it; None for none or several.

    Args:
        text: such as "AMD Radeon RX 7900 XTX", 7900xtx, "Strix Halo".
        known: names of cards.
    """
    known = list(known)
    behind = next((card for card in known if re.fullmatch(rf"(.*\s)?{re.escape(card)}", text, re.IGNORECASE)), None)
    typed = _bare(text)
    processor = MAX.sub("ryzenmax", typed)
    typed = _bare(ALSO.get(processor, typed))
    return behind or next((card for card in known if _bare(card) == typed), None)


def _bare(name: str) -> str:
    """Return a name without brands, lines and what is no letter or digit: 7900xtx of "Radeon RX 7900-XTX"."""
    return re.sub(r"[^a-z0-9+]", "", BRANDS.sub("", name.lower()))


def _require_one(text: str, known: Iterable[str]) -> None:
    """Raise RM738 for a text that names several cards, or one with its number.

    Args:
        text: such as "RX 7900 XTX, RX 6800" or "2 x RX 7900 XTX".
        known: names of cards.
    """
    if count := COUNTED.search(text):
        card = text.replace(count[0], "").strip()
        next = f'Give --gpu "{card}" --cards {count[1] or count[2]}.'
        raise TrainerError("RM738", what=f"{text!r} is a number of cards", next=next)
    parts = [SIZE.sub("", part).strip() for part in SEVERAL.split(text)]
    found = [card for card in (named(part, known) for part in parts if part) if card]
    if len(found) > 1:
        what = f"{' and '.join(found)} are several cards, and a plan is for cards that are alike"
        next = f"Plan for the one with the least memory, with --cards {len(found)}; or for each alone."
        raise TrainerError("RM738", what=what, next=next)


def card_of(text: str, memory_gib: float | None = None) -> Card:
    """Return the card that `text` names: a card as torch calls it, perhaps with its size as in "MI50 32 GB".

    Raises:
        TrainerError: RM738 for a card that is unknown, for several, or where the memory is not known.
    """
    known = {card: arch for arch, each in architectures.KNOWN.items() for card in each["memory_gib"]}
    _require_one(text, known)
    size = SIZE.search(text)
    name = text.replace(size[0], "").strip() if size else text.strip()
    found = named(name, known)
    if found is None and name.lower() in architectures.KNOWN:
        found, known = name.lower(), {name.lower(): name.lower()}
    if found is None:
        why = "the table has cards of AMD alone" if OTHER_MAKERS.search(name) else suggestion(name, known)
        raise TrainerError("RM738", what=f"no card {name!r}", why=why)
    each = architectures.KNOWN[known[found]]
    sizes = each["memory_gib"].get(found, [])
    requested = memory_gib or (float(size[1]) if size else sizes[0] if len(sizes) == 1 else None)
    if requested is None:
        listed = ", ".join(f'"{found} {one} GB"' for one in sizes) or ", ".join(each["memory_gib"]) or "none is listed"
        made = (
            "was made with several sizes of memory" if sizes else "is an architecture, of cards with their own memory"
        )
        advice = f"Name one: {listed}." if sizes else f"Name a card ({listed}), or give --memory-gib, too."
        raise TrainerError("RM738", what=f"{found} {made}", next=advice)
    if memory_gib is None and sizes and requested not in sizes:
        made = " or ".join(f"{one} GB" for one in sizes)
        next = f'Give --gpu "{found} {sizes[-1]} GB", or --memory-gib {requested:g} for a card that has so much.'
        raise TrainerError("RM738", what=f"{found} with {requested:g} GB: each device of it has {made}", next=next)
    share = UNIFIED_SHARE if each["integrated"] and memory_gib is None else 1.0
    why = f"half of {requested:g} GiB of unified memory, the kernel's default" if share < 1 else f"{requested:g} GiB"
    return Card(
        name=found,
        arch=known[found],
        memory=int(requested * share * GIB),
        why=why,
        fused=each["attention"],
        precision=each["autocast"]["format"] if each["autocast"] else "fp32",
        peak=peaks.find(found, known[found]),
    )

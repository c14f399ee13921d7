"""The environment that a log states: the card's architecture, torch and ROCm.

Only forms in which a program names its own card count: lists of supported ones do not. What a compiler was asked to
compile for stands in where nothing else names a card, and never states that the log is of another machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from rocmatrix.diagnosis.comparisons.forms import NONE, Comparisons
from rocmatrix.diagnosis.comparisons.reading import Reader
from rocmatrix.diagnosis.ranking import HostContext

_NAME = re.compile(rb"gfx[0-9a-f]{3,4}\b")
# what stands before the name of the card that a program runs on, and of one that it compiles for
_CARD = (
    *(f"GPU arch{gap}:{end}".encode() for gap in ("", " ") for end in ("", " ")),
    *(f"code object{many} found for:{end}".encode() for many in ("", "s") for end in ("", " ")),
    b"gpu_type=", b"AMD arch: ", b"unsupported target: '", b"amdhsa--", b"compute=",
)  # fmt: skip
_TARGET = (b"Compiling for ", b"compiling for ", b"--offload-arch=")
_LONGEST = max(map(len, (*_CARD, *_TARGET)))
_LISTED = re.compile(rb"ggml_cuda_init: [^\n]{0,80}\n[^\n]{0,80}, \Z")
_BEFORE = 180  # most bytes that it takes
_ROCM = re.compile(rb"\+rocm(\d{1,2}\.\d{1,2}(?:\.\d{1,2})?)")
_TORCH = re.compile(rb"[Tt]orch(?:[ _]version)?(?:==|[:=] {0,2}|-)(\d{1,2}\.\d{1,2}\.\d{1,2})\Z")
_LONGEST_TORCH = 32  # most bytes that it takes
# ROCm's own release, as its folder, its packages and its version file name it: what stands between a text and it
_INSTALLED = {
    text: re.compile(between + rb"(\d{1,2}\.\d{1,2}\.\d{1,2})(?!\d)")
    for text, between in (
        (b"/opt/rocm-", b""),
        (b"rocm-sdk-core", b"(?:==|-)"),
        (b"rocm-core", b"[- =/:]{1,20}"),
        (b"ROCm ", b"[Vv]ersion ?[:=] ?"),
        (b"HIP SDK ", b"[Vv]ersion ?[:=] ?"),
    )
}
_LONGEST_INSTALLED = 32  # bytes after such a text that are read: more than any form takes
MOST = 8  # a log that names more cards than this lists them


class Values:
    """What was read of a log's own words while it passes; `reader` reads the values that comparisons relate."""

    def __init__(self, comparisons: Comparisons = NONE) -> None:
        self.comparisons = comparisons
        self.reader = Reader(comparisons.values)
        self.architectures: dict[str, None] = {}
        self.targets: dict[str, None] = {}
        self.versions: dict[tuple[str, str], None] = {}
        self.installed: dict[str, None] = {}

    def watched(self, blocks: Iterable[bytes], *, log: str = "") -> Iterator[bytes]:
        """Yield the blocks of one log unchanged, and read them until more cards are named than one run has.

        Args:
            blocks: the log in chunks of whole lines.
            log: its name, where there are several.
        """
        for block in self.reader.watched(blocks, log=log):
            if len(self.architectures) <= MOST:
                self._look_at(block)
            yield block

    def completed(self, here: HostContext) -> HostContext:
        """Return the host context, with what the log states where nothing was known and it states one thing only.

        Cards that are only assumed give way to those that the log names, where it names none of them.
        """
        if self.is_of_another_machine(here):
            here = replace(here, architecture=None, others=(), warned=frozenset())
        named = self.architectures or self.targets
        card = next(iter(named)) if len(named) == 1 else None
        torch, rocm = next(iter(self.versions)) if len(self.versions) == 1 else (None, None)
        if not self.versions and len(self.installed) == 1:
            rocm = next(iter(self.installed))
        return replace(
            here,
            architecture=here.architecture or card,
            torch=here.torch or torch,
            rocm=here.rocm or rocm,
        )

    def is_of_another_machine(self, here: HostContext) -> bool:
        """Return whether the log names cards, and those assumed for this host are none of them.

        What code was compiled for is no card of the machine: people build for others.
        """
        own = {here.architecture, *here.others} - {None}
        return here.assumed and bool(own) and bool(self.architectures) and own.isdisjoint(self.architectures)

    def stated(self) -> HostContext:
        """Return what the log alone states; `others` are all architectures that it names."""
        return replace(self.completed(HostContext()), others=tuple(self.architectures))

    def _take(self, name: str, block: bytes, start: int) -> None:
        """Keep a card's name, by what stands before it: a card that runs, or one that is compiled for."""
        before = block[max(0, start - _LONGEST) : start]
        if before.endswith(_TARGET):
            self.targets[name] = None
        elif before.endswith(_CARD) or (
            before.endswith(b", ") and _LISTED.search(block, max(0, start - _BEFORE), start)
        ):
            self.architectures[name] = None

    def _look_at(self, block: bytes) -> None:
        for match in _NAME.finditer(block):
            name = match[0].decode()
            if name not in self.architectures or name not in self.targets:
                self._take(name, block, match.start())
        for match in _ROCM.finditer(block):
            torch = _TORCH.search(block, max(0, match.start() - _LONGEST_TORCH), match.start())
            if torch:
                self.versions[torch[1].decode(), match[1].decode()] = None
        if b"rocm" in block or b"ROCm" in block:
            self.installed |= dict.fromkeys(_installed(block))


def _installed(block: bytes) -> Iterator[str]:
    """Yield the releases of ROCm that a block names, each as often as what follows it differs."""
    for text, form in _INSTALLED.items():
        if text in block:
            after = {part[:_LONGEST_INSTALLED] for part in block.split(text)[1:]}
            yield from (match[1].decode() for match in map(form.match, after) if match)

"""Target IDs: the processor that device code is for, and the features it was compiled with.

Source: llvm-project clang/docs/ClangOffloadBundler.rst (syntax of target and bundle entry IDs).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rocmatrix.host.processors import GENERIC

# Written with ':' by compilers and with '-' in file names, which cannot hold a colon everywhere.
_TARGET_ID = re.compile(
    r"(?P<processor>gfx[0-9a-fx]+(?:-[0-9])*(?:-generic|-strict)?)(?P<features>(?:[:-](?:sramecc|xnack)[+-])*)"
)
_ENTRY_ID = re.compile(r"(?:hip|hipv4|openmp)-amdgcn-amd-amdhsa-(?:[a-z0-9_.]*-)?(?P<target>gfx.+)")
_FEATURE = re.compile(r"(?:sramecc|xnack)[+-]")


@dataclass(frozen=True, order=True, kw_only=True)
class Target:
    """Target of device code. `processor` may stand for several: gfx11-generic, or gfx11xx in a folder's name."""

    processor: str
    features: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ":".join((self.processor, *self.features))

    def runs_on(self, processor: str) -> bool:
        """Return whether this code is for `processor`; features do not count, a card may have either setting."""
        if self.processor in GENERIC:
            return processor in GENERIC[self.processor]
        pattern = self.processor.removesuffix("-strict")
        return len(pattern) == len(processor) and all(
            mine in ("x", other) for mine, other in zip(pattern[3:], processor[3:], strict=True)
        )


def parse(text: str) -> Target | None:
    """Read a target ID such as `gfx90a:sramecc+:xnack-` or `gfx90a-xnack+`; None where it is none."""
    match = _TARGET_ID.fullmatch(text)
    if match is None:
        return None
    return Target(processor=match["processor"], features=tuple(sorted(_FEATURE.findall(match["features"]))))


def parse_entry_id(text: str) -> Target | None:
    """Read a bundle entry ID such as `hipv4-amdgcn-amd-amdhsa--gfx1100`; None for the host's and other kinds."""
    match = _ENTRY_ID.fullmatch(text)
    return parse(match["target"]) if match else None

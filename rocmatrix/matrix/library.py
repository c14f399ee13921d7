"""Statements on ROCm's libraries and drivers by ROCm and torch version: the reasons behind many rules."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from rocmatrix.matrix.rule import RuleId
from rocmatrix.matrix.statement import Evidence, GfxName, RangeText, Selector, Strict, Text


class Statement(Strict):
    """A range of combinations and what is known of it."""

    when: Selector
    note: Text
    evidence: Evidence

    def summary(self, architecture: str | None) -> str:
        """Return what it states of one architecture."""
        return self.note


class MissingKernels(Statement):
    """Architectures (in `when`) for which a library holds no kernels. It becomes a rule of the name `id`."""

    id: RuleId


class HipblasLt(Statement):
    """How torch decides on hipBLASLt: architectures it accepts, and those on which it is the default."""

    accepted: list[GfxName]
    preferred: list[GfxName]

    def summary(self, architecture: str | None) -> str:
        """Return whether torch accepts the architecture, and whether it takes hipBLASLt by itself there."""
        accepted = "accepted" if architecture in self.accepted else "not accepted, so hipBLAS is used"
        default = "the default" if architecture in self.preferred else accepted
        return f"{default} on {architecture or 'a CPU'}; {self.note}"


class Attention(Statement):
    """Architectures with flash and memory-efficient attention kernels (AOTriton).

    Those under `experimental` need TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=1.
    """

    supported: list[GfxName]
    experimental: list[GfxName] = Field(default_factory=list)

    def summary(self, architecture: str | None) -> str:
        """Return which attention the architecture gets."""
        if architecture in self.supported:
            kind = "flash and memory-efficient kernels"
        elif architecture in self.experimental:
            kind = "kernels with TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=1, else the plain implementation"
        else:
            kind = "the plain implementation"
        return f"{kind} on {architecture or 'a CPU'}; {self.note}"


class Allocator(Statement):
    """The variables that the GPU allocator reads, the one that counts first."""

    variables: list[Text]
    expandable_segments: bool

    def summary(self, architecture: str | None) -> str:
        """Return the variables by weight, and whether segments can grow."""
        segments = "expandable_segments works" if self.expandable_segments else "no expandable_segments"
        return f"reads {', then '.join(self.variables)}; {segments}; {self.note}"


class Driver(Statement):
    """Which ROCm user space a kernel driver or a host kernel serves."""

    kernel: Text
    user_space: RangeText | None = None

    def summary(self, architecture: str | None) -> str:
        """Return the kernel side, and the user space it serves."""
        served = f" for ROCm {self.user_space}" if self.user_space else ""
        return f"{self.kernel}{served}; {self.note}"


class Libraries(Strict):
    """All statements, by library."""

    rocblas: list[MissingKernels]
    rccl: list[MissingKernels]
    hipblaslt: list[HipblasLt]
    attention: list[Attention]
    allocator: list[Allocator]
    drivers: list[Driver]

    @property
    def by_name(self) -> dict[str, list[Statement]]:
        """The statements under the name of their library."""
        return {library: list(getattr(self, library)) for library in type(self).model_fields}

    def of(self, *, architecture: str | None, torch: str, rocm: str | None) -> dict[str, list[Statement]]:
        """Return the statements on one combination, by library; an empty list where nothing is known.

        Args:
            architecture: gfx name; None for the CPU.
            torch: version of torch, such as "2.12.1".
            rocm: ROCm version, such as "7.2"; None for a CPU build.
        """
        axes: dict[str, Any] = {"architecture": architecture, "torch": torch, "rocm": rocm}
        return {name: [s for s in statements if s.when.matches(**axes)] for name, statements in self.by_name.items()}

"""Statements on kernel libraries, the files of an image that hold them, and on recorded sizes of images."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Annotated, Self

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from rocmatrix.matrix.statement import Date, Evidence, Selector, Strict, Text

ARCHITECTURE = "{architecture}"
LIMIT = 1.05  # an image may be this much larger than its baseline without a word


def _pattern(text: str) -> str:
    try:
        re.compile(text.replace(ARCHITECTURE, "gfx1100"))
    except re.error as error:
        raise PydanticCustomError(
            "pattern", "'{text}' is not a regular expression: {why}", {"text": text, "why": str(error)}
        ) from None
    return text


Pattern = Annotated[str, AfterValidator(_pattern), WithJsonSchema({"type": "string", "minLength": 1})]


class KernelLibrary(Strict):
    """A library with device code: where its files are, on which combinations it must be, what pruning may do.

    `files` is a regular expression searched in a file's path, and a path belongs to the first library that it fits.
    `index` finds the file without which the library does not look at an architecture's kernels. `prune` states that
    each file is for one architecture or family, so that whole files can go.
    """

    library: Text
    files: Pattern
    index: Pattern | None = None
    required: list[Selector] = Field(default_factory=list)
    prune: bool
    note: Text
    evidence: Evidence

    @cached_property
    def _files(self) -> re.Pattern[str]:
        return re.compile(self.files)

    def holds(self, path: str) -> bool:
        """Return whether a file is part of this library."""
        return self._files.search(path) is not None

    def index_of(self, architecture: str) -> re.Pattern[str] | None:
        """Return what finds the index of one architecture, None where the library has none."""
        return re.compile(self.index.replace(ARCHITECTURE, architecture)) if self.index else None

    def required_on(self, *, architecture: str, torch: str, rocm: str | None) -> bool:
        """Return whether an image of a combination must hold this library's kernels.

        Args:
            architecture: gfx name.
            torch: version of torch, such as "2.12.1".
            rocm: ROCm version, such as "7.2"; None for a CPU build.
        """
        return any(when.matches(architecture=architecture, torch=torch, rocm=rocm) for when in self.required)


class Measured(Strict):
    """The size of an image on a day: `bytes` of its files, unpacked. `of` states what was measured, stand-ins too."""

    bytes: Annotated[int, Field(gt=0)]
    date: Date
    of: Text
    reason: Text | None = None


class Baseline(Strict):
    """The sizes recorded for one cell, the newest last; each larger than the one before has its reason.

    `limit` is how many times the newest an image may take; beyond 1.05 it has a reason of its own.
    """

    cell: Text
    sizes: list[Measured] = Field(min_length=1)
    limit: Annotated[float, Field(ge=1.0, le=2.0)] = LIMIT
    limit_reason: Text | None = None

    @model_validator(mode="after")
    def _every_raise_has_a_reason(self) -> Self:
        for before, after in zip(self.sizes, self.sizes[1:], strict=False):
            if after.bytes > before.bytes and after.reason is None:
                raise PydanticCustomError(
                    "raised",
                    "the size goes up from {before} to {after} bytes with no `reason`",
                    {"before": before.bytes, "after": after.bytes},
                )
        if self.limit > LIMIT and self.limit_reason is None:
            raise PydanticCustomError("limit", "a limit beyond {limit} needs a `limit_reason`", {"limit": LIMIT})
        return self

    @property
    def newest(self) -> Measured:
        """The size that images are compared with."""
        return self.sizes[-1]

    @property
    def most(self) -> int:
        """The bytes that an image may take."""
        return int(self.newest.bytes * self.limit)

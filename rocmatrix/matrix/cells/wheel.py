"""Wheel files with the hash that each must have, and where that was read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from rocmatrix.matrix.statement import Confidence, Sha256, Strict, Text, VersionText

# As PEP 427 names them; the first two fields are package and version.
WheelFile = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._]+-[0-9][^-/]*(-[^-/]+){3,4}\.whl$")]


class Hashes(Strict):
    """The hashes of wheel files that were read in one place. `index` states who serves the files themselves.

    `pytorch` stands for the index of the release: PyTorch's own, or AMD's.
    """

    index: Literal["python", "pytorch"]
    sources: list[Text] = Field(min_length=1)
    confidence: Confidence
    sha256: dict[WheelFile, Sha256] = Field(min_length=1)

    def wheels(self) -> Iterator[tuple[str, Wheel]]:
        """Yield every file with what is known of it."""
        about: dict[str, Any] = {"index": self.index, "sources": self.sources, "confidence": self.confidence}
        for file, digest in self.sha256.items():
            name, version = file.split("-", 2)[:2]
            # Everything has been checked on the way in, and hundreds of files are read at every start.
            yield (
                file,
                Wheel.model_construct(name=name.replace("_", "-").lower(), version=version, sha256=digest, **about),
            )


class Wheel(Strict):
    """One wheel file: the package and version of its name, the hash it must have, and where that was read."""

    name: Text
    version: VersionText
    sha256: Sha256
    index: Literal["python", "pytorch"]
    sources: list[Text] = Field(min_length=1)
    confidence: Confidence

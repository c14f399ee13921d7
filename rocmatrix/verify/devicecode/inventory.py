"""The device code of a whole tree, summed up by library and target."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from rocmatrix.verify.devicecode.inspection import DeviceFile
from rocmatrix.verify.devicecode.target import Target


@dataclass(frozen=True, kw_only=True)
class Row:
    """Device code of a library for one target.

    `stored` counts the bytes of files that are for this target alone, `loaded` the bytes of code as it is
    loaded, both compressed and not. `evidence` states what the target was read from.
    """

    library: str
    target: Target
    files: int
    stored: int
    loaded: int
    evidence: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the row as plain data, the target in one word."""
        return asdict(self) | {"target": str(self.target)}


def rows(library: str, files: Iterable[DeviceFile]) -> tuple[Row, ...]:
    """Sum up the files of one library by target, in the order of names."""
    by_target: dict[Target, list[DeviceFile]] = {}
    for file in files:
        for target in file.targets:
            by_target.setdefault(target, []).append(file)
    return tuple(_row(library, target, by_target[target]) for target in sorted(by_target))


def _row(library: str, target: Target, files: list[DeviceFile]) -> Row:
    codes = [code for file in files for code in file.objects if code.target == target]
    reported = {code.evidence for code in codes} or {"file name"}
    return Row(
        library=library,
        target=target,
        files=len(files),
        stored=sum(file.size for file in files if len(file.targets) == 1),
        loaded=sum(code.size for code in codes),
        evidence=tuple(sorted(reported)),
    )

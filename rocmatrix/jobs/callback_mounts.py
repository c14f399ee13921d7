"""The files that --callback names: found on the host, and where a container has them."""

from __future__ import annotations

from pathlib import Path

from rocmatrix.containers import least_privilege
from rocmatrix.runtime.errors import RocmatrixError


def parts(named: str) -> list[tuple[str, str]]:
    """Return place and class of each callback in `FILE.py:Class,module:Class`; the trainer refuses what is neither."""
    split = [each.strip().rpartition(":") for each in named.split(",") if ":" in each]
    return [(place, kind) for place, _, kind in split]


def files(named: str) -> list[Path]:
    """Return the files of callbacks on the host.

    Raises:
        RocmatrixError: RM404 where one is not there.
    """
    found = [Path(place).resolve() for place, _ in parts(named) if place.endswith(".py")]
    for file in found:
        if not file.is_file():
            raise RocmatrixError("RM404", what="--callback names no file", where=str(file))
    return found


def inside(named: str) -> dict[str, str]:
    """Return --callback with each file where the container has it; a module has to be in the image."""
    numbered = iter(enumerate(files(named)))
    words = [
        f"{least_privilege.callback_path(*next(numbered)) if place.endswith('.py') else place}:{kind}"
        for place, kind in parts(named)
    ]
    return {"callback": ",".join(words)} if words else {}

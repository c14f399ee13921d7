"""Parts as one packed tar: the same parts give the same bytes, and nothing in it identifies who packed them."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterable, Sequence

from rocmatrix.evidence.bundle.clean import leaks
from rocmatrix.evidence.bundle.contents import MOST_BYTES, Part
from rocmatrix.evidence.bundle.identity import Identity
from rocmatrix.runtime.errors import RocmatrixError


def bounded(parts: Iterable[Part], *, most: int = MOST_BYTES) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """Return the parts that fit into `most` bytes together, and those that are left out.

    Each part is taken that fits next to those taken before it: a small one may follow a large one that did not fit.
    """
    kept: list[Part] = []
    left_out: list[Part] = []
    for part in parts:
        fits = sum(each.size for each in kept) + part.size <= most
        (kept if fits else left_out).append(part)
    return tuple(kept), tuple(left_out)


def checked(parts: Sequence[Part], identity: Identity) -> None:
    """Raise RM679 where a part, by its name or its text, still names this machine or its user."""
    for part in parts:
        if found := leaks(f"{part.name}\n{part.text}", identity):
            raise RocmatrixError("RM679", what=f"it would hold {' and '.join(found)}", where=part.name)


def packed(parts: Sequence[Part]) -> bytes:
    """Return the tar of the parts, packed by gzip: no times, no owners, in the order of their names."""
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(filename="", fileobj=buffer, mode="wb", mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for part in sorted(parts, key=lambda each: each.name):
            content = part.text.encode()
            member = tarfile.TarInfo(f"bundle/{part.name}")
            member.size, member.mode = len(content), 0o644
            archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()

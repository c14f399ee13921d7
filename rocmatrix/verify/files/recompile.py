"""Compile sources again and compare the byte code stored next to them. The image's own Python runs this, alone.

`rocmatrix.verify.files.byte_code` starts it with `python -I -S -B -c`, so it imports the standard library only. The
files that are compared are never unmarshalled: `marshal` trusts its input, so what was stored is only parsed here, to
a form in which it does not matter which objects happened to be shared when it was written. One line of JSON states how
many files were compared and which differ, each with why. The layout of code objects is CPython's of 3.11 to 3.14
(Python/marshal.c, r_object), where it did not change but for slices, which 3.14 added.
"""

from __future__ import annotations

import importlib.util
import json
import marshal
import multiprocessing
import os
import struct
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

BY_TIME, UNCHECKED = 0, 1  # PEP 552: named by its source's time and size; or by its hash, never looked at again
HEADER = 16
DEPTH = 500
FLAG_REF = 0x80
SINGLE = "0NFTS."
STRINGS = {"s": 4, "t": 4, "u": 4, "a": 4, "A": 4, "z": 1, "Z": 1}
NUMBERS = {"i": 4, "g": 8, "y": 16}
# In the order of Python/marshal.c: longs first, then objects, then one more long and two more objects.
COMPOUND = {"c": "lllll" + "oooooooo" + "l" + "oo", ":": "ooo"}


class NotCodeError(Exception):
    """What was stored cannot be parsed."""


class Parser:
    """Marshalled data as nested tuples, every reference replaced by what it refers to."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.depth = data, 0, 0
        self.seen: list[object] = []

    def whole(self) -> object:
        """Return the one object that the data is. Raises NotCodeError, also for anything behind it."""
        found = self._value()
        if self.at != len(self.data):
            raise NotCodeError("bytes follow the code")
        return found

    def _take(self, count: int) -> bytes:
        if count < 0 or self.at + count > len(self.data):
            raise NotCodeError("the file ends too early")
        piece = self.data[self.at : self.at + count]
        self.at += count
        return piece

    def _long(self) -> int:
        return int(struct.unpack("<i", self._take(4))[0])

    def _value(self) -> object:
        byte = self._take(1)[0]
        kind = chr(byte & ~FLAG_REF)
        place = None
        if byte & FLAG_REF:
            place = len(self.seen)
            self.seen.append(None)
        self.depth += 1
        if self.depth > DEPTH:
            raise NotCodeError("nested too deeply")
        found = self._of_kind(kind)
        self.depth -= 1
        if place is not None:
            self.seen[place] = found
        return found

    def _of_kind(self, kind: str) -> object:
        if kind in SINGLE:
            return (kind,)
        if kind in STRINGS or kind in NUMBERS or kind == "l":
            return self._plain(kind)
        if kind in "([<>)":
            return self._several(kind, self._take(1)[0] if kind == ")" else self._long())
        if kind in COMPOUND:
            return (kind, *(self._long() if field == "l" else self._value() for field in COMPOUND[kind]))
        if kind == "r":
            return self._reference()
        raise NotCodeError(f"an object of kind {kind!r}")

    def _plain(self, kind: str) -> object:
        if kind in NUMBERS:
            return (kind, self._take(NUMBERS[kind]))
        size = self._take(1)[0] if STRINGS.get(kind) == 1 else self._long()
        if kind == "l":
            return (kind, size, self._take(2 * abs(size)))
        return ("b" if kind == "s" else "u", self._take(size))

    def _reference(self) -> object:
        place = self._long()
        if not 0 <= place < len(self.seen) or self.seen[place] is None:
            raise NotCodeError("a reference to nothing")
        return self.seen[place]

    def _several(self, kind: str, size: int) -> object:
        if not 0 <= size <= len(self.data):
            raise NotCodeError("the file ends too early")
        items = tuple(self._value() for _ in range(size))
        if kind in "<>":  # a set has no order of its own
            return (kind, tuple(sorted(items, key=repr)))
        return ("(" if kind == ")" else kind, items)


def canonical(data: bytes) -> object:
    """Parse marshalled data. Raises NotCodeError."""
    return Parser(data).whole()


def difference(source: bytes, stored: bytes, path: str) -> str | None:
    """Return how `stored`, the bytes of a .pyc, differs from what `source` compiles to under the name `path`.

    Args:
        source: text of the module.
        stored: content of the .pyc file.
        path: name to compile the source under.
    """
    if (wrong := mislabelled(source, stored)) is not None:
        return wrong
    try:
        again = marshal.dumps(compile(source, path, "exec", dont_inherit=True))
        same = stored[HEADER:] == again or canonical(stored[HEADER:]) == canonical(again)
    except (SyntaxError, ValueError):
        return "of a source that does not compile"
    except (NotCodeError, RecursionError) as error:
        return f"no code: {error}"
    return None if same else "not what its source compiles to"


def mislabelled(source: bytes, stored: bytes) -> str | None:
    """Return what is wrong with the head of a .pyc: of another Python, or of another source."""
    flags = int.from_bytes(stored[4:8], "little")
    if stored[:4] != importlib.util.MAGIC_NUMBER:
        return "of another Python"
    if flags not in (BY_TIME, UNCHECKED):
        return "named in another way than by time or unchecked hash"
    by_hash = flags == UNCHECKED and stored[8:HEADER] == importlib.util.source_hash(source)
    by_size = flags == BY_TIME and int.from_bytes(stored[12:HEADER], "little") == len(source) & 0xFFFFFFFF
    return None if by_hash or by_size else "of another source"


def compared(path: Path) -> tuple[str, str | None]:
    """Compare one .pyc file with the source next to its folder."""
    stem = path.name.removesuffix(f".{sys.implementation.cache_tag}.pyc")
    source = path.parent.parent / f"{stem}.py"
    try:
        return str(path), difference(source.read_bytes(), path.read_bytes(), str(source))
    except OSError as error:
        return str(path), f"cannot be read: {error.strerror}"


def byte_code(root: str) -> Iterator[Path]:
    """Yield every .pyc below `root`."""
    for folder, _, names in os.walk(root):
        if Path(folder).name == "__pycache__":
            yield from (Path(folder, name) for name in names if name.endswith(".pyc"))


def main(argv: Sequence[str]) -> int:
    """Compare everything below the folders that are named; print one line of JSON."""
    sys.setrecursionlimit(20 * DEPTH)
    paths = sorted(path for root in argv for path in byte_code(root))
    with multiprocessing.Pool() as pool:
        found = pool.map(compared, paths, chunksize=16)
    print(json.dumps({"compared": len(found), "different": [row for row in found if row[1]]}))
    return 0


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    sys.exit(main(sys.argv[1:]))

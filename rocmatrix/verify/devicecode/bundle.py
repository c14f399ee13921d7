"""Clang offload bundles, plain and compressed, one after another as in a library's `.hip_fatbin`.

A plain bundle is `__CLANG_OFFLOAD_BUNDLE__`, a count, and for each entry offset, size and ID; a compressed
one is `CCOB` with version, method, sizes and hash, then zlib or zstd data that unfolds to a plain bundle.
The table comes first, so a few kilobytes are unfolded and not the whole. Sources: llvm-project
clang/docs/ClangOffloadBundler.rst, llvm/lib/Object/OffloadBundle.cpp (headers 1 to 3, method numbers),
llvm/include/llvm/Support/Compression.h.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from rocmatrix.verify.devicecode import elf
from rocmatrix.verify.devicecode.code import CodeObject
from rocmatrix.verify.devicecode.reading import DamagedError, read_at
from rocmatrix.verify.devicecode.target import Target, parse_entry_id

MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
COMPRESSED_MAGIC = b"CCOB"
ZLIB, ZSTD = 0, 1
MAX_ENTRIES, MAX_ID = 4096, 1024  # a bundle has an entry a target, an ID some fifty characters
CHUNK = 4096
SEEN_OF_COMPRESSED = 64 * 1024  # unfolded bytes within which an entry is compared with the code it names
_ENTRY = struct.Struct("<QQQ")
_HEADERS = {1: struct.Struct("<4sHHIQ"), 2: struct.Struct("<4sHHIIQ"), 3: struct.Struct("<4sHHQQQ")}

Take = Callable[[int], bytes]  # the next bytes, exactly as many


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A row of a bundle's table; `offset` counts from the bundle's first byte. The host's row has no target."""

    offset: int
    size: int
    target: Target | None


def read_all(file: BinaryIO, start: int, end: int) -> Iterator[CodeObject]:
    """Yield the code in every bundle or bare code object between two offsets. Raises `DamagedError`.

    Args:
        file: seekable file.
        start: first offset in bytes.
        end: offset in bytes after the last one.
    """
    at = _skip_padding(file, start, end)
    while at < end:
        found, after = _read_one(file, at, end)
        yield from found
        at = _skip_padding(file, after, end)


def _read_one(file: BinaryIO, at: int, end: int) -> tuple[list[CodeObject], int]:
    magic = read_at(file, at, min(len(MAGIC), end - at), "a bundle")
    if magic == MAGIC:
        return _read_plain(file, at, end)
    if magic.startswith(COMPRESSED_MAGIC):
        return _read_compressed(file, at, end)
    if magic.startswith(elf.MAGIC):
        header = elf.read_header(file, at=at)
        size = elf.size_of(file, header, at=at)
        return [CodeObject(target=elf.code_object_target(header), size=size, evidence="ELF flags")], at + size
    raise DamagedError(f"neither a bundle nor a code object at {at}")


def _read_plain(file: BinaryIO, start: int, end: int) -> tuple[list[CodeObject], int]:
    file.seek(start)
    entries, table_size = read_table(_taker(file.read))
    last = max((entry.offset + entry.size for entry in entries), default=table_size)
    if start + last > end:
        raise DamagedError(f"the bundle at {start} names code that ends at {last}, beyond its {end - start} bytes")
    for entry in entries:
        if entry.target is not None and entry.size:
            file.seek(start + entry.offset)
            _compare(entry, file.read(min(entry.size, elf.HEADER.size)))
    return _objects(entries), start + max(last, table_size)


def _objects(entries: list[Entry]) -> list[CodeObject]:
    return [
        CodeObject(target=entry.target, size=entry.size, evidence="bundle entry ID")
        for entry in entries
        if entry.target is not None and entry.size
    ]


def read_table(take: Take) -> tuple[list[Entry], int]:
    """Read a plain bundle's table with `take`. Returns its rows and its size in bytes. Raises `DamagedError`."""
    if take(len(MAGIC)) != MAGIC:
        raise DamagedError("no bundle")
    count = int.from_bytes(take(8), "little")
    if count > MAX_ENTRIES:
        raise DamagedError(f"a bundle of {count} entries")
    entries, size = [], len(MAGIC) + 8
    for _ in range(count):
        offset, code_size, id_size = _ENTRY.unpack(take(_ENTRY.size))
        entries.append(Entry(offset=offset, size=code_size, target=_target(take, id_size)))
        size += _ENTRY.size + id_size
    if any(entry.size and entry.offset < size for entry in entries):
        raise DamagedError("a bundle whose code begins within its table")
    return entries, size


def _target(take: Take, size: int) -> Target | None:
    if size > MAX_ID:
        raise DamagedError(f"a bundle entry ID of {size} characters")
    text = take(size).decode("ascii", "replace")
    target = parse_entry_id(text)
    if target is None and "amdgcn-amd-amdhsa" in text:
        raise DamagedError(f"bundle entry ID {text!r}")
    return target


def _compare(entry: Entry, code: bytes) -> None:
    """Raise `DamagedError` when code is by its own header for another processor than its entry."""
    if entry.target is None or not code.startswith(elf.MAGIC) or len(code) < elf.HEADER.size:
        return  # the host's row, or bitcode, which says nothing of the kind
    own = elf.code_object_target(elf.read_header(io.BytesIO(code)))
    if own.processor != entry.target.processor.removesuffix("-strict"):
        raise DamagedError(f"a bundle entry for {entry.target} holds code for {own}")


def _read_compressed(file: BinaryIO, start: int, end: int) -> tuple[list[CodeObject], int]:
    method, total, unfolded, begin = _compressed_header(file, start)
    if total is not None and (start + total > end or start + total < begin):
        raise DamagedError(f"a compressed bundle of {total} bytes at {start}, where {end - start} are left")
    data = _Unfolding(file, begin, end if total is None else start + total, method)
    entries, _ = read_table(data.take)
    if any(entry.offset + entry.size > unfolded for entry in entries):
        raise DamagedError(f"the compressed bundle at {start} names code beyond its {unfolded} unfolded bytes")
    _compare_first(entries, data)
    after = data.run_to_end(unfolded) if total is None else start + total
    return _objects(entries), after


def _compressed_header(file: BinaryIO, start: int) -> tuple[int, int | None, int, int]:
    """Return method, total size where the version has it, unfolded size, and where the data begins."""
    version = int.from_bytes(read_at(file, start + 4, 2, "a compressed bundle"), "little")
    layout = _HEADERS.get(version)
    if layout is None:
        raise DamagedError(f"a compressed bundle of version {version}, known are 1 to 3")
    _, _, method, *sizes, _ = layout.unpack(read_at(file, start, layout.size, "a compressed bundle's header"))
    return method, sizes[0] if len(sizes) == 2 else None, sizes[-1], start + layout.size


def _compare_first(entries: list[Entry], data: _Unfolding) -> None:
    """Compare the first code object with its entry, if it is near enough to be unfolded for that."""
    first = min((e for e in entries if e.target is not None and e.size), key=lambda e: e.offset, default=None)
    if first is not None and first.offset + elf.HEADER.size <= SEEN_OF_COMPRESSED:
        data.take(first.offset - data.taken)
        _compare(first, data.take(min(first.size, elf.HEADER.size)))


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


def _decompressor(method: int) -> _Decompressor:
    import zstandard

    if method == ZLIB:
        return zlib.decompressobj()
    if method == ZSTD:
        return zstandard.ZstdDecompressor(max_window_size=2**31).decompressobj()
    raise DamagedError(f"compression method {method}, known are {ZLIB} (zlib) and {ZSTD} (zstd)")


class _Unfolding:
    """Compressed data between two offsets, unfolded front to back and only as far as is asked for."""

    def __init__(self, file: BinaryIO, begin: int, end: int, method: int) -> None:
        self._file, self._at, self._end = file, begin, end
        self._decompressor = _decompressor(method)
        self._ready = b""
        self.taken = 0

    def take(self, size: int) -> bytes:
        """Return the next `size` unfolded bytes. Raises `DamagedError` when there are fewer."""
        while len(self._ready) < size:
            if not self._unfold():
                raise DamagedError(f"compressed data ends {size - len(self._ready)} bytes early")
        taken, self._ready = self._ready[:size], self._ready[size:]
        self.taken += size
        return taken

    def run_to_end(self, limit: int) -> int:
        """Unfold the rest, drop it, and return the offset behind the data. Raises `DamagedError` past `limit` bytes."""
        total = self.taken + len(self._ready)
        self._ready = b""
        while self._unfold():
            total, self._ready = total + len(self._ready), b""
            if total > limit:
                raise DamagedError(f"compressed data unfolds to more than the {limit} bytes it names")
        if not self._decompressor.eof:
            raise DamagedError("compressed data has no end")
        return self._at - len(self._decompressor.unused_data)

    def _unfold(self) -> bool:
        import zstandard

        if self._decompressor.eof or self._at >= self._end:
            return False
        chunk = read_at(self._file, self._at, min(CHUNK, self._end - self._at), "compressed data")
        self._at += len(chunk)
        try:
            self._ready += self._decompressor.decompress(chunk)
        except (zlib.error, zstandard.ZstdError) as error:
            raise DamagedError(f"compressed data: {error}") from error
        return True


def _taker(read: Callable[[int], bytes]) -> Take:
    def take(size: int) -> bytes:
        data = read(size)
        if len(data) != size:
            raise DamagedError("the file ends within a bundle's table")
        return data

    return take


def _skip_padding(file: BinaryIO, at: int, end: int) -> int:
    """Return the offset of the next byte that is not zero: bundles are aligned to pages."""
    while at < end:
        block = read_at(file, at, min(CHUNK, end - at), "padding")
        kept = block.lstrip(b"\0")
        if kept:
            return at + len(block) - len(kept)
        at += len(block)
    return end

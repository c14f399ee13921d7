"""A log as chunks of whole lines: from a file or standard input, packed or not, in any encoding, in bounded memory."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO

from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.input import named_path

CHUNK = 4 << 20
LONGEST_LINE = 8 << 20  # a longer one is cut: binary files have no lines at all
UTF16 = (b"\xff\xfe", b"\xfe\xff")
PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_BREAKS = (EOFError, OSError, zlib.error, lzma.LZMAError)


def opened(path: Path) -> BinaryIO:
    """Open a log. Raises RM610 where there is nothing to read. A named pipe without a writer counts as empty."""
    try:
        return named_path.opened(path)
    except OSError as error:
        raise RocmatrixError("RM610", what=str(error.strerror), where=str(path)) from error


def chunks(stream: BinaryIO, *, name: str, size: int = CHUNK) -> Iterator[bytes]:
    """Yield a log in whole lines. Raises RM610 where it is empty, RM611 where a packed one cannot be unpacked at all.

    A packed log that breaks off, as one of a machine that died, counts as far as it goes.

    Args:
        stream: the log, plain or packed.
        name: name of the log in messages, such as its path.
        size: bytes to read at once.
    """
    buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(stream)  # type: ignore[type-var]
    try:
        head = buffered.peek(8)[:8]
    except OSError as error:  # a device, or a disk that is broken
        raise RocmatrixError("RM610", what=str(error.strerror), where=name) from error
    if not head:
        raise RocmatrixError("RM610", what="it is empty", where=name)
    packing = next((packing for magic, packing in PACKED.items() if head.startswith(magic)), None)
    plain = _unpacked(packing, buffered) if packing else buffered
    blocks = _read(plain, packing, name, size)
    yield from _whole_lines(_narrowed(blocks) if head.startswith(UTF16) else blocks)


def _unpacked(packing: str, packed: IO[bytes]) -> IO[bytes]:
    if packing == "zstd":
        import zstandard

        return zstandard.ZstdDecompressor().stream_reader(packed)
    openers = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
    return openers[packing](packed)  # type: ignore[operator, no-any-return]


def _read(stream: IO[bytes], packing: str | None, name: str, size: int) -> Iterator[bytes]:
    if packing is None:
        while data := stream.read(size):
            yield data
        return
    gathered = bytearray()
    try:
        # One block of the packed file at a time: what comes before a break is not lost with it.
        while data := stream.read1(size):  # type: ignore[attr-defined]
            gathered += data
            if len(gathered) >= size:
                yield bytes(gathered)
                gathered = bytearray()
    except Exception as error:
        if not isinstance(error, _BREAKS) and type(error).__name__ != "ZstdError":
            raise
        if not gathered and not stream.tell():
            raise RocmatrixError("RM611", what=f"not sound {packing}: {error}", where=name) from error
    if gathered:
        yield bytes(gathered)


def _narrowed(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Turn UTF-16 with its mark into UTF-8; what is not sound becomes U+FFFD."""
    decoder = codecs.getincrementaldecoder("utf-16")(errors="replace")
    for block in blocks:
        yield decoder.decode(block).encode(errors="replace")
    yield decoder.decode(b"", final=True).encode(errors="replace")


def _whole_lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield whole lines. The last one, which may have no end, comes with those before it: it belongs to them."""
    rest, held = b"", b""
    for block in blocks:
        data = rest + block
        cut = data.rfind(b"\n") + 1 or (len(data) if len(data) > LONGEST_LINE else 0)
        rest = data[cut:]
        if cut:
            if held:
                yield held
            held = data[:cut]
    if held or rest:
        yield held + rest

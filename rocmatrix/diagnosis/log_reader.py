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

from rocmatrix.diagnosis.intake import recording
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.input import named_path

CHUNK = 15 << 18  # bytes: a search takes its start anew for each, and memory by its size: 300 MB in all are the limit
LONGEST_LINE = CHUNK - 1  # a longer one is cut: binary files have no lines at all
SNIFFED = 4096
UTF16 = (b"\xff\xfe", b"\xfe\xff")
PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
# files that are no text, what they are, and how the text is had from them
FOREIGN = (
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "Unpack it: `7z x NAME`, then name the log or the folder."),
    (b"Rar!\x1a\x07", "a rar archive", "Unpack it, then name the log or the folder."),
    (b"PK\x03\x04", "a zip archive within another file", "Unpack it, then name the log or the folder."),
    (b"LPKSHHRH", "a file of systemd's journal", "Give its text: `journalctl --file NAME | ./invokew diagnose -`."),
    (b"ElfFile\0", "an event log of Windows", "Give its text: `wevtutil qe NAME /lf:true /f:text > events.txt`."),
    (b"\x7fELF", "a program or a core dump", "Give the text of `coredumpctl info`, or of `gdb -batch -ex bt`."),
    (b"\x89PNG\r\n", "a picture", "Give the text itself: copy it from the terminal."),
    (b"\xff\xd8\xff", "a picture", "Give the text itself: copy it from the terminal."),
    (b"%PDF-", "a PDF", "Give its text: `pdftotext NAME -`, or copy it."),
)
_BREAKS = (EOFError, OSError, zlib.error, lzma.LZMAError)


def opened(path: Path) -> BinaryIO:
    """Open a log. Raises RM610 where there is nothing to read. A named pipe without a writer counts as empty."""
    try:
        return named_path.opened(path)
    except OSError as error:
        raise RocmatrixError("RM610", what=str(error.strerror), where=str(path)) from error


def chunks(stream: BinaryIO, *, name: str, size: int = CHUNK) -> Iterator[bytes]:
    """Yield a log in whole lines. Raises RM610 where it is empty, RM611 where a packed one cannot be unpacked at all or
    it is a file of another kind.

    A packed log that breaks off, as one of a machine that died, counts as far as it goes.

    Args:
        stream: the log, plain or packed.
        name: name of the log in messages, such as its path.
        size: bytes to read at once.
    """
    buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(stream)  # type: ignore[type-var]
    try:
        head = buffered.peek(SNIFFED)[:SNIFFED]
    except OSError as error:  # a device, or a disk that is broken
        raise RocmatrixError("RM610", what=str(error.strerror), where=name) from error
    if not head:
        raise RocmatrixError("RM610", what="it is empty", where=name)
    for magic, what, advice in FOREIGN:
        if head.startswith(magic):
            raise RocmatrixError("RM611", what=f"it is {what}, and no text", where=name, next=advice)
    packing = next((packing for magic, packing in PACKED.items() if head.startswith(magic)), None)
    plain = _unpacked(packing, buffered) if packing else buffered
    blocks = _read(plain, packing, name, size)
    lines = _whole_lines(_narrowed(blocks) if head.startswith(UTF16) else blocks)
    if recording.is_recording(head):
        lines = _whole_lines(recording.played(lines))
    yield from lines


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


def whole(data: bytes) -> int:
    """Return how many bytes of data are whole lines; of a line that is too long all, or all of its whole records."""
    end = data.rfind(b"\n") + 1
    if end or len(data) <= LONGEST_LINE:
        return end
    records = data.rfind(b"},") + 2
    return records if records > len(data) // 2 else len(data)


def _whole_lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield whole lines. The last one, which may have no end, comes with those before it: it belongs to them."""
    rest, held = b"", b""
    for block in blocks:
        data = rest + block
        cut = whole(data)
        rest = data[cut:]
        if cut:
            if held:
                yield held
            held = data[:cut]
    if held or rest:
        yield held + rest

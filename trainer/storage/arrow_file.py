"""An Arrow file written batch by batch in the caller's thread, in polars' own bytes.

`sink_ipc` would take frames from a Python generator in a thread of polars. Where it ends early (Ctrl-C, a full disk),
it leaves that thread in the generator: at the interpreter's end it waits for the GIL, Python before 3.14 then ends it
by unwinding, and Rust aborts the process. Here polars encodes one batch at a time, and no thread of it has Python code.

Format: https://arrow.apache.org/docs/format/Columnar.html#ipc-file-format
"""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import BinaryIO

import polars as pl

BATCH = 16_384  # rows of one record batch
MAGIC = b"ARROW1"
END = b"\xff\xff\xff\xff\0\0\0\0"  # follows the last batch
BLOCK = struct.Struct("<qi4xq")  # of a record batch: offset in the file, bytes of its description, bytes of its values
FIRST_FIELD = 4  # bytes of a table's layout (vtable) before the places of its fields
SCHEMA, DICTIONARIES, BATCHES = 1, 2, 3  # fields of the footer, by number


class ArrowFile:
    """Writes frames of one schema to a new file; `finish` makes it readable."""

    def __init__(self, path: Path, schema: pl.Schema) -> None:
        self._path, self._waiting = path, pl.DataFrame(schema=schema)
        self._stream: BinaryIO | None = None
        self._footer, self._blocks = b"", list[tuple[int, int, int]]()

    def write(self, frame: pl.DataFrame) -> None:
        """Append rows; those that fill no batch wait for the next ones.

        Raises:
            OSError: where they cannot be written.
        """
        self._waiting = self._waiting.vstack(frame)
        while len(self._waiting) >= BATCH:
            self._add(self._waiting[:BATCH])
            self._waiting = self._waiting[BATCH:]

    def finish(self) -> None:
        """Write the rows that wait, and the footer."""
        if len(self._waiting) or self._stream is None:
            self._add(self._waiting)
        assert self._stream is not None
        footer = with_blocks(self._footer, self._blocks)
        self._stream.write(END + footer + struct.pack("<i", len(footer)) + MAGIC)
        self.close()

    def close(self) -> None:
        """Close the file, whole or not."""
        if self._stream is not None:
            self._stream.close()

    def _add(self, rows: pl.DataFrame) -> None:
        if self._stream is None:
            self._begin(rows)
            return
        content = io.BytesIO()
        rows.rechunk().write_ipc_stream(content)
        first = self._blocks[0]
        offset = self._stream.tell()
        message = content.getbuffer()[first[0] : -len(END)]  # behind the schema, which is as long as in the file
        values = len(message) - first[1]
        self._blocks.append((offset, first[1], values))
        self._stream.write(message)

    def _begin(self, rows: pl.DataFrame) -> None:
        """Let polars write the first batch as a file; what follows replaces its end."""
        rows.rechunk().write_ipc(self._path, record_batch_size=BATCH)
        self._stream = self._path.open("r+b")
        self._stream.seek(-4 - len(MAGIC), io.SEEK_END)
        length = struct.unpack("<i", self._stream.read(4))[0]
        begin = self._stream.seek(-4 - len(MAGIC) - length, io.SEEK_END)
        self._footer = self._stream.read(length)
        self._blocks = blocks_of(self._footer)
        end = begin - len(END)
        self._stream.truncate(end)
        self._stream.seek(end)


def blocks_of(footer: bytes) -> list[tuple[int, int, int]]:
    """Return the record batches that a footer lists: offset, bytes of the description, bytes of the values."""
    vector = _target(footer, BATCHES)
    (count,) = struct.unpack_from("<I", footer, vector)
    return [BLOCK.unpack_from(footer, vector + 4 + BLOCK.size * place) for place in range(count)]


def with_blocks(footer: bytes, blocks: list[tuple[int, int, int]]) -> bytes:
    """Return the footer with other record batches; offsets that lead across them are moved."""
    vector, widened = _target(footer, BATCHES), bytearray(footer)
    end = vector + 4 + BLOCK.size * len(blocks_of(footer))
    moved = vector + 4 + BLOCK.size * len(blocks) - end
    for field in (SCHEMA, DICTIONARIES):
        place = _place(footer, field)
        (distance,) = struct.unpack_from("<I", footer, place)
        if place + distance >= end:
            struct.pack_into("<I", widened, place, distance + moved)
    packed = b"".join(BLOCK.pack(*block) for block in blocks)
    widened[vector:end] = struct.pack("<I", len(blocks)) + packed
    return bytes(widened)


def _place(footer: bytes, field: int) -> int:
    """Return where the footer's table has the offset of a field."""
    (root,) = struct.unpack_from("<I", footer)
    (back,) = struct.unpack_from("<i", footer, root)
    (place,) = struct.unpack_from("<H", footer, root - back + FIRST_FIELD + 2 * field)
    return int(root + place)


def _target(footer: bytes, field: int) -> int:
    place = _place(footer, field)
    return int(place + struct.unpack_from("<I", footer, place)[0])

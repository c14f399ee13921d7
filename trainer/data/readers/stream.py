"""A text file as blocks of whole lines in UTF-8, whatever it was compressed or encoded with."""

from __future__ import annotations

import bz2
import codecs
import contextlib
import lzma
import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol, cast

import numpy as np

from trainer.data.readers.forms.other_files import (
    ANY_BINARY,
    SHEET,
    SHEETS,
    OtherFile,
    binary_file,
    folder_advice,
    is_binary,
    text_file,
)
from trainer.data.readers.forms.spellings import SPELLINGS
from trainer.runtime.errors import TrainerError

READ = 1 << 22  # bytes at a time
TAIL = 1 << 13
MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\xfd7zXZ": "xz"}
BOMS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


# Encodings older than UTF-8, known by words of a header; Windows-1252, that of Western Europe, by its letters
OLDER = ("cp932", "gb18030", "cp949", "big5", "cp1251", "cp1254", "cp1250", "cp1253", "cp1255", "cp1256", "cp874")
WORDS = tuple(
    word for words in SPELLINGS.values() for word in words if len(word) > 1 and b"?" in word.encode("cp1252", "replace")
)
NOT_WESTERN = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x81\x8d\x8f\x90\x9d\xff]")  # none of them is a letter


class CutOffError(Exception):
    """The compressed data ends before its end mark."""


@dataclass(frozen=True, kw_only=True)
class LineBlock:
    """Whole lines as they stand in the file. `first` is the number of the first, from 1; `cut_off`: the last
    line has no end, or the compressed data broke off behind it; `open_end`: it only has no end, and `before` is what
    stands in front of the block, at most TAIL bytes."""

    text: bytes
    first: int
    cut_off: bool = False
    open_end: bool = False
    before: bytes = b""


def kind_of(path: Path) -> tuple[str, str]:
    """Return compression (`none`, `gzip`, `zstd`, `zip`, `bzip2`, `xz`) and encoding of the file at `path`.

    Raises:
        TrainerError: RM510 where it cannot be opened or is no text.
    """
    try:
        with path.open("rb") as file:
            head = file.read(READ)
    except IsADirectoryError as error:
        advice = {"next": joined} if (joined := folder_advice(path)) else {}
        raise TrainerError("RM510", what="it is a folder", where=str(path), **advice) from error
    except OSError as error:
        raise TrainerError("RM510", what=str(error.strerror or error), where=str(path)) from error
    packed = next((name for magic, name in MAGIC.items() if head.startswith(magic)), "none")
    if packed == "zip" and any(mark in head for mark in SHEETS):
        raise _other_kind(path, SHEET)
    if packed != "none":
        head = _first_bytes(path, packed)
    encoding = _encoding(head)
    begin = head[:4096].decode(encoding, errors="ignore").lstrip("\ufeff \r\n\t")
    if found := binary_file(head[:4096]) or text_file(begin):
        raise _other_kind(path, found)
    return packed, encoding


def _other_kind(path: Path, found: OtherFile) -> TrainerError:
    what = f"the file is {found.kind}, not a table of text"
    return TrainerError("RM510", what=what, where=str(path), next=found.advice)


def _first_bytes(path: Path, packed: str) -> bytes:
    with contextlib.suppress(CutOffError):
        return next((piece for piece in _unpacked(path, packed) if piece), b"")
    return b""


def _encoding(head: bytes) -> str:
    for bom, name in BOMS.items():
        if head.startswith(bom):
            return name
    if len(head) >= 8 and head.count(b"\x00") >= len(head) // 3:
        return "utf-16-le" if head[1] == 0 else "utf-16-be"
    return "utf-8" if _is_utf8(head) else _older(head)


def _is_utf8(head: bytes) -> bool:
    """Return whether bytes are UTF-8, whose last character may be cut."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def _older(head: bytes) -> str:
    """Return the encoding of text that is not UTF-8; utf-8, which cannot read it, for what is no known text."""
    first = head[:4096]
    for name in OLDER:
        forms = {form.encode(name, "ignore") for word in WORDS for form in (word, word.capitalize())}
        if any(len(form) > 1 and form in first and not form.isascii() for form in forms):
            return name
    return "utf-8" if NOT_WESTERN.search(head) else "cp1252"


class Unpacker(Protocol):
    """What zlib, zstandard and Python's own zstd have in common."""

    @property
    def eof(self) -> bool:
        """Whether the end mark was met."""

    @property
    def unused_data(self) -> bytes:
        """What stands behind the end mark."""

    def decompress(self, data: bytes, /) -> bytes:
        """Return what `data` adds."""


def _unpacked(path: Path, packed: str) -> Iterator[bytes]:
    """Yield the file's content; what was unpacked before the data breaks off is yielded, too.

    Raises:
        CutOffError: where compressed data ends early or is damaged.
    """
    unpacker = _unpacker(path, packed)
    with contextlib.ExitStack() as stack:
        file = _member(path, stack) if packed == "zip" else stack.enter_context(path.open("rb"))
        while data := _read(file) if packed == "zip" else file.read(READ):
            if unpacker is None:
                yield data
                continue
            while data:
                if unpacker.eof:  # one packed file may be several, one behind the other
                    unpacker = _unpacker(path, packed) or unpacker
                yield _unpack(unpacker, data)
                data = unpacker.unused_data
    if unpacker is not None and not unpacker.eof:
        raise CutOffError("no end mark")


def _read(member: IO[bytes]) -> bytes:
    """Return bytes of a zip's member; damaged data ends in as many exceptions as there are methods of packing."""
    try:
        return member.read(READ)
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, EOFError) as error:
        raise CutOffError(str(error)) from error


def _member(path: Path, stack: contextlib.ExitStack) -> IO[bytes]:
    """Return the only file in a zip, or the only .csv in it, opened; `stack` closes it.

    Raises:
        TrainerError: RM510 where there is no such file, or it needs a password.
        CutOffError: where the zip's table of contents, at its end, is missing.
    """
    try:
        archive = stack.enter_context(zipfile.ZipFile(path))
    except (zipfile.BadZipFile, OSError) as error:
        raise CutOffError(str(error)) from error
    hidden = ("__MACOSX/", ".")
    files = [each for each in archive.infolist() if not each.is_dir() and not each.filename.startswith(hidden)]
    tables = [each for each in files if each.filename.lower().endswith(".csv")]
    chosen = files if len(files) == 1 else tables
    if len(chosen) != 1:
        named = ", ".join(each.filename for each in files[:4]) + (" ..." if len(files) > 4 else "")
        what = f"the zip holds {len(files)} files: {named}" if files else "the zip holds no file"
        raise TrainerError("RM510", what=what, where=str(path), next="Unpack it, and give one of its files.")
    if chosen[0].flag_bits & 1:
        raise TrainerError("RM510", what="the zip needs a password", where=str(path), next="Unpack it first.")
    try:
        return stack.enter_context(archive.open(chosen[0]))
    except (NotImplementedError, zipfile.BadZipFile) as error:
        what = f"{chosen[0].filename} in the zip cannot be unpacked: {error}"
        raise TrainerError("RM510", what=what, where=str(path), next="Unpack it with another program.") from error


def _unpacker(path: Path, packed: str) -> Unpacker | None:
    made = {"gzip": lambda: zlib.decompressobj(wbits=31), "bzip2": bz2.BZ2Decompressor, "xz": lzma.LZMADecompressor}
    if packed in made:
        return cast(Unpacker, made[packed]())
    return _zstd(path) if packed == "zstd" else None


def _unpack(unpacker: Unpacker, data: bytes) -> bytes:
    try:
        return unpacker.decompress(data)
    except Exception as error:  # zlib.error, or zstd's own class, which depends on the module
        raise CutOffError(str(error)) from error


def _zstd(path: Path) -> Unpacker:
    """Return Python's own module's object (3.14 and later), else that of the package zstandard."""
    with contextlib.suppress(ImportError):
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]

        return cast(Unpacker, zstd.ZstdDecompressor())
    try:
        import zstandard
    except ImportError as error:
        what = "the file is packed with zstd, and neither Python's own module (3.14) nor zstandard is here"
        raise TrainerError(
            "RM510", what=what, where=str(path), next="Unpack it first, or pack it with gzip."
        ) from error
    return cast(Unpacker, zstandard.ZstdDecompressor().decompressobj())


def line_blocks(path: Path, lines: int) -> Iterator[LineBlock]:
    """Yield the file at `path`, `lines` lines at a time.

    Raises:
        TrainerError: RM510 where the file is no text in UTF-8 or UTF-16.
    """
    packed, encoding = kind_of(path)
    waiting, first, before = bytearray(), 1, b""
    pieces = _pieces(path, packed, encoding)
    broken = False
    while True:
        try:
            piece = next(pieces, None)
        except CutOffError:
            piece, broken = None, True
        if piece is None:
            break
        waiting += piece
        while (end := _end_of_line(waiting, lines)) is not None:
            yield LineBlock(text=bytes(waiting[:end]), first=first)
            before = bytes(waiting[max(0, end - TAIL) : end])
            del waiting[:end]
            first += lines
    if waiting or broken:
        open_end = bool(waiting) and not waiting.endswith(b"\n")
        alone = open_end and not broken
        yield LineBlock(text=bytes(waiting), first=first, cut_off=open_end or broken, open_end=alone, before=before)


def _end_of_line(text: bytearray, lines: int) -> int | None:
    """Return where the block of the first `lines` lines ends, None where there are fewer."""
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == 10)
    return int(ends[lines - 1]) + 1 if len(ends) >= lines else None


def _pieces(path: Path, packed: str, encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)()
    begin = True
    returns_alone = False  # as text files of the first Macintosh, and Excel's "CSV (Macintosh)"
    for data in _unpacked(path, packed):
        text = _decoded(decoder, data, path)
        if begin and text:
            text, begin = text.removeprefix("\ufeff"), False
            lone = text[:-1].count("\r") - text.count("\r\n")  # the last one may be half of a pair
            returns_alone = lone > text.count("\n")
        yield (text.replace("\r\n", "\n").replace("\r", "\n") if returns_alone else text).encode()
    if decoder.getstate()[0]:
        raise CutOffError("the file ends inside a character")


def _decoded(decoder: codecs.IncrementalDecoder, data: bytes, path: Path) -> str:
    try:
        text = decoder.decode(data)
    except UnicodeDecodeError as error:
        if is_binary(data[:4096]):
            raise _other_kind(path, ANY_BINARY) from error
        what = "the file is no CSV text in UTF-8 or UTF-16"
        advice = (
            "Text of an older program is made UTF-8 by `iconv -f SHIFT_JIS -t UTF-8 FILE > OTHER`, with its "
            "own encoding in place of Japan's; or save it so."
        )
        raise TrainerError("RM510", what=what, where=str(path), why=str(error), next=advice) from error
    if "\x00" in text:
        raise TrainerError(
            "RM510", what="the file holds NUL characters, so it is no CSV text", where=str(path), next=ANY_BINARY.advice
        )
    return text

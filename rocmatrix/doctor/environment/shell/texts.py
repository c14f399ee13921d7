"""The text of a file as the programs that it is for read it: its encoding, and where its lines end."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

from rocmatrix.runtime.input.named_path import opened

LARGEST = 1 << 20  # characters of a file: a compose file of others may name any, /dev/zero among them
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_LISTS = (".txt", ".in")  # pip goes by the mark of the encoding, and no other program does
_UTF_8_ALONE = (".yml", ".yaml", ".toml", ".json")  # other bytes are refused by what reads them
# what Python takes for the end of a line, and no editor and no shell does
_NO_ENDS = dict.fromkeys(map(ord, "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), " ")
_ROW = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def of_file(path: Path) -> str:
    """Return a file's text with plain ends of lines, and without a byte order mark.

    Raises:
        OSError: where it cannot be read.
        ValueError: where it is no text, in an encoding that what reads it refuses, or too long.
    """
    with opened(path) as file:
        held = file.read(4 * LARGEST + 1)
    text = _decoded(held, path.suffix.lower())
    if len(text) > LARGEST:
        raise ValueError(f"it has more than {LARGEST} characters")
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").translate(_NO_ENDS)


def _decoded(held: bytes, ending: str) -> str:
    if held.startswith(_UTF_16):
        if ending in _LISTS:
            return held.decode("utf-16")
        raise ValueError("it is UTF-16, as PowerShell writes it, which no program for it reads: save it as UTF-8")
    try:
        return held.decode("utf-8")
    except UnicodeDecodeError:
        if b"\0" in held or ending in _UTF_8_ALONE or len(held) > LARGEST:
            raise
        return held.decode("latin-1")  # as a comment of an older editor; what is no letter of ASCII decides nothing


def rows(text: str) -> list[str]:
    """Return the lines of a text as it is written, each with its end."""
    return _ROW.findall(text)

"""Packed files and texts of odd forms, most of them spoiled: read, or refused with a code, never with a traceback.

SYNTHETIC bars and tables. Of 258 such inputs, made before any was tried, 10 ended in a traceback (2026-11-23).
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fixtures.configs import prepared
from tests.unit.trainer.test_hostile_runs import table_csv
from tests.unit.trainer.test_malformed_inputs import bars_csv
from trainer.data.readers.bars import Reading, open_source
from trainer.runtime.errors import TrainerError

Spoil = Callable[[random.Random, bytes], bytes]


def zipped(method: int = zipfile.ZIP_DEFLATED, *names: str) -> Callable[[bytes], bytes]:
    def make(content: bytes) -> bytes:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", method) as archive:
            for name in names or ("a.csv",):
                archive.writestr(name, content)
        return packed.getvalue()

    return make


PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "zip": zipped(),
    "zip, stored": zipped(zipfile.ZIP_STORED),
    "zip, bzip2": zipped(zipfile.ZIP_BZIP2),
    "zip, LZMA": zipped(zipfile.ZIP_LZMA),
    "zip with a folder": zipped(zipfile.ZIP_DEFLATED, "d/", "d/a.csv"),
    "zip of a hidden file": zipped(zipfile.ZIP_DEFLATED, ".a.csv"),
    "zip of two files": zipped(zipfile.ZIP_DEFLATED, "a.txt", "b.txt"),
    "zip that climbs": zipped(zipfile.ZIP_DEFLATED, "../../a.csv"),
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "gzip": gzip.compress,
    "bzip2 twice behind each other": lambda content: bz2.compress(content) * 2,
    "zip in a zip": lambda content: zipped()(zipped()(content)),
    "zip in gzip": lambda content: gzip.compress(zipped()(content)),
    "gzip in xz": lambda content: lzma.compress(gzip.compress(content)),
}


def flipped(draw: random.Random, content: bytes) -> bytes:
    made = bytearray(content)
    for _ in range(draw.randint(1, 6)):
        made[draw.randrange(len(made))] = draw.randrange(256)
    return bytes(made)


def marked_secret(_: random.Random, content: bytes) -> bytes:
    first, second = b"PK\x03\x04\x14\x00", b"PK\x01\x02\x14\x03\x14\x00"
    return content.replace(first + b"\x00", first + b"\x01").replace(second + b"\x00", second + b"\x01")


SPOILED: dict[str, Spoil] = {
    "nothing": lambda _, content: content,
    "flipped": flipped,
    "cut": lambda draw, content: content[: draw.randrange(4, len(content))],
    "more behind": lambda draw, content: content + draw.randbytes(40),
    "lines in front": lambda _, content: b"\n\n" + content,
    "a password": marked_secret,
    "another method": lambda _, content: content.replace(b"\x08\x00", b"\x63\x00"),
}


def cells(content: bytes, left: bytes, right: bytes) -> bytes:
    return b"\n".join(b",".join(left + cell + right for cell in line.split(b",")) for line in content.split(b"\n"))


TEXTS: dict[str, Spoil] = {
    "Latin letters": lambda _, c: c.replace(b"red", b"r\xe4d").replace(b"date", b"dat\xe9"),
    "a Japanese word": lambda _, c: "日付".encode("cp932") + b"," + c,
    "two encodings": lambda _, c: c[:200] + b"\xfc" + "ü".encode() + c[200:],
    "dollars": lambda _, c: cells(c, b'"$', b'"'),
    "brackets": lambda _, c: cells(c, b"(", b")"),
    "titles": lambda draw, c: b"A title\n" * draw.randint(1, 60) + c,
    "a wide title": lambda _, c: b"Title,,,,,,\n,,,\n" + c,
    "ARFF": lambda _, c: b"@relation x\n" + c,
    "quotes": lambda _, c: c.replace(b",", b', "', 2),
    "weekdays": lambda _, c: c.replace(b"\n20", b"\nMon, 20"),
    "hours of 99": lambda _, c: c.replace(b",1", b" GMT+99:99,1"),
    "three digits of a year": lambda _, c: c.replace(b"\n20", b"\n1").replace(b"-", b"/"),
    "days glued": lambda _, c: c.replace(b"-", b""),
    "CamelCase": lambda _, c: c.replace(b"open", b"BidOpen").replace(b"close", b"AskClose"),
    "ticks": lambda _, c: c.replace(b"date", b"ticks"),
    "two dates": lambda _, c: b"trade_date," + c.replace(b"\n", b"\n1,"),
    "errors of a sheet": lambda _, c: c.replace(b".", b"#N/A", 9),
    "names missing": lambda _, c: c.replace(b"open", b"", 1).replace(b"x,", b",", 1) + b",,,,,,\n",
}


def outcome(path: Path, *, of_table: bool) -> str:
    """Return how reading ended: read, or the error's code."""
    try:
        if of_table:
            prepared(data=path, target="kind")
        else:
            list(open_source(path, Reading()).chunks())
    except TrainerError as error:
        return error.code
    return "read"


@pytest.mark.parametrize("of_table", [False, True], ids=["bars", "table"])
@pytest.mark.parametrize("packing", PACKINGS)
def test_packed_file_ends_in_bars_or_in_a_code(packing: str, of_table: bool, tmp_path: Path) -> None:
    content = (table_csv if of_table else bars_csv)(tmp_path / "plain.csv").read_bytes()
    for name, spoil in SPOILED.items():
        path = tmp_path / "packed"
        path.write_bytes(spoil(random.Random(f"0{packing}{name}"), PACKINGS[packing](content)))
        assert outcome(path, of_table=of_table) in {"read", "RM510", "RM511", "RM512", "RM513", "RM516", "RM580"}


@pytest.mark.parametrize("of_table", [False, True], ids=["bars", "table"])
def test_odd_text_ends_in_rows_or_in_a_code(of_table: bool, tmp_path: Path) -> None:
    content = (table_csv if of_table else bars_csv)(tmp_path / "plain.csv").read_bytes()
    for name, spoil in TEXTS.items():
        (tmp_path / "odd").write_bytes(spoil(random.Random(name), content))
        assert outcome(tmp_path / "odd", of_table=of_table).startswith(("read", "RM5")), name

"""Generated files of further kinds: containers cut off, odd shapes, clocks and numbers; none ends in a traceback.

SYNTHETIC data. Seeds are fixed. `train` ends with status 0 or with a code; what is refused names no internal error.
"""

from __future__ import annotations

import bz2
import gzip
import io
import itertools
import lzma
import random
import zipfile
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from tests.left_out import WHOLE
from tests.unit.trainer.test_hostile_runs import table_csv
from tests.unit.trainer.test_malformed_inputs import bars_csv, trained

pytestmark = pytest.mark.usefixtures("torch_as_before")
SEEDS = 3 if WHOLE else 1  # of each shape, for bars and for tables; 8 were tried

Shape = Callable[[random.Random, bytes], bytes]


def cut(draw: random.Random, content: bytes) -> bytes:
    """Leave the end out, or one byte."""
    return content[: draw.choice((draw.randrange(len(content)), len(content) - 1))]


def gz(draw: random.Random, content: bytes) -> bytes:
    """Pack with gzip: cut off, followed by rubbish, or one behind the other."""
    packed = gzip.compress(content)
    return draw.choice((cut(draw, packed), packed + b"rubbish", packed + gzip.compress(b"x,y\n"), packed[:10]))


def archive(draw: random.Random, content: bytes) -> bytes:
    """Pack into a zip, a workbook or another archive, whole or cut off."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as written:
        written.writestr(draw.choice(("bars.csv", "[Content_Types].xml", "xl/workbook.xml")), content)
    packed = draw.choice((file.getvalue(), bz2.compress(content), lzma.compress(content)))
    return draw.choice((packed, cut(draw, packed)))


def columnar(draw: random.Random, content: bytes) -> bytes:
    """Write typed columns, whole, cut off, or with kinds that no network takes."""
    table = pl.read_csv(io.BytesIO(content))
    odd = draw.choice(
        (pl.lit(None), pl.lit(b"\xff"), pl.lit("x").str.split(""), pl.struct(pl.all()), pl.lit(2**63, pl.UInt64))
    )
    table = table.with_columns(draw.choice((odd.alias("odd"), odd.alias(table.columns[-1]))))
    file = io.BytesIO()
    table.write_parquet(file) if draw.random() < 0.6 else table.write_ipc(file)
    return draw.choice((file.getvalue(), cut(draw, file.getvalue())))


def line_ends(draw: random.Random, content: bytes) -> bytes:
    """End lines in mixed ways, or with characters that some take for line ends."""
    lines = content.splitlines()
    ends = draw.choice(((b"\r", b"\n"), (b"\r\n", b"\n", b"\r"), (b"\r\r\n",), (b"\x0b\n",), (b"\xe2\x80\xa8\n",)))
    return b"".join(line + draw.choice(ends) for line in lines) + draw.choice((b"", b"\n", b"\x1a", b"\x00"))


def encodings(draw: random.Random, content: bytes) -> bytes:
    """Write halves in different encodings, or a mark that does not fit."""
    text, half = content.decode(), len(content) // 2
    other = draw.choice(("utf-16-le", "cp1252", "utf-8-sig", "utf-32"))
    marks = (b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf\xef\xbb\xbf", b"\x00\x00\xfe\xff")
    return draw.choice(
        (content[:half] + text[half:].replace("0", "é").encode(other), draw.choice(marks) + content, text.encode(other))
    )


def widths(draw: random.Random, content: bytes) -> bytes:
    """Add thousands of columns, or leave one."""
    head, *rows = content.splitlines()
    more = draw.choice((0, 1_000))
    if not more:
        return b"\n".join(line.split(b",")[draw.choice((0, -1))] for line in (head, *rows)) + b"\n"
    names = b",".join(b"c%d" % (0 if draw.random() < 0.001 else place) for place in range(more))
    return b"\n".join([head + b"," + names, *(row + b",1" * more for row in rows)]) + b"\n"


def heights(draw: random.Random, content: bytes) -> bytes:
    """Keep a row or none, or only blank ones."""
    head, *rows = content.splitlines(keepends=True)
    kept = draw.choice(([], rows[:1], rows[:2], [b"\n"] * 50, [b",,,,,\n"] * 50, [head] * 3, rows[:1] * 60))
    return b"".join([head, *kept])


def cells(draw: random.Random, content: bytes) -> bytes:
    """Put a huge or an odd cell into the middle."""
    rows = [line.split(b",") for line in content.splitlines()]
    hostile = (
        b"9" * 200_000,
        b"a" * 2_000_000,
        b'"' + b"\n" * 99 + b'"',
        b"\xef\xbf\xbd",
        "٣".encode(),
        b"1e-320",
        b"--1",
        b"0x1p3",
        b"+-1",
        b"1_000",
    )
    rows[len(rows) // 2][draw.randrange(len(rows[0]))] = draw.choice(hostile)
    return b"\n".join(map(b",".join, rows)) + b"\n"


def headers(draw: random.Random, content: bytes) -> bytes:
    """Name columns twice, not at all, with quotes, or with numbers."""
    head, _, rest = content.partition(b"\n")
    names = head.split(b",")
    kinds = (
        [names[0]] * len(names), [b""] * len(names), [b'"' + name for name in names], [b"0", b"1", b"2", b"3"],
        [name + b"\t" for name in names], names[::-1], [*names[:-1], names[0].upper()], names[1:], [*names, b""],
    )  # fmt: skip
    return b",".join(draw.choice(kinds)) + b"\n" + rest


def times(draw: random.Random, content: bytes) -> bytes:
    """Replace the first column by times of many kinds: unsorted, twice, in a skipped hour, as a spreadsheet counts."""
    head, *rows = content.splitlines()
    wall = itertools.cycle([f"2024-{month}-10 0{hour}:30" for month in ("03", "11") for hour in (1, 2, 3)])
    kinds: tuple[Callable[[int], object], ...] = (
        lambda at: 45000 + at,
        lambda at: 45000 + at / 1440,
        lambda at: "2024-01-01",
        lambda at: f"2024-01-{31 - at % 30:02}",
        lambda at: next(wall),
        lambda at: f"{at}:00",
        lambda at: 1.7e9 + at * 60,
        lambda at: -at,
        lambda at: f"2024-02-{at % 40}",
        lambda at: f"2024-01-01T00:00:{at % 60:02}+{at % 30:02}:00",
        lambda at: "9" * 19,
    )
    made = draw.choice(kinds)
    return (
        b"\n".join([head, *(str(made(at)).encode() + b"," + row.partition(b",")[2] for at, row in enumerate(rows))])
        + b"\n"
    )


def numbers(draw: random.Random, content: bytes) -> bytes:
    """Make numbers negative, zero, tiny, huge, or of one value."""
    head, *rows = content.splitlines()
    to = draw.choice((b"-%s", b"0", b"%se-300", b"%se300", b"7", b"%s%%", b"$%s", b"(%s)"))
    made = [
        [cell if not at else to.replace(b"%s", cell).replace(b"%%", b"%") for at, cell in enumerate(row.split(b","))]
        for row in rows
    ]
    return b"\n".join([head, *map(b",".join, made)]) + b"\n"


SHAPES: tuple[Shape, ...] = (
    gz,
    archive,
    columnar,
    line_ends,
    encodings,
    widths,
    heights,
    cells,
    headers,
    times,
    numbers,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("malformed_files")


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
@pytest.mark.parametrize("of_table", [False, True], ids=["bars", "table"])
def test_malformed_file_ends_in_text_with_a_code(shape: Shape, of_table: bool, folder: Path) -> None:
    source = table_csv(folder / "table.csv") if of_table else bars_csv(folder / "bars.csv")
    content, ends = source.read_bytes(), {}
    for seed in range(SEEDS):
        draw = random.Random(f"{shape.__name__}{seed}{of_table}")
        (path := folder / f"{shape.__name__}-{of_table}-{seed}.csv").write_bytes(shape(draw, content))
        policy = f"--on-bad-row={draw.choice(('error', 'drop', 'repair'))}"
        found = trained(
            folder, draw.randrange(10**9), f"--data={path}", policy, *(["--target=kind"] if of_table else [])
        )
        if found:
            ends[f"seed {seed}, {policy}"] = found
    assert ends == {}

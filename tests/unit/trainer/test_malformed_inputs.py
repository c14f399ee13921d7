"""Generated malformed flags and files: `train` ends in text with a code, never in a traceback or RM599.

SYNTHETIC data. Seeds are fixed, so that a failure can be repeated. What is accepted must have trained.
"""

from __future__ import annotations

import io
import json
import os
import random
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from tests.left_out import WHOLE
from tests.unit.trainer.test_hostile_runs import table_csv
from trainer.cli import main

pytestmark = pytest.mark.usefixtures("torch_as_before")
QUICK = ["--device=cpu", "--hidden-layers=2", "--step=eager", "--epochs=1", "--batch-size=64"]
OPTIONS = Path(__file__).resolve().parents[3] / "rocmatrix/runtime/trainer/options.json"
# Values that no option of any type takes, or that few take.
VALUES = ("", " ", "nan", "-1", "1e999", "9" * 40, "0x10", "1,,2", "=", "\U0001f98a", "a\nb", "x" * 5000, "../..", "0")
ACCEPTED_STATUS = {0, 2}
FLAGS, FILES = (150, 110) if WHOLE else (60, 45)
# These wait for other ranks, or write where they are pointed to.
LEFT_OUT = {"ranks", "output", "run", "callback", "resume"}

Change = Callable[[random.Random, bytes], bytes]


def flipped(draw: random.Random, content: bytes) -> bytes:
    """Replace a few bytes by any others."""
    made = bytearray(content)
    for _ in range(draw.randint(1, 8)):
        made[draw.randrange(len(made))] = draw.randrange(256)
    return bytes(made)


def cut(draw: random.Random, content: bytes) -> bytes:
    """Leave the end out."""
    return content[: draw.randrange(len(content))]


def cell(draw: random.Random, content: bytes) -> bytes:
    """Put something else into a cell."""
    lines = content.split(b"\n")
    row = draw.randrange(len(lines) - 1)
    cells = lines[row].split(b",")
    hostile = (b"", b"inf", b"-1e400", b"1" * 400, b'"', b"NaN", b"=1+1", b"\x00", "\u0661\u0662".encode(), b"1_0")
    cells[draw.randrange(len(cells))] = draw.choice(hostile)
    lines[row] = b",".join(cells)
    return b"\n".join(lines)


def rows(draw: random.Random, content: bytes) -> bytes:
    """Leave rows out, repeat or move them."""
    head, *rest = content.splitlines(keepends=True)
    picked = [draw.choice(rest) for _ in range(draw.choice((0, 1, 2, 90)))]
    return b"".join([head, *picked] if draw.random() < 0.7 else [*picked, head])


def encoded(draw: random.Random, content: bytes) -> bytes:
    """Write the text in another encoding, or with other line ends and separators."""
    text = content.decode(errors="replace")
    kinds = (
        text.encode("utf-16"),
        b"\xef\xbb\xbf" + content,
        text.replace(",", ";").encode(),
        text.replace("\n", "\r").encode(),
        text.replace(",", "\t\t").encode(),
        text.encode("utf-7", errors="replace") + b"\xff",
        b"\x1f\x8b" + content,
        b"PAR1" + content,
        b"{" + content,
    )
    return draw.choice(kinds)


CHANGES: tuple[Change, ...] = (flipped, cut, cell, rows, encoded)


def bars_csv(path: Path, count: int = 120) -> Path:
    """Write SYNTHETIC daily bars."""
    draw = random.Random(1)
    lines, price = ["date,open,high,low,close,volume"], 100.0
    for day in range(count):
        price *= 1 + draw.uniform(-0.01, 0.01)
        date = f"20{10 + day // 336:02}-{day // 28 % 12 + 1:02}-{day % 28 + 1:02}"
        lines.append(f"{date},{price:.2f},{price + 1:.2f},{price - 1:.2f},{price:.2f},{draw.randint(1, 999)}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("malformed")


def trained(folder: Path, number: int, *words: str) -> str:
    """Run `train` and return what is wrong with how it ended; empty for an end in text with a code."""
    stderr, events = io.StringIO(), io.StringIO()
    with redirect_stderr(stderr), redirect_stdout(events):
        try:
            status = main(["train", *QUICK, f"--output={folder / 'runs'}", f"--run=r{number}", *words])
        except SystemExit as ended:  # argparse's own, as for --help
            status = int(ended.code or 0)
        except BaseException as error:
            return f"raised {error!r}"
    text = stderr.getvalue()
    if status not in ACCEPTED_STATUS or "RM599" in text or "Traceback" in text:
        return f"status {status}: {text[-400:]}"
    if status == 2 and not any(line.startswith("RM") for line in text.splitlines()):
        return f"no code: {text[-400:]}"
    return ""


def flags(folder: Path) -> Iterator[list[str]]:
    """Yield command lines with one option that has a value of another kind."""
    names = [each["name"] for each in json.loads(OPTIONS.read_text()) if each["command"] == "train"]
    draw, table = random.Random(0), str(table_csv(folder / "good.csv"))
    usable = [name.replace("_", "-") for name in names if name not in LEFT_OUT]
    for number in range(FLAGS):
        flag = usable[number % len(usable)]
        yield [f"--data={table}", "--target=kind", f"--{flag}={draw.choice(VALUES)}"]


def files(folder: Path) -> Iterator[list[str]]:
    """Yield command lines with a table or bars that one or two changes have spoiled."""
    table, bars = table_csv(folder / "table.csv").read_bytes(), bars_csv(folder / "bars.csv").read_bytes()
    for number in range(FILES):
        draw, of_table = random.Random(number), number % 2
        content = table if of_table else bars
        for change in draw.sample(CHANGES, draw.choice((1, 1, 2))):
            content = change(draw, content) if content.count(b"\n") > 1 else content
        path = folder / f"spoiled-{number}.{draw.choice(('csv', 'csv', 'csv', 'txt', 'parquet', 'csv.gz', 'json'))}"
        path.write_bytes(content)
        yield [f"--data={path}", *(["--target=kind"] if of_table else [])]


@pytest.mark.parametrize("made", [flags, files], ids=lambda made: made.__name__)
def test_malformed_inputs_end_in_text_with_a_code(made: Callable[[Path], Iterator[list[str]]], folder: Path) -> None:
    lines = list(made(folder))
    ends = {number: trained(folder, number, *words) for number, words in enumerate(lines)}
    assert len(ends) == {flags: FLAGS, files: FILES}[made]
    assert {" ".join(lines[number]): end for number, end in ends.items() if end} == {}


@pytest.mark.parametrize("flags", [(), ("--target=y",)])
def test_pipe_as_data_is_refused_and_not_waited_for(tmp_path: Path, flags: tuple[str, ...]) -> None:
    os.mkfifo(tmp_path / "data.csv")
    with redirect_stderr(io.StringIO()) as words, redirect_stdout(io.StringIO()):
        assert main(["train", f"--data={tmp_path / 'data.csv'}", f"--output={tmp_path}", *flags, *QUICK]) == 2
    assert "RM510" in words.getvalue() and "a pipe can be read once" in words.getvalue()

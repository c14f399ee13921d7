"""What is said about the data before training, and how a stopped computation leaves its folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.fixtures.configs import rows_config
from tests.fixtures.synthetic_bars import write_synthetic
from trainer.config.train import TrainConfig
from trainer.data.conventions import SessionConventions
from trainer.data.features.build_features import at_bounds
from trainer.data.features.inspect import inspect_data
from trainer.data.readers.bars import Reading, open_source
from trainer.run.stored_settings import values_of
from trainer.runtime.errors import TrainerError
from trainer.tasks.assumptions import of_days, of_file, of_sessions, too_short, unmoved
from trainer.tasks.bars import prepare


def test_constant_columns_are_distinguished_from_those_of_a_few_rows() -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(1000, 4)).astype(np.float32)
    table[:, 1] = 3.25
    table[:, 2] *= 1e-3
    table[7, 2] = 9e7
    assert unmoved(table) == ([1], [2])


def test_intraday_training_prints_five_lines(tmp_path: Path) -> None:
    path = tmp_path / "bars.csv"
    write_synthetic(path, 390 * 24)
    task = prepare(rows_config(data=path))
    heads = [line.partition(":")[0] for line in task.assumptions]
    assert heads == ["read", "times", "sessions", "rows", "features"]
    words = " ".join(task.assumptions)
    assert "America/New_York (the default; --time-zone names another)" in words
    assert "09:30-16:00" in words
    assert "tick 0.25" in words
    assert f"{len(task.split.train) + len(task.split.validation) + len(task.split.test) + 2 * 5:,} of" in words


def test_dead_volume_is_named_before_training(tmp_path: Path) -> None:
    path = tmp_path / "bars.csv"
    write_synthetic(path, 390 * 24)
    lines = path.read_text().splitlines()
    place = lines[0].split(",").index("volume")
    rows = [line.split(",") for line in lines[1:]]
    path.write_text("\n".join([lines[0], *(",".join([*r[:place], "0", *r[place + 1 :]]) for r in rows), ""]))
    assumption = prepare(rows_config(data=path)).assumptions[-1]
    assert "constant in the training part" in assumption
    assert "vol_z_20" in assumption


def test_days_of_many_rows_come_with_a_row_height() -> None:
    session = {"begin": "00:00", "end": "24:00", "zone": "UTC", "half_days": "none", "stamp": "begin"}
    rows = {"in_sessions": 9, "bars": 9, "sessions": 1, "outside_sessions": 0}
    record = {"conventions": {"session": session, "profile": {"tick": 0.01, "row_ticks": 1}}, "rows": rows}
    assert "--row-ticks 100 makes 603" in of_sessions(record, 60_375)
    assert "--row-ticks" not in of_sessions(record, 900)


@pytest.mark.parametrize(
    ("number", "status", "workers"), [(signal.SIGINT, 130, 1), (signal.SIGTERM, 143, 1), (signal.SIGINT, 130, 2)]
)
def test_stopped_features_end_within_seconds_and_leave_nothing(
    tmp_path: Path, number: int, status: int, workers: int
) -> None:
    """SIGINT goes to the workers, too, as it does from a terminal."""
    path, out = tmp_path / "bars.csv", tmp_path / "out"
    write_synthetic(path, 390 * 600)
    out.mkdir()
    command = [sys.executable, "-m", "trainer", "features", "--data", str(path), "--out", str(out / "f.arrow")]
    process = subprocess.Popen(
        [*command, "--tick", "0.01", "--workers", str(workers)], stderr=subprocess.PIPE, start_new_session=True
    )
    assert process.stderr
    try:
        deadline = time.monotonic() + 120
        while not list(out.glob(".*partial")) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert process.poll() is None
        os.killpg(process.pid, number) if number == signal.SIGINT else process.send_signal(number)
        _, stderr = process.communicate(timeout=60)
        assert process.returncode == status, stderr
        assert b"RM598" in stderr
        assert b"Start the same command again" in stderr
        assert b"Traceback" not in stderr
    finally:
        process.kill()
        process.wait()
    assert list(out.iterdir()) == []


def test_settings_of_an_earlier_trainer_are_still_taken() -> None:
    recorded = TrainConfig.of().as_dict()
    assert {"columns", "row_origin", "levels"}.isdisjoint(recorded)
    with_columns = TrainConfig.of(columns=("date=when",)).as_dict()
    assert values_of(with_columns)["columns"] == ("date=when",)
    assert values_of({"columns": []})["columns"] == ()


def test_bars_of_day_and_night_name_the_session_and_what_another_would_keep() -> None:
    rows = {"in_sessions": 390, "bars": 1380, "sessions": 1, "outside_sessions": 990, "in_day_and_night": 1380}
    session = {"begin": "09:30", "end": "16:00", "zone": "America/New_York", "half_days": "us", "stamp": "begin"}
    record = {"rows": rows, "conventions": {"session": session, "profile": {"tick": 0.25, "row_ticks": 1}}}
    assert "(--session 18:00-17:00, day and night, would keep 1,380)" in of_sessions(record, 900)
    record["conventions"]["session"] = session | {"begin": "18:00", "end": "17:00"}
    assert "would keep" not in of_sessions(record, 900)
    record = {**record, "rows": rows | {"outside_sessions": 10, "in_sessions": 1370}}
    record["conventions"]["session"] = session
    assert "would keep" not in of_sessions(record, 900)


def test_split_of_bars_around_the_clock_names_those_outside_of_the_session() -> None:
    rows = {"in_sessions": 300, "bars": 1200, "sessions": 50, "outside_sessions": 900, "in_day_and_night": 1190}
    session = {"begin": "09:30", "end": "16:00", "zone": "America/New_York", "half_days": "us", "stamp": "begin"}
    made = {"rows": rows, "conventions": {"session": session}}
    found = too_short(TrainerError("RM517", what="30 usable rows", why="each part needs 10 rows"), made)
    assert "900 of 1,200 bars are outside of the sessions 09:30-16:00 America/New_York" in found.why
    assert "--session 18:00-17:00, which keeps 1,190 bars" in found.next
    made["rows"]["in_day_and_night"] = 1150  # a coin's: all hours are alike
    found = too_short(TrainerError("RM517", what="30 usable rows", why="each part needs 10 rows"), made)
    assert "--session 00:00-24:00, which keeps 1,200 bars" in found.next
    made["rows"]["sessions"] = 15  # 7/5 of them are 21
    assert "--session" in too_short(TrainerError("RM517", what="none"), made).next
    made["rows"]["sessions"] = 14
    found = too_short(TrainerError("RM517", what="none"), made)
    assert "--session" not in found.next and "more than 21 sessions" in found.next


@pytest.mark.parametrize(
    ("at_begin", "at_end", "stamp", "named"),
    [
        (0, 40, "begin", True),
        (0, 20, "begin", True),
        (0, 19, "begin", False),
        (1, 40, "begin", False),
        (0, 40, "end", False),
    ],
)
def test_bars_that_seem_to_bear_their_end_name_the_option(at_begin: int, at_end: int, stamp: str, named: bool) -> None:
    rows = {"in_sessions": 3080, "bars": 3120, "sessions": 40, "outside_sessions": 40, "in_day_and_night": 3120}
    rows |= {"at_session_begin": at_begin, "at_session_end": at_end}
    session = {"begin": "09:30", "end": "16:00", "zone": "America/New_York", "half_days": "us", "stamp": stamp}
    record = {"rows": rows, "conventions": {"session": session, "profile": {"tick": 0.25, "row_ticks": 1}}}
    assert (f"{at_end} bear 16:00 and none 09:30" in of_sessions(record, 900)) is named
    assert ("--bar-time end" in of_sessions(record, 900)) is named


def test_bars_at_the_bounds_of_sessions_are_counted_by_the_clock() -> None:
    times = np.array(["2024-03-08T14:30", "2024-03-08T21:00", "2024-03-11T13:30", "2024-03-11T20:05"], "M8[s]")
    assert at_bounds(times, SessionConventions()) == (2, 1)  # clocks went forward in between


@pytest.mark.parametrize(
    ("zone", "named"), [("America/New_York", "NYSE's"), ("America/Sao_Paulo", "no"), ("Europe/Berlin", "no")]
)
def test_half_days_are_named_where_sessions_have_them_alone(zone: str, named: str) -> None:
    session = {"begin": "09:00", "end": "18:00", "zone": zone, "half_days": "us", "stamp": "begin"}
    rows = {"bars": 9, "in_sessions": 9, "sessions": 1, "outside_sessions": 0}
    record = {"conventions": {"session": session, "profile": {"tick": 0.25, "row_ticks": 1}}, "rows": rows}
    assert f"{named} half days" in of_sessions(record, 0)


@pytest.mark.parametrize(
    ("header", "days", "zone", "words"),
    [
        ("time,open,high,low,close,volume", ("08", "09"), "America/New_York", "exchanges of coins"),
        ("time,open,high,low,close,volume", ("07", "08"), "America/New_York", "the default; --time-zone names another"),
        ("time,open,high,low,close,<TICKVOL>", ("07", "08"), "America/New_York", "--time-zone Europe/Athens"),
        ("time,open,high,low,close,volume", ("08", "09"), "UTC", "taken as UTC (--time-zone)"),
    ],
)
def test_zone_is_doubted_where_bars_are_of_coins_or_of_metatrader(
    tmp_path: Path, header: str, days: tuple[str, ...], zone: str, words: str
) -> None:
    rows = [f"2024-03-{day} {hour:02d}:00,1,2,1,2,5" for day in days for hour in range(24)]  # the 9th is a Saturday
    (tmp_path / "bars.csv").write_text("\n".join([header, *rows, ""]))
    source = open_source(tmp_path / "bars.csv", Reading(zone=zone))
    assert words in of_file(source, weekend=inspect_data(source).weekend)[1]


def test_rows_that_are_left_out_are_named_by_kind_and_first_line(tmp_path: Path) -> None:
    rows = [f"2024-03-{day:02d},1,2,1,{3 if day == 5 else 2},5" for day in range(1, 9)]
    (tmp_path / "bars.csv").write_text("\n".join(["date,open,high,low,close,volume", *rows]))
    source = open_source(tmp_path / "bars.csv", Reading(on_bad_row="drop"))
    list(source.chunks())
    line = of_file(source)[0]
    assert ", 1 row dropped (outside 1, first line 6), the last line without a line end; date=date" in line


@pytest.mark.parametrize(
    ("spacing", "words"),
    [
        (86_400, "bars are days"),
        (72_000, "bars are days"),
        (7 * 86_400, "bars are 7 days apart; features and --horizon count bars"),
        (31 * 86_400, "bars are 31 days apart; features and --horizon count bars"),
    ],
)
def test_bars_longer_than_days_are_named_so(spacing: int, words: str) -> None:
    assert of_days(spacing) == f"sessions: none, {words}"

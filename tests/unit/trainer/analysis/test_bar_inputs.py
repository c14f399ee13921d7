"""New bars with a second file for the VIX: joined as the run's were, whatever the layout of either file."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
import torch

from tests.fixtures.synthetic_bars import write_two_files
from trainer.analysis.bar_inputs import NewBars, needs_vix, open_bars
from trainer.analysis.predict import read_metadata
from trainer.cli import main
from trainer.runtime.paths import SAMPLE

QUICK = ["--epochs", "1", "--hidden-layers", "4", "--baselines", "none"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with SYNTHETIC bars in one file and in two, and a run trained on the two."""
    folder = write_two_files(tmp_path_factory.mktemp("joined"), 13_000)
    table = pl.read_csv(folder / "both.csv")
    names = {
        "date": "When",
        "open": "ES_open",
        "high": "ES_high",
        "low": "ES_low",
        "close": "Last",
        "volume": "ES_volume",
    }
    other = table.drop("vix_close").rename({old: new for old, new in names.items() if old in table.columns})
    other.write_csv(folder / "other.csv", separator=";")
    table.select(pl.col("date").alias("Time"), pl.col("vix_close").alias("Close")).write_csv(
        folder / "v.csv", separator="\t"
    )
    data = ["--data", str(folder / "es.csv"), "--join", str(folder / "vix.csv")]
    assert main(["train", *QUICK, *data, "--output", str(folder), "--run", "two"]) == 0
    torch.use_deterministic_algorithms(False)
    return folder


def forecasts(folder: Path, name: str, *argv: str) -> bytes:
    output = folder / f"{name}.out"
    assert main(["predict", "--model", str(folder / "two"), "--output", str(output), *argv]) == 0
    return output.read_bytes()


def refused(capsys: pytest.CaptureFixture[str], model: Path, *argv: str) -> str:
    capsys.readouterr()
    assert main(["predict", "--model", str(model), *argv]) == 2
    return capsys.readouterr().err


def test_two_files_give_the_forecasts_of_one(folder: Path) -> None:
    whole = forecasts(folder, "whole", "--data", str(folder / "both.csv"))
    both = ["--data", str(folder / "es.csv"), "--join", str(folder / "vix.csv")]
    assert whole.count(b"\n") > 1000
    assert forecasts(folder, "both", *both) == whole


def test_files_of_other_layouts_give_the_same_forecasts(folder: Path) -> None:
    plain = forecasts(folder, "plain", "--data", str(folder / "es.csv"), "--join", str(folder / "vix.csv"))
    layout = ["--data", str(folder / "other.csv"), "--join", str(folder / "v.csv")]
    columns = "date=When,open=ES_open,high=ES_high,low=ES_low,close=Last,volume=ES_volume"
    assert forecasts(folder, "other", *layout, "--columns", columns) == plain


def test_bars_without_the_vix_are_refused_with_the_option(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = refused(capsys, folder / "two", "--data", str(folder / "es.csv"))
    assert message.startswith("RM512")
    assert "--join FILE, as the run was trained with" in message


def test_daily_values_for_a_run_of_minutes_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    daily = folder / "daily.csv"
    daily.write_text("DATE,CLOSE\n2024-01-02,13.2\n2024-01-03,14.0\n")
    message = refused(capsys, folder / "two", "--data", str(folder / "es.csv"), "--join", str(daily))
    assert message.startswith("RM512")
    assert "values of days, and the run was trained on values with a time of day" in message


@pytest.fixture
def moved(folder: Path, tmp_path: Path) -> Path:
    """Return a copy of the run as a container recorded it: its files were in a folder that is not here."""
    place = tmp_path / "moved"
    shutil.copytree(folder / "two", place)
    record = json.loads((place / "metadata.json").read_text())
    record["config"] |= {"data": "/data/es.csv", "join": "/data/vix.csv"}
    (place / "metadata.json").write_text(json.dumps(record))
    return place


@pytest.mark.parametrize(
    "command",
    [("report", "{run}", "--repeats", "1"), ("compress", "--model", "{run}", "--how", "int8", "--output", "{out}")],
)
def test_finished_run_on_two_files_is_read_where_they_are_now(
    command: tuple[str, ...], folder: Path, moved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = [word.format(run=moved, out=tmp_path) for word in command]
    data, join = ["--data", str(folder / "es.csv")], ["--join", str(folder / "vix.csv")]
    wrong = (
        ([], "RM524", "the run was trained on with --data."),
        (data, "RM524", "the run was trained on with --join."),
        ([*data, "--join", str(folder / "es.csv")], "RM524", "the joined file: other bytes"),
        ([*data, *join, "--columns", "open=close,close=open"], "RM500", "was trained with"),
    )
    for more, code, words in wrong:
        capsys.readouterr()
        assert main([*argv, *more]) == 2
        message = capsys.readouterr().err
        assert (code in message, words in message) == (True, True), message
    assert main([*argv, *data, *join, "--columns", "open=open,high=high"]) == 0


def test_daily_model_that_needs_the_vix_is_refused_without_it_and_takes_a_joined_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *QUICK, "--output", str(tmp_path), "--run", "daily"]) == 0
    torch.use_deterministic_algorithms(False)
    assert needs_vix(read_metadata(tmp_path / "daily"))
    table = pl.read_csv(SAMPLE)
    vix = next(name for name in table.columns if "vix" in name.lower())
    table.drop(vix).write_csv(tmp_path / "es.csv")
    assert "--join FILE" in refused(capsys, tmp_path / "daily", "--data", str(tmp_path / "es.csv"))
    table.select(table.columns[0], vix).write_csv(tmp_path / "vix.csv")
    both = ["--data", str(tmp_path / "es.csv"), "--join", str(tmp_path / "vix.csv")]
    assert main(["predict", "--model", str(tmp_path / "daily"), *both, "--output", str(tmp_path / "f.csv")]) == 0
    assert main(["report", str(tmp_path / "daily"), "--join", str(tmp_path / "vix.csv")]) == 2
    assert "was trained on one file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "recorded", "zone"),
    [
        ("Gmt time", "America/New_York", "America/New_York"),
        ("Gmt time", "UTC", "UTC"),
        ("Date", "America/New_York", "UTC"),
    ],
)
def test_zone_that_a_column_names_counts_unless_the_run_itself_did_not_read_it(
    tmp_path: Path, name: str, recorded: str, zone: str
) -> None:
    rows = "".join(f"2024-03-04 14:3{minute},10,12,9,11,5\n" for minute in range(3))
    (path := tmp_path / "new.csv").write_text(f"Gmt time,Open,High,Low,Close,Volume\n{rows}")
    run: Any = SimpleNamespace(
        config={"time_zone": "America/New_York"},
        feature_set={},
        data=SimpleNamespace(read={"columns": {"date": name}, "time_zone": recorded}),
    )
    assert open_bars(run, NewBars(data=path)).zone == zone


def test_days_for_a_model_of_minutes_are_refused_with_what_they_are(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    days = [f"2024-03-{day:02},10,12,9,11,5,15\n" for day in range(1, 29)]
    (path := tmp_path / "days.csv").write_text(f"date,open,high,low,close,volume,vix_close\n{''.join(days)}")
    message = refused(capsys, folder / "two", "--data", str(path))
    assert "RM519" in message and "1 day apart, and two was trained on bars of 1 minute" in message
    path.write_text(f"date,open,high,low,close,volume,vix_close\n{''.join(days[:10])}")  # too few to tell the spacing
    message = refused(capsys, folder / "two", "--data", str(path))
    assert "RM578" in message and "session, 09:30-16:00 America/New_York" in message
    assert "intraday bars, 60 seconds long" in message and "these are days" in message


def test_new_bars_without_the_volume_of_the_training_are_refused_unless_that_is_stated(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pl.read_csv(folder / "both.csv")
    table.drop("volume").write_csv(folder / "bare.csv")
    new, stated = ["--data", str(folder / "bare.csv")], ["--columns", "volume=none"]
    message = refused(capsys, folder / "two", *new)
    assert "has no volume, and the run was trained with that of column 'volume'" in message
    assert main(["predict", "--model", str(folder / "two"), *new, *stated, "--output", os.devnull]) == 0

"""New bars with a second file for the VIX: joined as the run's were, whatever the layout of either file."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
import torch

from tests.fixtures.synthetic_bars import write_two_files
from trainer.analysis.bar_inputs import needs_vix
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

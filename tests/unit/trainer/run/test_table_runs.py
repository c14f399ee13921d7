"""Runs on SYNTHETIC tables from the command line to the forecasts."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import polars as pl
import pytest

import trainer
from tests.fixtures.tables import hours, mixed, written
from tests.left_out import long, one_of
from trainer.analysis.compress.measure import tensor
from trainer.analysis.compress.subject import Given, read_subject
from trainer.cli import main
from trainer.data.loading import chunks
from trainer.tasks.metrics.score import as_numbers
from trainer.tasks.records.schema import json_schema

pytestmark = pytest.mark.usefixtures("torch_as_before")

ROOT = Path(trainer.__file__).parents[1]
HAS_ONNX = all(importlib.util.find_spec(name) for name in ("onnx", "onnxscript", "onnxruntime"))
QUICK = ("--device", "cpu", "--epochs", "15", "--learning-rate", "0.01", "--run", "one")
FILES = {"batches.jsonl", "metadata.json", "metrics.jsonl", "model.pt", "model.safetensors", "recipe.yaml"}


def train(folder: Path, path: Path, *flags: str) -> dict[str, Any]:
    assert main(["train", "--data", str(path), "--output", str(folder), *QUICK, *flags]) == 0
    record: dict[str, Any] = json.loads((folder / "one" / "metadata.json").read_text())
    return record


def forecasts(folder: Path, path: Path) -> list[dict[str, str]]:
    output = folder / "f.csv"
    assert main(["predict", "--model", str(folder / "one"), "--data", str(path), "--output", str(output)]) == 0
    with output.open() as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize(
    "flags",
    [
        ("--target", "y"),
        ("--target", "z", "--norm", "batch", "--dropout", "0.1", "--activation", "silu"),
        *(
            pytest.param(flags, marks=long)
            for flags in (
                ("--target", "y", "--network", "residual", "--norm", "layer", "--class-weights", "balanced"),
                ("--target", "z", "--network", "residual", "--norm", "batch", "--hidden-layers", "8,8"),
                ("--target", "z", "--hidden-layers", "none"),
                (
                    "--target",
                    "y",
                    "--network",
                    "transformer",
                    "--token-width",
                    "8",
                    "--heads",
                    "2",
                    "--hidden-layers",
                    "16",
                ),
            )
        ),
    ],
)
def test_forecasts_are_those_of_training_and_onnx_agrees(tmp_path: Path, flags: tuple[str, ...]) -> None:
    path = written(mixed(), tmp_path)
    more = ("--export", "onnx") if HAS_ONNX else ()
    record = train(tmp_path, path, *flags, *more)
    jsonschema.validate(record, json_schema())
    subject = read_subject(tmp_path / "one", Given())
    task, test = subject.task, subject.task.split.test
    outputs = as_numbers(subject.network(tensor(task.inputs, test.features)).detach())
    rows = {int(row["line"]): row for row in forecasts(tmp_path, path)}
    chosen = [rows[line] for line in test.date.tolist()]
    assert len(rows) == 300
    if task.labels:
        answers = [task.labels[place] for place in outputs.argmax(axis=1)]
        assert [row["y"] for row in chosen] == answers
        assert all(float(row["p(no)"]) + float(row["p(yes)"]) == pytest.approx(1) for row in rows.values())
        right = np.mean([answer == task.labels[int(true)] for answer, true in zip(answers, test.target, strict=True)])
        assert record["metrics"]["test"]["accuracy"] == right > 0.8
    else:
        made = np.array([float(row["z"]) for row in chosen])
        assert np.allclose(made, task.targets.unscale(outputs[:, 0]), atol=1e-6)
        assert np.sqrt(np.mean((made - test.target) ** 2)) == pytest.approx(record["metrics"]["test"]["rmse"], rel=1e-4)
        assert record["metrics"]["test"]["r2_vs_mean"] > 0.5
        assert "persistence" not in record["baselines"]
    if HAS_ONNX:
        assert record["metrics"]["onnx"]["largest_difference"] < 1e-4


def test_unknown_categories_and_gaps_in_new_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(tmp_path, written(mixed(gaps=False), tmp_path), "--target", "y")
    new = mixed(20, seed=9).with_columns(pl.lit("purple").alias("colour")).drop("y")
    assert len(forecasts(tmp_path, written(new, tmp_path, "new.csv"))) == 20
    assert "'purple' in column 'colour' is a category that training never met; 20 such cells" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "change", "code"),
    [
        (("--unknown", "error"), {"colour": "purple"}, "RM584"),
        (("--missing", "error"), {"x": ""}, "RM581"),
        ((), {"x": "oops"}, "RM580"),
    ],
)
def test_policies_hold_for_new_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: tuple[str, ...], change: dict[str, str], code: str
) -> None:
    train(tmp_path, written(mixed(gaps=False), tmp_path), "--target", "y", *flags)
    new = written(mixed(5, seed=9, gaps=False).with_columns(**{n: pl.lit(v) for n, v in change.items()}), tmp_path, "n")
    assert main(["predict", "--model", str(tmp_path / "one"), "--data", str(new)]) == 2
    error = capsys.readouterr().err
    assert code in error
    assert "line 2" in error


def test_rows_that_the_policy_drops_have_no_forecast(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(mixed(), tmp_path)
    record = train(tmp_path, path, "--target", "z", "--missing", "drop")
    made = forecasts(tmp_path, path)
    assert len(made) == record["data"]["rows_used"] < 300
    assert f"{300 - len(made)} rows have no forecast" in capsys.readouterr().err


def test_missing_column_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(tmp_path, written(mixed(), tmp_path), "--target", "y")
    new = written(mixed(5).drop("x"), tmp_path, "new.csv")
    assert main(["predict", "--model", str(tmp_path / "one"), "--data", str(new)]) == 2
    assert "no column 'x'" in capsys.readouterr().err


def test_rows_with_a_time_are_named_by_it(tmp_path: Path) -> None:
    path = written(mixed().with_columns(pl.Series("timestamp", hours(300))), tmp_path)
    record = train(tmp_path, path, "--target", "z")
    assert record["split"]["by"] == "time"
    assert forecasts(tmp_path, path)[0]["date"] == "2024-01-01 00:00:00"


def test_table_as_parquet_gives_the_same_model(tmp_path: Path) -> None:
    table = mixed(gaps=False).with_columns(pl.col("m").cast(pl.Float64))
    table.write_parquet(tmp_path / "t.parquet")
    scores = []
    for path in (written(table, tmp_path), tmp_path / "t.parquet"):
        folder = tmp_path / path.suffix
        scores.append(train(folder, path, "--target", "y")["metrics"]["test"])
    assert scores[0] == scores[1]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(
    "flags", [("--target", "y", "--ignore", "at"), ("--target", "z", "--missing", "drop", "--time-column", "at")]
)
def test_mapped_rows_give_the_same_files_to_the_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], kind: str
) -> None:
    monkeypatch.setattr(chunks, "PIECE", 64)
    table = mixed().with_columns(at=pl.Series(hours(300)[::-1]))
    path = tmp_path / f"t.{kind}"
    table.write_parquet(path) if kind == "parquet" else table.write_csv(path)
    records = [train(tmp_path / feed, path, *flags, "--feed", feed) for feed in ("device", "mapped")]
    assert [sorted(each.name for each in (tmp_path / "mapped").iterdir())] == [["one"]]
    for name in ("model.safetensors", "model.pt", "batches.jsonl"):
        one, other = ((tmp_path / feed / "one" / name).read_bytes() for feed in ("device", "mapped"))
        assert one == other, name
    for key in ("metrics", "split", "made", "features"):
        assert records[0].get(key) == records[1].get(key)


def test_command_repeated_gives_the_same_bytes_and_the_recipe_repeats_it(tmp_path: Path) -> None:
    path = written(mixed(), tmp_path)
    flags = (
        "--target",
        "y",
        "--dropout",
        "0.2",
        "--hidden-layers",
        "none",
        "--ignore",
        "z,noise",
        "--schedule",
        "cosine",
    )
    train(tmp_path / "a", path, *flags)
    recipe = tmp_path / "a" / "one" / "recipe.yaml"
    more = ["--device", "cpu", "--run", "one", "--data", str(path)]
    assert main(["train", "--recipe", str(recipe), "--output", str(tmp_path / "b"), *more]) == 0
    one, two = ((tmp_path / name / "one" / "model.safetensors").read_bytes() for name in "ab")
    assert one == two


def test_last_weights_are_kept_on_request(tmp_path: Path) -> None:
    path = written(mixed(), tmp_path)
    record = train(tmp_path, path, "--target", "z", "--weights", "last", "--learning-rate", "0.1")
    epochs = [json.loads(line) for line in (tmp_path / "one" / "metrics.jsonl").read_text().splitlines()]
    assert record["metrics"]["best"]["epoch"] == 15
    assert min(each["validation_loss"] for each in epochs) < epochs[-1]["validation_loss"]


def test_directions_of_bars_are_classes(tmp_path: Path) -> None:
    flags = ["--target", "direction", "--class-weights", "balanced", "--data-fraction", "0.4", *QUICK]
    assert main(["train", "--output", str(tmp_path), *flags]) == 0
    record = json.loads((tmp_path / "one" / "metadata.json").read_text())
    assert record["target"]["labels"] == ["0", "1"]
    assert record["model"]["widths"][-1] == 2
    assert 0 < record["metrics"]["test"]["log_loss"] < 2


@pytest.mark.parametrize("ranks", one_of([1, 2]))
def test_epoch_on_a_tenth_of_the_data_writes_all_files(tmp_path: Path, ranks: int) -> None:
    """On the shipped bars, as a user would first try it; on two ranks under torchrun."""
    here = ["--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", "--local-addr=127.0.0.1"]  # no port of its own
    torchrun = ["-m", "torch.distributed.run", *here, "--nproc-per-node", str(ranks)] if ranks > 1 else []
    flags = ["--epochs", "1", "--data_fraction", "0.1", "--device", "cpu", "--output", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, *torchrun, "-m", "trainer", "train", *flags],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    (run,) = [path for path in tmp_path.iterdir() if not path.name.startswith(".")]
    assert {path.name for path in run.iterdir()} == FILES | {"telemetry.jsonl"}, done.stderr[-2000:]
    record = json.loads((run / "metadata.json").read_text())
    assert record["data"]["rows_used"] == 126


@pytest.mark.parametrize(("cell", "words"), [("1e300", "32 bits hold"), ("3e38", "too far for 32 bits")])
def test_row_that_cannot_be_computed_with_has_no_forecast(tmp_path: Path, cell: str, words: str, capsys) -> None:
    table = mixed(gaps=False).drop("y")
    train(tmp_path, written(table, tmp_path), "--target", "z")
    scaled = [str(value) for value in table["x"]]
    scaled[7] = cell
    path = written(table.with_columns(pl.Series("x", scaled)), tmp_path, "new.csv")
    capsys.readouterr()
    assert main(["predict", "--model", str(tmp_path / "one"), "--data", str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("RM580") and "'x'" in captured.err and words in captured.err
    assert f"{path}, line 9" in captured.err and '"forecast"' not in captured.out
    assert main(["predict", "--model", str(tmp_path / "one"), "--data", str(tmp_path / "table.csv")]) == 0
    assert capsys.readouterr().err.endswith("forecasts of z, in the column's own unit\n")

"""Runs of the transformer on SYNTHETIC tables, from the command line to a smaller model and a page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import polars as pl
import pytest

import trainer
from tests.fixtures.tables import mixed, written
from tests.fixtures.training import WIDTH, gone_on, interrupted, same, training, weights
from tests.left_out import long, one_of
from trainer.analysis.compress.measure import tensor
from trainer.analysis.compress.subject import Given, read_subject
from trainer.cli import main
from trainer.tasks.metrics.score import as_numbers
from trainer.tasks.records.row_schema import read
from trainer.tasks.records.schema import json_schema

pytestmark = pytest.mark.usefixtures("torch_as_before")

ROOT = Path(trainer.__file__).parents[1]
SMALL = ("--network", "transformer", "--token-width", "8", "--heads", "2", "--hidden-layers", "16")
QUICK = ("--device", "cpu", "--learning-rate", "0.01", "--run", "one")


def train(folder: Path, path: Path, *flags: str) -> dict[str, Any]:
    assert main(["train", "--data", str(path), "--output", str(folder), *SMALL, *QUICK, *flags]) == 0
    record: dict[str, Any] = json.loads((folder / "one" / "metadata.json").read_text())
    return record


def refused(folder: Path, capsys: pytest.CaptureFixture[str], *flags: str) -> dict[str, str]:
    path = written(mixed(100), folder)
    words = ["train", "--data", str(path), "--target", "y", "--output", str(folder), *SMALL, *QUICK, *flags]
    assert main(words) == 2
    error: dict[str, str] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return error


def friedman(rows: int = 500) -> pl.DataFrame:
    """SYNTHETIC: the first function of Friedman 1991, with one column that tells nothing and little noise."""
    rng = np.random.default_rng(0)
    x = rng.random((rows, 6))
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    return pl.DataFrame({**{f"x{place}": x[:, place] for place in range(6)}, "y": y + 0.1 * rng.normal(size=rows)})


def test_transformer_learns_a_function_that_is_no_sum_of_columns(tmp_path: Path) -> None:
    record = train(tmp_path, written(friedman(), tmp_path), "--target", "y", "--epochs", "25")
    assert record["metrics"]["test"]["r2_vs_mean"] > 0.9


def test_run_is_recorded_forecast_compressed_and_reported(tmp_path: Path) -> None:
    path = written(mixed(), tmp_path)
    record = train(tmp_path, path, "--target", "y", "--epochs", "12")
    jsonschema.validate(record, json_schema())
    assert read(record).attention is not None
    assert record["attention"]["kernel"] == "flash"
    model = record["model"]
    assert [model[name] for name in ("kind", "token_width", "heads", "norm")] == ["transformer", 8, 2, "layer"]
    assert model["widths"] == [len(record["features"]), 16, 2]
    subject = read_subject(tmp_path / "one", Given())
    test = subject.task.split.test
    outputs = as_numbers(subject.network(tensor(subject.task.inputs, test.features)).detach())
    right = np.mean(outputs.argmax(axis=1) == test.target)
    assert record["metrics"]["test"]["accuracy"] == right > 0.8
    output = tmp_path / "forecasts.csv"
    assert main(["predict", "--model", str(tmp_path / "one"), "--data", str(path), "--output", str(output)]) == 0
    assert len(output.read_text().splitlines()) == 301
    assert main(["compress", "--model", str(tmp_path / "one"), "--epochs", "1"]) == 0
    for method in ("distill", "prune", "int8"):
        smaller = ["--model", str(tmp_path / f"one-{method}"), "--data", str(path), "--output", str(tmp_path / method)]
        assert main(["predict", *smaller]) == 0
    assert main(["report", str(tmp_path / "one"), "--repeats", "1"]) == 0


def test_command_repeated_gives_the_same_bytes_recomputed_or_not(tmp_path: Path) -> None:
    """Both kinds of activation checkpointing, too; dropout is drawn alike."""
    path, found = written(mixed(120), tmp_path), []
    for number, flags in enumerate(("off", "off", "selective", "full")):
        folder = tmp_path / str(number)
        more = ("--epochs", "2", "--dropout", "0.2", "--activation-checkpointing", flags)
        train(folder, path, "--target", "z", *more)
        found.append((folder / "one" / "model.safetensors").read_bytes())
    assert len(set(found)) == 1


@pytest.mark.parametrize("name", ["fp32", "bf16"])
def test_stopped_run_ends_like_an_undisturbed_one(name: str) -> None:
    import torch

    from trainer.models.transformer import transformer

    def make(**more: Any) -> Any:
        torch.manual_seed(1)
        model = transformer(WIDTH, [8, 8], 1, token_width=8, heads=2, dropout=0.2)
        return training(name, model=model, **more)

    assert same(weights(gone_on(make, interrupted(partial(make), 9))), weights(make()))


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (("--heads", "3"), "RM557", "--token-width 8 cannot be shared by --heads 3"),
        (("--hidden-layers", "none"), "RM557", "without blocks"),
        (("--norm", "batch"), "RM557", "normed by layer"),
        (("--network", "mlp", "--attention", "math"), "RM557", "--attention math with --network mlp"),
        (("--attention", "efficient"), "RM566", "efficient is not used: No viable backend"),
    ],
)
def test_network_that_does_not_fit_is_refused_with_a_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: tuple[str, ...], code: str, words: str
) -> None:
    error = refused(tmp_path, capsys, *flags)
    assert error["code"] == code
    assert words in error["what"]


def test_network_that_no_memory_holds_is_refused_with_one_that_fits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainer.device.capacity.free_memory", lambda device: 20 * 2000)
    error = refused(tmp_path, capsys, "--hidden-layers", "1000,1000")
    assert error["code"] == "RM521"
    # Of 2,000 weights blocks of 34 take 1,812, tokens 128 and the answer 34; blocks of 35 would take 34 more.
    assert error["next"] == "--hidden-layers 34,34 would fit"


def test_metadata_from_before_there_was_attention_is_still_read(tmp_path: Path) -> None:
    record = train(tmp_path, written(mixed(100), tmp_path), "--target", "y", "--epochs", "1", "--network", "mlp")
    assert record.pop("attention") is None
    assert "heads" not in record["model"]
    assert read(record).attention is None


@long
@pytest.mark.parametrize(("parallel", "recomputed"), one_of([("ddp", "off"), ("fsdp2", "full")]))
def test_two_ranks_give_the_weights_of_one(tmp_path: Path, parallel: str, recomputed: str) -> None:
    """Over gloo on the CPU; sharded, with its layers recomputed."""
    path = written(mixed(120), tmp_path)
    common = ("--target", "y", "--epochs", "1", "--precision", "fp64", "--dropout", "0")
    alone = train(tmp_path, path, *common)["metrics"]["validation"]["log_loss"]
    more = ("--ranks", "2", "--parallel", parallel, "--activation-checkpointing", recomputed)
    words = ["train", "--data", str(path), "--output", str(tmp_path / "two"), *SMALL, *QUICK, *common, *more]
    done = subprocess.run(
        [sys.executable, "-m", "trainer", *words],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    record = json.loads((tmp_path / "two" / "one" / "metadata.json").read_text())
    assert record["metrics"]["validation"]["log_loss"] == pytest.approx(alone, rel=1e-9)

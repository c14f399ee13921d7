"""A run on a SYNTHETIC table made smaller in each way; the figures are measured again and must be the same."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.fixtures.tables import mixed, written
from trainer.analysis.compress.command import halved, message, metadata_of
from trainer.analysis.compress.measure import measured
from trainer.analysis.compress.methods import Smaller
from trainer.analysis.compress.subject import Given, read_subject
from trainer.cli import main
from trainer.models.storage import with_zeros
from trainer.run.metadata import NOT_FINITE

pytestmark = pytest.mark.usefixtures("torch_as_before")

METHODS = ("distill", "prune", "int8")
FLAGS = ("--hidden-layers", "64,64", "--epochs", "15", "--learning-rate", "0.01", "--device", "cpu", "--run", "one")


@pytest.fixture(scope="module", params=["y", "z"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    path = written(mixed(), folder)
    assert main(["train", "--data", str(path), "--target", request.param, "--output", str(folder), *FLAGS]) == 0
    assert main(["compress", "--model", str(folder / "one"), "--sparsity", "0.75"]) == 0
    torch.use_deterministic_algorithms(False)
    return folder


def record(folder: Path, method: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / f"one-{method}" / "metadata.json").read_text())
    return content


@pytest.mark.parametrize("method", METHODS)
def test_figures_are_those_of_the_files(folder: Path, method: str) -> None:
    """Read back from disk and measured again: same loss and bytes, for the model before and after."""
    compression = record(folder, method)["metrics"]["compression"]
    for name, figures in (("one", compression["before"]), (f"one-{method}", compression["after"])):
        subject = read_subject(folder / name, Given())
        weights = folder / name / "model.safetensors"
        again = measured(subject.network, subject.task, file_bytes=weights.stat().st_size)
        assert figures["file_bytes"] == again["file_bytes"]
        for part in ("validation", "test"):
            assert figures[part]["loss"] == pytest.approx(again[part]["loss"], rel=1e-5)
        assert min(figures["microseconds"].values()) > 0


@pytest.mark.parametrize("method", METHODS)
def test_file_is_smaller_and_the_model_still_good(folder: Path, method: str) -> None:
    compression = record(folder, method)["metrics"]["compression"]
    before, after = compression["before"], compression["after"]
    assert after["file_bytes"] < 0.5 * before["file_bytes"]
    score, good = ("accuracy", 0.8) if "accuracy" in after["test"] else ("r2_vs_mean", 0.5)
    assert after["test"][score] > good


@pytest.mark.parametrize("method", METHODS)
def test_predict_takes_the_folder(folder: Path, method: str) -> None:
    output = folder / f"{method}.csv"
    argv = ["predict", "--model", str(folder / f"one-{method}"), "--data", str(folder / "table.csv")]
    assert main([*argv, "--output", str(output)]) == 0
    assert len(output.read_text().splitlines()) == 301


def test_pruned_weights_are_zero_in_the_share_requested(folder: Path) -> None:
    content = record(folder, "prune")
    weights = with_zeros(load_file(folder / "one-prune" / "model.safetensors"))
    layers = [value for name, value in weights.items() if name.endswith("weight") and "embedding" not in name]
    zeros = sum(int((value == 0).sum()) for value in layers) / sum(value.numel() for value in layers)
    assert zeros == pytest.approx(0.75, abs=1e-3)
    assert content["metrics"]["compression"]["sparsity"] == pytest.approx(0.75, abs=1e-3)


def test_distilling_halves_the_widths_and_reports_what_the_teacher_adds(folder: Path) -> None:
    content = record(folder, "distill")
    assert content["model"]["widths"][1:-1] == [32, 32]
    alone = content["metrics"]["compression"]["without_teacher"]["test"]["loss"]
    assert alone != content["metrics"]["compression"]["after"]["test"]["loss"]


def test_figure_that_is_not_finite_is_null_with_its_reason(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither the smaller model nor the event is lost for it; what the run said of its own figures is not repeated."""
    shutil.copytree(folder / "one", tmp_path / "one")
    document = json.loads((tmp_path / "one" / "metadata.json").read_text())
    document["absent"] = {"metrics.test.r2_vs_mean": NOT_FINITE, "image": "not given"}
    (tmp_path / "one" / "metadata.json").write_text(json.dumps(document))

    def overflown(*args: Any, **kwargs: Any) -> dict[str, Any]:
        return measured(*args, **kwargs) | {"test": {"loss": math.inf}}

    monkeypatch.setattr("trainer.analysis.compress.command.measured", overflown)
    assert main(["compress", "--model", str(tmp_path / "one"), "--how", "int8"]) == 0
    content = record(tmp_path, "int8")
    assert content["metrics"]["test"]["loss"] is None
    figures = ("metrics.test", "metrics.compression.before.test", "metrics.compression.after.test")
    assert content["absent"] == {"image": "not given"} | {f"{name}.loss": NOT_FINITE for name in figures}
    seen = capsys.readouterr()
    assert json.loads(seen.out.splitlines()[-1])["after"]["test"] == {"loss": None}
    assert "metrics.compression.after.test.loss" in seen.err
    read_subject(tmp_path / "one-int8", Given())


def test_int8_holds_whole_numbers(folder: Path) -> None:
    weights = load_file(folder / "one-int8" / "model.safetensors")
    kinds = {name: value.dtype for name, value in weights.items() if name.endswith("weight")}
    assert set(kinds.values()) == {torch.int8, torch.float32}
    assert all(kind == torch.float32 for name, kind in kinds.items() if "embedding" in name)


def test_other_data_and_no_data_are_refused(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = written(mixed(seed=1), tmp_path)
    for data in (other, tmp_path / "none.csv"):
        assert main(["compress", "--model", str(folder / "one"), "--data", str(data)]) == 2
        assert capsys.readouterr().err.startswith(("RM524", "table")) is True


def test_unknown_method_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compress", "--model", str(folder / "one"), "--how", "prun"]) == 2
    assert "did you mean prune?" in capsys.readouterr().err


def test_existing_folder_is_not_overwritten(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compress", "--model", str(folder / "one"), "--how", "int8"]) == 2
    assert "RM540" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("widths", "half"), [((64, 64), (32, 32)), ((5, 3), (2, 1)), ((1,), (1,)), ((), ()), ((2, 1), (1, 1))]
)
def test_widths_are_halved_down_to_one(widths: tuple[int, ...], half: tuple[int, ...]) -> None:
    assert halved(widths) == half


def test_metadata_of_a_smaller_network_repeats_no_figure_of_the_runs_own(folder: Path) -> None:
    subject = read_subject(folder / "one", Given())
    subject.metadata.absent.update({"metrics.test.loss": NOT_FINITE, "image": "not given"})
    smaller = Smaller(network=subject.network, tensors={}, description={"kind": "mlp", "storage": "int8"}, facts={})
    figures = {"validation": {"loss": 1.0}, "test": {"loss": 2.0}}
    made = metadata_of(subject, smaller, "one-int8", {"after": figures})
    assert (made["run"], made["model"]) == ("one-int8", smaller.description)
    assert made["metrics"] == figures | {"compression": {"after": figures}}
    assert made["absent"]["image"] == "not given"
    assert not any(fact.startswith("metrics.") for fact in made["absent"])
    assert subject.metadata.run == "one"  # what was read is not changed


def test_message_compares_loss_bytes_and_times() -> None:
    before = {"test": {"loss": 1.5}, "file_bytes": 12345, "microseconds": {"one row": 1000.4, "256 rows": 2.0}}
    after = {"test": {"loss": 1.25}, "file_bytes": 999, "microseconds": {"one row": 1.0, "256 rows": 3.0}}
    assert message("int8", before, after, Path("a/b")) == (
        "int8    test loss 1.5000 to 1.2500, weights' file 12,345 to 999 bytes, "
        "on this CPU one row 1,000 to 1 µs, 256 rows 2 to 3 µs: a/b"
    )

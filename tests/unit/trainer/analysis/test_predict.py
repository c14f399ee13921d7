from __future__ import annotations

import csv
import importlib.util
import json
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import trainer
from tests.fixtures.configs import rows_config
from trainer.analysis import predict
from trainer.cli import main
from trainer.data.split import FURTHEST
from trainer.runtime.errors import TrainerError
from trainer.runtime.paths import SAMPLE
from trainer.tasks.bars import prepare
from trainer.tasks.row_task import outputs_of

HAS_ONNX = importlib.util.find_spec("onnx") is not None and importlib.util.find_spec("onnxscript") is not None
ROOT = Path(trainer.__file__).parents[1]
RUN = ["--epochs", "2", "--data-fraction", "0.4", "--hidden-layers", "8,4", "--learning-rate", "0.001"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("runs")
    onnx = ["--export", "onnx"] if HAS_ONNX else []
    assert main(["train", *RUN, "--output", str(output), "--run", "one", *onnx]) == 0
    torch.use_deterministic_algorithms(False)
    return output / "one"


@pytest.fixture
def copy_of(run: Path, tmp_path: Path) -> Callable[..., Path]:
    """Return a function that copies the run with its metadata changed."""

    def copy(change: Callable[[dict[str, Any]], None] = lambda record: None) -> Path:
        folder = tmp_path / "copy"
        folder.mkdir()
        for file in run.iterdir():
            if file.is_file():
                (folder / file.name).write_bytes(file.read_bytes())
        record = json.loads((folder / "metadata.json").read_text())
        change(record)
        (folder / "metadata.json").write_text(json.dumps(record))
        return folder

    return copy


def refused(capsys: pytest.CaptureFixture[str], code: str, *argv: str) -> str:
    capsys.readouterr()
    assert main(["predict", *argv]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(code)
    return captured.err


def forecast_in_training(network: torch.nn.Module, part: Any, task: Any) -> Any:
    evaluation = SimpleNamespace(forward=network, device="cpu", dtype=torch.float32)
    return task.targets.unscale(outputs_of(task, part, evaluation)[:, 0])


def forecasts(run: Path, tmp_path: Path, data: Path = SAMPLE) -> dict[str, float]:
    output = tmp_path / "f.csv"
    assert main(["predict", "--model", str(run), "--data", str(data), "--output", str(output)]) == 0
    with output.open() as stream:
        return {row["date"]: float(row["realised_next"]) for row in csv.DictReader(stream)}


def test_forecasts_are_those_of_training(run: Path, tmp_path: Path) -> None:
    task = prepare(rows_config(data_fraction=0.4))
    network = torch.nn.Sequential(
        torch.nn.Linear(12, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1)
    )
    network.load_state_dict(torch.load(run / "model.pt", weights_only=True))
    expected = forecast_in_training(network, task.split.test, task)
    made = forecasts(run, tmp_path)
    dates = [str(date).removesuffix("T00:00:00") for date in task.split.test.date]
    assert np.allclose([made[date] for date in dates], expected, rtol=0, atol=1e-6)


def test_latest_bars_which_have_no_target_yet_get_a_forecast(run: Path, tmp_path: Path) -> None:
    assert list(forecasts(run, tmp_path))[-1] == SAMPLE.read_text().splitlines()[-1].partition(",")[0]


def test_forecast_knows_nothing_of_later_bars(run: Path, tmp_path: Path) -> None:
    shorter = tmp_path / "shorter.csv"
    shorter.write_text("\n".join(SAMPLE.read_text().splitlines()[:400]) + "\n")
    whole, cut = forecasts(run, tmp_path), forecasts(run, tmp_path, shorter)
    assert len(cut) > 300
    assert np.allclose([whole[date] for date in cut], list(cut.values()), rtol=0, atol=1e-6)


def test_forecasts_without_an_output_file_are_events(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["predict", "--model", str(run), "--data", str(SAMPLE)]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert events[0].keys() == {"event", "date", "realised_next"}
    assert events[-1]["rows"] == len(events) - 1


@pytest.mark.skipif(not HAS_ONNX, reason="onnx and onnxscript are not installed here")
def test_onnx_takes_raw_features_and_gives_forecasts_in_the_targets_unit(run: Path, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed here")
    task = prepare(rows_config(data_fraction=0.4))
    session = onnxruntime.InferenceSession(str(run / "model.onnx"), providers=["CPUExecutionProvider"])
    test = task.split.test
    (answer,) = session.run(None, {"features": test.features.astype(np.float32)})
    made = forecasts(run, tmp_path)
    dates = [str(date).removesuffix("T00:00:00") for date in test.date]
    assert np.allclose(answer[:, 0], [made[date] for date in dates], rtol=0, atol=1e-4)
    assert json.loads((run / "metadata.json").read_text())["metrics"]["onnx"]["largest_difference"] < 1e-4


def snippets() -> list[str]:
    """Return the code of the guide that loads a model: in five lines, and of a table with words."""
    section = (ROOT / "docs/training.md").read_text().partition("## What a run leaves")[2].partition("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)


def test_code_of_the_guide_loads_the_model_of_a_table_with_words(tmp_path: Path) -> None:
    lines = [f"{'abc'[n % 3]},{n % 10}.5,{'xy'[n % 2]},{n * 7 % 11}" for n in range(90)]
    (data := tmp_path / "t.csv").write_text("\n".join(["word,number,other,y", *lines]) + "\n")
    argv = ["--data", str(data), "--target", "y", "--task", "regression", "--epochs", "3", "--baselines", "none"]
    assert main(["train", *argv, "--output", str(tmp_path), "--run", "words"]) == 0
    five, of_words = snippets()
    names: dict[str, Any] = {}
    exec(five.splitlines()[0] + "\n" + of_words.replace("TRAINING/my-run", str(tmp_path / "words")), names)
    metadata = predict.read_metadata(tmp_path / "words")
    rows = torch.tensor([[1.0, 0.25, 2.0], [3.0, -1.0, 1.0], [0.0, 0.0, 0.0]])  # 0: a word that training never met
    with torch.no_grad():
        expected = predict.load_network(tmp_path / "words", metadata)(rows)
        assert torch.allclose(names["model"](rows), expected, rtol=0, atol=1e-6)


def test_five_lines_of_the_guide_load_the_model_in_plain_torch(run: Path, monkeypatch, capsys) -> None:
    code, _ = snippets()
    assert len([line for line in code.splitlines() if line]) == 5
    assert "trainer" not in code and "rocmatrix" not in code
    monkeypatch.chdir(run.parent)
    names: dict[str, Any] = {}
    exec(code.replace("TRAINING/my-run", str(run)), names)
    task = prepare(rows_config(data_fraction=0.4))
    meta = json.loads((run / "metadata.json").read_text())
    mean, std = (torch.tensor(meta["scaler"][name]) for name in ("mean", "std"))
    rows = torch.tensor(task.split.test.features, dtype=torch.float32)
    with torch.no_grad():
        answer = names["model"]((rows - mean) / std) * meta["target"]["std"] + meta["target"]["mean"]
    answer = answer.squeeze(1).double().numpy()
    expected = forecast_in_training(names["model"], task.split.test, task)
    assert np.allclose(answer, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("damage", [b"", b"x"])
def test_damaged_model_is_not_used(copy_of, damage: bytes, capsys) -> None:
    folder = copy_of()
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + damage)
    assert "metadata.json records" in refused(capsys, "RM547", "--model", str(folder), "--data", str(SAMPLE))


def test_folder_without_a_model_is_refused(tmp_path: Path, capsys) -> None:
    refused(capsys, "RM546", "--model", str(tmp_path), "--data", str(SAMPLE))
    refused(capsys, "RM546", "--model", str(SAMPLE), "--data", str(SAMPLE))
    for name in ("20260101-1", "20260102-1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "metadata.json").touch()
    shown = refused(capsys, "RM546", "--model", str(tmp_path), "--data", str(SAMPLE))
    assert f"give {tmp_path / '20260102-1'}, the newest" in shown
    (tmp_path / "metadata.json").write_bytes(b"\xff{")
    refused(capsys, "RM546", "--model", str(tmp_path), "--data", str(SAMPLE))


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        (lambda record: record.update(schema_version=99), "RM546", "schema_version is 99"),
        (lambda record: record["model"].update(kind="gpt9"), "RM546", "gpt9"),
        (lambda record: record["model"].update(widths=[12, 3, 1]), "RM546", "size mismatch"),
        (lambda record: record["features"][0].update(name="return_7"), "RM548", "did you mean"),
        (lambda record: record["features"][0].update(formula="close"), "RM548", "here it is"),
        (lambda record: record["artifacts"].pop("model.safetensors"), "RM547", "no such file"),
    ],
)
def test_model_that_does_not_fit_is_refused(copy_of, change, code: str, says: str, capsys) -> None:
    assert says in refused(capsys, code, "--model", str(copy_of(change)), "--data", str(SAMPLE))


def test_bars_that_are_too_few_are_counted(run: Path, tmp_path: Path, capsys) -> None:
    short = tmp_path / "short.csv"
    short.write_text("\n".join(SAMPLE.read_text().splitlines()[:20]) + "\n")
    assert "needs 59" in refused(capsys, "RM517", "--model", str(run), "--data", str(short))


def test_output_that_cannot_be_written_leaves_nothing(run: Path, mount_tmpfs, capsys) -> None:
    disk = mount_tmpfs("size=4096")
    (disk / "old.csv").write_text("as before")
    refused(capsys, "RM543", "--model", str(run), "--data", str(SAMPLE), "--output", str(disk / "old.csv"))
    assert [path.name for path in disk.iterdir()] == ["old.csv"]
    assert (disk / "old.csv").read_text() == "as before"


def test_data_and_the_model_are_never_written_over(run: Path, tmp_path: Path, capsys) -> None:
    data = tmp_path / "t.csv"
    data.write_bytes(SAMPLE.read_bytes())
    (tmp_path / "link.csv").symlink_to(data)
    own = [run / name for name in ("model.safetensors", "model.pt", "recipe.yaml", "metrics.jsonl", "metadata.json")]
    for output in (data, tmp_path / "link.csv", *own):
        before = output.read_bytes()
        message = refused(capsys, "RM500", "--model", str(run), "--data", str(data), "--output", str(output))
        assert "--output" in message and ("--data" in message or "--model" in message)
        assert output.read_bytes() == before


def test_mistake_in_the_path_of_the_output_is_named(run: Path, tmp_path: Path, capsys) -> None:
    words = ("--model", str(run), "--data", str(SAMPLE), "--output")
    assert "there is no folder" in refused(capsys, "RM500", *words, str(tmp_path / "nodir" / "x.csv"))
    assert "is a folder" in refused(capsys, "RM500", *words, str(tmp_path))


def test_forecasts_go_through_a_pipe_that_stays(run: Path, tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", list[str]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    assert main(["predict", "--model", str(run), "--data", str(SAMPLE), "--output", str(pipe)]) == 0
    reader.join(timeout=5)
    assert pipe.is_fifo() and read[0].startswith("date,realised_next\n")


ROWS = {"date": ["2024-01-01", "2024-01-02", "2024-01-03"]}


def metadata_like(*, lookbacks: tuple[int | None, ...] = (5, 20), kind: str = "daily", **target: Any) -> Any:
    """Metadata of two features with mean 10 and deviation 2; a stand-in with the fields that are read."""
    records = [SimpleNamespace(name=f"f{n}", lookback=lookback) for n, lookback in enumerate(lookbacks)]
    scaler = SimpleNamespace(mean=[10.0, 10.0], std=[2.0, 2.0])
    fields = {"name": "t", "labels": None, "mean": 1.0, "std": 3.0} | target
    return SimpleNamespace(features=records, scaler=scaler, feature_set={"set": kind}, target=SimpleNamespace(**fields))


def test_row_with_one_missing_feature_gets_no_forecast() -> None:
    values = np.array([[1.0, 2.0], [np.nan, 2.0], [1.0, np.inf]])
    assert predict.usable(metadata_like(), values).tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({}, "20 bars before the bar"),
        ({"lookbacks": (None, None)}, "sessions and 120 bars before the bar"),
        ({"kind": "table"}, "every row misses a value"),
    ],
)
def test_data_without_a_usable_row_are_refused_with_what_they_need(about: dict[str, Any], words: str) -> None:
    with pytest.raises(TrainerError, match="RM517") as caught:
        predict.usable(metadata_like(**about), np.full((3, 2), np.nan))
    assert words in str(caught.value.what)


@pytest.mark.parametrize(("deviations", "refused"), [(FURTHEST, False), (-FURTHEST, False), (1.01 * FURTHEST, True)])
def test_value_is_refused_beyond_the_furthest_that_32_bits_compute_with(deviations: float, refused: bool) -> None:
    values = np.array([[10.0, 10.0], [10.0, 10.0 + 2.0 * deviations], [10.0, 10.0]])
    if not refused:
        predict.require_near(values, ROWS, metadata_like(), Path("a.csv"))
        return
    with pytest.raises(TrainerError, match="RM580") as caught:
        predict.require_near(values, ROWS, metadata_like(), Path("a.csv"))
    assert caught.value.where == "a.csv, date 2024-01-02"
    assert "'f1'" in str(caught.value.what)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_forecast_that_is_not_finite_is_named_with_its_row(value: float) -> None:
    predict.require_finite({"t": [0.0, 1e300, -1.0], "label": ["a", "nan", "b"]}, ROWS, Path("a.csv"))
    with pytest.raises(TrainerError, match="RM595") as caught:
        predict.require_finite({"t": [0.0, 1.0, value]}, ROWS, Path("a.csv"))
    assert caught.value.where == "a.csv, date 2024-01-03"


def test_forecast_of_a_number_is_in_the_targets_unit() -> None:
    class Sum(torch.nn.Module):
        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            return inputs.sum(dim=1, keepdim=True)

    made = predict.forecast(Sum(), metadata_like(), np.array([[10.0, 12.0], [8.0, 8.0]]))
    assert made == {"t": [1.0 * 3 + 1, -2.0 * 3 + 1]}


def test_forecast_of_classes_is_the_likeliest_with_each_probability() -> None:
    class Scores(torch.nn.Module):
        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            return torch.tensor([[0.0, 0.0, 2.0], [3.0, 0.0, 0.0]])

    made = predict.forecast(Scores(), metadata_like(labels=["a", "b", "c"]), np.full((2, 2), 10.0))
    assert made["t"] == ["c", "a"]
    assert list(made) == ["t", "p(a)", "p(b)", "p(c)"]
    assert sum(made[f"p({label})"][0] for label in "abc") == pytest.approx(1.0)
    assert made["p(c)"][0] == pytest.approx(float(torch.softmax(torch.tensor([0.0, 0.0, 2.0]), 0)[2]))


def test_network_larger_than_its_file_is_refused_before_it_is_made() -> None:
    description = {"kind": "mlp", "widths": [8, 8, 1]}  # 8 * 8 + 8 + 8 + 1 weights
    predict.require_size(description, 11)
    with pytest.raises(ValueError, match="81 weights cannot lie in 10 bytes"):
        predict.require_size(description, 10)


def test_numbers_of_a_csv_keep_all_their_digits() -> None:
    assert predict.as_csv({"date": ["a,b", "c"], "x": [0.1 + 0.2, 1.0]}) == (
        b'date,x\n"a,b",0.30000000000000004\nc,1.0\n'
    )


def test_language_model_is_refused_by_name() -> None:
    predict.refuse_language({"task": "bars"}, Path("r"))
    predict.refuse_language(["language"], Path("r"))
    with pytest.raises(TrainerError, match="RM719") as caught:
        predict.refuse_language({"task": "language", "run": "one"}, Path("r"))
    assert "one" in str(caught.value.what)

"""What a finished run leaves: files with their hashes, the epoch that was kept, and an estimate of its size."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import torch

from trainer.engine.state import Epoch
from trainer.run.artifacts import best_of, lasted, save, size_estimate

EPOCH = Epoch(epoch=1, train_loss=0.5, validation_loss=0.25, seconds=2.0, rows_per_second=50.0, best=True)


def test_kept_epoch_is_the_last_that_improved():
    history = [EPOCH, replace(EPOCH, epoch=2), replace(EPOCH, epoch=3, best=False)]
    assert best_of(history).epoch == 2


def test_duration_and_rows_are_those_of_all_measurements():
    found = lasted([EPOCH, replace(EPOCH, seconds=0.5, rows_per_second=100.0)])
    assert (found.measurements, found.seconds, found.rows) == (2, 2.5, 150)


def test_size_counts_the_weights_twice_whatever_their_type():
    model = torch.nn.Linear(1000, 10, bias=False)
    whole, half = size_estimate(model, 3, 5), size_estimate(model.half(), 3, 5)
    assert whole - half == 2 * 1000 * 10 * 2
    assert size_estimate(model, 4, 5) > half


def test_files_of_a_run_are_listed_with_their_hashes_in_the_metadata():
    record, written = {"absent": {}, "metrics": {"loss": float("nan")}}, {}

    def write(name, content):
        written[name] = content
        return {"bytes": len(content)}

    folder = SimpleNamespace(write=write, partial=Path("/nowhere"))
    save(folder, {"model.pt": b"weights"}, [EPOCH], record)
    made = json.loads(written.pop("metadata.json"))
    assert made["artifacts"] == {name: {"bytes": len(content)} for name, content in written.items()}
    assert json.loads(written["metrics.jsonl"]) == EPOCH.facts()
    assert (made["metrics"]["loss"], list(made["absent"])) == (None, ["metrics.loss"])


def test_log_that_the_run_kept_is_listed_by_its_content(tmp_path):
    (tmp_path / "batches.jsonl").write_bytes(b"{}\n")
    folder = SimpleNamespace(write=lambda name, content: {}, partial=tmp_path)
    record = {"absent": {}}
    save(folder, {}, [], record)
    assert record["artifacts"]["batches.jsonl"] == {"bytes": 3, "sha256": hashlib.sha256(b"{}\n").hexdigest()}
    assert "telemetry.jsonl" not in record["artifacts"]

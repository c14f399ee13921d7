"""Runs of the commit before the configuration had sections: their records are read, resumed and used as ever.

`recorded_settings.json` holds what that commit wrote: `config` of metadata.json of one run a kind, and run.json of an
unfinished one. Only paths were shortened, and the epochs of the unfinished run lowered to 2.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainer.cli import main
from trainer.config.sections.bars import BarsConfig
from trainer.config.sections.decoder import DecoderConfig
from trainer.config.sections.network import MlpConfig, TransformerConfig
from trainer.config.sections.table import TableConfig
from trainer.config.sections.tokens import TokensConfig
from trainer.config.train import TrainConfig
from trainer.run.resume_settings import checked, with_settings_of
from trainer.run.stored_settings import values_of
from trainer.runtime.paths import SAMPLE

RECORDED: dict[str, Any] = json.loads((Path(__file__).parents[3] / "fixtures" / "recorded_settings.json").read_text())
UNFINISHED = RECORDED["unfinished"]
KINDS = {
    "bars-set": (BarsConfig, MlpConfig),
    "intraday": (BarsConfig, MlpConfig),
    "steps": (BarsConfig, MlpConfig),
    "table": (TableConfig, MlpConfig),
    "classes": (TableConfig, TransformerConfig),
    "lm": (TokensConfig, DecoderConfig),
    "sft": (TokensConfig, DecoderConfig),
}


def others_of(name: str) -> dict[str, str]:
    """Return settings of rows whose default changed, which a run of tokens does not have: it writes the default."""
    return {"on_bad_row": "few"} if KINDS[name][0] is TokensConfig else {}


@pytest.mark.parametrize("name", KINDS)
def test_recorded_settings_are_read_as_their_kind_and_written_as_they_were(name: str) -> None:
    config = TrainConfig.of(**values_of(RECORDED[name]))
    assert (type(config.data), type(config.model)) == KINDS[name]
    assert json.loads(json.dumps(config.as_dict())) == RECORDED[name] | others_of(name)


@pytest.mark.parametrize("name", KINDS)
def test_recorded_run_is_resumed_under_its_own_settings(name: str) -> None:
    settings = {**UNFINISHED, "config": RECORDED[name]}
    assert checked(settings) == settings
    resumed = with_settings_of(TrainConfig.of(resume=name), name, settings)
    own = {"run", "resume", "origin"}
    again = {key: value for key, value in json.loads(json.dumps(resumed.as_dict())).items() if key not in own}
    new = ("output", "checkpoint_every", "keep", "feed")  # of the attempt, not of the run
    recorded = RECORDED[name] | others_of(name)
    assert {key: value for key, value in recorded.items() if key not in {*own, *new}} == {
        key: value for key, value in again.items() if key not in new
    }


def test_unfinished_recorded_run_is_resumed_to_its_end(tmp_path: Path) -> None:
    partial = tmp_path / ".cut.partial"
    partial.mkdir()
    settings = {**UNFINISHED, "config": UNFINISHED["config"] | {"data": str(SAMPLE)}}
    (partial / "run.json").write_text(json.dumps(settings))
    assert main(["train", "--output", str(tmp_path), "--resume", "auto"]) == 0
    found = json.loads((tmp_path / "cut" / "metadata.json").read_text())["config"]
    differing = {key for key in settings["config"] if found[key] != settings["config"][key]}
    assert differing <= {"output", "run", "resume", "checkpoint_every"}
    assert (found["dropout"], found["schedule"], found["batch_size"], found["clip_norm"]) == (0.1, "cosine", 64, 1.0)


def test_model_with_recorded_settings_forecasts_and_is_reported_on(tmp_path: Path) -> None:
    flags = ["--epochs", "1", "--batch-size", "512", "--run", "one"]
    assert main(["train", "--output", str(tmp_path), *flags]) == 0
    folder = tmp_path / "one"
    requested = ["predict", "--model", str(folder), "--data", str(SAMPLE)]
    assert main([*requested, "--output", str(tmp_path / "now.csv")]) == 0
    metadata = json.loads((folder / "metadata.json").read_text())
    metadata["config"] = UNFINISHED["config"] | {"data": str(SAMPLE), "epochs": 1, "batch_size": 512, "dropout": 0.0}
    (folder / "metadata.json").write_text(json.dumps(metadata))
    assert main([*requested, "--output", str(tmp_path / "then.csv")]) == 0
    assert (tmp_path / "then.csv").read_bytes() == (tmp_path / "now.csv").read_bytes()
    assert main(["report", str(folder), "--repeats", "1"]) == 0
    assert (folder / "report.html").is_file()

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import trainer
from trainer.config.sections.bars import BarsConfig
from trainer.config.train import TrainConfig
from trainer.device.accelerator import Accelerator
from trainer.run.metadata import metadata
from trainer.tasks.bars import prepare
from trainer.tasks.records.row_schema import Metadata, read
from trainer.tasks.records.schema import json_schema
from trainer.tasks.row_task import BarTask

FILE = Path(trainer.__file__).parent / "storage" / "metadata.schema.json"
CPU = Accelerator(device="cpu", kind="cpu", name="x", arch="y", memory_bytes=1, reason="why")


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    task = BarTask(data=prepare(BarsConfig()))
    entries = task.describe(task.network())
    made = metadata("one", TrainConfig.of(forced=("rule-a",), origin={"forced": "flag"}), entries, CPU)
    made |= {"precision": {"name": "fp32", "reason": "default"}, "allocator": {}}
    made |= {"metrics": {"best": {"epoch": 1}}, "artifacts": {"model.pt": {"bytes": 1, "sha256": "0" * 64}}}
    return json.loads(json.dumps(made, allow_nan=False))


def test_written_metadata_fits_the_schema_and_has_no_field_beyond_it(record: dict[str, Any]) -> None:
    jsonschema.validate(record, json_schema())
    strict = json.loads(json.dumps(json_schema()))
    for definition in strict["$defs"].values():
        definition["additionalProperties"] = False
    jsonschema.validate(record, strict)
    assert read(record).forced_rules == ["rule-a"]


def broken(record: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(record)
    *folders, last = path.split(".")
    place = changed
    for name in folders:
        place = place[int(name)] if isinstance(place, list) else place[name]
    if value is KeyError:
        del place[last]
    else:
        place[last] = value
    return changed


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("schema_version", 1),
        ("run", 7),
        ("run", KeyError),
        ("data.rows", "many"),
        ("data.source", 1),
        ("features", {}),
        ("features.0.lookback", 1.5),
        ("features.0.name", KeyError),
        ("scaler.mean", [True]),
        ("split.train", None),
        ("seed", True),
        ("versions.torch", 2),
        ("absent", []),
        ("artifacts.x", 1),
    ],
)
def test_schema_and_reader_refuse_the_same(record: dict[str, Any], path: str, value: Any) -> None:
    changed = broken(record, path, value)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(changed, json_schema())
    with pytest.raises(ValueError, match=r"is missing|schema_version is|\bis \w+"):
        read(changed)


def test_field_of_a_later_version_is_left_out(record: dict[str, Any]) -> None:
    assert isinstance(read(record | {"later": 1}), Metadata)


@pytest.mark.parametrize("data", [None, [], "text", {}])
def test_file_that_is_no_metadata_is_refused(data: Any) -> None:
    with pytest.raises(ValueError, match="schema_version is None"):
        read(data)

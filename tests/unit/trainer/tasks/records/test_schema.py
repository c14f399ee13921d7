from __future__ import annotations

import os
from pathlib import Path

import jsonschema
import pytest

import trainer
from trainer.cli import main
from trainer.tasks.records.language_schema import LanguageMetadata
from trainer.tasks.records.row_schema import Metadata
from trainer.tasks.records.schema import json_schema

FILE = Path(trainer.__file__).parent / "storage" / "metadata.schema.json"


def test_schema_in_the_repository_is_that_of_the_records(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    printed = capsys.readouterr().out
    if os.environ.get("ROCMATRIX_UPDATE_GOLDEN"):
        FILE.write_text(printed)
    assert printed == FILE.read_text(), "run `python -m trainer schema > trainer/storage/metadata.schema.json`"


def test_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())


def test_schema_has_a_branch_for_each_kind_of_task() -> None:
    schema = json_schema()
    assert schema["then"]["$ref"] == f"#/$defs/{LanguageMetadata.__name__}"
    assert schema["else"]["$ref"] == f"#/$defs/{Metadata.__name__}"

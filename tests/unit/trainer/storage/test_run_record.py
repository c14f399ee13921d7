from __future__ import annotations

from dataclasses import fields, is_dataclass

import pytest

from trainer.storage import run_record
from trainer.storage.record_shape import read_as
from trainer.storage.run_record import RemediesRecord


def test_record_of_a_run_is_read_and_a_field_of_another_type_refused() -> None:
    data = {"names": ["math"], "reason": "two aborts", "died_at": [3]}
    assert read_as(RemediesRecord, data, "remedies").died_at == [3]
    with pytest.raises(ValueError, match=r"remedies\.died_at"):
        read_as(RemediesRecord, {**data, "died_at": ["3"]}, "remedies")


def test_records_of_every_run_have_no_field_of_rows() -> None:
    kinds = [kind for kind in vars(run_record).values() if is_dataclass(kind) and isinstance(kind, type)]
    assert len(kinds) > 5
    assert not {"scaler", "widths", "horizon", "features"} & {field.name for kind in kinds for field in fields(kind)}

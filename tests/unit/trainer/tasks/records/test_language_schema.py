from __future__ import annotations

from dataclasses import fields

from trainer.storage.record_shape import schema_of
from trainer.tasks.records.language_schema import LanguageMetadata
from trainer.tasks.records.row_schema import Metadata


def test_language_model_shares_what_describes_a_run_and_nothing_of_rows() -> None:
    """What only one of the two has is the task's; a field of a run that is added to one alone is seen here."""
    names = {kind: {field.name for field in fields(kind)} for kind in (LanguageMetadata, Metadata)}
    assert names[LanguageMetadata] - names[Metadata] == {"task", "language", "micro_batch", "fast"}
    of_rows = {"features", "feature_set", "scaler", "target", "split", "baselines", "attention"}
    assert names[Metadata] - names[LanguageMetadata] == of_rows


def test_schema_holds_no_class_of_rows() -> None:
    definitions: dict[str, object] = {}
    schema_of(LanguageMetadata, definitions)
    assert not {"ScalerRecord", "TargetRecord", "SplitRecord", "FeatureRecord"} & set(definitions)

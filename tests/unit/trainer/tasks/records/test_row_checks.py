"""Values of a metadata.json that no run can have written are refused by the name of their field."""

import math
from types import SimpleNamespace as Record

import pytest

from trainer.tasks.records.row_checks import require_sound


def metadata(**changes):
    """Return what the checks read of a network of two numbers and one category of three values."""
    parts = {
        "run": "one",
        "artifacts": {"model.pt": {}},
        "features": [Record(name="a"), Record(name="b"), Record(name="c")],
        "scaler": Record(mean=[0.0] * 3, std=[1.0] * 3),
        "target": Record(mean=0.0, std=1.0, labels=None, classes=0, class_weights=None, horizon=1),
        "model": Record(
            kind="mlp", widths=[4, 8, 1], dropout=0.0, embeddings=[{"column": 2, "values": 3, "width": 2}],
            token_width=None, heads=None,
        ),
    }  # fmt: skip
    for place, value in changes.items():
        part, _, field = place.partition("__")
        if field:
            setattr(parts[part], field, value)
        else:
            parts[part] = value
    return Record(**parts)


CLASSES = {"target__labels": ["a", "b"], "target__classes": 2, "model__widths": [4, 8, 2]}
TRANSFORMER = {"model__kind": "transformer", "model__widths": [3, 8, 1], "model__token_width": 8, "model__heads": 2}


@pytest.mark.parametrize("changes", [{}, CLASSES, CLASSES | {"target__class_weights": [1.0, 0.0]}, TRANSFORMER])
def test_record_as_a_run_writes_it_is_sound(changes):
    require_sound(metadata(**changes))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"run": "../one"}, "run"),
        ({"run": ""}, "run"),
        ({"artifacts": {"a/b": {}}}, "artifacts.'a/b'"),
        ({"artifacts": {"..": {}}}, "artifacts.'..'"),
        ({"features": []}, "features"),
        ({"features": [Record(name="a")] * 3}, "features"),
        ({"scaler__mean": [0.0] * 2}, "scaler"),
        ({"scaler__mean": [0.0, 0.0, math.nan]}, "scaler.mean"),
        ({"scaler__mean": [0.0, 0.0, 10**400]}, "scaler.mean"),
        ({"scaler__std": [1.0, 1.0, 0.0]}, "scaler.std"),
        ({"target__mean": math.inf}, "target.mean"),
        ({"target__std": 0.0}, "target.std"),
        ({"target__horizon": 0}, "target.horizon"),
        (CLASSES | {"target__labels": ["a", "a"]}, "target.labels"),
        ({"target__labels": ["a"], "target__classes": 1}, "target.labels"),
        ({"target__labels": []}, "target.labels"),
        (CLASSES | {"target__class_weights": [1.0]}, "target.class_weights"),
        (CLASSES | {"target__class_weights": [1.0, -1.0]}, "target.class_weights"),
        ({"model__widths": [1]}, "model.widths"),
        ({"model__widths": [4, 0, 1]}, "model.widths"),
        ({"model__widths": [4, 8, 2]}, "model.widths"),
        ({"model__widths": [3, 8, 1]}, "model.widths"),
        ({"model__dropout": 1}, "model.dropout"),
        ({"model__embeddings": [{"column": 3, "values": 3, "width": 2}]}, "model.embeddings"),
        ({"model__embeddings": [{"column": 2, "values": 0, "width": 2}]}, "model.embeddings"),
        ({"model__embeddings": [{"column": 2, "values": 3}]}, "model.embeddings"),
        ({"model__embeddings": [{"column": 2, "values": 3, "width": 1}] * 2}, "model.embeddings"),
        (TRANSFORMER | {"model__heads": 3}, "model.heads"),
        (TRANSFORMER | {"model__heads": None}, "model.heads"),
        (TRANSFORMER | {"model__widths": [4, 8, 1]}, "model.widths"),
    ],
)
def test_value_that_no_run_writes_is_refused_by_its_field(changes, field):
    with pytest.raises(ValueError, match=f"^{field.replace('.', '[.]')} makes no sense$"):
        require_sound(metadata(**changes))

"""Check that the values of a metadata.json agree; their types are checked before, by `row_schema.read`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from trainer.tasks.records.row_schema import Metadata, ModelRecord

NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,199}", re.ASCII)  # of a run and of a file beside metadata.json
MOST_WIDTH, MOST_LAYERS = 2**24, 1024


def require_sound(metadata: Metadata) -> None:
    """Raise ValueError, naming the first field that no run can have written."""
    for checks in (_names, _scales, _target, _model):
        for field, good in checks(metadata):
            if not good:
                raise ValueError(f"{field} makes no sense")


def _names(metadata: Metadata) -> Iterator[tuple[str, bool]]:
    yield "run", NAME.fullmatch(metadata.run) is not None
    for name in metadata.artifacts:  # never a path: `run / name` would leave the folder
        yield f"artifacts.{name[:80]!r}", NAME.fullmatch(name) is not None


def _scales(metadata: Metadata) -> Iterator[tuple[str, bool]]:
    scaler, names = metadata.scaler, [feature.name for feature in metadata.features]
    yield "features", bool(names) and len(set(names)) == len(names)
    yield "scaler", len(scaler.mean) == len(scaler.std) == len(names)
    yield "scaler.mean", all(map(_finite, scaler.mean))
    yield "scaler.std", all(_finite(value) and value > 0 for value in scaler.std)


def _target(metadata: Metadata) -> Iterator[tuple[str, bool]]:
    target = metadata.target
    yield "target.mean", _finite(target.mean)
    yield "target.std", _finite(target.std) and target.std > 0
    labels = target.labels if target.labels is not None else []
    yield "target.labels", len(set(labels)) == len(labels) == target.classes != 1
    yield "target.labels", (target.labels is None) == (target.classes == 0)
    weights = target.class_weights
    yield "target.class_weights", weights is None or (len(weights) == target.classes and all(map(_positive, weights)))
    yield "target.horizon", target.horizon is None or target.horizon >= 1


def _model(metadata: Metadata) -> Iterator[tuple[str, bool]]:
    model, target = metadata.model, metadata.target
    yield "model.widths", 2 <= len(model.widths) <= MOST_LAYERS and all(0 < w <= MOST_WIDTH for w in model.widths)
    yield "model.widths", model.widths[-1] == max(1, target.classes)
    yield "model.dropout", 0 <= model.dropout < 1
    for each in model.embeddings:
        yield "model.embeddings", each.keys() >= {"column", "values", "width"}
        bounds = {"column": len(metadata.features), "values": MOST_WIDTH, "width": MOST_WIDTH + 1}
        yield "model.embeddings", all(0 <= each[name] < bound for name, bound in bounds.items())
        yield "model.embeddings", each["width"] > 0 and each["values"] > 0
    columns = [each["column"] for each in model.embeddings]
    yield "model.embeddings", len(set(columns)) == len(columns)
    yield from _inputs(model, len(metadata.features))


def _inputs(model: ModelRecord, features: int) -> Iterator[tuple[str, bool]]:
    if model.kind == "transformer":
        width, heads = model.token_width or 0, model.heads or 0
        yield "model.heads", 0 < heads <= width <= MOST_WIDTH and width % heads == 0
        yield "model.widths", model.widths[0] == features
    else:
        yield "model.widths", model.widths[0] == features + sum(each["width"] - 1 for each in model.embeddings)


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an int of hundreds of digits
        return False


def _positive(value: float) -> bool:
    return _finite(value) and value >= 0

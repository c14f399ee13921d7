"""metadata.json of a run over rows of numbers, bars or a table, as dataclasses, and the reader that `predict` uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from trainer.storage.record_shape import read_as
from trainer.storage.run_record import (
    SCHEMA_VERSION,
    ArtifactRecord,
    AttentionRecord,
    CallbackRecord,
    DeviceRecord,
    PrecisionRecord,
    RankChoiceRecord,
    RemediesRecord,
)


@dataclass(frozen=True, kw_only=True)
class DataRecord:
    """The data file; `rows` counts its bars or rows, `rows_used` those of the run. Dates are null without times.

    `read` states how it was understood: columns, time format and zone, separator, and its bad rows by kind.
    """

    name: str
    sha256: str
    source: str | None
    read: dict[str, Any]
    rows: int
    rows_used: int
    first_date: str | None
    last_date: str | None


@dataclass(frozen=True, kw_only=True)
class FeatureRecord:
    """One column of the input, in the input's order; `lookback` bars before the current one are needed.

    Intraday features look back to sessions, not to a number of bars, and have none.
    """

    name: str
    formula: str
    unit: str
    lookback: int | None


@dataclass(frozen=True, kw_only=True)
class ScalerRecord:
    """Scaled input = (feature - mean) / std, one number for each feature."""

    mean: list[float]
    std: list[float]


@dataclass(frozen=True, kw_only=True)
class TargetRecord:
    """Forecast = output * std + mean, in `unit`, `horizon` bars ahead; null for a table.

    `classes` is 0 for a number. Else `labels` names them in the outputs' order, whose softmax are probabilities, and
    `class_weights` balance the classes of the training part, where that was asked for.
    """

    name: str
    formula: str
    unit: str
    classes: int
    labels: list[str] | None
    class_weights: list[float] | None
    horizon: int | None
    mean: float
    std: float


@dataclass(frozen=True, kw_only=True)
class PartRecord:
    """One part of the split."""

    rows: int
    first_date: str | None
    last_date: str | None


@dataclass(frozen=True, kw_only=True)
class SplitRecord:
    """Three parts, by `time` or by `seed`; by seed perhaps `stratified`: each class in the same shares.

    `embargo` rows are dropped between parts in time order.
    """

    by: str
    seed: int | None
    stratified: bool
    embargo: int
    train: PartRecord
    validation: PartRecord
    test: PartRecord


@dataclass(frozen=True, kw_only=True)
class ModelRecord:
    """Layers of these widths, inputs first: Linear, norm, activation, dropout for each, Linear at the end.

    `embeddings` gives column, number of values and vector's width of each input that is a code. `storage` states how
    model.safetensors holds the weights: dense, bitmask (those that are not 0, and where), or int8.

    A transformer has tokens of `token_width` and `heads`; its first width counts columns, and its hidden ones are
    those of its blocks' feed-forward layers. `settings` are those that another kind has of its own, by name.
    """

    kind: str
    widths: list[int]
    activation: str
    norm: str
    dropout: float
    embeddings: list[dict[str, int]]
    loss: str
    storage: str
    token_width: int | None = None
    heads: int | None = None
    settings: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Metadata:
    """Everything needed to repeat a run and to use its model without the trainer.

    `config` holds every setting as resolved and `config_origin` where each that is no default came from.
    `feature_set` states which set of features it is, why, and for intraday bars under which conventions.
    `forced_rules` are rules of the matrix that were overridden. `absent` gives the reason for each null.
    """

    schema_version: Annotated[int, SCHEMA_VERSION]
    run: str
    created: str
    data: DataRecord
    features: list[FeatureRecord]
    feature_set: dict[str, Any]
    scaler: ScalerRecord
    target: TargetRecord
    split: SplitRecord
    model: ModelRecord
    baselines: dict[str, str]
    seed: int
    threads: int
    device: DeviceRecord
    precision: PrecisionRecord
    allocator: dict[str, Any]
    versions: dict[str, str | None]
    config: dict[str, Any]
    config_origin: dict[str, str]
    matrix_cell: str | None
    forced_rules: list[str]
    image: str | None
    git_commit: str | None
    absent: dict[str, str]
    metrics: dict[str, Any]
    artifacts: dict[str, ArtifactRecord]
    attention: AttentionRecord | None = None
    callbacks: list[CallbackRecord] | None = None
    rank_choice: RankChoiceRecord | None = None
    remedies: RemediesRecord | None = None
    gates: dict[str, Any] | None = None
    shared_memory: dict[str, Any] | None = None


def read(data: Any) -> Metadata:
    """Return the content of a metadata.json; fields that it does not know are left out.

    Raises:
        ValueError: naming the field that is missing or of another type, and for a task that is not bars or a table.
    """
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version != SCHEMA_VERSION:
        raise ValueError(f"schema_version is {version!r}, this trainer reads {SCHEMA_VERSION}")
    if "task" in data:
        raise ValueError(f"the run learned a task of kind {data['task']!r}, which has no rows with features")
    metadata: Metadata = read_as(Metadata, data, "")
    return metadata

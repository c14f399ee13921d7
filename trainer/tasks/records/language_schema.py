"""metadata.json of a run with a language model as dataclasses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from trainer.storage.run_record import (
    SCHEMA_VERSION,
    ArtifactRecord,
    CallbackRecord,
    DeviceRecord,
    PrecisionRecord,
    RankChoiceRecord,
    RemediesRecord,
)


@dataclass(frozen=True, kw_only=True)
class LanguageRecord:
    """What a language model was trained on: sequences of `sequence` tokens, by which method, tokenizer and template."""

    method: str
    sequence: int
    tokenizer: dict[str, Any]
    chat_template: dict[str, str] | None
    train_sequences: int
    validation_sequences: int


@dataclass(frozen=True, kw_only=True)
class LanguageMetadata:
    """A run with `task: language`: what it shares with other runs, and `language` instead of features and targets.

    `model.config` is the model's config.json, `model.lora` the adapter's settings. The weights are next to it in
    Hugging Face layout, or as an adapter in peft's. `fast` names for each part what computed it, why, and what was
    tried. `micro_batch` is what --micro-batch auto started with on a card: rows (null for all of a step), why, and the
    planned bytes.
    """

    schema_version: Annotated[int, SCHEMA_VERSION]
    task: Annotated[str, "language"]
    run: str
    created: str
    data: dict[str, Any]
    model: dict[str, Any]
    language: LanguageRecord
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
    micro_batch: dict[str, Any] | None = None
    fast: dict[str, Any] | None = None
    callbacks: list[CallbackRecord] | None = None
    rank_choice: RankChoiceRecord | None = None
    remedies: RemediesRecord | None = None
    gates: dict[str, Any] | None = None
    shared_memory: dict[str, Any] | None = None

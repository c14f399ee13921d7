"""What metadata.json records of any run, whatever it learned: classes that the schemas of all tasks share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SCHEMA_VERSION = 4


@dataclass(frozen=True, kw_only=True)
class DeviceRecord:
    """Where the run computed, and why there."""

    device: str
    kind: str
    name: str
    arch: str
    memory_bytes: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class PrecisionRecord:
    """The numbers' format that the run computed in, and why it."""

    name: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class AttentionRecord:
    """The attention kernel of training, why it, and what each was found to be: largest error, seconds, refusal."""

    kernel: str
    reason: str
    findings: list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class RemediesRecord:
    """What a run did about a fault of a card or its libraries: `names` of the remedies, and why.

    `died_at` has the steps, from 1, at which earlier attempts ended without a message, those of unknown cause too.
    """

    names: list[str]
    reason: str
    died_at: list[int]


@dataclass(frozen=True, kw_only=True)
class RankChoiceRecord:
    """What `--ranks auto` came to: the number of ranks, why, and the measured rates; null where nothing was measured.

    `all` is of all cards at the same batch, its `larger` at as many rows on each card as one has alone. `stand_in`
    states that ranks on a CPU imitated cards. All cards are taken from `margin` times the rows a second of one on.
    `resumed` holds what each resume of the run came to, in order.
    """

    ranks: int
    reason: str
    one: dict[str, Any] | None
    all: dict[str, Any] | None
    stand_in: bool
    margin: float
    resumed: list[dict[str, Any]] | None = None


@dataclass(frozen=True, kw_only=True)
class ArtifactRecord:
    """A file next to metadata.json."""

    bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class CallbackRecord:
    """A user's callback: its place and class as given, the SHA-256 of its file, and what its class states."""

    name: str
    sha256: str
    changes_results: bool
    all_ranks: bool

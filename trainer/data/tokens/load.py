"""Training and validation rows of tokens, loaded from a file by the settings."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from trainer.config.sections.tokens import TokensConfig
from trainer.data.tokens import corpus
from trainer.data.tokens.chat_template import ChatTemplate
from trainer.data.tokens.field_names import NO_NAMES
from trainer.data.tokens.files.kind import is_rows, require_readable, require_text
from trainer.data.tokens.packing import best_fit, pack
from trainer.data.tokens.partition import (
    JudgedPartition,
    PackedPartition,
    PairPartition,
    WindowRows,
    judged_partition,
    pair_partition,
)
from trainer.data.tokens.records import Record, read_records
from trainer.data.tokens.row import RowPolicy, TokenizedRows, TokenRow
from trainer.data.tokens.tokenize import tokenize_judged, tokenize_pairs, tokenize_records
from trainer.data.tokens.tokenizer import Tokenizer
from trainer.runtime.errors import TrainerError

IN_MEMORY = 2**26  # bytes of text; a larger one becomes mapped shards


@dataclass(frozen=True, kw_only=True)
class LanguageData:
    """Rows to train and to validate on, and what metadata.json records of them."""

    method: str
    train: WindowRows | PackedPartition | PairPartition | JudgedPartition
    validation: WindowRows | PackedPartition | PairPartition | JudgedPartition
    sha256: str
    facts: dict[str, Any] = field(default_factory=dict)


def method_of(path: Path, requested: str, names: Mapping[str, str] = NO_NAMES) -> str:
    """Return pretrain, sft, dpo or kto: as asked, or by the first valid row; a file without rows is a text.

    Args:
        path: the file.
        requested: value of `--method`.
        names: value of `--rename`.

    Raises:
        TrainerError: RM708 of the first row where none is valid, RM717 for a file of another kind.
    """
    require_readable(path)
    if requested != "auto":
        return requested
    if not is_rows(path):
        require_text(path)
        return "pretrain"
    first = invalid = None
    for row in read_records(path, names):
        if isinstance(row, Record):
            first = row
            break
        invalid = invalid or row
    if first is None:
        raise invalid or TrainerError("RM717", what="the file has no row", where=str(path))
    if first.good is not None:
        return "kto"
    return "pretrain" if first.text is not None else "sft" if first.rejected is None else "dpo"


def load(
    path: Path,
    config: TokensConfig,
    tokenizer: Tokenizer,
    template: ChatTemplate | None,
    *,
    folder: Path,
    seed: int,
) -> LanguageData:
    """Return the rows of a file. `folder` receives the shards of a text too large for memory.

    Args:
        path: text or JSON lines.
        folder: folder for the shards of a text too large for memory.
        seed: seed of the split into training and validation.

    Raises:
        TrainerError: RM706 to RM717.
    """
    names = config.rows.names
    method = method_of(path, config.method, names)
    if method == "pretrain":
        return _windows(path, config, tokenizer, folder)
    records: Iterable[Record | TrainerError] = read_records(path, names)
    records = records if config.method != "auto" else of_one_kind(records, method)
    if config.rows.max_rows is not None:
        records = itertools.islice(records, config.rows.max_rows)
    policy = RowPolicy(
        length=config.sequence,
        bad_rows=config.bad_rows,
        too_long=config.too_long,
        stop_token=config.stop_token,
        whole=config.train_on_prompts,
    )
    if method == "kto":
        return _judged(path, tokenize_judged(records, tokenizer, template, policy), config, tokenizer, seed)
    tokenize, make = (tokenize_records, _packed) if method == "sft" else (tokenize_pairs, _pairs)
    made = tokenize(records, tokenizer, template, policy)
    parts = _split(made.rows, config.validation_share, seed, path)
    return make(path, made, parts, config, tokenizer)


def of_one_kind(records: Iterable[Record | TrainerError], method: str) -> Iterator[Record | TrainerError]:
    """Yield records; a pair or a text among answers is the error of its row.

    A pair's worse answer would be lost, and of a text all would carry loss, where of other rows the answers alone do.

    Args:
        records: records, or the error of a line that is none.
        method: sft, dpo or kto, as the first row decided; of the last two a row of another kind is an error anyway.
    """
    for record in records:
        what, trained = _other_kind(record) if method == "sft" and isinstance(record, Record) else ("", "")
        if what:
            next = f"Split the file, or choose --method sft, which trains {trained}."
            what = f"the row is {what}, and rows before it are answers"
            yield TrainerError("RM708", what=what, where=record.where, next=next)
        else:
            yield record


def _other_kind(record: Record) -> tuple[str, str]:
    """Return what a row among answers is that has none of its own, and what --method sft trains of it; else empty."""
    if record.rejected is not None:
        return "a pair", "the better answers of pairs"
    return ("a text", "all of a text") if record.text is not None else ("", "")


def _windows(path: Path, config: TokensConfig, tokenizer: Tokenizer, folder: Path) -> LanguageData:
    stream = stream_of(path, tokenizer, folder, config.rows.names)
    count = (len(stream) - 1) // config.sequence
    if count < 2:
        what = f"{len(stream)} tokens make {max(count, 0)} rows of {config.sequence}; 2 are needed"
        raise TrainerError("RM714", what=what, where=str(path))
    held = held_out(count, config.validation_share)
    train = WindowRows(stream=stream, first=0, count=count - held, length=config.sequence)
    validation = WindowRows(stream=stream, first=count - held, count=held, length=config.sequence)
    facts = {"tokens": len(stream), "text_bytes": stream.text_bytes, "shards": len(stream.shards)}
    return LanguageData(method="pretrain", train=train, validation=validation, sha256=stream.text_sha256, facts=facts)


def held_out(count: int, share: float) -> int:
    """Return how many of `count` rows are held out: at least one, and never all."""
    return min(max(1, round(count * share)), count - 1)


def stream_of(
    path: Path, tokenizer: Tokenizer, folder: Path, names: Mapping[str, str] = NO_NAMES
) -> corpus.TokenStream:
    """Return a corpus' tokens: in memory, or as shards that are made once for text and tokenizer.

    Args:
        path: text file.
        folder: folder for the shards of a text too large for memory.
        names: value of `--rename`.
    """
    if not path.is_file():
        raise TrainerError("RM717", what=f"{path} is no file", where=str(path))
    if path.stat().st_size <= IN_MEMORY:
        return corpus.in_memory(path, tokenizer, names)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    renamed = f"-{hashlib.sha256(repr(sorted(names.items())).encode()).hexdigest()[:8]}" if names else ""
    shards = folder / ".tokens" / f"{digest[:16]}-{tokenizer.sha256[:16]}{renamed}"
    if not shards.is_dir():
        corpus.build(path, tokenizer, shards, names=names)
    return corpus.opened(shards, tokenizer)


def _packed(
    path: Path, made: TokenizedRows, parts: tuple[list[Any], list[Any]], config: TokensConfig, tokenizer: Tokenizer
) -> LanguageData:
    train, validation = (_sequences(rows, config, tokenizer) for rows in parts)
    facts = {
        "rows": len(made.rows),
        "tokens": sum(len(row.tokens) for row in made.rows),
        "trained_tokens": sum(row.trained for row in made.rows),
        "sequences": len(train) + len(validation),
        "changed": dict(made.changed),
        "first_changed": {code: Path(where).name for code, where in made.first.items()},
    }
    return LanguageData(method="sft", train=train, validation=validation, sha256=digest_of(path), facts=facts)


def _sequences(rows: list[TokenRow], config: TokensConfig, tokenizer: Tokenizer) -> PackedPartition:
    lengths = [len(row.tokens) for row in rows]
    bins = best_fit(lengths, config.sequence) if config.packing else [[number] for number in range(len(rows))]
    return PackedPartition(packed=pack(rows, bins, config.sequence, filling=tokenizer.stops[0]))


def _pairs(
    path: Path, made: TokenizedRows, parts: tuple[list[Any], list[Any]], config: TokensConfig, tokenizer: Tokenizer
) -> LanguageData:
    train, validation = (pair_partition(part, config.sequence, filling=tokenizer.stops[0]) for part in parts)
    facts = {"rows": len(made.rows), "changed": dict(made.changed)}
    return LanguageData(method="dpo", train=train, validation=validation, sha256=digest_of(path), facts=facts)


def _judged(path: Path, made: TokenizedRows, config: TokensConfig, tokenizer: Tokenizer, seed: int) -> LanguageData:
    """Return groups of answers. Raises TrainerError RM714 where no answer is good, or none bad."""
    good = sum(row.good for row in made.rows)
    facts = {"rows": len(made.rows), "good": good, "bad": len(made.rows) - good, "changed": dict(made.changed)}
    if made.rows and not 0 < good < len(made.rows):
        what = f"{good} good and {facts['bad']} bad answers: KTO compares good ones with bad ones"
        next = "Give rows of both kinds; good answers alone are trained by --method sft, without their mark."
        raise TrainerError("RM714", what=what, where=str(path), next=next)
    parts = _split(made.rows, config.validation_share, seed, path, least=2)
    how: dict[str, Any] = {"size": config.kto_group, "seed": seed, "filling": tokenizer.stops[0]}
    train, validation = (judged_partition(part, config.sequence, **how) for part in parts)
    return LanguageData(method="kto", train=train, validation=validation, sha256=digest_of(path), facts=facts)


def _split(rows: list[Any], share: float, seed: int, path: Path, least: int = 1) -> tuple[list[Any], list[Any]]:
    """Return rows to train on and rows held out, drawn by `seed`, each in the file's order.

    Args:
        rows: what is split.
        share: of the rows that are held out.
        seed: draws them.
        path: file of the rows, for an error.
        least: rows of each part at least.
    """
    if len(rows) < 2 * least:
        what = f"{len(rows)} valid rows; {least} to train on and {least} to validate on are needed"
        raise TrainerError("RM714", what=what, where=str(path))
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed)).tolist()
    held = set(order[: min(max(least, held_out(len(rows), share)), len(rows) - least)])
    train = [row for number, row in enumerate(rows) if number not in held]
    return train, [row for number, row in enumerate(rows) if number in held]


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

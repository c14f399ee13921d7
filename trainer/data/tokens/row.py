"""Rows of a data set as tokens, and what is done with those that cannot be used as they are.

Policies: `bad_rows` (stop, drop) for rows that are invalid or carry no loss, `too_long` (stop, drop, cut) for rows
beyond the sequence, `stop_token` (require, append) for answers without one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from trainer.data.tokens.records import Record
from trainer.runtime.errors import TrainerError


@dataclass(frozen=True, kw_only=True)
class TokenRow:
    """Token ids and what each weighs in the loss: 0 for a prompt's. `where` is file and line."""

    tokens: list[int]
    weights: list[float]
    where: str

    @property
    def trained(self) -> int:
        """Number of tokens that carry loss. The first token never does: nothing predicts it."""
        return sum(weight > 0 for weight in self.weights[1:])

    @property
    def answer(self) -> slice:
        """Places from the first to the last token that carries loss."""
        places = [place for place, weight in enumerate(self.weights) if weight > 0]
        return slice(places[0], places[-1] + 1)


@dataclass(frozen=True, kw_only=True)
class JudgedRow:
    """A row whose answer is good or bad."""

    row: TokenRow
    good: bool


def answered_by(prompt: TokenRow, other: TokenRow, length: int) -> TokenRow:
    """Return a row's prompt with another row's answer, cut at `length` tokens.

    Args:
        prompt: row whose tokens before its answer are taken.
        other: row whose answer is taken.
        length: most tokens.
    """
    before, answer = prompt.tokens[: prompt.answer.start], other.tokens[other.answer]
    weights = [0.0] * len(before) + [1.0] * len(answer)
    return TokenRow(tokens=[*before, *answer][:length], weights=weights[:length], where=prompt.where)


def sequences_of(method: str, group: int) -> int:
    """Return how many sequences are computed at a time for one row of the loop.

    Args:
        method: pretrain, sft, dpo or kto.
        group: answers of a row of KTO.
    """
    return {"dpo": 2, "kto": group}.get(method, 1)


@dataclass(frozen=True, kw_only=True)
class RowPolicy:
    """What is done with rows that cannot be used as they are; `length` is the most tokens of a row."""

    length: int
    bad_rows: str = "stop"
    too_long: str = "stop"
    stop_token: str = "require"
    whole: bool = False  # prompts carry loss, too


@dataclass(frozen=True, kw_only=True)
class TokenizedRows:
    """Rows (or pairs of them), and how many were dropped or cut by error code, with the first place of each."""

    rows: list[Any]
    changed: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)


def collected(
    records: Iterable[Record | TrainerError], make: Callable[[Record], tuple[Any, bool]], policy: RowPolicy
) -> TokenizedRows:
    """Return what `make` makes of records, without those that the policy leaves out.

    Args:
        records: records, or the error of a line that is none.
        make: from a record to a row (or a pair of them), and whether it was cut.
        policy: what is done with rows that cannot be used.

    Raises:
        TrainerError: RM706, RM708 to RM711, for the first row that the policy does not accept.
    """
    result = TokenizedRows(rows=[])
    for record in records:
        try:
            if isinstance(record, TrainerError):
                raise record
            row, cut = make(record)
        except TrainerError as error:
            if not is_dropped(error, policy):
                raise
            _note(result, error.code, error.where)
            continue
        result.rows.append(row)
        if cut:
            _note(result, "cut", record.where)
    return result


def usable(row: TokenRow, policy: RowPolicy) -> tuple[TokenRow, bool]:
    """Return the row within the sequence's length, and whether it was cut; it carries loss."""
    fitted, cut = _fitted(row, policy)
    _require_loss(fitted)
    return fitted, cut


def is_dropped(error: TrainerError, policy: RowPolicy) -> bool:
    """Return whether the policy leaves such a row out, rather than stop."""
    if error.code == "RM711":
        return policy.too_long == "drop"
    return error.code in ("RM706", "RM708", "RM709", "RM710") and policy.bad_rows == "drop"


def _note(result: TokenizedRows, code: str, where: str) -> None:
    result.changed[code] += 1
    result.first.setdefault(code, where)


def _fitted(row: TokenRow, policy: RowPolicy) -> tuple[TokenRow, bool]:
    """Return the row, cut at the end where the policy requires it, and whether it was."""
    length = len(row.tokens)
    if length <= policy.length:
        return row, False
    if policy.too_long != "cut":
        raise TrainerError("RM711", what=f"{length} tokens, --sequence {policy.length}", where=row.where)
    kept: dict[str, Any] = {"tokens": row.tokens[: policy.length], "weights": row.weights[: policy.length]}
    return replace(row, **kept), True


def _require_loss(row: TokenRow) -> None:
    if row.trained == 0:
        what = f"none of {len(row.tokens)} tokens carries loss"
        raise TrainerError("RM709", what=what, where=row.where)

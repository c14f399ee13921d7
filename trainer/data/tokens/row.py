"""One row of a data set as tokens."""

from __future__ import annotations

from dataclasses import dataclass


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

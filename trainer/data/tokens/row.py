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

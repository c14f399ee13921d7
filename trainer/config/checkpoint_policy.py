"""Retention of checkpoints: the last few, the best, and every n-th step."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from collections.abc import Iterable
from dataclasses import dataclass

DURATION = {"s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, kw_only=True)
class Retention:
    """`last` newest ones, `best` ones of lowest validation loss, and those at multiples of `every` steps (0: none)."""

    last: int = 2
    best: int = 0
    every: int = 0

    def kept(self, checkpoints: Iterable[tuple[int, float]]) -> set[int]:
        """Return the steps to keep of (step, validation loss) pairs; the newest always stays."""
        found = sorted(checkpoints)
        newest = {step for step, _ in found[-max(1, self.last) :]}
        return newest | self.lasting(found)

    def lasting(self, checkpoints: Iterable[tuple[int, float]]) -> set[int]:
        """Return the steps that stay when the run is complete: what was asked for beyond resuming."""
        found = list(checkpoints)
        best = sorted(found, key=lambda one: (one[1], one[0]))[: self.best]
        return {step for step, _ in best} | {step for step, _ in found if self.every and step % self.every == 0}

    def __str__(self) -> str:
        return f"last={self.last},best={self.best},every={self.every}"


@dataclass(frozen=True, kw_only=True)
class Interval:
    """Interval between checkpoints: `steps` steps or `seconds` seconds; 0 of both is never."""

    steps: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.seconds:g}s" if self.seconds else str(self.steps)


EVERY_MINUTE, LAST_TWO = Interval(seconds=60.0), Retention()


def parse_retention(text: str) -> Retention:
    """Read `last=2,best=1,every=1000`; what is left out keeps its default.

    Raises:
        ArgumentTypeError: for anything else.
    """
    matches = [re.fullmatch(r"(last|best|every)=(\d{1,12})", part.strip()) for part in text.split(",")]
    if all(matches):
        return Retention(**{match[1]: int(match[2]) for match in matches if match})
    raise ArgumentTypeError(f"{text!r} is not a policy like last=2,best=1,every=1000")


def parse_interval(text: str) -> Interval:
    """Read `500` (steps), `60s`, `10m`, `1h` or `0` (never).

    Raises:
        ArgumentTypeError: for anything else.
    """
    match = re.fullmatch(r"(\d{1,9})([smh]?)", text)
    if not match:
        raise ArgumentTypeError(f"{text!r} is neither steps (500) nor a time (60s, 10m, 1h)")
    number, unit = int(match[1]), match[2]
    return Interval(seconds=number * DURATION[unit]) if unit else Interval(steps=number)

"""Binary search over an ordered history of versions; the caller answers what each version does.

It ends with a good version and a bad one after it, between which every version was skipped. Where the history
changes once, that bad one is the first. Where it changes several times, it is one change of them, and known
answers that show so are reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, log2
from typing import Literal

Answer = Literal["good", "bad", "skip"]


@dataclass(frozen=True, kw_only=True)
class Span:
    """Places in a history: `good` stands before `bad`."""

    good: int
    bad: int


@dataclass(frozen=True, kw_only=True)
class Found:
    """The step: `good` and `bad` are places, `skipped` those between them that gave no answer."""

    good: int
    bad: int
    skipped: tuple[int, ...]
    tested: tuple[int, ...]
    changes: tuple[tuple[int, int], ...]

    @property
    def monotone(self) -> bool:
        """Whether nothing that is known contradicts a single change."""
        return len(self.changes) <= 1


def span(known: Mapping[int, Answer]) -> Span | None:
    """Return the last good place that a bad one follows, with the first bad one after it; None without such a pair."""
    bad = [place for place, answer in known.items() if answer == "bad"]
    before = [place for place, answer in known.items() if answer == "good" and any(b > place for b in bad)]
    if not before:
        return None
    good = max(before)
    return Span(good=good, bad=min(place for place in bad if place > good))


def changes(known: Mapping[int, Answer]) -> tuple[tuple[int, int], ...]:
    """Return each pair of answered neighbours at which the answer changes, in order."""
    answered = sorted(place for place, answer in known.items() if answer != "skip")
    return tuple((a, b) for a, b in pairwise(answered) if known[a] != known[b])


def unanswered(known: Mapping[int, Answer], within: Span) -> list[int]:
    """Return the places inside the span that have no answer yet, nearest to its middle first."""
    middle = (within.good + within.bad) / 2
    inside = (place for place in range(within.good + 1, within.bad) if place not in known)
    return sorted(inside, key=lambda place: (abs(place - middle), place))


def search(known: Mapping[int, Answer], test: Callable[[int], Answer]) -> Found:
    """Query until no version between good and bad is left open. Raises ValueError where `known` has no such pair."""
    answers_so_far = dict(known)
    tested: list[int] = []
    while True:
        within = span(answers_so_far)
        if within is None:
            raise ValueError("no good version stands before a bad one")
        left = unanswered(answers_so_far, within)
        if not left:
            break
        answers_so_far[left[0]] = test(left[0])
        tested.append(left[0])
    between = tuple(place for place in range(within.good + 1, within.bad))
    return Found(
        good=within.good, bad=within.bad, skipped=between, tested=tuple(tested), changes=changes(answers_so_far)
    )


def most_questions(within: Span, known: Mapping[int, Answer]) -> int:
    """Return how many versions are asked at most where none is skipped."""
    count = len(unanswered(known, within))
    return ceil(log2(count + 1)) if count else 0


def order(known: Mapping[int, Answer], within: Span) -> Iterator[int]:
    """Yield what would be asked if every answer were "good": the way a plan is shown."""
    answers_so_far = dict(known)
    while left := unanswered(answers_so_far, within):
        yield left[0]
        answers_so_far[left[0]] = "good"
        within = Span(good=left[0], bad=within.bad)

"""Known failures nearest to a text, by the terms that they share, weighed by how few failures have them.

The failures are those of public threads that signatures were learned from, each with the cause it was settled by; a
benchmark writes the file (benchmarks/similar_cases.py), with none of the threads that are kept to measure with. The
measure is that of Okapi BM25 without a count of repetitions, over the lines of a failure and, twice as heavy, over the
text of its cause; signatures that both match add to it.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rocmatrix.diagnosis.similar.agreement import covered, ordered
from rocmatrix.diagnosis.similar.terms import terms

FILE = Path(__file__).with_name("cases.json")
LONG, FLAT = 0.6, 0.6  # how much a long text weighs less, and how soon
CAUSE, SIGNATURE = 2.0, 4.0  # weights next to the lines' own
ALIKE = 0.4  # share of the weight of the lighter of two causes, from which on they are taken for the same
LOOKED_AT = 30
CROWD, CLOSE = 10, 0.7  # the nearest are not distinct where so many have this share of the first one's score


@dataclass(frozen=True, kw_only=True)
class Similar:
    """A known failure: the thread, the cause that it was settled by, in our words, and the score.

    `distinct` is whether few known failures are as near: where many are, the choice among them is nearly chance.
    """

    source: str
    cause: str
    score: float
    distinct: bool = True


@dataclass(frozen=True, kw_only=True)
class Postings:
    """The texts that have a term, by the term; how much a term of each counts, and the terms of a text on average."""

    texts: Mapping[str, Sequence[int]]
    shares: Sequence[float]
    mean: float

    @classmethod
    def of(cls, rows: Sequence[Collection[str]]) -> Postings:
        """Return those of the terms of each text."""
        texts: dict[str, list[int]] = {}
        for place, row in enumerate(rows):
            for term in row:
                texts.setdefault(term, []).append(place)
        mean = max(1.0, sum(map(len, rows)) / max(1, len(rows)))
        return cls(texts=texts, shares=[share(len(row), mean) for row in rows], mean=mean)

    def scores(self, query: Collection[str]) -> defaultdict[int, float]:
        """Return the score of each text that shares a term."""
        found: defaultdict[int, float] = defaultdict(float)
        for term in query:
            at = self.texts.get(term, ())
            rare = rarity(len(at), len(self.shares))
            for text in at:
                found[text] += rare * self.shares[text]
        return found

    def rarity(self, term: str) -> float:
        """Return the weight of a term."""
        return rarity(len(self.texts.get(term, ())), len(self.shares))

    def score(self, query: Collection[str], text: Collection[str]) -> float:
        """Return the score of a text that is not among these."""
        return sum(map(self.rarity, {*query} & {*text})) * share(len(text), self.mean)


def share(length: int, mean: float) -> float:
    """Return how much a term of a text counts: more in a short one.

    Args:
        length: terms of the text.
        mean: terms of a text on average.
    """
    return (FLAT + 1) / (1 + FLAT * (1 - LONG + LONG * length / mean))


def rarity(having: int, of: int) -> float:
    """Return the weight of what `having` of so many texts have."""
    return math.log(1 + (of - having + 0.5) / (having + 0.5))


@dataclass(frozen=True, kw_only=True)
class Known:
    """The known failures: source and cause of each, terms of lines and causes, ids of the signatures that match.

    `answers` has the id of the signature that answers each first, empty where none does.
    """

    failures: Sequence[tuple[str, str]]
    answers: Sequence[str]
    lines: Postings
    causes: Postings
    signatures: Mapping[str, Sequence[tuple[int, int]]]  # (failure, place of the signature among its answers)

    def nearest(
        self, text: str, matched: Sequence[str], count: int, *, stated: str = "", least: float = 0.0
    ) -> tuple[Similar, ...]:
        """Return the nearest failures, no two with the same cause, and none with one that is stated already.

        Args:
            text: lines of a log.
            matched: ids of the signatures that match them, the most likely first.
            count: of failures to return.
            stated: the cause that is stated first.
            least: score below which a failure is not near.
        """
        found: list[Similar] = []
        known = [terms(stated)]
        near = [row for row in self._ranked(text, matched)[:LOOKED_AT] if row[1] >= least]
        for one in self._agreed(near):
            cause = terms(one.cause)
            if not any(covered(cause, other, self.causes.rarity) >= ALIKE for other in known):
                found.append(one)
                known.append(cause)
        return tuple(found[:count])

    def _agreed(self, ranked: Sequence[tuple[int, float]]) -> list[Similar]:
        distinct = len(ranked) < CROWD or ranked[CROWD - 1][1] < CLOSE * ranked[0][1]
        near = [
            Similar(source=self.failures[at][0], cause=self.failures[at][1], score=score, distinct=distinct)
            for at, score in ranked
        ]
        places = ordered([one.score for one in near], [terms(one.cause) for one in near], self.causes.rarity)
        return [near[place] for place in places]

    def has_near(self, text: str, name: str, sample: str, count: int) -> bool:
        """Return whether a signature answers one of the nearest failures first, or its own sample is as near.

        Args:
            text: lines of a log.
            name: id of the signature.
            sample: the lines that it was written for.
            count: of failures.
        """
        ranked = self._ranked(text, ())[:count]
        least = ranked[-1][1] if len(ranked) == count else 0.0
        return any(self.answers[failure] == name for failure, _ in ranked) or (
            self.lines.score(terms(text), terms(sample)) >= least
        )

    def _ranked(self, text: str, matched: Sequence[str]) -> list[tuple[int, float]]:
        query = terms(text)
        scores = self.lines.scores(query)
        for failure, score in self.causes.scores(query).items():
            scores[failure] += CAUSE * score
        for place, name in enumerate(dict.fromkeys(matched)):
            having = self.signatures.get(name, ())
            for failure, at in having:
                scores[failure] += SIGNATURE * rarity(len(having), len(self.failures)) / ((1 + at) * (1 + place))
        return sorted(scores.items(), key=lambda row: (-row[1], row[0]))


@cache
def known() -> Known:
    """Return the known failures; none where the file is missing or damaged."""
    try:
        made = json.loads(FILE.read_text(encoding="utf-8"))
        return read(made)
    except (OSError, ValueError, KeyError, TypeError):
        return Known(failures=(), answers=(), lines=Postings.of(()), causes=Postings.of(()), signatures={})


def read(made: Mapping[str, object]) -> Known:
    """Return the known failures of the file's content.

    Args:
        made: `failures`: rows of source, cause, ids of signatures; `terms`: of each failure's lines.
    """
    rows: list[tuple[str, str, str, str]] = made["failures"]  # type: ignore[assignment]
    signatures: dict[str, list[tuple[int, int]]] = {}
    for failure, (_, _, ids, _) in enumerate(rows):
        for place, name in enumerate(ids.split()):
            signatures.setdefault(name, []).append((failure, place))
    return Known(
        failures=[(source, cause) for source, cause, _, _ in rows],
        answers=[ids.split(" ")[0] for _, _, ids, _ in rows],
        lines=Postings.of([row[3].split() for row in rows]),
        causes=Postings.of([sorted(terms(row[1])) for row in rows]),
        signatures=signatures,
    )

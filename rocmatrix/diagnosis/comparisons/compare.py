"""Rules on values, judged: which hold for what was read of a log, and for what the host reports of itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from rocmatrix.diagnosis.comparisons import condition
from rocmatrix.diagnosis.comparisons.condition import Condition
from rocmatrix.diagnosis.comparisons.forms import Comparison, Comparisons
from rocmatrix.diagnosis.comparisons.reading import Reading
from rocmatrix.diagnosis.comparisons.typed import RELATIONS, Cards, Kind, Typed, typed
from rocmatrix.diagnosis.search.match import Match

LONGEST_SHOWN = 240
MOST_NAMED = 6  # values of one name in a text
SPECIFIC = 10_000  # weight of what two values prove: before what a single line states, of any length
Source = Literal["log", "host", "both"]


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A rule that holds, as a match with its values in its texts, and where these are from."""

    rule: Comparison
    match: Match
    source: Source

    @property
    def is_certain(self) -> bool:
        """Whether the values prove the cause: they are of one machine, and the rule states one."""
        return self.source != "both" and self.rule.kind == "cause"

    @property
    def is_answer(self) -> bool:
        """Whether it explains the log by itself: all its values are read there."""
        return self.source == "log" and self.rule.shown

    @property
    def why(self) -> str:
        """What was compared, as a sentence."""
        place = {"log": self.match.where, "host": "this host", "both": f"{self.match.where} and this host"}[self.source]
        return f"{self.match.title} ({place})."


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Values by name: those read of the log, and those of the host, which stand in where the log has none."""

    read: Mapping[str, Sequence[Reading]]
    kinds: Mapping[str, Kind]
    cards: Cards
    host: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def known(self, name: str) -> bool:
        """Return whether a value was read or is known of the host."""
        return bool(self.read.get(name) or self.host.get(name))

    def texts(self, name: str) -> list[str]:
        """Return the texts of a value, each once; for a count the number of lines."""
        rows = self.read.get(name, ())
        if rows and self.kinds[name] in ("count", "rows"):
            return [str(_count(rows, each=self.kinds[name] == "rows"))]
        return list(dict.fromkeys([row.text for row in rows] or self.host.get(name, ())))

    def typed(self, name: str) -> list[Typed]:
        """Return the values of a name that state one of its kind."""
        found = (typed(self.kinds[name], text, self.cards) for text in self.texts(name))
        return [value for value in found if value is not None]

    def holds(self, one: Condition) -> bool:
        """Return whether a condition holds; one on a value that is not known never does, but `unknown`."""
        if one.relation in ("known", "unknown"):
            return self.known(one.left) == (one.relation == "known")
        left = self.typed(one.left)
        if one.right in self.kinds:
            right = self.typed(one.right)
        else:
            literal = typed(self.kinds[one.left], one.right, self.cards)
            right = [literal] if literal else []
        return bool(left and right) and RELATIONS[one.relation](left, right, one.parts)


def _count(rows: Sequence[Reading], *, each: bool) -> int:
    """Return how many texts, or lines, the output has that has most: a command may have been run twice."""
    counted = Counter(key[0] for key in {(row.section, row.text, row.line if each else 0) for row in rows})
    return max(counted.values())


def compare(known: Comparisons, facts: Facts) -> dict[str, Compared]:
    """Return the rules that hold, by id."""
    return {rule.id: _compared(rule, facts) for rule in known.rules if _holds(rule, facts)}


def kinds(known: Comparisons) -> dict[str, Kind]:
    """Return the kind of each value by its name."""
    return {name: form.kind for name, form in known.values.items()}


def _holds(rule: Comparison, facts: Facts) -> bool:
    needed, excluded = (map(condition.parse, texts) for texts in (rule.holds, rule.except_where))
    return all(map(facts.holds, needed)) and not any(map(facts.holds, excluded))


def _names(rule: Comparison, facts: Facts) -> Iterator[str]:
    """Yield the values that a rule rests on, each once."""
    named = (name for text in rule.holds for name in (condition.parse(text).left, condition.parse(text).right))
    yield from dict.fromkeys(name for name in named if name in facts.kinds and facts.known(name))


def _compared(rule: Comparison, facts: Facts) -> Compared:
    names = list(_names(rule, facts))
    rows = [facts.read[name][0] for name in names if facts.read.get(name)]
    of_host = any(not facts.read.get(name) for name in names)
    source: Source = "log" if not of_host else "both" if rows else "host"
    texts = {name: ", ".join(facts.texts(name)[:MOST_NAMED]) for name in names}
    first = min(rows, key=lambda row: row.line) if rows else None
    match = Match(
        signature=rule,
        line=first.line if first else 0,
        text=" | ".join(dict.fromkeys(row.shown for row in rows))[:LONGEST_SHOWN],
        weight=0 if rule.proves == "state" else SPECIFIC,
        log=first.log if first else "",
        packages=texts,
    )
    return Compared(rule=rule, match=match, source=source)

"""What was found of a signature in a log, and all that was found in one log or several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rocmatrix.diagnosis.search.repeats import Repeats
from rocmatrix.diagnosis.signature import Signature

MOST_COUNTED = 1000  # lines of one signature; more says nothing else
LAST_LINES = 200  # an exception that nothing caught stands among them; one before was handled
Bytes = bytes  # the type, where a field has its name


@dataclass(kw_only=True)
class Match:
    """A signature in a log: the first line (from 1) and its text, on how many lines, how much fixed text it matched.

    `last` is the last line that it matched, `context` the first one with those after it, for values; `packages` are
    those of the traceback before it. `log` and `order` are the log's name and its place among those of a folder.
    """

    signature: Signature
    line: int
    text: str
    weight: int
    count: int = 1
    log: str = ""
    order: int = 0
    last: int = 0
    context: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The signature's title, with the values of the line."""
        return self.filled(self.signature.title)

    @property
    def cause(self) -> str:
        """The signature's cause, with the values of the line."""
        return self.filled(self.signature.cause)

    def filled(self, text: str) -> str:
        """Return a text of the signature with the values of the line and of the traceback."""
        return self.signature.filled(text, self.context, self.packages)

    @property
    def where(self) -> str:
        """The line, after the log's name where there are several."""
        return f"{self.log} line {self.line}" if self.log else f"line {self.line}"


@dataclass(kw_only=True)
class Scanned:
    """What was read of a log, the matches by the id of their signature, and the signs by that and a cause's place.

    `kept` is the end of what was read, as a match may begin there, and its last `deferred` bytes are judged
    with what follows; `repeats` are lines of the log that are alike.
    """

    matches: dict[str, Match] = field(default_factory=dict)
    signs: dict[tuple[str, int], Match] = field(default_factory=dict)
    lines: int = 0
    bytes: int = 0
    kept: Bytes = b""
    deferred: int = 0
    repeats: Repeats = field(default_factory=Repeats)

    def ended(self) -> Scanned:
        """Return what stands at the end of the log: exceptions that are followed by much more were handled."""
        first = self.lines - LAST_LINES
        standing = {
            name: match
            for name, match in self.matches.items()
            if not match.signature.uncaught or match.last == 0 or match.last > first
        }
        return replace(self, matches=standing)

    def known(self) -> Scanned:
        """Return what does not rest on an exception's words alone: a log that still grows may go on after them."""
        return replace(self, matches={key: row for key, row in self.matches.items() if not row.signature.uncaught})

    def add(self, other: Scanned, *, log: str, order: int) -> None:
        """Take over what was found in another log of the same folder, one that is newer than those before.

        Args:
            log: its name.
            order: its place among the logs, from 0.
        """
        self.lines, self.bytes = self.lines + other.lines, self.bytes + other.bytes
        for name, match in other.matches.items():
            match.log, match.order = log, order
            merge(self.matches, name, match, counts=True)
        for place, match in other.signs.items():
            match.log, match.order = log, order
            self.signs.setdefault(place, match)


def merge(matches: dict[str, Match], name: str, match: Match, *, counts: bool) -> None:
    """Keep the first match of a signature, with the lines of later ones.

    Args:
        matches: what is kept, by the id of the signature; changed in place.
        name: the signature's id.
        match: what was found of it now.
        counts: whether its lines add to those of the match that is kept.
    """
    known = matches.setdefault(name, match)
    if known is not match and counts:
        known.count = min(known.count + match.count, MOST_COUNTED)
        known.last = max(known.last, match.last)
        known.weight = max(known.weight, match.weight)

"""Values read from a log while it passes: one automaton for the fixed texts of all forms, expressions at its hits."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import ahocorasick_rs

from rocmatrix.diagnosis.comparisons.forms import Read, ValueForm
from rocmatrix.diagnosis.comparisons.transcript import LONGEST, bare, command_of, line_at, plain, printed

MOST_HITS = 2000  # lines of one form: a log that has more is no transcript of it
OF_COMMAND = 20  # hits that a command counts as: what it printed is read as well
MOST_READ = 64  # values of one name that are kept
MOST_ABOVE = 60  # lines above an indented one that are looked at
MANY_IDLE = 20_000  # hits in one block that lead to no form any more: worth another automaton
LONGEST_SHOWN = 160


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A value as it was read: its text, the line (from 1) of `log`, that line, and that of its command, 0 for none."""

    text: str
    line: int
    shown: str
    log: str = ""
    section: int = 0


class Reader:
    """The forms of values, and what was read of them by the name of the value."""

    def __init__(self, values: Mapping[str, ValueForm]) -> None:
        self.readings: dict[str, list[Reading]] = defaultdict(list)
        self._forms = [(name, read) for name, form in values.items() for read in form.reads]
        self._hits = [0] * len(self._forms)
        self._log, self._lines = "", 0
        self._counted = 0, 0  # a place in the block, and how many lines end before it
        self._built()

    def watched(self, blocks: Iterable[bytes], *, log: str = "") -> Iterator[bytes]:
        """Yield the blocks of one log unchanged, and read them.

        Args:
            blocks: the log in chunks of whole lines.
            log: its name, where there are several.
        """
        if log != self._log:
            self._log, self._lines = log, 0
        for block in blocks:
            self.read(block)
            yield block

    def read(self, block: bytes) -> None:
        """Read one more chunk of whole lines."""
        self._counted = 0, 0
        if self._texts:
            self._look_at(block)
        self._lines += block.count(b"\n")

    def _built(self) -> None:
        """Build the automaton of the forms that are still looked for."""
        by_text: dict[bytes, list[int]] = defaultdict(list)
        for number, (_, read) in enumerate(self._forms):
            for text in read.literals if self._hits[number] < MOST_HITS else ():
                by_text[text.encode()].append(number)
        self._texts, self._numbers = list(by_text), list(by_text.values())
        self._automaton = ahocorasick_rs.BytesAhoCorasick(
            self._texts or [b"\0"], implementation=ahocorasick_rs.Implementation.DFA
        )

    def _look_at(self, block: bytes) -> None:
        seen: set[tuple[int, int]] = set()
        idle = 0
        for text, place, _ in self._automaton.find_matches_as_indexes(block.lower(), overlapping=True):
            needed = [number for number in self._numbers[text] if self._hits[number] < MOST_HITS]
            idle += not needed
            # the middle of a line that is too long to be read leads to the first line, which is read once
            start = block.rfind(b"\n", max(0, place - LONGEST), place) + 1 if needed else 0
            for number in needed:
                if (number, start) not in seen:
                    seen.add((number, start))
                    self._hits[number] += 1
                    self._take(number, block, start)
        if idle > MANY_IDLE:
            self._built()

    def _take(self, number: int, block: bytes, start: int) -> None:
        """Read what one form finds in the line at a place, or in what the command there printed."""
        name, read = self._forms[number]
        line = line_at(block, start)
        if read.command is None:
            self._keep(name, read, block, start, line)
            return
        text = plain(line)
        typed = command_of(text)
        if re.fullmatch(read.command, typed or bare(text)) is None:
            return
        self._hits[number] += OF_COMMAND
        rows = list(printed(block, start + len(line) + 1))
        if read.empty:
            if typed and not any(row.strip() for _, row in rows):
                self._add(name, Reading(text=text.strip(), line=self._number(block, start), shown=text, log=self._log))
            return
        section = self._number(block, start)
        for place, row in rows:
            self._keep(name, read, block, place, row, section=section)

    def _keep(self, name: str, read: Read, block: bytes, start: int, line: bytes, section: int = 0) -> None:
        """Keep what a form finds in a line.

        Args:
            name: of the value.
            start: where the line begins in the block.
            section: the line of the command that printed it, 0 for none.
        """
        if read.line is None or len(self.readings[name]) >= MOST_READ:
            return
        text = plain(line)
        if read.under and not re.search(read.under, plain(_above(block, start))):
            return
        for found in re.finditer(read.line, text):
            value = read.gives if read.gives is not None else (found["value"] or "")
            value = read.table.get(value, "") if read.table else value
            if value:
                where, shown = self._number(block, start), text.strip()[:LONGEST_SHOWN]
                value += read.unit
                self._add(name, Reading(text=value, line=where, shown=shown, log=self._log, section=section))

    def _add(self, name: str, reading: Reading) -> None:
        if reading not in self.readings[name]:
            self.readings[name].append(reading)

    def _number(self, block: bytes, start: int) -> int:
        """Return the number of a line of the log; counted from the place of the last one that was asked for."""
        place, count = self._counted
        count += block.count(b"\n", place, start) - block.count(b"\n", start, place)
        self._counted = start, count
        return self._lines + count + 1


def _above(block: bytes, start: int) -> bytes:
    """Return the nearest line before a place that is not indented; empty where the line itself is not."""
    if block[start : start + 1] not in (b" ", b"\t"):
        return b""
    for _ in range(MOST_ABOVE):
        end = start - 1
        start = block.rfind(b"\n", 0, max(0, end)) + 1
        line = line_at(block, start)
        if line[:1] not in (b" ", b"\t"):
            return line
    return b""

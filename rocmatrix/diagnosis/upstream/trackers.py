"""Issue trackers, as data: what each takes and asks for, and which one a failure belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, RootModel

from rocmatrix.diagnosis.signature import Area, Signature
from rocmatrix.matrix.loading import load as matrix_file
from rocmatrix.matrix.rule import RuleId
from rocmatrix.matrix.statement import Evidence, Strict, Text
from rocmatrix.runtime.paths import ROOT, TRACKERS

FILE = TRACKERS.relative_to(ROOT).as_posix()
Fact = Literal[
    "failure", "system", "kernel", "driver", "processor", "cards", "rocm", "torch", "versions", "component", "command",
    "lines", "ollama", "llama", "backend", "none",
]  # fmt: skip


class Ask(Strict):
    """A field of a tracker's form: the fact that fills it, and the command that shows it where it is not known."""

    label: Text
    fill: Fact
    run: Text


class Tracker(Strict):
    """A tracker. `programs` are texts in small letters of which a log of the project holds one."""

    id: RuleId
    title: Text
    address: Text
    programs: list[Text] = Field(min_length=1)
    areas: list[Area]
    asks: list[Ask] = Field(min_length=1)
    evidence: Evidence


class Trackers(RootModel[list[Tracker]]):
    """All of rocmatrix/diagnosis/upstream/trackers.yaml, the most specific project first."""


def load(root: Path) -> tuple[Tracker, ...]:
    """Read the trackers of the checkout. Raises RM001 with every mistake and its line, RM002."""
    return tuple(matrix_file.part(root, FILE, Trackers).root)


def chosen(known: Sequence[Tracker], *, line: str, named: Iterable[str], signature: Signature | None) -> list[Tracker]:
    """Return the trackers that a failure may belong to, best first: never none.

    A kernel's line belongs to the driver. Else the program that the log names, then the area of the failure.

    Args:
        known: every tracker, the most specific first, at least one.
        line: text of the failure's line.
        named: ids of the trackers whose programs the log names.
    """
    of_line = [one for one in known if _names(one, line.lower()) and (one.areas == [] or one.id == "kernel")]
    programs = [one for one in known if one.id in set(named) and not one.areas]
    by_area = [one for one in known if signature is not None and signature.area in one.areas]
    return list({one.id: one for one in (*of_line, *programs, *by_area, known[-1])}.values())  # each at its first place


def _names(one: Tracker, text: str) -> bool:
    return any(program in text for program in one.programs)


class Programs:
    """Which trackers' projects a log names, while it passes."""

    def __init__(self, known: Iterable[Tracker]) -> None:
        self._requested = {one.id: [program.encode() for program in one.programs] for one in known}
        self.named: list[str] = []

    def watched(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the blocks unchanged."""
        for block in blocks:
            small = block.lower()
            found = [name for name, texts in self._requested.items() if any(text in small for text in texts)]
            for name in found:
                self.named.append(name)
                del self._requested[name]
            yield block

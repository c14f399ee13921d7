"""Contents of the dashboard's pages as plain values: nothing here reads a clock, a file or an engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from rocmatrix.evidence.compare import Change, compare
from rocmatrix.evidence.dashboard.plot import Plot, plot
from rocmatrix.evidence.figure import Figure, figures
from rocmatrix.evidence.from_events import BEST_LOSS, EPOCHS
from rocmatrix.evidence.level import LEVELS, NO_CARD, CellStatus, Level, cell_statuses, known_images, why_not
from rocmatrix.evidence.record import Record, ordered
from rocmatrix.matrix import card_names as cards
from rocmatrix.matrix.matrix import Cell, Matrix

LOGS_SHOWN = 6
RUNS_SHOWN = 50
CPU = "CPU"


STEPS: dict[Level, str] = {  # what shows each level
    "rendered": "./invokew render",
    "built": "./invokew build",
    "proven": "./invokew prove",
    "smoked": "./invokew smoke in its image, on the card",
    "two-gpu": "./invokew smoke in its image, on two cards",
    "trained": "./invokew train in its image, on the card",
}


@dataclass(frozen=True, kw_only=True)
class Square:
    """A cell on a card: its status, its age as text, and what regressed there."""

    card: str
    cell_status: CellStatus
    age: str
    regressed: tuple[str, ...]

    @property
    def summary(self) -> str:
        """All of it for a reader who sees no colour."""
        named = f"simulated: {self.cell_status.level}" if self.cell_status.simulated else self.cell_status.level
        parts = [named, *([f"seen {self.age}"] if self.age else [])]
        parts += [f"failing: {', '.join(self.cell_status.failing)}"] if self.cell_status.failing else []
        parts += [f"{len(self.regressed)} regressed"] if self.regressed else []
        return "; ".join(parts)

    @property
    def next_step(self) -> str:
        """What shows the next level or one that is missing, and how many records count for none."""
        count = self.cell_status.set_aside
        aside = [f"{count} record{'' if count == 1 else 's'} set aside"] if count else []
        return "; ".join([*(self._step(level) for level in self._next_levels()), *aside])

    def _next_levels(self) -> Iterable[Level]:
        """Yield what can be shown next. Two cards are no condition for training on one, and a CPU has none."""
        rest = LEVELS[LEVELS.index(self.cell_status.level) + 1 :]
        found = ["trained", "two-gpu"] if rest[:1] == ("two-gpu",) else [*rest[:1], *self.cell_status.missing]
        return (level for level in LEVELS[::-1] if level in found and (level, self.card) != ("two-gpu", CPU))

    def _step(self, level: Level) -> str:
        step = STEPS[level].replace("on the card", "on this CPU") if self.card == CPU else STEPS[level]
        return f"for {level}: {step}"


@dataclass(frozen=True, kw_only=True)
class Row:
    """A cell with its squares, in the order of the section's cards."""

    cell: Cell
    squares: tuple[Square, ...]
    simulated: tuple[Square, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Section:
    """The cells of one architecture, and the cards that it is on."""

    architecture: str
    cards: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, kw_only=True)
class Run:
    """A record on a cell's page, with the reason where it is no evidence for the cell."""

    record: Record
    aside: str

    @property
    def figures(self) -> tuple[Figure, ...]:
        """What it measured, each with its spread where one was taken."""
        return figures(self.record.numbers)

    @property
    def outcome(self) -> str:
        """How it ended, as text: a run ended by a host's failure is no evidence on the cell."""
        if self.record.trouble:
            return f"ended by the host: {self.record.trouble.stage}"
        return "passed" if self.record.passed else "failed"

    @property
    def style(self) -> str:
        """The class of its outcome on a page."""
        if self.record.trouble:
            return "aside"
        return "smoked" if self.record.passed else "bad"


@dataclass(frozen=True, kw_only=True)
class CellPage:
    """Everything that is known of a cell. `simulated` are its squares on machines that were simulated."""

    cell: Cell
    squares: tuple[Square, ...]
    simulated: tuple[Square, ...]
    changes: tuple[Change, ...]
    suites: tuple[Run, ...]
    benches: tuple[Run, ...]
    proof: Run | None
    plots: tuple[Plot, ...]
    runs: tuple[Run, ...]
    logs: tuple[Run, ...]


def sections(matrix: Matrix, pages: dict[str, CellPage]) -> list[Section]:
    """Return the grid: one section an architecture, in the order of the matrix."""
    architectures = dict.fromkeys(cell.architecture for cell in matrix.cells)
    return [_section(gfx, [pages[c.name] for c in matrix.cells if c.architecture == gfx]) for gfx in architectures]


def _section(architecture: str | None, pages: Sequence[CellPage]) -> Section:
    names = tuple(dict.fromkeys(square.card for page in pages for square in page.squares))
    rows = []
    for page in pages:
        by_card = {square.card: square for square in page.squares}
        blank = next(iter(by_card.values()))
        squares = tuple(by_card.get(name) or _unseen(blank, name) for name in names)
        rows.append(Row(cell=page.cell, squares=squares, simulated=page.simulated))
    return Section(architecture=architecture or CPU, cards=names, rows=tuple(rows))


def _unseen(like: Square, card: str) -> Square:
    cell_status = CellStatus(cell=like.cell_status.cell, card=card, level="rendered")
    return Square(card=card, cell_status=cell_status, age="", regressed=())


def cell_page(cell: Cell, records: Iterable[Record], *, rendered: bool, current: str | None, now: datetime) -> CellPage:
    """Gather what the records say of `cell`. `current` is the hash of what it would be made of now.

    Args:
        records: records of this cell, in any order.
        rendered: the cell has a recipe in the checkout.
        current: input hash that the image would have now; None where it was not computed.
        now: time of the rendering.
    """
    own = ordered(record for record in records if record.cell == cell.name)
    changes = tuple(_changes(cell, own))
    images = known_images(own, cell)
    runs = tuple(Run(record=record, aside=why_not(record, cell, images=images) or "") for record in reversed(own))
    proofs = [run for run in runs if run.record.kind == "prove"]
    return CellPage(
        cell=cell,
        squares=tuple(_squares(cell, own, changes, rendered=rendered, current=current, now=now)),
        simulated=tuple(_simulated(cell, own, rendered=rendered, current=current, now=now)),
        changes=changes,
        suites=tuple(_newest(run for run in runs if run.record.kind == "smoke")),
        benches=tuple(_newest(run for run in runs if run.record.kind == "bench")),
        proof=proofs[0] if proofs else None,
        plots=tuple(_plots(own)),
        runs=runs[:RUNS_SHOWN],
        logs=tuple(run for run in runs if run.record.log)[:LOGS_SHOWN],
    )


def _newest(runs: Iterable[Run]) -> list[Run]:
    """Return the first run of each card and marks; they come newest first."""
    return list({(run.record.card, run.record.marks): run for run in reversed(list(runs))}.values())[::-1]


def _squares(
    cell: Cell, own: Sequence[Record], changes: Sequence[Change], *, rendered: bool, current: str | None, now: datetime
) -> Iterable[Square]:
    found = cell_statuses(cell, own, rendered=rendered, current_inputs=current)
    blank = cell_statuses(
        cell, [r for r in own if r.kind in ("build", "prove")], rendered=rendered, current_inputs=current
    )
    seen = {_known_as(cell_status.card, cell): cell_status for cell_status in found if cell_status.card != NO_CARD}
    for card in dict.fromkeys([*(cell.cards or (CPU,)), *seen]):
        cell_status = seen.get(card, blank[0])
        reported = tuple(c.summary for c in changes if c.failure and _known_as(c.card, cell) in (card, NO_CARD))
        yield Square(card=card, cell_status=cell_status, age=_age(cell_status, now), regressed=reported)


def _simulated(
    cell: Cell, own: Sequence[Record], *, rendered: bool, current: str | None, now: datetime
) -> Iterable[Square]:
    for cell_status in cell_statuses(cell, own, rendered=rendered, current_inputs=current, simulated=True):
        yield Square(
            card=_known_as(cell_status.card, cell), cell_status=cell_status, age=_age(cell_status, now), regressed=()
        )


def _known_as(card: str, cell: Cell) -> str:
    """Return the matrix's name of a card that a driver calls otherwise."""
    return next((name for name in cell.cards if cards.same(name, card)), card)


def _age(cell_status: CellStatus, now: datetime) -> str:
    days = cell_status.age_days(now)
    if days is None:
        return ""
    return f"{max(days, 0) * 24:.0f} h ago" if days < 2 else f"{days:.0f} days ago"


def _changes(cell: Cell, own: Sequence[Record]) -> Iterable[Change]:
    """Compare the newest run of each kind, card and marks with the newest one before it that passed."""

    def group(record: Record) -> tuple[str, str, str]:
        return record.kind, record.card, ",".join(record.marks)

    ended = (record for record in own if record.trouble is None)
    for (kind, _, _), grouped in groupby(sorted(ended, key=group), key=group):
        *earlier, newest = grouped
        good = [record for record in earlier if record.passed][-1:]
        if good and kind != "train" and newest.whole:
            yield from compare(cell.name, good, [newest])


def _plots(own: Sequence[Record]) -> Iterable[Plot]:
    series: dict[tuple[str, str, str, str], list[tuple[str, float]]] = {}
    for record in own:
        epochs = "".join(f", {n.value:g} epochs" for n in record.numbers if n.name == EPOCHS)
        for number in figures(tuple(n for n in record.numbers if n.name != EPOCHS)):
            length = epochs if number.name == BEST_LOSS else ""  # a rate does not depend on the length
            card = "" if record.card == NO_CARD else f"{record.card}: "
            key = (f"{card}{number.probe} {number.name}{length}", number.unit, ", ".join(record.marks), record.where)
            series.setdefault(key, []).append((record.at, number.value))
    for (title, unit, marks, where), measured in sorted(series.items()):
        native = "native" if where == "native" else ""
        yield plot(title, unit, measured, marked=", ".join(filter(None, [marks, native])))


def regressions(pages: Iterable[CellPage]) -> list[Change]:
    """Return every change of every cell, failures first."""
    return sorted((c for page in pages for c in page.changes), key=lambda c: (not c.failure, c.cell, c.probe))

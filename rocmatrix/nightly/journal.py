"""Journal of a night, in the evidence file: a killed night resumes after the last stage that ended.

Nights stand in the order in which they were begun, whatever the clock showed: it may be set back between two.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rocmatrix.evidence import schema
from rocmatrix.evidence.from_events import now
from rocmatrix.nightly.plan import STAGES, Plan, Stage

State = Literal["running", "passed", "failed", "left out"]


@dataclass(frozen=True, kw_only=True)
class StageResult:
    """One stage of one cell: `running` in a night that was killed means that it has to be done again."""

    cell: str
    stage: Stage
    state: State
    summary: str


@dataclass(frozen=True, kw_only=True)
class Night:
    """A night by its name. `ended` is None while it runs, and for one that was killed."""

    name: str
    plan: str
    began: str
    ended: str | None

    @property
    def simulated(self) -> bool:
        """Whether it was on a simulated machine."""
        return bool(json.loads(self.plan).get("simulated"))


class Journal:
    """The journal in one file. Raises what opening the file does: a night that cannot be kept is not begun."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self, plan: Plan, *, name: str | None = None, fresh: bool = False) -> tuple[Night, bool]:
        """Return the night to do and whether it is resumed: the newest of this plan that has not ended, or a new one.

        Args:
            name: name of the night to resume or begin; None for the date and a number, such as 2026-11-22.1.
            fresh: begin a new night although one has not ended.
        """
        with self._writing() as connection:
            open_ones = connection.execute(
                "SELECT name, plan, began, ended FROM night WHERE ended IS NULL AND plan = ? ORDER BY rowid DESC",
                (plan.encoded(),),
            ).fetchall()
            found = [Night(name=n, plan=p, began=b, ended=e) for n, p, b, e in open_ones if name in (None, n)]
            if found and not fresh:
                return found[0], True
            night = Night(name=name or _unused(connection), plan=plan.encoded(), began=now(), ended=None)
            connection.execute("INSERT INTO night VALUES (?, ?, ?, NULL)", (night.name, night.plan, night.began))
            return night, False

    def mark(self, night: str, cell: str, stage: Stage, state: State, summary: str = "") -> None:
        """Record the state of a stage, in place of its earlier one, with the time.

        Args:
            night: name of the night.
            cell: the cell\'s whole name, such as rocm7.2-torch2.12.1-gfx1100.
            summary: the reason or the result, for people; empty for none.
        """
        with self._writing() as connection:
            row = (night, cell, stage, state, now(), summary)
            connection.execute("INSERT OR REPLACE INTO leg VALUES (?, ?, ?, ?, ?, ?)", row)

    def end(self, night: str) -> None:
        """Note that every stage has been done."""
        with self._writing() as connection:
            connection.execute("UPDATE night SET ended = ? WHERE name = ?", (now(), night))

    def results(self, night: str) -> dict[tuple[str, Stage], StageResult]:
        """Return what is known of a night."""
        with schema.opened(self.path, write=False) as connection:
            rows = connection.execute("SELECT cell, stage, state, words FROM leg WHERE night = ?", (night,)).fetchall()
        return {(c, s): StageResult(cell=c, stage=s, state=state, summary=summary) for c, s, state, summary in rows}

    def nights(self) -> list[Night]:
        """Return every night, oldest first; none where there is no file."""
        if not schema.is_there(self.path):
            return []
        with schema.opened(self.path, write=False) as connection:
            if connection.execute("PRAGMA user_version").fetchone()[0] < 2:
                return []
            rows = connection.execute("SELECT name, plan, began, ended FROM night ORDER BY rowid").fetchall()
        return [Night(name=name, plan=plan, began=began, ended=ended) for name, plan, began, ended in rows]

    def last_good(self, cell: str, *, before: str) -> str | None:
        """Return the newest ended night before `before` in which no stage of `cell` failed and its smoke passed.

        A night on a simulated machine is compared with such nights only, and one on this with none of them.
        """
        good, nights = None, self.nights()
        simulated = next((night.simulated for night in nights if night.name == before), False)
        for night in nights:
            if night.name == before:
                break
            if night.simulated != simulated:
                continue
            results = [self.results(night.name).get((cell, stage)) for stage in STAGES]
            states = {result.stage: result.state for result in results if result}
            if night.ended and states.get("smoke") == "passed" and "failed" not in states.values():
                good = night.name
        return good

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with schema.opened(self.path, write=True) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise


def _unused(connection: sqlite3.Connection) -> str:
    day = now()[:10]
    taken = {name for (name,) in connection.execute("SELECT name FROM night")}
    return next(name for number in range(1, 10_000) if (name := f"{day}.{number}") not in taken)

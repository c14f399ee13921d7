"""Lines of a table that have another number of cells than its header: refused, or left out and counted."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from trainer.config.choices import REFUSING, BadRowPolicy
from trainer.runtime.errors import TrainerError

ROW_NAMES = "If the first cell of each row is its name, as R's write.table writes it, put a name for it and the mark "
ROW_NAMES += "between cells in front of the header."
QUOTED = 'A cell that holds the mark between cells stands in quotes, as in 1,"good, but dear",3: correct the line, or '
QUOTED += "save the file with another mark, such as ; or tab."
SHORT = "Complete the line, or take it out of the file."
LEFT_OUT = "--on-bad-row drop leaves such lines out."


@dataclass(kw_only=True)
class Ragged:
    """What is done with such lines, and the numbers of those that were left out.

    policy: None where a command has no --on-bad-row, which refuses as `error` does. `drop` and `repair` leave the lines
    out: which cell is missing is unknown. first: the error of the first line left out.
    """

    policy: BadRowPolicy | None
    path: Path
    lines: list[int] = field(default_factory=list)
    first: TrainerError | None = None

    def settle(self, line: int, cells: int, width: int, *, first: bool) -> None:
        """Leave a line out, or raise RM580.

        Args:
            line: its number, from 1.
            cells: how many it has.
            width: how many the header has.
            first: it is the first row behind the header.
        """
        error = self._error(line, cells, width, first=first)
        if self.policy in (None, *REFUSING):
            raise error
        self.first = self.first or error
        self.lines.append(line)

    def _error(self, line: int, cells: int, width: int, *, first: bool) -> TrainerError:
        advice = [QUOTED if cells > width else SHORT]
        if first and cells == width + 1:
            advice = [ROW_NAMES, QUOTED]
        elif self.policy:
            advice += [LEFT_OUT]
        what, where = f"{cells} cells where the header has {width}", f"{self.path}, line {line}"
        return TrainerError("RM580", what=what, where=where, next=" ".join(advice))

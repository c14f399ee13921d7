"""Errors a person can act on: what, where, why, next step, under a stable code.

RM500 to RM599 belong to the trainer. Codes are never reused. `python -m trainer errors` prints the catalog.
"""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class CatalogEntry:
    """One stable code: its title, what it means, and the usual way out."""

    code: str
    title: str
    meaning: str
    next: str


def _catalog(*rows: tuple[str, str, str, str]) -> dict[str, CatalogEntry]:
    return {code: CatalogEntry(code=code, title=t, meaning=m, next=n) for code, t, m, n in rows}


CATALOG = _catalog(
    (
        "RM500",
        "Wrong usage",
        "The command line names an unknown command or flag, or gives a flag a value it does not take.",
        "Correct the flag that is named; `python -m trainer train --help` lists them all.",
    ),
    (
        "RM501",
        "A package cannot be imported",
        "The trainer runs on torch, numpy, safetensors and tqdm; one of them is missing or broken.",
        "Install it, or run in a cell's image or in the environment that `./invokew` makes.",
    ),
    (
        "RM510",
        "Data file cannot be read",
        "The file of bars does not exist, or is no readable text file.",
        "Check the path given with --data; without --data the shipped sample is used.",
    ),
    (
        "RM511",
        "Data file is empty",
        "The file holds no header, or a header and not one bar.",
        "Give a CSV with a header line and a line for each bar.",
    ),
    (
        "RM512",
        "A column is missing",
        "Bars need the columns date, open, high, low, close, volume and vix_close; others are ignored.",
        "Rename the column in the header, or add it.",
    ),
    (
        "RM513",
        "A row cannot be read",
        "A row has too few or too many cells, or a cell is not the number or the date it should be.",
        "Correct or delete the named line.",
    ),
    (
        "RM514",
        "A bar is impossible",
        "Prices and VIX must be above zero, volume not below it, and open and close between low and high.",
        "Correct or delete the named line; a high below its low usually means swapped columns.",
    ),
    (
        "RM515",
        "Dates are out of order",
        "Each bar must be later than the one before it; features and the split by time rely on that.",
        "Sort the file by date and remove doubles.",
    ),
    (
        "RM516",
        "Data file looks cut off",
        "The last line has no line end, so its last number may have lost digits.",
        "Get the file again; if it is complete, add the missing line end.",
    ),
    (
        "RM517",
        "Too few bars",
        "After the features' lookback, the target's horizon and the embargoes, too few rows are left.",
        "Give more bars, raise --data-fraction or lower --horizon.",
    ),
    (
        "RM518",
        "The target never changes",
        "All training targets are equal (a flat price series), so there is nothing to learn.",
        "Check the close column of the data.",
    ),
    (
        "RM520",
        "The device is not here",
        "The device asked for with --device does not exist on this machine, or does not compute.",
        "Take one of the devices that are named, or --device auto.",
    ),
    (
        "RM521",
        "Out of device memory",
        "The data and the model do not fit into the memory that is free on the device.",
        "Lower --batch-size or --data-fraction, or use --device cpu.",
    ),
    (
        "RM530",
        "The loss is not a finite number",
        "Training diverged: the loss became infinite or not a number.",
        "Lower --learning-rate; if it still diverges on a GPU, compare with --device cpu.",
    ),
    (
        "RM540",
        "The run already exists",
        "A run is never overwritten: a folder of this name, or its unfinished twin, is in the output folder.",
        "Choose another name with --run, or leave --run out.",
    ),
    (
        "RM541",
        "Permission denied",
        "The operating system does not let this user read or write the named path.",
        "Choose another folder with --output, or correct the permissions.",
    ),
    (
        "RM542",
        "The file system is read-only",
        "The output folder cannot be written by anyone; in a container its mount may be read-only.",
        "Mount it writable, or choose another folder with --output.",
    ),
    (
        "RM543",
        "The disk is full",
        "A file could not be written because no space was left; unfinished files were removed.",
        "Free space at the named place, or choose another folder with --output.",
    ),
    (
        "RM544",
        "Not a folder",
        "A part of the output path is a file.",
        "Choose another folder with --output.",
    ),
    (
        "RM545",
        "Nobody reads the output",
        "The program that read the trainer's standard output ended first.",
        "Start the run again and keep its reader alive, or write the output to a file.",
    ),
    (
        "RM598",
        "Interrupted",
        "The run was stopped by Ctrl-C or by a signal; no half-written run is left behind.",
        "Start it again when you like.",
    ),
    (
        "RM599",
        "An unexpected error",
        "The trainer met something it has no words for; this is a defect of the trainer.",
        "Report it with the file that holds the traceback.",
    ),
)

_OS_CODES = {
    errno.ENOSPC: "RM543",
    errno.EDQUOT: "RM543",
    errno.EROFS: "RM542",
    errno.EACCES: "RM541",
    errno.EPERM: "RM541",
    errno.ENOTDIR: "RM544",
    errno.EEXIST: "RM544",
    errno.ENOTEMPTY: "RM540",
    errno.EPIPE: "RM545",
}


class TrainerError(Exception):
    """A failure with a stable code. `str()` gives the lines a person reads."""

    def __init__(self, code: str, *, what: str, where: str = "", why: str = "", next: str = "") -> None:
        entry = CATALOG[code]
        self.code, self.title = code, entry.title
        self.what, self.where, self.why, self.next = what, where, why, next or entry.next
        super().__init__(self.render())

    @property
    def exit_status(self) -> int:
        """2: the caller can put it right. 1: a defect of the trainer. 130: stopped by a signal."""
        return {"RM598": 130, "RM599": 1}.get(self.code, 2)

    def parts(self) -> dict[str, str]:
        """Return code, title and the known parts, as the fields of the JSON event."""
        named = {"what": self.what, "where": self.where, "why": self.why, "next": self.next}
        return {"code": self.code, "title": self.title} | {name: text for name, text in named.items() if text}

    def render(self) -> str:
        """Return the error as lines: code and title, then each part that is known."""
        code, title, *rest = self.parts().items()
        indented = [f"  {name + ':':<6} " + text.replace("\n", "\n" + " " * 9) for name, text in rest]
        return "\n".join([f"{code[1]} {title[1]}", *indented])


def from_os_error(error: OSError) -> TrainerError | None:
    """Return the error in the catalog's words, or None where the catalog has no code for its errno."""
    if error.errno not in _OS_CODES:
        return None
    where = str(error.filename or "")
    return TrainerError(_OS_CODES[error.errno], what=str(error.strerror), where=where)


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return "did you mean …?" for an unknown name, or the whole list where nothing comes near."""
    known = list(known)
    hits = difflib.get_close_matches(name, known, n=2, cutoff=0.5)
    return f"did you mean {' or '.join(hits)}?" if hits else f"known: {', '.join(known)}"

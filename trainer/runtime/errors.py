"""Errors a person can act on: what, where, why, next step, under a stable code.

RM500 to RM599 and RM700 to RM739 belong to the trainer; `codes/` holds them by topic. Codes are never reused.
`python -m trainer errors` prints the catalog.
"""

from __future__ import annotations

import difflib
import errno
import os
import re
import traceback
from collections.abc import Iterable
from pathlib import Path

from trainer.runtime.codes.data import DATA
from trainer.runtime.codes.entry import catalog
from trainer.runtime.codes.language_models import LANGUAGE_MODELS
from trainer.runtime.codes.ranks import RANKS
from trainer.runtime.codes.runs import RUNS
from trainer.runtime.codes.usage import USAGE

CATALOG = catalog(USAGE, DATA, RUNS, RANKS, LANGUAGE_MODELS)

_OS_CODES = {
    errno.ENOSPC: "RM543",
    errno.EDQUOT: "RM543",
    errno.EFBIG: "RM543",
    errno.ENOMEM: "RM587",
    errno.EROFS: "RM542",
    errno.EACCES: "RM541",
    errno.EPERM: "RM541",
    errno.ENOTDIR: "RM544",
    errno.EEXIST: "RM544",
    errno.ENAMETOOLONG: "RM544",
    errno.ELOOP: "RM544",
    errno.ENOTEMPTY: "RM540",
    errno.EPIPE: "RM545",
}

_NEXT = {
    errno.EFBIG: "A limit on the size of a file was reached: raise it (`ulimit -f unlimited`), or choose another file "
    "system with --output.",
}
_RUST_NUMBER = re.compile(r"\(os error (\d+)\)")
_LABELS = {"next": "hint"}  # what a person reads; the event keeps its field's name


class TrainerError(Exception):
    """A failure with a stable code. `str()` gives the lines a person reads."""

    def __init__(self, code: str, *, what: str, where: str = "", why: str = "", next: str = "") -> None:
        entry = CATALOG[code]
        self.code, self.title = code, entry.title
        self.what, self.where, self.why, self.next = what, where, why, next or entry.next
        super().__init__(self.render())

    @property
    def exit_status(self) -> int:
        """2: the caller can put it right. 1: a defect. 130: stopped by a signal. 75: stopped with a checkpoint."""
        return {"RM554": 75, "RM598": 130, "RM599": 1}.get(self.code, 2)

    def parts(self) -> dict[str, str]:
        """Return code, title and the known parts, as the fields of the JSON event."""
        named = {"what": self.what, "where": self.where, "why": self.why, "next": self.next}
        return {"code": self.code, "title": self.title} | {name: text for name, text in named.items() if text}

    def render(self) -> str:
        """Return the error as lines: code and title, then each part that is known."""
        code, title, *rest = self.parts().items()
        indented = [
            f"  {_LABELS.get(name, name) + ':':<6} " + text.replace("\n", "\n" + " " * 9) for name, text in rest
        ]
        return "\n".join([f"{code[1]} {title[1]}", *indented])


def of_system(error: BaseException) -> bool:
    """Return whether the system refused something, also where a package of Rust reports it by a class of its own."""
    return isinstance(error, OSError) or _RUST_NUMBER.search(str(error)) is not None


def number_of(error: BaseException) -> int | None:
    """Return the system's number of an error, which packages of Rust have in the text alone."""
    of_rust = _RUST_NUMBER.search(str(error))
    return getattr(error, "errno", None) or (int(of_rust[1]) if of_rust else None)


def from_os_error(error: BaseException) -> TrainerError | None:
    """Return the error in the catalog's words, or None where the catalog has no code for its errno."""
    name, number = getattr(error, "filename", None), number_of(error)
    if number is None or number not in _OS_CODES:
        return _working_folder_gone() if number == errno.ENOENT and name is None else None
    what, where = getattr(error, "strerror", None) or os.strerror(number), str(name or "")
    return TrainerError(_OS_CODES[number], what=what, where=where, next=_NEXT.get(number, ""))


def _working_folder_gone() -> TrainerError | None:
    """Return RM500 where the folder that the program was started in was removed meanwhile, else None."""
    try:
        Path.cwd()
    except FileNotFoundError:
        what = "the folder that this was called in was removed"
        return TrainerError("RM500", what=what, next="Change to a folder that exists, such as with `cd`.")
    return None


def from_log_settings(error: BaseException) -> TrainerError | None:
    """Return RM500 where torch refused the variable TORCH_LOGS when it was imported, None for another error."""
    value, frames = os.environ.get("TORCH_LOGS"), traceback.extract_tb(error.__traceback__)
    if value is None or not frames or "/torch/_logging/" not in frames[-1].filename:
        return None
    what = f"the environment variable TORCH_LOGS is {value!r}, which torch does not take"
    return TrainerError("RM500", what=what, next="Correct it; `TORCH_LOGS=help` lists what it takes. Or unset it.")


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return "did you mean …?" for an unknown name, or the whole list where nothing comes near."""
    known = list(known)
    alike = [each for each in known if each.casefold() == name.casefold()]
    hits = alike or difflib.get_close_matches(name, known, n=2, cutoff=0.5)
    return f"did you mean {' or '.join(hits)}?" if hits else f"known: {', '.join(known)}"


def listing(name: str, known: Iterable[str], *, kind: str) -> str:
    """Return what comes near an unknown name, where something does, and all that are known, once.

    Args:
        name: the unknown name.
        known: the names that are accepted.
        kind: noun for what is named, such as "probe".
    """
    known = list(known)
    near = difflib.get_close_matches(name, known, n=2, cutoff=0.5)
    return f"{suggestion(name, known) + ' ' if near else ''}All {kind}: {', '.join(known)}."

"""Errors a person can act on: what, where, why, next step, under a stable code.

The catalog is the source of `docs/errors.md`. Codes are never reused: RM0xx matrix and resolving,
RM1xx rendering and locks, RM2xx engine, build and launch, RM3xx hardware, RM4xx the wrapper and the
native environment. RM5xx and RM6xx belong to the trainer, which keeps its own catalog.
"""

from __future__ import annotations

import difflib
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
        "RM001",
        "The matrix file is not valid",
        "matrix.yaml (or a file it includes) breaks the schema; every mistake is listed with its line.",
        "Correct the named lines; names close to what was written are suggested.",
    ),
    (
        "RM002",
        "A matrix file cannot be read",
        "The file is missing, is not text, or the operating system refused to open it.",
        "Check the path and its permissions; `git checkout matrix.yaml matrix/` restores the shipped files.",
    ),
    (
        "RM010",
        "Unknown name",
        "A cell, card, architecture or release was asked for that the matrix does not hold.",
        "Take one of the nearest names, or add the entry with its evidence to matrix.yaml.",
    ),
    (
        "RM011",
        "No cell fits the request",
        "Every name exists, but no cell combines them.",
        "Drop or change one of the axes; the nearest cells are named.",
    ),
    (
        "RM012",
        "The combination is known to be broken",
        "A rule of the matrix says that this combination does not work, with its source.",
        "Use the nearest working cell that is named, or read the rule's source; `--force` overrides the rule.",
    ),
    (
        "RM013",
        "A companion package is known to be broken there",
        "A rule of matrix/companions.yaml says that the package does not work on this combination, with its source.",
        "Leave the package out, or take a cell for which no rule calls it broken; the message names one if there is.",
    ),
    (
        "RM101",
        "A rendered file has drifted",
        "A committed file under images/, compose/ or between README markers differs from what matrix.yaml renders.",
        "Run `./invokew render` and commit the result; edit the matrix or the template, never the output.",
    ),
    (
        "RM102",
        "A cell has no complete lock",
        "A wheel of the cell has no recorded hash, so its content cannot be checked.",
        "Run `./invokew lock` where its index can be reached, or choose a locked cell.",
    ),
    (
        "RM103",
        "A wheel does not match its hash",
        "A file in the wheelhouse has other bytes than the lock names: damaged or tampered with.",
        "Delete the named file and build again to fetch it anew; if it differs again, do not use that source.",
    ),
    (
        "RM104",
        "A wheel cannot be fetched",
        "No configured source served the locked file.",
        "Check the network, or point --wheelhouse to a folder that already holds the file.",
    ),
    (
        "RM105",
        "Resolving the pins failed",
        "The package resolver found no set of versions for the requirements.",
        "Read its last lines, loosen the pin they name, and run the task again.",
    ),
    (
        "RM106",
        "A hash is from a channel of candidates",
        "A test, nightly, prerelease or development index serves files that a release of the same name may replace.",
        "Take the hash from the index of the release itself.",
    ),
    (
        "RM107",
        "A nightly has expired",
        "The wheel is from a nightly index, which deletes its files after 120 days.",
        "Lock a release instead; a nightly that has gone cannot be fetched again from anywhere.",
    ),
    (
        "RM108",
        "A package came from another index",
        "A package of torch or ROCm was chosen from a source other than the release's own index.",
        "Remove the source that serves the package of that name from pip's configuration, and lock again.",
    ),
    (
        "RM109",
        "Not everything was locked",
        "Some releases have no recorded hash, and their index did not give one; the others were written.",
        "Run `./invokew lock` again where the indexes that are named can be reached.",
    ),
    (
        "RM201",
        "No container engine answers",
        "The docker client is missing, or the daemon is stopped or not reachable by this user.",
        "Start it (`sudo systemctl start docker`), join its group, or use `--in native`.",
    ),
    (
        "RM202",
        "The build failed",
        "BuildKit ended with an error; its log was kept.",
        "Read the last lines shown and the kept log; `--dry-run` prints the exact command.",
    ),
    (
        "RM203",
        "The image is not there",
        "The cell's image has not been built on this engine.",
        "Run `./invokew build --cell NAME` first.",
    ),
    (
        "RM204",
        "The base image is not there",
        "The image named by --base is unknown to the engine and could not be pulled.",
        "Check the name with `docker image ls`, or leave --base out.",
    ),
    (
        "RM205",
        "The disk is full",
        "A file could not be written because no space was left; unfinished files were removed.",
        "Free space at the named place (`docker system df`, `docker builder prune`) and run again.",
    ),
    (
        "RM206",
        "A folder cannot be written",
        "The output folder is read-only or belongs to another user.",
        "Choose another with --output, or correct its permissions.",
    ),
    (
        "RM207",
        "The container ended in failure",
        "The program inside ended with a non-zero status; its own error stands above.",
        "Follow the error printed by the program; status 137 means that memory ran out or it was killed.",
    ),
    (
        "RM208",
        "The smoke suite failed",
        "A probe failed, gave no verdict, or nothing was probed.",
        "Read the failed rows; each names what was measured and the limit.",
    ),
    (
        "RM301",
        "No AMD card was found",
        "The kernel's topology lists no GPU, or the driver is not loaded.",
        "Load amdgpu (`sudo modprobe amdgpu`), or name the card with --gpu to build for another machine.",
    ),
    (
        "RM302",
        "The card's nodes cannot be used",
        "/dev/kfd or a render node is missing or closed to this user.",
        "Join the numeric group of the node that is named, then log in again.",
    ),
    (
        "RM303",
        "No card of this host fits",
        "The host has AMD cards, but none of the architecture that the cell is built for, or none of that number.",
        "Take a cell of an architecture that is listed, or choose cards by their number.",
    ),
    (
        "RM401",
        "No suitable Python",
        "The wrapper needs Python 3.11 or newer with the venv module.",
        "Install it, or name one with ROCMATRIX_PYTHON=/path/to/python3.",
    ),
    (
        "RM402",
        "The environment could not be made",
        "Making .venv or installing the locked requirements failed.",
        "Read the installer's last lines; a hash mismatch means that the source served another file.",
    ),
    (
        "RM403",
        "The trainer cannot run natively here",
        "No torch build in the matrix fits this machine's Python and accelerator.",
        "Run in a container (`--in container`), or use a Python that the message names.",
    ),
    (
        "RM404",
        "Wrong usage",
        "An option has a value that it does not take.",
        "Take one of the values named, or see `./invokew --help TASK`.",
    ),
    (
        "RM499",
        "An unexpected error",
        "The program met something it has no words for; this is a defect of rocmatrix.",
        "Report it with the file that holds the traceback.",
    ),
)


class RocmatrixError(Exception):
    """A failure with a stable code. `str()` gives the lines a person reads."""

    def __init__(self, code: str, *, what: str, where: str = "", why: str = "", next: str = "") -> None:
        entry = CATALOG[code]
        self.code, self.title = code, entry.title
        self.what, self.where, self.why, self.next = what, where, why, next or entry.next
        super().__init__(self.render())

    def render(self) -> str:
        """Return the error as lines: code and title, then each part that is known."""
        parts = {"what": self.what, "where": self.where, "why": self.why, "next": self.next}
        lines = [f"{self.code} {self.title}"]
        lines += [f"  {label + ':':<6} {_indent(text)}" for label, text in parts.items() if text]
        return "\n".join(lines)


def _indent(text: str) -> str:
    return text.replace("\n", "\n         ")


def nearest(name: str, known: Iterable[str], *, most: int = 3) -> list[str]:
    """Return up to `most` known names that resemble `name`, best first, letter case ignored."""

    def resemblance(candidate: str) -> tuple[float, int]:
        # Names of chips differ by one digit, which the ratio alone cannot rank: same places break ties.
        wanted, folded = name.casefold(), candidate.casefold()
        ratio = difflib.SequenceMatcher(None, wanted, folded).ratio()
        return ratio, sum(a == b for a, b in zip(wanted, folded, strict=False))

    ranked = sorted(known, key=resemblance, reverse=True)
    return [candidate for candidate in ranked[:most] if resemblance(candidate)[0] >= 0.5]


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return "did you mean …" for an unknown name, or the whole list where nothing comes near."""
    known = list(known)
    hits = nearest(name, known)
    return f"did you mean {' or '.join(hits)}?" if hits else f"known: {', '.join(known)}"

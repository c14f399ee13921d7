"""Safe corrections of a file: a difference to look at, then the file with a backup next to it, or neither."""

from __future__ import annotations

import difflib
import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rocmatrix.doctor.environment.files import manifests
from rocmatrix.doctor.environment.lint import LintFinding
from rocmatrix.doctor.environment.lint_input import Fix
from rocmatrix.doctor.environment.shell import texts
from rocmatrix.runtime.errors import RocmatrixError

BACKUP = ".before-fix"
LINES_AHEAD = 80  # how far below the place of a finding its text may stand
Lint = Callable[[Path], Sequence[LintFinding]]


@dataclass(frozen=True, kw_only=True)
class Correction:
    """A file before and after, with the findings that were corrected and those whose place was not clear."""

    path: Path
    before: str
    after: str
    done: tuple[LintFinding, ...]
    skipped: tuple[LintFinding, ...]

    @property
    def difference(self) -> str:
        """The change as a unified difference; empty where there is none."""
        rows = (texts.rows(self.before), texts.rows(self.after))
        return "".join(difflib.unified_diff(*rows, str(self.path), str(self.path)))


def correction(path: Path, findings: Iterable[LintFinding]) -> Correction:
    """Return what a file becomes. Findings without a safe correction are left out of it.

    Args:
        path: the file that the findings are of.
        findings: what the linter reports of it.
    """
    findings = tuple(findings)
    before = _as_written(path, needed=any(finding.fix is not None for finding in findings))
    rows = texts.rows(before)
    done: list[LintFinding] = []
    skipped: list[LintFinding] = []
    # what is added is found by a text that another correction may replace, so it comes first
    for finding in sorted(findings, key=lambda one: one.fix is None or not one.fix.added):
        if finding.fix is not None and finding.fix.where.rpartition(":")[0] == str(path):
            (done if _changed(rows, finding.fix) else skipped).append(finding)
    return Correction(path=path, before=before, after="".join(rows), done=tuple(done), skipped=tuple(skipped))


def _as_written(path: Path, *, needed: bool = True) -> str:
    """Return a file's text with the ends of its lines. Raises RM685 where it is not UTF-8 and is to be corrected."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except UnicodeDecodeError as error:
        if not needed:
            return ""
        advice = "Save it as UTF-8, then correct it."
        raise RocmatrixError("RM685", what="it is not UTF-8", where=str(path), next=advice) from error


def _changed(rows: list[str], fix: Fix) -> bool:
    """Change the first line at or below the finding that holds the text as a word; False where none does."""
    first = int(fix.where.rpartition(":")[2]) - 1
    word = re.compile(rf"(?<![\w./:@-]){re.escape(fix.before)}(?![\w./-])")
    for number in range(first, min(first + LINES_AHEAD, len(rows))):
        row = rows[number]
        if row.lstrip().startswith("#") or not (found := word.search(row)):
            continue
        if fix.added:
            return _added(rows, number, fix, found.start())
        rows[number] = row[: found.start()] + fix.after + row[found.end() :]
        return True
    return False


def _added(rows: list[str], number: int, fix: Fix, at: int) -> bool:
    """Add an entry next to the one that is there: an option of a command line, or an item of a list."""
    row = rows[number]
    option = re.search(r"--device[= ]?[\"']?$", row[:at])
    if option:
        start = option.start()
        rows[number] = f"{row[:start]}{row[start : option.end()].rstrip(chr(34) + chr(39))}{fix.after} {row[start:]}"
        return True
    item = re.match(r"^(\s*-\s+)[\"']?$", row[:at])
    if item:
        ending = row[len(row.rstrip("\r\n")) :] or "\n"
        rows.insert(number, f"{item[1]}{fix.after}{ending}")
        return True
    return False


def write(found: Correction, lint: Lint) -> Path:
    """Write the corrected file, and return the backup of the old one. Raises RM685 and leaves all as it is where that
    is not safe: a link, a backup that is there, a file that changed meanwhile, a result with other findings.

    Args:
        lint: returns the findings of a file, as it did for the old one.
    """
    path, backup = found.path, found.path.with_name(found.path.name + BACKUP)
    if path.is_symlink():
        raise RocmatrixError("RM685", what="it is a link", where=str(path), next="Name the file that it leads to.")
    if backup.exists():
        raise RocmatrixError("RM685", what=f"a backup is there: {backup}", where=str(path), next="Move it away.")
    _same_but_corrected(found, lint)
    if _as_written(path) != found.before:
        raise RocmatrixError("RM685", what="it changed while it was read", where=str(path), next="Run it again.")
    backup.write_bytes(found.before.encode())
    _replaced(path, found.after)
    return backup


def _same_but_corrected(found: Correction, lint: Lint) -> None:
    """Raise RM685 where the corrected text is not the old one less the findings that were corrected."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, found.path.name)
        copy.write_text(found.before, encoding="utf-8", newline="")
        try:
            old, old_keys = _state(copy, lint)
            copy.write_text(found.after, encoding="utf-8", newline="")
            new, new_keys = _state(copy, lint)
        except RocmatrixError as error:
            raise RocmatrixError(
                "RM685", what="the result cannot be checked", where=str(found.path), why=error.brief
            ) from None
    expected = old - Counter(finding.rule for finding in found.done)
    if new - expected:
        rules = ", ".join(sorted(new - expected))
        raise RocmatrixError("RM685", what=f"the result still has, or newly has: {rules}", where=str(found.path))
    if twice := new_keys - old_keys:
        raise RocmatrixError("RM685", what=f"the result has a key twice: {', '.join(twice)}", where=str(found.path))


def _state(path: Path, lint: Lint) -> tuple[Counter[str], Counter[str]]:
    """Return the findings by rule and, of YAML, the keys that a mapping has again: a parser takes the last of them.

    Notes are left out: a tag for AMD cards may move as the one before it did.
    """
    keys = manifests.repeated_keys(path) if path.suffix.lower() in (".yml", ".yaml") else Counter[str]()
    found = (finding.rule for finding in lint(path) if finding.severity != "note" or finding.fix is not None)
    return Counter(found), keys


def _replaced(path: Path, text: str) -> None:
    mode = path.stat().st_mode
    with tempfile.NamedTemporaryFile("wb", dir=path.parent, delete=False) as file:
        file.write(text.encode())
    os.chmod(file.name, mode & 0o7777)  # noqa: PTH101 -- the name of an open temporary file
    Path(file.name).replace(path)

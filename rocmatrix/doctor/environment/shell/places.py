"""The line on which a finding's text stands: of a command over several lines, or of the variable that it is in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from rocmatrix.doctor.environment.lint import LintFinding
from rocmatrix.doctor.environment.lint_input import Assignment, Command, Subject

_WORD = re.compile(r"[A-Za-z0-9][\w.+/-]*\w")
_SHORTEST = 3  # letters of a word that tells one line from another
# what a finding says itself, or any line of a file for AMD cards has
_COMMON = {"rocm", "the", "and", "with", "from", "for", "index", "any", "newest"}


def located(findings: Iterable[LintFinding], subjects: Iterable[Subject]) -> Iterator[LintFinding]:
    """Yield findings, each that names a command at the line that holds most of its text.

    Args:
        subjects: those that the findings are of, for the lines of their commands.
    """
    held = {one.where: (one, subject.variables) for subject in subjects for one in subject.commands if one.rows}
    for finding in findings:
        place = held.get(finding.where)
        yield finding if place is None else replace(finding, where=_place(finding, *place))


def _place(finding: LintFinding, command: Command, variables: Sequence[Assignment]) -> str:
    path, _, first = finding.where.rpartition(":")
    of_what, of_truth = _words_of(finding.what), _words_of(finding.truth)
    scores = [(_holds(finding.what, row), _score(of_what, row), _score(of_truth, row)) for row in command.rows]
    if any(max(scores)[:2]):
        return f"{path}:{int(first) + scores.index(max(scores))}"
    used = [row for row in variables if re.search(rf"\$\{{?{re.escape(row.name)}\b", "\n".join(command.rows))]
    best = max(used, key=lambda row: _score(of_what, row.value), default=None)
    return best.where if best is not None and _score(of_what, best.value) else finding.where


def _holds(text: str, row: str) -> bool:
    """Return whether a line holds the whole text, quotes aside."""
    plain = row.replace('"', "").replace("'", "")
    return not row.lstrip().startswith("#") and bool(re.search(rf"{re.escape(text)}(?![\w\[.])", plain))


def _words_of(text: str) -> set[str]:
    return {word for word in map(str.lower, _WORD.findall(text)) if len(word) >= _SHORTEST} - _COMMON


def _score(words: Iterable[str], row: str) -> int:
    """Return how many letters of the words a line holds; a number may stand behind letters, as in rocm6.2."""
    if row.lstrip().startswith("#"):
        return 0
    return sum(len(word) for word in words if _whole(word).search(row.lower()))


def _whole(word: str) -> re.Pattern[str]:
    ends = (r"(?<![a-z_\d])", r"(?![a-z_])") if word[0].isalpha() else (r"(?<![\d.])", r"(?!\d)")
    return re.compile(f"{ends[0]}{re.escape(word)}{ends[1]}")

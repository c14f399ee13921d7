"""What `./invokew doctor` and `./invokew topology` call: examine, report to a person or a program, end with a status.

Status 0: nothing stops a run. 1: something does. 2: the doctor itself could not look (a wrong path, a broken file).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rocmatrix.cli.commands.common import known_matrix, print_json
from rocmatrix.runtime.console import edge, say
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.paths import ROOT

if TYPE_CHECKING:
    from rocmatrix.cli.options.host import Doctor, Topology
    from rocmatrix.doctor.environment.lint import LintFinding
    from rocmatrix.doctor.environment.subject import Subject
    from rocmatrix.doctor.examination import Examination
    from rocmatrix.matrix.matrix import Cell, Matrix

MARKS = {"error": "✗", "warning": "!", "unknown": "?", "note": "·", "ok": "✓", "not applicable": "-"}


@edge
def doctor(asked: Doctor) -> None:
    """Examine the host or a recorded tree of one, and lint environments. Ends with status 1 for an error."""
    matrix = known_matrix()
    cell = matrix.cell(asked.cell) if asked.cell else None
    examined = _examined(asked, cell) if asked.host else None
    subjects = _subjects(asked, matrix, cell)
    findings = _linted(subjects, matrix)
    if asked.json:
        print_json(described(examined, subjects, findings))
    else:
        print("\n".join([*(host_lines(examined) if examined else ()), *lint_lines(findings)]))
    if asked.sysfs:
        say(f"read from the recorded tree {asked.sysfs}, not from this machine")
    for line in summary(examined, subjects, findings):
        say(line)
    if (examined and examined.failed) or any(finding.severity == "error" for finding in findings):
        sys.exit(1)


@edge
def topology(asked: Topology) -> None:
    """Print cards, links and NUMA nodes as text, and write them as a picture where a file is named."""
    from rocmatrix.host import hardware, topology, topology_svg

    picture = topology.picture(hardware.detect(tree(asked.sysfs)))
    print(topology.text(picture))
    if asked.svg:
        _write(Path(asked.svg), topology_svg.svg(picture))
        say(f"{asked.svg}: {Path(asked.svg).stat().st_size / 1e3:.1f} kB")


def tree(sysfs: str) -> Path:
    """Return the root to read below. Raises RM310 where the folder is not there."""
    root = Path(sysfs or "/")
    if not root.is_dir():
        raise RocmatrixError("RM310", what="there is no such folder", where=str(root))
    return root


def host_lines(done: Examination) -> list[str]:
    """Return the checks for a person: one line each, and more for what asks for something."""
    lines = []
    for finding in done.findings:
        lines.append(f"{MARKS[finding.status]} {finding.code} {finding.check.title}: {finding.seen}")
        if finding.status in ("error", "warning") or finding.fix:
            lines.append(f"       why: {finding.check.why}")
            lines += [f"       fix: {finding.fix}"] if finding.fix else []
            lines.append(f"       source: {finding.check.source}")
    return lines


def lint_lines(findings: tuple[LintFinding, ...]) -> list[str]:
    """Return what was found in environments for a person."""
    lines = []
    for finding in findings:
        only = f" ({finding.condition})" if finding.condition else ""
        lines += [
            f"{MARKS[finding.severity]} {finding.rule} [{finding.kind}] {finding.where}: {finding.what}",
            f"       truly: {finding.truth}{only}",
            f"       instead: {finding.instead}",
            f"       source: {finding.source}",
        ]
    return lines


def summary(
    examined: Examination | None, subjects: tuple[Subject, ...], findings: tuple[LintFinding, ...]
) -> list[str]:
    """Return the summary, a line for the host and one for the environments.

    Args:
        subjects: environments that were read; empty leaves out their line.
        findings: findings on variables, of all subjects together.
    """
    lines = [f"host: {examined.words}"] if examined else []
    counts = {severity: sum(f.severity == severity for f in findings) for severity in ("error", "warning", "note")}
    words = ", ".join(f"{count} {severity}" for severity, count in counts.items() if count) or "nothing to say"
    variables = sum(len(subject.variables) for subject in subjects)
    if subjects:
        lines.append(f"environment: {words}, of {variables} variables in {len(subjects)} place(s)")
    return lines


def described(
    examined: Examination | None, subjects: tuple[Subject, ...], findings: tuple[LintFinding, ...]
) -> Mapping[str, object]:
    """Return everything as plain data. Values of variables without a rule are left out: some are secrets.

    Args:
        subjects: environments that were read, of which only names are returned.
        findings: findings on variables, of all subjects together.
    """
    document: dict[str, object] = dict(examined.described()) if examined else {}
    document["environment"] = [finding.described() for finding in findings]
    document["places"] = [subject.name for subject in subjects]
    return document


def examined(asked: Doctor, matrix: Matrix) -> Mapping[str, object]:
    """Return what `doctor --json` prints."""
    cell = matrix.cell(asked.cell) if asked.cell else None
    subjects = _subjects(asked, matrix, cell)
    return described(_examined(asked, cell) if asked.host else None, subjects, _linted(subjects, matrix))


def _examined(asked: Doctor, cell: Cell | None) -> Examination:
    from rocmatrix.doctor import examination, host, knowledge

    found = host.live(tree(asked.sysfs), cell=cell, environment=os.environ)
    return examination.examine(found, knowledge.load(ROOT))


def _subjects(asked: Doctor, matrix: Matrix, cell: Cell | None) -> tuple[Subject, ...]:
    from rocmatrix.doctor.environment import compose, dockerfile, subject, written
    from rocmatrix.host import hardware

    found: list[Subject] = []
    if asked.env or (asked.host and not asked.sysfs):
        found.append(subject.of_shell(os.environ, hardware.detect(tree(asked.sysfs)), cell))
    if cell is not None:
        found.append(subject.of_cell(cell))
    if asked.compose:
        found += compose.of_compose(Path(asked.compose), shell=os.environ, matrix=matrix)
    if asked.dockerfile:
        found += dockerfile.of_dockerfile(Path(asked.dockerfile))
    if asked.script:
        found += written.of_file(Path(asked.script))
    return tuple(subject.on_cell(one, cell) for one in found)


def _linted(subjects: tuple[Subject, ...], matrix: Matrix) -> tuple[LintFinding, ...]:
    from rocmatrix.doctor.environment import lint, pairs, placement, rules

    known = lint.lint(subjects, rules.load(ROOT))
    return lint.in_order((*known, *pairs.unbuilt(subjects, matrix), *placement.misplaced(subjects, matrix)))


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        advice = "Give --svg a file in a folder that exists."
        raise RocmatrixError("RM206", what=str(error.strerror), where=str(path), next=advice) from error

"""`./invokew doctor` and `./invokew topology`: examine, report to a person or a program, end with a status.

Status 0: nothing stops a run. 1: something does. 2: the doctor itself could not look (a wrong path, a broken file).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rocmatrix.cli.commands.common import known_matrix, print_json
from rocmatrix.cli.options.command import command
from rocmatrix.runtime import text_table
from rocmatrix.runtime.console import say
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.option import option
from rocmatrix.runtime.paths import ROOT

if TYPE_CHECKING:
    from rocmatrix.doctor.environment.lint import LintFinding
    from rocmatrix.doctor.environment.lint_input import Subject
    from rocmatrix.doctor.examination import Examination
    from rocmatrix.matrix.matrix import Cell, Matrix

MARKS = {"error": "✗", "warning": "!", "unknown": "?", "note": "·", "ok": "✓", "not applicable": "-"}


TREE = "read the machine whose file tree starts here, such as a recording, instead of this one"


@dataclass(frozen=True, kw_only=True)
class Doctor:
    """Options of `doctor`. Without --env and without a file, the host is examined and its shell linted."""

    json: bool = option("print the findings as JSON, for programs", default=False)
    sysfs: str = option(TREE, metavar="PATH")
    cell: str = option(
        "judge the host, the shell and the files as this cell will meet them, and its own variables too", metavar="CELL"
    )
    env: bool = option("only the variables of this shell", default=False)
    compose: str = option("only the variables of a compose file, with those of its env files", metavar="PATH")
    dockerfile: str = option("only the variables and the torch of a Dockerfile", metavar="PATH")
    script: str = option(
        "only a shell or Slurm script (with its docker run lines), or a requirements file (.txt, .in)", metavar="PATH"
    )

    file: str = option(
        "only this file, whatever it is: a Dockerfile, compose file, script, requirements file, pyproject.toml, conda "
        "environment, Kubernetes manifest, GitHub workflow, GitLab pipeline, Makefile, tasks of Ansible, module of "
        "NixOS, guest of Proxmox VE, script of Windows, settings of a training, notebook, or the code blocks of a page "
        "in Markdown or reStructuredText",
        metavar="PATH",
    )
    fix: bool = option(
        "print safe corrections of the named file as a diff, then write them; a backup is kept", default=False
    )
    diff: bool = option("print safe corrections of the named file as a diff, and write nothing", default=False)

    @property
    def host(self) -> bool:
        """Whether the host itself is to be examined."""
        return not (self.env or self.compose or self.dockerfile or self.script or self.file)

    @property
    def named(self) -> Path | None:
        """The one file that is to be corrected; None where no file, or several, are named."""
        names = [name for name in (self.compose, self.dockerfile, self.script, self.file) if name]
        return Path(names[0]) if len(names) == 1 else None


@command(Doctor, about="Check the host and its environment: what was found, why it matters, and what fixes it.")
def doctor(args: Doctor) -> None:
    """Examine the host or a recorded tree of one, and lint environments. Ends with status 1 for an error."""
    matrix = known_matrix()
    cell = matrix.cell(args.cell) if args.cell else None
    examined = _examined(args, cell) if args.host else None
    subjects = _subjects(args, matrix, cell)
    findings = linted(subjects, matrix)
    if args.sysfs:
        say(f"read from the recorded tree {args.sysfs}, not from this machine")
    for line in summary(examined, subjects, findings):
        say(line)
    if args.json:
        print_json(described(examined, subjects, findings))
    else:
        print("\n".join(text_table.folded([*(host_lines(examined) if examined else ()), *lint_lines(findings)])))
    if args.fix or args.diff:
        _correct(args, matrix, cell, findings)
    if (examined and examined.failed) or any(finding.severity == "error" for finding in findings):
        sys.exit(1)


def _correct(args: Doctor, matrix: Matrix, cell: Cell | None, findings: tuple[LintFinding, ...]) -> None:
    """Print the safe corrections of the named file, and write them where that was asked. Raises RM685, RM310."""
    from rocmatrix.doctor.environment import lint_input
    from rocmatrix.doctor.environment.files import correct, recognise

    path = args.named
    if path is None:
        raise RocmatrixError("RM310", what="--fix and --diff take one file", next="Name it with --file.")
    found = correct.correction(path, findings)
    print(found.difference or f"{path}: nothing can be corrected safely", end="" if found.difference else "\n")
    for finding in found.skipped:
        say(f"not corrected, its place is not clear: {finding.rule} {finding.what}")
    if not args.fix or not found.difference:
        return

    def again(copy: Path) -> tuple[LintFinding, ...]:
        read = recognise.subjects(copy, shell=os.environ, matrix=matrix)
        return linted(tuple(lint_input.on_cell(one, cell) for one in read), matrix)

    say(f"{path}: {len(found.done)} correction(s) written; the old file is {correct.write(found, again)}")


@dataclass(frozen=True, kw_only=True)
class Topology:
    """Options of `topology`."""

    svg: str = option("write the picture to this file as well", metavar="PATH")
    sysfs: str = option(TREE, metavar="PATH")


@command(Topology, about="Draw cards, the links between them, and NUMA nodes.")
def topology(args: Topology) -> None:
    """Print cards, links and NUMA nodes as text, and write them as a picture where a file is named."""
    from rocmatrix.host import hardware, topology, topology_svg

    picture = topology.picture(hardware.detect(tree(args.sysfs)))
    print(topology.text(picture))
    if args.svg:
        _write(Path(args.svg), topology_svg.svg(picture))
        say(f"{args.svg}: {Path(args.svg).stat().st_size / 1e3:.1f} kB")


def tree(sysfs: str) -> Path:
    """Return the root to read below. Raises RM310 where the folder is not there."""
    root = Path(sysfs or "/")
    if not root.is_dir():
        raise RocmatrixError("RM310", what="there is no such folder", where=str(root))
    return root


def host_lines(done: Examination) -> list[str]:
    """Return the checks for a person: one line each, first what asks for something, with more lines, and one line for
    all that do not apply for the same reason."""
    lines = []
    idle = [finding for finding in done.findings if finding.status == "not applicable"]
    shared = {finding.seen for finding in idle if sum(other.seen == finding.seen for other in idle) > 2}
    for finding in sorted(done.findings, key=lambda finding: finding.status not in ("error", "warning")):
        if finding.status == "not applicable" and finding.seen in shared:
            continue
        lines.append(f"{MARKS[finding.status]} {finding.code} {finding.check.title}: {finding.seen}")
        if finding.status in ("error", "warning") or finding.fix:
            lines.append(f"       why: {finding.check.why}")
            lines += [f"       fix: {finding.fix}"] if finding.fix else []
            lines.append(f"       source: {finding.check.source}")
    for seen in dict.fromkeys(finding.seen for finding in idle if finding.seen in shared):
        codes = ", ".join(finding.code for finding in idle if finding.seen == seen)
        lines.append(f"{MARKS['not applicable']} {codes}: {seen}")
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
    lines = [f"host: {examined.summary}"] if examined else []
    counts = {severity: sum(f.severity == severity for f in findings) for severity in ("error", "warning", "note")}
    words = ", ".join(f"{count} {severity}" for severity, count in counts.items() if count) or "no findings"
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


def examined(args: Doctor, matrix: Matrix) -> Mapping[str, object]:
    """Return what `doctor --json` prints."""
    cell = matrix.cell(args.cell) if args.cell else None
    subjects = _subjects(args, matrix, cell)
    return described(_examined(args, cell) if args.host else None, subjects, linted(subjects, matrix))


def linted(subjects: tuple[Subject, ...], matrix: Matrix) -> tuple[LintFinding, ...]:
    """Return the findings on environments, errors first, each at its own line of a file."""
    from rocmatrix.doctor.environment import lint, placement, rules, version_pairs
    from rocmatrix.doctor.environment.shell import places

    known = lint.lint(subjects, rules.load(ROOT))
    found = (*known, *version_pairs.unbuilt(subjects, matrix), *placement.misplaced(subjects, matrix))
    return lint.in_order(places.located(found, subjects))


def _examined(args: Doctor, cell: Cell | None) -> Examination:
    from rocmatrix.doctor import examination, host, knowledge

    found = host.live(tree(args.sysfs), cell=cell, environment=os.environ)
    return examination.examine(found, knowledge.load(ROOT))


def _subjects(args: Doctor, matrix: Matrix, cell: Cell | None) -> tuple[Subject, ...]:
    from rocmatrix.doctor.environment import compose, dockerfile, lint_input, scripts
    from rocmatrix.host import hardware

    found: list[Subject] = []
    if args.env or (args.host and not args.sysfs):
        found.append(lint_input.of_shell(os.environ, hardware.detect(tree(args.sysfs)), cell))
    if cell is not None:
        found.append(lint_input.of_cell(cell))
    if args.compose:
        found += compose.of_compose(Path(args.compose), shell=os.environ, matrix=matrix)
    if args.dockerfile:
        found += dockerfile.of_dockerfile(Path(args.dockerfile))
    if args.script:
        found += scripts.of_file(Path(args.script))
    if args.file:
        from rocmatrix.doctor.environment.files import recognise

        found += recognise.subjects(Path(args.file), shell=os.environ, matrix=matrix)
    return tuple(lint_input.on_cell(one, cell) for one in found)


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        advice = "Give --svg a file in a folder that exists."
        raise RocmatrixError("RM206", what=str(error.strerror), where=str(path), next=advice) from error

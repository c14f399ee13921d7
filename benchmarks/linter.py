"""How many mistakes in files of others the linter finds at their line, and what it says of sound ones.

    python -m benchmarks.linter                   what each set gave when it was asked first, before it was known
    python -m benchmarks.linter --files FOLDER    the same files now: FOLDER/first to FOLDER/sixth, fetched anew; a set
                                                  that has no folder there keeps its last figures

The files are others' and not kept here: benchmarks/linter_cases/ names the source of each, the lines that are wrong and
the rules whose finding says what the file needs. A finding of another rule, or at another line, counts as none.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import yaml

from rocmatrix.cli.commands.common import known_matrix
from rocmatrix.cli.commands.doctor import linted
from rocmatrix.doctor.environment.files import recognise
from rocmatrix.doctor.environment.lint import LintFinding
from rocmatrix.runtime.errors import RocmatrixError

ROOT = Path(__file__).resolve().parents[1]
CASES = ROOT / "benchmarks" / "linter_cases"
RESULTS = ROOT / "benchmarks" / "results" / "linter.json"
SETS = ("first", "second", "third", "fourth", "fifth", "sixth")


@dataclass(frozen=True, kw_only=True)
class Case:
    """A file of others. `lines` and `rules` are empty where it is sound; `first` is what the first answer was."""

    file: str
    source: str
    lines: tuple[int, ...] = ()
    rules: tuple[str, ...] = ()
    first: str = "silent"

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong in it."""
        return not self.lines

    def judged(self, findings: tuple[LintFinding, ...]) -> str:
        """Return "useful" or "missed" for a mistake; for a sound file the worst that is said, "silent" for notes."""
        if self.sound:
            severities = {finding.severity for finding in findings}
            return "error" if "error" in severities else "warning" if "warning" in severities else "silent"
        at = {f"{line}" for line in self.lines}
        named = (one.rule in self.rules and one.where.rpartition(":")[2] in at for one in findings)
        return "useful" if any(named) else "missed"


def cases(name: str) -> tuple[Case, ...]:
    """Return the files of a set."""
    rows = yaml.safe_load((CASES / f"{name}.yaml").read_text(encoding="utf-8"))
    return tuple(
        Case(
            file=row["file"], source=row["source"], lines=tuple(row.get("lines", ())),
            rules=tuple(row.get("rules", ())), first=row.get("first", "silent"),
        )
        for row in rows
    )  # fmt: skip


def now(case: Case, folder: Path) -> str:
    """Judge a file as the linter sees it today; "refused" where its form is none of those that are read."""
    try:
        found = recognise.subjects(folder / case.file, shell={}, matrix=known_matrix())
        return case.judged(linted(found, known_matrix()))
    except RocmatrixError as error:
        return "refused" if error.code == "RM311" else "absent"


def summary(rows: Mapping[Case, str]) -> dict[str, int]:
    """Return counts: mistakes with a useful finding at their line, sound files with an error or a warning."""
    wrong = {case: judged for case, judged in rows.items() if not case.sound}
    sound = [judged for case, judged in rows.items() if case.sound]
    return {
        "files": len(rows),
        "with_a_mistake": len(wrong),
        "useful_at_the_line": sum(judged == "useful" for judged in wrong.values()),
        "sound": len(sound),
        "sound_with_error_or_warning": sum(judged in ("error", "warning") for judged in sound),
        "refused": sum(judged == "refused" for judged in rows.values()),
    }


def main() -> None:
    """Print the figures; with --files keep those of today next to those of the first time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=Path)
    options = parser.parse_args()
    found = {name: {"first": summary({case: case.first for case in cases(name)})} for name in SETS}
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))
    for name in SETS if options.files else ():
        if not (options.files / name).is_dir():
            found[name]["now"] = kept[name]["now"]
            continue
        rows = {case: now(case, options.files / name) for case in cases(name)}
        found[name]["now"] = summary(rows)
        for case, judged in rows.items():
            if judged in ("missed", "error", "warning", "refused", "absent"):
                print(f"{judged:8} {case.file}: {case.source}")
    print(json.dumps(found, indent=1))
    if options.files:
        RESULTS.write_text(json.dumps({"date": date.today().isoformat(), **found}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

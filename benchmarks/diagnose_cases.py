"""How often the first answer is right: failures of public threads, judged by words of the settled cause.

    python -m benchmarks.diagnose_cases                  each set: right first, among the first three, wrong first
    python -m benchmarks.diagnose_cases --set learn -v   every case of one set that is not right first

A case is right where the words of the answer (title and cause, or one of its listed causes) name the settled cause;
what an answer only repeats of the log does not count.
*Wrong first* where the first answer states another one as certain. An answer that says that the cause is not
identified is neither: it is counted as *open*. Where no failure is found, the first remark (a note or a degraded
state) is printed in full: `right_or_remark_percent` counts those that name the settled cause too,
`right_first_percent` does not. The texts are in benchmarks/diagnosis_cases/; the set of ../shared/data/failures is
used where it is present.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from rocmatrix.diagnosis import diagnosis, project_errors, signature
from rocmatrix.diagnosis.comparisons import forms
from rocmatrix.diagnosis.diagnosis import Diagnosis
from rocmatrix.diagnosis.machine import compared_values
from rocmatrix.diagnosis.machine.log_environment import Values
from rocmatrix.diagnosis.matcher import Scanner
from rocmatrix.diagnosis.ranking import HostContext
from rocmatrix.diagnosis.search.match import Match
from rocmatrix.diagnosis.signature import Signature
from rocmatrix.matrix.loading import load as matrix_file

ROOT = Path(__file__).resolve().parents[1]
CASES = ROOT / "benchmarks" / "diagnosis_cases"
GIVEN = ROOT.parent / "shared" / "data" / "failures" / "cases.json"
RESULTS = ROOT / "benchmarks" / "results" / "diagnose_cases.json"
SETS = ("learn", "held_out", *(f"fresh{n}" for n in ("", *range(2, 64))), "aside", "kept", "given")
FIRST = 3
ECHO = 4  # words in a row that are also in the log are the log's, not the answer's
_SCANNERS: dict[int, tuple[tuple[Signature, ...], Scanner]] = {}  # its automaton is made once, not for each case


@dataclass(frozen=True, kw_only=True)
class Case:
    """A failure: its deciding lines, the settled cause, and words of which the answer has to hold one of each row."""

    source: str
    log: str
    cause: str
    words: tuple[str, ...]
    reconstructed: bool = False

    def is_named_in(self, text: str) -> bool:
        """Whether a text names the settled cause."""
        small = " ".join(text.lower().split())
        return all(re.search(words, small) for words in self.words)


def cases(name: str) -> tuple[Case, ...]:
    """Return the cases of a set; empty where its file is not present."""
    path = CASES / f"{name}.yaml"
    rows = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else []
    if name == "given":
        rows = [{**row, "log": log} for row in rows if (log := _given_log(row["source"]))]
    return tuple(Case(**{**row, "words": tuple(row["words"])}) for row in rows)


def _given_log(source: str) -> str | None:
    if not GIVEN.is_file():
        return None
    rows: list[dict[str, Any]] = json.loads(GIVEN.read_text(encoding="utf-8"))
    return next((str(row["log"]) for row in rows if row["source"] == source), None)


def diagnosed(log: str, known: tuple[Signature, ...]) -> Diagnosis:
    """Diagnose one text with nothing known of card or versions but what the text itself says."""
    if id(known) not in _SCANNERS:
        _SCANNERS[id(known)] = (known, Scanner(known))
    reader = Values(forms.load(ROOT))
    scanned = _SCANNERS[id(known)][1].scan(reader.watched([log.encode()]))
    here = reader.completed(HostContext())
    compared = compared_values.of(reader, HostContext(), matrix_file.load(ROOT).architectures)
    found = diagnosis.concluded(
        scanned, name="case", here=here, matrix=None, failed_checks=frozenset(), compared=compared
    )
    return diagnosis.compared_with_known(found, log.encode())


def without_echo(text: str, log: str) -> str:
    """Return an answer without what it repeats of the log: words that stand there in a row of `ECHO` or more."""
    words, printed = _words(text), _words(log)
    rows = {tuple(printed[at : at + ECHO]) for at in range(len(printed) - ECHO + 1)}
    repeated = {
        at + step for at in range(len(words) - ECHO + 1) if tuple(words[at : at + ECHO]) in rows for step in range(ECHO)
    }
    return " ".join(word for at, word in enumerate(words) if at not in repeated)


def _words(text: str) -> list[str]:
    return re.findall(r"[^\s\"'`(),;]+", text.lower())


def answers(found: Diagnosis) -> Iterator[tuple[str, bool]]:
    """Yield what a user reads, in order: the words, and whether they state a cause as certain."""
    alike = [(one.cause, False) for one in found.similar]
    if not found.ranked.failures:
        yield from alike
    for match in found.ranked.failures:
        (text, certain), *others = listed(found, match)
        rows = [(text, certain and (found.supported or match is not found.best)), *others]
        yield from diagnosis.with_similar(found, rows, alike) if match is found.best else rows


def listed(found: Diagnosis, match: Match) -> Iterator[tuple[str, bool]]:
    """Yield what is stated of one match: its cause, and each of those that a symptom can have."""
    stated = f"{match.title} {match.cause}"
    rows = diagnosis.possibilities(found, match)
    yield (f"{stated} {rows[0].says}", rows[0].decided) if rows else (stated, match.signature.kind == "cause")
    yield from ((f"{match.title} {row.says}", False) for row in rows[1:])


def verdict(case: Case, known: tuple[Signature, ...]) -> tuple[str, str]:
    """Return how the diagnosis of a case is judged, and the id of its first answer."""
    found = diagnosed(case.log, known)
    named = [(without_echo(text, case.log), certain) for text, certain in answers(found)]
    first = found.best.signature.id if found.best else "-"
    if named and case.is_named_in(named[0][0]):
        return "right first", first
    if any(case.is_named_in(text) for text, _ in named[1:FIRST]):
        return ("first three, wrong first" if named[0][1] else "first three"), first
    if not named:
        stated = [f"{match.title} {match.cause}" for match in found.ranked.remarks[:FIRST]]
        remarks = [case.is_named_in(without_echo(text, case.log)) for text in stated]
        return ("first remark" if remarks[:1] == [True] else "as a remark" if any(remarks) else "nothing"), first
    return ("wrong first" if named[0][1] else "open"), first


def measured(name: str, known: tuple[Signature, ...], *, verbose: bool) -> dict[str, object]:
    """Judge every case of a set."""
    rows = [(case, *verdict(case, known)) for case in cases(name)]
    for case, judged, first in rows:
        if verbose and judged != "right first":
            print(f"{judged:24} {first:34} {case.source}: {case.cause}")
    return {"set": name, **_summary([judged for _, judged, _ in rows]), "without_reconstructed": _summary(
        [judged for case, judged, _ in rows if not case.reconstructed]
    )}  # fmt: skip


def explained(known: tuple[Signature, ...]) -> dict[str, object]:
    """Count, by signature, the kept cases that it answers first with the settled cause; the given set is left out.

    `similar` are those that no signature answers, and whose nearest known failure has the settled cause.
    """
    kept = [case for name in SETS if name != "given" for case in cases(name)]
    first = Counter(first for judged, first in (verdict(case, known) for case in kept) if judged == "right first")
    return {"cases": len(kept), "similar": first.pop("-", 0), "signatures": dict(sorted(first.items()))}


def _summary(judged: list[str]) -> dict[str, object]:
    counted = Counter(judged)
    total = max(1, len(judged))
    return {
        "cases": len(judged),
        "right_first_percent": round(100 * counted["right first"] / total, 1),
        "right_or_remark_percent": round(100 * (counted["right first"] + counted["first remark"]) / total, 1),
        "first_three_percent": round(
            100 * sum(n for key, n in counted.items() if key.startswith(("right", "first three"))) / total, 1
        ),
        "wrong_first_percent": round(100 * sum(n for key, n in counted.items() if "wrong first" in key) / total, 1),
        "counts": dict(sorted(counted.items())),
    }


def main() -> None:
    """Judge the sets and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", choices=SETS)
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    known = (*signature.load(ROOT), *project_errors.signatures())
    names = [options.set] if options.set else [name for name in SETS if cases(name)]
    rows = [measured(name, known, verbose=options.verbose) for name in names]
    print(json.dumps(rows, indent=1))
    if not options.set:
        found = {"date": date.today().isoformat(), "signatures": len(signature.load(ROOT)), "rows": rows}
        found["explains"] = explained(known)
        RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

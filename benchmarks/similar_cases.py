"""Writes the known failures that `diagnose` compares a log with: those of the sets that signatures are learned from.

    python -m benchmarks.similar_cases            writes rocmatrix/diagnosis/similar/cases.json

Threads of the sets that are kept to measure with (UNSEEN) are not among them. A test fails where a set has changed
since; where signatures have, their ids in the file are those of the time it was written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

from benchmarks.diagnose_cases import CASES, ROOT, SETS, Case, cases, diagnosed
from rocmatrix.diagnosis import project_errors, signature
from rocmatrix.diagnosis.similar.cases import FILE
from rocmatrix.diagnosis.similar.terms import terms

UNSEEN = ("kept", "given", "fresh29", "fresh33", "fresh34", "fresh35", "fresh36")
LEARNED = tuple(name for name in SETS if name not in UNSEEN)


def made_from() -> str:
    """Return the hash of the sets, and of what takes their texts apart."""
    paths = [CASES / f"{name}.yaml" for name in LEARNED]
    read = [path.read_bytes() for path in (*paths, FILE.with_name("terms.py")) if path.is_file()]
    return hashlib.sha256(b"".join(read)).hexdigest()


def rows() -> Iterator[tuple[str, str, str, str]]:
    """Yield of each failure its source, its cause, the ids of the signatures that match it, and its terms."""
    known = (*signature.load(ROOT), *project_errors.signatures())
    for case in (case for name in LEARNED for case in cases(name)):
        yield case.source, case.cause, " ".join(matched(case, known)), " ".join(sorted(terms(case.log)))


def matched(case: Case, known: tuple[signature.Signature, ...]) -> list[str]:
    """Return the ids of the signatures that match a failure, the most likely first."""
    found = diagnosed(case.log, known).ranked
    return [match.signature.id for match in (*found.failures, *found.remarks)]


def text() -> str:
    """Return the file's text: a line for each failure."""
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows())
    return f'{{"made_from": "{made_from()}", "failures": [\n{lines}\n]}}\n'


def main() -> None:
    """Write the file."""
    FILE.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()

"""Documents that are views of data: tables of docs/support.md and of docs/architecture.md, docs/errors.md, the schema.

A table stands between `<!-- begin NAME -->` and `<!-- end NAME -->`; only what is between is rewritten.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from rocmatrix.cli import generated_architectures as architectures
from rocmatrix.cli import nightly_workflow as workflow
from rocmatrix.cli import rooms
from rocmatrix.diagnosis import pattern, project_errors, signature
from rocmatrix.diagnosis.comparisons import forms as comparisons
from rocmatrix.diagnosis.pages import document as failures
from rocmatrix.diagnosis.pages import measured, searchable
from rocmatrix.diagnosis.search import known as known_patterns
from rocmatrix.doctor import document
from rocmatrix.doctor.environment import rules
from rocmatrix.matrix import derived_rules
from rocmatrix.matrix.loading.load import PART_FILES
from rocmatrix.matrix.matrix import Cell, Matrix
from rocmatrix.matrix.rule import Rule
from rocmatrix.runtime import errors
from rocmatrix.runtime.errors import CatalogEntry, RocmatrixError
from rocmatrix.runtime.paths import ROOT, TRAINER_ERRORS, TRAINER_OPTIONS, TRAINER_PROBES

SCHEMA_FILE = "matrix.schema.json"
SUPPORT_FILE = "docs/support.md"
ARCHITECTURE_FILE = "docs/architecture.md"
OPTIONS_FILE, ERRORS_FILE, PROBES_FILE = (
    path.relative_to(ROOT).as_posix() for path in (TRAINER_OPTIONS, TRAINER_ERRORS, TRAINER_PROBES)
)
CARDS_SHOWN = 4


def files(matrix: Matrix, root: Path) -> dict[str, str]:
    """Return every document that is a view of data, whole or between markers, as {path: text}."""
    support = (root / SUPPORT_FILE).read_text(encoding="utf-8")
    support = between(support, "support", support_table(matrix))
    support = between(support, "broken", rules_table(matrix))
    known, compared = signature.load(root), comparisons.load(root).rules
    texts = (text for one in (*known, *project_errors.signatures()) for text in one.pattern_texts())
    derived = ((text, pattern.derived(text)) for text in texts)
    trainer_errors = query_trainer(root, "errors")
    catalog = [*errors.CATALOG.values(), *(CatalogEntry(**entry) for entry in trainer_errors)]
    return {
        SUPPORT_FILE: support,
        ARCHITECTURE_FILE: _with_rooms((root / ARCHITECTURE_FILE).read_text(encoding="utf-8"), root),
        "docs/errors.md": errors_page(catalog),
        "docs/doctor.md": document.page(rules.load(root)),
        **failures.files([*known, *compared], measured.table(root)),
        **searchable.files([*known, *compared], searchable.shares(root)),
        known_patterns.FILE: known_patterns.text(pattern.__file__, derived),
        workflow.FILE: workflow.text(matrix),
        **architectures.files(matrix),
        SCHEMA_FILE: matrix_schema(),
        OPTIONS_FILE: json.dumps(query_trainer(root, "options"), indent=1, ensure_ascii=False) + "\n",
        ERRORS_FILE: json.dumps(trainer_errors, indent=1, ensure_ascii=False) + "\n",
        PROBES_FILE: json.dumps(query_trainer(root, "smoke", "--list"), indent=1, ensure_ascii=False) + "\n",
    }


def _with_rooms(text: str, root: Path) -> str:
    for program in rooms.PROGRAMS:
        described = rooms.described(program, root)
        table = _table(("room", "holds"), ((f"`{room}/`", doc) for room, doc in described.items()))
        text = between(text, f"rooms of {program}", table)
    return text


def matrix_schema() -> str:
    """Return the JSON Schema of matrix.yaml; what its parts hold stands under `$defs`, by the part's name.

    An editor finds it by the first line of each file: `# yaml-language-server: $schema=…#/$defs/rules`.
    """
    schema = Matrix.model_json_schema(by_alias=True)
    for part in PART_FILES:
        schema["$defs"][part] = schema["properties"].pop(part)
        schema["required"].remove(part)
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def between(text: str, name: str, content: str) -> str:
    """Replace the text between the markers of `name`. Raises RM101 unless there is one pair of them.

    Args:
        text: the whole document.
        name: what follows `begin` and `end` in the markers, such as support.
        content: new lines between the markers, each with its line end.
    """
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise RocmatrixError("RM101", what=f"a document needs one pair of markers {begin} … {end}")
    return pattern.sub(lambda _: f"{begin}\n{content}{end}", text)


def support_table(matrix: Matrix) -> str:
    """Return one row a cell: cards, architecture, versions, AMD's own list, and why this pairing."""
    head = ("Cards", "Architecture", "ROCm", "PyTorch", "Python", "On AMD's list", "Cell")
    return _table(head, (_support_row(matrix, cell) for cell in matrix.cells))


def _support_row(matrix: Matrix, cell: Cell) -> tuple[str, ...]:
    name = f"`{cell.name}`" + (" ★" if cell.recommended else "") + (" (unlocked)" if cell.unlocked_because else "")
    release = cell.release
    listed = _listed(matrix, cell)
    return (_cards(cell), cell.architecture or "-", release.rocm or "-", release.torch, cell.python, listed, name)


def _listed(matrix: Matrix, cell: Cell) -> str:
    """Return which cards of a cell AMD lists: by name where there are few, else how many."""
    if cell.architecture is None:
        return "-"
    listed = matrix.support_of(cell.architecture, cell.release.rocm).cards
    unlisted = set(cell.cards) - set(matrix.architectures[cell.architecture].chips) - set(listed)
    if not listed or not unlisted:
        return "yes" if listed else "no"
    return f"only {', '.join(listed)}" if len(listed) < CARDS_SHOWN else f"{len(listed)} of its cards"


def _cards(cell: Cell) -> str:
    shown = ", ".join(cell.cards[:CARDS_SHOWN]) or "none: CPU"
    more = len(cell.cards) - CARDS_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def rules_table(matrix: Matrix) -> str:
    """Return one row a rule that excludes a combination or warns owners of a card, with confidence and sources."""
    rules = (*derived_rules.library_rules(matrix.libraries), *matrix.rules)
    head = ("Architecture", "ROCm", "PyTorch", "Verdict", "Why", "Source")
    return _table(head, (_rule_row(rule) for rule in rules if _is_against(rule)))


def _is_against(rule: Rule) -> bool:
    return rule.verdict in ("broken", "degraded") and (rule.decides or rule.when.architectures is not None)


def _rule_row(rule: Rule) -> tuple[str, ...]:
    when = rule.when
    return (
        ", ".join(when.architectures or [when.package or "any"]),
        when.rocm or "any",
        when.torch or "any",
        rule.verdict,
        rule.summary,
        f"{', '.join(rule.evidence.sources)} ({rule.evidence.confidence})",
    )


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = tuple(head)
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def errors_page(catalog: Iterable[CatalogEntry]) -> str:
    """Return every code with its title, meaning and next step."""
    head = "# Error codes\n\nReference, generated by `./invokew render` from the code. Codes are never reused.\n"
    return head + "".join(f"\n## {e.code} {e.title}\n\n{e.meaning}\n\n**Next:** {e.next}\n" for e in catalog)


def query_trainer(root: Path, *words: str) -> list[dict[str, str]]:
    """Ask the trainer for its `errors`, its `options` or its probes; the two programs share no imports."""
    argv = [sys.executable, "-m", "trainer", *words]
    done = subprocess.run(argv, cwd=root, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]

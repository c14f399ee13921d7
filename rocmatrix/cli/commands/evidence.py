"""`./invokew evidence`: list records and the levels they support, import and export records."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocmatrix.cli.commands.common import known_matrix, print_json
from rocmatrix.cli.options.command import command
from rocmatrix.cli.options.common import Kept
from rocmatrix.evidence import recorder
from rocmatrix.runtime.console import say, table, writing
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.option import option
from rocmatrix.runtime.paths import ROOT

if TYPE_CHECKING:
    from rocmatrix.evidence.level import CellStatus
    from rocmatrix.evidence.record import Record
    from rocmatrix.matrix.matrix import Cell, Matrix

SCHEMA = 1
_SHOWN = 12


@dataclass(frozen=True, kw_only=True)
class Evidence(Kept):
    """Options of `evidence`."""

    cell: str = option("one cell, with its records", metavar="CELL")
    json: bool = option("print levels and records as JSON, for programs", default=False)
    export: str = option("write the records to this file as JSON, to send them", metavar="PATH")
    take: str = option(
        "import the records of such a file; each is checked, and imported once", typed="import", metavar="PATH"
    )
    sizes: bool = option(
        "print entries for matrix/baselines.yaml: sizes of proven images that it does not have", default=False
    )
    bundle: str = option(
        "show, then write a redacted .tar.gz to send: doctor, versions, request, newest records, ends of logs",
        metavar="FILE",
    )
    yes: bool = option("with --bundle: write without a question, for programs", default=False)


@command(Evidence, about="Show how far each cell is shown to work: its level on each card, computed from its records.")
def evidence(args: Evidence) -> None:
    """Show levels, or one cell's records; write or take in records as JSON. Raises RM010, RM404, RM621, RM622.

    With --bundle, the one file to send is shown and written instead; RM677, RM678, RM679.
    """
    from rocmatrix.evidence import store

    args.use()
    path = recorder.evidence_file()
    matrix = known_matrix()
    if args.cell:
        matrix.cell(args.cell)
    recorder.settle()
    if args.bundle:
        _bundle(args, matrix)
        return
    try:
        if args.take:
            _import(args.take, path)
        if args.export:
            _export(args.export, path, cell=args.cell)
        if args.sizes:
            _print_sizes(matrix, store.read(path, cell=args.cell or None, logs=False))
        elif not args.take and not args.export:
            _show(matrix, path, cell=args.cell, as_json=args.json)
    except sqlite3.Error as error:
        raise RocmatrixError("RM621", what=str(error), where=str(path)) from error


def _bundle(args: Evidence, matrix: Matrix) -> None:
    from rocmatrix.cli.commands import bundle

    if args.take or args.export or args.sizes or args.json:
        raise RocmatrixError("RM404", what="--bundle excludes --export, --import, --sizes and --json")
    bundle.bundle(args.bundle, matrix, cell=args.cell, confirmed=args.yes)


def _import(name: str, evidence_file: Path) -> None:
    from rocmatrix.evidence import store

    records = _taken(Path(name))
    origin = Path(name).name.encode(errors="backslashreplace").decode()
    origin = f"file {origin}" if origin == store.HERE else origin  # a file may be called like this machine's own
    say(f"{name}: {len(records)} records, {store.add(evidence_file, records, origin=origin)} of them new")


def _export(name: str, evidence_file: Path, *, cell: str) -> None:
    from rocmatrix.evidence import import_export, store

    records = store.read(evidence_file, cell=cell or None)
    with writing(Path(name), flag="--export"):
        import_export.write(Path(name), records)
    say(f"{name}: {len(records)} records")


def _taken(path: Path) -> list[Record]:
    from rocmatrix.evidence import import_export

    try:
        return import_export.read(path)
    except OSError as error:
        next_step = "Name a file that `./invokew evidence --export FILE` wrote."
        raise RocmatrixError("RM404", what=f"--import: {error.strerror}", where=str(path), next=next_step) from error


def _print_sizes(matrix: Matrix, records: list[Record]) -> None:
    from rocmatrix.evidence import baseline

    text = baseline.entries(matrix, records)
    print(text, end="")
    if not text:
        say("no proven image has a size that matrix/baselines.yaml lacks")


def cell_statuses(matrix: Matrix, records: list[Record]) -> list[CellStatus]:
    """Return the statuses of every written cell, in the order of the matrix, and of others that records name.

    Those on simulated machines follow each cell's own.
    """
    from rocmatrix.evidence import level
    from rocmatrix.images import build

    known = {record.cell for record in records}
    found: list[CellStatus] = []
    for cell in (*matrix.cells, *on_request(matrix, known)):
        rendered = all((build.recipe(cell, ROOT) / name).is_file() for name in build.CELL_FILES)
        inputs = build.input_hash(cell, ROOT) if rendered and cell.name in known else None
        found += level.cell_statuses(cell, records, rendered=rendered, current_inputs=inputs)
        found += level.cell_statuses(cell, records, rendered=rendered, current_inputs=inputs, simulated=True)
    return found


def on_request(matrix: Matrix, names: Iterable[str] = ()) -> list[Cell]:
    """Return the cells next to the written ones: those of `names`, and those with a recipe below .rocmatrix/.

    They are derived cells and combinations with companions; a name that the matrix does not know is left out.
    """
    from rocmatrix.images import build

    recipes = build.made_recipe(matrix.cells[0], ROOT).parent
    made = {path.parent.name for path in recipes.glob("*/Dockerfile")}
    found = []
    for name in sorted({*names, *made} - {*matrix.cell_names}):
        with suppress(RocmatrixError):  # of another checkout, or of a release that is no longer listed
            found.append(matrix.cell(name))
    return found


def levels(matrix: Matrix, *, simulated: bool = False) -> dict[str, str]:
    """Return each cell's highest level over all cards, written or on request; "?" where the evidence cannot be read.

    With `simulated`, that on simulated machines, for the cells that have one.
    """
    from rocmatrix.evidence import store
    from rocmatrix.evidence.level import LEVELS

    try:
        records = store.read(recorder.evidence_file(), logs=False)
    except (sqlite3.Error, RocmatrixError):
        return {} if simulated else {cell.name: "?" for cell in (*matrix.cells, *on_request(matrix))}
    found = [cell_status for cell_status in cell_statuses(matrix, records) if cell_status.simulated == simulated]
    names = dict.fromkeys(cell_status.cell for cell_status in found)
    return {name: max((s.level for s in found if s.cell == name), key=LEVELS.index) for name in names}


def _show(matrix: Matrix, path: Path, *, cell: str, as_json: bool) -> None:
    from rocmatrix.evidence import store

    records = store.read(path, cell=cell or None, logs=False)
    if gone := store.missing(path):
        say(f"{gone} of this file's own records are gone, removed by hand: levels rest on those that are left")
    chosen = [
        cell_status for cell_status in cell_statuses(matrix, records) if cell_status.cell == (cell or cell_status.cell)
    ]
    if as_json:
        listed = [r.model_dump(mode="json", exclude={"log"}) for r in records]
        levels_of_cells = [_described(s) for s in chosen]
        # `standings` is what `levels` was called: the same list, for programs that were written for it
        print_json({"schema": SCHEMA, "levels": levels_of_cells, "standings": levels_of_cells, "records": listed})
        return
    say(_summary(chosen, len(records), path))
    table(("CELL", "CARD", "LEVEL", "SEEN", "FAILING", "NOTE"), map(_row, _farthest_first(chosen)))
    if cell:
        _show_records(records, matrix.cell(cell))


def _summary(chosen: list[CellStatus], records: int, path: Path) -> str:
    """Return how many cells have come how far, each on the card where it came farthest."""
    from rocmatrix.evidence.level import LEVELS

    real = [cell_status for cell_status in chosen if not cell_status.simulated]
    farthest = list(_farthest(real).values())
    counts = {level: farthest.count(place) for place, level in enumerate(LEVELS)}
    levels = ", ".join(f"{count} {level}" for level, count in reversed(counts.items()) if count)
    return f"{records} record{'' if records == 1 else 's'} in {path}\nlevels: {levels or 'none'}"


def _farthest(chosen: list[CellStatus]) -> dict[str, int]:
    """Return the place of each cell's farthest level on any card; simulated ones count for none."""
    from rocmatrix.evidence.level import LEVELS

    level = {s.cell: 0 for s in chosen}
    for each in chosen:
        level[each.cell] = max(level[each.cell], 0 if each.simulated else LEVELS.index(each.level))
    return level


def _farthest_first(chosen: list[CellStatus]) -> list[CellStatus]:
    """Return the cells in the order of their levels, of equal ones as in the matrix."""
    level = _farthest(chosen)
    return sorted(chosen, key=lambda s: -level[s.cell])


def _described(cell_status: CellStatus) -> dict[str, Any]:
    return {**asdict(cell_status), "age_days": cell_status.age_days(datetime.now(UTC))}


def _row(cell_status: CellStatus) -> tuple[str, ...]:
    notes = [f"not shown: {', '.join(cell_status.missing)}"] if cell_status.missing else []
    notes += [f"two cards: {', '.join(cell_status.took_part)}"] if cell_status.took_part else []
    notes += [f"took no part: {', '.join(cell_status.left_out)}"] if cell_status.left_out else []
    notes += [f"of image {(cell_status.image or '')[7:19]}; a newer one was built"] if not cell_status.newest else []
    notes += ["of an earlier state of the checkout"] if cell_status.current is False else []
    notes += (
        [f"{cell_status.set_aside} record{'s' * (cell_status.set_aside != 1)} set aside"]
        if cell_status.set_aside
        else []
    )
    notes += [f"{cell_status.troubles} runs ended by the host's trouble"] if cell_status.troubles else []
    age = age_text(cell_status.age_days(datetime.now(UTC)))
    failing = ", ".join((*cell_status.failing, *cell_status.failures)) or "-"
    named = f"simulated: {cell_status.level}" if cell_status.simulated else cell_status.level
    return cell_status.cell, cell_status.card, named, age, failing, "; ".join(notes) or "-"


def age_text(days: float | None) -> str:
    """Return an age: "-" for none, hours below two days."""
    if days is None:
        return "-"
    return f"{days * 24:.0f} h ago" if days < 2 else f"{days:.0f} days ago"


def _show_records(records: list[Record], cell: Cell) -> None:
    from rocmatrix.evidence.level import known_images, why_not

    images = known_images(records, cell)
    reasons = [(record, why_not(record, cell, images=images) or "counts") for record in records[-_SHOWN:]]
    rows = ((r.at, r.kind, outcome(r), r.where, r.card, reason) for r, reason in reasons)
    table(("AT", "RUN", "OUTCOME", "WHERE", "CARD", "FOR THE LEVEL"), rows)
    if benches := [record for record in records if record.kind == "bench"]:
        _show_bench(benches[-1])


def outcome(record: Record) -> str:
    """Return how a run ended: what the host ended states nothing of the cell."""
    if record.trouble:
        return f"host: {record.trouble.stage}"
    return "passed" if record.passed else "FAILED"


def _show_bench(record: Record) -> None:
    from rocmatrix.evidence import figure

    figures = figure.figures(record.numbers)
    say(f"the newest bench, {record.at} on {record.card}{':' if figures else ', measured nothing'}")
    if figures:
        table(figure.COLUMNS, (each.row for each in figures))

"""`./invokew dashboard`: write the pages, and with --serve show them on this machine."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rocmatrix.cli.commands import common
from rocmatrix.cli.options.command import command
from rocmatrix.cli.options.common import Kept
from rocmatrix.evidence import recorder
from rocmatrix.runtime.console import say, writing
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.option import option
from rocmatrix.runtime.paths import ROOT

if TYPE_CHECKING:
    from rocmatrix.evidence.dashboard.view import CellPage
    from rocmatrix.evidence.record import Record
    from rocmatrix.matrix.matrix import Matrix

_LAST_PORT = 65535


@dataclass(frozen=True, kw_only=True)
class Dashboard(Kept):
    """Options of `dashboard`."""

    out: str = option(
        "the folder to write; an earlier dashboard there is replaced", default="DASHBOARD", metavar="PATH"
    )
    serve: bool = option("show it on this machine's loopback address until Ctrl-C", default=False)
    port: int = option("the port to show it on (0: a free one)", default=8765, metavar="PORT")


@command(
    Dashboard,
    about="Write the evidence as pages that work offline: levels, probes, numbers over time and logs of every cell.",
)
def dashboard(args: Dashboard) -> None:
    """Write the pages; `--serve` shows them on the loopback address until Ctrl-C.

    Raises RM205, RM206, RM404, RM621, RM640.
    """
    from rocmatrix.evidence import store
    from rocmatrix.evidence.dashboard import site, view

    if not 0 <= args.port <= _LAST_PORT:
        raise _no_port(f"--port takes 0 to {_LAST_PORT}, not {args.port}")
    path = recorder.evidence_file()
    try:
        records = store.read(path)
    except sqlite3.Error as error:
        raise RocmatrixError("RM621", what=str(error), where=str(path)) from error
    matrix, now = common.known_matrix(), datetime.now(UTC)
    pages = pages_of(matrix, records, now)
    folder = Path(args.out).resolve()
    texts = site.files(pages, view.sections(matrix, pages), now=f"{now:%Y-%m-%d %H:%M} UTC")
    with writing(folder, flag="--out"):
        site.write(folder, texts)
    say(f"{folder / 'index.html'}: {len(pages)} cells, {len(records)} records")
    if args.serve:
        _show(folder, args.port)


def _show(folder: Path, port: int) -> None:
    from rocmatrix.evidence.dashboard import site

    try:
        server = site.server(folder, port)
    except OSError as error:
        raise _no_port(f"{site.LOOPBACK}:{port}: {error.strerror}") from error
    with server:
        say(f"http://{site.LOOPBACK}:{server.server_address[1]}/  (Ctrl-C ends it)")
        server.serve_forever()


def _no_port(what: str) -> RocmatrixError:
    return RocmatrixError("RM404", what=what, next="Name another port; `--port 0` takes a free one.")


def pages_of(matrix: Matrix, records: Sequence[Record], now: datetime) -> dict[str, CellPage]:
    """Return each cell's page by name, with what the checkout would build now to compare with.

    Args:
        records: evidence of all cells, in the order of the file.
        now: the time from which ages are counted, with a time zone.
    """
    from rocmatrix.evidence.dashboard import view
    from rocmatrix.images import build

    known = {record.cell for record in records}
    pages = {}
    for cell in matrix.cells:
        rendered = all((build.recipe(cell, ROOT) / name).is_file() for name in build.CELL_FILES)
        current = build.input_hash(cell, ROOT) if rendered and cell.name in known else None
        pages[cell.name] = view.cell_page(cell, records, rendered=rendered, current=current, now=now)
    return pages

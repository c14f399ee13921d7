"""Write the folder of pages, and serve it on the loopback address."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO

from rocmatrix.evidence.dashboard.view import CellPage, Section, regressions
from rocmatrix.evidence.level import LEVELS
from rocmatrix.runtime import templates
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.output.whole_file import write_whole

MARKER = ".rocmatrix-dashboard"
PAGE = re.compile(r"(?:index|cells/[A-Za-z0-9][A-Za-z0-9._+-]*)\.html")  # what `files` makes
LOOPBACK = "127.0.0.1"
# Background and text of each level: WCAG's contrast of 4.5 and more, held by a test.
COLOURS: Mapping[str, tuple[str, str]] = {
    "none": ("#f1f1f1", "#454545"),
    "rendered": ("#e4e7ec", "#363f4d"),
    "built": ("#dbe7fb", "#173a6b"),
    "proven": ("#c3dafc", "#102f5c"),
    "smoked": ("#cdeed7", "#0d4423"),
    "two-gpu": ("#96dcae", "#093319"),
    "trained": ("#17693a", "#ffffff"),
    "bad": ("#ffdcd8", "#7a130b"),
    "aside": ("#fdf0cf", "#5c4200"),
}


def files(pages: Mapping[str, CellPage], grid: list[Section], *, now: str) -> dict[str, str]:
    """Return every page as {path below the folder: text}. All that comes from records is escaped.

    Args:
        pages: page of each cell by the cell's name.
        grid: sections of the overview.
        now: time of the rendering, as text.
    """
    environment = templates.environment("dashboard", html=True)
    common: dict[str, Any] = {"now": now, "levels": LEVELS, "colours": COLOURS}
    changes = regressions(pages.values())
    marked = sum(bool(run.record.marks) for page in pages.values() for run in page.runs)
    overview = {"changes": changes, "marked": marked, "records": sum(len(page.runs) for page in pages.values())}
    index = environment.get_template("index.html.j2").render(**common, grid=grid, **overview)
    cell = environment.get_template("cell.html.j2")
    return {
        "index.html": index,
        **{f"cells/{name}.html": cell.render(**common, page=page) for name, page in pages.items()},
    }


def write(folder: Path, texts: Mapping[str, str]) -> None:
    """Write the pages and remove those of cells that are gone. Raises RM640 for a folder that is not a dashboard."""
    if folder.exists() and not (folder / MARKER).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise RocmatrixError("RM640", what="it holds something else already", where=str(folder))
    if (folder / "cells").is_symlink():
        raise RocmatrixError(
            "RM640", what="its folder of cells is a link to another place", where=str(folder / "cells")
        )
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {MARKER: "`./invokew dashboard` replaces what is here.\n", **texts}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        write_whole(folder / name, text.encode())
    for path in (folder / "cells").glob("*.html"):
        if f"cells/{path.name}" not in texts:
            path.unlink()


class Handler(SimpleHTTPRequestHandler):
    """Files of one folder, for names of this machine only: a foreign page cannot reach them under its own name."""

    def do_GET(self) -> None:
        """Answer, or refuse a request that was meant for another host."""
        host = (self.headers.get("Host") or "").rsplit(":", 1)[0]
        if host not in (LOOPBACK, "localhost"):
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            return
        super().do_GET()

    def send_head(self) -> io.BytesIO | BinaryIO | None:
        """Open a page of the folder; anything else in it, a list of it, or what a link leads to is not served."""
        name = self.path.partition("?")[0].partition("#")[0].lstrip("/") or "index.html"
        page = Path(self.directory) / name
        if not PAGE.fullmatch(name) or any(place.is_symlink() for place in (page, page.parent)) or not page.is_file():
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        self.path = f"/{name}"
        return super().send_head()

    def do_HEAD(self) -> None:
        """Refuse it: a browser that shows pages has no need of it."""
        self.send_error(HTTPStatus.METHOD_NOT_ALLOWED)

    def log_message(self, format: str, *args: Any) -> None:
        """Report nothing: the person looks at the pages."""


def server(folder: Path, port: int) -> ThreadingHTTPServer:
    """Return a server on the loopback address; port 0 takes a free one. Raises OSError where the port is taken."""
    return ThreadingHTTPServer((LOOPBACK, port), partial(Handler, directory=str(folder)))

"""Requirements files that a command of a Dockerfile names, where they are next to it: what pip is asked for in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from rocmatrix.doctor.environment.lint_input import Command

_SPACES = re.compile(r"\s+(?=[<>=!~,;\[@])|(?<=[<>=!~,;@])\s+")  # not those around `and` and `or` of a marker
_NAMED = re.compile(r"\bpip[\d.]*\s[^;&|\n]{0,400}?(?:-r|--requirement)[ =]+(?P<file>[^\s;&|\"'$<>()]{1,200})")
_LARGEST = 200_000  # bytes; a longer file is no list that a person wrote
_FOLDERS_UP = 2  # how far above the Dockerfile its context may begin


def commands(text: str, where: str, dockerfile: Path) -> Iterator[Command]:
    """Yield an install for every requirement of the files that a command names, at the place of that command.

    Args:
        text: the command.
        where: its file and line.
        dockerfile: the file that holds it.
    """
    if "install" not in text:
        return
    for match in _NAMED.finditer(text):
        file = _file(match["file"], dockerfile)
        rows = _rows(file) if file is not None else []
        options = " ".join(row for row in rows if row.startswith("-") and not row.startswith(("-r", "-c", "--req")))
        for row in rows:
            if not row.startswith("-"):
                yield Command(text=f"pip install {options} {shlex.quote(_SPACES.sub('', row))}", where=where)


def _file(name: str, dockerfile: Path) -> Path | None:
    """Return the file by its name in the image, looked for below the folders that may be the context of the build."""
    parts = [part for part in Path(name).parts if part not in ("/", "..", ".")]
    folders = [dockerfile.absolute().parent, *dockerfile.absolute().parents[1 : 1 + _FOLDERS_UP]]
    for folder in folders:
        for start in range(len(parts)):
            file = folder.joinpath(*parts[start:])
            if file.is_file() and file.stat().st_size <= _LARGEST:
                return file
    return None


def _rows(file: Path) -> list[str]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return []
    rows = (re.sub(r"(?:^|\s)#.*", "", row).split(" --hash")[0].strip(" \\\t") for row in text.splitlines())
    return [row for row in rows if row]

"""Definition files of Apptainer and Singularity as subjects, one for each image that they build."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from rocmatrix.doctor.environment.dockerfile import COMPILES, installed, read_text
from rocmatrix.doctor.environment.lint_input import Command, Subject
from rocmatrix.doctor.environment.scripts import assigned
from rocmatrix.doctor.environment.shell.words import lines
from rocmatrix.runtime.errors import RocmatrixError

_HEADER = re.compile(r"^(?P<key>bootstrap|from|stage)\s*:\s*(?P<value>\S.*?)\s*$", re.IGNORECASE)
_SECTION = re.compile(r"^%(?P<name>\w+)\b")


def of_definition(path: Path) -> tuple[Subject, ...]:
    """Return the images of a definition file. Raises RM310 where it cannot be read, RM311 where it has no header."""
    rows = read_text(path).splitlines()
    starts = [at for at, row in enumerate(rows) if (head := _HEADER.match(row)) and head["key"].lower() == "bootstrap"]
    if not starts:
        raise RocmatrixError("RM311", what="it has no Bootstrap", where=str(path))
    ends = [*starts[1:], len(rows)]
    return tuple(_image(path, rows, start, end) for start, end in zip(starts, ends, strict=True))


def _image(path: Path, rows: list[str], start: int, end: int) -> Subject:
    header = {
        match["key"].lower(): (match["value"], number)
        for number, row in enumerate(rows[start:end], start + 1)
        if (match := _HEADER.match(row))
    }
    image, line = header.get("from", ("", start + 1))
    docker = header["bootstrap"][0].lower().startswith("docker")
    commands = tuple(_commands(path, rows, start, end, "post"))
    return Subject(
        name=f"{path} stage {header.get('stage', (start,))[0]}",
        variables=tuple(row for one in _commands(path, rows, start, end, "environment") for row in assigned(one)),
        commands=commands,
        pairs=tuple(pair for one in commands for pair in installed(one.text, one.where)),
        image=image if docker and image else None,
        where=f"{path}:{line}",
        one_shell=True,
        compiles=any(COMPILES.search(one.text) for one in commands),
    )


def _commands(path: Path, rows: list[str], start: int, end: int, section: str) -> Iterator[Command]:
    """Yield the lines of one section, each with its place in the file."""
    now = ""
    kept = [""] * start
    for row in rows[start:end]:
        head = _SECTION.match(row)
        now = head["name"] if head else now
        kept.append(row if now == section and not head else "")
    for line in lines("\n".join(kept)):
        yield Command(text=line.text, where=f"{path}:{line.number}", rows=line.rows)

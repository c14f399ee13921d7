"""`./invokew evidence --bundle FILE`: one redacted file to send after a first run, listed, and written after a yes."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocmatrix.cli.commands.common import hardware_here, today
from rocmatrix.evidence import recorder
from rocmatrix.runtime import console
from rocmatrix.runtime.console import say, writing
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.output.whole_file import require_place, write_whole

if TYPE_CHECKING:
    from rocmatrix.evidence.bundle.contents import Part
    from rocmatrix.evidence.bundle.identity import Identity
    from rocmatrix.evidence.record import Record
    from rocmatrix.matrix.matrix import Matrix

SCHEMA = 1
_PACKAGES = ("torch", "triton", "docker", "invoke", "pip")
_RELEASE = ("ID", "VERSION_ID", "VERSION_CODENAME")


def bundle(file: str, matrix: Matrix, *, cell: str, confirmed: bool) -> None:
    """List what would leave this machine, and write it after a yes. Raises RM677, RM678, RM679, RM205, RM206, RM404.

    Args:
        file: the file to write.
        cell: the one cell whose records are sent; empty for all.
        confirmed: whether to write without asking.
    """
    from rocmatrix.evidence.bundle import archive, identity

    who = identity.here(os.environ)
    parts, left_out = archive.bounded(_parts(cell, matrix, who))
    archive.checked(parts, who)
    path = Path(file)
    with writing(path, flag="--bundle"):
        require_place(path)  # before a person is asked
        content = archive.packed(parts)
        _list(parts, len(content))
        _list_left_out(left_out)
        if not confirmed:
            _confirm(file, parts)
        write_whole(path, content)
    say(f"{path}: {len(content)} bytes. Read it once more (`tar -xzf`) before it is sent.")


def _parts(cell: str, matrix: Matrix, who: Identity) -> Iterator[Part]:
    """Yield the parts, the most useful first: what does not fit at the end is left out. Raises RM677."""
    from rocmatrix.evidence.bundle import contents

    records, trouble = _records(cell)
    logs = contents.logs(console.LOGS, cell=cell)
    if cell and not records and not any(cell in path.name for path in logs):
        raise RocmatrixError("RM677", what=cell)
    yield contents.data("versions.json", _versions(trouble), who)
    yield contents.data("doctor.json", _doctor(cell, matrix), who)
    yield contents.data("request.json", _request(cell, matrix), who)
    for number, each in enumerate(contents.newest(records), start=1):
        yield contents.record(each, who, number=number)
    for path in logs:
        with suppress(OSError):  # it was removed by a job that started meanwhile
            yield contents.log(path, who)


def _records(cell: str) -> tuple[list[Record], str]:
    """Return the records that were made on this machine, and why there are none where the file cannot be read."""
    from rocmatrix.evidence import store

    try:
        rows = store.rows(recorder.evidence_file(), cell=cell or None)
    except (sqlite3.Error, OSError, RocmatrixError) as error:
        return [], f"{type(error).__name__}: {error}"
    return [record for origin, record in rows if origin == store.HERE], ""


def _versions(trouble: str) -> dict[str, Any]:
    from rocmatrix.host import simulated
    from rocmatrix.jobs import programs

    found: dict[str, Any] = {"schema": SCHEMA, "simulated": simulated.root() is not None}
    found |= {"commit": programs.commit(), "os": _os_release()}
    found |= {"kernel": platform.release(), "python": platform.python_version(), "packages": _packages()}
    return found | ({"records_unreadable": trouble} if trouble else {})


def _packages() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def _os_release() -> dict[str, str]:
    with suppress(OSError):
        return {key: value for key, value in platform.freedesktop_os_release().items() if key in _RELEASE}
    return {}


def _doctor(cell: str, matrix: Matrix) -> Any:
    """Return what `doctor --json` prints; of a simulated machine, its tree is read."""
    from rocmatrix.cli.commands import doctor
    from rocmatrix.host import simulated

    tree = simulated.root()
    return doctor.examined(doctor.Doctor(cell=cell, sysfs=str(tree) if tree else ""), matrix)


def _request(cell: str, matrix: Matrix) -> Any:
    """Return what `explain --json` prints for the cell, or for this machine's cards."""
    from rocmatrix.matrix.resolver import explanation
    from rocmatrix.matrix.resolver.resolve import Request

    request, here = Request(cell=cell or None), hardware_here()
    try:
        found = explanation.explain(matrix, request, today=today(), cards=here.architectures, unusable=here.unusable)
        return found.described()
    except RocmatrixError as error:
        return {"code": error.code, "what": error.what}


def _list(parts: Sequence[Part], size: int) -> None:
    say("the bundle, with names, addresses, serial numbers, secrets and private paths removed:")
    for part in parts:
        say(f"  {part.size:>8} bytes  {part.name}")
    say(f"  {sum(part.size for part in parts):>8} bytes in {len(parts)} parts, {size} packed")


def _list_left_out(parts: Sequence[Part]) -> None:
    if parts:
        say("left out, as a bundle is bounded:")
    for part in parts:
        say(f"  {part.size:>8} bytes  {part.name}")


def _confirm(file: str, parts: Sequence[Part]) -> None:
    """Ask at the terminal, as often as the text is to be shown. Raises RM678 for anything but a yes.

    Without a terminal and --yes, the whole text goes to standard output, so that it can be read before.
    """
    if not sys.stdin.isatty():
        _show(parts)
        raise RocmatrixError("RM678", what="standard input is no terminal, and --yes is not given", where=file)
    answer = _answer(file)
    while answer == "s":
        _show(parts)
        answer = _answer(file)
    if answer not in ("y", "yes"):
        raise RocmatrixError("RM678", what="the answer was no yes", where=file)


def _answer(path: str) -> str:
    print(
        f"Write {path}? y: yes, s: show the whole text first, anything else: no ", end="", file=sys.stderr, flush=True
    )
    return sys.stdin.readline().strip().lower()


def _show(parts: Sequence[Part]) -> None:
    for part in parts:
        print(f"===== {part.name}\n{part.text}", end="")

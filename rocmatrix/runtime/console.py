"""Console output: lines, tables, and the edge where every failure becomes a readable one."""

from __future__ import annotations

import errno
import functools
import io
import os
import re
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, TypeVar

from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.paths import ROOT

if TYPE_CHECKING:
    from rich.console import RenderableType

LOGS = ROOT / ".rocmatrix" / "logs"
_OS_ERRORS = {
    errno.ENOSPC: "RM205",
    errno.EDQUOT: "RM205",
    errno.EFBIG: "RM205",
    errno.EROFS: "RM206",
    errno.EACCES: "RM206",
    errno.EEXIST: "RM206",
    errno.ENOTDIR: "RM206",
}
OUTPUT = "the output of this command"
_FULL = (errno.ENOSPC, errno.EDQUOT)
_CLOSED = (errno.EROFS, errno.EACCES, errno.EPERM)
_NO_SUCH_PLACE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP)

_OFFERED: set[str] = set()  # options of the tasks that were called; empty where none was, as in a test

F = TypeVar("F", bound=Callable[..., Any])


def offer(flags: Iterable[str]) -> None:
    """Record the options of the tasks that were called: hints name no others."""
    _OFFERED.clear()
    _OFFERED.update(flags, ("--help",))


def say(text: str = "") -> None:
    """Print a line for a person on standard error, so that standard output stays for data.

    Where that is on a full disk, lines are lost and the work is not. Raises BrokenPipeError where its reader is gone.
    """
    try:
        print(text, file=sys.stderr, flush=True)
    except BrokenPipeError:
        raise
    except OSError:
        discard(sys.stderr)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a table on standard output, as wide as the terminal; where its columns do not fit, a paragraph a row."""
    from rocmatrix.runtime import text_table

    print("\n".join(text_table.lines([*head], [[*row] for row in rows], width=text_table.width())), flush=True)


def show(renderable: RenderableType, *, width: int) -> None:
    """Print on standard output: in colour as wide as the terminal, or plain and `width` wide where there is none."""
    from rich.console import Console

    from rocmatrix.runtime import text_table

    if sys.stdout.isatty():  # rich itself takes a terminal called dumb for 80 columns wide
        width = text_table.width()
    Console(width=width, highlight=False, soft_wrap=False).print(renderable)


def exit_on_broken_pipe() -> NoReturn:
    """End as a program does whose reader has what it wanted (`| head`)."""
    discard(sys.stdout)
    sys.exit(141)


def discard(stream: TextIO) -> None:
    """Send what is left of a stream nowhere: Python flushes it at its end, and would end with 120 where it fails."""
    with suppress(OSError, ValueError):  # a stream of a test has no descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def replace_unwritable() -> None:
    """Let standard output write a question mark for what its encoding lacks: ASCII has no sign for a verdict."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="replace")


def edge(function: F) -> F:
    """Turn failures into readable ones: exit status 2 for a known error, 1 for a defect, 128 + N for signal N."""

    @functools.wraps(function)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        try:
            replace_unwritable()
            return _to_its_end(function, *args, **kwargs)
        except KeyboardInterrupt as stop:
            say(f"\nStopped by {str(stop) or 'Ctrl-C'}; nothing was left half-written.")
            sys.exit(128 + getattr(signal, str(stop), signal.SIGINT))
        except BrokenPipeError:
            exit_on_broken_pipe()
        except Exception as error:
            found = known(error)
            say(_fitting(found).render())
            if isinstance(error, OSError) and found.where == OUTPUT:
                discard(sys.stdout)
            sys.exit(1 if found.code == "RM499" else 2)

    return guarded  # type: ignore[return-value]


def _to_its_end(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function and write out what it printed: a full disk is found here, not when Python ends, with 120."""
    try:
        returned = function(*args, **kwargs)
    except SystemExit:
        sys.stdout.flush()
        raise
    sys.stdout.flush()
    return returned


def _fitting(error: RocmatrixError) -> RocmatrixError:
    from rocmatrix.runtime.advice import fitted

    if _OFFERED:
        error.next = fitted(error.next, _OFFERED)
    return error


@contextmanager
def writing(path: Path, *, flag: str) -> Iterator[None]:
    """Run a body that writes `path`, the value of `flag`; an OSError in it becomes an error that names both.

    Raises RM205 where the disk is full, RM206 where it may not be written, RM404 where nothing can be of that name.
    """
    try:
        yield
    except OSError as error:
        what, another = f"{flag}: {error.strerror}", f"name another place with {flag}."
        if error.errno in _FULL:
            raise RocmatrixError("RM205", what=what, where=str(path), next=f"Free space there, or {another}") from error
        if error.errno in _CLOSED:
            next_step = f"Correct its permissions, or {another}"
            raise RocmatrixError("RM206", what=what, where=str(path), next=next_step) from error
        if error.errno in _NO_SUCH_PLACE:
            next_step = f"Make its folder, or {another}"
            raise RocmatrixError("RM404", what=what, where=str(path), next=next_step) from error
        raise


def known(error: Exception) -> RocmatrixError:
    """Name an error of the operating system by its number, one of the engine; all else is a defect, with its log."""
    if isinstance(error, RocmatrixError):
        return error
    if isinstance(error, OSError) and error.errno in _OS_ERRORS:
        code = _OS_ERRORS[error.errno]
        if error.filename is None and code == "RM205":  # print() names no file
            advice = "Free space where the output goes, or send it elsewhere."
            return RocmatrixError(code, what=str(error.strerror), where=OUTPUT, next=advice)
        return RocmatrixError(code, what=str(error.strerror), where=str(error.filename or "unknown"))
    if found := _of_place(error) or _of_environment(error):
        return found
    if _of_engine(error):
        reason = str(getattr(error, "explanation", None) or error) or type(error).__name__
        return RocmatrixError("RM672", what=reason, why=f"the engine's client raised {type(error).__name__}")
    where = _keep_traceback()
    return RocmatrixError("RM499", what=f"{type(error).__name__}: {error}", where=where)


def _of_environment(error: Exception) -> RocmatrixError | None:
    """Return the error of another project's package that is missing, as where files of .venv were deleted."""
    name = str(error.name or "") if isinstance(error, ModuleNotFoundError) else ""
    if name.partition(".")[0] in ("", __name__.partition(".")[0]):
        return None
    advice = f"Delete {ROOT / '.venv'}: the next call makes it anew."
    return RocmatrixError("RM402", what=str(error), where=sys.prefix, next=advice)


def _of_place(error: Exception) -> RocmatrixError | None:
    """Return the error of a path that leads nowhere, or of a working folder that was removed; None for another."""
    if place := _endless_path(error):
        why = "links that lead to one another, or a name that is too long"
        return RocmatrixError("RM404", what="the path leads nowhere", where=place, why=why, next="Name another path.")
    if isinstance(error, FileNotFoundError) and error.filename is None and _working_folder_is_gone():
        advice = "Change to a folder that exists, such as with `cd`, and call it again."
        return RocmatrixError("RM404", what="the folder that this was called in was removed", next=advice)
    return None


def _endless_path(error: Exception) -> str:
    """Return the path of a loop of links, or of a name that no file can have; empty for another error."""
    if isinstance(error, OSError) and error.errno in (errno.ELOOP, errno.ENAMETOOLONG):
        return str(error.filename or "unknown")
    loop = re.fullmatch(r"Symlink loop from '(.*)'", str(error))  # Path.resolve before Python 3.13
    return loop[1] if loop and isinstance(error, RuntimeError) else ""


def _working_folder_is_gone() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def _of_engine(error: Exception) -> bool:
    """Return whether the container engine's client raised it; where that was never imported, it did not."""
    docker, requests = sys.modules.get("docker.errors"), sys.modules.get("requests.exceptions")
    kinds = (getattr(docker, "DockerException", None), getattr(requests, "RequestException", None))
    return isinstance(error, tuple(kind for kind in kinds if kind is not None))


def _keep_traceback() -> str:
    path = LOGS / f"traceback-{time.strftime('%Y%m%d-%H%M%S')}.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(traceback.format_exc(), encoding="utf-8", errors="backslashreplace")
    except OSError:
        return traceback.format_exc()
    return str(path)

"""Settings that the caller adds to a run: variables, ports, folders of data and code.

The value of a variable is kept apart from the run's description: it is in no command line, file or record that this
project writes, and reaches the engine's client by a descriptor. The engine itself shows it to whoever may use it
(`docker inspect`).
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from rocmatrix.containers import settings
from rocmatrix.containers.least_privilege import CALLER, DATA_FOLDER, ENGINE
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.input.named_path import opened

CODE_FOLDER = "/code"
LOOPBACK = "127.0.0.1"
LARGEST_FILE = 1 << 20
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PORT = re.compile(r"(?:(\d{1,5}):)?(\d{1,5})")


def variables(typed: Iterable[str], file: Path | None, *, here: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables of a file and of the command line, which wins; NAME alone takes this shell's value.

    Raises RM111 with the place, and never with the value.

    Args:
        typed: NAME=VALUE or NAME, as `--env` takes them.
        file: lines of the same kind; None for no file.
        here: variables of this shell.
    """
    found = dict(_from_file(file, here)) if file else {}
    for number, text in enumerate(typed, 1):
        found |= _pair(text, f"--env, number {number}", here)
    return found


def _from_file(file: Path, here: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    try:
        with opened(file) as stream:
            content = stream.read(LARGEST_FILE + 1)
        if len(content) > LARGEST_FILE:
            raise _refused(str(file), f"it has more than {LARGEST_FILE:,} bytes")
        text = content.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise _refused(str(file), str(why)) from None
    # Not splitlines(): a form feed or a line separator of Unicode belongs to a value, and what follows it is no name
    for number, line in enumerate(text.split("\n"), 1):
        if (bare := line.strip()) and not bare.startswith("#"):
            where = f"{file}:{number}"
            yield from _pair(_unquoted(bare, where), where, here).items()


def _unquoted(line: str, where: str) -> str:
    """Return a line as a shell would take it: without `export`, a comment at its end, and the quotes of a value."""
    name, equals, value = re.sub(r"^export\s+", "", line).partition("=")
    return f"{name.rstrip()}{equals}{_value(value, where)}"


def _value(text: str, where: str) -> str:
    """Return a value without quotes where it begins with one. Raises RM111 where no single word remains."""
    if text.lstrip()[:1] not in ("'", '"'):
        return re.sub(r"\s#.*", "", text).strip()
    try:
        words = shlex.split(text, comments=True)
    except ValueError:
        words = []
    if len(words) != 1:
        raise _refused(where, "a quote of the value is not closed, or more stands after it")
    return words[0]


def _pair(text: str, where: str, here: Mapping[str, str]) -> dict[str, str]:
    name, equals, value = text.partition("=")
    if not _NAME.fullmatch(name):
        raise _refused(where, "what stands before = is no name of a variable: letters, digits and _")
    if not equals:
        if name not in here:
            raise _refused(where, f"{name} has no value, and this shell has no variable of that name")
        value = here[name]
    if {"\n", "\r", "\0"} & {*value}:
        raise _refused(where, f"the value of {name} has a line break; put it into a file and mount it with --data")
    if not settings.is_legible(value):
        raise _refused(where, f"the value of {name} is not text in UTF-8; put it into a file and mount it with --data")
    return {name: value}


def _refused(where: str, why: str) -> RocmatrixError:
    return RocmatrixError("RM111", what="a variable cannot be passed on", where=where, why=why)


def environment(names: Iterable[str]) -> Iterator[settings.Environment]:
    """Yield the variables by name, their values left out."""
    for name in names:
        reason = "asked for by the caller; its value is passed on, and written nowhere by this program"
        yield settings.Environment(name=name, content="", passed=True, reason=reason, source=CALLER)


def ports(typed: Iterable[str]) -> tuple[settings.Port, ...]:
    """Return the ports to publish on the loopback address. Raises RM112.

    Args:
        typed: PORT, or HOST:CONTAINER where the two differ.
    """
    return tuple(dict.fromkeys(_port(text) for text in typed))


def _port(text: str) -> settings.Port:
    found = _PORT.fullmatch(text.strip())
    inside = int(found[2]) if found else 0
    host = int(found[1] or inside) if found else 0
    if not (0 < inside < 1 << 16 and 0 < host < 1 << 16):
        raise RocmatrixError("RM112", what=f"--port takes 8888 or 9999:8888, not {text!r}", where="--port")
    reason = "asked for by the caller; reached from this machine alone"
    return settings.Port(address=LOOPBACK, host=host, container=inside, reason=reason, source=f"{ENGINE}#publish")


def folders(data: Iterable[Path], code: Path | None, *, writable: bool) -> tuple[settings.Mount, ...]:
    """Return the mounts of further data, each below /data, and of code, at /code. Raises RM404.

    Args:
        data: files and folders of the host, of different names.
        code: folder of the host; None for none.
        writable: the code may be changed.
    """
    named = list(data)
    names = [path.name for path in named]
    for path in [*named, *([code] if code else [])]:
        if not path.exists():
            raise RocmatrixError("RM404", what="nothing is there", where=str(path))
    if twice := next((name for name in names if names.count(name) > 1), None):
        why = f"both would be {DATA_FOLDER}/{twice}"
        raise RocmatrixError("RM404", what=f"two of --data have the name {twice}", where="--data", why=why)
    mounts = [
        _mount(path, f"{DATA_FOLDER}/{path.name}", "data is read, never changed", read_only=True) for path in named
    ]
    if code is not None:
        if not code.is_dir():
            raise RocmatrixError("RM404", what="--code names no folder", where=str(code))
        reason = (
            "code of the user's; --code-writable was given" if writable else "code of the user's is read, never changed"
        )
        mounts.append(_mount(code, CODE_FOLDER, reason, read_only=not writable))
    return tuple(mounts)


def _mount(origin: Path, target: str, reason: str, *, read_only: bool) -> settings.Mount:
    return settings.Mount(
        kind="bind", origin=str(origin), target=target, read_only=read_only, reason=reason, source=CALLER
    )

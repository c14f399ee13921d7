"""Files that a command writes where the user states: checked before the work, and there whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import re
import shutil
import stat
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from trainer.runtime.errors import TrainerError, number_of, of_system

OWN = f"{zlib.crc32(platform.node().encode()):08x}-"  # of this machine: others have processes of the same numbers


def require_output(output: Path, flag: str, inputs: Mapping[str, Path], *, through: bool = True) -> None:
    """See before the work that `output`, given by `flag`, can be written and is none of the `inputs`.

    `inputs` names what each file is. A pipe or character device is written `through`, or refused where the format
    needs a file.

    Args:
        output: path to write.
        flag: option that gave it, such as "--output".
        inputs: paths that must not be overwritten, by what they are.
        through: accept a pipe or a character device.

    Raises:
        TrainerError: RM500 for an input, a folder, another kind of node, or a path below a folder that is not there.
    """
    for name, path in inputs.items():
        if same_file(output, path):
            what = f"{flag} {output} is the file of {name}, which would be lost"
            raise TrainerError("RM500", what=what, next=f"Give {flag} another file.")
    kind = mode_of(output)
    if kind is None and not output.parent.is_dir() and through:
        what = f"{flag} {output}: there is no folder {output.parent}"
        raise TrainerError("RM500", what=what, next="Make the folder, or correct the path.")
    if kind is not None and stat.S_ISDIR(kind):
        raise TrainerError("RM500", what=f"{flag} {output} is a folder", next=f"Give {flag} a file in it.")
    if kind is not None and not stat.S_ISREG(kind) and not (through and is_stream(kind)):
        raise TrainerError("RM500", what=f"{flag} {output} is no ordinary file", next=f"Give {flag} another file.")


def same_file(one: Path, other: Path) -> bool:
    """Return whether both paths lead to one file, also by a link; False where either leads to none."""
    try:
        return one.samefile(other)
    except OSError:
        return False


def mode_of(path: Path) -> int | None:
    """Return the mode of what `path` leads to, None where nothing is there."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def is_stream(mode: int) -> bool:
    """Return whether a node takes bytes one after the other: a pipe or a character device."""
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or, after a failure, as it was before; a link stays and is followed.

    A pipe or character device is opened and written to: a rename would put a file in its place.

    Raises:
        OSError: with the file's name, also where the system leaves it out (a full disk).
    """
    kind = mode_of(path)
    try:
        if kind is not None and is_stream(kind):
            path.write_bytes(content)
        else:
            _replace(path.resolve(), content)
    except OSError as error:
        raise with_file(error, path) from error


def _replace(path: Path, content: bytes) -> None:
    with whole(path) as partial, partial.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


@contextlib.contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Yield the path of a file or folder to write, which becomes `path` at the block's end.

    After an error, Ctrl-C included, nothing of it is left; what a killed program left is removed before. Each program
    writes under a name of its own, so that two that write one output do not mix their parts: the later one's stays.

    Raises:
        OSError: with the file's name and, where the disk is full, this as its cause.
    """
    remove_left(path)
    partial = path.with_name(f".{path.name}.{OWN}{os.getpid()}.partial")
    try:
        yield partial
        partial.rename(path)
    except Exception as error:
        if not of_system(error):  # safetensors reports a full disk by a class of its own
            raise
        raise with_file(error, path) from error
    finally:
        _remove(partial)


def remove_left(path: Path) -> None:
    """Remove what killed programs of this machine left of an output; what others write now stays.

    Args:
        path: the output.
    """
    _remove(path.with_name(f".{path.name}.partial"))  # as earlier releases called it
    form = re.compile(re.escape(f".{path.name}.{OWN}") + r"(\d+)\.partial")
    with contextlib.suppress(FileNotFoundError, PermissionError):
        for left in list(path.parent.iterdir()):
            if (found := form.fullmatch(left.name)) and not Path(f"/proc/{found[1]}").exists():
                _remove(left)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def with_file(error: Exception, path: Path) -> Exception:
    """Return the system's error with its file and its number.

    polars has the number in its text alone; numpy leaves it out where fewer bytes were written than asked. A file name
    added to an error without a number would replace its text.

    Args:
        path: file that was written.
    """
    number = number_of(error) or (errno.ENOSPC if "requested and" in str(error) else None)
    if number is not None and (getattr(error, "errno", None) is None or getattr(error, "filename", None) is None):
        return OSError(number, os.strerror(number), str(path))
    return error

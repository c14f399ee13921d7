"""Any exception as an error of the catalog, and its report to people and programs."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import traceback
from pathlib import Path

from trainer.runtime.errors import TrainerError, from_log_settings, from_os_error, of_system
from trainer.runtime.events import emit, say
from trainer.runtime.signals import TerminatedError, interrupted

SHARED = ("RM554", "RM598")  # a stop ends all ranks with the same error: the first one reports it


def coded(error: BaseException, output: Path | None) -> TrainerError:
    """Return `error` as one of the catalog; the traceback of an unknown one goes to a file in `output`."""
    if isinstance(error, TrainerError):
        return error
    of_a_panic = interrupted() and not isinstance(error, Exception)  # Rust's, for a stop that C code took for a failure
    if of_a_panic or isinstance(error, KeyboardInterrupt | TerminatedError):
        return TrainerError("RM598", what="the run was stopped before its end")
    if isinstance(error, ImportError):
        return TrainerError("RM501", what=str(error))
    known = from_os_error(error) if of_system(error) else memory_ran_out(error) or from_log_settings(error)
    return known or unexpected(error, output)


def memory_ran_out(error: BaseException) -> TrainerError | None:
    """Return `error` as a coded error where a device or the host has no memory left."""
    torch = sys.modules.get("torch")  # if it was never imported, this is none of its errors
    if isinstance(error, MemoryError):
        return TrainerError("RM587", what=str(error) or "the system gave no more")
    if torch and isinstance(error, torch.cuda.OutOfMemoryError):
        return TrainerError("RM521", what=". ".join(str(error).split(". ")[:2]))  # without torch's advice
    if isinstance(error, RuntimeError) and cpu_memory_ran_out(error):
        return TrainerError("RM521", what=str(error).partition("DefaultCPUAllocator: ")[2] or str(error))
    return None


def cpu_memory_ran_out(error: RuntimeError) -> bool:
    """Return whether torch's CPU allocator failed: it has no class of its own for it, up to torch 2.13 at least."""
    return "DefaultCPUAllocator: can't allocate memory" in str(error)


def unexpected(error: BaseException, output: Path | None) -> TrainerError:
    """Return RM599, its traceback kept in `output`, else in the system's folder for temporary files."""
    text = "".join(traceback.format_exception(error))
    where = "no file: neither the output folder nor the temporary one can be written"
    for folder in (output, None):
        with contextlib.suppress(OSError):
            handle, where = tempfile.mkstemp(prefix="traceback-", suffix=".txt", dir=folder)
            os.write(handle, text.encode())
            break
    return TrainerError("RM599", what=f"{type(error).__name__}: {error}", where=where)


def report(error: TrainerError) -> int:
    """Report to people on stderr and to programs on stdout, a stop of several ranks once; return the exit status."""
    if error.code in SHARED and os.environ.get("RANK", "0") != "0":
        return error.exit_status
    say(error.render())
    try:
        emit("error", **error.parts())
    except OSError:  # nobody reads stdout, or its disk is full: Python's own flush at exit must not fail, too
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return error.exit_status

"""The end of a process without Python's own teardown, which frees each object of torch: 0.7 to 0.9 s on one core."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import NoReturn


def leave(status: int) -> NoReturn:
    """End this process with `status`: threads are waited for, exit functions run, streams written out.

    What a device holds, and what a debugger or a profiler still wants to write, is left to Python's way.

    Args:
        status: exit status.
    """
    if not is_quick():
        sys.exit(status)
    threading._shutdown()  # type: ignore[attr-defined]  # what Python calls here, too: pools of threads end by it
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):  # Python's way has an exit status for it
        sys.exit(status)
    os._exit(status)


def leave_after_gloo(status: int) -> NoReturn:
    """End this process at once: torch's destructors abort some processes of gloo whose work is done.

    `terminate called without an active exception` came after the last phase in 4 of 15 runs, torch 2.13.0.
    Streams are written out; exit functions do not run.

    Args:
        status: exit status.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def is_quick() -> bool:
    """Return whether there is a teardown to save and nothing that depends on it."""
    torch = sys.modules.get("torch")
    if torch is None or sys.gettrace() is not None or sys.getprofile() is not None or "LD_PRELOAD" in os.environ:
        return False
    cuda = getattr(torch, "cuda", None)
    return cuda is not None and not cuda.is_initialized()

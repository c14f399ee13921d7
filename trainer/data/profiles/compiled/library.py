"""levels.c as a function of this process: compiled once, for the processor at hand, into a folder that goes at once.

Nothing compiled is kept or loaded from elsewhere. Where no compiler is installed (a bare Debian), or no folder may hold
programs (a job's /tmp), there is no function, and numpy computes the same levels.
"""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainer.runtime.paths import PACKAGE

SOURCE = PACKAGE / "data" / "profiles" / "compiled" / "levels.c"
COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-O3", "-march=native", "-shared", "-fPIC")
WORTH = 50_000  # bars of this process, from which compiling takes less time than it saves
PATIENCE = 20.0  # seconds for a tenth of a second's work
CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "XDG_CACHE_HOME")  # folders that may hold programs


class _Seen:
    """How many bars this process was given so far."""

    bars = 0


def loop_for(bars: int) -> Callable[..., None] | None:
    """Count `bars` more, and return `loop()` once there were WORTH; None before.

    Args:
        bars: number of bars whose levels are computed next.
    """
    _Seen.bars += bars
    return loop() if _Seen.bars >= WORTH else None


@functools.cache
def loop() -> Callable[..., None] | None:
    """Return the function `levels` of levels.c, or None where it cannot be compiled and loaded here."""
    compiler = next(filter(None, map(shutil.which, COMPILERS)), None)
    if compiler is None:
        return None
    folders = [None, *(folder for name in CACHES if (folder := os.environ.get(name)))]
    return next((found for folder in folders if (found := _loaded(compiler, folder))), None)


def _loaded(compiler: str, folder: str | None) -> Callable[..., None] | None:
    """Compile in a new folder of `folder`, by default the system's for passing files, and load."""
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix="trainer-levels-") as place:
            library = Path(place) / "levels.so"
            argv = [compiler, *FLAGS, "-o", str(library), str(SOURCE)]
            subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, cwd=place)
            found: Any = ctypes.CDLL(str(library)).levels
    except (OSError, AttributeError, subprocess.SubprocessError):
        return None
    found.restype = None
    return found  # type: ignore[no-any-return]

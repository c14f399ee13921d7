"""Find and load shared libraries the way torch does: the copies inside its wheel first, then the system's.

ROCm's torch wheels carry their libraries in `torch/lib` or in `_rocm_sdk_*` packages next to it, CUDA's in
`nvidia/*/lib`; distributions put theirs on the loader's path and AMD's own packages under /opt/rocm.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

WHEEL_FOLDERS = ("_rocm_sdk_*/lib", "nvidia/*/lib")
MAJOR_VERSIONS = range(20, -1, -1)  # newest first; distributions ship libfoo.so.N without the bare libfoo.so


class LibraryError(Exception):
    """A library is not installed, or is and cannot be loaded; the message states which of the two."""


@dataclass(frozen=True, kw_only=True)
class Library:
    """A loaded library and the file it came from."""

    handle: ctypes.CDLL
    path: Path


def load(stem: str) -> Library:
    """Load `lib<stem>.so`. The first file that exists decides: a broken one is not passed over.

    Raises:
        LibraryError: no such library, or the loader's reason why the one that is there does not load.
    """
    for candidate in candidates(stem):
        try:
            handle = ctypes.CDLL(candidate)
        except OSError as error:
            if Path(candidate).is_absolute() or "cannot open shared object file" not in str(error):
                raise LibraryError(f"lib{stem} is there and does not load: {error}") from error
            if not str(error).startswith(candidate):  # a dependency is missing, not the library itself
                raise LibraryError(f"lib{stem} is there and lacks a dependency: {error}") from error
        else:
            return Library(handle=handle, path=loaded_path(stem) or Path(candidate))
    raise LibraryError(f"lib{stem} is not installed")


def candidates(stem: str) -> Iterator[str]:
    """Yield files and names to try, in order: wheels, the loader's path, ROCm's own folder."""
    for folder in wheel_folders():
        yield from map(str, sorted(folder.glob(f"lib{stem}.so*")))
    yield f"lib{stem}.so"
    yield from (f"lib{stem}.so.{major}" for major in MAJOR_VERSIONS)
    for folder in (Path(os.environ.get("ROCM_PATH", "/opt/rocm")) / "lib",):
        yield from map(str, sorted(folder.glob(f"lib{stem}.so*")))


def wheel_folders() -> list[Path]:
    """Return the library folders inside installed wheels, torch's own first. Does not import torch."""
    spec = importlib.util.find_spec("torch")
    torch_folders = [Path(place) / "lib" for place in (spec.submodule_search_locations or ())] if spec else []
    other_folders = [folder for entry in sys.path for pattern in WHEEL_FOLDERS for folder in Path(entry).glob(pattern)]
    return torch_folders + sorted(other_folders)


def loaded_path(stem: str) -> Path | None:
    """Return the file that this process has mapped for `lib<stem>.so`, or None where /proc does not show it."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return None
    paths = [Path(line.split(maxsplit=5)[5]) for line in lines if f"/lib{stem}.so" in line]
    return paths[0] if paths else None

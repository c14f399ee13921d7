"""Runs inside an image: look for what a build leaves behind, and print it as one JSON object.

Standard library only. Each key is a kind of stray, each value the places where it was found.
"""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

NOT_FILES = ("/proc", "/sys", "/dev")
EMPTY = ("/tmp", "/var/tmp", "/var/log", "/var/lib/apt/lists", "/var/cache/apt", "/run/wheelhouse")
CACHES = (".cache", "pip-cache", ".npm", ".conda")
HISTORIES = (".bash_history", ".python_history", ".lesshst", ".wget-hsts", ".viminfo")
OPEN_TO_ALL = ("/tmp", "/var/tmp", "/run/lock", "/cache", "/training")
DISTRIBUTION = ("/usr/lib/python3", "/usr/share/python")  # Debian's Python: compiled when installed, with pip's wheel
VENV = Path("/opt/venv")
UNCHECKED_HASH = 0b01  # PEP 552: named by its source's hash, never compared with a time stamp


def strays() -> dict[str, list[str]]:
    """Return every kind of stray with the places found; an empty list is a kind that was looked for in vain."""
    paths = list(walk(Path("/")))
    code = [path for path in paths if path.name == "__pycache__"]
    return {
        "not empty": [str(p) for p in paths if p.is_file() and str(p).startswith(tuple(f"{d}/" for d in EMPTY))],
        "cache": [str(p) for p in paths if p.name in CACHES],
        "wheel": [str(p) for p in paths if p.suffix == ".whl" and not str(p).startswith(DISTRIBUTION)],
        "history": [str(p) for p in paths if p.name in HISTORIES],
        "set-id": [str(p) for p in paths if p.is_file() and p.lstat().st_mode & (stat.S_ISUID | stat.S_ISGID)],
        "open to all": [str(p) for p in paths if open_to_all(p)],
        "byte code": [str(p) for p in code if not str(p).startswith((f"{VENV}/", *DISTRIBUTION))],
        "byte code with times": [str(p) for p in VENV.rglob("*.pyc") if not by_hash(p)],
        "owned by nobody known": [str(p) for p in paths if p.lstat().st_uid >= 1000],
    }


def walk(folder: Path) -> Iterator[Path]:
    """Yield everything below `folder` that is part of the image; links are not followed."""
    for entry in os.scandir(folder):
        if entry.path in NOT_FILES:
            continue
        yield Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            yield from walk(Path(entry.path))


def open_to_all(path: Path) -> bool:
    """Return whether everyone may write here, though it is no place for that, or others may delete there."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode) or not mode & stat.S_IWOTH:
        return False
    return str(path) not in OPEN_TO_ALL or not mode & stat.S_ISVTX


def by_hash(path: Path) -> bool:
    """Return whether byte code is valid without a look at its source's time."""
    with path.open("rb") as file:
        return int.from_bytes(file.read(8)[4:], "little") == UNCHECKED_HASH


if __name__ == "__main__":
    print(json.dumps(strays()))

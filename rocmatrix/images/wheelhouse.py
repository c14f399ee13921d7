"""The wheelhouse: a folder with exactly the wheels of a lock, fetched once and checked by hash.

An image is built from it with no network, and the native environment is installed from it too.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from rocmatrix.images.added import conflicts
from rocmatrix.images.pip_report import PATIENCE, platform_options, reason
from rocmatrix.matrix.matrix import Cell, Release, Wheel
from rocmatrix.runtime.console import say
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.paths import ROOT

CHUNK_BYTES = 1 << 20
LEDGERS = ROOT / ".rocmatrix" / "hashes"
_SCRATCH = ".fetch-"
_DISK_FULL = tuple(f"[Errno {number}]" for number in (errno.ENOSPC, errno.EDQUOT))


@dataclass(frozen=True, kw_only=True)
class Source:
    """A place wheels come from: its name for a person, and the options with which pip queries it."""

    name: str
    options: tuple[str, ...] = ()


CONFIGURED = Source(name="the package sources this machine's pip is configured with")


def default_folder(root: Path, cell: Cell) -> Path:
    """Return the folder that all cells of one lock share."""
    return root / ".rocmatrix" / "wheelhouse" / f"{cell.lock_name}-py{cell.python}"


def fetch(cell: Cell, directory: Path) -> Path:
    """Bring every locked wheel of `cell` into `directory`, checked, and return `directory`.

    Raises:
        RocmatrixError: RM102 nothing is locked, RM103 a file has other bytes than the lock names, RM104 no
            source serves a file, RM110 an added wheel would write over another's files, RM205 the disk is full.
        OSError: the folder cannot be written.
    """
    if not cell.wheels:
        raise RocmatrixError("RM102", what=f"{cell.name} has no locked wheels", where="matrix/locks.yaml")
    if check(cell, directory):
        directory.mkdir(parents=True, exist_ok=True)
        with _held(directory):
            _fetch_missing(cell, directory)
    if cell.added:
        conflicts.refuse_overwriting(cell, directory)
    return directory


def check(cell: Cell, directory: Path) -> list[tuple[str, Wheel]]:
    """Hash the files of `directory` and return the wheels that are missing. Raises RM103."""
    ledger = Ledger(directory)
    missing = []
    for file, wheel in cell.wheels:
        path = directory / file
        if not path.is_file():
            missing.append((file, wheel))
        elif (found := ledger.sha256(path)) != wheel.sha256:
            raise _mismatch(path, expected=wheel.sha256, found=found)
    ledger.save()
    return missing


def _fetch_missing(cell: Cell, directory: Path) -> None:
    for leftover in directory.glob(f"{_SCRATCH}*"):  # of a process that was killed: we hold the folder
        shutil.rmtree(leftover)
    # torch first: it is the one most likely to be out of reach, so that is known before anything is fetched.
    for file, wheel in sorted(check(cell, directory), key=lambda row: row[1].index != "pytorch"):
        say(f"fetching {file}")
        with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=directory) as scratch:
            fetched = _download(file, wheel, cell, Path(scratch))
            fetched.rename(directory / file)
    check(cell, directory)


def _download(file: str, wheel: Wheel, cell: Cell, scratch: Path) -> Path:
    # A requirements file is the only form in which pip takes a hash.
    requirement = scratch / "requirement.txt"
    requirement.write_text(f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}\n", encoding="utf-8")
    refusals = []
    for source in sources(wheel, cell.release):
        argv = pip_argv(requirement, python=cell.python, source=source, target=scratch / "wheels")
        done = subprocess.run(argv, capture_output=True, text=True, check=False, env=_environment(scratch))
        if done.returncode == 0:
            return _arrived(scratch / "wheels" / file, wheel)
        if any(number in done.stderr for number in _DISK_FULL):
            raise RocmatrixError("RM205", what=f"no space left to fetch {file}", where=str(scratch.parent))
        refusals.append(f"{source.name}: {reason(done.stderr)}")
    raise RocmatrixError("RM104", what=file, where=str(scratch.parent), why="\n".join(refusals))


def sources(wheel: Wheel, release: Release) -> list[Source]:
    """Return where to ask for a wheel, in order: this machine's mirrors first, then PyTorch's own index."""
    if wheel.index != "pytorch":
        return [CONFIGURED]
    return [CONFIGURED, Source(name=release.index, options=("--index-url", release.index))]


def pip_argv(requirement: Path, *, python: str, source: Source, target: Path) -> list[str]:
    """Return the pip command that fetches one wheel, for the image's Python, not this machine's.

    Args:
        requirement: requirements file with the wheel and its hash.
        python: version of the image's Python, such as "3.12".
        target: folder that receives the wheel.
    """
    argv = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    # pip's cache would keep a second copy of wheels of several gigabytes.
    argv += ["--no-cache-dir", "--no-deps", "--require-hashes", "--only-binary=:all:", *PATIENCE]
    return [*argv, *platform_options(python), *source.options, "--dest", str(target), "--requirement", str(requirement)]


def _environment(scratch: Path) -> dict[str, str]:
    """Let pip unpack next to its target: /tmp may be small, and a rename must not become a copy."""
    return {**os.environ, "TMPDIR": str(scratch)}


def _arrived(path: Path, wheel: Wheel) -> Path:
    """Look after pip: the file has the locked name and the locked bytes."""
    if not path.is_file():
        got = ", ".join(sorted(file.name for file in path.parent.glob("*"))) or "nothing"
        raise RocmatrixError("RM104", what=f"{path.name}: pip brought {got} instead")
    if (found := sha256(path)) != wheel.sha256:
        raise _mismatch(path, expected=wheel.sha256, found=found)
    return path


def _mismatch(path: Path, *, expected: str, found: str) -> RocmatrixError:
    why = f"expected sha256 {expected}\nfound    sha256 {found}"
    return RocmatrixError("RM103", what=path.name, where=str(path.parent), why=why)


def sha256(path: Path) -> str:
    """Return the sha256 of a file, read in pieces: wheels are larger than memory may be."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(CHUNK_BYTES):
            digest.update(piece)
    return digest.hexdigest()


class Ledger:
    """Hashes of files that have not changed since they were read, kept apart from the wheelhouse.

    A file is read again when its size, times or inode differ. The change time is among them because no
    program can set it back. The ledger is in this checkout, never with the wheels: a folder from
    another user must not bring its own hashes. Only a file that this user owns and no other user can write counts.
    """

    def __init__(self, directory: Path) -> None:
        place = hashlib.sha256(os.fsencode(directory.resolve())).hexdigest()
        self.path = LEDGERS / f"{place[:32]}.json"
        self._known: dict[str, str] = {}
        self._seen: dict[str, str] = {}
        with suppress(OSError, ValueError, RecursionError):
            known = json.loads(_private_text(self.path))
            self._known = known if isinstance(known, dict) else {}

    def sha256(self, path: Path) -> str:
        """Return the hash of `path`, from the ledger where the file is unchanged."""
        status = path.stat()
        times = f"{status.st_mtime_ns} {status.st_ctime_ns}"
        state = f"{path.name} {status.st_size} {times} {status.st_dev} {status.st_ino}"
        self._seen[state] = self._known.get(state) or sha256(path)
        return self._seen[state]

    def save(self) -> None:
        """Write the ledger, where that is possible; without it the next check only takes longer."""
        if self._seen == self._known:
            return
        part = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(json.dumps(self._seen, indent=1), encoding="utf-8")
            part.chmod(0o600)
            part.replace(self.path)


def _private_text(path: Path) -> str:
    """Return a file's text, an empty one where another user owns it or can write it. Raises OSError, ValueError."""
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        return ""
    return path.read_text(encoding="utf-8")


@contextmanager
def _held(directory: Path) -> Iterator[None]:
    """Hold the folder, so that two builds of one release fetch its wheels once."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)

"""A tree of files, seen the same way on disk and in a tar stream: one entry after another, read once.

An image is read as the tar that the engine makes of it. That stream cannot go back, and the largest library
is of gigabytes, so an entry's first bytes come with it and its whole content only on request, by way of a
temporary file that is gone before the next entry.
"""

from __future__ import annotations

import io
import os
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, Literal, cast

HEAD = 64  # bytes; enough for every format's first mark and an ELF header
IN_MEMORY = 16 * 1024 * 1024
_XATTR = "SCHILY.xattr."

Kind = Literal["file", "folder", "link", "other"]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One file or folder. `path` begins with a slash; `size` is in bytes, 0 for a further name of a file seen before.

    `open` gives the content, seekable, as often as wanted; only until the next entry is asked for. `link` is where a
    symbolic link leads, or in a tar the first name of a hard-linked file; `device` are type, major and minor of a node;
    `attributes` are the names of extended attributes, known from a tar only.
    """

    path: str
    kind: Kind
    size: int
    mode: int
    uid: int
    modified: float
    head: bytes
    open: Callable[[], AbstractContextManager[BinaryIO]]
    gid: int = 0
    link: str = ""
    device: tuple[str, int, int] | None = None
    attributes: tuple[str, ...] = ()


def on_disk(root: Path) -> Iterator[Entry]:
    """Yield everything below `root`, in the order of names; links are named, not followed."""
    seen: set[tuple[int, int]] = set()
    for folder, folders, files in os.walk(root):
        folders.sort()
        for name in sorted([*files, *folders]):
            path = Path(folder, name)
            about = path.lstat()
            again = stat.S_ISREG(about.st_mode) and about.st_nlink > 1 and (about.st_dev, about.st_ino) in seen
            seen.add((about.st_dev, about.st_ino))
            yield _found(path, "/" + path.relative_to(root).as_posix(), about, counted=not again)


def _found(path: Path, name: str, about: os.stat_result, *, counted: bool) -> Entry:
    kind = _kind(about.st_mode)
    head = b""
    if kind == "file" and counted:
        with path.open("rb") as file:
            head = file.read(HEAD)
    return Entry(
        path=name,
        kind=kind,
        size=about.st_size if kind == "file" and counted else 0,
        mode=stat.S_IMODE(about.st_mode),
        uid=about.st_uid,
        modified=about.st_mtime,
        head=head,
        open=lambda: path.open("rb"),
        gid=about.st_gid,
        link=str(path.readlink()) if kind == "link" else "",
    )


def _kind(mode: int) -> Kind:
    for test, kind in ((stat.S_ISREG, "file"), (stat.S_ISDIR, "folder"), (stat.S_ISLNK, "link")):
        if test(mode):
            return cast(Kind, kind)
    return "other"


def in_tar(stream: IO[bytes]) -> Iterator[Entry]:
    """Yield everything in a tar stream, in its order. Raises `tarfile.TarError` for a broken one."""
    with tarfile.open(fileobj=stream, mode="r|") as tar:
        for member in tar:
            content = _Content(tar.extractfile(member) if member.isreg() else None, member.size)
            try:
                yield _member(member, content)
            finally:
                content.close()


def _member(member: tarfile.TarInfo, content: _Content) -> Entry:
    kinds: list[tuple[bool, Kind]] = [
        (member.isreg() or member.islnk(), "file"), (member.isdir(), "folder"), (member.issym(), "link"),
    ]  # fmt: skip
    return Entry(
        path="/" + member.name.strip("/").removeprefix("./"),
        kind=next((kind for true, kind in kinds if true), "other"),
        size=member.size if member.isreg() else 0,
        mode=member.mode,
        uid=member.uid,
        modified=float(member.mtime),
        head=content.head,
        open=content.open,
        gid=member.gid,
        link=f"/{member.linkname.strip('/').removeprefix('./')}" if member.islnk() else member.linkname,
        device=_device(member),
        attributes=tuple(sorted(key[len(_XATTR) :] for key in member.pax_headers if key.startswith(_XATTR))),
    )


def _device(member: tarfile.TarInfo) -> tuple[str, int, int] | None:
    kind = next((name for true, name in ((member.ischr(), "c"), (member.isblk(), "b")) if true), None)
    return (kind, member.devmajor, member.devminor) if kind else None


class _Content:
    """Content of a stream's member: read once, then kept until the next member, for several readers."""

    def __init__(self, rest: IO[bytes] | None, size: int) -> None:
        self.head = rest.read(HEAD) if rest else b""
        self._rest, self._size, self._copy = rest, size, cast(BinaryIO | None, None)

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Give the whole content, from its begin."""
        if self._copy is None:
            self._copy = self._copied()
        self._copy.seek(0)
        yield self._copy

    def _copied(self) -> BinaryIO:
        """Return the content; in memory where it is small, which most of an image's files are."""
        if self._rest is None or self._size <= IN_MEMORY:
            return io.BytesIO(self.head + (self._rest.read() if self._rest else b""))
        copy = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115
        copy.write(self.head)
        shutil.copyfileobj(self._rest, copy, 1024 * 1024)
        return copy

    def close(self) -> None:
        """Drop the copy."""
        if self._copy is not None:
            self._copy.close()


class Chunks(io.RawIOBase):
    """The pieces of a stream, readable front to back as a file."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces, self._left = iter(pieces), memoryview(b"")

    def readable(self) -> bool:
        """Return True, as `io.BufferedReader` asks."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` from the next piece; 0 at the end."""
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._left = memoryview(piece)
        size = min(len(buffer), len(self._left))
        buffer[:size] = self._left[:size]
        self._left = self._left[size:]
        return size

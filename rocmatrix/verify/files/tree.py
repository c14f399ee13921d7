"""Every file of an image by its digest, mode, owner and links; and the text of the few that later checks read."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from rocmatrix.verify.devicecode.filetree import Entry, Kind

VENV, TRAINER = "/opt/venv", "/opt/rocmatrix"
CHUNK = 1024 * 1024
LARGEST = 32 * CHUNK  # bytes; dpkg's status file and pip's wheel are a few megabytes
READ = re.compile(
    r"/opt/venv/(pyvenv\.cfg|bin/[^/]+)"
    r"|/opt/venv/lib/python[0-9.]+/site-packages/[^/]+\.dist-info/RECORD"
    r"|/usr/lib/python3[0-9.]*/venv/scripts/[a-z]+/[^/]+"
    r"|/usr/share/python-wheels/[^/]+\.whl"
    r"|/usr/lib/python3[0-9.]*/ensurepip/_bundled/[^/]+\.whl"
    r"|/var/lib/dpkg/(status|info/[^/]+\.(list|md5sums))"
    r"|/etc/(passwd|shadow|ld\.so\.cache|ld\.so\.conf(\.d/[^/]+\.conf)?)"
    r"|/etc/(ca-certificates\.conf|ssl/certs/ca-certificates\.crt)|/usr/(local/)?share/ca-certificates/.+\.crt"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One path. `sha256` and `md5` are of a file's content, empty for all else; `md5` outside the environment only.

    `link` is where a symbolic link leads, `device` the type and numbers of a node, `attributes` the names of
    extended attributes, such as `security.capability`.
    """

    kind: Kind
    mode: int
    uid: int
    gid: int
    sha256: bytes = b""
    md5: bytes = b""
    link: str = ""
    device: tuple[str, int, int] | None = None
    attributes: tuple[str, ...] = ()


class Tree:
    """Collects a tree entry by entry. A further name of a hard-linked file has the digests of its first."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.texts: dict[str, bytes] = {}

    def look_all(self, entries: Iterable[Entry]) -> None:
        """Take everything up."""
        for entry in entries:
            self.look(entry)

    def look(self, entry: Entry) -> None:
        """Take one entry up."""
        first = self.rows.get(entry.link) if entry.kind == "file" and entry.link else None
        if first is not None:
            digests = (first.sha256, first.md5)
        elif entry.kind == "file" and not entry.link:
            digests = self._read(entry)
        else:
            digests = (b"", b"")
        self.rows[entry.path] = Row(
            kind=entry.kind,
            mode=entry.mode,
            uid=entry.uid,
            gid=entry.gid,
            sha256=digests[0],
            md5=digests[1],
            link=entry.link if entry.kind == "link" else "",
            device=entry.device,
            attributes=entry.attributes,
        )

    def _read(self, entry: Entry) -> tuple[bytes, bytes]:
        is_read = READ.fullmatch(entry.path) is not None and entry.size <= LARGEST
        sha256, md5 = hashlib.sha256(), None
        if not entry.path.startswith((f"{VENV}/", f"{TRAINER}/")):
            md5 = hashlib.md5(usedforsecurity=False)
        kept = bytearray()
        with entry.open() as file:
            while piece := file.read(CHUNK):
                sha256.update(piece)
                if md5 is not None:
                    md5.update(piece)
                if is_read:
                    kept += piece
        if is_read:
            self.texts[entry.path] = bytes(kept)
        return sha256.digest(), md5.digest() if md5 else b""

    def lines(self, path: str) -> list[str]:
        """Return the lines of a text that was taken up; none for any other path."""
        return self.texts.get(path, b"").decode(errors="replace").splitlines()

    def below(self, folder: str) -> dict[str, Row]:
        """Return a folder and what is below it, by path."""
        return {path: row for path, row in self.rows.items() if path == folder or path.startswith(f"{folder}/")}


def parents(paths: set[str], top: str) -> set[str]:
    """Return every folder between `top` and one of `paths`, `top` included."""
    found = {top}
    for path in paths:
        folder = path.rpartition("/")[0]
        while len(folder) > len(top) and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found

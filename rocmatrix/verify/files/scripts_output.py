"""Files that packages' scripts write, checked against their inputs: the loader's cache and the certificate bundle.

Both change whenever a package is installed, so that no digest fits them. The cache is read as ld.so reads it (glibc
`sysdeps/generic/dl-cache.h`, format 1.1), and the bundle is the certificates that ca-certificates.conf selects
(`update-ca-certificates` of Debian's ca-certificates).
"""

from __future__ import annotations

import posixpath
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rocmatrix.verify.files.dpkg import merged
from rocmatrix.verify.files.tree import Row, Tree

CACHE = "/etc/ld.so.cache"
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
SELECTION = "/etc/ca-certificates.conf"
CERTIFICATES = "/usr/share/ca-certificates/"
ADDED = "/usr/local/share/ca-certificates/"  # a base's own; any other file there is named as of no package
_MAGIC, _OLD_MAGIC = b"glibc-ld.so.cache1.1", b"ld.so-1.7.0"
_OLD_HEADER, _OLD_ENTRY = 16, 12  # bytes
_HEADER, _ENTRY = struct.Struct("<20sIIB3xI12x"), struct.Struct("<iIIIQ")
_TRUSTED = ("/usr/lib", "/usr/lib64", "/usr/lib32", "/usr/libx32")
_BY_PROCESSOR = re.compile(r"/glibc-hwcaps/[^/]+$")
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----\s(.*?)-----END CERTIFICATE-----", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Library:
    """An entry of the loader's cache: a name that programs ask for, the file they get, and for which processors."""

    name: str
    path: str
    kind: tuple[int, int]

    @property
    def folder(self) -> str:
        """The folder that ld.so.conf names, without what glibc adds for a kind of processor."""
        return _BY_PROCESSOR.sub("", posixpath.dirname(merged(self.path)))


def libraries(cache: bytes) -> list[Library]:
    """Return the entries of a loader's cache in its order.

    Raises ValueError where it is none.

    Args:
        cache: content of /etc/ld.so.cache.
    """
    try:
        data = cache[_start(cache) :]
        if not data.startswith(_MAGIC):
            raise ValueError("it is not of format 1.1")
        count = _HEADER.unpack_from(data)[1]
        rows = [_ENTRY.unpack_from(data, _HEADER.size + number * _ENTRY.size) for number in range(count)]
        return [
            Library(name=_text(data, key), path=_text(data, value), kind=(flags, processor))
            for flags, key, value, _, processor in rows
        ]
    except (struct.error, UnicodeDecodeError) as error:
        raise ValueError(f"it cannot be read: {error}") from None


def _start(cache: bytes) -> int:
    """Return where ld.so looks for format 1.1: behind the entries of the old format, at a multiple of eight."""
    if not cache.startswith(_OLD_MAGIC):
        return 0
    (count,) = struct.unpack_from("<I", cache, _OLD_HEADER - 4)
    return (_OLD_HEADER + _OLD_ENTRY * int(count) + 7) // 8 * 8


def _text(data: bytes, start: int) -> str:
    end = data.find(b"\0", start)
    if end < 0:
        raise ValueError("it has an entry without a text")
    return data[start:end].decode()


def strange_libraries(tree: Tree, rows: Mapping[str, Row]) -> Iterator[str]:
    """Yield what the loader's cache leads to and ldconfig would not: with the name asked for.

    A file that is not the system's, another name's file, a folder that no ld.so.conf names, and one that comes before
    a folder that is named earlier.

    Args:
        tree: the image's texts.
        rows: paths of the system, without the environment and the trainer.
    """
    if CACHE not in rows:
        return
    try:
        found = libraries(tree.texts.get(CACHE, b""))
    except ValueError as error:
        yield f"{CACHE}: {error}"
        return
    order = _folders(tree)
    held = {merged(path) for path, row in rows.items() if row.kind in ("file", "link")}
    last: dict[tuple[str, tuple[int, int]], int] = {}
    for library in found:
        place = order.get(library.folder, -1)
        sound = merged(library.path) in held and posixpath.basename(library.path) == library.name and place >= 0
        if not sound or place < last.get((library.name, library.kind), 0):
            yield f"{CACHE}: {library.name} is {library.path}"
        last[library.name, library.kind] = max(place, 0)


def _folders(tree: Tree) -> dict[str, int]:
    """Return the folders that ldconfig searches, with their places in its order."""
    named = [line.strip() for path in _configurations(tree) for line in tree.lines(path)]
    folders = [merged(posixpath.normpath(line)) for line in named if line.startswith("/")]
    return {folder: place for place, folder in reversed([*enumerate([*folders, *_TRUSTED])])}


def _configurations(tree: Tree) -> list[str]:
    return sorted(path for path in tree.texts if re.fullmatch(r"/etc/ld\.so\.conf(\.d/[^/]+\.conf)?", path))


def strange_certificates(tree: Tree, rows: Mapping[str, Row]) -> Iterator[str]:
    """Yield where the bundle of certificates is not what the selection of the package's own makes.

    Args:
        tree: the image's texts.
        rows: paths of the system, without the environment and the trainer.
    """
    if BUNDLE not in rows:
        return
    selected = [line.strip() for line in tree.lines(SELECTION) if line.strip() and line[0] not in "#!"]
    absent = [line for line in selected if CERTIFICATES + line not in tree.texts]
    yield from (f"{SELECTION}: {line} is not there" for line in absent)
    files = [CERTIFICATES + line for line in selected] + [path for path in tree.texts if path.startswith(ADDED)]
    own = {one for path in files for one in certificates(tree.texts.get(path, b""))}
    bundle = tree.texts.get(BUNDLE, b"")
    held = certificates(bundle)
    added, missing = len(set(held) - own), len(own - set(held))
    if added or missing or _more_text(bundle):
        yield f"{BUNDLE}: {added} certificates of no package, {missing} missing{', other text' * _more_text(bundle)}"


def certificates(text: bytes) -> list[str]:
    """Return the certificates of a PEM text, without line breaks.

    Args:
        text: content of the file.
    """
    return ["".join(body.split()) for body in _CERTIFICATE.findall(text.decode(errors="replace"))]


def _more_text(text: bytes) -> bool:
    return bool(_CERTIFICATE.sub("", text.decode(errors="replace")).strip())


def differing(paths: Iterable[str], rows: Mapping[str, Row], base: Mapping[str, Row]) -> bool:
    """Return whether any of some paths is not as in the base.

    Args:
        paths: paths to compare.
        rows: paths of the image with their rows.
        base: paths of the base with their rows.
    """
    return any(path in rows and (path not in base or rows[path].sha256 != base[path].sha256) for path in paths)

"""The files of a Debian or Ubuntu system by its own lists: which package brings each, and with which MD5.

The lists lie in the image that they describe. They find what was replaced, added or left behind; whoever rewrites them
too is found only where the base image is at hand to compare with (`rocmatrix.verify.files.system`).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence

from rocmatrix.verify.files.tree import Row, Tree

INFO = "/var/lib/dpkg/info/"
STATUS = "/var/lib/dpkg/status"
Written = Mapping[str, Sequence[str]]
_MERGED = re.compile(r"/(?:bin|sbin|lib|lib32|lib64|libx32)(?=/|$)")
_CONFFILE = re.compile(r" (?P<path>/\S+) (?P<md5>[0-9a-f]{32})(?: obsolete)?")
# What the scripts of packages write when these are installed on top of a base, by the kind of path.
ON_TOP = {
    "file": (
        r"/etc/(ca-certificates\.conf|ld\.so\.cache|python3/debian_config|ssl/certs/ca-certificates\.crt)",
        r"/var/(lib/(dpkg|apt|python)/.+|cache/(debconf|apt|ldconfig)/.+)",
    ),
    "link": (r"/etc/(alternatives|ssl/certs)/.+",),
}
# What a base has in addition, where that is not at hand to compare with: the configuration of a whole system.
OF_BASES = {
    "file": (
        r"/etc/(apt/.+|\.pwd\.lock|environment|fstab|group-?|gshadow-?|inputrc|motd|nsswitch\.conf|opt)",
        r"/etc/(pam\.d/common-[a-z-]+|passwd-?|profile|shadow-?|security/opasswd|shells|subgid-?|subuid-?|timezone)",
        r"/etc/(machine-id|default/.+)|/root/\.(bashrc|profile)|/usr/share/info/dir",
        r"/var/lib/(pam|systemd|misc)/.+|/var/lib/shells\.state",
    ),
    "link": (
        r"/etc/(rc[0-6S]\.d|systemd/system)/.+|/etc/(localtime|dpkg/origins/default)",
        r"/(bin|sbin|lib|lib32|lib64|libx32|usr/local/man|var/spool/mail|var/run|var/lock)",
        r"/dev/(fd|stdin|stdout|stderr)",
    ),
}
# What debootstrap makes below /dev; the engine covers that folder in a container.
NODES = {
    (f"/dev/{name}", "c", major, minor, 0o666)
    for name, major, minor in (
        ("null", 1, 3), ("zero", 1, 5), ("full", 1, 7), ("random", 1, 8), ("urandom", 1, 9), ("tty", 5, 0),
        ("ptmx", 5, 2),
    )
}  # fmt: skip
# Links of update-alternatives, which no package lists: their names lead to /etc/alternatives, and from there on.
ALTERNATIVE = re.compile(r"/usr/(bin|sbin)/[^/]+|/usr/share/man/.+")
_OUTSIDE = re.compile(
    r"/+(?:cache|training|tmp|var/tmp|home|root|opt|mnt|media|srv|dev/shm|proc/[^/]+/(?:cwd|root|task))(?:/|$)"
)
_COMPILED = re.compile(r"(?P<folder>/usr/(?:lib|share)/python3.*)/__pycache__/(?P<stem>[^/]+)\.cpython-3\d+\.pyc")


def merged(path: str) -> str:
    """Return a path as it is on a system where /bin and the like are links into /usr."""
    return f"/usr{path}" if _MERGED.match(path) else path


class Packages:
    """Paths that packages list, with the MD5 of those that have one."""

    def __init__(self, tree: Tree) -> None:
        self.listed: set[str] = set()
        self.md5: dict[str, set[bytes]] = {}
        for path, text in tree.texts.items():
            lines = text.decode("utf-8", "replace").splitlines()
            if path.startswith(INFO) and path.endswith(".list"):
                self.listed.update(map(merged, lines))
            elif path.startswith(INFO):
                self._add(line.split("  ", 1)[::-1] for line in lines if "  " in line)
            elif path == STATUS:
                self._add([m["path"], m["md5"]] for line in lines if (m := _CONFFILE.fullmatch(line)))

    def _add(self, rows: object) -> None:
        for path, digest in rows:  # type: ignore[attr-defined]
            known = self.md5.setdefault(merged("/" + path.lstrip("/")), set())
            known.add(bytes.fromhex(digest) if re.fullmatch("[0-9a-f]{32}", digest) else b"")

    def explain(self, path: str, row: Row, rows: Mapping[str, Row], *, written: Written) -> bool:
        """Return whether a package brings this path as it is, or its scripts, which may write `written`, make it.

        Args:
            path: absolute path in the image.
            rows: all paths of the image with their rows.
            written: what packages' scripts may write.
        """
        name = merged(path)
        if row.kind == "file":
            known = row.md5 in self.md5.get(name, ()) or self._compiled(name, rows, written)
            return known or is_written(name, row, written)
        if row.kind == "link":
            return not _leads_out(path, row) and (
                (name in self.listed and name not in self.md5)  # what has a digest is a file
                or is_written(name, row, written)
                or _is_alternative(name, row, rows)
            )
        if row.kind == "other":
            return row.device is not None and (path, *row.device, row.mode) in NODES
        return name not in self.md5  # a folder; what has a digest is a file

    def _compiled(self, path: str, rows: Mapping[str, Row], written: Written) -> bool:
        """Return whether it is byte code of a package's source: packages compile it when they are installed."""
        match = _COMPILED.fullmatch(path)
        if match is None:
            return False
        source = f"{match['folder']}/{match['stem']}.py"
        return source in rows and self.explain(source, rows[source], rows, written=written)


def is_written(path: str, row: Row, written: Written) -> bool:
    """Return whether scripts of packages may write a path of this kind.

    Args:
        path: absolute path in the image.
        written: what packages' scripts may write.
    """
    return any(re.fullmatch(pattern, path) for pattern in written.get(row.kind, ()))


def _leads_out(path: str, row: Row) -> bool:
    """Return whether a link leads to where volumes, users or running processes put files: no package's does."""
    return _OUTSIDE.match(posixpath.normpath(posixpath.join(posixpath.dirname(path), row.link))) is not None


def _is_alternative(path: str, row: Row, rows: Mapping[str, Row]) -> bool:
    """Return whether a link is one of update-alternatives: by way of /etc/alternatives to a file that is there."""
    return ALTERNATIVE.fullmatch(path) is not None and row.link.startswith("/etc/alternatives/") and row.link in rows

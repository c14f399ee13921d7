"""What a Debian or Ubuntu system says of its own files: which package brings each, and with which MD5.

The lists lie in the image that they describe. They find what was replaced, added or left behind; whoever rewrites them
too is found only where the base image is at hand to compare with (`rocmatrix.verify.files.system`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from rocmatrix.verify.files.tree import Row, Tree

INFO = "/var/lib/dpkg/info/"
STATUS = "/var/lib/dpkg/status"
_MERGED = re.compile(r"/(?:bin|sbin|lib|lib32|lib64|libx32)(?=/|$)")
_CONFFILE = re.compile(r" (?P<path>/\S+) (?P<md5>[0-9a-f]{32})(?: obsolete)?")
# What packages' scripts write when they are installed. Names alone: `system` says which of them may hold code.
GENERATED = tuple(
    map(
        re.compile,
        (
            r"/etc/(alternatives|ssl/certs|rc[0-6S]\.d|systemd/system|opt|X11)(/.+)?",
            r"/etc/(apt/.+|\.pwd\.lock|ca-certificates\.conf|dpkg/origins/default|environment|fstab|group-?|gshadow-?)",
            r"/etc/(inputrc|ld\.so\.cache|localtime|motd|nsswitch\.conf|pam\.d/common-[a-z-]+|passwd-?|profile|shadow-?)",
            r"/etc/(python3(/debian_config)?|security/opasswd|shells|subgid-?|subuid-?|timezone|machine-id|default/.+)",
            r"/root/\.(bashrc|profile)",
            r"/usr/share/info/dir",
            r"/var/(lib/(dpkg|apt|pam|python|systemd|misc|shells\.state)(/.+)?|cache/(debconf|apt|ldconfig)(/.+)?)",
        ),
    )
)
# What debootstrap makes below /dev; the engine covers that folder in a container.
NODES = {
    (f"/dev/{name}", "c", major, minor, 0o666)
    for name, major, minor in (
        ("null", 1, 3), ("zero", 1, 5), ("full", 1, 7), ("random", 1, 8), ("urandom", 1, 9), ("tty", 5, 0),
        ("ptmx", 5, 2),
    )
}  # fmt: skip
# Links that update-alternatives makes, and those of the file system's standard, where no package lists them.
LINKS = re.compile(
    r"/etc/alternatives/.+|(\.\./)*(usr/)?(share/man|bin|sbin|lib(32|64|x32)?|mail)|/etc/python3.*|/proc/self/fd(/[012])?"
)
_COMPILED = re.compile(r"(?P<folder>/usr/(?:lib|share)/python3.*)/__pycache__/(?P<stem>[^/]+)\.cpython-3\d+\.pyc")


def merged(path: str) -> str:
    """Return a path as it is on a system where /bin and the like are links into /usr."""
    return f"/usr{path}" if _MERGED.match(path) else path


class Packages:
    """Which paths packages list, and the MD5 of those that have one."""

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

    def explain(self, path: str, row: Row, rows: Mapping[str, Row]) -> bool:
        """Whether a package brings this path as it is, or its scripts make it."""
        name = merged(path)
        if row.kind == "file":
            return row.md5 in self.md5.get(name, ()) or _is_generated(name) or self._compiled(name, rows)
        if row.kind == "link":
            return name in self.listed or _is_generated(name) or LINKS.fullmatch(row.link) is not None
        if row.kind == "other":
            return row.device is not None and (path, *row.device, row.mode) in NODES
        return True

    def _compiled(self, path: str, rows: Mapping[str, Row]) -> bool:
        """Whether it is byte code of a source that a package brings: packages compile it when they are installed."""
        match = _COMPILED.fullmatch(path)
        if match is None:
            return False
        source = f"{match['folder']}/{match['stem']}.py"
        return source in rows and self.explain(source, rows[source], rows)


def _is_generated(path: str) -> bool:
    return any(pattern.fullmatch(path) for pattern in GENERATED)

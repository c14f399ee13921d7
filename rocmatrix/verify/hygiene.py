"""Files that no image should hold: caches, lists, logs, histories, files open to all, foreign owners, secrets.

The rules follow tests/container/strays.py, which looks from inside a running image; this one needs the files alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from rocmatrix.verify.devicecode.filetree import Entry
from rocmatrix.verify.files.dpkg import NODES
from rocmatrix.verify.finding import Check, Finding

NAME = "hygiene"
EMPTY = ("/tmp/", "/var/tmp/", "/var/log/", "/var/lib/apt/lists/", "/var/cache/apt/", "/run/wheelhouse/")
CACHES = (".cache", "pip-cache", ".npm", ".conda")
HISTORIES = (".bash_history", ".python_history", ".lesshst", ".wget-hsts", ".viminfo")
OPEN_TO_ALL = ("/tmp", "/var/tmp", "/run/lock", "/cache", "/training", "/dev/shm", "/dev/mqueue")  # root's, 1777
DISTRIBUTION = ("/usr/lib/python3", "/usr/share/python")  # Debian's Python: compiled when installed, with pip's wheel
SECRETS = (".netrc", ".pypirc", ".git-credentials", "id_rsa", "id_ed25519", "id_ecdsa", ".npmrc", ".Xauthority")
SECRET_PLACES = re.compile(r"/\.(aws/credentials|docker/config\.json|kube/config|config/gh/hosts\.yml)$")
VENV = "/opt/venv/"
UNCHECKED_HASH = 0b01  # PEP 552: named by its source's hash, never compared with a time stamp
SET_ID, OTHERS_WRITE = 0o6000, 0o002
OPEN_MODE = 0o1777
FIRST_USER = 1000
# Folders of Debian's and Ubuntu's base images with set-group-ID, by path, mode, user and group: what is made in them
# takes the folder's group (50 staff, 8 mail). Programs have neither bit: the recipe takes it from all of the base's.
SET_ID_OF_BASES = {("/var/local", 0o2775, 0, 50), ("/var/mail", 0o2775, 0, 8)}
_LOCAL = re.compile(rb'"url"\s*:\s*"file:')

Rule = Callable[[Entry], bool]


class HygieneScan:
    """Collects, entry by entry, what breaks each rule. `found` has a key for each, also where nothing was found."""

    def __init__(self) -> None:
        self._found: dict[str, list[str]] = {name: [] for name in RULES}

    def look(self, entry: Entry) -> None:
        """Hold one entry against every rule."""
        for name, broken in RULES.items():
            if broken(entry):
                self._found[name].append(entry.path)

    @property
    def found(self) -> dict[str, tuple[str, ...]]:
        """The paths by rule."""
        return {name: tuple(paths) for name, paths in self._found.items()}


def check(violations: dict[str, tuple[str, ...]], *, files: int) -> Check:
    """Turn what was collected over `files` files into findings; no files at all is one too."""
    findings = [Finding(code="RM217", what=rule, places=paths) for rule, paths in violations.items() if paths]
    if not files:
        findings.append(Finding(code="RM221", what="there was no file to look at"))
    return Check(name=NAME, summary=f"{len(RULES)} rules on {files} files", findings=tuple(findings))


def _name(entry: Entry) -> str:
    return entry.path.rpartition("/")[2]


def _left(entry: Entry) -> bool:
    return entry.kind == "file" and entry.path.startswith(EMPTY)


def _wheel(entry: Entry) -> bool:
    return entry.path.endswith(".whl") and not entry.path.startswith(DISTRIBUTION)


def _open_to_all(entry: Entry) -> bool:
    if entry.kind == "link" or not entry.mode & OTHERS_WRITE or _known_node(entry):
        return False
    return entry.path not in OPEN_TO_ALL or (entry.mode, entry.uid, entry.gid) != (OPEN_MODE, 0, 0)


def _set_id(entry: Entry) -> bool:
    if entry.kind == "link" or not entry.mode & SET_ID:
        return False
    return entry.kind != "folder" or (entry.path, entry.mode, entry.uid, entry.gid) not in SET_ID_OF_BASES


def _node(entry: Entry) -> bool:
    """Devices, pipes and sockets, but for what debootstrap makes below /dev."""
    return entry.kind == "other" and not _known_node(entry)


def _known_node(entry: Entry) -> bool:
    return entry.device is not None and (entry.path, *entry.device, entry.mode) in NODES and entry.uid == 0


def _byte_code(entry: Entry) -> bool:
    return _name(entry) == "__pycache__" and not entry.path.startswith((VENV, *DISTRIBUTION))


def _timed(entry: Entry) -> bool:
    if not (entry.path.startswith(VENV) and entry.path.endswith(".pyc")):
        return False
    return int.from_bytes(entry.head[4:8], "little") != UNCHECKED_HASH


def _secret(entry: Entry) -> bool:
    return entry.kind == "file" and (_name(entry) in SECRETS or SECRET_PLACES.search(entry.path) is not None)


def _of_builder(entry: Entry) -> bool:
    """pip notes in direct_url.json where a package was installed from; a folder of the builder reveals its machine."""
    if _name(entry) != "direct_url.json" or entry.kind != "file":
        return False
    with entry.open() as file:
        return _LOCAL.search(file.read()) is not None


RULES: dict[str, Rule] = {
    "files where a build leaves rubbish": _left,
    "a cache": lambda entry: _name(entry) in CACHES,
    "a wheel": _wheel,
    "a history": lambda entry: _name(entry) in HISTORIES,
    "open to all": _open_to_all,
    "set-user-ID or set-group-ID": _set_id,
    "a device, pipe or socket": _node,
    "a file capability or other attribute": lambda entry: bool(entry.attributes),
    "byte code outside the environment": _byte_code,
    "byte code with time stamps": _timed,
    "owned by a user that the image does not know": lambda entry: max(entry.uid, entry.gid) >= FIRST_USER,
    "a secret by its name": _secret,
    "a place on the builder's machine": _of_builder,
}

"""Identity of this host: names of machine and user, and secrets of its environment, which no bundle may contain."""

from __future__ import annotations

import getpass
import os
import pwd
import re
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rocmatrix.runtime.paths import ROOT

# Accounts of installers and images. They name no person, and their letters are in names of distributions and packages.
GENERIC = frozenset(
    ["root", "localhost", "ubuntu", "debian", "fedora", "rocky", "admin", "user", "docker", "runner", "rocm", "amd"]
)
SHORTEST_NAME, SHORTEST_SECRET = 3, 6  # a shorter one is in half of all words
_NAMED = ("USER", "LOGNAME", "SUDO_USER", "USERNAME", "HOSTNAME", "HOST", "SLURMD_NODENAME", "SLURM_JOB_USER")
_SECRET = re.compile(
    r"TOKEN(?!IZER)|SECRET|PASSW|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY|AUTH(?!OR(?!I[ZS]ATION))", re.IGNORECASE
)
_NO_SECRET = frozenset(["SSH_AUTH_SOCK"])  # a path


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Names of the host and its user, values of secret variables, and folders that stand under a short name."""

    names: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    folders: tuple[tuple[str, str], ...] = ()


def here(environment: Mapping[str, str], *, root: Path = ROOT) -> Identity:
    """Return the identity of this machine and this user; longer words first, since one may contain another.

    Args:
        environment: variables of the shell by name.
        root: folder of the checkout.
    """
    home = str(Path(environment.get("HOME") or "/").resolve())
    hosts = [socket.gethostname(), socket.getfqdn()]
    found = {*hosts, *(host.split(".", 1)[0] for host in hosts), _user(), Path(home).name, _person()}
    found |= {domain for host in hosts if "." in (domain := host.partition(".")[2])}
    found |= {environment.get(name, "") for name in _NAMED}
    secrets = {value.strip() for name, value in environment.items() if name not in _NO_SECRET and _SECRET.search(name)}
    folders = {str(root): "<checkout>", home: "<home>"}
    return Identity(
        names=_longest_first(n for n in found if len(n) >= SHORTEST_NAME and n.lower() not in GENERIC),
        secrets=_longest_first(s for s in secrets if len(s) >= SHORTEST_SECRET and not s.isdigit()),
        folders=tuple(pair for pair in sorted(folders.items(), key=lambda p: -len(p[0])) if pair[0] != "/"),
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return ""


def _person() -> str:
    """Return the user's full name, as programs for mail and version control take it from the list of accounts."""
    try:
        full = pwd.getpwuid(os.getuid()).pw_gecos.partition(",")[0].strip()
    except KeyError:
        return ""
    return full if " " in full else ""  # a single word may be an account's purpose


def _longest_first(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(values), key=lambda word: (-len(word), word)))

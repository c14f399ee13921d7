"""The labels that every build writes into an image, and the marks that set an image aside.

They are read from the image, or from a container made of it, and never from the options of the command that runs it.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rocmatrix import __version__
from rocmatrix.host import simulated

if TYPE_CHECKING:
    from rocmatrix.matrix.cells.cell import Base

INPUTS = "org.rocmatrix.inputs"
FORCED = "org.rocmatrix.forced"
BASE = "org.rocmatrix.base"
BASE_ID = "org.rocmatrix.base.id"
LOCK = "org.rocmatrix.lock"
STAND_IN = "org.rocmatrix.stand-in"
SIMULATED = "org.rocmatrix.simulated"
NIGHT = "org.rocmatrix.night"
UNLOCKED = "unlocked"
STAND_IN_VARIABLE = "ROCMATRIX_STAND_IN"  # says in words what stands in for something real
# Keys of the OCI image specification (annotations.md). They name a build's origin, which is no input of the image.
DESCRIBING = SOURCE, REVISION, VERSION, BASE_NAME, BASE_DIGEST = tuple(
    f"org.opencontainers.image.{name}" for name in ("source", "revision", "version", "base.name", "base.digest")
)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_SSH = re.compile(r"(?:(?P<user>[\w.-]+)@)?(?P<host>[\w.-]{2,}):/?(?P<path>[^/\\@][^@]*)")  # git@host:owner/name
# What is before the last @ may hold a password, and a password any sign: what does not end in a host alone is no URL.
_URL = re.compile(r"(?P<scheme>https?|ssh|git)://(?:[^/]*@)?(?P<rest>(?:[\w.-]+|\[[0-9a-fA-F:.]+\])(?::\d+)?/[^?#@]*)")


@dataclass(frozen=True, kw_only=True)
class OtherBase:
    """A base in place of the cell's own, by its name, and its id where the engine was asked: a tag may move.

    `describes`: labels that it has, or may have where the engine has lost it.
    """

    name: str
    id: str | None = None
    describes: frozenset[str] = frozenset()

    @property
    def counted(self) -> str:
        """What stands for it in the hash of an image's inputs."""
        return self.id or self.name


def written(
    *, inputs: str, base: str | None = None, base_id: str | None = None, forced: Sequence[str] = ()
) -> dict[str, str]:
    """Return the labels of a build, without those that would be empty. `base` and its id are another base's.

    Args:
        inputs: input hash of the image.
        base: reference of another base; None for the cell's own.
        base_id: id of that base.
        forced: ids of the rules that were overridden.
    """
    stand_in = os.environ.get(STAND_IN_VARIABLE, "").replace("\n", " ")
    found = {INPUTS: inputs, FORCED: ",".join(forced), BASE: base, BASE_ID: base_id, STAND_IN: stand_in}
    found[SIMULATED] = "yes" if simulated.root() else None
    return {name: value for name, value in found.items() if value}


def of_build(inputs: str, *, other: OtherBase | None = None, forced: Sequence[str] = ()) -> dict[str, str]:
    """Return the labels of a build on `other`, None for the cell's own base.

    Args:
        inputs: input hash of the image.
        other: base in place of the cell's own; None for that.
        forced: ids of the rules that were overridden.
    """
    base, base_id = (other.name, other.id) if other else (None, None)
    return written(inputs=inputs, base=base, base_id=base_id, forced=forced)


def describing(base: Base, root: Path, other: OtherBase | None = None) -> dict[str, str]:
    """Return OCI's labels on where a build comes from; what is not known is left out.

    A label that is not known here and that the other base carries is written empty: inherited, it would be taken for
    the image's own.

    Args:
        base: the cell's own base.
        root: folder of the checkout.
        other: base in place of the cell's own; None for that.
    """
    name, _, digest = (other.name if other else base.image).partition("@")
    found = {
        SOURCE: source(root),
        REVISION: revision(root),
        VERSION: __version__,
        BASE_NAME: name,
        BASE_DIGEST: digest if _DIGEST.fullmatch(digest) else None if other else base.digest,
    }
    inherited = other.describes if other else frozenset()
    return {key: value or "" for key, value in found.items() if value or key in inherited}


def source(root: Path) -> str | None:
    """Return the URL of the checkout's remote `origin`, without a password; None for none that others can reach.

    Args:
        root: folder of the checkout.
    """
    remote = _git(root, "remote", "get-url", "origin")
    if not remote:
        return None
    if found := _URL.fullmatch(remote):
        return f"{found['scheme']}://{found['rest']}"
    if found := _SSH.fullmatch(remote):
        return f"ssh://{found['user'] + '@' if found['user'] else ''}{found['host']}/{found['path']}"
    return None


def revision(root: Path) -> str | None:
    """Return the checkout's commit, with `-dirty` where files differ from it or are not in it; None where unknown.

    Args:
        root: folder of the checkout.
    """
    commit = _git(root, "rev-parse", "--verify", "HEAD")
    changed = _git(root, "status", "--porcelain") if commit else None
    if changed is None:
        return None
    return f"{commit}-dirty" if changed else commit


def _git(root: Path, *words: str) -> str | None:
    """Return git's answer on `root` itself; None where git fails, is not there, or finds a repository around it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment["GIT_CEILING_DIRECTORIES"] = str(root.resolve().parent)
    argv = ["git", "--no-optional-locks", "-C", str(root), *words]
    try:
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def marks(labels: Mapping[str, str], *, own_digest: str | None) -> dict[str, bool]:
    """Return what an image with these labels is set aside for. `own_digest` is that of the cell's own base.

    The same base from a mirror is no other base.
    """
    base = labels.get(BASE)
    return {
        "stand-in": bool(labels.get(STAND_IN)),
        "simulated": bool(labels.get(SIMULATED)),
        "other-base": bool(base) and not is_own(str(base), own_digest),
        "unlocked": labels.get(LOCK) == UNLOCKED,
        "forced": bool(labels.get(FORCED)),
    }


def is_own(base: str, digest: str | None) -> bool:
    """Return whether a base that is named by its digest is the one of `digest`."""
    return digest is not None and base.endswith(f"@{digest}")

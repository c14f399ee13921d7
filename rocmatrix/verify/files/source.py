"""The trainer in an image against this checkout's: the same files, byte for byte."""

from __future__ import annotations

from pathlib import Path

from rocmatrix.images.build import trainer_files
from rocmatrix.images.wheelhouse import sha256
from rocmatrix.verify.files.tree import TRAINER, Row, Tree, parents
from rocmatrix.verify.finding import Check, Finding

NAME = "trainer"
CODE = "RM661"
ABUSED = 0o7002  # others may write, or special bits; a checkout may well be open to its group


def check(tree: Tree, root: Path) -> Check:
    """Compare with the trainer of the checkout `root`. Modes are the checkout's, so any will do that none can abuse."""
    own = {f"{TRAINER}/{name}": bytes.fromhex(sha256(path)) for name, path in trainer_files(root)}
    rows = tree.below(TRAINER)
    kinds = {
        "of other bytes than the checkout's": [p for p in own.keys() & rows.keys() if _content(rows[p]) != own[p]],
        "missing": own.keys() - rows.keys(),
        "not in the checkout": _strays(rows, set(own)),
        "of another owner, or open to others": [f"{p} ({_about(row)})" for p, row in rows.items() if _abused(row)],
    }
    findings = [Finding(code=CODE, what=what, places=tuple(sorted(places))) for what, places in kinds.items() if places]
    if not own:
        findings.append(Finding(code=CODE, what=f"there is no trainer in {root} to compare with"))
    return Check(name=NAME, summary=f"{len(own)} files of {root / 'trainer'}", findings=tuple(findings))


def _content(row: Row) -> bytes | None:
    return row.sha256 if row.kind == "file" else None


def _strays(rows: dict[str, Row], own: set[str]) -> list[str]:
    folders = parents(own, TRAINER)
    return [p for p, row in rows.items() if p not in own and not (row.kind == "folder" and p in folders)]


def _about(row: Row) -> str:
    return " ".join([f"{row.mode:o} {row.uid}:{row.gid}", *row.attributes])


def _abused(row: Row) -> bool:
    return row.kind != "link" and bool(row.mode & ABUSED or row.uid or row.gid or row.attributes)

"""What doctor found on the machine of a log: which checks failed or warn, and its cards. Of this machine or a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rocmatrix.diagnosis.machine import host_values
from rocmatrix.runtime.errors import RocmatrixError


@dataclass(frozen=True, kw_only=True)
class HostReport:
    """Ids of the checks that failed and of those that warn, the architectures of the machine's cards, and its values.

    `values` are texts by the names of comparisons.
    """

    failed: frozenset[str] = frozenset()
    warned: frozenset[str] = frozenset()
    architectures: tuple[str, ...] = ()
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def of(described: Mapping[str, Any]) -> HostReport:
    """Return what an examination, as plain data, found.

    Args:
        described: what `./invokew doctor --json` prints.
    """
    checks = [(str(row["code"]), row["status"]) for row in described["checks"]]
    cards = [card.get("architecture") for card in described.get("inventory", {}).get("cards", ())]
    return HostReport(
        failed=frozenset(code for code, status in checks if status == "error"),
        warned=frozenset(code for code, status in checks if status == "warning"),
        architectures=tuple(dict.fromkeys(name for name in cards if name)),
        values=host_values.of_inventory(described.get("inventory", {})),
    )


def read(path: Path) -> HostReport:
    """Read a file of `./invokew doctor --json`. Raises RM686 for anything else, and for a file that cannot be read."""
    try:
        return of(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RocmatrixError("RM686", what=f"{type(error).__name__}: {error}", where=str(path)) from None

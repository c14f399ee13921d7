"""A guest of Proxmox VE as its file states it: settings with their lines, and the words that name it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rocmatrix.doctor.environment.lint_input import FileFinding
from rocmatrix.doctor.environment.rules import Severity

_ROW = re.compile(r"^(?P<key>[a-z][\w.-]*)\s*[:=]\s*(?P<value>.*?)(?:\s+#.*)?\s*$")  # pages put comments behind
_NAMES = ("hostname", "name", "tags", "description")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One line: its key, its value, and its place in the file."""

    key: str
    value: str
    where: str

    @property
    def first(self) -> str:
        """What stands before the options: a node, an address."""
        return "" if "=" in (head := self.value.partition(",")[0]) else head

    @property
    def options(self) -> dict[str, str]:
        """The options behind commas, by name."""
        pairs = (part.partition("=") for part in self.value.split(","))
        return {name.strip(): value.strip() for name, sign, value in pairs if sign}

    def found(self, rule: str, severity: Severity, truth: str, instead: str) -> FileFinding:
        """Return a finding on this line.

        Args:
            rule: its name.
            truth: what happens.
            instead: what to write.
        """
        return FileFinding(
            rule=rule, where=self.where, what=f"{self.key}: {self.value}", severity=severity, truth=truth,
            instead=instead,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Guest:
    """A container or a virtual machine, as it is now; what snapshots hold is left out. `comments` are its notes."""

    settings: tuple[Setting, ...]
    comments: str

    def of(self, key: str) -> Iterator[Setting]:
        """Yield the settings whose key is `key` or, where it ends with a #, has a number there."""
        pattern = re.compile(re.escape(key).replace(r"\#", r"\d+") + "$")
        return (one for one in self.settings if pattern.match(one.key))

    def value(self, key: str) -> str:
        """Return a setting's value; none where it is not set."""
        return next((one.value for one in self.of(key)), "")

    @property
    def named(self) -> str:
        """The words that a person chose for it, in small letters."""
        return " ".join((*(one.value for key in _NAMES for one in self.of(key)), self.comments)).lower()


def read(text: str, path: Path) -> Guest:
    """Return the guest of a file's text.

    Args:
        text: the whole file.
        path: the file, for places.
    """
    now = re.split(r"^\[", text, maxsplit=1, flags=re.MULTILINE)[0]  # sections are snapshots and pending changes
    rows = list(enumerate(now.splitlines(), 1))
    settings = tuple(
        Setting(key=match["key"], value=match["value"], where=f"{path}:{number}")
        for number, row in rows
        if (match := _ROW.match(row))
    )
    return Guest(settings=settings, comments="\n".join(row for _, row in rows if row.startswith("#")))

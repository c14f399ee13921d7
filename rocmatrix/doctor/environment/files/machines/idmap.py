"""Maps of user and group numbers (lxc.idmap) of a container of Proxmox VE."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from rocmatrix.doctor.environment.files.machines.guest import Guest, Setting
from rocmatrix.doctor.environment.lint_input import FileFinding

_FIRST_MAPPED = 100000  # of the host's numbers, those from here on are a container's own


def findings(guest: Guest) -> Iterator[FileFinding]:
    """Yield maps that overlap, and groups that are mapped without users."""
    rows = list(_ranges(guest))
    for kind in "ug":
        of_kind = sorted(
            ((first, count, row) for name, first, _, count, row in rows if name == kind), key=lambda one: one[:2]
        )
        for (first, count, _), (after, _, row) in pairwise(of_kind):
            if after < first + count:
                yield row.found(
                    "idmap-overlaps", "error",
                    f"number {after} is mapped already, from {first} on {count} are, and the container does not start",
                    "each number once: a range ends where the next begins",
                )  # fmt: skip
    kinds = {name for name, *_ in rows}
    if kinds == {"g"}:
        yield rows[0][4].found(
            "idmap-without-users", "error",
            "own lines of lxc.idmap replace all of Proxmox's, and no user is mapped: the container does not start",
            "lxc.idmap: u 0 100000 65536",
        )  # fmt: skip


def maps_groups(guest: Guest) -> bool:
    """Return whether a group of the host itself, such as render, is one of the container's."""
    return any(name == "g" and host < _FIRST_MAPPED for name, _, host, _, _ in _ranges(guest))


def _ranges(guest: Guest) -> Iterator[tuple[str, int, int, int, Setting]]:
    """Yield kind, first number in the container, first on the host, count, and the line."""
    for row in guest.of("lxc.idmap"):
        words = row.value.split()
        if len(words) == 4 and words[0] in ("u", "g") and all(word.isdecimal() for word in words[1:]):
            yield words[0], int(words[1]), int(words[2]), int(words[3]), row

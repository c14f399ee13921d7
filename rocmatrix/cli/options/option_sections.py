"""The options of a task in sections: the common ones first, the rest on demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Option = tuple[str, str]  # an option as it is typed, and its text
HOST = "Image and machine"
FURTHER = "FURTHER OPTIONS"


def sections(
    options: Mapping[str, Option], described: Mapping[str, Mapping[str, Any]], *, everything: bool
) -> list[tuple[str, list[Option]]]:
    """Return titles and their options: the common ones, then the host's, then with `everything` all others.

    Args:
        options: an option and its text, by name with underscores.
        described: the trainer's options by name, in its own order, with `section` and `common`.
        everything: whether those that are not common are listed, too.
    """
    all_common = not any(each.get("common") for each in described.values())
    common = {name: each for name, each in described.items() if all_common or each.get("common")}
    rest = {name: each for name, each in described.items() if name not in common}
    host = [options[name] for name in sorted(options) if name not in described]
    found = [*_titled(options, common), (HOST, host)]
    return [*found, (FURTHER, []), *_titled(options, rest)] if everything and rest else found


def _titled(
    options: Mapping[str, Option], described: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, list[Option]]]:
    for title in dict.fromkeys(each["section"] for each in described.values()):
        chosen = [options[name] for name, each in described.items() if each["section"] == title and name in options]
        yield title, chosen


def further(described: Mapping[str, Mapping[str, Any]]) -> int:
    """Return how many options are listed only on demand."""
    common = [each for each in described.values() if each.get("common")]
    return len(described) - len(common) if common else 0

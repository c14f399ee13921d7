"""The options of a task in sections: those that most need first, the type of each value, the rest on demand."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

Option = tuple[str, str]  # the ways to write an option, with commas between, and its text
HOST = "Image and machine"
FURTHER = "FURTHER: "
# What stands for the value of an option that is declared on the host; those of the trainer bring their own.
TYPES = {
    "base": "IMAGE",
    "cards": "INT,...",
    "cell": "NAME",
    "code": "PATH",
    "data": "PATH",
    "env": "NAME[=VALUE]",
    "env_file": "PATH",
    "every": "SECONDS",
    "evidence": "PATH",
    "gpu": "GPU",
    "in": "{container,native,auto}",
    "port": "[HOST:]PORT",
    "probe": "NAME",
    "python": "VERSION",
    "rocm": "VERSION",
    "torch": "VERSION",
    "wheelhouse": "PATH",
    "with": "NAME,...",
    "with_requirements": "PATH",
}


def with_types(
    options: Sequence[Option], described: Mapping[str, Mapping[str, Any]], *, bare: Collection[str] = ()
) -> list[Option]:
    """Return the options with the type of their value in place of STRING, where it is known.

    Args:
        options: pairs of names and text.
        described: what the trainer states about its options, by name with underscores.
        bare: names, with underscores, of the options whose value invoke does not show: lists and floats.
    """
    return [(_typed(names, described, bare), text) for names, text in options]


def _typed(names: str, described: Mapping[str, Mapping[str, Any]], bare: Collection[str]) -> str:
    name = name_of(names)
    names = f"{names}=STRING" if name in bare else names
    known = described[name].get("type", "") if name in described else TYPES.get(name, "")
    return names.replace("=STRING", f"={known}") if known else names


def name_of(names: str) -> str:
    """Return an option's name with underscores."""
    found = re.search(r"--([\w-]+)", names)
    return found[1].replace("-", "_") if found else names


def sections(
    options: Sequence[Option], described: Mapping[str, Mapping[str, Any]], *, everything: bool
) -> list[tuple[str, list[Option]]]:
    """Return titles and their options: the common ones, then the host's, then with `everything` all others.

    Args:
        options: pairs of names and text.
        described: the trainer's options by name, in its own order, with `section` and `common`.
        everything: whether those that are not common are listed, too.
    """
    by_name = {name_of(names): (names, text) for names, text in options}
    all_common = not any(each.get("common") for each in described.values())
    common = {name: each for name, each in described.items() if all_common or each.get("common")}
    rest = {name: each for name, each in described.items() if name not in common}
    host = [option for name, option in by_name.items() if name not in described]
    found = [*_titled(by_name, common, ""), (HOST, host)]
    return [*found, *_titled(by_name, rest, FURTHER)] if everything else found


def _titled(
    options: Mapping[str, Option], described: Mapping[str, Mapping[str, Any]], before: str
) -> Iterator[tuple[str, list[Option]]]:
    for title in dict.fromkeys(each["section"] for each in described.values()):
        chosen = [options[name] for name, each in described.items() if each["section"] == title and name in options]
        yield f"{before}{title}", chosen


def further(described: Mapping[str, Mapping[str, Any]]) -> int:
    """Return how many options are listed only on demand."""
    common = [each for each in described.values() if each.get("common")]
    return len(described) - len(common) if common else 0

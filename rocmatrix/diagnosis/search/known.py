"""What is derived from each pattern of the signatures, read from a generated file in place of parsing them anew.

The file names the sources that derived it: where one of them changed since, nothing of it is used.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

FILE = "rocmatrix/diagnosis/search/known.json"
Derived = tuple[int, int, list[str]]  # width, weight, literals


def key(text: str) -> str:
    """Return what stands for a pattern's text in the file."""
    return hashlib.blake2s(text.encode(), digest_size=8).hexdigest()


@cache
def derived(parser: str) -> Mapping[str, Derived]:
    """Return what is known of each pattern, by its key; nothing where the file is missing, damaged or out of date.

    Args:
        parser: path of the module that parses patterns; the one of literals stands next to this one.
    """
    try:
        made = json.loads(Path(__file__).with_name("known.json").read_text(encoding="utf-8"))
        current = made["sources"] == sources(parser)
        return {name: (width, weight, fixed) for name, (width, weight, *fixed) in made["patterns"].items() if current}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def sources(parser: str) -> str:
    """Return the hash of the modules that derive."""
    here = Path(__file__)
    read = (Path(parser), here, here.with_name("literals.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in read)).hexdigest()


def text(parser: str, rows: Iterable[tuple[str, Derived]]) -> str:
    """Return the file's text: a line for each pattern.

    Args:
        parser: as in `derived`.
        rows: text of each pattern with what is derived from it.
    """
    found = {key(pattern): [width, weight, *fixed] for pattern, (width, weight, fixed) in rows}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(found[name])}" for name in sorted(found))
    return f'{{"sources": "{sources(parser)}", "patterns": {{\n{lines}\n}}}}\n'

"""Names between commas, as flags and recipes have them; one that holds a comma itself stands in double quotes."""

from __future__ import annotations

import csv
import io
import shlex
from argparse import ArgumentTypeError
from collections.abc import Iterable


def read_names(text: str) -> tuple[str, ...]:
    """Return the names of a list, as in `a,"Price, USD",b`; blanks around them are left out.

    Raises:
        ArgumentTypeError: where the text is no such list.
    """
    try:
        parts = next(csv.reader([text], skipinitialspace=True), [])
    except csv.Error:
        what = f"{text!r} is no list of names between commas; one that holds a line end stands in double quotes"
        raise ArgumentTypeError(what) from None
    return tuple(part.strip() for part in parts if part.strip())


def written(values: Iterable[object]) -> str:
    """Return a list as `read_names` reads it."""
    text = io.StringIO()
    csv.writer(text).writerow(list(values))
    return text.getvalue().removesuffix("\r\n")


def as_word(names: Iterable[str]) -> str:
    """Return a list of names as one word of a shell's command, for advice that can be pasted behind its flag."""
    text = written(names)
    return shlex.quote("," * text.startswith("-") + text)  # a value that begins with a dash would be taken for a flag

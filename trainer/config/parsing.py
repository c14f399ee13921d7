"""Readers of settings: from the text of a flag or a recipe to a value, with the word that stands for it in help."""

from __future__ import annotations

import json
import math
import re
from argparse import Action, ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.config.choices import COLUMN_ROLES
from trainer.config.name_list import as_word, read_names


class Store(Action):
    """Store a flag's value; refuse a second list of names that differs, since argparse would drop the first.

    Names are meant together (`--ignore a --ignore b`); of numbers, as of a network's widths, the last one counts.
    """

    def __call__(self, parser: ArgumentParser, found: Any, values: Any, flag: str | None = None) -> None:
        """Set the value, and end with the parser's error for a second list."""
        before = vars(found).get(self.dest, self.default)
        if flag and before not in (self.default, values) and _are_names(before) and _are_names(values):
            once = as_word(dict.fromkeys((*before, *values)))
            parser.error(f"{flag} is given twice; give it once, with commas: {flag} {once}")
        setattr(found, self.dest, values)


def _are_names(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and all(isinstance(each, str) for each in value)


def given_twice(words: Sequence[str], known: Collection[str]) -> list[str]:
    """Return a sentence for each flag that is given again with another value, of which the last one counts.

    Args:
        words: a command line, without its command.
        known: flags that take one value.
    """
    values: dict[str, list[str]] = {}
    for place, word in enumerate(words):
        flag, equals, value = word.partition("=")
        if flag in known:
            follows = words[place + 1 : place + 2]
            values.setdefault(flag, []).append(value if equals else (follows[0] if follows else ""))
    return [
        f"{flag} is given {len(found)} times, and the last one counts: {found[-1]}"
        for flag, found in values.items()
        if len(set(found)) > 1
    ]


@dataclass(frozen=True)
class Reader:
    """Reads one value; `metavar` is what help shows for it: INT, FLOAT, PATH, TEXT, or the choices in braces.

    Calling it raises ArgumentTypeError for text that it does not take.
    """

    parse: Callable[[str], Any]
    metavar: str

    def __call__(self, text: str) -> Any:
        """Return the value of a text."""
        return self.parse(text)


text, path = Reader(str, "TEXT"), Reader(Path, "PATH")


def whole(least: int, most: float = math.inf) -> Reader:
    """Return a reader of whole numbers within the limits."""

    def parse(text: str) -> int:
        if re.fullmatch(r"\d+", text) and least <= int(text) <= most:
            return int(text)
        limit = f"{least} to {most}" if most < math.inf else f"{least} or more"
        raise ArgumentTypeError(f"{text!r} is not a whole number, {limit}")

    return Reader(parse, "INT")


def number(most: float) -> Reader:
    """Return a reader of numbers above 0, at most `most`."""

    def parse(text: str) -> float:
        value = _float(text)
        if 0 < value <= most:
            return value
        raise ArgumentTypeError(f"{text!r} is not a number above 0, at most {most:g}")

    return Reader(parse, "FLOAT")


def zero_or_more(most: float) -> Reader:
    """Return a reader of numbers of 0 or more, at most `most`."""

    def parse(text: str) -> float:
        value = _float(text)
        if 0 <= value <= most:
            return value
        raise ArgumentTypeError(f"{text!r} is not a number of 0 or more, at most {most:g}")

    return Reader(parse, "FLOAT")


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _share(text: str) -> float:
    value: float = zero_or_more(1)(text)
    if value == 1:
        raise ArgumentTypeError(f"{text!r} is not a number of 0 or more, below 1")
    return value


share = Reader(_share, "FLOAT")
"""Reads a share, 0 or more and below 1."""


def one_of(*words: str, also: Mapping[str, str] | None = None, absent: Mapping[str, str] | None = None) -> Reader:
    """Return a reader that takes one of `words`.

    Args:
        words: those that are taken.
        also: what other programs call one of them, in lower case, by that name.
        absent: what is not here, in lower case, with what to do instead.
    """
    others, why = also or {}, absent or {}

    def parse(text: str) -> str:
        if text in words:
            return text
        if text.lower() in others:
            return others[text.lower()]
        instead = f": {why[text.lower()]}" if text.lower() in why else ""
        raise ArgumentTypeError(f"{text!r} is none of {', '.join(words)}{instead}")

    return Reader(parse, "{" + ",".join(words) + "}")


def some_of(*known: str) -> Reader:
    """Return a reader of words between commas, each one of `known`."""

    def parse(text: str) -> tuple[str, ...]:
        found = tuple(dict.fromkeys(_parts(text)))
        for name in found:
            if name not in known:
                raise ArgumentTypeError(f"{name!r} is not one of {', '.join(known)}")
        return found

    return Reader(parse, "{" + ",".join(known) + "}" + (",..." if len(known) > 1 else ""))


def or_auto(read: Reader) -> Reader:
    """Return a reader that takes `auto` as None, and hands the rest to `read`."""
    return _or("auto", read)


def or_none(read: Reader) -> Reader:
    """Return a reader that takes `none` as None, and hands the rest to `read`."""
    return _or("none", read)


def _or(word: str, read: Reader) -> Reader:
    return Reader(lambda text: None if text == word else read(text), f"{read.metavar}|{word}")


def _switch(text: str) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if text.lower() not in words:
        raise ArgumentTypeError(f"{text!r} is not true or false")
    return words[text.lower()]


switch = Reader(_switch, "true|false")
"""Reads true or false; a flag without a value is true."""


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _callbacks(given: str) -> tuple[str, ...]:
    return () if given == "none" else _parts(given)


callbacks = Reader(_callbacks, "FILE.py:CLASS,...")
"""Reads places of callbacks, FILE.py:Class or module:Class, between commas; or none."""
names = Reader(read_names, "NAME,...")
"""Reads names between commas; one that holds a comma stands in double quotes."""


def _renames(text: str) -> tuple[str, ...]:
    given: tuple[str, ...] = read_names(text)
    pairs = [each.split("=") for each in given]
    if not all(len(pair) == 2 and all(pair) for pair in pairs):
        raise ArgumentTypeError(f"{text!r}: give OLD=NEW, several between commas, as question=instruction")
    if any(len({pair[side] for pair in pairs}) < len(pairs) for side in (0, 1)):
        raise ArgumentTypeError(f"{text!r}: a name is there twice")
    return given


renames = Reader(_renames, "OLD=NEW,...")
"""Reads pairs of names, each name once on its side."""


def widths_of(least: int, most: int, layers: int) -> Reader:
    """Return a reader of at most `layers` widths between commas, or none.

    Args:
        least: smallest accepted width.
        most: largest accepted width.
        layers: most widths.
    """
    width = whole(least, most)

    def parse(text: str) -> tuple[int, ...]:
        if text == "none":
            return ()
        read = tuple(width(part.strip()) for part in text.split(","))
        if len(read) > layers:
            raise ArgumentTypeError(f"{len(read)} hidden layers is not {layers} or fewer")
        return read

    return Reader(parse, "INT,...|none")


def _column_roles(text: str) -> tuple[str, ...]:
    entries = _parts(text)
    roles = [entry.partition("=")[0] for entry in entries]
    if all("=" in entry[:-1] for entry in entries) and set(roles) <= set(COLUMN_ROLES):
        if len(set(roles)) == len(roles):
            return entries
        raise ArgumentTypeError(f"{text!r} names one role twice")
    raise ArgumentTypeError(f"{text!r} is not such as date=NAME,close=NAME, with roles of {', '.join(COLUMN_ROLES)}")


column_roles = Reader(_column_roles, "ROLE=NAME,...")
"""Reads date=NAME,close=NAME as one entry a role."""


def _session_hours(text: str) -> str:
    if re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d-(([01]\d|2[0-3]):[0-5]\d|24:00)", text):
        return text
    raise ArgumentTypeError(f"{text!r} is no session such as 09:30-16:00")


session_hours = Reader(_session_hours, "HH:MM-HH:MM")
"""Reads hours such as 09:30-16:00."""


def _run_name(text: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9][\w.-]{0,99}", text, re.ASCII):
        return text
    raise ArgumentTypeError(f"{text!r} is no run name: letters, digits, '.', '_' and '-', at most 100")


run_name = Reader(_run_name, "NAME")
"""Reads the name of a run."""


def _seconds(text: str) -> float | str | None:
    words: dict[str, str | None] = {"auto": "auto", "off": None}
    return words[text] if text in words else number(1e6)(text)


seconds_or_word = Reader(_seconds, "SECONDS|auto|off")
"""Reads seconds, auto, or off as None."""


def _ranks(text: str) -> int | str:
    return text if text == "auto" else int(whole(1, 1024)(text))


ranks_or_auto = Reader(_ranks, "INT|auto")
"""Reads a number of ranks, or auto."""


def _json_object(text: str) -> str:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if isinstance(value, dict):
        return text
    raise ArgumentTypeError(f"{text[:40]!r} is no JSON object")


json_object = Reader(_json_object, "JSON")
"""Reads a JSON object, and keeps its text."""

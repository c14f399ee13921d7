"""What the command line says about a setting, and how it reads it."""

from __future__ import annotations

import math
import re
from argparse import ArgumentTypeError
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Flag:
    """What the command line says about a field, and how it reads it; `parse` raises ArgumentTypeError.

    `section` is the field's place in a recipe and in `--set section.name=value`. A `sparse` field is recorded only
    where it is not the default.
    """

    help: str
    parse: Callable[[str], Any] = str
    section: str = "train"
    sparse: bool = False


def whole(least: int, most: float = math.inf) -> Callable[[str], int]:
    """Return a reader of whole numbers within the limits."""

    def parse(text: str) -> int:
        if re.fullmatch(r"\d+", text) and least <= int(text) <= most:
            return int(text)
        limit = f"{least} to {most}" if most < math.inf else f"{least} or more"
        raise ArgumentTypeError(f"{text!r} is not a whole number, {limit}")

    return parse


def number(most: float) -> Callable[[str], float]:
    """Return a reader of numbers above 0, at most `most`."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if 0 < value <= most:
            return value
        raise ArgumentTypeError(f"{text!r} is not a number above 0, at most {most:g}")

    return parse


def one_of(*words: str) -> Callable[[str], str]:
    """Return a reader that takes one of `words`."""

    def parse(text: str) -> str:
        if text in words:
            return text
        raise ArgumentTypeError(f"{text!r} is none of {', '.join(words)}")

    return parse


def or_auto(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a reader that takes `auto` as None, and hands the rest to `read`."""
    return lambda text: None if text == "auto" else read(text)


ROLES = ("date", "time", "open", "high", "low", "close", "volume", "vix_close")


def column_roles(text: str) -> tuple[str, ...]:
    """Read date=NAME,close=NAME as one entry a role; raises ArgumentTypeError."""
    entries = tuple(entry.strip() for entry in text.split(",") if entry.strip())
    roles = [entry.partition("=")[0] for entry in entries]
    if all("=" in entry[:-1] for entry in entries) and set(roles) <= set(ROLES):
        if len(set(roles)) == len(roles):
            return entries
        raise ArgumentTypeError(f"{text!r} names one role twice")
    raise ArgumentTypeError(f"{text!r} is not such as date=NAME,close=NAME, with roles of {', '.join(ROLES)}")


def or_none(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a reader that takes `none` as None, and hands the rest to `read`."""
    return lambda text: None if text == "none" else read(text)


def session_hours(text: str) -> str:
    """Read hours such as 09:30-16:00; raises ArgumentTypeError."""
    if re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d-(([01]\d|2[0-3]):[0-5]\d|24:00)", text):
        return text
    raise ArgumentTypeError(f"{text!r} is no session such as 09:30-16:00")


def switch(text: str) -> bool:
    """Read true or false; raises ArgumentTypeError."""
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if text.lower() not in words:
        raise ArgumentTypeError(f"{text!r} is not true or false")
    return words[text.lower()]


def names(text: str) -> tuple[str, ...]:
    """Read names between commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def share(text: str) -> float:
    """Read a share, 0 or more and below 1; raises ArgumentTypeError."""
    value = zero_or_more(1)(text)
    if value == 1:
        raise ArgumentTypeError(f"{text!r} is not a number of 0 or more, below 1")
    return value


def zero_or_more(most: float) -> Callable[[str], float]:
    """Return a reader of numbers of 0 or more, at most `most`."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if 0 <= value <= most:
            return value
        raise ArgumentTypeError(f"{text!r} is not a number of 0 or more, at most {most:g}")

    return parse

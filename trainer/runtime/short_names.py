"""Names of any length as people read them: shortened in the middle, where names that begin alike still differ."""

from __future__ import annotations

from collections.abc import Sequence

MOST = 40  # characters of a name on a terminal


def shortened(name: str, most: int = MOST) -> str:
    """Return a name of at most `most` characters: its beginning and its end, an ellipsis between them.

    Args:
        name: any text; ends of lines within it become blanks.
        most: characters, 3 or more.
    """
    plain = " ".join(name.split()) if any(each.isspace() and each != " " for each in name) else name
    if len(plain) <= most:
        return plain
    front = most // 2
    return f"{plain[:front]}…{plain[len(plain) - (most - front - 1) :]}"


def shortened_apart(names: Sequence[str], most: int = MOST) -> list[str]:
    """Return names shortened; those that would read alike have their number behind them.

    Args:
        names: as they are.
        most: characters of one without its number.
    """
    short = [shortened(name, most) for name in names]
    return [f"{name} #{place}" if short.count(name) > 1 else name for place, name in enumerate(short, 1)]

"""Names of environment variables as people mistype them: the one that is meant, among those that programs read."""

from __future__ import annotations

from collections.abc import Iterable

from rocmatrix.runtime.errors import nearest

_SHORTEST = 8  # letters of a name that is judged; among shorter ones another letter is another word
_SHORT_WORD = 4  # letters; HIP and HPU are two words, HIP and HPI one that is mistyped
_MOST_EDITS = 2
_LEAST_WORDS = 3  # a name that lacks one word has as many left: VISIBLE_DEVICES may be anything


def intended(name: str, known: Iterable[str]) -> list[str]:
    """Return up to three of `known` that a name is mistyped for, the nearest first; none where it is one of them.

    A name is mistyped where at most two letters are missing, too many, others or exchanged, where its words stand in
    another order, or where one of them is missing behind the first. A name with another first letter or other digits
    is another one.

    Args:
        name: the variable as it is set.
        known: names that programs read.
    """
    names = frozenset(known)
    if name in names or len(name) < _SHORTEST:
        return []
    return nearest(name, [one for one in names if _mistyped(name, one) or _in_other_words(name, one)])


def _mistyped(name: str, right: str) -> bool:
    """Return whether a slip of the hand makes one name the other, in each word where they have as many."""
    another = name[0] != right[0] or _digits(name) != _digits(right)  # NCCL and UCCL, as devices 0 and 1, are two
    if another or edits(name, right) > _MOST_EDITS:
        return False
    pairs = list(zip(name.split("_"), right.split("_"), strict=False))
    return name.count("_") != right.count("_") or all(_one_word(*pair) for pair in pairs)


def _one_word(word: str, right: str) -> bool:
    """Return whether two words are one: a short one has a slip at most, or a longer ending."""
    return edits(word, right) <= (1 if len(right) <= _SHORT_WORD else _MOST_EDITS) or word.startswith(right)


def _in_other_words(name: str, right: str) -> bool:
    words, expected = name.split("_"), right.split("_")
    if words[0] != expected[0]:
        return False
    lacks_one = len(words) == len(expected) - 1 and len(words) >= _LEAST_WORDS and _in_order(words, expected)
    return lacks_one or (sorted(words) == sorted(expected))


def _in_order(words: list[str], of: list[str]) -> bool:
    rest = iter(of)
    return all(word in rest for word in words)


def _digits(name: str) -> str:
    return "".join(letter for letter in name if letter.isdigit())


def edits(one: str, other: str) -> int:
    """Return how many letters must be put in, left out, changed or exchanged with the next to make one text the other.

    Three stands for any number above two, as no caller needs more. The distance is that of optimal string
    alignment (Damerau 1964), by rows.

    Args:
        one: a text.
        other: the text to compare it with.
    """
    if abs(len(one) - len(other)) > _MOST_EDITS:
        return _MOST_EDITS + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        older, before, row = before, row, [at]
        for place, of in enumerate(other, 1):
            cost = min(before[place] + 1, row[-1] + 1, before[place - 1] + (letter != of))
            if at > 1 and place > 1 and letter == other[place - 2] and one[at - 2] == of:
                cost = min(cost, older[place - 2] + 1)
            row.append(cost)
        if min(row) > _MOST_EDITS:
            return _MOST_EDITS + 1
    return row[-1]

"""From the words of one part of a name to the models in it, and to the words that no model explains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import takewhile

from rocmatrix.matrix.architecture import Architecture
from rocmatrix.matrix.naming.text import Word, core_of, plain, words_of
from rocmatrix.matrix.naming.vocabulary import (
    CLASS,
    LAPTOP,
    LINES,
    OTHER_SUFFIXES,
    PARTITIONS,
    SMALL_WORDS,
    STRONG_SUFFIXES,
)

# models only with their lines: RX Vega, Pro Duo, Ryzen Z2 (HP has a Z2 of its own)
_TOO_GENERAL = (("vega",), ("duo",), ("z", "1"), ("z", "2"))
_SERIES_MARK = "r"  # "R7 250" is a Radeon of 2013, "R7 5800H" a Ryzen


@dataclass(frozen=True, kw_only=True)
class Model:
    """A name of an architecture: its words, its lines, and whether it means the chip and so every card made of it."""

    name: str
    gfx: str
    core: tuple[str, ...]
    lines: frozenset[str]
    chip: bool = False

    @property
    def ryzen(self) -> bool:
        """Whether it is a processor."""
        return "ryzen" in self.lines

    def fits(self, lines: frozenset[str]) -> bool:
        """Return whether the lines typed before it may be its own."""
        if self.core in _TOO_GENERAL:
            return self.lines - {"amd", "radeon"} <= lines
        if self.ryzen:
            return not lines & {"rx", "instinct"} and ("radeon" not in lines or "ai" in lines & self.lines)
        if "ryzen" in lines and not self.chip:
            return False
        return lines & {"instinct", "rx"} <= self.lines or self.chip or not self.lines & {"rx", "pro", "instinct"}


@dataclass(frozen=True, kw_only=True)
class Found:
    """What one part of a name has: each hit's models, and words that may make it another model."""

    hits: list[list[Model]] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)
    lines: frozenset[str] = frozenset()
    laptop: bool = False


Names = tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]


def index_of(architectures: Mapping[str, Architecture]) -> Index:
    """Return the names of all architectures by their words; the same index for the same names."""
    return _index(tuple((gfx, entry.names, tuple(entry.chips)) for gfx, entry in architectures.items()))


@lru_cache(maxsize=8)
def _index(names: Names) -> Index:
    return Index(names)


class Index:
    """The names of all architectures by their words."""

    def __init__(self, names: Names) -> None:
        """Index every name of every architecture; a Ryzen AI also by its number alone.

        Args:
            names: for each architecture its gfx name, its names, and those that mean its chip.
        """
        self.models: dict[tuple[str, ...], list[Model]] = {}
        self.numbers: dict[str, list[Model]] = {}
        for gfx, known, chips in names:
            for name in known:
                self._add(_model(name, gfx, chip=name in chips))
        self.longest = max(map(len, self.models))

    def _add(self, model: Model) -> None:
        if not model.core:
            return
        self.models.setdefault(model.core, []).append(model)
        joined = _joined(model.core)
        if joined != model.core:
            self.models.setdefault(joined, []).append(model)
        number = next((word for word in model.core if word.isdigit() and len(word) > 1), None)
        if number:
            self.numbers.setdefault(number, []).append(model)
        if model.ryzen and "ai" in model.lines and len(model.core) == 2 and number:
            self.models.setdefault((number,), []).append(model)

    def read(self, words: list[Word], carried: frozenset[str] = frozenset(), number: str | None = None) -> Found:
        """Return the models in the words of one part, and what they leave unexplained.

        Args:
            words: words of the part.
            carried: lines of the part before, which stand for those that this one leaves out.
            number: number of the last model of the part before, which a lone "XT" belongs to.
        """
        if number and len(words) == 1 and words[0].text in STRONG_SUFFIXES:
            words = [Word(text=number), *words]
        typed = frozenset(word.text for word in words)
        found = Found(lines=typed & LINES - {"amd", "ati", "ai"}, laptop=bool(typed & LAPTOP))
        at, lines, used = 0, carried, set[int]()
        while at < len(words):
            models, length = self._at(words, at, lines)
            if models:
                found.hits.append(models)
                used.update(range(at, at + length))
                at, lines = at + length, frozenset()
                continue
            lines |= {words[at].text} & LINES
            at += 1
        found.unexplained.extend(_unexplained(words, used))
        return found

    def _at(self, words: list[Word], at: int, lines: frozenset[str]) -> tuple[list[Model], int]:
        """Return the longest model that begins at a word, and its length in runs of letters or digits."""
        if _marked_as_older(words, at) or words[at].text in LINES:
            return [], 0
        rest = [(i, words[i].text) for i in range(at, len(words)) if words[i].text not in LINES]
        for length in range(min(self.longest, len(rest)), 0, -1):
            typed, end = tuple(text for _, text in rest[:length]), rest[length - 1][0] + 1
            models = [m for m in self._called(typed, lines) if m.fits(lines)]
            if models:
                more = _continued(words, end, typed, chip=all(model.chip for model in models))
                return ([], 0) if more else (_preferred(models, lines), end - at)
        return [], 0

    def _called(self, typed: tuple[str, ...], lines: frozenset[str]) -> list[Model]:
        """Return the models of exactly these words, else with a plural's s, or with letters left out at the end."""
        exact = self.models.get(typed, [])
        if exact and all(model.chip for model in exact):
            return exact
        if not exact and (singular := _singular(typed)):
            return self.models.get(singular) or self._without_letters(typed, lines)
        cards = any(not model.ryzen for model in exact)
        longer = [] if cards or not _numbered(typed) else self._beginning_with(typed)
        processors = [m for m in self.numbers.get(typed[0], []) if m.ryzen and m not in exact]
        lettered = [] if longer else self._without_letters(typed, lines)
        return [*exact, *longer, *lettered, *(processors if _bare(typed, lines) else [])]

    def _without_letters(self, typed: tuple[str, ...], lines: frozenset[str]) -> list[Model]:
        """Return the cards of a number whose letter was left out: an AI PRO 9700 is an AI PRO R9700.

        Only with both words, which no other line has: a Pro 7900 may be a Ryzen.
        """
        line = frozenset(["ai", "pro"])
        if not line <= lines:
            return []
        known = self.numbers.get(typed[0], [])
        return [model for model in known if model.core[1:] == typed and line <= model.lines and not model.ryzen]

    def _beginning_with(self, typed: tuple[str, ...]) -> list[Model]:
        """Return the cards that these words begin, with letters alone left out; of processors the letters decide."""
        longer = (core for core in self.models if core[: len(typed)] == typed and "".join(core[len(typed) :]).isalpha())
        return [model for core in longer for model in self.models[core] if not model.ryzen]


def _singular(typed: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the words of one of several: XT of XTs, and a number without the s behind it; None for no plural."""
    *before, last = typed
    if not before or not last.isalpha() or not last.endswith("s"):
        return None
    return (*before, last[:-1]) if last != "s" else (tuple(before) if before[-1].isdigit() else None)


def _joined(core: tuple[str, ...]) -> tuple[str, ...]:
    """Return a model's words with those at its beginning in one, as in StrixHalo, where they are words."""
    words = list(takewhile(str.isalpha, core))
    return ("".join(words), *core[len(words) :]) if len("".join(words)) > 4 else core


def _numbered(typed: tuple[str, ...]) -> bool:
    return any(word.isdigit() and len(word) > 2 for word in typed)


def _bare(typed: tuple[str, ...], lines: frozenset[str]) -> bool:
    """Return whether a model is a number alone without a line: 7900 may be a Radeon or a Ryzen."""
    return len(typed) == 1 and typed[0].isdigit() and not lines & {"radeon", "rx", "instinct", "ryzen", "ai"}


def _model(name: str, gfx: str, *, chip: bool) -> Model:
    lines = frozenset(word.text for word in words_of(plain(name))) & LINES
    return Model(name=name, gfx=gfx, core=core_of(name), lines=lines, chip=chip)


def _preferred(models: list[Model], lines: frozenset[str]) -> list[Model]:
    """Return those of several models that have every line typed, where any has: a Pro 5600M is no RX 5600M."""
    decisive = lines & {"pro", "rx", "firepro"}
    exact = [model for model in models if decisive <= model.lines] or models
    if not decisive and not all(model.ryzen for model in exact):
        return exact
    return [model for model in exact if ("pro" in model.lines) == ("pro" in lines)] or exact


def _marked_as_older(words: list[Word], at: int) -> bool:
    """Return whether a number of three digits follows "R7" or "R9", which Radeons of 2013 to 2016 are called."""
    if at < 2 or not (words[at].text.isdigit() and len(words[at].text) == 3):
        return False
    return words[at - 2].text == _SERIES_MARK and bool(CLASS.fullmatch(words[at - 1].text)) and words[at - 1].glued


def _continued(words: list[Word], end: int, typed: tuple[str, ...], *, chip: bool) -> bool:
    """Return whether the word after a model makes it another one: a suffix, letters or digits that it does not have.

    Letters after a chip's number name a variant of the same chip: Vega 10 XT.
    """
    if end >= len(words) or (chip and words[end].text.isalpha() and any(map(str.isdigit, typed))):
        return False
    word = words[end]
    if word.text in LINES or (word.text in SMALL_WORDS | PARTITIONS and not word.glued):
        return False
    if word.text.isdigit():
        return word.glued or "".join(typed).isalpha() or len(word.text) > 3
    if word.glued:
        return not typed[-1].isalpha()
    return len(word.text) < 3 or word.text in OTHER_SUFFIXES or (len(word.text) == 3 and "x" in word.text)


def _unexplained(words: list[Word], used: set[int]) -> list[str]:
    """Return the words left over that look like part of a model: long numbers, suffixes, letters before one.

    What stands before the first line is a board's own: the 310 of "MERC 310 Radeon RX 7900 XT".
    """
    first_line = next((at for at, word in enumerate(words) if word.text in LINES - {"amd", "ati"}), 0)
    left = []
    for at, word in enumerate(words):
        if at in used:
            if at - 1 not in used and at > 0 and _prefix(words[at - 1], word):
                left.append(words[at - 1].text)
        elif (at >= first_line and word.text.isdigit() and len(word.text) > 2) or word.text in STRONG_SUFFIXES:
            left.append(word.text)
    return left


def _prefix(before: Word, word: Word) -> bool:
    """Return whether letters stand before a number as a part of it: the V of V7600, the HD of HD 7600."""
    if not before.text.isalpha() or not word.text.isdigit() or before.text in LINES:
        return False
    if before.text in ("vega", "navi", "polaris", "hd"):
        return True
    return (word.glued and len(before.text) < 4) or (len(before.text) in (2, 3) and before.text not in SMALL_WORDS)

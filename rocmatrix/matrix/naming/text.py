"""A typed name in parts: exact identifiers, what to leave out, and the words between separators."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from difflib import get_close_matches

from rocmatrix.matrix.naming.vocabulary import BOARDS, LINES, NEIGHBOURS

_MARKS = re.compile(r"\((?:tm|r|c)\)|[™®©]|'s\b|\u2019s\b")
# "gfx 1100", gfx-1100 and gfx11.0.0, as people and HSA_OVERRIDE_GFX_VERSION have it.
_LOOSE_TARGET = re.compile(r"\bgfx[\s_-]?(\d{1,2})\.(\d)\.([0-9a-f])\b|\bgfx[\s_-](?=[0-9][0-9a-f]{2,3}x?\b)")
TARGET = re.compile(r"\bgfx[0-9a-f]{3,4}\b")
_AMD_ID = re.compile(r"\b(?:1002:|ven[ _]1002&dev[ _])([0-9a-f]{4})\b|(?<![\w:])0x([0-9a-f]{4})\b(?!:)")
_OTHER_ID = re.compile(r"\b(?:ven[ _])?(10de|8086)(?::|&dev[ _])[0-9a-f]{4}\b")
# What stands around a model and has digits of its own: places, versions, sizes, counts and rates.
_AROUND = re.compile(
    r"\b[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\b|\b[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\b|\[[0-9a-f]{4}\]|\(?\brev \w+\)?"
    r"|\b\d+\s*[gm]i?bs?\b|\b[1-9]\d?\s*(?:g|gigs?)\b|\b\d{3}g\b|\bg?ddr\s?\d\w?\b|\bhbm\d?e?\b|\bpci-?e?\s?\d(?:\.\d)?|\bx16\b"
    r"|\brocm\s?-?\d[\d.]*|\b(?:torch|pytorch|python|ubuntu|linux|kernel|windows|debian|fedora)\s?-?\d[\w.]*"
    r"|\b\d+(?:\.\d+)+\w*|\b\d+\s*-?\s*(?:core|cores|threads?|cus?|mhz|ghz|w(?!/)|watts?|bit|nm|tflops|fps)\b|#\d+|\b\d+(?:th|nd|st|rd)\b"
    r"|(?<!v)\b(?:199\d|20[0-3]\d)\b|\bv\d\b"
)
_MEMORY = re.compile(r"\b\d+\s*gi?b\b")
# Sizes in part numbers of boards and written to a suffix: O24G, 20GO, 16GD, 16GBD6-3DHE, 16G-E/OC, GRE12G.
_PART_SIZE = re.compile(
    r"(?:(?<=xt)|(?<=xtx)|(?<=gre)|\bo?)(?:[468]|1[0268]|2[04]|32|48)g(?:b?d\d?|o|b)?(?:-\d?[a-z]\w{0,4}(?:/oc)?)?\b"
)
# Numbers that share the letters of the first: MI25/50/60, W6800/7900.
_SHARED_LETTERS = re.compile(r"\b(mi|w|v)(\d{2,4}[axl]?)((?:\s?/\s?\d{2,4}[axl]?\b)+)")
_SUFFIX_FIRST = re.compile(r"^((?:[a-z]+\s+){0,3}?)(xtx?)\s+(\d{4})\b(?!\s*(?:xtx?|gre)\b)")
_COUNT = re.compile(
    r"(?<![\w.])(?<!vega )[1-9]\d?\s?[x\u00d7*](?:\s+(?=\S)|(?=mi|rx|amd|radeon|instinct|\d{4}))"
    r"|(?<=\S)\s*\(?\b(?:[x\u00d7]\s?[1-9]\d?|(?:1[0-6]|[1-9])\s?[x\u00d7])\b\)?(?=\s*(?:$|[,;/)]))"
    r"|\b(?:a\s+)?(?:dual(?!\s+slot)|two|three|four|eight|quad|pair of)\s+(?=\S)"
)
# "dual R9700s" are two R9700; a suffix of a card's own is written large, as in "2x R9700S".
_PLURAL = re.compile(
    r"((?i:\b(?:dual|two|three|four|five|six|seven|eight|quad|several|both|pair of)\b|(?<![\w.])[2-9]\d?\s?[x\u00d7*])"
    r".*?\d{3})s\b"
)
_SEPARATOR = re.compile(r"\s*(?:/|,|;|\||\n|\(|\)|\[|\]|:\s|\band\b|\bor\b|\boder\b|&|\bw/|\bwith\b|\bvs\.?\s|\+\s)\s*")
_PIECE = re.compile(r"[a-z]+|\d+")
_SPELLED = {"ds": ("dual", "slot"), "fe": ("frontier", "edition")}
_BRANDS = ("radeon", "instinct", "ryzen")
_NEAR = 0.8
_LONG_WORD = re.compile(r"[a-z]{5,9}")


@dataclass(frozen=True, kw_only=True)
class Word:
    """A run of letters or of digits, and whether it is written to the one before it without a blank."""

    text: str
    glued: bool = False


def plain(name: str) -> str:
    """Return a name in one letter case and width, without trade marks and the s of several cards."""
    one = _PLURAL.sub(r"\1", unicodedata.normalize("NFKC", name.replace("™", " ")))
    bare = _MARKS.sub(" ", one.casefold())
    bare = bare if "ryzen" in bare else BOARDS.sub("radeon", bare)
    named = _LOOSE_TARGET.sub(lambda found: "gfx" + "".join(part or "" for part in found.groups()), bare)
    return _SHARED_LETTERS.sub(_each_with_letters, named.replace("_", " "))


def _each_with_letters(found: re.Match[str]) -> str:
    letters, first, others = found.groups()
    return "/".join(f"{letters}{number.strip()}" for number in (first + others).split("/"))


def targets(text: str) -> tuple[str, ...]:
    """Return the processors that a plain text names, such as gfx906, in its order."""
    return tuple(dict.fromkeys(TARGET.findall(text)))


def device_ids(text: str) -> tuple[int, ...]:
    """Return AMD's PCI device ids in a plain text: of `1002:744c`, and of `0x744c` where no processor is named.

    Windows writes VEN_1002&DEV_744C. llama.cpp prints the version of a processor as 0x1151 next to it.
    """
    found = [(pair, single) for pair, single in _AMD_ID.findall(text) if pair or not TARGET.search(text)]
    return tuple(dict.fromkeys(int(pair or single, 16) for pair, single in found if single != "1002"))


def of_another_maker(text: str) -> str | None:
    """Return the PCI vendor of another maker that a plain text has, None for none."""
    found = _OTHER_ID.search(text)
    return found[1] if found else None


def segments(text: str) -> list[list[Word]]:
    """Return the words of a plain text between separators; sizes, counts, places and neighbours are left out."""
    bare = NEIGHBOURS.sub(" ; ", TARGET.sub(" ", _AMD_ID.sub(" ", text)))
    bare = _COUNT.sub(" ", _AROUND.sub(" ", _PART_SIZE.sub(" ", _SUFFIX_FIRST.sub(r"\1\3 \2", bare))))
    bare = _LONG_WORD.sub(lambda found: _brand(found[0]), bare)
    return [words for part in _SEPARATOR.split(bare) if (words := words_of(part))]


def words_of(text: str) -> list[Word]:
    """Return the runs of letters and of digits of a text; abbreviations of a model's words are written out."""
    found = []
    for match in _PIECE.finditer(text):
        glued = match.start() > 0 and text[match.start() - 1].isalnum()
        found += [Word(text=word, glued=glued) for word in _SPELLED.get(match[0], (match[0],))]
    return found


def _brand(word: str) -> str:
    """Return the brand that a word is misspelt for by a letter or two, else the word."""
    return next(iter(get_close_matches(word, _BRANDS, n=1, cutoff=_NEAR)), word)


def core_of(card: str) -> tuple[str, ...]:
    """Return the words of a card's own name that make its model: without brands, lines and the class of a Ryzen."""
    words = [word.text for word in words_of(_MEMORY.sub(" ", plain(card)))]
    kept = [word for word in words if word not in LINES]
    if "ryzen" in words and len(kept) > 1 and kept[0] in ("3", "5", "7", "9"):
        kept = kept[1:]
    return tuple(kept)

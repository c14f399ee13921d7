"""Words that a generator made, found by their letters alone: what no list of forms knows is taken out, too.

Keys, licenses and ids are drawn from one alphabet, so small letters, capitals and digits alternate in them as in no
name of a function, kernel, card, package or file. A hash of our own or of a program stands next to a word that states
what it is of. A word in doubt is taken out: the sentence around it stays, and a bundle is read for sentences.
"""

from __future__ import annotations

import re

TAKEN = "<token>"
_WORD = re.compile(r"(?<![\w<])[A-Za-z0-9][\w+/=~.-]{14,4000}")
_PIECE = re.compile(r"[A-Za-z0-9]{16,}")
_JOINED = re.compile(r"[A-Za-z0-9]+(?:[-_+/]{1,2}[A-Za-z0-9]+)+")
_RUN = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_HEX = re.compile(r"(?=[0-9a-fA-F]*\d)(?=[0-9a-fA-F]*[a-fA-F])(?:[0-9a-f]+|[0-9A-F]+)")
_GROUPS = re.compile(r"(?=.{24})(?=.*\d)(?=.*[A-Z])(?:[A-Z0-9]{2,16}-){3,}[A-Z0-9]{4,16}")
# names that programs mangle from sizes and types: at the begin of a word, as in the middle these letters are chance
_MADE = re.compile(
    r"(?<![A-Za-z0-9])(?:_*Z[NLTK]\w{0,80}\d|\w{1,60}_0d1d|Cijk_|gfx\d|MT\d+x|(?:miopen|naive|[gG]emm|ck|triton|hip|roc)\w{0,80}_)"
)
# what a hash is of, in front of it; a name of an object file has one behind a point or a line
_OF = re.compile(
    r"(?:sha\d{1,3}|md5|blake\w{1,3}|commit|revision|\brev|digest|image|inputs|hash|seal|tree|blob|build[ _-]?id|"
    r"version|layer|checkout|HEAD|merge|exporting \w+|from|0x|@|git)[\"']?[:=@ ]{0,3}[\"'(]?$",
    re.IGNORECASE,
)
_HEX_LEAST, _SMALL_LEAST, _CAPITAL_LEAST, _MIXED_LEAST, _LONG = 24, 20, 16, 20, 32
_TAIL = re.compile(r"(?P<taken><token>|<secret>)[+/=_.~-](?=[\w+/=.~-]{0,40}[A-Z0-9])[\w+/=.~-]{8,4000}")


def without_random_words(text: str) -> str:
    """Return a text in which words of random letters are replaced, with what is joined to them."""
    return _TAIL.sub(r"\g<taken>", _WORD.sub(_replaced, text))


def _replaced(found: re.Match[str]) -> str:
    word, before = found[0], found.string[max(0, found.start() - 40) : found.start()]
    if _MADE.search(word) or "-packages/" in word:
        return word
    if _GROUPS.fullmatch(word.strip(".-")):
        return TAKEN
    for piece in _PIECE.finditer(word):
        if is_random(piece[0]) and not (
            _HEX.fullmatch(piece[0]) and _OF.search((before + word[: piece.start()])[-40:])
        ):
            return word[: word.rfind("=", 0, piece.start()) + 1] + TAKEN
    if any(_is_random_joined(joined[0]) for joined in _JOINED.finditer(word)):
        return TAKEN
    return word


def is_random(piece: str) -> bool:
    """Return whether letters and digits alternate in a word as in none that a person made."""
    if _HEX.fullmatch(piece):
        return len(piece) >= _HEX_LEAST
    runs = len(_RUN.findall(piece))
    has_digits, has_letters = any(c.isdigit() for c in piece), any(c.isalpha() for c in piece)
    if not (has_digits and has_letters):
        return False
    if piece.upper() == piece:
        return len(piece) >= _CAPITAL_LEAST and runs >= 5
    if piece.lower() == piece:
        return len(piece) >= _SMALL_LEAST and (runs >= 6 or (len(piece) >= _LONG and runs >= 4))
    return len(piece) >= _MIXED_LEAST and runs / len(piece) > (0.4 if len(piece) >= _LONG else 0.5)


def _is_random_joined(word: str) -> bool:
    """Return whether a word is of base64's alphabet, whose signs cut it into pieces too short to judge alone."""
    parts = re.split(r"[-_+/]+", word)
    letters = "".join(parts)
    mixed = not letters.islower() and not letters.isupper()
    runs = sum(len(_RUN.findall(part)) for part in parts)
    # names have a sign every few letters; the alphabet has one in 32
    return mixed and len(letters) >= _MIXED_LEAST and len(parts) <= 1 + len(letters) / 8 and runs > len(letters) / 2

"""A user's requirements file, read for an image: lines with their places, kept under a name of their own.

The name is a hash of what the lines ask for, so that it can be a part of a cell's name. pip's own options are taken
where they ask for nothing else than this project does anyway, and refused elsewhere.
"""

from __future__ import annotations

import codecs
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from rocmatrix.matrix.cells.cell import FILE_TOKEN
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.input.named_path import opened

FLAG = "--with-requirements"
FOLDER = Path(".rocmatrix") / "requirements"
LARGEST_BYTES = 1 << 20
_DIGITS = 12
# Every wheel is checked by its hash and none is built here, whether or not a file asks for it.
_ALREADY_SO = ("--require-hashes", "--prefer-binary", "--only-binary")
_COMMENT = re.compile(r"(^|\s)#.*$")
_HASH = re.compile(r"\s--hash[=\s]sha256:([0-9a-fA-F]{64})(?=\s|$)")
_OPTION = re.compile(r"^(-[a-zA-Z]|--[a-z-]+)[=\s]?\s*(.*)$")
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


@dataclass(frozen=True, kw_only=True)
class Line:
    """One requirement. `where` is its place for a person; `only_bounds` holds for a line of a constraints file."""

    requirement: Requirement
    where: str
    sha256: tuple[str, ...] = ()
    only_bounds: bool = False

    @property
    def name(self) -> str:
        """The package's name as an index spells it."""
        return canonicalize_name(self.requirement.name)

    @property
    def kept(self) -> str:
        """The line as it is kept: it has one spelling, so that equal requests give equal names."""
        marker = f"; {self.requirement.marker}" if self.requirement.marker else ""
        line = f"{'-c ' if self.only_bounds else ''}{self.name_and_bounds}{marker}"
        return " ".join([line, *(f"--hash=sha256:{each}" for each in sorted(self.sha256))])

    @property
    def name_and_bounds(self) -> str:
        """What pip is asked for: name, extras and bounds."""
        extras = f"[{','.join(sorted(self.requirement.extras))}]" if self.requirement.extras else ""
        return f"{self.name}{extras}{self.requirement.specifier}"


def take(path: Path, root: Path) -> str:
    """Read a requirements file, keep its lines in the checkout, and return the word that stands for them in a name.

    Raises RM017 for a file that cannot be read, for a line that is no requirement and for an option that is not taken.

    Args:
        path: the file, with what `-r` and `-c` in it name.
        root: folder of the checkout.
    """
    lines = read(path)
    if not any(not line.only_bounds for line in lines):
        raise _refused(str(path), "it asks for no package", "Name at least one package in it.")
    text = "".join(f"{kept}\n" for kept in sorted({line.kept for line in lines}))
    word = f"file-{hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]}"
    place = root / FOLDER / f"{word}.txt"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")
    return word


def kept(word: str, root: Path) -> tuple[Line, ...]:
    """Return the lines that a word of a cell's name stands for. Raises RM017 where this checkout does not have them.

    Args:
        word: `file-` and digits, as `take` returned it.
        root: folder of the checkout.
    """
    place = root / FOLDER / f"{word}.txt"
    if not place.is_file():
        advice = f"Give the file again: {FLAG} FILE. Its lines are kept in the checkout where it was first given."
        raise _refused(str(place), f"the lines of {word} are not in this checkout", advice)
    text = place.read_text(encoding="utf-8")
    if f"file-{hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]}" != word:
        raise _refused(str(place), "it was changed after its name was made", f"Give the file again: {FLAG} FILE.")
    return tuple(
        _line(each.removeprefix("-c "), word, only_bounds=each.startswith("-c ")) for each in text.splitlines()
    )


def is_word(name: str) -> bool:
    """Return whether a word of a cell's name stands for a requirements file."""
    return bool(re.fullmatch(FILE_TOKEN, name))


def read(path: Path) -> tuple[Line, ...]:
    """Return the lines of a requirements file and of those that it names. Raises RM017."""
    return tuple(_read(path, (), only_bounds=False))


def _read(path: Path, above: tuple[Path, ...], *, only_bounds: bool) -> Iterator[Line]:
    if path.resolve() in above:
        raise _refused(str(path), "it names itself by way of -r or -c", "Remove one of the two lines.")
    above = (*above, path.resolve())
    for number, text in _logical(_text(path)):
        where = f"{path}:{number}"
        if not text.startswith("-"):
            yield _line(text, where, only_bounds=only_bounds)
            continue
        found = _OPTION.match(text)
        option, value = (found[1], found[2]) if found else (text, "")
        if option in ("-r", "--requirement", "-c", "--constraint"):
            bounds = only_bounds or option in ("-c", "--constraint")
            yield from _read(path.parent / value.strip(), above, only_bounds=bounds)
        elif option not in _ALREADY_SO:
            raise _option_refused(option, where)


def _text(path: Path) -> str:
    """Return the text of a file; that of PowerShell's `pip freeze > FILE` is UTF-16."""
    try:
        with opened(path) as file:
            data = file.read(LARGEST_BYTES + 1)
        if len(data) > LARGEST_BYTES:
            raise _refused(str(path), f"it has more than {LARGEST_BYTES:,} bytes", "Name a requirements file.")
        return data.decode(next((name for bom, name in _BOMS if data.startswith(bom)), "utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        what = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8 or UTF-16"
        raise _refused(str(path), str(what), f"{FLAG} takes a requirements file as pip does.") from None


def _logical(text: str) -> Iterator[tuple[int, str]]:
    """Yield (number of the first line, text) without comments and blank lines; a backslash continues a line."""
    joined, first = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = _COMMENT.sub("", raw).rstrip()
        first = first if joined else number
        if line.endswith("\\"):
            joined += line[:-1] + " "
            continue
        if whole := (joined + line).strip():
            yield first, whole
        joined = ""
    if joined.strip():
        yield first, joined.strip()


def _line(text: str, where: str, *, only_bounds: bool) -> Line:
    hashes = tuple(found.lower() for found in _HASH.findall(text))
    bare = _HASH.sub("", text).strip()
    try:
        requirement = Requirement(bare)
    except InvalidRequirement as error:
        why = str(error).splitlines()[0]
        if bare.startswith((".", "/", "git+", "http:", "https:", "file:")):
            raise _no_index(bare, where) from None
        raise _refused(
            where, f"{bare!r} is no requirement: {why}", "Write name, bounds and marker as pip does."
        ) from None
    if requirement.url:
        raise _no_index(bare, where)
    return Line(requirement=requirement, where=where, sha256=hashes, only_bounds=only_bounds)


def _no_index(text: str, where: str) -> RocmatrixError:
    advice = (
        "Name a released version of it. Code of your own is mounted: `./invokew run --data FOLDER`; or make a wheel of "
        "it, and put that into a folder that pip's configuration names as find-links."
    )
    return _refused(where, f"{text!r} is in no package index, so its bytes have no hash that holds tomorrow", advice)


def _option_refused(option: str, where: str) -> RocmatrixError:
    if option in ("-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--no-index", "--trusted-host"):
        why = (
            f"{option} names where packages come from; torch is the cell's, and other sources are pip's configuration's"
        )
        return _refused(where, why, "Remove the line; a mirror belongs into pip's configuration on this machine.")
    return _refused(
        where, f"{option} is not taken: an image installs released wheels by their hashes", "Remove the line."
    )


def _refused(where: str, why: str, advice: str) -> RocmatrixError:
    return RocmatrixError("RM017", what=f"{FLAG} cannot be used", where=where, why=why, next=advice)

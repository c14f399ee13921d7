"""Folders of wheels and indexes: each has an option of its own, and pip finds nothing where one is given for the other.

An index has a page for each project; a folder lists the files of all of them on one page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rocmatrix.doctor.environment.lint_input import Command, FileFinding, Fix, Subject

FOLDER = r"https?://repo\.radeon\.com/rocm/(?:manylinux|windows)/rocm-rel-[^\s\"'/;&|,]{1,60}/?"
_INDEX = r"https?://download\.pytorch\.org/whl(?:/(?:nightly/|test/)?(?:rocm[\d.]{1,9}|cpu|cu\d{2,3}))?/?(?![\w./-])"
_BETWEEN = r"(?P<between>[= ][ \t]{0,20}[\"']?)"
_AS_INDEX = re.compile(
    rf"(?<!\S)(?P<option>--(?:extra-)?index-url|--default-index|--index|-i){_BETWEEN}(?P<url>{FOLDER})"
)
_AS_FOLDER = re.compile(rf"(?<!\S)(?P<option>--find-links|-f){_BETWEEN}(?P<url>{_INDEX})")
_INDEX_NAMES = re.compile(r"(?:PIP|UV)_(?:EXTRA_|DEFAULT_)?INDEX(?:_URL)?")
_FOLDER_NAMES = ("PIP_FIND_LINKS", "UV_FIND_LINKS")
_NO_INDEX = "the address is a folder of files, and an index has a page for each project: pip finds none of its wheels"
_NO_FOLDER = (
    "PyTorch's index has a page for each project and none with files: pip finds no wheel there, and takes PyPI's"
)


def found(subject: Subject) -> Iterator[FileFinding]:
    """Yield options and variables of pip and uv that give a folder for an index, or an index for a folder."""
    seen = {(note.rule, note.what) for note in subject.notes}  # a list of requirements has its options but once
    for command in subject.commands:
        requirements = (
            of_text(command) if re.search(r"\b(?:install|download|wheel|sync|add|compile)\b", command.text) else ()
        )
        yield from (note for note in requirements if (note.rule, note.what) not in seen)
    for row in subject.variables:
        if _INDEX_NAMES.fullmatch(row.name) and re.match(FOLDER, row.value):
            yield _as_index(row.where, f"{row.name}={row.value}", f"{row.name[: row.name.index('_')]}_FIND_LINKS")
        elif row.name in _FOLDER_NAMES and re.match(_INDEX, row.value):
            yield _as_folder(row.where, f"{row.name}={row.value}", "a command of its own with --index-url")


def of_text(command: Command) -> Iterator[FileFinding]:
    """Yield what the text of a command, or a line of requirements, gives for another thing; it can be corrected."""
    for match in _AS_INDEX.finditer(command.text):
        after = "-f" if match["option"] == "-i" else "--find-links"
        fix = Fix(where=command.where, before=match[0], after=f"{after}{match['between']}{match['url']}")
        yield _as_index(command.where, f"{match['option']} {match['url']}", f"{after} with the same address", fix)
    for match in _AS_FOLDER.finditer(command.text):
        what = f"{match['option']} {match['url']}"
        yield _as_folder(command.where, what, "--index-url for torch in a command of its own")


def _as_index(where: str, what: str, instead: str, fix: Fix | None = None) -> FileFinding:
    return FileFinding(
        rule="folder-as-index", where=where, what=what, severity="error", truth=_NO_INDEX, instead=instead, fix=fix
    )


def _as_folder(where: str, what: str, instead: str) -> FileFinding:
    return FileFinding(
        rule="index-as-folder", where=where, what=what, severity="error", truth=_NO_FOLDER, instead=instead
    )

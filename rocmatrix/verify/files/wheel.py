"""Files that pip installs from a wheel: their places, bytes and modes.

A locked wheel decides, by its own RECORD and bytes, and not the RECORD of an image: whoever changes a file
there can change that too. Layout and rules are those of the binary distribution format (PyPA specifications) and of
pip 23 and later (pip/_internal/operations/install/wheel.py): in scripts a first line that begins with `#!python`
becomes one with the environment's Python, entry points become commands and replace scripts of their names, RECORD is
written anew, INSTALLER and REQUESTED are added. A test compares all this with what pip itself installs.
"""

from __future__ import annotations

import base64
import binascii
import configparser
import csv
import hashlib
import io
import re
import stat
import zipfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from rocmatrix.verify.files.tree import VENV, Row

PLAIN, EXECUTABLE = 0o644, 0o755
CHUNK = 1024 * 1024
ADDED = {"INSTALLER": b"pip\n", "REQUESTED": b""}
NOT_INSTALLED = ("RECORD", "RECORD.jws", "RECORD.p7s")
INTERPRETER = f"{VENV}/bin/python"
REWRITTEN = b"#!python"
_OF_WRAPPER = re.compile(r"(\.exe|-script\.py|\.pya)$", re.IGNORECASE)  # as setuptools once named a command's files


@dataclass(frozen=True, kw_only=True)
class Member:
    """One file as it should be installed. `sha256` is that of the wheel's RECORD, None where it has none."""

    archive: zipfile.ZipFile
    name: str
    sha256: bytes | None
    mode: int
    script: bool = False

    def is_installed_as(self, row: Row) -> bool:
        """Return whether a file has this content: what the locked wheel's RECORD states, or what the wheel holds."""
        if row.kind != "file":
            return False
        return (self.sha256 is not None and row.sha256 == self.sha256) or row.sha256 == self._digest()

    def _digest(self) -> bytes:
        digest = hashlib.sha256()
        with self.archive.open(self.name) as file:
            if self.script:
                file.readline()
                digest.update(f"#!{INTERPRETER}\n".encode())
            while piece := file.read(CHUNK):
                digest.update(piece)
        return digest.digest()


@dataclass(frozen=True, kw_only=True)
class Wheel:
    """A wheel taken apart. `files` are by the path where they land, `about` is the path of its .dist-info folder.

    `commands` are entry points by name: `module:attribute`. `replaced` are the scripts in whose place pip writes
    commands: they are installed nowhere, and pip's RECORD names them by their path in the wheel.
    """

    file: str
    about: str
    files: dict[str, Member]
    commands: dict[str, str] = field(default_factory=dict)
    replaced: frozenset[str] = frozenset()

    @property
    def added(self) -> dict[str, bytes]:
        """What pip writes into the .dist-info folder, RECORD apart."""
        return {f"{self.about}/{name}": content for name, content in ADDED.items()}

    @property
    def record(self) -> str:
        """The path of the RECORD that pip writes."""
        return f"{self.about}/RECORD"


def opened(source: Path | BinaryIO, *, name: str, site: str) -> Wheel:
    """Take a wheel apart. Raises zipfile.BadZipFile, and ValueError or KeyError for one that pip could not install.

    Args:
        source: path of the wheel, or the wheel opened for reading.
        name: file name of the wheel.
        site: folder of packages that it is installed to, as an absolute path in the image.
    """
    archive = zipfile.ZipFile(source)
    about = next((folder for folder in map(_about, archive.namelist()) if folder), None)
    if about is None:
        raise ValueError(f"{name} has no .dist-info/WHEEL")
    commands = _commands(archive, about)
    replaced = {info.filename for info in archive.infolist() if _is_wrapper(info.filename, commands)}
    return Wheel(
        file=name,
        about=f"{site}/{about}",
        files=dict(_files(archive, about, site=site, left_out=replaced)),
        commands=commands,
        replaced=frozenset(f"{site}/{path}" for path in replaced),
    )


def _about(name: str) -> str:
    """Return the wheel's .dist-info folder from the name of its WHEEL; packages may carry folders of others below."""
    folder, _, last = name.partition("/")
    return folder if folder.endswith(".dist-info") and last == "WHEEL" else ""


def _is_wrapper(name: str, commands: Collection[str]) -> bool:
    first, _, rest = name.partition("/")
    script = first.endswith(".data") and rest.startswith("scripts/")
    return script and _OF_WRAPPER.sub("", rest.rpartition("/")[2]) in commands


def _files(
    archive: zipfile.ZipFile, about: str, *, site: str, left_out: Collection[str]
) -> Iterator[tuple[str, Member]]:
    """Yield where each member lands, and the member."""
    digests = dict(_recorded(archive, about))
    skipped = {*left_out, *(f"{about}/{name}" for name in NOT_INSTALLED)}
    for info in archive.infolist():
        if not info.is_dir() and info.filename not in skipped:
            path, script = _place(info.filename, site=site, package=about.partition("-")[0])
            yield path, _member(archive, info, digests.get(info.filename), script=script)


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, sha256: bytes | None, *, script: bool) -> Member:
    mode = info.external_attr >> 16
    rewritten = script and archive.open(info).read(len(REWRITTEN)) == REWRITTEN
    return Member(
        archive=archive,
        name=info.filename,
        sha256=None if rewritten else sha256,
        mode=EXECUTABLE if stat.S_ISREG(mode) and mode & 0o111 else PLAIN,
        script=rewritten,
    )


def _place(name: str, *, site: str, package: str) -> tuple[str, bool]:
    """Return where a member lands, and whether it is a script."""
    first, _, rest = name.partition("/")
    if not first.endswith(".data"):
        return f"{site}/{name}", False
    scheme, _, below = rest.partition("/")
    python = site.split("/")[-2]
    headers = f"{VENV}/include/site/{python}/{package}"
    places = {"purelib": site, "platlib": site, "scripts": f"{VENV}/bin", "data": VENV, "headers": headers}
    return f"{places[scheme]}/{below}", scheme == "scripts"


def _recorded(archive: zipfile.ZipFile, about: str) -> Iterator[tuple[str, bytes]]:
    text = archive.read(f"{about}/RECORD").decode("utf-8")
    for path, sha256 in recorded(text):
        if sha256 is not None:
            yield path, sha256


def recorded(text: str) -> Iterator[tuple[str, bytes | None]]:
    """Yield path and sha256 of each row of a RECORD: None without one or for another kind, b"" if unreadable."""
    for row in csv.reader(io.StringIO(text)):
        path, digest = [*row, "", ""][:2]
        kind, _, value = digest.partition("=")
        if path:
            yield path, _decoded(value) if kind == "sha256" else None


def _decoded(value: str) -> bytes:
    try:
        digest = base64.urlsafe_b64decode(value + "==")  # more padding than is needed is taken
    except (binascii.Error, ValueError):
        return b""
    return digest if len(digest) == hashlib.sha256().digest_size else b""


def _commands(archive: zipfile.ZipFile, about: str) -> dict[str, str]:
    if f"{about}/entry_points.txt" not in archive.namelist():
        return {}
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(archive.read(f"{about}/entry_points.txt").decode("utf-8"))
    sections = [parser[name] for name in ("console_scripts", "gui_scripts") if parser.has_section(name)]
    return {name: value.partition("[")[0].strip() for section in sections for name, value in section.items()}

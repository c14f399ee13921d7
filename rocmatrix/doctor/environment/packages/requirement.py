"""Mistakes in how a requirement is written: the shell or pip reads another thing than what was meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rocmatrix.doctor.environment.lint_input import Command, FileFinding
from rocmatrix.doctor.environment.shell.words import parts

PYTORCH_INDEX = "https://download.pytorch.org/whl/"
_QUOTED = re.compile(r"\"(?:\\.|[^\"\\])*\"|'[^']*'")
_COMMENT = re.compile(r"(?<!\S)#.*")  # as far as the end of its line
_REDIRECTED = re.compile(r"\bpip[\d.]* install\b[^&|;\n]{0,1500}?\s(?P<word>[A-Za-z][\w.,\[\]-]*[<>]=?\d[\w.*]*)")
_LOCAL_RANGE = re.compile(
    r"(?<![\w-])[A-Za-z][\w.\[\]-]{0,80}(?:[<>=!~]=?[\w.+*]{1,40},){0,4}"
    r"(?P<sign>>=|<=|~=|>|<)\d[\w.]{0,40}\+\w[\w.]{0,60}"
)
_PARTS = re.compile(r"(?P<name>[A-Za-z][\w.-]*).*\+(?P<build>[a-z]+[\d.]*)", re.DOTALL)
_ADDRESS = re.compile(r"https?://[^\s;\"']+")
_WHEEL = re.compile(r"/(?P<name>[A-Za-z][\w.]*?)-\d[^/]*-(?P<python>cp3\d{1,2})-[^/]*\.whl")
_OF_PYTORCH = ("torch", "torchvision", "torchaudio")
_FILE = re.compile(r"(?:^|/)(?P<file>[^/\s;|&*?$\[\]{}()%,\"']+\.whl)(?=$|[#;\s])")  # without what a shell fills in
_FIVE = re.compile(r"[\w.]+-[\w.+!]+(?:-\d\w*)?-[\w.]+-[\w.]+-[\w.]+\.whl", re.ASCII)
_OPTION = re.compile(r"^[A-Za-z][^#\n]*?\s;?\s*(?P<option>--(?:extra-)?index-url|--find-links|-i|-f)[ =]")


def of_command(command: Command) -> Iterator[FileFinding]:
    """Yield requirements of a shell command that the shell takes for redirections, and local versions in ranges."""
    plain = _COMMENT.sub("", _QUOTED.sub("''", command.text))
    if (word := _REDIRECTED.search(plain)) is not None:
        yield FileFinding(
            rule="requirement-redirected", where=command.where, what=word["word"], severity="error",
            truth="without quotes the shell takes > and < for redirections: pip gets the name alone",
            instead=f"'{word['word']}' in quotes",
        )  # fmt: skip
    for file in _wheel_names(command.text):
        yield FileFinding(
            rule="wheel-name-invalid", where=command.where, what=file, severity="error",
            truth="pip reads version, Python and platform from the name of a wheel, and refuses one that lacks them",
            instead="the name that the file was published under (torch-2.9.1+rocm6.4-cp312-cp312-linux_x86_64.whl)",
        )  # fmt: skip
    if "install" in command.text and (found := _LOCAL_RANGE.search(command.text)) is not None:
        name, build = _name_and_build(found[0])
        yield FileFinding(
            rule="local-version-in-range", where=command.where, what=found[0].strip(" \"'"), severity="error",
            truth=f"a local version such as +{build} may follow == and != only (PEP 440); pip refuses {found['sign']}",
            instead="== with the whole version, or a range without the local part"
            + (f": {separately(name, f'{PYTORCH_INDEX}{build}')}" if name in _OF_PYTORCH else ""),
        )  # fmt: skip


def _wheel_names(text: str) -> Iterator[str]:
    """Yield wheels that pip is to install from files whose names are not those of wheels."""
    for words in parts(text, ".whl"):
        if "install" in words and any(re.fullmatch(r"(?:.*/)?(?:pip[\d.]*|uv)", word) for word in words):
            found = (_FILE.search(word) for word in words[words.index("install") :] if "$" not in word)
            yield from (
                match["file"] for match in found if match and not _FIVE.fullmatch(match["file"].replace("%2B", "+"))
            )


def _name_and_build(text: str) -> tuple[str, str]:
    """Return the package of a requirement, and the last local part of its versions."""
    parts = _PARTS.match(text)
    return (parts["name"].lower(), parts["build"].rstrip(".")) if parts else ("", "rocm6.4")


def separately(package: str, index: str) -> str:
    """Return the advice to install a package from its own index: one of a whole file replaces PyPI for all others.

    Args:
        package: its name.
        index: the address of the index.
    """
    return f"install {package} first, in a command or file of its own with --index-url {index}, then the rest"


def of_requirement(row: str, where: str) -> Iterator[FileFinding]:
    """Yield an option of pip that stands on the line of a requirement.

    Args:
        row: the line as it is written.
        where: its file and line.
    """
    found = _OPTION.search(row)
    if found is not None:
        yield FileFinding(
            rule="option-in-requirement", where=where, what=row.strip(), severity="error",
            truth=f"{found['option']} counts for a whole file, on a line of its own; pip refuses it behind a package",
            instead=_instead_of_option(row, found["option"]),
        )  # fmt: skip


def of_one_machine(row: str, where: str) -> Iterator[FileFinding]:
    """Yield a requirement whose file is in a folder of the machine that the list was made on.

    Args:
        row: the line as it is written.
        where: its file and line.
    """
    found = re.match(r"\s*(?P<name>[\w.-]+)(?:\[[^]]*\])?\s*@\s*(?P<file>file:///\S+)", row)
    if found is not None:
        yield FileFinding(
            rule="path-of-one-machine", where=where, what=f"{found['name']} @ {found['file'][:80]}", severity="warning",
            truth="the file is in a folder of the machine that the list was made on (pip freeze); elsewhere pip stops",
            instead=f"{found['name']}== with its version, and the index that has it",
        )  # fmt: skip


def of_wheels(rows: Iterable[tuple[str, str]]) -> Iterator[FileFinding]:
    """Yield wheels of one package for different Pythons, of which a list may name one without a marker.

    Args:
        rows: lines of a list, each with its file and line.
    """
    before: dict[str, str] = {}
    for row, where in rows:
        found = _WHEEL.search(row)
        if found is not None and ";" not in row:
            python = before.setdefault(found["name"].lower(), found["python"])
            if python != found["python"]:
                yield FileFinding(
                    rule="wheel-of-another-python", where=where, severity="error",
                    what=f"{found['name']} for {python} and {found['python']}",
                    truth="pip installs every line of a list, and refuses a wheel that is built for another Python",
                    instead=f'a marker behind each: ; python_version == "3.{found["python"][3:]}"',
                )  # fmt: skip


def _instead_of_option(row: str, option: str) -> str:
    address, package = _ADDRESS.search(row), re.match(r"[\w.-]+", row.strip())
    if option not in ("--index-url", "-i") or package is None:
        return f"{option} on a line of its own"
    return separately(package[0], address[0] if address else "ADDRESS")

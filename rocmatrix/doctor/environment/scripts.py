"""What people write besides Dockerfiles and compose files: shell and Slurm scripts, and requirements files."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rocmatrix.doctor.environment.dockerfile import COMPILES, SEPARATORS, installed, read_text, substituted
from rocmatrix.doctor.environment.files import slurm
from rocmatrix.doctor.environment.launch import of_command
from rocmatrix.doctor.environment.lint_input import Assignment, Command, Subject
from rocmatrix.doctor.environment.packages import requirement

_EXPORT = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<value>.*)", re.DOTALL)
# a variable or an array that is set or appended to, on a line of its own
_SET = re.compile(
    r"^[ \t]*(?:(?:export|local|readonly|declare(?: -\w+)?)[ \t]+)?(?P<name>[A-Za-z_]\w*)(?P<more>\+?)="
    r"(?:\((?P<array>[^()]{0,4000})\)|(?P<value>\"[^\"\n]{0,4000}\"|'[^'\n]{0,4000}'|[^\s;&|()]{0,4000}))"
    r"[ \t]*(?=[;\n]|#|&&)",
    re.MULTILINE,
)
# what a shell runs first and puts in as words; parentheses within it are matched one level deep
_SUBSTITUTION = re.compile(r"\$\((?:[^()\n]|\([^()\n]{0,200}\)){0,400}\)|`[^`\n]{0,400}`")
_SHELL = " \t|;&<>#\"'\\"  # characters that end a word or change its meaning
_MASKED = {ord(one): chr(0xE000 + at) for at, one in enumerate(_SHELL)}  # by characters of private use
_UNMASKED = {ord(mask): chr(one) for one, mask in _MASKED.items()}
_ALL = re.compile(r"\"?\$\{(?P<name>\w+)\[[@*]\]\}\"?")


def of_file(path: Path) -> tuple[Subject, ...]:
    """Return the subjects of a script, or of a requirements file (*.txt, *.in). Raises RM310 where it is no text."""
    if path.suffix in (".txt", ".in"):
        return (_of_requirements(path),)
    return tuple(_of_script(path))


def _of_requirements(path: Path) -> Subject:
    """Return a requirements file as what pip is asked for: a command a line, with the index that the file names."""
    written = read_text(path).splitlines()
    rows = [re.sub(r"(?:^|\s)#.*", "", row).split(" --hash")[0].strip(" \\") for row in written]
    options = " ".join(row for row in rows if row.startswith("-"))
    wanted = [(number, row) for number, row in enumerate(rows, 1) if row and not row.startswith("-")]
    commands = tuple(
        Command(text=f"pip install {options} {shlex.quote(row.replace(' ', ''))}", where=f"{path}:{number}")
        for number, row in wanted
    )
    pairs = tuple(pair for command in commands for pair in installed(command.text, command.where))
    places = [(row, f"{path}:{number}") for number, row in wanted]
    notes = [note for row, place in places for note in requirement.of_requirement(row, place)]
    notes += [note for row, place in places for note in requirement.of_one_machine(row, place)][:1]
    index = next(
        (number for number, row in enumerate(rows, 1) if re.match(r"-i\b|--(?:extra-)?index-url\b|--pre ", row)), None
    )
    where = f"{path}:{index}" if index is not None else None
    return Subject(name=str(path), commands=commands, pairs=pairs, notes=tuple(notes), where=where)


def _of_script(path: Path) -> Iterator[Subject]:
    """Yield the script itself, and every container that it starts."""
    known = _constants(read_text(path))
    commands = tuple(_resolved(command, known) for command in _lines(path))
    rows = tuple(row for command in commands for row in assigned(command))
    pairs = tuple(pair for command in commands for pair in installed(command.text, command.where))
    notes = tuple(slurm.findings(read_text(path), str(path)))
    compiles = any(COMPILES.search(command.text) for command in commands)
    yield Subject(
        name=str(path), variables=rows, commands=commands, pairs=pairs, compiles=compiles, notes=notes
    )  # fmt: skip
    for command in commands:
        yield from launches(command, str(path))


def _constants(script: str) -> dict[str, str]:
    """Return variables and arrays that a script sets once, or begins once and appends to; of others none is certain."""
    text = "\n".join(line.text for line in lines(script)) + "\n"
    found: dict[str, str] = {}
    set_again: set[str] = set()
    for match in _SET.finditer(text):
        name = match["name"] + ("[@]" if match["array"] is not None else "")
        value = match["array"] if match["array"] is not None else match["value"].strip("\"'")
        if match["more"] and name in found:
            found[name] = f"{found[name]} {value}" if match["array"] is not None else found[name] + value
        else:
            set_again |= {name} & found.keys()
            found[name] = value
    return {name: value for name, value in found.items() if name not in set_again and "$(" not in value and value}


def _resolved(command: Command, known: dict[str, str]) -> Command:
    """Return a command with what a script has set put in, arrays included; what sets a variable stays as it is."""
    if _SET.match(command.text + "\n"):
        return command
    text = _ALL.sub(lambda match: known.get(f"{match['name']}[@]", match[0]), command.text)
    return Command(
        text=substituted(text, {name: value for name, value in known.items() if "[" not in name}), where=command.where
    )


def assigned(command: Command) -> Iterator[Assignment]:
    """Yield what a line sets: alone, by export, or in front of a command; a default stands for what the shell lacks."""
    for words in parts(command.text):
        rest = words[1:] if words and words[0] in ("export", "env", "declare", "exec") else words
        for word in rest:
            match = _EXPORT.fullmatch(word)
            if match is None and not word.startswith("-"):
                break
            if match is not None:
                value = substituted(match["value"], {})
                yield Assignment(name=match["name"], value=value, where=command.where)


def launches(command: Command, name: str) -> Iterator[Subject]:
    """Yield every container that a command line starts.

    Args:
        name: the file's name, for messages.
    """
    for part in parts(command.text):
        launch = of_command(part, command.where)
        if launch is not None:
            given = tuple(Assignment(name=n, value=v, where=command.where) for n, v in launch.variables)
            yield Subject(name=f"{name} {launch.image}", variables=given, image=launch.image, launch=launch)


def parts(text: str) -> Iterator[list[str]]:
    """Yield the words of each command in a line of shell; what $(...) or backticks stand for is part of a word."""
    text = _SUBSTITUTION.sub(lambda match: match[0].translate(_MASKED), text)
    try:
        words = shlex.split(text, comments=True)
    except ValueError:
        words = text.split()
    part: list[str] = []
    for word in words:
        if word in SEPARATORS:
            yield part
            part = []
        else:
            part.append(word.translate(_UNMASKED))
    yield part


def _lines(path: Path) -> Iterator[Command]:
    for line in lines(read_text(path)):
        yield Command(text=line.text, where=f"{path}:{line.number}")


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of shell with what continues it, and its number."""

    text: str
    number: int


def lines(script: str) -> Iterator[Line]:
    """Yield a script's lines, each with what a backslash continues; comments are left out."""
    text, start = "", 0
    for number, row in enumerate(script.splitlines(), 1):
        start = start or number
        text += row.rstrip("\\") if row.endswith("\\") else row
        if row.endswith("\\"):
            text += " "
            continue
        if text.strip() and not text.lstrip().startswith("#"):
            yield Line(text=text.strip(), number=start)
        text, start = "", 0

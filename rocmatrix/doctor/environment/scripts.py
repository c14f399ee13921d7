"""What people write besides Dockerfiles and compose files: shell and Slurm scripts, and requirements files."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rocmatrix.doctor.environment.dockerfile import COMPILES, installed, read_text, substituted
from rocmatrix.doctor.environment.launch import of_command
from rocmatrix.doctor.environment.lint_input import Assignment, Command, Subject
from rocmatrix.doctor.environment.packages import folders, requirement
from rocmatrix.doctor.environment.shell import heredocs, names, profiles, slurm, words

_EXPORT = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?P<value>.*)", re.DOTALL)
# a variable or an array that is set or appended to, on a line of its own
_SET = re.compile(
    r"^[ \t]*(?:(?:export|local|readonly|declare(?: -\w+)?)[ \t]+)?(?P<name>[A-Za-z_]\w*)(?P<more>\+?)="
    r"(?:\((?P<array>[^()]{0,4000})\)|(?P<value>\"[^\"\n]{0,4000}\"|'[^'\n]{0,4000}'|[^\s;&|()]{0,4000}))"
    r"[ \t]*(?=[;\n]|#|&&)",
    re.MULTILINE,
)
_BRANCH = re.compile(r"^\s*(?:else|elif)\b", re.MULTILINE)
_DEFAULT = re.compile(r"\$\{(?P<name>\w+):?-(?P<value>[^{}]*)\}")
_MOST = 50  # options of a list; each of its lines is read with all of them
_STARTS = re.compile(r"docker|podman|nerdctl")
_WHOLE = re.compile(r"\$\{?(?P<name>[A-Za-z_]\w*)(?::?-[^{}]*)?\}?")
_ALL = re.compile(r"\"?\$\{(?P<name>\w+)\[[@*]\]\}\"?")


def of_file(path: Path) -> tuple[Subject, ...]:
    """Return the subjects of a script, or of a requirements file (*.txt, *.in). Raises RM310 where it is no text."""
    if path.suffix in (".txt", ".in"):
        return of_requirements(path)
    return tuple(_of_script(path))


def of_requirements(path: Path) -> tuple[Subject, ...]:
    """Return a requirements file as what pip is asked for: a command a line, with the index that the file names."""
    written = read_text(path).splitlines()
    rows = [re.sub(r"(?:^|\s)#.*", "", row).split(" --hash")[0].strip(" \\") for row in written]
    options = " ".join(list(dict.fromkeys(row for row in rows if row.startswith("-")))[:_MOST])
    requirements = [(number, row) for number, row in enumerate(rows, 1) if row and not row.startswith("-")]
    commands = tuple(
        Command(text=f"pip install {options} {shlex.quote(row.replace(' ', ''))}", where=f"{path}:{number}")
        for number, row in requirements
    )
    pairs = tuple(pair for command in commands for pair in installed(command.text, command.where))
    places = [(row, f"{path}:{number}") for number, row in requirements]
    notes = [note for row, place in places for note in requirement.of_requirement(row, place)]
    notes += [note for row, place in places for note in requirement.of_one_machine(row, place)][:1]
    notes += requirement.of_wheels(places)
    options_at = [Command(text=row, where=f"{path}:{n}") for n, row in enumerate(rows, 1) if row.startswith("-")]
    notes += [note for one in options_at for note in folders.of_text(one)]
    index = next(
        (number for number, row in enumerate(rows, 1) if re.match(r"-i\b|--(?:extra-)?index-url\b|--pre ", row)), None
    )
    where = f"{path}:{index}" if index is not None else None
    return (Subject(name=str(path), commands=commands, pairs=pairs, notes=tuple(notes), where=where),)


def _of_script(path: Path) -> Iterator[Subject]:
    """Yield the script itself, and every container that it starts."""
    text = read_text(path)
    own = heredocs.without_other_texts(text)
    known = _constants(own)
    commands = tuple(
        _resolved(Command(text=line.text, where=f"{path}:{line.number}", rows=line.rows), known)
        for line in words.lines(own)
    )
    rows = tuple(row for command in commands for row in (*assigned(command), *profiles.appended(command)))
    pairs = tuple(pair for command in commands for pair in installed(command.text, command.where))
    notes = (*slurm.findings(text, str(path)), *names.nearly_set(text, str(path)))
    compiles = any(COMPILES.search(command.text) for command in commands)
    yield Subject(
        name=str(path), variables=rows, commands=commands, pairs=pairs, compiles=compiles, notes=notes
    )  # fmt: skip
    for command in commands:
        for one in launches(command, str(path)):
            yield one
            yield from _chosen(one, own, str(path))


def _chosen(started: Subject, script: str, path: str) -> Iterator[Subject]:
    """Yield the images of ROCm that a script puts into the variable it starts a container from, one of which counts.

    Args:
        started: the container.
        script: the script's own text.
        path: its file, for places.
    """
    name = _WHOLE.fullmatch(started.image or "")
    for line in words.lines(script) if name else ():
        for match in _SET.finditer(line.text.lstrip() + "\n"):
            value = (match["value"] or "").strip("\"'")
            if name and match["name"] == name["name"] and "rocm" in value and "$" not in value:
                yield Subject(name=f"{path} {value}", image=value, where=f"{path}:{line.number}")


def _constants(script: str) -> dict[str, str]:
    """Return variables and arrays that a script sets once, or begins once and appends to; of others none is certain."""
    text = "\n".join(line.text for line in words.lines(script)) + "\n"
    found: dict[str, str] = {}
    set_again: set[str] = set()
    begun: dict[str, int] = {}
    for match in _SET.finditer(text):
        name = match["name"] + ("[@]" if match["array"] is not None else "")
        value = match["array"] if match["array"] is not None else match["value"].strip("\"'")
        default = _DEFAULT.fullmatch(value)
        value = default["value"] if default and default["name"] == name else value  # unless the caller has set it
        if match["more"] and name in found and _BRANCH.search(text, begun[name], match.start()):
            set_again.add(name)  # it is one of several that a condition chooses from
        elif match["more"] and name in found:
            found[name] = f"{found[name]} {value}" if match["array"] is not None else found[name] + value
        else:
            set_again |= {name} & found.keys()
            found[name] = value
            begun[name] = match.end()
    return {name: value for name, value in found.items() if name not in set_again and "$(" not in value and value}


def _resolved(command: Command, known: dict[str, str]) -> Command:
    """Return a command with what a script has set put in, arrays included; what sets a variable stays as it is."""
    if _SET.match(command.text + "\n"):
        return command
    text = _ALL.sub(lambda match: known.get(f"{match['name']}[@]", match[0]), command.text)
    return replace(command, text=substituted(text, {name: value for name, value in known.items() if "[" not in name}))


def assigned(command: Command) -> Iterator[Assignment]:
    """Yield what a line sets: alone, by export, or in front of a command; a default stands for what the shell lacks."""
    for part in words.parts(command.text, "="):
        rest = part[1:] if part and part[0] in ("export", "env", "declare", "exec") else part
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
    for part in words.parts(command.text) if _STARTS.search(command.text) else ():
        launch = of_command(part, command.where)
        if launch is not None:
            given = tuple(Assignment(name=n, value=v, where=command.where) for n, v in launch.variables)
            yield Subject(
                name=f"{name} {launch.image}", variables=given, image=launch.image, launch=launch, where=command.where,
                compiles=_for_work(part, launch.image),
            )  # fmt: skip


def _for_work(argv: list[str], image: str) -> bool:
    """Return whether a container is started for its shell, in which its user may compile."""
    at = argv.index(image) if image in argv else len(argv)
    interactive = any(word == "--interactive" or re.fullmatch(r"-[dt]*i[dt]*", word) for word in argv[:at])
    return interactive and all(re.search(r"(?:^|/)(?:ba|z)?sh$|^-l$", word) for word in argv[at + 1 :])

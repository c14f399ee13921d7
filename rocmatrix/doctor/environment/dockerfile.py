"""A Dockerfile as subjects, one for each stage: what it sets, runs and installs. dockerfile-parse reads the lines."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from rocmatrix.doctor.environment.files import instructions, named_requirements
from rocmatrix.doctor.environment.intent import means_amd
from rocmatrix.doctor.environment.lint_input import Assignment, Command, FileFinding, Pair, Subject
from rocmatrix.doctor.environment.shell import build_arguments, instruction_lines, quotes, texts
from rocmatrix.doctor.environment.shell.words import parts
from rocmatrix.runtime.errors import RocmatrixError

# PyTorch's own index of a ROCm version, on its host or on a mirror; nightlies are another matter
INDEX = re.compile(r"/whl/(?:test/)?rocm(\d{1,3}(?:\.\d{1,3}){0,2})/?$")
_REFERENCE = re.compile(r"\$(?:\{(?P<name>\w+)(?::?-(?P<default>[^{}]*))?\}|(?P<plain>[A-Za-z_]\w*))")
_MASK = chr(0xE0FF)  # a character of private use
_NESTED = 4  # as deep as a default within a default is replaced
_LONGEST = 4096  # characters of a value that is put into others, else a few lines grow to gigabytes
# indexes of AMD's own builds and other makers' mirrors: of other pairs than PyTorch's
_OTHER_INDEX = re.compile(r"https?://(?!pypi\.|files\.python|download\.pytorch\.org/whl/?$)[\w.-]+/")
HEREDOC = re.compile(r"<<-?[\"']?(\w+)[\"']?")
# what is built from source, in a stage or in one that builds on it (ONBUILD)
COMPILES = re.compile(
    r"setup\.py|\bcmake\b|bdist_wheel|--no-build-isolation|-m build\b|\bninja\b|\bmake\b|hipcc|install\.sh|git\+https|"
    r"pip[\d.]* (?:install|wheel) (?:-\S+ )*(?:-e )?\.{1,2}(?:[/\[\s\"']|$)|--no-binary|git clone"
)
_FOR_AMD = ("copied-image-moves", "cuda-architectures")  # notes that another maker's image is no place for
_TEXT: ContextVar[tuple[Path, str] | None] = ContextVar("text in place of a file's", default=None)
RUNS = ("RUN", "CMD", "ENTRYPOINT", "ONBUILD")
OPTIONS = ("-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--default-index", "--index")


@dataclass(kw_only=True)
class _Stage:
    """A stage while it is read. `arguments` are ARGs, of which a run sees nothing."""

    name: str
    variables: dict[str, Assignment] = field(default_factory=dict)
    arguments: dict[str, str] = field(default_factory=dict)
    commands: list[Command] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)
    inherited: Pair | None = None
    image: str | None = None
    where: str | None = None
    user: str | None = None
    inherits: bool = False
    copied: bool = False
    notes: dict[str, FileFinding] = field(default_factory=dict)

    @property
    def known(self) -> dict[str, str]:
        """What a line may refer to; ENV wins over ARG, as the engine has it."""
        return self.arguments | {name: row.value for name, row in self.variables.items()}

    @property
    def pair(self) -> Pair | None:
        """The torch of the stage: its own, or that of the stage it builds on."""
        return self.pairs[0] if self.pairs else self.inherited


def of_dockerfile(path: Path) -> tuple[Subject, ...]:
    """Return the stages of a Dockerfile. Raises RM310 where it cannot be read, RM311 where a line has no meaning."""
    text = read_text(path)
    stages: list[_Stage] = []
    defaults: dict[str, str] = {}
    divided = list(instruction_lines.unknown(text, str(path)))
    lines = text.splitlines()
    for row in _instructions(instruction_lines.without_gaps(text)):
        where = f"{path}:{row['startline'] + 1}"
        divided += quotes.of_argument(_words_of_argument(row, where), where)
        if row["instruction"] == "FROM":
            # an argument without a default is the caller's to give
            value = substituted(row["value"], {name: held for name, held in defaults.items() if held})
            stages.append(_stage(value, stages, path))
            stages[-1].where = where
            for note in instructions.other_processor(value, where):
                stages[-1].notes[note.what] = note
        elif not stages:
            defaults |= _arguments(row, where)
        else:
            _take(stages[-1], row, where, lines, defaults, str(path))
    if not stages:
        raise RocmatrixError("RM311", what="there is no FROM in it", where=str(path))
    stages[0].notes |= {note.where: note for note in divided}
    for stage in stages[:-1]:
        number = stages.index(stage)
        if stage.name == f"{path} stage {number}" and not re.search(rf"\bfrom=[\"']?{number}\b", text):
            stage.notes |= {
                note.rule: note for note in instructions.unused(stage.image or "", stage.where or str(path))
            }
    compiles = any(COMPILES.search(command.text) for stage in stages for command in stage.commands)
    return tuple(_subject(stage, compiles=compiles) for stage in stages)


@contextmanager
def with_text(path: Path, text: str) -> Iterator[None]:
    """Read `text` in place of the file's own, as for a file that a script writes."""
    token = _TEXT.set((path, text))
    try:
        yield
    finally:
        _TEXT.reset(token)


def read_text(path: Path) -> str:
    """Return a file's text, without a byte order mark. Raises RM310 where it is missing or no text."""
    held = _TEXT.get()
    if held is not None and held[0] == path:
        return held[1]
    try:
        return texts.of_file(path)
    except (OSError, ValueError) as error:  # ValueError: no text, too much, or a name with a NUL
        advice = "Name a file of text that can be read, in UTF-8."
        raise RocmatrixError(
            "RM310", what="the file cannot be read", where=str(path), why=str(error), next=advice
        ) from error


def installed(command: str, where: str) -> Iterator[Pair]:
    """Yield the torch that pip (or uv pip) is asked for in a shell command, with the ROCm of the index it names."""
    for part in parts(command, "install"):
        if "install" in part and any(re.fullmatch(r"(.*/)?(pip[\d.]*|uv)", word) for word in part):
            yield from _torch_of_install(part[part.index("install") + 1 :], where)


def _torch_of_install(argv: Sequence[str], where: str) -> Iterator[Pair]:
    index = next((match[1] for word in argv if (match := INDEX.search(word.partition("=")[2] or word))), None)
    others = index is None and any(_OTHER_INDEX.search(word) for word in argv)
    for word in argv:
        try:
            requirement = Requirement(word)
        except InvalidRequirement:
            continue
        if requirement.name.lower() != "torch" or others:
            continue
        if re.search(r"\+rocm[\d.]+(?:\.(?:git|lw)|a\d)", str(requirement.specifier)):
            continue  # AMD's own build, of other pairs than PyTorch's index
        if re.search(r"\.dev\d", str(requirement.specifier)):
            continue  # a nightly build, of which no list is kept
        exact = re.search(r"\+rocm(\d+(?:\.\d+)*)", str(requirement.specifier))
        rocm = index or (exact[1] if exact else None)
        if rocm is not None:
            yield Pair(torch=re.sub(r"\+[\w.]+", "", str(requirement.specifier)), rocm=rocm, where=where)


def _instructions(text: str) -> Iterator[dict[str, Any]]:
    """Yield the instructions with their lines; the body of a heredoc belongs to the instruction that opens it."""
    from dockerfile_parse import DockerfileParser

    opened: dict[str, Any] | None = None
    ending = ""
    for row in DockerfileParser(fileobj=BytesIO(text.encode())).structure:
        if opened is not None:
            if row["content"].strip() == ending:
                yield opened
                opened = None
            else:
                opened["value"] += f" ; {row['content'].strip()}"
                opened["endline"] = row["endline"]
            continue
        if row["instruction"] == "COMMENT":
            continue
        mark = HEREDOC.search(row["value"] or "") if row["instruction"] in ("RUN", "COPY") else None
        if mark is None:
            yield row
        else:
            opened, ending = row, mark[1]
    if opened is not None:
        yield opened


def _stage(value: str, stages: Sequence[_Stage], path: Path) -> _Stage:
    words = [word for word in value.split() if not word.startswith("--")]
    alias = words[2] if len(words) > 2 and words[1].upper() == "AS" else None
    words = [word.strip("\"'") for word in words]
    base = next((stage for stage in stages if words and stage.name.endswith(f" stage {words[0]}")), None)
    name = f"{path} stage {alias or len(stages)}"
    # a stage built on another has its variables, which were judged there, and its arguments
    variables, arguments = (dict(base.variables), dict(base.arguments)) if base else ({}, {})
    image = base.image if base else (words[0] if words else None)
    user = base.user if base else None
    return _Stage(
        name=name, variables=variables, arguments=arguments, image=image, user=user,
        inherited=base.pair if base else None, inherits=base is not None, copied=base is not None and base.copied,
    )  # fmt: skip


def _take(
    stage: _Stage, row: dict[str, Any], where: str, lines: Sequence[str], defaults: dict[str, str], path: str
) -> None:
    instruction = row["instruction"]
    if instruction == "ARG":
        declared = _arguments(row, where)
        # one without a value is the caller's to give, and stays a name
        stage.arguments |= {name: value or defaults.get(name) or f"${{{name}}}" for name, value in declared.items()}
        for note in build_arguments.of_cuda(stage.arguments, where):
            stage.notes.setdefault(note.rule, note)
    elif instruction in ("COPY", "ADD"):
        stage.copied = stage.copied or "--from=" not in (row["value"] or "")
        for note in instructions.copied(substituted(row["value"] or "", stage.known), where):
            stage.notes.setdefault(note.what, note)
    elif instruction == "USER":
        stage.user = substituted(row["value"] or "", stage.known)
    elif instruction == "ENV":
        places = _words_at(lines, row["startline"], row["endline"])
        for name, value in _pairs(row, where, stage):
            line = places.get(name, row["startline"])
            stage.variables[name] = Assignment(name=name, value=value, where=f"{path}:{line + 1}")
    elif instruction in RUNS:
        text = substituted(_shell_form(row["value"] or ""), stage.known)
        own = Command(text=text, where=where, rows=tuple(lines[row["startline"] : row["endline"] + 1]))
        # without a COPY the file is one that the image holds already, such as that of a clone
        named = named_requirements.commands(text, where, Path(path)) if stage.copied else ()
        for note in instructions.not_root(stage.image if stage.user is None else None, text, where):
            stage.notes.setdefault(note.rule, note)
        for command in (own, *named):
            stage.commands.append(command)
            stage.pairs += installed(command.text, where)
        absent = defaults.keys() - stage.known.keys() if instruction == "RUN" else set()
        for note in build_arguments.outside_stage(own, absent):
            stage.notes.setdefault(note.what, note)


def _words_at(lines: Sequence[str], first: int, last: int) -> dict[str, int]:
    """Return the words of some lines, each with the line where it comes first, counted from 0."""
    found: dict[str, int] = {}
    for number in range(first, last + 1):
        for word in re.findall(r"\w+", lines[number]):
            found.setdefault(word, number)
    return found


def _shell_form(value: str) -> str:
    """Return the words of an instruction in exec form, ["a", "b"], as one line."""
    try:
        words = json.loads(value)
    except ValueError:
        return value
    return shlex.join(map(str, words)) if isinstance(words, list) else value


def _pairs(row: dict[str, Any], where: str, stage: _Stage) -> list[tuple[str, str]]:
    from dockerfile_parse.util import extract_key_values

    try:
        text = _SINGLE.sub(
            lambda part: part[0] if part[0][0] == "'" else substituted(part[0], stage.known), row["value"]
        )
        found = extract_key_values(env_replace=False, args={}, envs={}, instruction_value=text)
    except (ValueError, IndexError) as error:
        raise RocmatrixError("RM311", what=f"ENV {row['value']}", where=where, why=str(error)) from error
    return [(str(name), str(value)) for name, value in found]


# what is in single quotes is taken as it is written
_SINGLE = re.compile(r"'[^'\n]*'|[^']+|'")


def _arguments(row: dict[str, Any], where: str) -> dict[str, str]:
    return {name: value for name, _, value in (word.partition("=") for word in _words_of_argument(row, where))}


def _words_of_argument(row: dict[str, Any], where: str) -> list[str]:
    """Return what an ARG declares; of another instruction nothing."""
    try:
        return shlex.split(row["value"] or "") if row["instruction"] == "ARG" else []
    except ValueError as error:
        raise RocmatrixError("RM311", what=f"ARG {row['value']}", where=where, why=str(error)) from error


def substituted(text: str, known: dict[str, str]) -> str:
    """Return `text` with $NAME, ${NAME} and ${NAME:-default} replaced; a name that is not known stays."""

    def value(match: re.Match[str]) -> str:
        name = match["name"] or match["plain"]
        if len(known.get(name, "")) > _LONGEST:
            return match[0]
        if match["default"] is None:
            found = known.get(name, match[0])
            # PATH=$PATH:/a names itself; put in once more with each round, a few such lines would fill the memory
            own = name in known and any(name in (one["name"], one["plain"]) for one in _REFERENCE.finditer(found))
            return found.replace("$", _MASK) if own else found
        found = known.get(name, "")
        return match["default"] if not found or found.startswith(f"${{{name}") else found

    for _ in range(_NESTED):  # the innermost first: ${A:-${B}}
        filled = _REFERENCE.sub(value, text)
        if filled == text or len(filled) > 16 * _LONGEST:
            break
        text = filled
    return text.replace(_MASK, "$")


def _subject(stage: _Stage, *, compiles: bool) -> Subject:
    first = stage.pair
    exact = re.fullmatch(r"==(\d+(?:\.\d+)*)", first.torch) if first else None
    subject = Subject(
        name=stage.name,
        variables=tuple(stage.variables.values()),
        commands=tuple(stage.commands),
        pairs=tuple(stage.pairs),
        torch=exact[1] if exact else None,
        rocm=first.rocm if first else None,
        image=stage.image,
        where=stage.where,
        compiles=compiles,
        user=stage.user,
        inherits=stage.inherits,
    )
    kept = (note for note in stage.notes.values() if note.rule not in _FOR_AMD or means_amd(subject))
    return replace(subject, notes=tuple(kept))

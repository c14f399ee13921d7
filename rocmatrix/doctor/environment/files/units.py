"""Files of one start each: env files, units of Podman (Quadlet) and systemd, development containers."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from rocmatrix.doctor.environment import compose
from rocmatrix.doctor.environment.dockerfile import read_text
from rocmatrix.doctor.environment.launch import Launch, of_command
from rocmatrix.doctor.environment.lint_input import Assignment, FileFinding, Subject
from rocmatrix.doctor.environment.shell.words import parts
from rocmatrix.runtime.errors import RocmatrixError

_ROW = re.compile(r"^\s*(?P<key>[A-Z]\w*)\s*=\s*(?P<value>.*?)\s*$")
_SECTION = re.compile(r"^\s*\[([^\]\n]+)\]\s*$", re.MULTILINE)
_KNOWN_SECTIONS = frozenset(("Container", "Service", "Unit", "Manager"))
_NAMES_ROCM = re.compile(r"(?<![a-z])rocm")
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(r",(\s*[}\]])")


def of_env(path: Path) -> tuple[Subject, ...]:
    """Return the variables of an env file. Raises RM310 where it cannot be read, RM311 at a line without meaning."""
    rows = tuple(compose.env_file(path))
    return (Subject(name=str(path), variables=rows, notes=tuple(_set_twice(rows))),)


def _set_twice(rows: tuple[Assignment, ...]) -> Iterator[FileFinding]:
    """Yield variables that are given again with another value, at the later place."""
    first: dict[str, Assignment] = {}
    for row in rows:
        before = first.setdefault(row.name, row)
        extends = re.search(rf"\$\{{?{re.escape(row.name)}\b", row.value)
        if before.value != row.value and not extends:
            yield FileFinding(
                rule="set-twice", where=row.where, what=f"{row.name}, also in {before.where}",  # values may be secret
                severity="warning", truth="the later value counts; which of the two was meant is not to be seen",
                instead="one line for each variable",
            )  # fmt: skip


def of_unit(path: Path) -> tuple[Subject, ...]:
    """Return what a unit of Podman (.container) or systemd starts; a file without sections is one of environment.d.

    Raises:
        RocmatrixError: RM310 where it cannot be read, RM311 where it is another program's.
    """
    text = read_text(path)
    sections = set(_SECTION.findall(text))
    if not sections:
        return of_env(path)
    if not sections & _KNOWN_SECTIONS:
        raise RocmatrixError("RM311", what="it has none of the sections of a unit", where=str(path))
    rows = [(number, row["key"], row["value"]) for number, row in _rows(text)]
    variables = tuple(
        Assignment(name=name, value=value, where=f"{path}:{number}")
        for number, key, text in rows
        if key == "Environment"
        for name, _, value in (word.partition("=") for word in _words(text))
    )
    repeated = tuple(_set_twice(variables))
    image = next((text for _, key, text in rows if key == "Image"), None)
    if image is not None:
        launch = _quadlet(rows, image, variables, path)
        return (
            Subject(
                name=str(path), variables=variables, image=image, where=launch.where, launch=launch, notes=repeated
            ),
        )  # fmt: skip
    return (Subject(name=str(path), variables=variables, notes=repeated), *_started(rows, path))


def _rows(text: str) -> Iterator[tuple[int, re.Match[str]]]:
    """Yield the settings of a unit with their lines; a backslash continues a line, over comments between them."""
    held, begin = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith(("#", ";")):
            continue
        begin = begin or number
        held += line.removesuffix("\\")
        if line.endswith("\\"):
            held += " "
            continue
        if row := _ROW.match(held):
            yield begin, row
        held, begin = "", 0
    if row := _ROW.match(held):
        yield begin, row


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _quadlet(rows: list[tuple[int, str, str]], image: str, variables: tuple[Assignment, ...], path: Path) -> Launch:
    def values(key: str) -> tuple[str, ...]:
        return tuple(text for _, name, text in rows if name == key and text)

    number = next(number for number, key, _ in rows if key == "Image")
    nodes = (text.split(":")[0].removeprefix("-") for text in values("AddDevice"))
    extra = of_command(["podman", "run", *_words(" ".join(values("PodmanArgs"))), image], "")
    return Launch(
        image=image,
        where=f"{path}:{number}",
        devices=(*nodes, *(extra.devices if extra else ())),
        groups=(*values("GroupAdd"), *(extra.groups if extra else ())),
        fixed_groups=tuple(text for text in values("GroupAdd") if text.isdecimal()),
        shared_memory=next(iter(values("ShmSize")), extra.shared_memory if extra else None),
        ipc=extra.ipc if extra else None,
        user=next(iter(values("User")), None),
        privileged=bool(extra and extra.privileged),
        variables=tuple((row.name, row.value) for row in variables),
        runner="podman",
        rootful=_rootful(path, values("WantedBy")),
        lines=tuple((text.split(":")[0].removeprefix("-"), f"{path}:{line}") for line, _, text in rows),
    )  # fmt: skip


def _rootful(path: Path, targets_of: tuple[str, ...]) -> bool | None:
    """Return whether root starts a Quadlet: by its folder or the target that wants it; None where it is unknown."""
    folder = path.absolute().parent.as_posix() + "/"
    if re.search(r"/\.config/containers/|/containers/systemd/users/", folder):
        return False
    targets = set(" ".join(targets_of).split())
    if re.search(r"/(?:etc|usr/share|run)/containers/systemd/", folder) or "multi-user.target" in targets:
        return True
    return False if "default.target" in targets else None


def _started(rows: list[tuple[int, str, str]], path: Path) -> Iterator[Subject]:
    owner = next((text for _, key, text in rows if key == "User"), "root")
    system = any(key == "WantedBy" and "multi-user.target" in text for _, key, text in rows)
    for number, key, text in rows:
        if key.startswith("Exec"):
            for words in parts(text.lstrip("-@:+!")):
                launch = of_command(words, f"{path}:{number}")
                if launch is not None:
                    launch = replace(launch, rootful=owner == "root" and (system or launch.rootful))
                    given = tuple(Assignment(name=n, value=v, where=launch.where) for n, v in launch.variables)
                    yield Subject(
                        name=f"{path} {launch.image}", variables=given, image=launch.image, where=launch.where,
                        launch=launch,
                    )  # fmt: skip


def of_devcontainer(path: Path) -> tuple[Subject, ...]:
    """Return what a development container is started with. Raises RM310 where it cannot be read, RM311 where its form
    is none."""
    text = read_text(path)
    plain = _LAST_COMMA.sub(r"\1", _COMMENT.sub(lambda row: row[1] or "", text))
    try:
        content: Any = json.loads(plain)
    except ValueError as error:
        raise RocmatrixError("RM311", what=f"no JSON: {error}", where=str(path)) from error
    if not isinstance(content, dict):
        raise RocmatrixError("RM311", what="no object", where=str(path))
    where = f"{path}:{_line(text, 'runArgs')}"
    variables = tuple(
        Assignment(name=str(name), value=str(value), where=f"{path}:{_line(text, str(name))}")
        for key in ("containerEnv", "remoteEnv")
        for name, value in _entries(content.get(key))
    )
    image = str(content.get("image") or "development container")
    launch, for_amd = _launch(content, image, where), _is_for_rocm(content)
    words = [str(word) for word in content.get("runArgs") or []]
    lines = tuple((word.partition("=")[2] or word, f"{path}:{_line(text, word)}") for word in words)
    launch = replace(launch, lines=lines) if launch is not None else None
    notes = tuple(_without_devices(launch, where)) if for_amd and launch is not None else ()
    notes += tuple(_of_one_machine(content, path, text))
    return (
        Subject(
            name=str(path), variables=variables, image=image, where=where, launch=launch, for_amd=for_amd, notes=notes,
            compiles=True,
        ),
    )  # fmt: skip


def _launch(content: dict[str, Any], image: str, where: str) -> Launch | None:
    """Return how the container is started; None where a compose file states it, and runArgs is not used."""
    if "dockerComposeFile" in content:
        return None
    arguments = [str(word) for word in content.get("runArgs") or [] if isinstance(word, str)]
    privileged = ["--privileged"] if content.get("privileged") is True else []
    return of_command(["docker", "run", *privileged, *arguments, image], where)


def _is_for_rocm(content: dict[str, Any]) -> bool:
    """Return whether the container's image, or what is built, installed or set in it, names ROCm."""
    made_of = content.get("image") or [content.get("name"), content.get("build"), content.get("dockerFile")]
    features, variables = (list(dict(_entries(content.get(key)))) for key in ("features", "containerEnv"))
    return _NAMES_ROCM.search(json.dumps([made_of, features, variables]).lower()) is not None


def _entries(node: Any) -> list[tuple[Any, Any]]:
    return list(node.items()) if isinstance(node, dict) else []


def _without_devices(launch: Launch, where: str) -> Iterator[FileFinding]:
    if not launch.devices and not launch.privileged:
        yield FileFinding(
            rule="no-devices-given", where=where, what=" ".join(("runArgs", launch.image)), severity="error",
            truth="a container for ROCm that is given neither /dev/kfd nor /dev/dri finds no card",
            instead='"runArgs": ["--device=/dev/kfd", "--device=/dev/dri", "--group-add=video", "--group-add=render"]',
        )  # fmt: skip


def _of_one_machine(content: dict[str, Any], path: Path, text: str) -> Iterator[FileFinding]:
    build = content.get("build")
    file = build.get("dockerfile") if isinstance(build, dict) else content.get("dockerFile")
    if isinstance(file, str) and re.match(r"/(?:home|Users|root|mnt|media)/", file):
        yield FileFinding(
            rule="path-of-one-machine", where=f"{path}:{_line(text, 'dockerfile')}", what=file, severity="warning",
            truth="the folder is that of one user on one machine; paths are relative to the folder of this file",
            instead="Dockerfile, or ../ and the folder within the checkout",
        )  # fmt: skip


def _line(text: str, word: str) -> int:
    return text[: max(0, text.find(f'"{word}"'))].count("\n") + 1

"""Playbooks, roles and task files of Ansible as subjects: what their tasks run, install, set and start.

What a template puts in stays a variable; those that the play itself sets to a text are put in.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import yaml

from rocmatrix.doctor.environment.dockerfile import COMPILES, installed, substituted
from rocmatrix.doctor.environment.files.manifests import documents, items, line_of, members, text, variables_of
from rocmatrix.doctor.environment.launch import of_command
from rocmatrix.doctor.environment.lint_input import Assignment, Command, Subject
from rocmatrix.doctor.environment.scripts import launches
from rocmatrix.doctor.environment.shell.words import lines

_LISTS = ("tasks", "pre_tasks", "post_tasks", "handlers", "block", "rescue", "always")
_SHELLS = ("shell", "command", "raw", "script")
_OF_TASKS = frozenset((*_SHELLS, "pip", "apt", "dnf", "yum", "package", "user", "docker_container", "podman_container"))
_PLAY = frozenset(("hosts", "import_playbook"))
_TEMPLATE = re.compile(r"\{\{\s*(?P<name>[A-Za-z_]\w*)\s*\}\}")
_EXPRESSION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_CONTAINERS = ("docker_container", "podman_container")
# options of a container that a list gives, by the name of the module's setting
_LISTED = {"devices": "--device", "device": "--device", "groups": "--group-add", "group_add": "--group-add",
           "security_opts": "--security-opt", "security_opt": "--security-opt", "volumes": "-v"}  # fmt: skip
_SINGLE = {"ipc_mode": "--ipc", "ipc": "--ipc", "shm_size": "--shm-size", "user": "--user", "runtime": "--runtime"}


def is_ansible(root: yaml.Node) -> bool:
    """Return whether a document is a list of plays or of tasks."""
    rows = [items(row) for row in members(root)]
    names = {name.rpartition(".")[2] for row in rows for name in row}
    return bool(names & _PLAY) or (any("name" in row for row in rows) and bool(names & _OF_TASKS))


def of_tasks(path: Path) -> tuple[Subject, ...]:
    """Return what the tasks of a file run, as one subject, and every container they start. Raises RM310, RM311."""
    roots = documents(path)
    plays = [items(row) for root in roots for row in members(root)]
    known = {name: text(node) for play in plays for name, node in items(play.get("vars")).items() if text(node)}
    tasks = [task for root in roots for task in _tasks(root)]
    commands = tuple(one for task in tasks for one in _commands(path, task, known))
    given = [row for held in (*plays, *tasks) for row in variables_of(path, held.get("environment"))]
    variables = tuple(
        {(row.name, row.where): Assignment(name=row.name, value=_plain(row.value, known), where=row.where)
         for row in given}.values()
    )  # fmt: skip
    started = tuple(one for task in tasks for one in _containers(path, task, known))
    started += tuple(one for command in commands for one in launches(command, str(path)))
    return (
        Subject(
            name=str(path), variables=variables, commands=commands,
            pairs=tuple(pair for one in commands for pair in installed(one.text, one.where)),
            compiles=any(COMPILES.search(one.text) for one in commands),
        ),
        *started,
    )  # fmt: skip


def _tasks(root: yaml.Node) -> Iterator[Mapping[str, yaml.Node]]:
    """Yield the tasks below a list of plays or tasks, those of blocks among them."""
    left, seen = list(reversed(members(root))), set[int]()
    while left:
        node = left.pop()
        if id(node) in seen:  # an alias
            continue
        seen.add(id(node))
        own = items(node)
        yield own
        left += [row for key in reversed(_LISTS) for row in reversed(members(own.get(key)))]


def _module(task: Mapping[str, yaml.Node], names: Sequence[str]) -> yaml.Node | None:
    """Return what one of some modules is given in a task; None where it calls none of them."""
    return next((node for name, node in task.items() if name.rpartition(".")[2] in names), None)


def _plain(value: str, known: Mapping[str, str]) -> str:
    """Return a text in which templates are variables of a shell, and those that are known their values."""
    named = _TEMPLATE.sub(r"${\g<name>}", value)
    return substituted(_EXPRESSION.sub("${_}", named), {name: _TEMPLATE.sub("", row) for name, row in known.items()})


def _commands(path: Path, task: Mapping[str, yaml.Node], known: Mapping[str, str]) -> Iterator[Command]:
    node = _module(task, _SHELLS)
    if node is not None:
        held = items(node).get("cmd", node)
        first = held.start_mark.line + (1 if getattr(held, "style", None) in ("|", ">") else 0)
        for line in lines(_plain(text(held), known)):
            yield Command(text=line.text, where=f"{path}:{first + line.number}", rows=line.rows)
    for names, words in ((("pip",), "pip install"), (("apt", "dnf", "yum", "package"), "apt-get install -y")):
        given = items(_module(task, names))
        listed = next((given[key] for key in ("name", "pkg", "deb") if key in given), None)
        if listed is not None:
            packages = [text(row) for row in members(listed)] or text(listed).split(",")
            options = text(given.get("extra_args")) if names == ("pip",) else ""
            quoted = " ".join(shlex.quote(row.strip()) for row in packages)
            yield Command(text=_plain(f"{words} {options} {quoted}", known), where=line_of(path, listed))


def _containers(path: Path, task: Mapping[str, yaml.Node], known: Mapping[str, str]) -> Iterator[Subject]:
    given = items(_module(task, _CONTAINERS))
    if "image" not in given or text(given.get("state")) in ("absent", "stopped"):
        return
    words = ["docker" if _module(task, _CONTAINERS[:1]) is not None else "podman", "run"]
    for key, option in _LISTED.items():
        words += [word for row in members(given.get(key)) for word in (option, _plain(text(row), known))]
    words += [word for key, option in _SINGLE.items() if key in given for word in (option, text(given[key]))]
    words += ["--privileged"] if text(given.get("privileged")).lower() in ("true", "yes") else []
    image, where = _plain(text(given["image"]), known), line_of(path, given["image"])
    variables = tuple(row for key in ("env", "environment") for row in variables_of(path, given.get(key)))
    launch = of_command([*words, *(f"--env={row.name}={row.value}" for row in variables), image], where)
    yield Subject(name=f"{path} {image}", variables=variables, image=image, launch=launch, where=where)

"""A compose file as subjects, one for each service: its environment, env files and command lines.

PyYAML reads it, for the line of every variable; `docker compose config` would give values without lines. Variables
of the shell are put in as compose does it. What compose itself refuses is RM311.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from rocmatrix.doctor.environment.dockerfile import installed, of_dockerfile, read_text, substituted
from rocmatrix.doctor.environment.files import settings
from rocmatrix.doctor.environment.launch import Launch
from rocmatrix.doctor.environment.lint_input import Assignment, Command, FileFinding, Subject
from rocmatrix.matrix.matrix import Matrix
from rocmatrix.runtime.errors import RocmatrixError


def of_compose(path: Path, *, shell: Mapping[str, str], matrix: Matrix | None = None) -> tuple[Subject, ...]:
    """Return the services of a compose file. Raises RM310 where a file cannot be read, RM311 where it is not compose.

    `shell` gives the values of ${NAME}, after those of .env next to the file. A service whose image is a cell of
    `matrix` is judged as that cell.

    Args:
        path: the compose file.
        shell: variables of the shell by name.
    """
    text = read_text(path)
    try:
        roots = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError) as error:
        what = "it is nested too deeply" if isinstance(error, RecursionError) else " ".join(str(error).split())
        raise RocmatrixError("RM311", what=what, where=str(path)) from error
    services = [node for root in roots if isinstance(node := _items(root).get("services"), yaml.MappingNode)]
    if not services:
        raise RocmatrixError("RM311", what="it has no services", where=str(path))
    env_path = path.parent / ".env"
    known = {row.name: row.value for row in env_file(env_path)} if env_path.is_file() else {}
    known |= shell
    rows = [row for each in services for row in _items(each).items()]
    bases = (base for name, node in rows for base in _bases(name, node, path, known))
    return (*(_service(name, node, path, known, matrix) for name, node in rows), *bases)


def _bases(name: str, node: yaml.Node, path: Path, shell: Mapping[str, str]) -> Iterator[Subject]:
    """Yield images of ROCm that a service gives to its build as arguments."""
    arguments = _items(_items(node).get("build")).get("args")
    rows = list(_items(arguments).values())
    rows += arguments.value if isinstance(arguments, yaml.SequenceNode) else []
    for row in rows:
        image = _interpolated(str(row.value), shell).rpartition("=")[2] if isinstance(row, yaml.ScalarNode) else ""
        if re.fullmatch(r"(?:docker\.io/)?rocm/[\w.-]+(?::[\w.-]+)?", image):
            yield Subject(name=f"{path} service {name}", image=image, where=_where(path, row))


def env_file(path: Path) -> Iterator[Assignment]:
    """Yield the variables of an env file. Raises RM310 where it cannot be read, RM311 at a line without meaning."""
    from io import StringIO

    from dotenv.parser import parse_stream

    for row in parse_stream(StringIO(read_text(path))):
        # what has been skipped as blank or comment stands before the variable, in the same piece of text
        line = (
            row.original.line + len(row.original.string[: _offset(row.original.string)].splitlines()) if row.key else 0
        )
        where = f"{path}:{line or row.original.line}"
        if row.error:
            raise RocmatrixError("RM311", what=row.original.string.strip(), where=where)
        if row.key is not None:
            yield Assignment(name=row.key, value=row.value or "", where=where)


def _offset(text: str) -> int:
    return len(text) - len(text.lstrip())


def _service(name: str, node: yaml.Node, path: Path, shell: Mapping[str, str], matrix: Matrix | None) -> Subject:
    parts = _items(node)
    rows: dict[str, Assignment] = {}
    notes: list[FileFinding] = []
    for file in _env_files(parts.get("env_file"), path, shell):
        if os.path.exists(file):  # noqa: PTH110 -- Path.exists raises for a name that is too long
            rows |= {row.name: row for row in env_file(file)}
        else:
            notes.append(_absent(file, _where(path, parts["env_file"])))
    rows |= {row.name: row for row in _environment(parts.get("environment"), path, shell)}
    lines = [parts[key] for key in ("entrypoint", "command") if key in parts]
    commands = [_command(line, path, shell) for line in lines]
    image = _scalar(parts["image"], path) if "image" in parts else ""
    built = _built(parts.get("build"), path, shell)
    cell = next((c for c in matrix.cells if image.endswith(f":{c.name}")), None) if matrix else None
    launch = _launch(parts, path, _interpolated(image, shell), rows, shell, _where(path, node))
    return Subject(
        name=f"{path} service {name}",
        variables=tuple(rows.values()),
        commands=tuple(commands),
        pairs=tuple(pair for command in commands for pair in installed(command.text, command.where)),
        architectures=(cell.architecture,) if cell and cell.architecture else (),
        torch=cell.release.torch if cell else None,
        rocm=cell.release.rocm if cell else None,
        # the image of a service that is built is the name it gets, so it says nothing of what is in it
        image=built.image if built else _interpolated(image, shell) or None if "build" not in parts else None,
        where=_where(path, parts["image"]) if "image" in parts else _where(path, node),
        launch=launch,
        user=built.user if built else None,
        notes=(*notes, *settings.of_service(parts, launch)),
    )


def _built(node: yaml.Node | None, path: Path, shell: Mapping[str, str]) -> Subject | None:
    """Return the stage that a service is built from; None where no Dockerfile that can be read is next to the file."""
    if node is None:
        return None
    rows = _items(node) if isinstance(node, yaml.MappingNode) else {"context": node}
    words = {key: _interpolated(str(row.value), shell) for key, row in rows.items() if isinstance(row, yaml.ScalarNode)}
    file = path.parent / words.get("context", ".") / words.get("dockerfile", "Dockerfile")
    try:
        stages = of_dockerfile(file)
    except (RocmatrixError, ValueError):
        return None
    target = words.get("target", "")
    return next((stage for stage in stages if target and stage.name.endswith(f" stage {target}")), stages[-1])


def _drivers(parts: Mapping[str, yaml.Node], shell: Mapping[str, str]) -> Iterator[tuple[str, yaml.Node]]:
    """Yield the drivers that reserve cards for a service, and the runtime of a maker of cards where it is named."""
    reserved = _items(_items(_items(parts.get("deploy")).get("resources")).get("reservations")).get("devices")
    for row in reserved.value if isinstance(reserved, yaml.SequenceNode) else []:
        driver = _items(row).get("driver")
        if isinstance(driver, yaml.ScalarNode) and "$" not in (name := _interpolated(driver.value, shell)):
            yield name, driver
    runtime = parts.get("runtime")
    if isinstance(runtime, yaml.ScalarNode) and runtime.value in ("nvidia", "amd"):
        yield runtime.value, runtime


def _absent(file: Path, where: str) -> FileFinding:
    """Return the note on an env file that is not here, as in a checkout that leaves it out."""
    return FileFinding(
        rule="env-file-absent", where=where, what=str(file), severity="note",
        truth="this env file is not here, so its variables were not examined; the engine refuses to start without it",
        instead="make it from its example, then examine the file again",
    )  # fmt: skip


def _launch(
    parts: Mapping[str, yaml.Node], path: Path, image: str, rows: Mapping[str, Assignment], shell: Mapping[str, str],
    where: str,
) -> Launch:  # fmt: skip
    """Return how a service is started; words that are no list of texts are left out."""
    drivers = tuple(_drivers(parts, shell))
    single = {key: node.value for key, node in parts.items() if isinstance(node, yaml.ScalarNode)}
    return Launch(
        image=image,
        where=where,
        devices=tuple(text.split(":")[0] for text in _of_host(parts.get("devices"))),
        groups=tuple(_interpolated(text, shell) for text in _texts(parts.get("group_add"))),
        fixed_groups=tuple(text for text in _texts(parts.get("group_add")) if text.isdecimal()),
        groups_at=_where(path, parts["group_add"]) if "group_add" in parts else None,
        volumes=_of_host(parts.get("volumes")),
        platform=single.get("platform"),
        drivers=tuple(name for name, _ in drivers),
        drivers_at=_where(path, drivers[0][1]) if drivers else None,
        shared_memory=single.get("shm_size"),
        gpus=single.get("gpus"),
        ipc=single.get("ipc"),
        user=_interpolated(single["user"], shell) if single.get("user") else None,
        privileged=str(single.get("privileged", "")).lower() == "true",
        partial=bool({"extends", "device_cgroup_rules"} & parts.keys()),
        variables=tuple((row.name, row.value) for row in rows.values()),
        lines=tuple(_lines(parts, path)),
    )


def _lines(parts: Mapping[str, yaml.Node], path: Path) -> Iterator[tuple[str, str]]:
    """Yield the settings of a service, and what their lists give of the host, with their lines."""
    for key, node in parts.items():
        yield key, _where(path, node)
        for row in node.value if isinstance(node, yaml.SequenceNode) else []:
            named = row if isinstance(row, yaml.ScalarNode) else _items(row).get("source")
            if isinstance(named, yaml.ScalarNode):
                yield str(named.value).split(":")[0], _where(path, row)


def _of_host(node: yaml.Node | None) -> tuple[str, ...]:
    """Return what is given of the host, in the short form (a text) or the long one (a map with its source)."""
    rows = node.value if isinstance(node, yaml.SequenceNode) else []
    named = (row if isinstance(row, yaml.ScalarNode) else _items(row).get("source") for row in rows)
    return tuple(str(row.value) for row in named if isinstance(row, yaml.ScalarNode))


def _texts(node: yaml.Node | None) -> tuple[str, ...]:
    rows = node.value if isinstance(node, yaml.SequenceNode) else []
    return tuple(str(row.value) for row in rows if isinstance(row, yaml.ScalarNode))


def _environment(node: yaml.Node | None, path: Path, shell: Mapping[str, str]) -> Iterator[Assignment]:
    """Yield the variables of a service: a map, or a list of NAME=value. A bare name takes the shell's value."""
    if isinstance(node, yaml.SequenceNode):
        for row in node.value:
            name, sign, text = _scalar(row, path).partition("=")
            yield from _assigned(name, text if sign else None, _where(path, row), shell)
    else:
        for name, value_node in _items(node).items():
            bare = value_node.tag.endswith(":null")
            value = None if bare else _scalar(value_node, path)
            yield from _assigned(name, value, _where(path, value_node), shell)


def _assigned(name: str, value: str | None, where: str, shell: Mapping[str, str]) -> Iterator[Assignment]:
    found = shell.get(name) if value is None else _interpolated(value, shell)
    if found is not None:
        yield Assignment(name=name.strip(), value=found, where=where)


def _env_files(node: yaml.Node | None, path: Path, shell: Mapping[str, str]) -> Iterator[Path]:
    """Yield the env files of a service: a path, or a list of paths and of maps with `path` and `required`."""
    rows = node.value if isinstance(node, yaml.SequenceNode) else [node] if node is not None else []
    for row in rows:
        entry = _items(row) if isinstance(row, yaml.MappingNode) else {"path": row}
        if "path" not in entry:
            raise RocmatrixError("RM311", what="an env file without a path", where=_where(path, row))
        file = path.parent / _interpolated(_scalar(entry["path"], path), shell)
        optional = "required" in entry and _scalar(entry["required"], path).lower() == "false"
        if os.path.exists(file) or not optional:  # noqa: PTH110 -- Path.exists raises for a name that is too long
            yield file


def _command(node: yaml.Node, path: Path, shell: Mapping[str, str]) -> Command:
    rows = node.value if isinstance(node, yaml.SequenceNode) else [node]
    words = [_scalar(row, path) for row in rows]
    return Command(text=_interpolated(" ".join(words), shell), where=_where(path, node))


def _interpolated(text: str, shell: Mapping[str, str]) -> str:
    return "$".join(substituted(part, dict(shell)) for part in text.split("$$"))


def _items(node: yaml.Node | None) -> dict[str, yaml.Node]:
    """Return a mapping's entries; those merged in by << come first, so that its own win."""
    layers: list[dict[str, yaml.Node]] = []
    left, seen = [node], set[int]()
    while left:
        each = left.pop()
        if not isinstance(each, yaml.MappingNode) or id(each) in seen:  # what was merged before wins over it again
            continue
        seen.add(id(each))
        layers.append({str(key.value): value for key, value in each.value if _is_name(key)})
        left += reversed(
            [source for key, value in each.value if key.tag.endswith(":merge") for source in _sources(value)]
        )
    return {name: value for layer in reversed(layers) for name, value in layer.items()}


def _is_name(key: yaml.Node) -> bool:
    return isinstance(key, yaml.ScalarNode) and not key.tag.endswith(":merge")


def _sources(node: yaml.Node) -> list[yaml.Node]:
    return list(node.value) if isinstance(node, yaml.SequenceNode) else [node]


def _scalar(node: yaml.Node, path: Path) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise RocmatrixError("RM311", what="a list or a map stands where a text belongs", where=_where(path, node))
    return str(node.value)


def _where(path: Path, node: yaml.Node) -> str:
    return f"{path}:{node.start_mark.line + 1}"

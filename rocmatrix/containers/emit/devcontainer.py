"""A run spec as devcontainer.json: the cell's image as the base of a place to work in, opened by an editor.

Reasons stand next to what they explain: the format is JSON with comments (containers.dev, devcontainer.json
reference). What the editor itself needs differs from a run: see `LEFT_OUT`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rocmatrix.containers.emit import podman
from rocmatrix.containers.emit.parts import refuse_portable
from rocmatrix.containers.emit.target import Target
from rocmatrix.containers.least_privilege import RUN_FOLDER
from rocmatrix.containers.runspec import Explanation, RunSpec, explained
from rocmatrix.containers.settings import Environment, Init, Mount, ReadOnlyRoot, Tmpfs, User
from rocmatrix.runtime.errors import RocmatrixError

HEAD = (
    "Made by `./invokew devcontainer` for one host: device nodes, numeric groups and the user's number are its own.",
    "Make it anew on another machine, or after the cards changed; it is not meant to be committed.",
)
FORMAT = "containers.dev, devcontainer.json reference"
WORKSPACE = "${containerWorkspaceFolder}"
# What an editor replaces in every text of the file, and for which the format has no escape (devcontainers/cli,
# src/spec-common/variableSubstitution.ts); any other ${name} stays as it is.
REPLACED = re.compile(
    r"\$\{(?:(?:local|container)Env|env|localHomeFolder|(?:local|container)WorkspaceFolder(?:Basename)?|devcontainerId)[:}]"
)
ROOT_INSIDE = "root"  # what a rootless engine takes its own user for
HOME = "/home/developer"
PYTHON = f"{HOME}/venv/bin/python"
EXTENSIONS = (
    "ms-python.python",
    "charliermarsh.ruff",
    "ms-python.mypy-type-checker",
    "redhat.vscode-yaml",
    "tamasfe.even-better-toml",
)
LEFT_OUT = (
    ("--read-only", "the editor installs its server and extensions into the home folder", FORMAT),
    ("--tmpfs", "/tmp stays on the container's disk, where programs may be built and run", FORMAT),
    ("hostRequirements.gpu", "editors look for NVIDIA's runtime behind it, and add --gpus", "devcontainers/spec#82"),
    ("--privileged", "the device nodes and their groups suffice", FORMAT),
    ("updateRemoteUserUID", "the user is made with the right number, so no image is rewritten at each start", FORMAT),
)


@dataclass(frozen=True, kw_only=True)
class Commented:
    """A value with a comment before it."""

    note: str
    value: Any


def devcontainer_json(spec: RunSpec, *, engine: str = "docker") -> str:
    """Return the text of devcontainer.json. The spec's command is what proves the container once it is made.

    Raises ValueError for a portable spec: an editor has no variables for numeric groups; RM414 for text of the caller's
    that an editor would replace.

    Args:
        engine: "docker", or "podman" where an editor calls one that is run by a user.
    """
    refuse_portable(spec)
    _require_literal(spec)
    return "".join(f"// {line}\n" for line in HEAD) + written(document(spec, engine=engine)) + "\n"


def document(spec: RunSpec, *, engine: str = "docker") -> dict[str, Any]:
    """Return devcontainer.json as data, in which `Commented` values carry comments.

    Args:
        engine: "docker", or "podman" where an editor calls one that is run by a user.
    """
    (user,) = spec.of(User)
    uid, gid = user.value.split(":")
    name = ROOT_INSIDE if uid == "0" else "developer"
    smoke = [*([spec.entrypoint] if spec.entrypoint else []), *spec.command]
    return {
        "name": f"rocmatrix {spec.cell}",
        "build": {
            "dockerfile": "Dockerfile",
            "args": {
                "CELL_IMAGE": spec.image,
                "DEVELOPER_NAME": name,
                "DEVELOPER_UID": uid,
                "DEVELOPER_GID": gid,
            },
        },
        "remoteUser": Commented(note=f"{user.reason} (devcontainers/spec#479)", value=name) if uid == "0" else name,
        "updateRemoteUserUID": Commented(note="the Dockerfile makes the user with the number of the host", value=False),
        "init": Commented(note=_comment(*[explained(s) for s in spec.of(Init)]), value=True),
        "runArgs": [Commented(note=_comment(row), value=row.option) for row in _arguments(spec, engine)],
        "mounts": list(_mounts(spec, uid)),
        "containerEnv": dict(_environment(spec)),
        "postCreateCommand": Commented(note="proves the card, BLAS and AMP in this very container", value=smoke),
        "customizations": {"vscode": {"extensions": list(EXTENSIONS), "settings": _editor()}},
    }


def _require_literal(spec: RunSpec) -> None:
    mounts = spec.of(Mount)
    paths = (path for mount in mounts for path in (mount.origin, mount.target))
    for text in (spec.image, spec.entrypoint or "", *spec.command, *paths):
        if REPLACED.search(text):
            raise RocmatrixError("RM414", what=f"an editor would put another text in the place of {text!r}")


def devcontainer_rows(spec: RunSpec, *, engine: str = "docker") -> tuple[Explanation, ...]:
    """Return every argument with its reason, then what was left out and why.

    Args:
        engine: "docker", or "podman" where an editor calls one that is run by a user.
    """
    environment = (explained(row) for row in _own_environment(spec))
    left_out = (Explanation(flag=flag, value=None, reason=why, source=source) for flag, why, source in LEFT_OUT)
    return (*_arguments(spec, engine), *environment, *left_out)


def _arguments(spec: RunSpec, engine: str) -> tuple[Explanation, ...]:
    elsewhere = (User, Init, Mount, Environment, ReadOnlyRoot, Tmpfs)
    own = [setting for setting in spec.settings if not isinstance(setting, elsewhere)]
    return podman.editor_rows(own) if engine == "podman" else tuple(explained(setting) for setting in own)


def _mounts(spec: RunSpec, uid: str) -> Iterator[Commented | str]:
    for mount in spec.of(Mount):
        if mount.target != RUN_FOLDER:  # results are written below the workspace, which the editor mounts
            yield Commented(note=_comment(explained(mount)), value=mount.value)
    pip = f"type=volume,source=rocmatrix-pip-{uid},target={HOME}/.cache/pip"
    yield Commented(note="pip's downloads outlive the container", value=pip)


def _environment(spec: RunSpec) -> Iterator[tuple[str, Any]]:
    for row in _own_environment(spec):
        yield row.name, Commented(note=_comment(explained(row)), value=_content(row))
    trainer = "the checkout's trainer, as it is edited, wins over the one in the image"
    yield "PYTHONPATH", Commented(note=trainer, value=f"{WORKSPACE}:/opt/rocmatrix")


def _content(row: Environment) -> str:
    """Return a variable's content, or how the editor takes it from the shell that it was started in."""
    return f"${{localEnv:{row.name}}}" if row.passed else row.content


def _own_environment(spec: RunSpec) -> tuple[Environment, ...]:
    named_by_image = ("HOME", "USER")  # the Dockerfile makes a user with a name and a home
    return tuple(row for row in spec.of(Environment) if row.name not in named_by_image)


def _editor() -> dict[str, Any]:
    schemas = {"./matrix.schema.json": "matrix.yaml"}
    return {"python.defaultInterpreterPath": PYTHON, "yaml.schemas": schemas}


def _comment(*rows: Explanation) -> str:
    return "; ".join(f"{row.reason} ({row.source})" for row in rows)


def written(value: Any, indent: int = 0) -> str:
    """Return `value` as JSON with comments, each on a line of its own before what it is about."""
    inner = " " * (indent + 2)
    if isinstance(value, dict) and value:
        lines = [(item, f"{json.dumps(key)}: ") for key, item in value.items()]
        return "{\n" + ",\n".join(_line(item, head, indent + 2) for item, head in lines) + f"\n{inner[2:]}}}"
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(_line(item, "", indent + 2) for item in value) + f"\n{inner[2:]}]"
    return json.dumps(value, ensure_ascii=False)


def _line(item: Any, head: str, indent: int) -> str:
    space = " " * indent
    note, value = (f"{space}// {item.note}\n", item.value) if isinstance(item, Commented) else ("", item)
    return f"{note}{space}{head}{written(value, indent)}"


TARGETS: Mapping[str, Target] = {
    "devcontainer": Target(
        about="devcontainer.json; `./invokew devcontainer` writes it with its Dockerfile",
        text=lambda spec, host: devcontainer_json(spec, engine=host.editor_engine),
        rows=lambda spec, host: devcontainer_rows(spec, engine=host.editor_engine),
        for_editor=True,
    )
}

"""The folder .devcontainer/: a cell's image as the base of a development container, made for one host and user."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from rocmatrix.containers import engine
from rocmatrix.containers.emit import devcontainer
from rocmatrix.containers.runspec import RunSpec
from rocmatrix.host.hardware import Hardware
from rocmatrix.jobs import job, programs
from rocmatrix.jobs.programs import SMOKE
from rocmatrix.matrix.matrix import Cell
from rocmatrix.matrix.resolver.resolve import Request
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.paths import TEMPLATES

FOLDER = ".devcontainer"
FEATURES = frozenset({"network"})  # the editor fetches its server and extensions
DOCKERFILE = TEMPLATES / "devcontainer" / "Dockerfile"


def user_of(requested: str | None, *, environment: Mapping[str, str] = os.environ) -> str:
    """Return the numeric "uid:gid" of who will work in it: as asked, else this user. Raises RM412 for root."""
    own = f"{os.getuid()}:{os.getgid()}"
    if requested is None and own.startswith("0:") and environment.get("SUDO_UID", "0") != "0":
        own = f"{environment['SUDO_UID']}:{environment['SUDO_GID']}"
    user = requested or own
    uid, _, gid = user.partition(":")
    if not (uid.isascii() and uid.isdigit() and gid.isascii() and gid.isdigit()):
        raise RocmatrixError("RM404", what=f"--user takes numbers such as 1000:1000, not {user!r}")
    if int(uid) == 0:
        raise RocmatrixError("RM412", what="the user would be root" if requested else "this is run by root")
    return user


def rootless_engine() -> Literal["docker", "podman"] | None:
    """Return which engine an editor would call, where it runs as this user; None for one that runs as root.

    An editor calls podman without a service: it is returned where its command is installed and docker's is not, or
    only calls podman (Fedora's podman-docker).
    """
    docker = shutil.which("docker")
    if (docker is None or _is_podman(Path(docker))) and shutil.which("podman") is not None:
        return "podman" if os.geteuid() != 0 else None
    return engine.rootless_kind()


def _is_podman(command: Path) -> bool:
    """Return whether a command is podman by another name: a link to it, or a script of some lines that calls it."""
    if command.resolve().name == "podman":
        return True
    try:
        with command.open("rb") as file:
            begun = file.read(4096)
    except OSError:
        return False
    return begun.startswith(b"#!") and b"podman" in begun


def smoke_argv(cell: Cell, hardware: Hardware, request: Request) -> list[str]:
    """Return the command that proves the container once it is made: the probes that this host's cards allow."""
    job_request = job.JobRequest(program=SMOKE, request=request, where="container", options={})
    options, _ = job.probes_for(job_request, cell=cell, hardware=hardware)
    arguments = [*programs.flags(options), *programs.provenance(SMOKE, cell=cell, image=None)]
    return ["python", "-P", "-m", "trainer", SMOKE.name, *arguments]


def files(spec: RunSpec, *, called: str = "docker") -> dict[str, str]:
    """Return the folder's files as {name: text}. The spec's command is what runs once the container is made.

    Args:
        called: "docker", or "podman" where an editor calls one that is run by a user.
    """
    return {
        "devcontainer.json": devcontainer.devcontainer_json(spec, engine=called),
        "Dockerfile": DOCKERFILE.read_text(encoding="utf-8"),
    }


def write(folder: Path, texts: Mapping[str, str]) -> None:
    """Write the files. Raises RM413 for a devcontainer.json that rocmatrix did not create."""
    there = folder / "devcontainer.json"
    if there.exists() and not there.read_text(encoding="utf-8", errors="replace").startswith(
        f"// {devcontainer.HEAD[0]}"
    ):
        raise RocmatrixError("RM413", what="devcontainer.json was not made by this program", where=str(there))
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")

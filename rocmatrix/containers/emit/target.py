"""The targets that a run spec can be said to, by the names that `--for` takes.

A target is its text and its rows: what is handed to the engine, and each part of it with reason and source.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rocmatrix.containers.emit import cdi, compose, devcontainer, docker, podman
from rocmatrix.containers.runspec import Explanation, RunSpec, explain, left_out
from rocmatrix.host.hardware import Hardware
from rocmatrix.runtime.errors import RocmatrixError, suggestion


@dataclass(frozen=True, kw_only=True)
class Host:
    """What of a host an emitter needs to know next to the spec. `rootless`: the person is not root."""

    hardware: Hardware
    rootless: bool = False
    selinux: bool = False


@dataclass(frozen=True, kw_only=True)
class Target:
    """A way to run: the text that is handed on, and what explains it."""

    about: str
    text: Callable[[RunSpec, Host], str]
    rows: Callable[[RunSpec, Host], tuple[Explanation, ...]]


def _plain(spec: RunSpec, _: Host) -> tuple[Explanation, ...]:
    return explain(spec)


def _docker_rows(spec: RunSpec, _: Host) -> tuple[Explanation, ...]:
    return (*docker.docker_rows(spec), *left_out(spec.features))


def _sdk(spec: RunSpec, _: Host) -> str:
    return json.dumps(docker.docker_sdk_arguments(spec), indent=2) + "\n"


def _podman_text(spec: RunSpec, host: Host) -> str:
    return shlex.join(podman.podman_run_argv(spec, rootless=host.rootless, selinux=host.selinux)) + "\n"


def _podman_rows(spec: RunSpec, host: Host) -> tuple[Explanation, ...]:
    return (*podman.podman_rows(spec, rootless=host.rootless, selinux=host.selinux), *left_out(spec.features))


TARGETS: Mapping[str, Target] = {
    "docker": Target(
        about="a `docker run` command",
        text=lambda s, _: shlex.join(docker.docker_run_argv(s)) + "\n",
        rows=_docker_rows,
    ),
    "docker-sdk": Target(about="arguments of Docker's Python SDK", text=_sdk, rows=_plain),
    "compose": Target(about="a compose file", text=lambda s, _: compose.compose_file(s), rows=_plain),
    "podman": Target(about="a `podman run` command", text=_podman_text, rows=_podman_rows),
    "cdi": Target(
        about="a CDI specification of this host's cards",
        text=lambda _, host: cdi.cdi_file(host.hardware),
        rows=lambda _, host: cdi.cdi_rows(host.hardware),
    ),
    "devcontainer": Target(
        about="devcontainer.json; `./invokew devcontainer` writes it with its Dockerfile",
        text=lambda s, _: devcontainer.devcontainer_json(s),
        rows=lambda s, _: devcontainer.devcontainer_rows(s),
    ),
}

# What is said of the host alone; a spec is not looked at.
HOST_ALONE = frozenset({"cdi"})
NO_SPEC = RunSpec(cell="none", image="none", command=(), settings=())


def target(name: str) -> Target:
    """Return a target. Raises RM404 for an unknown one, naming the nearest."""
    if name not in TARGETS:
        raise RocmatrixError("RM404", what=f"--for takes no {name!r}", why=suggestion(name, TARGETS))
    return TARGETS[name]

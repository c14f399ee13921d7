"""A run spec for the Docker engine: the command line, and the arguments of its SDK, which make the same container."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any, assert_never

from rocmatrix.containers import settings
from rocmatrix.containers.emit.parts import merged, refuse_portable
from rocmatrix.containers.emit.target import Host, Target
from rocmatrix.containers.runspec import Explanation, RunSpec, entrypoint_rows, explained, left_out
from rocmatrix.runtime.errors import RocmatrixError

MANUAL = "docs.docker.com/reference/cli/docker/container/run"
# What the command line needs beside the spec, of docker and of podman alike.
OWN_ROWS = (
    Explanation(
        flag="--rm", value="", reason="nothing of a run stays but its folder and caches", source=f"{MANUAL}#rm"
    ),
    Explanation(
        flag="--pull",
        value="never",
        reason="an image that is not on this engine is an error: a name is never pulled from a public registry unseen",
        source=f"{MANUAL}#pull",
    ),
)


def docker_run_argv(spec: RunSpec) -> list[str]:
    """Return the command that runs `spec` and removes its container. Raises ValueError for a portable spec."""
    own = [row.option for row in OWN_ROWS]
    return ["docker", "run", *own, *docker_options(spec), spec.image, *spec.command]


def docker_options(spec: RunSpec) -> list[str]:
    """Return the settings as options of `docker run` and `docker create`, one token each."""
    refuse_portable(spec)
    return [row.option for row in (*map(explained, spec.settings), *entrypoint_rows(spec))]


def docker_rows(spec: RunSpec) -> tuple[Explanation, ...]:
    """Return every option of `docker_run_argv` with its reason and source."""
    return (*OWN_ROWS, *map(explained, spec.settings), *entrypoint_rows(spec))


def docker_sdk_arguments(spec: RunSpec) -> dict[str, Any]:
    """Return the arguments of `docker.from_env().containers.create`.

    Raises RM111 for a variable whose value is passed on, ValueError for a portable spec.

    Removing the container is left to the caller, who reads its exit status first.
    """
    refuse_portable(spec)
    arguments: dict[str, Any] = {"image": spec.image, "command": list(spec.command)}
    if spec.entrypoint:
        arguments["entrypoint"] = [spec.entrypoint]  # the SDK takes a text apart as a shell does
    return merged(arguments, (_sdk(setting) for setting in spec.settings))


def _sdk(setting: settings.Setting) -> dict[str, Any]:  # noqa: PLR0911, PLR0912 -- one line a kind
    match setting:
        case settings.User():
            return {"user": setting.value}
        case settings.Device():
            return {"devices": [setting.value]}
        case settings.CdiDevice():
            return {"device_requests": [{"Driver": "cdi", "DeviceIDs": [setting.value]}]}
        case settings.Group():
            return {"group_add": [setting.value]}
        case settings.Environment(passed=True):
            raise _would_hold_value(setting.name)
        case settings.Environment():
            return {"environment": {setting.name: setting.content}}
        case settings.Mount():
            return {"mounts": [_sdk_mount(setting)]}
        case settings.Tmpfs():
            return {"tmpfs": {setting.target: setting.options}}
        case settings.SharedMemory():
            return {"shm_size": setting.bytes}
        case settings.Limit():
            return {"ulimits": [{"Name": setting.name, "Soft": setting.soft, "Hard": setting.hard}]}
        case settings.Network():
            return {"network_mode": setting.value}
        case settings.Port():
            # as a mapping: a pair of address and port would be two bindings once it has been JSON
            published = {"HostIp": setting.address, "HostPort": str(setting.host)}
            return {"ports": {f"{setting.container}/tcp": [published]}}
        case settings.Ipc():
            return {"ipc_mode": setting.value}
        case settings.DropCapability():
            return {"cap_drop": [setting.value]}
        case settings.AddCapability():
            return {"cap_add": [setting.value]}
        case settings.SecurityOption():
            return {"security_opt": [setting.value]}
        case settings.ReadOnlyRoot():
            return {"read_only": True}
        case settings.Init():
            return {"init": True}
        case _:
            assert_never(setting)


def _would_hold_value(name: str) -> RocmatrixError:
    what = f"the arguments of Docker's SDK would hold the value of {name}"
    advice = "Take another target, such as `--for docker`, `--for compose` or `--for podman`: they hold the name alone."
    return RocmatrixError("RM111", what=what, where="--for docker-sdk", next=advice)


def _sdk_mount(mount: settings.Mount) -> dict[str, Any]:
    about = {"Type": mount.kind, "Source": mount.origin, "Target": mount.target}
    return about | ({"ReadOnly": True} if mount.read_only else {})


def _command_text(spec: RunSpec, _: Host) -> str:
    return shlex.join(docker_run_argv(spec)) + "\n"


def _command_rows(spec: RunSpec, _: Host) -> tuple[Explanation, ...]:
    return (*docker_rows(spec), *left_out(spec.features))


def _sdk_text(spec: RunSpec, _: Host) -> str:
    return json.dumps(docker_sdk_arguments(spec), indent=2) + "\n"


TARGETS: Mapping[str, Target] = {
    "docker": Target(about="a `docker run` command", text=_command_text, rows=_command_rows),
    "docker-sdk": Target(about="arguments of Docker's Python SDK", text=_sdk_text),
}

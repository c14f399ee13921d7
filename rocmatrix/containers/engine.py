"""Queries of the container engine, which is never changed here: whether it answers, and the images that it holds.

Docker's SDK sends requests to the engine; only BuildKit is reached through the command line (`rocmatrix.images.build`).
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from rocmatrix.containers import label_integrity
from rocmatrix.runtime.errors import RocmatrixError

if TYPE_CHECKING:
    import docker
    import docker.models.images

LOOPBACK_NAMES = ("localhost", "ip6-localhost", "ip6-loopback")
TIMEOUT_SECONDS = 20
WORK_SECONDS = 900  # a busy engine was seen to make a container, or send the first bytes of an export, after minutes
_NEXT_STEPS: dict[type[OSError], str] = {
    PermissionError: "this user may not open the socket; join its group (`docker`) and log in again",
    FileNotFoundError: "there is no such socket: the daemon is not running, or listens elsewhere",
    ConnectionRefusedError: "nothing listens there: the daemon is stopped",
}


@dataclass(frozen=True, kw_only=True)
class Image:
    """An image that the engine holds. `id` is its digest, `size` is in bytes as the engine counts them.

    `sealed` states whether its labels were written for its layers and settings
    (`rocmatrix.containers.label_integrity`).
    """

    id: str
    labels: dict[str, str]
    size: int
    sealed: bool = False


def connect(*, work: bool = False) -> docker.DockerClient:
    """Return a client that has had an answer. Raises RM201 with the address tried and the error there.

    An engine on another machine is refused before it is asked: runs get this machine's cards, nodes and folders.
    An engine that is there answers the first question within TIMEOUT_SECONDS; with `work`, later ones may take long.
    """
    import docker
    import docker.errors
    import requests

    _require_local()
    try:
        client = _client()
        client.ping()
    except (docker.errors.DockerException, requests.RequestException, OSError, ValueError) as error:
        raise RocmatrixError("RM201", what=_reason(error), where=address()) from error
    if work:
        client.api.timeout = WORK_SECONDS
    return client


def failures() -> tuple[type[Exception], ...]:
    """Return what calls of a client raise where the engine refuses, is gone, or breaks a connection off."""
    import docker.errors
    import requests
    import urllib3.exceptions

    return docker.errors.DockerException, requests.RequestException, urllib3.exceptions.HTTPError, OSError


def _client() -> docker.DockerClient:
    """Use the endpoint of the command line: the SDK alone reads DOCKER_HOST, but no contexts."""
    import docker

    context = None if os.environ.get("DOCKER_HOST") else _context()
    if context is None or not context.Host:
        return docker.from_env(timeout=TIMEOUT_SECONDS)
    return docker.DockerClient(
        base_url=context.Host,
        tls=context.TLSConfig or False,
        use_ssh_client=context.Host.startswith("ssh://"),
        timeout=TIMEOUT_SECONDS,
    )


def _context() -> Any:
    """Return the docker context that DOCKER_CONTEXT names, else the current one. Raises RM201 for an unknown one."""
    from docker.context import ContextAPI

    name = os.environ.get("DOCKER_CONTEXT")
    try:
        context: Any = ContextAPI.get_context(name) if name else ContextAPI.get_current_context()
    except Exception as error:  # of a file of the user's, read by the SDK: whatever it meets there
        where, step = "~/.docker, or DOCKER_CONFIG", "`docker context ls` and `docker context use default` mend it."
        raise RocmatrixError(
            "RM201", what=f"the docker context cannot be read: {error}", where=where, next=step
        ) from error
    if name and context is None:
        step = "`docker context ls` lists the contexts."
        raise RocmatrixError("RM201", what=f"there is no docker context {name!r}", where="DOCKER_CONTEXT", next=step)
    return context


def address() -> str:
    """Return where the engine is looked for: DOCKER_HOST, else DOCKER_CONTEXT, else the current docker context."""
    if host := os.environ.get("DOCKER_HOST"):
        return f"{host} (DOCKER_HOST)"
    context = _context()
    return f"{context.Host} (docker context {context.Name!r})" if context else "the default socket"


def _require_local() -> None:
    """Raise RM201 where the engine's address is another machine's."""
    context = None if os.environ.get("DOCKER_HOST") else _context()
    if on_another_machine(os.environ.get("DOCKER_HOST") or (context.Host if context else "") or ""):
        raise RocmatrixError(
            "RM201",
            what="the engine's address is not this machine's",
            where=address(),
            why="a run is given this machine's cards, device nodes and folders, which that engine does not have",
            next="Run it on that machine, in a checkout there; or take this machine's engine: "
            "`unset DOCKER_HOST DOCKER_CONTEXT` and `docker context use default`.",
        )


def on_another_machine(host: str) -> bool:
    """Return whether an address such as ssh://user@lab or tcp://10.0.0.5:2376 leads to another machine.

    Args:
        host: address of an engine as DOCKER_HOST has it; empty for the default socket.
    """
    scheme, _, rest = host.partition("://")
    if scheme.lower() not in ("ssh", "tcp", "http", "https"):
        return False
    try:
        name = (urlsplit(f"//{rest}").hostname or "localhost").rstrip(".")
    except ValueError:  # no address: the engine's client states what is wrong with it
        return False
    if name in (*LOOPBACK_NAMES, socket.gethostname().lower()) or name.endswith(".localhost"):
        return False
    try:
        found = ip_address(name)
    except ValueError:  # a name
        return True
    found = getattr(found, "ipv4_mapped", None) or found
    return not (found.is_loopback or found.is_unspecified)


def own_builder() -> str:
    """Return buildx's name of the BuildKit within the engine: the docker context's. Raises RM201."""
    context = None if os.environ.get("DOCKER_HOST") else _context()
    return str(context.Name) if context else "default"


def require_buildx() -> None:
    """Raise RM201 when docker's command line, or its buildx plugin, is not installed."""
    try:
        done = subprocess.run(["docker", "buildx", "version"], capture_output=True, text=True, check=False)
        lacking = (done.stderr.strip() or "docker has no buildx") if done.returncode else None
    except FileNotFoundError:
        lacking = "there is no `docker` command on the PATH"
    if lacking:
        raise RocmatrixError("RM201", what=lacking, next="Install docker's client and its buildx plugin.")


def obstacle() -> str | None:
    """Return in one line what stands in the way of using the engine, or return None when it answers."""
    try:
        connect().close()
    except RocmatrixError as error:
        return f"{error.where}: {error.what}"
    return None


def is_rootless() -> bool:
    """Return whether the engine runs as a user, whose own number is then a container's root. False for no answer."""
    return rootless_kind() is not None


def rootless_kind() -> Literal["docker", "podman"] | None:
    """Return which engine runs as a user; None for one that runs as root, and where none answers.

    Sources: `docker info`, SecurityOptions (docs.docker.com/engine/security/rootless), which podman's service reports
    the same way (podman#18208); by the parts of its version it is "Podman Engine".
    """
    try:
        client = connect()
    except RocmatrixError:
        return None
    try:
        if "rootless" not in security_options(client.info()):
            return None
        parts = client.version().get("Components") or ()
        return "podman" if any("podman" in str(part.get("Name", "")).lower() for part in parts) else "docker"
    except failures():
        return None
    finally:
        client.close()


def require_cards() -> None:
    """Raise RM201 where an engine that answers gives its containers no card of this machine."""
    try:
        client = connect()
    except RocmatrixError:
        return  # reported by what needs the engine first
    try:
        why, step = kept_from_cards(client.info())
    except failures():
        return
    finally:
        client.close()
    if why:
        what = "the engine's containers cannot be given a card of this machine"
        raise RocmatrixError("RM201", what=what, where=address(), why=why, next=f"{step}; or natively: --in native.")


def kept_from_cards(info: Mapping[str, Any]) -> tuple[str, str]:
    """Return why an engine's containers reach no card of this machine and what helps; empty where nothing is known.

    An engine under another kernel is in a virtual machine (Docker Desktop, Colima, podman machine), or a socket leads
    to another machine.

    Args:
        info: what the engine reports of itself, as `docker info` has it.
    """
    kernel = str(info.get("KernelVersion") or "")
    if kernel not in ("", os.uname().release):
        system = info.get("OperatingSystem") or "unnamed system"
        why = f"{system}: its containers run under another kernel ({kernel}), which has no card of this host"
        return why, "Use the engine of the host itself: docker context use default, and `unset DOCKER_HOST`"
    if "userns" in security_options(info):
        why = "with remapped users: the results belong to another user, and no group of the host opens a node"
        return why, "Remove userns-remap from daemon.json and restart the engine, or use a rootless one"
    return "", ""


def security_options(info: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of an engine's security options: seccomp, cgroupns, rootless, userns and others.

    Args:
        info: what the engine reports of itself, as `docker info` has it.
    """
    options = (str(option).partition(",")[0] for option in info.get("SecurityOptions") or ())
    return frozenset(option.removeprefix("name=") for option in options)


def image(client: docker.DockerClient, reference: str) -> Image | None:
    """Return the image behind a tag, digest or id, or None when the engine does not hold it."""
    import docker.errors

    try:
        found = client.images.get(reference)
    except docker.errors.ImageNotFound:
        return None
    return _described(found)


def obtain(client: docker.DockerClient, reference: str) -> Image:
    """Return an image, pulling it where the engine lacks it. Raises RM204 with the registry's answer."""
    import docker.errors

    if (held := image(client, reference)) is not None:
        return held
    try:
        client.images.pull(reference)
        return _described(client.images.get(reference))
    except docker.errors.DockerException as error:
        why = str(getattr(error, "explanation", None) or error)
        raise RocmatrixError("RM204", what=f"{reference} is not on this engine", why=why) from error


def sealed(client: docker.DockerClient, reference: str) -> Image | None:
    """Bind the labels of an image that was just built to its layers, and return it; None where there is none.

    Raises RM202 where the engine refuses or is gone.
    """
    try:
        if image(client, reference) is None:
            return None
        return image(client, label_integrity.put(client, reference, builder=own_builder()))
    except failures() as error:
        raise RocmatrixError("RM202", what="the image could not be sealed", where=reference, why=str(error)) from error


def image_id(reference: str) -> str:
    """Return the id of an image. Raises RM203 when the engine does not hold it, RM201 when none answers."""
    client = connect()
    try:
        held = image(client, reference)
    finally:
        client.close()
    if held is None:
        raise RocmatrixError("RM203", what=f"the engine holds no image {reference}")
    return held.id


def _described(found: docker.models.images.Image) -> Image:
    return Image(
        id=str(found.id),
        labels=dict(found.labels),
        size=int(found.attrs["Size"]),
        sealed=label_integrity.holds(found.attrs),
    )


def _reason(error: BaseException) -> str:
    """Find the operating system's error below the SDK's wrapping and add what it means here."""
    cause: BaseException | None = error
    while cause is not None:
        for kind, step in _NEXT_STEPS.items():
            if isinstance(cause, kind):
                return step
        cause = cause.__cause__ or cause.__context__
    return str(error)

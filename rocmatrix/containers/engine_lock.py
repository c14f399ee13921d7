"""Locks between checkouts that use one engine: tags are the engine's, and each checkout has a state of its own.

Kernel locks on files of this machine, so they go with their process. They keep programs of this machine apart, whatever
its user; an engine that two machines reach is not covered.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rocmatrix.containers import engine
from rocmatrix.runtime.kernel_lock import HeldError, held

if TYPE_CHECKING:
    import docker

FOLDER = Path("/tmp")  # the one place that every user of a machine can write; a TMPDIR of one's own would part them
EVERYONE = 0o777


def place(client: docker.DockerClient, name: str) -> Path:
    """Return the file of the lock on `name`, a tag, on the engine of `client`."""
    identity = str(client.info().get("ID") or "engine")
    folder = FOLDER / f"rocmatrix-engine-{''.join(c for c in identity if c.isalnum())[:32]}"
    with contextlib.suppress(OSError):
        folder.mkdir(exist_ok=True)
        folder.chmod(EVERYONE)
    return folder / f"{name.replace(':', '_').replace('/', '_')}.lock"


@contextmanager
def alone(client: docker.DockerClient, name: str, *, waiting: str = "") -> Iterator[None]:
    """Be the only one of this machine that works on `name`. Raises HeldError where another does.

    Where the engine does not answer or the lock cannot be kept, the body runs without one.

    Args:
        name: tag of an image, such as rocmatrix:NAME.
        waiting: message printed once while waiting for the lock; empty raises at once.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(*engine.failures()):
            stack.enter_context(held(place(client, name), waiting=waiting, open_to_all=True))
        yield


def is_taken(client: docker.DockerClient, name: str) -> bool:
    """Whether another program of this machine works on `name`."""
    try:
        with alone(client, name):
            return False
    except HeldError:
        return True

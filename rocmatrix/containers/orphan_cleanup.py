"""Removal of containers whose program was killed; a label on each container names the process that made it.

A program that is killed leaves its container behind, and one that runs goes on: it would hold the cards during the next
suite. Each container names the process that made it; where that is gone, so is the container at the next start.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from rocmatrix.containers import engine
from rocmatrix.runtime import process_name

if TYPE_CHECKING:
    import docker

LABEL = "org.rocmatrix.job"
LEFT_BEHIND = timedelta(minutes=10)  # an ended container of another machine's program is removed when it is this old
# One that was made and not started may be an image's export on another machine, or wait for a busy engine.
LEFT_UNSTARTED = timedelta(days=1)
ENDED = ("exited", "dead")
UNSTARTED = "created"
_BETWEEN = " | "


def label() -> dict[str, str]:
    """Return the label of a container that this process makes."""
    named = (process_name.host(), process_name.boot(), process_name.process(os.getpid()))
    return {LABEL: _BETWEEN.join(named)}


def host_of(labels: Mapping[str, str]) -> str:
    """Return the machine that the label names, empty without one."""
    return labels.get(LABEL, "").partition(" ")[0]


def is_lost(labels: Mapping[str, str]) -> bool:
    """Return whether the process that made a container ran on this host and is gone; of another host it is unknown."""
    named = _own(labels)
    return named is not None and not _is_running(named)


def _own(labels: Mapping[str, str]) -> list[str] | None:
    """Return what the label names where it is a process of this host, else None."""
    named = labels.get(LABEL, "").split(_BETWEEN)
    return named if len(named) == 3 and named[0] == process_name.host() else None


def _is_running(named: Sequence[str]) -> bool:
    return named[1] == process_name.boot() and process_name.runs(named[2])


def sweep(client: docker.DockerClient, *, keep: str = "") -> None:
    """Remove what jobs left whose program was killed: at once where it ran here, else what ended a while ago.

    What a program made that runs on this host stays, however long it takes.
    """
    now = datetime.now(UTC)
    with contextlib.suppress(*engine.failures()):
        for found in client.api.containers(all=True, filters={"label": LABEL}):
            own = _own(found.get("Labels") or {})
            going = not _is_running(own) if own else _is_old(client, found["Id"], now)
            if going and found["Id"] != keep:
                client.api.remove_container(found["Id"], force=own is not None, v=True)


def _is_old(client: docker.DockerClient, identity: str, now: datetime) -> bool:
    state = client.api.inspect_container(identity)
    status, last = state["State"]["Status"], max(state["Created"], state["State"]["FinishedAt"])
    if status == UNSTARTED:
        return bool(last < f"{now - LEFT_UNSTARTED:%Y-%m-%dT%H:%M:%S}")
    return status in ENDED and bool(last < f"{now - LEFT_BEHIND:%Y-%m-%dT%H:%M:%S}")

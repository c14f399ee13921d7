"""Who made a container: what a killed program left on the engine is found by it and removed.

A program that is killed leaves its container behind, and one that runs goes on: it would hold the cards during the next
suite. Each container names the process that made it; where that is gone, so is the container at the next start.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from rocmatrix.containers import engine
from rocmatrix.runtime import process_name

if TYPE_CHECKING:
    import docker

LABEL = "org.rocmatrix.job"
LEFT_BEHIND = timedelta(minutes=10)  # an ended container of another machine's program is removed when it is this old
ENDED = ("created", "exited", "dead")
_BETWEEN = " | "


def label() -> dict[str, str]:
    """Return the label of a container that this process makes."""
    named = (process_name.host(), process_name.boot(), process_name.process(os.getpid()))
    return {LABEL: _BETWEEN.join(named)}


def is_lost(labels: Mapping[str, str]) -> bool:
    """Whether the process that made a container ran on this host and is gone. Of another host that is unknown here."""
    named = labels.get(LABEL, "").split(_BETWEEN)
    if len(named) != 3 or named[0] != process_name.host():
        return False
    return named[1] != process_name.boot() or not process_name.runs(named[2])


def sweep(client: docker.DockerClient, *, keep: str = "") -> None:
    """Remove what jobs left whose program was killed: at once where it ran here, else what ended a while ago."""
    before = f"{datetime.now(UTC) - LEFT_BEHIND:%Y-%m-%dT%H:%M:%S}"
    with contextlib.suppress(*engine.failures()):
        for found in client.api.containers(all=True, filters={"label": LABEL}):
            lost = is_lost(found.get("Labels") or {})
            if found["Id"] != keep and (lost or _is_old(client, found["Id"], before)):
                client.api.remove_container(found["Id"], force=lost, v=True)


def _is_old(client: docker.DockerClient, identity: str, before: str) -> bool:
    state = client.api.inspect_container(identity)
    return state["State"]["Status"] in ENDED and max(state["Created"], state["State"]["FinishedAt"]) < before

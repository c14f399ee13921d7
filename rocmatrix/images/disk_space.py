"""Free space on the engine's disk while it builds, watched, for BuildKit frees what it used when it has failed."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rocmatrix.containers import engine

if TYPE_CHECKING:
    import docker

LEAST_FREE = 64 * 2**20  # bytes: with less, what failed has failed for want of room


@dataclass(kw_only=True)
class Room:
    """The least free bytes seen below `folder`; None where that is not of this machine."""

    folder: Path | None
    least: int | None = None

    def measure(self) -> None:
        """Take one sample."""
        if self.folder is not None and self.folder.is_dir():
            free = shutil.disk_usage(self.folder).free
            self.least = free if self.least is None else min(free, self.least)

    @property
    def ran_out(self) -> bool:
        """Whether there was too little at any time."""
        return self.least is not None and self.least < LEAST_FREE


def of_engine(client: docker.DockerClient) -> Room:
    """Watch the disk that holds the engine's images, where it is one of this machine."""
    try:
        root = str(client.info().get("DockerRootDir") or "")
    except engine.failures():
        root = ""
    return Room(folder=Path(root) if root else None)

"""Where a job is sent: which scheduler, what each of its nodes has, and what the site asks for."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from rocmatrix.containers.emit.cluster.kubernetes_site import Site
from rocmatrix.containers.emit.cluster.slurm_request import SlurmRequest
from rocmatrix.runtime.errors import RocmatrixError, suggestion

ENGINES = ("slurm", "kubernetes")
UNDER = ("native", "docker", "apptainer")
IMAGE_USER = "10001:10001"  # the image's own: the numbers of whoever submits belong to this machine


@dataclass(frozen=True, kw_only=True)
class Destination:
    """Where a job is sent. `cards` and `processes` are each node's; None means: as many as this machine has.

    `groups` are numeric owners of a Kubernetes node's devices, () where its runtime gives devices to the pod's user.
    `image` is what the nodes call the cell's image, `user` who a pod runs as ("uid:gid"); `checkout` and `python`
    are where a native job's nodes have them (None: where they are here). `rdma` passes the nodes' adapters.
    """

    engine: str
    nodes: int = 1
    processes: int | None = None
    cards: int | None = None
    groups: tuple[int, ...] | None = None
    user: str = IMAGE_USER
    under: str = "native"
    image: str | None = None
    checkout: str | None = None
    python: str | None = None
    rdma: bool = False
    slurm: SlurmRequest = field(default_factory=SlurmRequest)
    site: Site = field(default_factory=Site)

    def __post_init__(self) -> None:
        for flag, word, known in (("--engine", self.engine, ENGINES), ("--under", self.under, UNDER)):
            if word not in known:
                raise RocmatrixError("RM404", what=f"{flag} takes no {word!r}", why=suggestion(word, known))
        for flag, number in (("--nodes", self.nodes), ("--processes", self.processes), ("--cards", self.cards)):
            if number is not None and number < 1:
                raise RocmatrixError("RM404", what=f"{flag} takes a whole number from 1, not {number}")
        if self.cards and self.slurm.cards not in (None, self.cards):
            raise RocmatrixError("RM404", what=f"--cards says {self.cards}, Slurm's words say {self.slurm.cards}")
        if not re.fullmatch(r"\d+:\d+", self.user, re.ASCII):
            raise RocmatrixError("RM404", what=f"--user takes numbers such as 10001:10001, not {self.user!r}")

    @property
    def cards_named(self) -> int | None:
        """Cards of each node as a person said, with --cards or in Slurm's own words."""
        return self.cards or self.slurm.cards

"""Destination of a job on another machine: what is the same for every scheduler; `jobs.schedulers` has the rest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rocmatrix.containers.settings import is_legible
from rocmatrix.runtime.errors import RocmatrixError

if TYPE_CHECKING:
    from rocmatrix.host.hardware import Hardware
    from rocmatrix.jobs.job import JobRequest
    from rocmatrix.jobs.runner import Job
    from rocmatrix.matrix.matrix import Cell, Matrix

IMAGE_USER = "10001:10001"  # the image's own: the numbers of whoever submits belong to this machine


@dataclass(frozen=True, kw_only=True)
class Submission:
    """A job that is to be sent. `hardware` is this machine's; `cards` are each node's."""

    job_request: JobRequest
    matrix: Matrix
    cell: Cell
    hardware: Hardware
    cards: int


@dataclass(frozen=True, kw_only=True)
class Destination(ABC):
    """Destination of a job. `cards` and `processes` are each node's; None means: as many as this machine has.

    `image` is what the nodes call the cell's image. `rdma` passes the nodes' adapters.
    """

    nodes: int = 1
    processes: int | None = None
    cards: int | None = None
    image: str | None = None
    rdma: bool = False

    def __post_init__(self) -> None:
        for flag, number in (("--nodes", self.nodes), ("--processes", self.processes), ("--cards", self.cards)):
            if number is not None and number < 1:
                raise RocmatrixError("RM404", what=f"{flag} takes a whole number from 1, not {number}")
        if (self.image or "").startswith("-"):  # whatever runs it on a node would take it for an option
            raise RocmatrixError("RM404", what=f"--image {self.image!r} is an option and no image")

    @property
    def cards_named(self) -> int | None:
        """Cards of each node as a person named them."""
        return self.cards

    def ranks(self, cards: int) -> int:
        """Return the processes of each node: as named, else one for each card, or one."""
        return self.processes or max(1, cards)

    @staticmethod
    def readable(job: Job) -> Job:
        """Return the job. Raises ValueError for files that are no text, and for a path that kubectl would misread.

        Args:
            job: a job as files and the command that hands them over.
        """
        for word in (*job.argv, *job.files.values()):
            if not is_legible(word):
                raise ValueError("a name of this job is not text in UTF-8")
        for path in job.files:
            if "\r\n" in str(path):
                raise ValueError(f"{str(path)!r} has a line's end of Windows, which kubectl takes for another one")
        return job

    @abstractmethod
    def job(self, submission: Submission) -> Job:
        """Return the job as files and the command that hands them over."""

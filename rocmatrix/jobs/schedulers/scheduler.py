"""Schedulers: their interface, the options that all take, and the registry of those in this room."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from rocmatrix.jobs import schedulers
from rocmatrix.jobs.destination import Destination
from rocmatrix.runtime.errors import RocmatrixError, suggestion
from rocmatrix.runtime.option import option, options_of
from rocmatrix.runtime.registry import registered


@dataclass(frozen=True, kw_only=True)
class Nodes:
    """Options of nodes that every scheduler takes. Empty, or 0, means that nothing is asked for."""

    nodes: int = option("machines (default: 1)", default=1)
    processes: int = option("ranks on each node (default: one for each card, or 1)", default=0)
    cards: int = option("cards of each node (default: as many as this machine has)", default=0)
    image: str = option("the cell's image on the nodes: a tag, a digest, or a file of Apptainer", metavar="IMAGE")
    rdma: bool = option("pass the nodes' RDMA adapters, and lift the limit of locked memory", default=False)
    cpus: int = option("CPUs on each node: Slurm's --cpus-per-task, or a pod's request and limit", default=0)
    memory: str = option(
        "memory on each node: Slurm's --mem such as 64G, a pod's request and limit such as 64Gi", metavar="SIZE"
    )

    @property
    def about_nodes(self) -> dict[str, Any]:
        """The fields of a `Destination` that these options name."""
        names = ("nodes", "processes", "cards", "image", "rdma")
        return self.named(*names)

    def named(self, *names: str) -> dict[str, Any]:
        """Return what was asked for, of the options of these names."""
        defaults = options_of(type(self))
        return {name: value for name in names if (value := getattr(self, name)) != defaults[name].default}


@dataclass(frozen=True, kw_only=True)
class Scheduler:
    """A scheduler: the name that `--engine` takes, its options, and how they become a destination.

    `destination` raises ValueError for what no option takes.
    """

    name: str
    options: type[Nodes]
    destination: Callable[[Any], Destination]


@cache
def known() -> Mapping[str, Scheduler]:
    """Return the schedulers of this room by their names."""
    return {each.name: each for each in registered(schedulers, "SCHEDULER")}


def destination(engine: str, nodes: Nodes) -> Destination:
    """Return where a job goes, from options as typed. Raises RM404 for an unknown engine, and what no option takes."""
    if not engine:
        raise RocmatrixError("RM404", what="submit needs --engine", next=f"One of {', '.join(known())}.")
    if engine not in known():
        raise RocmatrixError("RM404", what=f"--engine takes no {engine!r}", why=suggestion(engine, known()))
    _refuse_foreign(engine, nodes)
    try:
        return known()[engine].destination(nodes)
    except ValueError as error:
        raise RocmatrixError("RM404", what=str(error)) from error


def _refuse_foreign(engine: str, nodes: Nodes) -> None:
    """Raise RM404 for an option that only another scheduler takes: it would be dropped unseen."""
    own = options_of(known()[engine].options)
    for name, each in options_of(type(nodes)).items():
        takers = [other.name for other in known().values() if name in options_of(other.options)]
        if takers and name not in own and getattr(nodes, name) != each.default:
            what = f"--{each.typed.replace('_', '-')} is an option of {' and '.join(takers)}, not of {engine}"
            raise RocmatrixError("RM404", what=what, next="Leave it out, or name another --engine.")

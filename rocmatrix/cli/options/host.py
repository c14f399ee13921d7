"""Options of the tasks that look at a host and at what would run on it."""

from __future__ import annotations

from dataclasses import dataclass

from rocmatrix.runtime.option import option, positional

TREE = "read the machine whose file tree starts here, such as a recording, instead of this one"


@dataclass(frozen=True, kw_only=True)
class Doctor:
    """Options of `doctor`. With none of the last four, the host is examined and its shell linted."""

    json: bool = option("print the findings as JSON, for programs", default=False)
    sysfs: str = option(TREE)
    cell: str = option("judge the host, the shell and the files as this cell will meet them, and its own variables too")
    env: bool = option("only the variables of this shell", default=False)
    compose: str = option("only the variables of a compose file, with those of its env files")
    dockerfile: str = option("only the variables and the torch of a Dockerfile")
    script: str = option("only a shell or Slurm script (with its docker run lines), or a requirements file (.txt, .in)")

    @property
    def host(self) -> bool:
        """Whether the host itself is to be examined."""
        return not (self.env or self.compose or self.dockerfile or self.script)


@dataclass(frozen=True, kw_only=True)
class Topology:
    """Options of `topology`."""

    svg: str = option("write the picture to this file as well")
    sysfs: str = option(TREE)


@dataclass(frozen=True, kw_only=True)
class Diagnose:
    """Options of `diagnose`."""

    log: str = positional("a log, packed or not; - reads standard input")
    cell: str = option("rank for this cell")
    gpu: str = option("rank for this card, such as gfx1100 or 'RX 7900 XT' (default: this machine's)")
    json: bool = option("print what was found as JSON, for programs", default=False)
    share: bool = option(
        "take names of users and hosts, homes, addresses and tokens out of what is printed", default=False
    )

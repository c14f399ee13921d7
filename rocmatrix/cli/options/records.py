"""Options of the tasks that keep, show and make evidence."""

from __future__ import annotations

from dataclasses import dataclass

from rocmatrix.cli.options.common import BASE, CELL, GPU, REQUIREMENTS, WHEELHOUSE, Kept, added_packages
from rocmatrix.runtime.option import option, words


@dataclass(frozen=True, kw_only=True)
class Prove(Kept):
    """Options of `prove`."""

    cell: str = option(CELL)
    companions: str = option("the packages that were added to it, as for `build`", typed="with")
    with_requirements: str = option(REQUIREMENTS)
    image: str = option("another image than the cell's own")
    tree: str = option("a folder in place of an image: its device code alone is looked into")
    only: str = option("with --tree: the kernel libraries that must be there, such as rocBLAS,hipBLASLt")
    wheelhouse: str = option("another folder of the locked wheels, which the installed files are compared with")
    accept_size: str = option("the reason to take the image's size as it is; later images are compared with it")
    json: bool = option("print the proof as JSON, for programs", default=False)

    @property
    def packages(self) -> tuple[str, ...]:
        """What was added, as for `build`. Raises RM017."""
        return added_packages(self.companions, self.with_requirements)


@dataclass(frozen=True, kw_only=True)
class Evidence(Kept):
    """Options of `evidence`."""

    cell: str = option("one cell, with its records")
    json: bool = option("print levels and records as JSON, for programs", default=False)
    export: str = option("write the records to this file as JSON, to send them")
    take: str = option("take in the records of such a file; each is checked, and taken once", typed="import")
    sizes: bool = option(
        "print entries for matrix/baselines.yaml: sizes of proven images that it does not have", default=False
    )
    bundle: str = option(
        "show, then write one file to send (.tar.gz): doctor, versions, request, newest records, ends of logs; redacted"
    )
    yes: bool = option("with --bundle: write without a question, for programs", default=False)


@dataclass(frozen=True, kw_only=True)
class Dashboard(Kept):
    """Options of `dashboard`."""

    out: str = option("the folder to write; an earlier dashboard there is replaced", default="DASHBOARD")
    serve: bool = option("show it on this machine's loopback address until Ctrl-C", default=False)
    port: int = option("the port to show it on (0: a free one)", default=8765)


@dataclass(frozen=True, kw_only=True)
class Nightly(Kept):
    """Options of `nightly`."""

    cells: str = option(
        "cells or architectures with commas between (default: every cell that is locked and not broken)"
    )
    cell: str = option("the same, for one")
    companions: str = option("packages to add to each of them, such as peft,accelerate", typed="with")
    with_requirements: str = option(REQUIREMENTS)
    jobs: int = option("how many cells are built side by side", default=2)
    budget: int = option("GB that its own images and its builder's cache may take", default=200)
    builder: str = option(
        "a buildx builder of your own: only its cache is pruned (default: the engine's, never pruned)"
    )
    wheelhouse: str = option(WHEELHOUSE)
    night: str = option("a name for the night (default: the date and a number)")
    fresh: bool = option("begin another night, although one of the same cells and inputs has not ended", default=False)
    base: str = option(BASE)
    dry_run: bool = option("print the commands and their bake files, and run nothing", default=False)

    @property
    def packages(self) -> tuple[str, ...]:
        """What was added, as for `build`. Raises RM017."""
        return added_packages(self.companions, self.with_requirements)

    @property
    def names(self) -> tuple[str, ...]:
        """Cells or architectures, as named either way."""
        return words(f"{self.cells},{self.cell}")


@dataclass(frozen=True, kw_only=True)
class Bisect(Kept):
    """Options of `bisect`."""

    gpu: str = option(GPU)
    probe: str = option("the probe that broke, such as blas")
    good: str = option("a cell that is known to be good, where it is not on record")
    bad: str = option("a later cell that is known to be bad")
    card: str = option("only records of this card, as `./invokew evidence` names it")
    base: str = option(BASE)
    dry_run: bool = option("print what is known and what would be asked, and run nothing", default=False)

"""Options that several tasks take: the request for a cell, the evidence, and how a job is run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocmatrix.runtime.console import edge
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.option import comma_separated, option

if TYPE_CHECKING:
    from rocmatrix.jobs.job import JobRequest
    from rocmatrix.matrix.resolver.resolve import Request

INSTALLED_TORCH = "take the torch of this machine's own Python; nothing is installed"
AS_JSON = "print events as JSON lines on standard output, for programs"
ALLOW_UNLOCKED = "build a cell without recorded hashes from whatever its index serves, unchecked"
BASE = "another base image, for a mirror or an air-gapped site"
CARDS = "cards by number, such as 0,1 or 0-3 (default: all that the cell is built for)"
CELL = "a cell by name; `./invokew cells` lists them"
DRY_RUN = "print exactly what would run, and run nothing"
FORCE = "override a rule that calls the request broken; the rule is printed, and named in the image's label"
GPU = "gfx1100, a card such as 'RX 7900 XT', cpu, or auto: this machine's card"
REQUIREMENTS = "a requirements file: its packages are locked with hashes next to the cell's torch, and added"
LONGEST = {"rocm": 200, "torch": 200, "python": 200, "cell": 1000, "gpu": 4000}  # what lspci prints of eight cards fits
WHEELHOUSE = "a folder that holds the locked wheels already"


def added_packages(companions: str, requirements: str) -> tuple[str, ...]:
    """Return what to add to a cell, as its name has it; the lines of a file are kept in the checkout. Raises RM017.

    Args:
        companions: names with commas between.
        requirements: path of a requirements file; empty for none.
    """
    named = comma_separated(companions)
    if not requirements:
        return named
    from rocmatrix.images.added import requirements_file
    from rocmatrix.runtime.input.named_path import expanded
    from rocmatrix.runtime.paths import ROOT

    return (*named, requirements_file.take(expanded(requirements), ROOT))


def wheel_version(torch: str, rocm: str, gpu: str) -> tuple[str, str, str]:
    """Return torch, ROCm and card, where torch may be a wheel's whole version, as `pip list` prints it: 2.4.1+rocm6.0.

    Raises RM404 where its ROCm is not the one that was asked for, or the wheel is for cards of another maker.

    Args:
        torch: version of PyTorch, with or without what follows the plus sign.
        rocm: version of ROCm; empty where it is open.
        gpu: card; empty where it is open.
    """
    version, plus, build = torch.partition("+")
    if not plus:
        return torch, rocm, gpu
    if build == "cpu":
        return version, rocm, gpu or "cpu"
    if build.startswith("git"):  # built by its owner, or AMD for an image
        return version, rocm, gpu
    # AMD's own wheels append more: rocm6.3.0.lw.git1234abcd
    found = re.match(r"rocm(\d+(?:\.\d+){1,2})(?![\d])", build)
    if found is None:
        what, step = f"torch {torch} is no build for AMD cards", f"Give --torch {version}, and --rocm or --gpu with it."
        raise RocmatrixError("RM404", what=what, next=step)
    if rocm and not (_agrees(rocm, found[1]) or _agrees(_line(rocm), found[1])):
        what = f"--torch {torch} is of ROCm {found[1]}, and --rocm asks for {rocm}"
        raise RocmatrixError("RM404", what=what, next=f"Leave one out: --torch {version} --rocm {rocm} asks for both.")
    return version, found[1] if _is_series(rocm) else rocm or found[1], gpu


def _agrees(requested: str, version: str) -> bool:
    from rocmatrix.matrix.resolver.request import agrees

    return agrees(requested, version)


def _is_series(version: str) -> bool:
    from rocmatrix.matrix.resolver.request import is_series

    return is_series(version)


def _same(one: str, other: str) -> bool:
    from rocmatrix.matrix.resolver.request import same_version

    return one == other or same_version(one, other)


def _line(rocm: str) -> str:
    """Return the ROCm that wheels for a release are called by; a word such as `cpu` unchanged."""
    from rocmatrix.matrix.naming import versions
    from rocmatrix.runtime.paths import ROOT

    return versions.line(rocm, _lines(ROOT)) if rocm else rocm


@lru_cache(maxsize=2)
def _lines(root: Path) -> tuple[str, ...]:
    from rocmatrix.matrix.loading import load

    return tuple(release.rocm for release in load.load(root).releases if release.rocm)


@dataclass(frozen=True, kw_only=True)
class Kept:
    """The file that takes the evidence."""

    evidence: str = option(
        "the evidence file (default: ROCMATRIX_EVIDENCE, else .rocmatrix/evidence.db)", metavar="PATH"
    )

    def use(self) -> None:
        """Make the file that was named this program's."""
        from rocmatrix.evidence import recorder

        recorder.use(self.evidence)


@dataclass(frozen=True, kw_only=True)
class DryRun:
    """Option to print what would run, and run nothing."""

    dry_run: bool = option(DRY_RUN, default=False)


@dataclass(frozen=True, kw_only=True)
class TrainerCommandOptions(DryRun):
    """Options of every command of the trainer that is no job."""

    as_json: bool = option(AS_JSON, default=False, typed="json")
    use_installed_torch: bool = option(INSTALLED_TORCH, default=False)


@dataclass(frozen=True, kw_only=True)
class Axes:
    """The axes of a request; an empty one is open."""

    rocm: str = option("ROCm version, such as 6.3", metavar="VERSION")
    torch: str = option("PyTorch version, such as 2.7.1", metavar="VERSION")
    gpu: str = option(GPU, metavar="GPU")
    cell: str = option(CELL, metavar="CELL")
    python: str = option(
        "Python version of the image, such as 3.12 (default: the usual one, or the one that is locked)",
        metavar="VERSION",
    )

    @property
    def request(self) -> Request:
        """The axes as a request, with the Python of an image and the packages to add. Raises RM404."""
        from rocmatrix.matrix.naming import versions
        from rocmatrix.matrix.resolver.resolve import Request

        self._require_short()

        typed = versions.series(self.rocm) or versions.rocm(self.rocm)
        torch_version = versions.series(self.torch) or versions.torch(self.torch)
        torch, rocm, gpu = wheel_version(torch_version, typed, self.gpu)
        typed = rocm if versions.series(typed) else typed or rocm  # of a series, the one that the wheel's version has
        served = _line(typed)
        return Request(
            rocm=served or None,
            rocm_release=None if _same(served, rocm) else typed,
            torch=torch or None,
            gpu=gpu or None,
            cell=self.cell or None,
            python=versions.python(self.python) or None,
            companions=self.packages,
        )

    def _require_short(self) -> None:
        """Raise RM404 for a value that no version or card has; numbers of thousands of digits are not computed with."""
        for name, most in LONGEST.items():
            if (length := len(getattr(self, name))) > most:
                what = f"--{name} has {length:,} characters, and takes {most:,} at most"
                raise RocmatrixError("RM404", what=what)

    @property
    def packages(self) -> tuple[str, ...]:
        """Companion packages; a bare request has none."""
        return ()


@dataclass(frozen=True, kw_only=True)
class WithCompanions(Axes):
    """A request for an image, with packages to add."""

    companions: str = option(
        "packages to add, such as peft,accelerate (matrix/companions.yaml lists them)",
        typed="with",
        metavar="NAME,...",
    )

    with_requirements: str = option(REQUIREMENTS, metavar="PATH")

    @property
    def packages(self) -> tuple[str, ...]:
        """What to add: companions by name, and the word that stands for the file's lines. Raises RM017."""
        return added_packages(self.companions, self.with_requirements)


@dataclass(frozen=True, kw_only=True)
class JobOptions(WithCompanions):
    """Options of every job, wherever it runs."""

    dry_run: bool = option(DRY_RUN, default=False)
    force: bool = option(FORCE, default=False)

    @edge
    def job_request(self, program: str, options: Mapping[str, Any]) -> JobRequest:
        """Return the job of a program with the trainer's `options`. Raises RM404 where numbers are none."""
        from rocmatrix.jobs.job import JobRequest
        from rocmatrix.jobs.programs import PROGRAMS

        return JobRequest(
            program=PROGRAMS[program],
            request=self.request,
            options=options,
            dry_run=self.dry_run,
            force=self.force,
            **self.here(),
        )

    def here(self) -> dict[str, Any]:
        """Return what is asked of this machine; a job for another one is decided there."""
        return {"where": "auto"}


@dataclass(frozen=True, kw_only=True)
class Job(JobOptions):
    """Options of a job on this machine."""

    base: str = option(BASE, metavar="IMAGE")
    where: str = option(
        "container, native, or auto: the image where an AMD card and an engine are found",
        default="auto",
        typed="in",
        metavar="{container,native,auto}",
    )
    wheelhouse: str = option(WHEELHOUSE, metavar="PATH")
    cards: str = option(CARDS, metavar="INT,...")
    as_json: bool = option(AS_JSON, default=False, typed="json")
    use_installed_torch: bool = option(
        f"run natively, and {INSTALLED_TORCH}; it is recorded",
        default=False,
    )
    expandable_segments: bool = option(
        "set expandable_segments in the allocator variable that this torch reads; off by default", default=False
    )

    def here(self) -> dict[str, Any]:
        """Return what is asked of this machine. Raises RM404 where numbers are none."""
        from rocmatrix.containers.device_selection import card_numbers

        return {
            "where": self.where,
            "base": self.base or None,
            "wheelhouse": self.wheelhouse or None,
            "cards": card_numbers(self.cards),
            "expandable_segments": self.expandable_segments,
            "as_json": self.as_json,
            "use_installed_torch": self.use_installed_torch,
        }

"""Options of the tasks that build images and run jobs in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rocmatrix.cli.options.common import BASE, DRY_RUN, FORCE, WHEELHOUSE, Kept, WithCompanions
from rocmatrix.runtime.option import option


@dataclass(frozen=True, kw_only=True)
class Build(WithCompanions, Kept):
    """Options of `build`."""

    base: str = option(BASE)
    wheelhouse: str = option(WHEELHOUSE)
    dry_run: bool = option(DRY_RUN, default=False)
    allow_unlocked: bool = option(
        "build a cell without recorded hashes from whatever its index serves, unchecked", default=False
    )
    force: bool = option(FORCE, default=False)


@dataclass(frozen=True, kw_only=True)
class Smoke(Kept):
    """Options of `smoke` next to those of every job."""

    probe: Sequence[str] = option("one probe, may be repeated (default: all)", default=())
    timeout: str = option("seconds for each probe (default: each probe's own limit, see --list)")
    listing: bool = option(
        "list the probes with the cards they take and their limits, and run none", default=False, typed="list"
    )


@dataclass(frozen=True, kw_only=True)
class Bench(Kept):
    """Options of `bench` next to those of every job."""

    as_json: bool = option("print the figures as JSON, for programs", default=False, typed="json")

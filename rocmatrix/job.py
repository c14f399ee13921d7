"""A trainer job made ready: the command, its environment, and the words for the person.

A dry run is made ready too, but nothing is installed, made or asked of the engine for it.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rocmatrix import emit, engine, launch, native, policy, runspec
from rocmatrix.console import ROOT
from rocmatrix.errors import RocmatrixError
from rocmatrix.hardware import Hardware
from rocmatrix.launch import Decision
from rocmatrix.matrix import Cell, Matrix
from rocmatrix.resolve import Request

DEFAULT_OUTPUT = "TRAINING"
SCRATCH = ROOT / ".rocmatrix" / "smoke"  # the probes write nothing, but every run has a folder of its own
ONE_CARD_PROBES = ("device", "blas", "amp")


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A job as a person asked for it. `options` are the trainer's own, by their names with underscores."""

    program: Literal["train", "smoke"]
    request: Request
    where: str
    options: Mapping[str, Any]
    base: str | None = None
    dry_run: bool = False
    force: bool = False

    @property
    def output(self) -> Path:
        """Where runs go on the host: --output, else TRAINING below the working folder."""
        return Path(self.options.get("output") or DEFAULT_OUTPUT).resolve()

    @property
    def names_a_card(self) -> bool:
        """Whether a person named what a CPU cannot be: a card, a cell, or a ROCm version."""
        return any((self.request.gpu not in (None, "auto"), self.request.cell, self.request.rocm))

    @property
    def data(self) -> Path | None:
        """The data on the host, where some was named."""
        return Path(self.options["data"]).resolve() if self.options.get("data") else None


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A command that is ready to run. `environment` is None where the engine sets it."""

    argv: list[str]
    environment: dict[str, str] | None
    why: str

    @property
    def words(self) -> str:
        """The command as it would be typed."""
        return shlex.join(self.argv)


def decide(asked: str, hardware: Hardware) -> Decision:
    """Choose container or native; the engine is asked only where its answer matters."""
    matters = asked == "container" or (asked == "auto" and hardware.architectures)
    obstacle = engine.obstacle() if matters else None
    return launch.decide(asked, cards=hardware.architectures, engine=obstacle, why_none=hardware.reason)


def natively(wanted: Wanted, *, matrix: Matrix, cell: Cell, hardware: Hardware) -> Prepared:
    """Make a job for this machine's own Python, installing the locked wheels where needed."""
    runner = native.prepare(matrix, ROOT, cell=cell, install_wheels=not wanted.dry_run)
    chosen = runner.cell or cell
    if cell.release.rocm and chosen.release.rocm is None and wanted.names_a_card:
        raise RocmatrixError(
            "RM403",
            what=f"{cell.name} was asked for, but only the CPU build fits here",
            why=runner.why,
            next="use a Python that the cell's wheels are locked for, --in container, or --gpu cpu",
        )
    options, note = probes_for(wanted, cell=chosen, hardware=hardware)
    if wanted.program == "train":
        options = {**options, "output": str(wanted.output)}
    arguments = [
        wanted.program,
        *flags(options),
        *provenance(wanted.program, cell=cell if wanted.program == "smoke" else chosen, image=None),
    ]
    return Prepared(
        argv=launch.native_argv(runner.python, arguments),
        environment=launch.native_environment(ROOT, os.environ),
        why=f"torch: {runner.why}{note}",
    )


def in_container(wanted: Wanted, *, cell: Cell, hardware: Hardware, image: str) -> Prepared:
    """Make a job for the cell's image, its run folder and data mounted where the trainer looks."""
    folder = wanted.output if wanted.program == "train" else SCRATCH
    digest = None
    if wanted.data is not None and not wanted.data.exists():
        raise RocmatrixError("RM404", what="--data names nothing that exists", where=str(wanted.data))
    if not wanted.dry_run:
        folder.mkdir(parents=True, exist_ok=True)
        digest = engine.image_id(image)
    options, note = probes_for(wanted, cell=cell, hardware=hardware)
    inside = flags(options | places(wanted)) + provenance(wanted.program, cell=cell, image=digest)
    spec = runspec.run_spec(
        cell,
        hardware,
        image=image,
        command=[wanted.program, *inside],
        run_folder=folder,
        data=wanted.data,
        user=f"{os.getuid()}:{os.getgid()}",
    )
    return Prepared(argv=emit.docker_run_argv(spec), environment=None, why=f"image: {image}{note}")


def places(wanted: Wanted) -> dict[str, str]:
    """Return the options that name a place, as the trainer finds it inside the container."""
    if wanted.program != "train":
        return {}
    data = {"data": runspec.data_path(wanted.data)} if wanted.data else {}
    return {"output": policy.RUN_FOLDER, **data}


def probes_for(wanted: Wanted, *, cell: Cell, hardware: Hardware) -> tuple[dict[str, Any], str]:
    """Return the options and a note: on one card the two-card step is left out, as it could only fail."""
    options = dict(wanted.options)
    cards = [card for card in hardware.cards if card.gfx == cell.architecture]
    if wanted.program != "smoke" or options.get("probe") or cell.architecture is None or len(cards) != 1:
        return options, ""
    return {**options, "probe": list(ONE_CARD_PROBES)}, "; one card, so the two-card step is left out"


def flags(options: Mapping[str, Any]) -> list[str]:
    """Return options as `--name=value`; None and False are left out, True is a bare flag."""
    argv: list[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            argv.append(flag)
        elif value not in (None, False, ""):
            argv += [f"{flag}={item}" for item in (value if isinstance(value, list) else [value])]
    return argv


def provenance(program: str, *, cell: Cell, image: str | None) -> list[str]:
    """Return what the trainer cannot know itself: cell, image and commit; or what the probes must find."""
    if program == "smoke":
        return [f"--expect={'rocm' if cell.release.rocm else 'any'}"]
    return flags({"cell": cell.name, "image": image, "commit": commit()})


def commit() -> str | None:
    """Return the checkout's git commit, `-dirty` when files differ from it, None outside a checkout."""
    argv = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None

"""A trainer job made ready: the command, its environment, and the words for the person."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rocmatrix import emit, engine, launch, native, policy, runspec
from rocmatrix.console import ROOT
from rocmatrix.hardware import Hardware
from rocmatrix.launch import Decision
from rocmatrix.matrix import Cell, Matrix

DEFAULT_OUTPUT = "TRAINING"


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
    return launch.decide(asked, cards=hardware.architectures, engine=obstacle)


def natively(program: str, options: Mapping[str, Any], *, matrix: Matrix, cell: Cell) -> Prepared:
    """Make a job for this machine's own Python, installing the locked wheels where needed."""
    runner = native.prepare(matrix, ROOT, cell=cell)
    given = {**options, "output": str(output_folder(options))} if program == "train" else options
    arguments = [program, *flags(given), *provenance(program, cell=runner.cell or cell, image=None)]
    return Prepared(
        argv=launch.native_argv(runner.python, arguments),
        environment=launch.native_environment(ROOT, os.environ),
        why=f"torch: {runner.why}",
    )


def in_container(program: str, options: Mapping[str, Any], *, cell: Cell, hardware: Hardware, image: str) -> Prepared:
    """Make a job for the cell's image, its run folder and data mounted where the trainer looks."""
    output = output_folder(options)
    data = Path(options["data"]).resolve() if options.get("data") else None
    output.mkdir(parents=True, exist_ok=True)
    inside = {key: value for key, value in options.items() if key not in ("output", "data")}
    if program == "train":
        inside |= {"output": policy.RUN_FOLDER} | ({"data": runspec.data_path(data)} if data else {})
    spec = runspec.run_spec(
        cell,
        hardware,
        image=image,
        command=[program, *flags(inside), *provenance(program, cell=cell, image=engine.image_id(image))],
        run_folder=output,
        data=data,
        user=f"{os.getuid()}:{os.getgid()}",
    )
    return Prepared(argv=emit.docker_run_argv(spec), environment=None, why=f"image: {image}")


def output_folder(options: Mapping[str, Any]) -> Path:
    """Return where runs go on the host: --output, else TRAINING below the working folder."""
    return Path(options.get("output") or DEFAULT_OUTPUT).resolve()


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

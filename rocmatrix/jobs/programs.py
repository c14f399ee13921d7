"""The programs of the trainer that run as jobs, as values, and their command lines.

What differs between programs is a field of `Program`; a new one is an entry here. A test reads the package and refuses
a comparison with a program's name elsewhere.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocmatrix.runtime.paths import ROOT, TRAINER_PROBES

if TYPE_CHECKING:
    from rocmatrix.matrix.matrix import Cell

DEFAULT_OUTPUT = "TRAINING"
REFUSED = 2  # the trainer's status for settings that it does not take
_TRAINER = "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); runpy.run_module('trainer', run_name='__main__')"


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program of the trainer: its name on the command line, and what a job of it takes, is given and shows.

    Args:
        name: the trainer's command.
        output_option: the option that names where results go, without its dashes; None for one that writes none,
            whose container gets a scratch folder.
        output_is_file: whether that option names a file rather than a folder; then it has no default.
        parts_option: the option that chooses parts of a suite; such a program sends verdicts, and a record of one
            that was run in part is not a whole one.
        parts_listed: whether `trainer/probes.json` lists its parts, with the cards that each needs.
        takes_provenance: whether it writes down the cell, image and commit that it ran with.
        kind_option: the option that states which build of torch the program must find, `rocm` or `any`.
        device_option: the option that names the device; set to `rocm` in a ROCm cell where a person named none.
        recorded: whether its runs are evidence.
        refuses_input: whether it may refuse settings, data or a folder before it begins; that is no evidence.
        may_be_inapplicable: whether nothing of what was chosen may apply to a machine; that is no evidence either.
        settings_command: the trainer's command that reads its settings and begins nothing; None where there is none.
        tests_card: whether its result is a statement on the machine's card, which the CPU cannot stand in for unseen.
    """

    name: str
    output_option: str | None = None
    output_is_file: bool = False
    parts_option: str | None = None
    parts_listed: bool = False
    takes_provenance: bool = False
    kind_option: str | None = None
    device_option: str | None = None
    recorded: bool = False
    refuses_input: bool = False
    may_be_inapplicable: bool = False
    settings_command: str | None = None
    tests_card: bool = False


TRAIN = Program(
    name="train",
    output_option="output",
    takes_provenance=True,
    recorded=True,
    refuses_input=True,
    settings_command="settings",
)
SMOKE = Program(
    name="smoke", parts_option="probe", parts_listed=True, kind_option="expect", recorded=True, tests_card=True
)
BENCH = Program(
    name="bench",
    parts_option="only",
    device_option="device",
    recorded=True,
    may_be_inapplicable=True,
    tests_card=True,
)
FEATURES = Program(name="features", output_option="out", output_is_file=True)

PROGRAMS: Mapping[str, Program] = {program.name: program for program in (TRAIN, SMOKE, BENCH, FEATURES)}


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


def settings_status(program: Program, options: Mapping[str, Any], *, as_json: bool = False) -> int:
    """Return the status with which the trainer refuses a program's settings, 0 where it takes them.

    It reports on its own streams what it refuses, and needs no torch for that. A reader that fails refuses nothing: the
    job itself reports what is wrong with it.

    Args:
        options: the trainer's options by name, as typed.
        as_json: let its events through, too.
    """
    if program.settings_command is None or not options:
        return 0
    argv = [sys.executable, "-P", "-c", _TRAINER, str(ROOT), program.settings_command, *flags(options)]
    read = subprocess.run(argv, capture_output=True, check=False)
    if read.returncode != REFUSED:
        return 0
    sys.stderr.write(read.stderr.decode(errors="replace"))
    sys.stdout.write(read.stdout.decode(errors="replace") if as_json else "")
    return REFUSED


def listed(option: Any) -> list[str]:
    """Return the names of an option that may be repeated; each may hold several between commas."""
    given = list(option) if isinstance(option, (list, tuple)) else [option] if option else []
    return [name.strip() for text in given for name in str(text).split(",") if name.strip()]


def probes_by_cards(cards: int, path: Path = TRAINER_PROBES) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the trainer's probes that `cards` cards are enough for, and those of the others."""
    probes = json.loads(path.read_text(encoding="utf-8"))
    fit = tuple(probe["probe"] for probe in probes if probe["cards"] <= cards)
    return fit, tuple(probe["probe"] for probe in probes if probe["probe"] not in fit)


def provenance(program: Program, *, cell: Cell, image: str | None, forced: Sequence[str] = ()) -> list[str]:
    """Return the options with what the trainer cannot determine itself, or with the device that probes must find.

    Provenance is cell, overridden rules, image and commit; a program that takes none has no such options.

    Args:
        image: id of the image, sha256:…; None for a native job or where it is not known.
        forced: ids of the rules that were overridden.
    """
    if program.kind_option:
        return flags({program.kind_option: "rocm" if cell.release.rocm else "any"})
    if not program.takes_provenance:
        return []
    return flags({"cell": cell.name, "forced": ",".join(forced), "image": image, "commit": commit()})


def commit() -> str | None:
    """Return the checkout's git commit, `-dirty` when files differ from it, None outside a checkout."""
    argv = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None

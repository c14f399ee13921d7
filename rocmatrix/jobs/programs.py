"""The programs of the trainer that run as jobs, as values: what differs between them is a field of `Program`.

A new program is an entry here. A test reads the package and refuses a comparison with a program's name elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

DEFAULT_OUTPUT = "TRAINING"


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


TRAIN = Program(name="train", output_option="output", takes_provenance=True, recorded=True, refuses_input=True)
SMOKE = Program(name="smoke", parts_option="probe", parts_listed=True, kind_option="expect", recorded=True)
BENCH = Program(name="bench", parts_option="only", device_option="device", recorded=True, may_be_inapplicable=True)
FEATURES = Program(name="features", output_option="out", output_is_file=True)

PROGRAMS: Mapping[str, Program] = {program.name: program for program in (TRAIN, SMOKE, BENCH, FEATURES)}

"""What a Slurm script asks for, against how it starts its program."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rocmatrix.doctor.environment.lint_input import FileFinding

_DIRECTIVE = re.compile(r"^#SBATCH\s+(?P<name>-{1,2}[\w-]+)(?:[=\s]\s*(?P<value>\S+))?", re.MULTILINE)
_SEVERAL = ("--nodes", "-N", "--ntasks", "-n", "--ntasks-per-node", "--tasks-per-node")
# what starts a program on every node or once for every task
_SPREADS = re.compile(
    r"(?:(?<=bin/)|(?<!/)\b)(?:srun|mpirun|mpiexec|prun|pdsh|clush|parallel|sbatch|flux|jsrun|aprun|ssh|ray|nextflow)\b"
)
# launchers that start a process for each card of their node themselves, or go to the nodes of a list on their own
_LAUNCHER = re.compile(
    r"^\s*(?:exec\s+)?(?:torchrun|accelerate|deepspeed|python[\d.]*\s+-m\s+torch\.distributed)\b", re.MULTILINE
)
_GOES_THERE = re.compile(r"\bdeepspeed\b.*--hostfile|--deepspeed_hostfile")
_STARTS_SEVERAL = re.compile(r"\b(?:torchrun|accelerate launch|deepspeed|torch\.distributed\.(?:run|launch))\b")
_NODES = ("--nodes", "-N")
_CARDS = ("--gres", "--gpus-per-node", "--gpus", "-G")
_OF_NVIDIA = re.compile(
    r"gpu:(?:nvidia_)?(v100|a100|h100|h200|gh200|b200|a40|l40s?|rtx\w*|t4|p100|k80)\b", re.IGNORECASE
)
_PROGRAM = re.compile(r"^\s*(?:exec\s+)?(?:python[\d.]*|torchrun|accelerate|deepspeed)\s", re.MULTILINE)


def findings(text: str, path: str) -> Iterator[FileFinding]:
    """Yield what is wrong with the directives of a script, or with how it starts its program.

    Args:
        text: the script.
        path: its file, for the place of a finding.
    """
    yield from _directives(text.splitlines(), path)
    rows = _DIRECTIVE.finditer(text)
    options = {row["name"]: (row["value"] or "", text[: row.start()].count("\n") + 1) for row in rows}
    yield from _cores(options, text, path)
    several = [(name, *options[name]) for name in _SEVERAL if name in options and options[name][0].isdecimal()]
    several = [row for row in several if int(row[1]) > 1]
    code = "\n".join(row for row in text.splitlines() if not row.lstrip().startswith("#"))
    if _LAUNCHER.search(code) and (_on_one_node(options) or _GOES_THERE.search(code)):
        return
    if several and _PROGRAM.search(code) and not _SPREADS.search(code):
        name, value, line = several[0]
        if _on_one_node(options) and 0 < _cards(options) < int(value):
            return
        yield FileFinding(
            rule="slurm-without-srun", where=f"{path}:{line}", what=f"{name} {value}, and no srun", severity="warning",
            truth="the script itself runs once, on the first node: the other tasks and nodes are paid for and idle",
            instead="srun in front of the program (srun torchrun ... for one launcher a node)",
        )  # fmt: skip


def _cores(options: Mapping[str, tuple[str, int]], text: str, path: str) -> Iterator[FileFinding]:
    """Yield fewer cores than cards for the one task of a node whose launcher starts a process for each card."""
    value, line = next((options[name] for name in ("--cpus-per-task", "-c") if name in options), ("", 0))
    tasks = next((options[name][0] for name in ("--ntasks-per-node", "--tasks-per-node") if name in options), "")
    cards = _cards(options)
    if tasks == "1" and value.isdecimal() and int(value) < cards and _STARTS_SEVERAL.search(text):
        yield FileFinding(
            rule="slurm-cores-few", where=f"{path}:{line}", what=f"{value} cores for {cards} cards", severity="warning",
            truth=f"cores are given to each task: {cards} processes of the launcher share {value}, and wait for data",
            instead=f"--cpus-per-task of {cards} times what one process needs",
        )  # fmt: skip


def _on_one_node(options: Mapping[str, tuple[str, int]]) -> bool:
    """Return whether a script requests one node: its tasks are then the processors of a launcher's processes."""
    return any(options[name][0] == "1" for name in _NODES if name in options)


def _cards(options: Mapping[str, tuple[str, int]]) -> int:
    """Return how many cards of a node a script requests, 0 where it does not say: more tasks than these are cores."""
    found = (re.search(r"(?:^|:)(\d+)$", options[name][0]) for name in _CARDS if name in options)
    return next((int(count[1]) for count in found if count), 0)


def _directives(rows: list[str], path: str) -> Iterator[FileFinding]:
    """Yield a script that sbatch refuses, directives that it does not read, and cards of another maker."""
    places = [number for number, row in enumerate(rows, 1) if row.startswith("#SBATCH")]
    commands = (number for number, row in enumerate(rows, 1) if row.strip() and not row.startswith("#"))
    first = next(commands, len(rows) + 1)
    if places and places[0] < first and not rows[0].startswith("#!"):
        yield FileFinding(
            rule="slurm-without-shebang", where=f"{path}:1", what=rows[0][:60] or "an empty line", severity="error",
            truth="sbatch refuses a script whose first line names no interpreter",
            instead="#!/bin/bash as the first line",
        )  # fmt: skip
    written = next((number for number, row in enumerate(rows, 1) if "<<" in row), len(rows) + 1)  # another script
    late = next((number for number in places if first < number < written), None)
    if late is not None:
        yield FileFinding(
            rule="slurm-directive-ignored", where=f"{path}:{late}", what=rows[late - 1].strip(), severity="warning",
            truth=f"sbatch reads no directive behind the first command, which is in line {first}",
            instead="all #SBATCH lines above the first command",
        )  # fmt: skip
    for number in places:
        if card := _OF_NVIDIA.search(rows[number - 1]):
            yield FileFinding(
                rule="nvidia-alone", where=f"{path}:{number}", what=rows[number - 1].strip(), severity="note",
                truth=f"{card[1]} is a card of NVIDIA's: no node with AMD cards offers it",
                instead="the name that `sinfo -o %G` prints for the AMD cards, or gpu with a number alone",
            )  # fmt: skip
            return

"""What a Slurm script asks for, against how it starts its program."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from rocmatrix.doctor.environment.lint_input import FileFinding

_DIRECTIVE = re.compile(r"^#SBATCH\s+(?P<name>-{1,2}[\w-]+)(?:[=\s]\s*(?P<value>\S+))?", re.MULTILINE)
_SEVERAL = ("--nodes", "-N", "--ntasks", "-n", "--ntasks-per-node", "--tasks-per-node")
# what starts a program on every node or once for every task
_SPREADS = re.compile(r"\b(?:srun|mpirun|mpiexec|prun|pdsh|clush|parallel|sbatch|flux|jsrun|aprun|ssh|ray|nextflow)\b")
# launchers that start a process for each card of their node themselves, or go to the nodes of a list on their own
_LAUNCHER = re.compile(
    r"^\s*(?:exec\s+)?(?:torchrun|accelerate|deepspeed|python[\d.]*\s+-m\s+torch\.distributed)\b", re.MULTILINE
)
_GOES_THERE = re.compile(r"\bdeepspeed\b.*--hostfile|--deepspeed_hostfile")
_NODES = ("--nodes", "-N")
_PROGRAM = re.compile(r"^\s*(?:exec\s+)?(?:python[\d.]*|torchrun|accelerate|deepspeed)\s", re.MULTILINE)


def findings(text: str, path: str) -> Iterator[FileFinding]:
    """Yield the note on a script of several tasks that starts its program on the first node alone.

    Args:
        text: the script.
        path: its file, for the place of a finding.
    """
    rows = _DIRECTIVE.finditer(text)
    options = {row["name"]: (row["value"] or "", text[: row.start()].count("\n") + 1) for row in rows}
    several = [(name, *options[name]) for name in _SEVERAL if name in options and options[name][0].isdecimal()]
    several = [row for row in several if int(row[1]) > 1]
    code = "\n".join(row for row in text.splitlines() if not row.lstrip().startswith("#"))
    if _LAUNCHER.search(code) and (_on_one_node(options) or _GOES_THERE.search(code)):
        return
    if several and _PROGRAM.search(code) and not _SPREADS.search(code):
        name, value, line = several[0]
        yield FileFinding(
            rule="slurm-without-srun", where=f"{path}:{line}", what=f"{name} {value}, and no srun", severity="warning",
            truth="the script itself runs once, on the first node: the other tasks and nodes are paid for and idle",
            instead="srun in front of the program (srun torchrun ... for one launcher a node)",
        )  # fmt: skip


def _on_one_node(options: Mapping[str, tuple[str, int]]) -> bool:
    """Return whether a script requests one node: its tasks are then the processors of a launcher's processes."""
    return any(options[name][0] == "1" for name in _NODES if name in options)

"""Run gates in child processes with a limit of time, until each has a verdict: another child follows one that dies.

Verdicts come from what a trial prints and how its process ended, never from words found in a log.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trainer.run.gates.subject import ATTENTION, COMPILE, Subject
from trainer.runtime.child_process import Outcome, run_limited

PROGRAM: tuple[str, ...] = (sys.executable, "-P", "-m", "trainer.run.gates.trials")
START_SECONDS = 90.0  # to import torch and reach the device, on a busy machine
SECONDS, COMPILE_SECONDS = 45.0, 240.0  # of one gate; compiling takes tens of seconds the first time
HUNG = 1  # exit status of a child whose trial passed its limit; a trial's own exceptions are verdicts
PASSED, ABSENT, UNTRIED = "passed", "absent", "untried"
FAULT_SIGNALS = ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE")


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Outcome of one gate.

    status: passed; wrong, error, memory, crash, hang: it failed; absent: the machine has not what it tries; untried:
    no process came to try it. cached: when it was found, for one that was not tried now.
    """

    gate: str
    status: str
    why: str = ""
    seconds: float = 0.0
    cached: str = ""

    @property
    def failed(self) -> bool:
        """Whether what was tried must not be used."""
        return self.status not in (PASSED, ABSENT, UNTRIED)

    @property
    def lasting(self) -> bool:
        """Whether the same trial would come to the same again, and is worth keeping.

        Not what a full or busy machine or a package that is missing may have caused. A crash by a signal of a fault is
        kept, as another trial may reset the card; a kernel that this torch has not for the card is, as each run would
        start a child to ask for it again (cuDNN's on AMD cards).
        """
        if self.status == "crash":
            return any(name in self.why for name in FAULT_SIGNALS)
        return self.status in (PASSED, "wrong") or (self.status == ABSENT and self.gate.startswith(ATTENTION))

    def facts(self) -> dict[str, Any]:
        """Return what metadata.json holds."""
        return {name: value for name, value in asdict(self).items() if name != "gate" and value != ""}


def tried(
    gates: Sequence[str],
    subject: Subject,
    *,
    deterministic: bool = True,
    plain_blas: bool = False,
    environment: Mapping[str, str] | None = None,
) -> list[Verdict]:
    """Return a verdict for each gate, in their order.

    Args:
        gates: names of trials.
        subject: shapes, number format and device.
        deterministic: whether kernels are deterministic in the run.
        plain_blas: whether torch leaves its Lt library.
        environment: variables that are added to this process's.
    """
    left, found = list(gates), dict[str, Verdict]()
    while left:
        limits = {gate: COMPILE_SECONDS if gate == COMPILE else SECONDS for gate in left}
        how = {"deterministic": deterministic, "plain_blas": plain_blas}
        request = {"subject": subject.facts(), "gates": limits, **how}
        verdicts = _one_child(request, limits, environment or {})
        found |= {each.gate: each for each in verdicts}
        left = [name for name in left if name not in found]
    return [found[name] for name in gates]


def _one_child(
    request: Mapping[str, Any], limits: Mapping[str, float], environment: Mapping[str, str]
) -> list[Verdict]:
    """Return the verdicts of one child: at least one, as the gate in which it died has one, too."""
    seconds = START_SECONDS + sum(limits.values())
    try:
        outcome = run_limited([*PROGRAM, json.dumps(request)], seconds=seconds, env=_environment(environment))
    except OSError as error:
        return [Verdict(gate=gate, status=UNTRIED, why=f"no process could be started: {error}") for gate in limits]
    return verdicts_of(outcome, list(limits))


def verdicts_of(outcome: Outcome, gates: Sequence[str]) -> list[Verdict]:
    """Return what the lines and the end of a child amount to.

    A child that never reached its device gives no verdict on any gate: all are untried.

    Args:
        outcome: how the process ended, and what it printed.
        gates: the gates that it was to try.
    """
    lines = [each for line in outcome.stdout.splitlines() if (each := _parsed(line)) is not None]
    share = outcome.seconds / max(1, sum("ended" in line for line in lines))
    found = [
        Verdict(gate=line["ended"], status=line["status"], why=line["why"], seconds=round(share, 3))
        for line in lines
        if line.get("ended") in gates
    ]
    done = {each.gate for each in found}
    begun = [line["began"] for line in lines if "began" in line and line["began"] not in done]
    if begun:
        status, why = _end_of(outcome)
        return [*found, Verdict(gate=begun[-1], status=status, why=why, seconds=round(outcome.seconds, 3))]
    if not found or len(found) < len(gates):
        why = f"the process did not come to it: {_end_of(outcome)[1]}; {outcome.stderr_tail(1)}"[:300]
        return [*found, *(Verdict(gate=gate, status=UNTRIED, why=why) for gate in gates if gate not in done)]
    return found


def _end_of(outcome: Outcome) -> tuple[str, str]:
    """Return the status and the reason of a process that did not end its trial."""
    if outcome.timed_out or outcome.returncode == HUNG:
        return "hang", f"no result within its limit of time; the process was ended after {outcome.seconds:.0f} s"
    if outcome.signal_name == "SIGKILL":
        return "memory", "the process was killed from outside (SIGKILL), often by the kernel when memory ran out"
    if outcome.signal_name:
        return "crash", f"the process died of {outcome.signal_name}"
    return "crash", f"the process ended with status {outcome.returncode} and no result"


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    """Return this environment, in which the child finds the same trainer; one thread, as threads of a busy CPU wait."""
    paths = os.pathsep.join([each or str(Path.cwd()) for each in sys.path])
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths, **more}

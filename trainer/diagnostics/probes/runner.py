"""Start each probe in a process of its own and turn whatever happens into one verdict a probe.

Standard output carries JSON lines only: one verdict a probe, then `{"event": "smoke", ...}`. Progress for
people goes to standard error. Where an AMD card is, a line with its error counters comes before the last.
Needs nothing but the standard library, so that a broken torch is a probe's verdict and not the runner's end.
Verdicts come from what a probe states and how its process ended, never from words found in a log.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import signal
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn, get_args

from trainer.diagnostics.probes import registry
from trainer.diagnostics.probes.entry import Expect
from trainer.diagnostics.probes.registry import Probe
from trainer.diagnostics.probes.verdict import MalformedVerdictError, Status, Verdict, parse
from trainer.runtime import memory_limit
from trainer.runtime.child_process import MARK, Outcome, kill_marked, run_limited
from trainer.runtime.errors import TrainerError, listing
from trainer.runtime.events import emit, say
from trainer.runtime.paths import SOURCE_ROOT
from trainer.telemetry.health.watch import HealthWatch

DEVICES = Path("/dev")
PROMISES = "ROCMATRIX_PROMISES"  # names of probes whose subject an image has for sure, set by its Dockerfile
CARD_NODES = ("kfd", "nvidiactl", "dxg")  # amdgpu, NVIDIA, and either of them under WSL


def main(argv: Sequence[str] | None = None) -> int:
    """Run the probes asked for. Returns 0 only if some passed and none failed, 1 otherwise, 2 on wrong usage."""
    try:
        arguments = parse_arguments(argv)
        probes = select(arguments.probe, arguments.cards)
    except TrainerError as error:
        emit("error", **error.parts())
        say(error.render())
        return error.exit_status
    if arguments.list:
        return list_probes(probes)
    with end_on_sigterm():
        return smoke(probes, arguments.expect, arguments.timeout)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        hint = "Correct the flag that is named; `./invokew smoke --help` lists them all."
        raise TrainerError("RM500", what=message, where="smoke", next=hint)


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line.

    Raises:
        TrainerError: RM500 for anything that the command does not take.
    """
    parser = _Parser(prog="trainer smoke", description="Prove that this machine can train: run the smoke probes.")
    parser.add_argument("--probe", action="append", metavar="NAME", help="run this probe only; may be repeated")
    parser.add_argument("--cards", type=int, choices=(1, 2), help="leave out probes that take more cards than this")
    parser.add_argument("--expect", choices=get_args(Expect), default="any", help="the device that must be here")
    parser.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="limit for each probe")
    parser.add_argument("--list", action="store_true", help="describe the probes as JSON lines and stop")
    return parser.parse_args(argv)


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < (seconds := float(text)) < float("inf"):
            return seconds
    raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above zero")


def select(names: Sequence[str] | None, cards: int | None = None) -> tuple[Probe, ...]:
    """Return the probes called `names` with their parts, in the registry's order; all of them for None.

    With `cards`, those that take more are left out, unless they were named.

    Raises:
        TrainerError: RM590 for a name that is not in the registry.
    """
    known = [probe.name for probe in registry.PROBES]
    for name in names or ():
        if name not in known:
            hint = listing(name, known, kind="probes")
            raise TrainerError("RM590", what=f"no probe is called {name!r}", where="--probe", next=hint)
    if names is None:
        return tuple(probe for probe in registry.PROBES if cards is None or probe.cards <= cards)
    return tuple(probe for probe in registry.PROBES if {probe.name, probe.part_of} & set(names))


def list_probes(probes: Sequence[Probe]) -> int:
    """Print one JSON line a probe. Returns 0."""
    for probe in probes:
        described = {name: value for name, value in vars(probe).items() if name not in ("name", "module")}
        emit("probe-listed", probe=probe.name, **described)
    return 0


def smoke(probes: Sequence[Probe], expect: Expect, timeout: float | None) -> int:
    """Run `probes` one after the other and print their verdicts. Returns 0 if all passed and there was one.

    Args:
        probes: probes to run, in order.
        timeout: time limit of one probe in seconds; None for its own.
    """
    started, verdicts, jobs = time.monotonic(), [], side_by_side()
    health = HealthWatch()
    for verdict in run_all(probes, expect, timeout, jobs):
        verdicts.append(verdict)
        print(verdict.to_json(), flush=True)
        say(f"{verdict.probe}: {verdict.status} after {verdict.seconds:.1f} s. {verdict.summary}")
    report_health(health.report())
    return finish(verdicts, expect, jobs, time.monotonic() - started)


def report_health(report: dict[str, Any] | None) -> None:
    """Print what the cards' error counters did during the suite; nothing where no AMD card is to be seen."""
    if report is None:
        return
    emit("health", **report)
    if report["moved"]:
        say(f"health: {report['what']}. The suite raises no level of its cell.")
    elif report["unknown"]:
        say(f"health: card {', '.join(report['unknown'])} reports no error counter, so nothing is known of its errors.")


def side_by_side(devices: Path = DEVICES) -> int:
    """Return how many probes run at once: one where a card may be, since they would disturb each other; else two.

    Nothing that a probe finds on a CPU is judged by its speed.
    """
    card = any((devices / name).exists() for name in CARD_NODES)
    return 1 if card else min(2, len(os.sched_getaffinity(0)))


def pairs_here(devices: Path = DEVICES) -> int:
    """Return how many pairs a probe of two cards may have to try: each card that may be here is in one."""
    nodes = [*devices.glob("dri/renderD*"), *devices.glob("nvidia[0-9]*")]
    return max(1, (len(nodes) + 1) // 2)


def run_all(probes: Sequence[Probe], expect: Expect, timeout: float | None, jobs: int) -> Iterator[Verdict]:
    """Yield the verdicts in the probes' order; whoever stops listening ends the probes that still run.

    Args:
        probes: probes to run.
        timeout: time limit of one probe in seconds; None for its own.
        jobs: number of probes that run at the same time.
    """
    mark, outer = uuid.uuid4().hex, os.environ.get(MARK, "")
    os.environ[MARK] = f"{outer}/{mark}"  # the probes inherit it
    pool = ThreadPoolExecutor(jobs)

    def one(probe: Probe) -> Verdict:
        say(f"{probe.name}: {probe.summary} …")
        return run(probe, expect, timeout, share=memory_limit.fair_share() // jobs)

    try:
        yield from pool.map(one, probes)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        os.environ[MARK] = outer
        kill_marked(mark)


def finish(verdicts: Sequence[Verdict], expect: Expect, jobs: int, seconds: float) -> int:
    """Print what the verdicts come to. Returns 0 if at least one passed and none failed.

    What was not applicable counts neither way, and is named with its reason.

    Args:
        verdicts: verdict of each probe.
        jobs: number of probes that ran at the same time.
        seconds: duration of the whole.
    """
    passed = sum(verdict.status == "pass" for verdict in verdicts)
    idle = {verdict.probe: verdict.summary for verdict in verdicts if verdict.status == "not-applicable"}
    failed = {v.probe: v.status for v in verdicts if v.status not in ("pass", "not-applicable")}
    emit(
        "smoke",
        passed=passed,
        failed=len(failed),
        failures=failed,
        not_applicable=idle,
        expect=expect,
        at_once=jobs,
        seconds=round(seconds, 3),
    )
    return 0 if passed and not failed else 1


def run(
    probe: Probe, expect: Expect, timeout: float | None = None, *, share: int | None = None, more: Sequence[str] = ()
) -> Verdict:
    """Run one probe in a process of its own and return its verdict, or the runner's where it gave none.

    Args:
        timeout: time limit in seconds; None for the probe's own.
        share: host memory in bytes that it may hold; None for what is fair to the rest of the machine.
        more: further arguments of the probe.
    """
    limit = timeout or probe.timeout_seconds * (pairs_here() if probe.cards > 1 else 1)
    argv = [sys.executable, "-m", probe.module, "--expect", expect, "--timeout", str(limit), *more]
    try:
        outcome = run_limited(
            argv, seconds=limit, env=environment(), memory_bytes=share or memory_limit.fair_share() or None
        )
    except OSError as error:
        return Verdict(probe=probe.name, status="fail", summary=f"The probe could not be started: {error}.")
    verdict = check_absence(probe, check_device(read_verdict(probe, outcome, limit), expect), expect)
    tail = "" if verdict.status == "pass" else outcome.stderr_tail()
    return dataclasses.replace(verdict, seconds=verdict.seconds or round(outcome.seconds, 3), stderr_tail=tail)


def environment() -> dict[str, str]:
    """Return this process's environment, with the trainer's own folder first on the import path.

    One thread unless the variable is set: several that share a busy CPU wait for each other, and the card is what
    counts.
    """
    paths = [str(SOURCE_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"OMP_NUM_THREADS": "1", **os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def read_verdict(probe: Probe, outcome: Outcome, limit: float) -> Verdict:
    """Return the verdict that a probe's process amounts to. Its own is taken only if nothing contradicts it.

    Args:
        limit: time limit in seconds that it ran under.
    """
    if outcome.filled_bytes is not None:
        held = f"{outcome.filled_bytes / 2**20:,.0f} MiB"
        return _own(probe, "crash", f"The probe filled this machine's memory and was killed when it held {held}.")
    if outcome.timed_out:
        return _own(probe, "timeout", f"No verdict within {limit:g} s; the probe was killed{_stuck(outcome)}.")
    if outcome.signal_name:
        return _own(probe, "crash", f"The probe's process died of {outcome.signal_name}{_cause_of_end(outcome)}.")
    lines = outcome.stdout.splitlines()
    if not lines:
        return _own(probe, "fail", f"The probe ended with status {outcome.returncode} and no verdict.")
    if len(lines) != 1:
        return _own(probe, "fail", f"The probe printed {len(lines)} lines where one verdict was due.")
    return _checked(probe, outcome, lines[0])


def _checked(probe: Probe, outcome: Outcome, line: str) -> Verdict:
    try:
        verdict = parse(line)
    except MalformedVerdictError as error:
        return _own(probe, "fail", f"The probe printed no valid verdict: {error}.")
    if verdict.probe != probe.name:
        return _own(probe, "fail", f"The verdict is of probe {verdict.probe!r}, not of {probe.name!r}.")
    if (verdict.status == "pass") != (outcome.returncode == 0):
        contradiction = f"The verdict is {verdict.status} and the exit status {outcome.returncode}."
        return _own(probe, "fail", contradiction)
    return verdict


def check_device(verdict: Verdict, expect: Expect) -> Verdict:
    """Turn a pass on another kind of device than the expected one into a failure."""
    kind = verdict.device.kind if verdict.device else "no device"
    if verdict.status != "pass" or expect in ("any", kind):
        return verdict
    return dataclasses.replace(verdict, status="fail", summary=f"It ran on {kind} where {expect} was expected.")


def check_absence(probe: Probe, verdict: Verdict, expect: Expect) -> Verdict:
    """Turn "not applicable" into a failure where the image promises the subject, or a card that has it is expected."""
    if verdict.status != "not-applicable":
        return verdict
    if probe.name in os.environ.get(PROMISES, "").split():
        return dataclasses.replace(verdict, status="fail", summary=f"{verdict.summary} This image promises it.")
    if expect in ("any", "cpu") or probe.may_be_absent:
        return verdict
    return dataclasses.replace(verdict, status="fail", summary=f"{verdict.summary} {expect} was expected, so it fails.")


def _own(probe: Probe, status: Status, summary: str) -> Verdict:
    return Verdict(probe=probe.name, status=status, summary=summary)


def _stuck(outcome: Outcome) -> str:
    return ", and does not die: it hangs in the kernel driver" if outcome.returncode is None else ""


def _cause_of_end(outcome: Outcome) -> str:
    if outcome.stdout.strip():
        return " after it had given a verdict, which is void"
    return " (sent from outside, often by the kernel when memory ran out)" if outcome.returncode == -9 else ""


@contextlib.contextmanager
def end_on_sigterm() -> Iterator[None]:
    """Leave through the clean-up that kills the running probe when this process receives SIGTERM."""
    previous = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


if __name__ == "__main__":
    sys.exit(main())

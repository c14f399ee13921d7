"""Start each probe in a process of its own and turn whatever happens into one verdict a probe.

Standard output carries JSON lines only: one verdict a probe, then `{"event": "smoke", ...}`. Progress for
people goes to standard error. Needs nothing but the standard library, so that a broken torch is a probe's
verdict and not the runner's end. Verdicts come from what a probe states and how its process ended, never
from words found in a log.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn, get_args

from trainer.errors import TrainerError, suggestion
from trainer.events import emit, say
from trainer.probes import registry
from trainer.probes.entry import Expect
from trainer.probes.process import Outcome, run_limited
from trainer.probes.registry import Probe
from trainer.probes.verdict import MalformedVerdictError, Status, Verdict, parse

SOURCE_ROOT = Path(__file__).resolve().parents[2]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the probes asked for. Returns 0 only if every one of them passed, 1 otherwise, 2 on wrong usage."""
    try:
        arguments = parse_arguments(argv)
        probes = select(arguments.probe)
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
        raise TrainerError("RM500", what=message, where="smoke", next=self.format_usage().strip())


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line.

    Raises:
        TrainerError: RM500 for anything that the command does not take.
    """
    parser = _Parser(prog="trainer smoke", description="Prove that this machine can train: run the smoke probes.")
    parser.add_argument("--probe", action="append", metavar="NAME", help="run this probe only; may be repeated")
    parser.add_argument("--expect", choices=get_args(Expect), default="any", help="the device that must be here")
    parser.add_argument("--timeout", type=_seconds, metavar="SECONDS", help="limit for each probe")
    parser.add_argument("--list", action="store_true", help="name the probes and stop")
    return parser.parse_args(argv)


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < (seconds := float(text)) < float("inf"):
            return seconds
    raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above zero")


def select(names: Sequence[str] | None) -> tuple[Probe, ...]:
    """The probes called `names`, in the registry's order; all of them for None.

    Raises:
        TrainerError: RM500 for a name that is not in the registry.
    """
    known = [probe.name for probe in registry.PROBES]
    for name in names or ():
        if name not in known:
            hint = f"{suggestion(name, known)} All probes: {', '.join(known)}."
            raise TrainerError("RM500", what=f"no probe is called {name!r}", where="--probe", next=hint)
    return tuple(probe for probe in registry.PROBES if names is None or probe.name in names)


def list_probes(probes: Sequence[Probe]) -> int:
    """Print one JSON line a probe. Returns 0."""
    for probe in probes:
        emit("probe-listed", probe=probe.name, summary=probe.summary, timeout_seconds=probe.timeout_seconds)
    return 0


def smoke(probes: Sequence[Probe], expect: Expect, timeout: float | None) -> int:
    """Run `probes` one after the other and print their verdicts. Returns 0 if all passed and there was one."""
    started = time.monotonic()
    verdicts = []
    for probe in probes:
        say(f"{probe.name}: {probe.summary} …")
        verdicts.append(verdict := run(probe, expect, timeout))
        print(verdict.to_json(), flush=True)
        say(f"{probe.name}: {verdict.status} after {verdict.seconds:.1f} s. {verdict.summary}")
    passed = sum(verdict.status == "pass" for verdict in verdicts)
    failed = {verdict.probe: verdict.status for verdict in verdicts if verdict.status != "pass"}
    seconds = round(time.monotonic() - started, 3)
    emit("smoke", passed=passed, failed=len(failed), failures=failed, expect=expect, seconds=seconds)
    return 0 if passed and not failed else 1


def run(probe: Probe, expect: Expect, timeout: float | None = None) -> Verdict:
    """Run one probe in a process of its own and return its verdict, or the runner's where it gave none."""
    limit = timeout or probe.timeout_seconds
    argv = [sys.executable, "-m", probe.module, "--expect", expect, "--timeout", str(limit)]
    try:
        outcome = run_limited(argv, seconds=limit, env=environment())
    except OSError as error:
        return Verdict(probe=probe.name, status="fail", summary=f"The probe could not be started: {error}.")
    verdict = check_device(read_verdict(probe, outcome, limit), expect)
    tail = "" if verdict.status == "pass" else outcome.stderr_tail()
    return dataclasses.replace(verdict, seconds=verdict.seconds or round(outcome.seconds, 3), stderr_tail=tail)


def environment() -> dict[str, str]:
    """This process's environment, with the trainer's own folder first on the import path."""
    paths = [str(SOURCE_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def read_verdict(probe: Probe, outcome: Outcome, limit: float) -> Verdict:
    """The verdict that a probe's process amounts to. Its own is taken only if nothing contradicts it."""
    if outcome.timed_out:
        return _own(probe, "timeout", f"No verdict within {limit:g} s; the probe was killed{_stuck(outcome)}.")
    if outcome.signal_name:
        return _own(probe, "crash", f"The probe's process died of {outcome.signal_name}{_said(outcome)}.")
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
        contradiction = f"The verdict says {verdict.status} and the exit status {outcome.returncode}."
        return _own(probe, "fail", contradiction)
    return verdict


def check_device(verdict: Verdict, expect: Expect) -> Verdict:
    """Turn a pass on another kind of device than the expected one into a failure."""
    kind = verdict.device.kind if verdict.device else "no device"
    if verdict.status != "pass" or expect in ("any", kind):
        return verdict
    return dataclasses.replace(verdict, status="fail", summary=f"It ran on {kind} where {expect} was expected.")


def _own(probe: Probe, status: Status, summary: str) -> Verdict:
    return Verdict(probe=probe.name, status=status, summary=summary)


def _stuck(outcome: Outcome) -> str:
    return ", and does not die: it hangs in the kernel driver" if outcome.returncode is None else ""


def _said(outcome: Outcome) -> str:
    if outcome.stdout.strip():
        return " after it had given a verdict, which is void"
    return " (sent from outside, often by the kernel when memory ran out)" if outcome.returncode == -9 else ""


@contextlib.contextmanager
def end_on_sigterm() -> Iterator[None]:
    """Leave through the clean-up that kills the running probe when this process is told to end."""
    previous = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


if __name__ == "__main__":
    sys.exit(main())

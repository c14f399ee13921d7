"""`python -m trainer bench`: each benchmark in a process of its own; what hangs or crashes costs only its own numbers.

Standard output carries JSON lines only: one verdict a benchmark, as probes give them, then `{"event": "bench", ...}`.
Needs nothing but the standard library until a benchmark starts.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from trainer.diagnostics.bench.registry import BENCHMARKS
from trainer.diagnostics.probes import runner
from trainer.diagnostics.probes.entry import Expect, Request
from trainer.diagnostics.probes.registry import Probe
from trainer.diagnostics.probes.verdict import Verdict
from trainer.runtime.errors import TrainerError, listing
from trainer.runtime.events import emit, say

DEVICES = ("auto", "cpu", "cuda", "rocm")
OPTIONS = [
    {
        "command": "bench",
        "name": "device",
        "kind": "text",
        "help": "device that must be measured; auto: the first card, else the CPU (default: auto)",
        "type": "{" + ",".join(DEVICES) + "}",
    },
    {
        "command": "bench",
        "name": "seconds",
        "kind": "text",
        "help": f"measuring time of each benchmark, its start not counted (default: {Request.seconds:g})",
        "type": "SECONDS",
    },
    {
        "command": "bench",
        "name": "only",
        "kind": "list",
        "help": "benchmarks between commas; may be repeated (default: all)",
        "type": "NAME,...",
    },
    {
        "command": "bench",
        "name": "timeout",
        "kind": "text",
        "help": "time limit of each benchmark (default: its own limit plus --seconds)",
        "type": "SECONDS",
    },
]


def main(argv: Sequence[str]) -> int:
    """Run the benchmarks asked for. Returns 0 if some measured and none failed, 1 otherwise, 2 on wrong usage."""
    try:
        arguments = parser().parse_args(argv)
        chosen = select(arguments.only)
    except TrainerError as error:
        emit("error", **error.parts())
        say(error.render())
        return error.exit_status
    expect: Expect = "any" if arguments.device == "auto" else arguments.device
    with runner.end_on_sigterm():
        return bench(chosen, expect, seconds=arguments.seconds, timeout=arguments.timeout)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        hint = "Correct the flag that is named; `./invokew bench --help` lists them all."
        raise TrainerError("RM500", what=message, where="bench", next=hint)


def parser() -> argparse.ArgumentParser:
    """Return the parser; it raises RM500 for anything that the command does not take."""
    made = _Parser(prog="trainer bench", description="Measure what this machine can do.", epilog=listed())
    texts: dict[str, Any] = {option["name"]: {"help": option["help"], "metavar": option["type"]} for option in OPTIONS}
    made.add_argument("--device", choices=DEVICES, default="auto", **texts["device"])
    made.add_argument("--seconds", type=_seconds, default=Request.seconds, **texts["seconds"])
    made.add_argument("--only", action="append", **texts["only"])
    made.add_argument("--timeout", type=_seconds, **texts["timeout"])
    return made


def listed() -> str:
    """Return what there is to measure, as a sentence."""
    return " ".join(f"{each.name}: {each.summary}." for each in BENCHMARKS)


def _seconds(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 < (seconds := float(text)) < float("inf"):
            return seconds
    raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above zero")


def select(names: Sequence[str] | None) -> tuple[Probe, ...]:
    """Return the benchmarks called `names`, in the registry's order; all of them for None.

    Raises:
        TrainerError: RM525 for a name that is not in the registry.
    """
    known = [each.name for each in BENCHMARKS]
    typed = [name.strip() for listed in names or () for name in listed.split(",")]
    requested = [name for name in typed if name] or typed  # a comma at the end names nothing; nothing else is refused
    for name in requested:
        if name not in known:
            hint = listing(name, known, kind="benchmarks")
            raise TrainerError("RM525", what=f"no benchmark is called {name!r}", where="--only", next=hint)
    return tuple(each for each in BENCHMARKS if names is None or each.name in requested)


def bench(chosen: Sequence[Probe], expect: Expect, *, seconds: float, timeout: float | None) -> int:
    """Run one after the other, for they would disturb each other, and print what each found.

    Args:
        chosen: benchmarks to run, in order.
        seconds: measuring time of one benchmark.
        timeout: time limit of one benchmark in seconds; None for its own.
    """
    began, verdicts = time.monotonic(), []
    for verdict in measured(chosen, expect, seconds, timeout):
        verdicts.append(verdict)
        print(verdict.to_json(), flush=True)
        say(f"{verdict.probe}: {verdict.status} after {verdict.seconds:.1f} s. {verdict.summary}")
    return finish(verdicts, expect, time.monotonic() - began)


def measured(chosen: Sequence[Probe], expect: Expect, seconds: float, timeout: float | None) -> Iterator[Verdict]:
    """Yield the verdicts, as they come.

    Args:
        chosen: benchmarks to run, in order.
        seconds: measuring time of one benchmark.
        timeout: time limit of one benchmark in seconds; None for its own.
    """
    for each in chosen:
        say(f"{each.name}: {each.summary} …")
        limit = timeout or each.timeout_seconds + seconds
        yield runner.run(each, expect, limit, more=["--seconds", str(seconds)])


def finish(verdicts: Sequence[Verdict], expect: str, seconds: float) -> int:
    """Print what was measured and on what. Returns 0 if at least one benchmark passed and none failed.

    Args:
        verdicts: verdict of each benchmark.
        expect: kind of device that was expected.
        seconds: duration of the whole.
    """
    passed = [verdict for verdict in verdicts if verdict.status == "pass"]
    failed = {v.probe: v.status for v in verdicts if v.status not in ("pass", "not-applicable")}
    emit(
        "bench",
        measured=[verdict.probe for verdict in passed],
        failures=failed,
        not_applicable={v.probe: v.summary for v in verdicts if v.status == "not-applicable"},
        expect=expect,
        ran_on=ran_on(passed),
        seconds=round(seconds, 3),
    )
    return 0 if passed and not failed else 1


def ran_on(passed: Sequence[Verdict]) -> str:
    """Print what the numbers are of, for a person."""
    devices = dict.fromkeys(verdict.device for verdict in passed if verdict.device)
    names = ", ".join(f"{device.name} ({device.arch})" for device in devices)
    if not names:
        return "nothing"
    return f"the CPU, {names}; no card was measured" if {d.kind for d in devices} == {"cpu"} else names

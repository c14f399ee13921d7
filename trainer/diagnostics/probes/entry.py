"""The entry point of every probe: arguments in, one JSON line out, whatever happens in between.

A probe module ends with `sys.exit(entry.main("name", measure))`.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TextIO, get_args

from trainer.diagnostics.probes.placement import NoDeviceError
from trainer.diagnostics.probes.verdict import Verdict

Expect = Literal["cpu", "cuda", "rocm", "any"]


@dataclass(frozen=True, kw_only=True)
class Request:
    """Request to a probe: the kind of device, and the time limit after which it is killed.

    `seconds` is how long a benchmark measures; other probes take the time that their subject takes.
    """

    expect: Expect = "any"
    timeout_seconds: float = 180.0
    seconds: float = 1.5


Measure = Callable[[Request], Verdict]


def main(probe: str, measure: Measure, argv: Sequence[str] | None = None) -> int:
    """Run `measure` and print its verdict as the only line on stdout. Returns 0 for a pass, else 1.

    Args:
        probe: name in its registry, such as "blas"; the verdict carries it.
        measure: returns the verdict for a request.
        argv: command line without the program; None for that of this process.
    """
    request = parse_request(argv)
    verdict_line = claim_stdout()
    started = time.monotonic()
    verdict = guarded(probe, measure, request)
    verdict = dataclasses.replace(verdict, seconds=round(time.monotonic() - started, 3))
    print(verdict.to_json(), file=verdict_line, flush=True)
    return 0 if verdict.status == "pass" else 1


def parse_request(argv: Sequence[str] | None) -> Request:
    """Read `--expect KIND --timeout SECONDS --seconds SECONDS`. Exits with status 2 on anything else."""
    parser = argparse.ArgumentParser(description="Run one probe and print its verdict as one JSON line.")
    parser.add_argument("--expect", choices=get_args(Expect), default="any")
    parser.add_argument("--timeout", type=float, default=Request.timeout_seconds, metavar="SECONDS")
    parser.add_argument("--seconds", type=float, default=Request.seconds, metavar="SECONDS")
    arguments = parser.parse_args(argv)
    return Request(expect=arguments.expect, timeout_seconds=arguments.timeout, seconds=arguments.seconds)


def claim_stdout() -> TextIO:
    """Keep stdout for the verdict: what libraries print there (RCCL does) goes to stderr from now on."""
    sys.stdout.flush()
    claimed = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return claimed


def guarded(probe: str, measure: Measure, request: Request) -> Verdict:
    """Return the verdict of `measure`; an exception becomes a verdict, its traceback goes to stderr.

    Args:
        probe: name in its registry, such as "blas"; the verdict carries it.
        measure: returns the verdict for a request.
    """
    try:
        return measure(request)
    except NoDeviceError as missing:
        return Verdict(probe=probe, status="no-device", summary=missing.reason, versions=missing.versions)
    except ModuleNotFoundError as error:
        return Verdict(probe=probe, status="fail", summary=f"{error.name} is not installed here.")
    except Exception as error:
        traceback.print_exc()
        reason = (str(error).strip() or "no message").splitlines()[0]
        return Verdict(probe=probe, status="fail", summary=f"{type(error).__name__}: {reason}")

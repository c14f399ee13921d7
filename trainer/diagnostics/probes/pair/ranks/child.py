"""Probes of two cards in one process: they run in a child, so that one that hangs or dies is still explained."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence

from trainer.diagnostics.probes import entry, registry, runner
from trainer.diagnostics.probes.entry import Measure, Request
from trainer.diagnostics.probes.verdict import Verdict
from trainer.runtime.child_process import run_limited

FLAG = "--direct"


def main(probe: str, measure: Measure, direct: Measure, argv: Sequence[str] | None = None) -> int:
    """Run the probe, or with FLAG the part of it that its child runs.

    Args:
        probe: name in its registry, such as "blas"; the verdict carries it.
        measure: the parent's part.
        direct: the part that the child runs.
        argv: command line without the program; None for that of this process.
    """
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument(FLAG, action="store_true")
    own, rest = parser.parse_known_args(argv)
    return entry.main(probe, direct if own.direct else measure, rest)


def verdict(
    probe: str, module: str, request: Request, seconds: float, environment: Mapping[str, str] | None = None
) -> Verdict:
    """Return the verdict of `module`'s child on the two cards, or what its end amounts to.

    Args:
        probe: name in its registry, such as "blas"; the verdict carries it.
        module: dotted name of the module that the child runs.
        seconds: time limit.
        environment: variables in addition to this process's.
    """
    (listed,) = [each for each in registry.PROBES if each.name == probe]
    argv = [sys.executable, "-m", module, FLAG, "--expect", request.expect, "--timeout", str(seconds)]
    outcome = run_limited(argv, seconds=seconds, env={**os.environ, **(environment or {})})
    sys.stderr.write(outcome.stderr)
    return runner.read_verdict(listed, outcome, seconds)

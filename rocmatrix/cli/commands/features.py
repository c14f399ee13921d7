"""Commands for the features of intraday bars."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from rocmatrix.cli.commands.jobs import run_job
from rocmatrix.jobs import runner as launch
from rocmatrix.jobs.programs import FEATURES
from rocmatrix.runtime.console import edge
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.paths import ROOT

if TYPE_CHECKING:
    from rocmatrix.jobs.job import JobRequest


@edge
def show() -> None:
    """Print name, formula and unit of every feature; the trainer needs nothing but Python for that."""
    argv = launch.native_argv(sys.executable, [FEATURES.name, "--list"])
    environment = launch.native_environment(ROOT, os.environ)
    sys.exit(subprocess.run(argv, env=environment, check=False).returncode)


@edge
def compute(wanted: JobRequest) -> None:
    """Compute features in a container or natively, and say which and why."""
    missing = [f"--{name}" for name in ("data", "out") if not wanted.options.get(name)]
    if missing:
        raise RocmatrixError("RM404", what=f"features needs {' and '.join(missing)}, or --list")
    done = run_job(wanted)
    if done is not None and done.status != 0:
        sys.exit(done.status)

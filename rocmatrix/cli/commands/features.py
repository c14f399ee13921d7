"""`./invokew features`: the features of intraday bars, listed or computed into a file."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rocmatrix.cli.commands.jobs import run_job
from rocmatrix.cli.options.command import command
from rocmatrix.cli.options.common import Job
from rocmatrix.jobs import runner
from rocmatrix.jobs.programs import FEATURES
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.paths import ROOT

if TYPE_CHECKING:
    from rocmatrix.jobs.job import JobRequest


@dataclass(frozen=True, kw_only=True)
class Features:
    """`features` has no option next to a job's and the trainer's."""


@command(
    Features,
    job=Job,
    trainer=FEATURES.name,
    about="Compute the features of intraday bars: from --data into the Arrow file --out, or --list them.",
)
def features(job_request: JobRequest, args: Features) -> None:
    """List features, or compute them in a container or natively, and report which and why."""
    if str(job_request.options.get("list", False)).lower() not in ("false", "no", "0", ""):
        if job_request.as_json:
            what = "features --list prints text; --json is for features that are computed, with --data and --out"
            raise RocmatrixError("RM404", what=what, next="OUT.json next to --out OUT has each name and formula.")
        show()
        return
    missing = [f"--{name}" for name in ("data", "out") if not job_request.options.get(name)]
    if missing:
        raise RocmatrixError("RM404", what=f"features needs {' and '.join(missing)}, or --list")
    done = run_job(job_request)
    if done is not None and done.status != 0:
        sys.exit(done.exit_status)


def show() -> None:
    """Print name, formula and unit of every feature; the trainer needs nothing but Python for that."""
    argv = runner.native_argv(sys.executable, [FEATURES.name, "--list"])
    environment = runner.native_environment(ROOT, os.environ)
    sys.exit(subprocess.run(argv, env=environment, check=False).returncode)

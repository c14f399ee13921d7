"""BuildKit's command run to its end: its output kept, its steps shown, its failure with the last lines."""

from __future__ import annotations

import re
import signal
import subprocess
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rocmatrix.containers.label_integrity import OUTPUT
from rocmatrix.images import disk_space
from rocmatrix.runtime.console import say
from rocmatrix.runtime.errors import RocmatrixError

__all__ = ["OUTPUT", "BuildKitError", "run"]
LINES_SHOWN = 20
STEP_WIDTH = 100
_STEP = re.compile(r"^#\d+ (\[.+)")  # BuildKit's plain progress: "#7 [runtime 2/4] RUN …"
_DISK_FULL = "no space left on device"


def run(argv: Sequence[str], *, log: Path, watched: disk_space.Room | None = None) -> None:
    """Run BuildKit, keep its whole output in `log` and show its steps. Raises RM202 with the last lines.

    `watched` looks at the room on the engine's disk with every line.

    Args:
        argv: the command, its program first.
        log: file that receives the whole output.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    lines: deque[str] = deque(maxlen=LINES_SHOWN)
    shown: set[str] = set()
    with log.open("w", encoding="utf-8") as kept, _started(argv) as output:
        for line in output.stdout or ():
            kept.write(line)
            if watched is not None:
                watched.measure()
            lines.append(line.rstrip())
            if (step := _STEP.match(line)) and step[1] not in shown:
                shown.add(step[1])
                say(f"  {step[1].rstrip()[:STEP_WIDTH]}")
    if output.returncode != 0:
        raise _failure(output.returncode, "\n".join(lines), log)


@contextmanager
def _started(argv: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """Run a command to its end; leaving early (Ctrl-C, a full disk) cancels it, so that it tags nothing."""
    with subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        try:
            yield process
        except BaseException:
            process.send_signal(signal.SIGINT)
            process.communicate()
            raise


class BuildKitError(RocmatrixError):
    """BuildKit's own failure. `status` is its exit status, negative for a signal."""

    def __init__(self, status: int, *, what: str, where: str, why: str, next: str) -> None:
        super().__init__("RM202", what=what, where=where, why=why, next=next)
        self.status = status


def _failure(status: int, tail: str, log: Path) -> BuildKitError:
    # The status alone decides; these words only choose the advice.
    advice = "The engine's disk seems full: `docker system df`, `docker builder prune`." if _DISK_FULL in tail else ""
    what = f"docker buildx ended with status {status}"
    return BuildKitError(status, what=what, where=str(log), why=tail, next=advice)

"""Run `train --ranks N` under torchrun on this machine and map its exit to the trainer's error codes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType

from trainer.distributed import refusal
from trainer.runtime.errors import TrainerError
from trainer.runtime.signals import ending_signals

PR_SET_PDEATHSIG = 1  # linux/prctl.h
LOOK_SECONDS = 0.1  # how often the launcher looks for a rank's refusal
LAUNCHED = "RANK"  # torchrun's; a rank never launches again


def command(arguments: Sequence[str], *, ranks: int, max_restarts: int) -> list[str]:
    """Return the argument list that runs `arguments`, a trainer's command line, as `ranks` processes.

    It spells out `--standalone` with an address for the name `localhost`: a container without a network may
    resolve neither `localhost` nor its own name. `trainer.distributed.agent` is torchrun without its own traceback.

    Args:
        arguments: the trainer's command line, without the program.
        ranks: number of processes.
        max_restarts: attempts after the first.
    """
    rendezvous = ["--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", f"--rdzv-id={secrets.token_hex(8)}"]
    here = ["--nnodes=1", f"--nproc-per-node={ranks}", "--local-addr=127.0.0.1", f"--max-restarts={max_restarts}"]
    # Without `--` torchrun's parser takes the trainer's --run for an abbreviation of its own --run-path.
    ends = ["--monitor-interval=0.2", "-m", "--"]
    return [sys.executable, "-m", "trainer.distributed.agent", *rendezvous, *here, *ends, "trainer", *arguments]


def launch(arguments: Sequence[str], *, ranks: int, max_restarts: int) -> int:
    """Run the ranks until they end; return 0, 75 where the run was asked to end and can be resumed, 130 for Ctrl-C.

    Args:
        arguments: the trainer's command line, without the program.
        ranks: number of processes.
        max_restarts: attempts after the first.

    Raises:
        TrainerError: the first rank's where it refused what another attempt would refuse as well, RM564 where they
            failed in every attempt, RM588 where torchrun itself was killed.
    """
    argv = command(arguments, ranks=ranks, max_restarts=max_restarts)
    with tempfile.TemporaryDirectory(prefix="trainer-ranks-") as folder:
        file = Path(folder) / "refusal.json"
        # torchrun would set the one thread as well, with four lines about it
        environment = {"OMP_NUM_THREADS": "1", **os.environ, refusal.FILE: str(file)}
        tie = ended_with_this_process()
        # In a group of its own: a terminal's Ctrl-C, next to the one that is passed on, would break its cleanup off.
        started = subprocess.Popen(argv, env=environment, preexec_fn=tie, process_group=0)  # noqa: PLW1509 -- one thread
        with started as process, passing_on(process) as requested:
            status = ended(process, file)
        refused = refusal.left(file)
    if status == 0:
        return 0
    if requested:
        code = "RM598" if requested[0] == signal.SIGINT else "RM554"
        return TrainerError(code, what="stopped among ranks").exit_status
    if refused is not None:
        raise refused
    if status < 0:
        raise TrainerError("RM588", what=f"torchrun was ended by {signal.Signals(-status).name}")
    what = f"{ranks} ranks failed in {max_restarts + 1} attempt(s); torchrun's status is {status}"
    raise TrainerError("RM564", what=what)


def ended(process: subprocess.Popen[bytes], refused: Path) -> int:
    """Wait until torchrun ends and return its status; ask it to end where a rank has left a refusal.

    Args:
        process: torchrun.
        refused: file that a rank may leave.
    """
    while not refused.exists():
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(LOOK_SECONDS)
    process.terminate()
    return process.wait()


def ended_with_this_process() -> Callable[[], None] | None:
    """Return what a child calls before it becomes another program, to get SIGTERM when this process ends.

    However it ends: SIGKILL cannot be handled. None where the system is not Linux. See prctl(2), PR_SET_PDEATHSIG.
    """
    if sys.platform != "linux":
        return None
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()  # looked up here: a child of fork should do little

    def tie() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
        if os.getppid() != parent:  # it ended before it could be tied to
            os.kill(os.getpid(), signal.SIGTERM)

    return tie


def end_with_launcher() -> None:
    """Let this rank get SIGTERM when the process that started it ends, however: torchrun's ranks outlive its SIGKILL.

    A run that is asked to end so takes a checkpoint, as for anybody's SIGTERM. Not on systems other than Linux.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


@contextlib.contextmanager
def passing_on(process: subprocess.Popen[bytes]) -> Iterator[list[int]]:
    """Pass the first SIGTERM, SIGINT or SIGHUP on to `process`; the list holds those that came.

    A second one would break off how torchrun ends its ranks, which it kills after half a minute in any case. A closed
    terminal is passed on as SIGTERM: ranks take a checkpoint for it.
    """
    came: list[int] = []

    def pass_on(number: int, _: FrameType | None) -> None:
        came.append(number)
        if len(came) == 1:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGTERM if number == signal.SIGHUP else number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, *ending_signals())}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

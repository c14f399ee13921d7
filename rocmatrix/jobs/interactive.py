"""Any command, or a shell, in a cell's image: with the mounts and devices of a training run, and no more rights.

Which of them and why is the run spec's; here a person's choices become one, and a program is run on their terminal.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from rocmatrix.containers import capability, runspec
from rocmatrix.containers.emit import cdi, docker
from rocmatrix.containers.emit.target import Host
from rocmatrix.containers.runspec import Chosen, Explanation, RunSpec
from rocmatrix.host.hardware import Hardware, read_hardware
from rocmatrix.host.sysfs import Files
from rocmatrix.images import build
from rocmatrix.matrix.matrix import Cell
from rocmatrix.runtime.errors import RocmatrixError

SHELL = "bash"
NOT_STARTED = 125  # the status of a container that never ran
# What `docker run` itself ends with, and shells too; 128 and a signal's number where one ended the program. Any other
# status is the program's own. A device that is gone is 127 too: the engine reports a file that is not there.
ENGINE_STATUS: Mapping[int, tuple[str, str]] = {
    125: (
        "the engine did not start the container",
        "Its reason is above; `--explain` gives the reason for each flag.",
    ),
    126: ("a program cannot be executed", "Name a program, not a folder or a text file."),
    127: (
        "a program is not in the image, or a device is no longer on the host",
        "`./invokew run -- bash -c 'command -v NAME'` looks for a program; where a line above names a device, "
        "`./invokew doctor` states what became of it.",
    ),
    132: ("a program was ended by SIGILL: the processor lacks an instruction", "Use a package built for it."),
    134: (
        "a program ended itself (SIGABRT)",
        "Its last line above has the reason; `./invokew diagnose LOG` explains it.",
    ),
    135: (
        "a program was ended by SIGBUS: a mapped file or shared memory has no more room",
        "Use fewer loader workers, or free the disk below /training.",
    ),
    137: (
        "a program was killed (SIGKILL): memory ran out, or another program ended it",
        "`dmesg | grep -i oom` on the host names it where memory did; use less data at a time, or fewer workers.",
    ),
    139: (
        "a program crashed (SIGSEGV)",
        "`python -X faulthandler` prints the place; `./invokew smoke` tries the card and its libraries.",
    ),
    143: ("a program was stopped (SIGTERM), as `docker stop` and schedulers do", "Start it again when it may run on."),
}


def host_of(root: Path) -> Host:
    """Return what emitters need to know of the machine whose file tree starts at `root`."""
    files = Files(root)
    enforcing = files.word("sys/fs/selinux/enforce") == "1"
    return Host(hardware=read_hardware(files), rootless=os.geteuid() != 0, selinux=enforcing)


def own_user() -> str:
    """Return this process' user and group as "uid:gid"."""
    return f"{os.getuid()}:{os.getgid()}"


def spec_for(
    chosen: Chosen, *, cell: Cell, hardware: Hardware, root: Path = Path("/"), by_cdi_name: bool = False
) -> RunSpec:
    """Return how to run a command in the cell's own image, or a shell where none is chosen. Raises as `run_spec`.

    Args:
        root: folder in place of / in which RDMA adapters are searched, for a recorded machine.
        by_cdi_name: pass cards by their CDI names, such as amd.com/gpu=0, in place of device nodes.
    """
    if chosen.data is not None and not chosen.data.exists():
        raise RocmatrixError("RM404", what="--data names nothing that exists", where=str(chosen.data))
    program, *arguments = chosen.command or (SHELL,)
    rdma = capability.rdma_nodes(Files(root)) if "rdma" in chosen.features else ()
    own = replace(chosen, image=build.tag(cell), command=arguments, entrypoint=program, rdma=rdma)
    spec = runspec.run_spec(cell, hardware, own)
    return cdi.by_name(spec, hardware) if by_cdi_name else spec


def terminal_rows() -> tuple[Explanation, ...]:
    """Return what joins a run to this process: its input, and a terminal where there is one."""
    source = f"{docker.MANUAL}#interactive"
    given = Explanation(
        flag="--interactive", value="", reason="what is typed or piped reaches the program", source=source
    )
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return (given,)
    return (given, Explanation(flag="--tty", value="", reason="this is a terminal", source=source))


def attached_argv(spec: RunSpec) -> list[str]:
    """Return the command that runs `spec` on this process' own input and output."""
    argv = docker.docker_run_argv(spec)
    return [*argv[:2], *(row.option for row in terminal_rows()), *argv[2:]]


def attached(argv: Sequence[str], *, variables: Mapping[str, str] | None = None) -> int:
    """Run a command on this terminal and return its exit status; signals are its own to answer.

    The engine's client reads the values of `variables` from a descriptor: they are in no command line and in no file.
    Raises RM201 where the engine's client is not installed.

    Args:
        argv: the command of `attached_argv`.
        variables: values of the variables that it passes on, by name.
    """
    try:
        process = _started(argv, variables or {})
    except FileNotFoundError as error:
        raise RocmatrixError("RM201", what=f"there is no `{error.filename}` command on the PATH") from error
    previous = signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    try:
        with process:
            while True:
                try:
                    return process.wait()
                except KeyboardInterrupt:  # the terminal sent it to the program too
                    continue
    finally:
        signal.signal(signal.SIGTERM, previous)


def _started(argv: Sequence[str], variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
    if not variables:
        return subprocess.Popen(argv)
    text = "".join(f"{name}={value}\n" for name, value in variables.items())
    with os.fdopen(os.memfd_create("variables"), "w+b") as kept:
        kept.write(text.encode())
        kept.seek(0)
        options = list(argv)
        for name in variables:
            options.remove(f"--env={name}")  # the first of them: words of the same form may stand after the image
        return subprocess.Popen(
            [*options[:2], f"--env-file=/proc/self/fd/{kept.fileno()}", *options[2:]], pass_fds=[kept.fileno()]
        )


def refused(status: int) -> RocmatrixError | None:
    """Return the error that an engine's own status stands for, None where the program ended."""
    if status not in ENGINE_STATUS:
        return None
    what, advice = ENGINE_STATUS[status]
    return RocmatrixError("RM207", what=what, why=f"docker, or a shell inside, ended with status {status}", next=advice)

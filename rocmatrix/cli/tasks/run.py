"""Tasks that run anything in a cell's image, and make a place to work in."""

import shlex
import sys

from invoke.context import Context
from invoke.tasks import task

from rocmatrix.cli.tasks.flags import REQUEST, FlagTask, request_of

HOST = {
    "cards": "cards by number, such as 0,1 (default: all that the cell is built for)",
    "user": "numbers such as 1000:1000 (default: your own)",
    "sysfs": "folder of a recorded machine, to tell how it would run there",
    "to": "write to this place instead of standard output",
}


@task(
    klass=FlagTask,
    auto_shortflags=False,
    help={
        **REQUEST,
        **HOST,
        "command": "what to run; or write it after `--` (default: a shell)",
        "target": "say how instead of running: docker, docker-sdk, compose, podman, cdi or devcontainer",
        "explain": "print every flag with its reason and its source, and what is not given and why",
        "json": "with --explain: print it as JSON, for programs",
        "data": "a file or folder of the host that the command may read, below /data",
        "output": "the folder of the host that the command may write, /training inside (default TRAINING)",
        "cdi": "ask for cards by their CDI names (amd.com/gpu=0); `run --for cdi` makes the file that knows them",
        "with_network": "reach the network through the engine's private bridge",
        "with_debugger": "for rocgdb and py-spy: SYS_PTRACE, and no system call filter",
        "with_numa": "bind memory to NUMA nodes: SYS_NICE, which opens mbind in the engine's filter",
        "with_ipc": "share /dev/shm with other containers of this host",
        "with_rdma": "RDMA adapters: their nodes, locked memory without a limit, and the host's network",
    },
)
def run(
    c: Context,
    rocm: str = "",
    torch: str = "",
    gpu: str = "",
    cell: str = "",
    python: str = "",
    companions: str = "",
    base: str = "",
    command: str = "",
    target: str = "",
    explain: bool = False,
    json: bool = False,
    to: str = "",
    data: str = "",
    output: str = "",
    cards: str = "",
    user: str = "",
    sysfs: str = "",
    cdi: bool = False,
    with_network: bool = False,
    with_debugger: bool = False,
    with_numa: bool = False,
    with_ipc: bool = False,
    with_rdma: bool = False,
    dry_run: bool = False,
    force: bool = False,
) -> None:
    """Run a command, or a shell, in a cell's image: the right mounts and devices, the least rights; or explain them."""
    from rocmatrix.cli.commands import run as commands

    asked = {
        "network": with_network,
        "debugger": with_debugger,
        "numa": with_numa,
        "ipc": with_ipc,
        "rdma": with_rdma,
    }
    commands.run(
        commands.asked(
            request_of(rocm, torch, gpu, cell, python=python, companions=companions),
            command=shlex.split(command) or _after_dashes(sys.argv),
            features=[name for name, given in asked.items() if given],
            cards=cards,
            user=user,
            data=data,
            output=output,
            by_cdi_name=cdi,
            target=target,
            explain=explain,
            as_json=json,
            to=to,
            sysfs=sysfs,
            base=base or None,
            dry_run=dry_run,
            force=force,
        )
    )


@task(
    klass=FlagTask,
    auto_shortflags=False,
    help={**{axis: REQUEST[axis] for axis in ("rocm", "torch", "gpu", "cell", "python", "companions", "force")}, **HOST}
    | {"to": "the folder to write (default .devcontainer)"},
)
def devcontainer(
    c: Context,
    rocm: str = "",
    torch: str = "",
    gpu: str = "",
    cell: str = "",
    python: str = "",
    companions: str = "",
    cards: str = "",
    user: str = "",
    to: str = "",
    sysfs: str = "",
    force: bool = False,
) -> None:
    """Write .devcontainer/: the cell's image as a place to work in, with the card, for your own user."""
    from rocmatrix.cli.commands import run as commands

    request = request_of(rocm, torch, gpu, cell, python=python, companions=companions)
    commands.devcontainer(commands.asked(request, cards=cards, user=user, to=to, sysfs=sysfs, force=force))


def _after_dashes(argv: list[str]) -> list[str]:
    """Return what stands after `--`, word by word; invoke joins the words, and with them what was quoted."""
    return argv[argv.index("--") + 1 :] if "--" in argv else []

"""Options of the tasks that run anything in a cell's image, and make a place to work in."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rocmatrix.cli.options.common import BASE, CARDS, DRY_RUN, FORCE, WithCompanions
from rocmatrix.runtime.option import option, options_of

if TYPE_CHECKING:
    from rocmatrix.containers.runspec import Chosen

FEATURE = "with_"  # begins the option of a feature of containers, `rocmatrix.containers.capability.FEATURES`


@dataclass(frozen=True, kw_only=True)
class Session(WithCompanions):
    """A container that a person works in."""

    cards: str = option(CARDS)
    user: str = option("numbers such as 1000:1000 (default: your own)")
    to: str = option("write to this place instead of standard output")
    sysfs: str = option("folder of a recorded machine, to show how it would run there")
    force: bool = option(FORCE, default=False)

    def chosen(self, command: Sequence[str] = (), **more: Any) -> Chosen:
        """Return what is chosen for the container; the image is the cell's. Raises RM404 where numbers are none."""
        from rocmatrix.containers.device_selection import card_numbers
        from rocmatrix.containers.runspec import Chosen
        from rocmatrix.jobs.interactive import own_user

        about = {"run_folder": Path("TRAINING").resolve(), **more}
        return Chosen(
            image="",
            command=tuple(command),
            user=self.user or own_user(),
            cards=card_numbers(self.cards) or None,
            **about,
        )


@dataclass(frozen=True, kw_only=True)
class Devcontainer(Session):
    """Options of `devcontainer`."""

    to: str = option("the folder to write (default .devcontainer)")


@dataclass(frozen=True, kw_only=True)
class Run(Session):
    """Options of `run`. Each `with_NAME` is a feature of containers by that name."""

    base: str = option(BASE)
    command: str = option("what to run; or write it after `--` (default: a shell)")
    target: str = option(
        "say how instead of running: docker, docker-sdk, compose, podman, cdi or devcontainer", typed="for"
    )
    explain: bool = option(
        "print every flag with its reason and its source, and what is not given and why", default=False
    )
    json: bool = option("with --explain: print it as JSON, for programs", default=False)
    data: Sequence[str] = option(
        "a file or folder of the host that the command may read, below /data; may be repeated", default=()
    )
    code: str = option("a folder of your own code, which the command may read, at /code")
    code_writable: bool = option("let the command change the folder of --code", default=False)
    env: Sequence[str] = option(
        "NAME=VALUE, or NAME for this shell's value; may be repeated. Values are written nowhere", default=()
    )
    env_file: str = option("a file of such lines, as a shell takes them")
    port: Sequence[str] = option(
        "publish a port of the command on 127.0.0.1, such as 8888 or 9999:8888; it reaches the network then", default=()
    )
    output: str = option("the folder of the host that the command may write, /training inside (default TRAINING)")
    cdi: bool = option(
        "ask for cards by their CDI names (amd.com/gpu=0); `run --for cdi` makes the file that knows them",
        default=False,
    )
    with_network: bool = option("reach the network through the engine's private bridge", default=False)
    with_debugger: bool = option("for rocgdb and py-spy: SYS_PTRACE, and no system call filter", default=False)
    with_numa: bool = option(
        "bind memory to NUMA nodes: SYS_NICE, which opens mbind in the engine's filter", default=False
    )
    with_ipc: bool = option("share /dev/shm with other containers of this host", default=False)
    with_rdma: bool = option(
        "RDMA adapters: their nodes, locked memory without a limit, and the host's network", default=False
    )
    dry_run: bool = option(DRY_RUN, default=False)

    def chosen(self, command: Sequence[str] = (), **more: Any) -> Chosen:
        """Return what is chosen for the container; `command` stands after `--`. Raises RM111, RM112, RM404."""
        from rocmatrix.containers import brought

        return super().chosen(
            shlex.split(self.command) or command,
            run_folder=Path(self.output or "TRAINING").resolve(),
            features=self.features,
            more=(
                *brought.folders(
                    [Path(path).resolve() for path in self.data],
                    Path(self.code).resolve() if self.code else None,
                    writable=self.code_writable,
                ),
                *brought.environment(self.variables),
                *brought.ports(self.port),
            ),
            **more,
        )

    @property
    def variables(self) -> dict[str, str]:
        """Variables with their values. Raises RM111."""
        from rocmatrix.containers import brought

        return brought.variables(self.env, Path(self.env_file).expanduser() if self.env_file else None)

    @property
    def features(self) -> frozenset[str]:
        """The features that were asked for, by name."""
        switches = (name for name, each in options_of(type(self)).items() if each.default is False)
        named = (name for name in switches if name.startswith(FEATURE) and getattr(self, name))
        return frozenset([*(name.removeprefix(FEATURE) for name in named), *(["network"] if self.port else [])])

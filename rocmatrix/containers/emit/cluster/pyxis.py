"""A step of Slurm in a container of Pyxis and Enroot: options of srun in place of a program that starts the container.

Pyxis keeps the job's user, groups, limits and network; Enroot mounts the node's /dev unless its site forbids it, so
that the nodes of a card are named. Neither asks for a capability. Sources: NVIDIA/pyxis and NVIDIA/enroot.
"""

from __future__ import annotations

import re
import shlex
from typing import assert_never

from rocmatrix.containers import settings
from rocmatrix.containers.emit.cluster import on_node
from rocmatrix.containers.emit.parts import refuse_portable
from rocmatrix.containers.emit.sbatch_script import Launcher
from rocmatrix.containers.least_privilege import CACHE_FOLDER
from rocmatrix.containers.runspec import RunSpec

# A comma and a colon end a path for Pyxis; the rest is read by the shell of Enroot that it writes the paths into.
MISREAD = re.compile(r"[\s,:\"$`\\]")
WITHOUT_PYXIS = (
    "srun --help | grep -q -e --container-image || {",
    '    echo "rocmatrix RM425: srun knows no --container-image on $(hostname): it has no Pyxis" >&2',
    "    exit 127",
    "}",
)
AFTER = ('srun --ntasks-per-node=1 rm -rf -- "$work" >/dev/null 2>&1 || :',)


def in_pyxis(spec: RunSpec, *, cards: bool, rdma: bool = False) -> Launcher:
    """Return the launcher of Pyxis, whose container srun starts on each node. `spec.image` is what Pyxis takes.

    Raises ValueError for a portable spec, and for a setting that Pyxis has no word for.

    Args:
        cards: the job uses GPUs.
        rdma: the job uses the nodes' RDMA adapters.
    """
    refuse_portable(spec)
    # Not exported by the script: srun and Enroot look for the user, the home folder and the cache of the node.
    given = [f"{row.name}={row.content}" for row in spec.of(settings.Environment)]
    nodes = ["/dev/kfd", "/dev/dri"] * cards + ["/dev/infiniband"] * rdma
    mounts = [f"{node}:{node}" for node in nodes]
    mounts += [mount for setting in spec.settings for mount in _mounts(setting)]
    step = [
        f"--container-image={shlex.quote(spec.image)}",
        f'--container-mounts={",".join(mounts)},"$work":{CACHE_FOLDER}',
        "--container-workdir=/training",
        "--container-readonly",
        "--no-container-mount-home",
        "--no-container-remap-root",
        "--no-container-entrypoint",
    ]
    prepare = shlex.quote(on_node.before_pyxis(cards=cards, rdma=rdma))
    return Launcher(
        command=(shlex.join(["env", *given, "python"]),),
        step=tuple(step),
        before=(*WITHOUT_PYXIS, f"work={on_node.WORK}", f"srun --ntasks-per-node=1 sh -c {prepare} || exit"),
        after=AFTER,
        on_node=on_node.pyxis(rdma=rdma),
    )


def _mounts(setting: settings.Setting) -> tuple[str, ...]:
    """Return a setting's mounts as a shell reads them. Raises ValueError for what Pyxis has no word for."""
    match setting:
        case settings.Mount(kind="bind"):
            return (_bind(setting.origin, setting.target) + (":ro" if setting.read_only else ""),)
        case settings.Mount(target="/cache"):
            return ()  # a folder of the node, which the script makes
        case settings.Tmpfs():
            return (f"tmpfs:{shlex.quote(setting.target)}",)
        case settings.DropCapability(value="ALL") | settings.SecurityOption(value="no-new-privileges:true"):
            return ()  # a user of a user namespace that is not its root has none, and gets none
        case (
            settings.User()
            | settings.Group()
            | settings.Network()
            | settings.ReadOnlyRoot()
            | settings.Init()
            | settings.SharedMemory()
            | settings.Environment()
        ):
            # The job's own user, groups and network, and the node's /dev/shm; Slurm ends all processes of a job.
            return ()
        case (
            settings.Mount()
            | settings.AddCapability()
            | settings.DropCapability()
            | settings.SecurityOption()
            | settings.Limit()
            | settings.Ipc()
            | settings.Port()
            | settings.CdiDevice()
            | settings.Device()
        ):
            raise ValueError(f"Pyxis has no word for {setting.flag}={setting.value}")
        case _:
            assert_never(setting)


def _bind(origin: str, target: str) -> str:
    if MISREAD.search(origin) or MISREAD.search(target):
        raise ValueError(f"Pyxis would misread the mount {origin}:{target}")
    return shlex.quote(f"{origin}:{target}")

"""The settings of a run with least privilege, each with its reason and source.

`LEFT_OUT` names what is deliberately not set, and when it would be needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from rocmatrix.containers import settings
from rocmatrix.containers.device_selection import listing, visible_devices
from rocmatrix.host.hardware import Card, Hardware, groups_of
from rocmatrix.host.simulated import PREFIX
from rocmatrix.host.sysfs import DeviceNode
from rocmatrix.matrix.matrix import Cell

RUN_FOLDER, DATA_FOLDER, RECIPE_FOLDER, CACHE_FOLDER = "/training", "/data", "/recipe", "/cache"
CALLBACK_FOLDER = "/callbacks"
PROMISES = "ROCMATRIX_PROMISES"  # what an image holds for sure; says nothing of an environment outside of it
GIB = 1024**3
# Programs that would fill HOME, by the variable each reads.
CACHES = (
    ("XDG_CACHE_HOME", "xdg", "specifications.freedesktop.org/basedir-spec"),
    ("HF_HOME", "huggingface", "huggingface.co/docs/huggingface_hub, package_reference/environment_variables"),
)
NetworkName = Literal["none", "bridge", "host"]
NOGROUP = 65534  # owns no device

ENGINE = "docs.docker.com/reference/cli/docker/container/run"
ENGINE_SECURITY = "docs.docker.com/engine/security"
AMD = "rocm.docs.amd.com, install-on-linux, how-to/docker"
CALLER = "the command line"
KFD = "the compute interface that all cards share"

# (flag, why it is left out, source, the feature that brings it)
LEFT_OUT = (
    (
        "--privileged",
        "the device nodes and their groups suffice; it would hand over every device of the host",
        AMD,
        None,
    ),
    (
        "--cap-add=SYS_ADMIN",
        "mounts and namespaces are made by the engine; no part of ROCm asks for it",
        f"{ENGINE}#runtime-privilege-and-linux-capabilities",
        None,
    ),
    (
        "--network=host",
        "ranks on one host meet on the loopback; RDMA between hosts needs it, for an adapter's addresses belong to "
        "the host's network (--with-rdma)",
        "man7.org, rdma-system(8)",
        "rdma",
    ),
    (
        "--security-opt=seccomp=unconfined",
        "the engine's filter stays; rocgdb needs it lifted (--with-debugger), binding memory to NUMA nodes only one "
        "capability (--with-numa)",
        f"{ENGINE_SECURITY}/seccomp; AMD calls it optional: {AMD}",
        "debugger",
    ),
    (
        "--ipc=host",
        "the ranks of a job share their own container's /dev/shm; only ranks in several containers of one host "
        "need it (--with-ipc)",
        "pytorch/pytorch#40632",
        "ipc",
    ),
    (
        "--ulimit=memlock=-1",
        "network adapters with RDMA need it (--with-rdma); cards do not, and an engine that lacks CAP_SYS_RESOURCE "
        "(rootless) refuses to start with it",
        "ROCm/TheRock, container options of its CI; measured here: refused by an engine without that capability",
        "rdma",
    ),
    (
        "--cap-add=SYS_PTRACE",
        "for debuggers such as rocgdb and py-spy (--with-debugger); training traces no other process",
        "pytorch.org, install with ROCm",
        "debugger",
    ),
)


def user(value: str) -> settings.User:
    """Return the identity of the run, "uid:gid"."""
    root = value.startswith("0:")
    reason = "started by root; it owns its files, and has no capability" if root else "results belong to who started it"
    return settings.User(value=value, reason=f"{reason}; by number, for the image knows no names", source=ENGINE)


SHOWN = (
    "a rootless engine has no device rules, so the kernel shows it all the same, and ROCr ends with 0x1008 where one "
    "that it is shown has no node (ROCm/legacy-rocm-build#3144, #2860)"
)
ROOTLESS = "docs.docker.com/engine/security/rootless/uid-gid-mapping"


def user_of_rootless(value: str) -> settings.User:
    """Return the identity of a run under a rootless engine, which takes its own user for root.

    Args:
        value: that user on the host, "uid:gid".
    """
    return settings.User(
        value="0:0",
        reason=f"the engine is rootless: its root is {value} of the host, who owns the results, and has no right that "
        f"this user lacks. {value} inside would be another user of the host, who can write no run folder",
        source=ROOTLESS,
    )


def devices(
    nodes: Sequence[DeviceNode], chosen: Sequence[Card], *, others: Sequence[Card] = (), rootless: bool = False
) -> Iterator[settings.Device | settings.Group]:
    """Yield the nodes of the chosen cards, and the groups that open them; a rootless engine can give no group.

    Args:
        nodes: device nodes to pass in.
        chosen: cards of the run.
        others: cards that are passed although the run does not use them.
        rootless: the engine runs as a user.
    """
    alone = "no other is passed" if not others else "ROCR_VISIBLE_DEVICES chooses it"
    why = {
        card.render_path: f"card {card.index}, {card.gfx or 'not named by its old kernel'}; {alone}" for card in chosen
    }
    why |= {card.render_path: f"card {card.index}, which the run does not use: {SHOWN}" for card in others}
    for node in nodes:
        reason = why.get(node.path, KFD)
        yield settings.Device(host=node.host, container=node.path, reason=reason, source=AMD)
    for gid in () if rootless else groups_of(nodes):
        paths = ", ".join(node.path for node in nodes if node.gid == gid)
        yield _group(gid, f"owns {paths} on this host")


def portable_devices() -> Iterator[settings.Device | settings.Group]:
    """Yield all render nodes, whose numbers differ between hosts, and the groups as variables."""
    every = "every render node, for their numbers differ between hosts; the groups below open no other node"
    for path, reason in (("/dev/kfd", KFD), ("/dev/dri", every)):
        yield settings.Device(host=path, container=path, reason=reason, source=AMD)
    render = "${ROCMATRIX_RENDER_GID:?the group of the render nodes, printed by: stat -c %g /dev/dri/renderD*}"
    yield _group(settings.HostText(render), "owns the render nodes, and /dev/kfd on most hosts")
    # compose refuses a group listed twice, so where one group owns all, which is usual, this one stays unset
    kfd = settings.HostText(f"${{ROCMATRIX_KFD_GID:-{NOGROUP}}}")
    yield _group(kfd, "to be set only where /dev/kfd has another group than the render nodes")


UNLABELLED = "label=disable"


def labels(*, enforced: bool) -> Iterator[settings.SecurityOption]:
    """Yield what SELinux asks for where it is `enforced`; nothing elsewhere."""
    if enforced:
        yield settings.SecurityOption(
            value=UNLABELLED,
            reason="SELinux is enforced here: with a label the container may neither open the nodes nor write the run "
            "folder, and `:z` would give your data and folder another label on the host, for good",
            source=f"{ENGINE}#security-opt; docs.docker.com/engine/storage/bind-mounts (selinux label)",
        )


def portable_visibility() -> Iterator[settings.Environment]:
    """Yield the variable by which each host names its cards."""
    cards = "${ROCMATRIX_CARDS:?cards without the processor's own, such as 0,1; numbered by: ./invokew topology}"
    yield settings.Environment(
        name="ROCR_VISIBLE_DEVICES",
        content=settings.HostText(cards),
        reason="every node is passed, and a GPU of the processor would be one of the run's cards; partitions count too",
        source="ROCm/ROCm:docs/conceptual/gpu-isolation.md; ROCm/ROCm#4437",
    )


def _group(gid: int | settings.HostText, owns: str) -> settings.Group:
    return settings.Group(
        gid=gid,
        reason=f"{owns}; by number, for a name is looked up in the image, where it means another one or nothing",
        source="ROCm/ROCm-docker#90, #116; LLMKube#1572",
    )


NETWORKS: Mapping[NetworkName, tuple[str, str]] = {
    "none": ("training reads local files; what reaches nothing leaks nothing", f"{ENGINE}#network"),
    "bridge": ("asked for by hand: --with-network, or --port, which an engine publishes through it", CALLER),
    "host": ("--with-rdma: an adapter's addresses belong to the host's network", "man7.org, rdma-system(8)"),
}


def isolation(*, network: NetworkName) -> Iterator[settings.Setting]:
    """Yield what keeps the run inside its container."""
    why, source = NETWORKS[network]
    yield settings.Network(value=network, reason=why, source=source)
    yield settings.DropCapability(
        value="ALL",
        reason="device nodes are opened through their groups, which takes no capability",
        source=f"{ENGINE}#runtime-privilege-and-linux-capabilities",
    )
    yield settings.SecurityOption(
        value="no-new-privileges:true",
        reason="a set-uid program in the image cannot give back what was dropped",
        source=f"{ENGINE}#security-opt",
    )
    yield settings.ReadOnlyRoot(
        reason="what runs is what was built and proven; only the folders below can be written",
        source=f"{ENGINE}#read-only",
    )
    yield settings.Init(
        reason="ranks and data loader workers that end are collected, and Ctrl-C reaches the trainer",
        source=f"{ENGINE}#init",
    )


def files(
    cell: Cell, *, run_folder: str, owner: str, simulated: bool = False
) -> Iterator[settings.Mount | settings.Tmpfs]:
    """Yield what can be written. `owner` is the user id, part of the cache volume's name.

    Args:
        run_folder: absolute path on the host of the folder that receives the run's output.
        owner: user id in digits.
        simulated: the machine is a simulated one, whose caches are kept apart.
    """
    volume = f"rocmatrix-cache-{PREFIX if simulated else ''}{cell.name}-{owner}"
    yield settings.Mount(
        kind="bind",
        origin=run_folder,
        target=RUN_FOLDER,
        read_only=False,
        reason="the one folder of the host that a run writes to",
        source="rocmatrix: host and image meet at a mounted folder",
    )
    yield settings.Mount(
        kind="volume",
        origin=settings.HostText(volume) if isinstance(owner, settings.HostText) else volume,
        target=CACHE_FOLDER,
        read_only=False,
        reason="compiled kernels outlive the container. One volume a cell and user: no user runs or overwrites what "
        "another compiled; a new one takes mode 1777 from the image, so any user id can write it",
        source="docs.docker.com/engine/storage/volumes; ROCm/MIOpen:docs/conceptual/cache.rst",
    )
    yield settings.Tmpfs(
        target="/tmp",
        bytes=GIB,
        mode="1777",
        reason="HOME and scratch files, in memory and so capped; not executable, for compilers write to /cache",
        source=f"{ENGINE}#tmpfs",
    )


def data(target: str | None, *, origin: str) -> Iterator[settings.Mount]:
    """Yield the mount of the training data, where there is some."""
    if target is not None:
        reason = "training data is read, never changed"
        yield settings.Mount(kind="bind", origin=origin, target=target, read_only=True, reason=reason, source=CALLER)


def recipe_path(recipe: Path) -> str:
    """Return where a run finds a recipe of the host inside its container."""
    return f"{RECIPE_FOLDER}/{recipe.name}"


def recipe(file: Path | None) -> Iterator[settings.Mount]:
    """Yield the mount of a recipe, where one was given as a file."""
    if file is not None:
        reason = "settings are read, never changed"
        target = recipe_path(file)
        yield settings.Mount(kind="bind", origin=str(file), target=target, read_only=True, reason=reason, source=CALLER)


def callback_path(number: int, file: Path) -> str:
    """Return where a run finds the file of its callback `number` inside its container: two may have one name."""
    return f"{CALLBACK_FOLDER}/{number}/{file.name}"


def callbacks(files: Sequence[Path]) -> Iterator[settings.Mount]:
    """Yield the mounts of a user's callbacks."""
    for number, file in enumerate(files):
        reason = "code of the user's is read, never changed"
        target = callback_path(number, file)
        yield settings.Mount(kind="bind", origin=str(file), target=target, read_only=True, reason=reason, source=CALLER)


def memory(cell: Cell, *, host_bytes: int | None) -> Iterator[settings.SharedMemory]:
    """Yield the size of shared memory. `host_bytes` is the host's memory, None where the host is not known."""
    shared, users = (8 * GIB, "RCCL and data loader workers") if cell.architecture else (GIB, "data loader workers")
    yield settings.SharedMemory(
        bytes=min(shared, host_bytes // 2) if host_bytes else shared,
        reason=f"{users} pass batches through it, and the engine's 64 MiB end in a bus error; taken as it fills, "
        "and at most half of the host's memory, the kernel's own bound",
        source=f"pytorch/pytorch#40632; {AMD}",
    )


def environment(cell: Cell, *, network: NetworkName) -> Iterator[settings.Environment]:
    """Yield the cell's own variables, and what a numeric user without a network needs."""
    for row in cell.environment:
        yield settings.Environment(
            name=row.name, content=row.value, reason=row.why, source=", ".join(row.evidence.sources)
        )
    home = "a numeric user has no home, and programs write settings there"
    yield settings.Environment(name="HOME", content="/tmp", reason=home, source="Python, os.path.expanduser")
    named = {row.name for row in cell.environment}  # for a card XDG_CACHE_HOME is a folder that exists, as torch needs
    for variable, folder, source in (row for row in CACHES if row[0] not in named):
        kept = "downloads and caches are gigabytes: on the cache volume, not in the memory that /tmp is"
        yield settings.Environment(name=variable, content=f"{CACHE_FOLDER}/{folder}", reason=kept, source=source)
    name = "getpass.getuser, which torch.compile asks, fails for a number without a name"
    yield settings.Environment(name="USER", content="trainer", reason=name, source="Python, getpass.getuser")
    if network == "none":
        for library in ("GLOO", "NCCL") if cell.architecture else ("GLOO",):
            yield settings.Environment(
                name=f"{library}_SOCKET_IFNAME",
                content="lo",
                reason="with no network the container's own name has no address; ranks meet on the loopback",
                source="pytorch/pytorch#15592",
            )


def safe_path() -> Iterator[settings.Environment]:
    """Yield what keeps Python from searching the run folder for modules; a program of the user's own may need that."""
    yield settings.Environment(
        name="PYTHONSAFEPATH",
        content="1",
        reason="a torch.py in the run folder would be taken for torch, by the trainer's child processes too",
        source="Python, Command line and environment: -P",
    )


def visibility(
    hardware: Hardware, chosen: Sequence[Card], *, all_shown: bool = False
) -> Iterator[settings.Environment]:
    """Yield what hides the cards that were not chosen, where there are any.

    Args:
        hardware: this machine's.
        chosen: cards of the run.
        all_shown: the engine hides no card that it does not pass.
    """
    content = visible_devices(hardware, chosen, all_shown=all_shown)
    if content is not None:
        others = listing([card for card in hardware.cards if card not in chosen])
        yield settings.Environment(
            name="ROCR_VISIBLE_DEVICES",
            content=content,
            reason=f"{others}: not chosen, and hidden under an engine without device rules (rootless) too, where "
            "the kernel shows every card of the host",
            source="ROCm/ROCm:docs/conceptual/gpu-isolation.md; ROCm/ROCm#4437",
        )


def requested_variables(variables: Mapping[str, str]) -> Iterator[settings.Environment]:
    """Yield the variables that the caller sets."""
    for name, content in variables.items():
        yield settings.Environment(name=name, content=content, reason="asked for by the caller", source=CALLER)

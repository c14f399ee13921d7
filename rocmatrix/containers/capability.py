"""Optional capabilities of a run (`run --with-NAME`): each by name, with the settings that it needs, and why.

Nothing here is given unasked. `least_privilege.LEFT_OUT` names, for each of these settings, the feature that brings it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rocmatrix.containers.settings import UNLIMITED, AddCapability, Device, Group, Ipc, Limit, SecurityOption, Setting
from rocmatrix.host.hardware import groups_of
from rocmatrix.host.sysfs import DeviceNode, Files
from rocmatrix.runtime.errors import RocmatrixError, suggestion

ENGINE = "docs.docker.com/reference/cli/docker/container/run"
SECCOMP = "docs.docker.com/engine/security/seccomp"
RDMA_FOLDER = "/dev/infiniband"


@dataclass(frozen=True, kw_only=True)
class Feature:
    """Something that a run can be asked to be able to do; `settings` are made from the host's RDMA nodes."""

    about: str
    settings: Callable[[Sequence[DeviceNode]], Iterator[Setting]]


def _debugger(_: Sequence[DeviceNode]) -> Iterator[Setting]:
    yield AddCapability(
        value="SYS_PTRACE",
        reason="--with-debugger: root in the container attaches (rocgdb, py-spy) to what it did not start; anyone else "
        "gains nothing by it, for an engine gives capabilities to root alone, and debugs what they start themselves",
        source="man7.org, capabilities(7) and ptrace(2); pytorch.org, install with ROCm",
    )
    yield SecurityOption(
        value="seccomp=unconfined",
        reason="--with-debugger: rocgdb switches off address randomisation through personality(), which the "
        "engine's filter refuses",
        source=f"{SECCOMP}; measured here: refused by the default filter, with SYS_PTRACE too",
    )


def _numa(_: Sequence[DeviceNode]) -> Iterator[Setting]:
    yield AddCapability(
        value="SYS_NICE",
        reason="--with-numa: opens mbind and set_mempolicy in the engine's filter and nothing else of it, so that "
        "numactl can bind memory to the node of a card; AMD lifts the whole filter for this",
        source=f"{SECCOMP}; measured here: refused without SYS_NICE, taken with it",
    )


def _ipc(_: Sequence[DeviceNode]) -> Iterator[Setting]:
    yield Ipc(
        value="host",
        reason="--with-ipc: ranks in several containers of one host pass batches through one /dev/shm; it has the "
        "host's size, and every process of the host that may can read it",
        source=f"{ENGINE}#ipc; pytorch/pytorch#40632",
    )


def _rdma(nodes: Sequence[DeviceNode]) -> Iterator[Setting]:
    for node in nodes:
        reason = "--with-rdma: the adapter's own interface; RCCL registers memory with it"
        yield Device(host=node.path, container=node.path, reason=reason, source="Linux, infiniband/user_verbs.rst")
    for gid in groups_of(nodes):
        yield Group(gid=gid, reason=f"--with-rdma: owns nodes of {RDMA_FOLDER} on this host; by number", source=ENGINE)
    yield Limit(
        name="memlock",
        soft=UNLIMITED,
        hard=UNLIMITED,
        reason="--with-rdma: registered memory is locked, and counts against a limit of 8 MiB or less; an engine "
        "that lacks CAP_SYS_RESOURCE (rootless) refuses to start with it",
        source="Linux, infiniband/user_verbs.rst; ROCm/TheRock, container options of its CI",
    )


def _nothing(_: Sequence[DeviceNode]) -> Iterator[Setting]:
    yield from ()


FEATURES: Mapping[str, Feature] = {
    "network": Feature(about="reach the network through the engine's private bridge", settings=_nothing),
    "debugger": Feature(about="rocgdb and py-spy", settings=_debugger),
    "numa": Feature(about="bind memory to NUMA nodes (numactl)", settings=_numa),
    "ipc": Feature(about="share /dev/shm with other containers of this host", settings=_ipc),
    "rdma": Feature(about="RDMA adapters, for ranks on several hosts; takes the host's network", settings=_rdma),
}


def settings_of(features: Collection[str], *, rdma: Sequence[DeviceNode] = ()) -> Iterator[Setting]:
    """Yield what the named features add. `rdma` are the host's adapters. Raises RM404 or RM410."""
    for name in features:
        if name not in FEATURES:
            raise RocmatrixError("RM404", what=f"no feature is called {name}", why=suggestion(name, FEATURES))
    if "rdma" in features and not rdma:
        raise RocmatrixError("RM410", what=f"{RDMA_FOLDER} holds no node that can be read and written")
    for name, feature in FEATURES.items():
        if name in features:
            yield from feature.settings(rdma)


def network_of(features: Collection[str]) -> Literal["none", "bridge", "host"]:
    """Return the network that the features need: "host" for RDMA, "bridge" where asked for, else "none"."""
    if "rdma" in features:
        return "host"
    return "bridge" if "network" in features else "none"


def rdma_nodes(files: Files) -> tuple[DeviceNode, ...]:
    """Return the character devices of the host's RDMA adapters with their numeric groups, in the order of names."""
    folder = files.root / RDMA_FOLDER.lstrip("/")
    names = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    found = (files.node(f"{RDMA_FOLDER}/{name}") for name in names)
    return tuple(node for node in found if node is not None)

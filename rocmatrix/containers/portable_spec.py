"""Run spec for another machine: it holds nothing of this host.

No device node, no card's number or UUID, no group, no user and no size of memory is taken from here. What the caller
does not name, the scheduler or the node itself decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rocmatrix.containers import least_privilege
from rocmatrix.containers.runspec import RunSpec, require_legible
from rocmatrix.containers.settings import UNLIMITED, Group, HostText, Limit, Mount, Network, Setting
from rocmatrix.matrix.matrix import Cell

OWNER = HostText("$ROCMATRIX_UID")  # the node's own number of the user, which the cache volume's name ends with


@dataclass(frozen=True, kw_only=True)
class Places:
    """Paths on the other machine: `results` is mounted at /training, `data` at `data_target`, read-only.

    `recipe` is a file of settings, `callbacks` of code, `inputs` what is read next to the data. A claim's path is
    relative, a shared folder's absolute.
    """

    results: str
    data: str | None = None
    data_target: str | None = None
    recipe: Path | None = None
    callbacks: tuple[Path, ...] = ()
    inputs: tuple[Mount, ...] = ()


def elsewhere_spec(
    cell: Cell,
    *,
    image: str,
    command: Sequence[str],
    places: Places,
    user: str | None,
    groups: Sequence[int] = (),
    nodes: int = 1,
    rdma: bool = False,
) -> RunSpec:
    """Return how to run `cell` on other machines. `user` is "uid:gid", None where the node finds it out.

    `groups` own the device nodes there. With several nodes or RDMA the network is the machines' own. Raises RM404 for
    text that no engine can be handed.

    Args:
        image: reference or id of the image, as the other machines know it.
        command: arguments after the image's entry point.
        user: "uid:gid" in numbers; None where the node sets it.
        groups: ids of the groups that own the device nodes there.
        nodes: number of machines that take part, at least 1.
        rdma: give the container the host's RDMA adapters.
    """
    network: least_privilege.NetworkName = "host" if nodes > 1 or rdma else "none"
    settings: list[Setting] = [
        *([least_privilege.user(user)] if user else []),
        *(_group(gid) for gid in groups),
        *(_network(row, rdma=rdma) for row in least_privilege.isolation(network=network)),
        *least_privilege.files(cell, run_folder=places.results, owner=OWNER),
        *least_privilege.data(places.data_target, origin=places.data or ""),
        *least_privilege.recipe(places.recipe),
        *least_privilege.callbacks(places.callbacks),
        *places.inputs,
        *least_privilege.memory(cell, host_bytes=None),
        *least_privilege.environment(cell, network=network),
        *least_privilege.safe_path(),
    ]
    spec = RunSpec(cell=cell.name, image=image, command=tuple(command), settings=tuple(settings))
    require_legible(spec)
    return spec


def locked_memory() -> Limit:
    """Return the limit of locked memory that RDMA needs, for an engine that sets limits."""
    return Limit(
        name="memlock",
        soft=UNLIMITED,
        hard=UNLIMITED,
        reason="--rdma: registered memory is locked, and counts against a limit of 8 MiB or less",
        source="Linux, infiniband/user_verbs.rst",
    )


def _group(gid: int) -> Group:
    why = "owns the device nodes there, said with --groups; by number, for the image knows no names"
    return Group(gid=gid, reason=why, source="ROCm/ROCm-docker#90, #116")


def _network(row: Setting, *, rdma: bool) -> Setting:
    """Give the machines' network its reason here: an engine's bridge ends at its own machine."""
    if not isinstance(row, Network) or row.value != "host":
        return row
    why = "ranks on several machines meet at their addresses, and an engine's bridge ends at its own machine"
    source = "docs.docker.com/engine/network/drivers/bridge"
    if rdma:
        why, source = "an adapter's addresses belong to the host's network", "man7.org, rdma-system(8)"
    return Network(value="host", reason=why, source=source)

"""Join the world that torchrun's environment variables describe: card, transport, kind of parallel training."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch.distributed import PrefixStore, rendezvous  # type: ignore[attr-defined]

from trainer.distributed.collectives import Ranks
from trainer.distributed.parallel.rendezvous import meet
from trainer.distributed.parallel.world import PATIENCE, BootstrapGroup, Membership
from trainer.distributed.torchrun import end_with_launcher
from trainer.distributed.transports.selection import Choice, Place, choose
from trainer.distributed.transports.transport import AUTOMATIC, GLOO, candidates
from trainer.distributed.watchdog.guard import Launch, launch_number
from trainer.runtime.errors import TrainerError
from trainer.runtime.events import emit

if TYPE_CHECKING:
    from trainer.distributed.watchdog.heartbeat import HeartbeatWriter


def world_size() -> int:
    """Return how many ranks torchrun started; 1 for a plain process. Raises RM500 where that is no number."""
    return launch_number("WORLD_SIZE", 1)


def device_of_rank(requested: str) -> str:
    """Return the device for this rank: a card each; under `auto` the CPU for all where there is no card at all.

    Raises:
        TrainerError: RM563 where one card was named for several ranks, or there are fewer cards than ranks: several
            ranks on the CPU next to an idle card are nothing that was asked for.
    """
    launch = Launch.from_environment()
    if launch.local_world == 1 or requested == "cpu":
        return requested
    cards = torch.cuda.device_count()
    if requested.startswith("cuda:"):
        what = f"--device {requested} names one card for {launch.local_world} ranks"
        raise TrainerError("RM563", what=what, next="Say --device cuda, or start one rank.")
    if cards >= launch.local_world:
        return f"cuda:{launch.local_rank}"
    if requested == "cuda" or cards:
        what = f"{launch.local_world} ranks, {cards} card(s) on this machine"
        advice = f"Start {cards} rank(s), or give --device cpu for all of them." if cards else ""
        raise TrainerError("RM563", what=what, next=advice)
    return "cpu"


def require_address() -> None:
    """Raise RM500 where WORLD_SIZE is set without what a launcher sets with it: an environment of another program."""
    missing = [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if not os.environ.get(name)]
    if missing:
        what = f"the environment variable WORLD_SIZE is {os.environ['WORLD_SIZE']!r} without {', '.join(missing)}"
        advice = "For a run of one process: env -u WORLD_SIZE …; for several ranks on this machine: --ranks."
        raise TrainerError("RM500", what=what, next=advice)


def connect() -> Ranks:
    """Return the ranks that torchrun started, able to vote; a plain process is a world of one and needs no vote."""
    if world_size() == 1:
        return Ranks()
    require_address()
    end_with_launcher()
    launch = Launch.from_environment()
    if launch.local_world == world_size():
        # In a container without a network the host's own name may lead nowhere; all ranks are here anyway.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    hold_no_group_in_defaults()
    kept, rank, world = next(rendezvous("env://"))
    rendezvous_id = f"trainer/{meet(kept, rank, world)}"
    store = PrefixStore(rendezvous_id, kept)
    dist.init_process_group(
        "gloo", store=PrefixStore("bootstrap", store), rank=rank, world_size=world, timeout=PATIENCE
    )
    address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    place = {"rank": rank, "world_size": world, "local_rank": launch.local_rank}
    return BootstrapGroup(**place, store=store, address=address, rendezvous_id=rendezvous_id)


def hold_no_group_in_defaults() -> None:
    """Import what has torch's default group as the default of an argument while there is none yet.

    Imported later, they would hold the group for ever, and with it gloo's threads: see `BootstrapGroup.close`.
    """
    import torch.distributed.nn.functional  # noqa: F401


def join(
    bootstrap: Ranks,
    device: str,
    *,
    parallel: str = "ddp",
    comms: str = AUTOMATIC,
    compression: str = "none",
    heartbeat: HeartbeatWriter | None = None,
    report: Callable[..., None] = emit,
) -> Ranks:
    """Return the ranks of `bootstrap` able to train together; `report` receives the verdict on each transport tried.

    Args:
        device: name of this rank's device, such as "cuda:0" or "cpu".
        parallel: value of `--parallel`, one of `choices.PARALLEL`.
        comms: value of `--comms`: a transport's name, or auto.
        compression: value of `--gradient-compression`, one of `reduce.COMPRESSIONS`.
        heartbeat: heartbeat of this rank; None without a watchdog.
        report: receives the verdict on each transport tried, as an event's name and fields.

    Raises:
        TrainerError: RM561 where the ranks cannot communicate, RM562 where this torch lacks `parallel`.
    """
    if not isinstance(bootstrap, BootstrapGroup):
        bootstrap.heartbeat = heartbeat
        return bootstrap
    place = Place(
        rank=bootstrap.rank,
        world=bootstrap.world_size,
        device=device,
        address=bootstrap.address,
        rendezvous_id=bootstrap.rendezvous_id,
    )
    choice = choose_transport(place, bootstrap.store, comms, report=report if bootstrap.is_main else _silent)
    return kind(parallel)(enter(bootstrap, device, choice, compression=compression), heartbeat)


def choose_transport(place: Place, store: Any, comms: str, *, report: Callable[..., None]) -> Choice:
    """Return the transport for tensors on the rank's device; CPU ranks have one that needs no probe.

    Args:
        store: key-value store that all ranks reach.
        comms: value of `--comms`: a transport's name, or auto.
        report: receives the verdict on each transport tried, as an event's name and fields.
    """
    if place.device == "cpu" and comms in (AUTOMATIC, GLOO.name):
        report("comms", route=GLOO.name, passed=True, cause="", link=None, probed=False)
        return Choice(transport=GLOO, reason="the ranks compute on the CPU")
    transports = candidates(torch.device(place.device).type, comms, nccl_built=dist.is_nccl_available())
    return choose(transports, place, store, report=report)


def enter(bootstrap: BootstrapGroup, device: str, choice: Choice, *, compression: str) -> Membership:
    """Make the process group of the chosen transport, in addition to the one that votes.

    Args:
        device: name of this rank's device, such as "cuda:0" or "cpu".
        compression: value of `--gradient-compression`, one of `reduce.COMPRESSIONS`.
    """
    where = torch.device(device)
    os.environ.update(choice.transport.environment)
    if where.type == "cuda":
        torch.cuda.set_device(where)
    group = dist.new_group(backend=choice.transport.backend, timeout=PATIENCE)
    return Membership(bootstrap=bootstrap, device=where, choice=choice, compression=compression, group=group)


def kind(name: str) -> Callable[..., Ranks]:
    """Return the class for one of `choices.PARALLEL`; each is imported late, as a torch may lack what it needs."""
    if name == "fsdp2":
        from trainer.distributed.parallel.sharded import Sharded

        return Sharded
    if name == "pipeline":
        from trainer.distributed.parallel.pipeline import Pipeline

        return Pipeline
    if name == "sequence":
        from trainer.distributed.parallel.sequence import SequenceSplit

        return SequenceSplit
    from trainer.distributed.parallel.replicas import Replicas

    return Replicas


def _silent(*_: object, **__: object) -> None:
    """Report nothing: rank 0 reports for all."""

"""Votes, values and sums among the ranks of a joined world, for all kinds of parallel training."""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from trainer.device.memory import OutOfMemory
from trainer.distributed.collectives import Ranks
from trainer.distributed.transports.reduce import summation
from trainer.distributed.transports.selection import Choice
from trainer.distributed.watchdog.guard import Launch
from trainer.distributed.watchdog.heartbeat import HeartbeatWriter
from trainer.runtime.errors import TrainerError

LEAVE = timedelta(seconds=5)
PATIENCE = timedelta(hours=1)  # of torch's own groups; the watchdog looks closer


class BootstrapGroup(Ranks):
    """Ranks that can vote and pass values, over gloo and host memory: before it is known where they compute.

    torch's default group is this one whichever transport tensors take later: votes neither wait for a device nor mix
    with gradients.
    """

    def __init__(
        self, *, rank: int, world_size: int, local_rank: int, store: Any, address: str, rendezvous_id: str
    ) -> None:
        self.rank, self.world_size, self.local_rank = rank, world_size, local_rank
        self.store, self.address, self.rendezvous_id = store, address, rendezvous_id

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Wait for others: a section of its own for the watchdog, and an error of its own where one has ended.

        Raises:
            TrainerError: RM568 where the connection to another rank broke.
        """
        with self.section("comms"):
            try:
                yield
            except OutOfMemory:
                raise
            except RuntimeError as error:  # gloo has no class of its own for it
                raise TrainerError("RM568", what=str(error).splitlines()[0], where=f"rank {self.rank}") from error

    def announce_end(self, why: str) -> None:
        """Leave word in the store, which outlives this rank unless it is the one that holds it."""
        with contextlib.suppress(RuntimeError):
            self.store.set(self._end_of(self.rank), why)

    @contextlib.contextmanager
    def computing(self) -> Iterator[None]:
        """Compute among ranks that wait for each other within a layer.

        Raises:
            TrainerError: RM568 where that broke off and another rank had left word of its end.
        """
        try:
            yield
        except OutOfMemory:
            raise
        except RuntimeError as error:
            if isinstance(error.__cause__, OutOfMemory):  # torch's pipeline words it anew
                raise error.__cause__ from None
            ended = self._ended()
            if not ended:
                raise
            what = f"rank {ended[0]} had left word that it ends"
            raise TrainerError("RM568", what=what, where=f"rank {self.rank}") from error

    def _ended(self) -> list[int]:
        others = [rank for rank in range(self.world_size) if rank != self.rank]
        try:
            return [rank for rank in others if self.store.check([self._end_of(rank)])]
        except RuntimeError:  # the store went with the rank that held it
            return [0] if self.rank else []

    def _end_of(self, rank: int) -> str:
        return f"trainer/ended/{Launch.from_environment().attempt}/{rank}"

    def any_rank(self, *flags: bool) -> tuple[bool, ...]:
        """Return for each flag whether it is set on any rank."""
        votes = torch.tensor(flags, dtype=torch.uint8)
        with self.waiting():
            dist.all_reduce(votes, op=dist.ReduceOp.MAX)
        return tuple(bool(vote) for vote in votes.tolist())

    def broadcast(self, value: Any) -> Any:
        """Return rank 0's `value`."""
        box = [value]
        with self.waiting():
            dist.broadcast_object_list(box, src=0)
        return box[0]

    def gather(self, value: Any) -> list[Any]:
        """Return every rank's `value` in rank order."""
        found: list[Any] = [None] * self.world_size
        with self.waiting():
            dist.all_gather_object(found, value)
        return found

    def barrier(self) -> None:
        """Wait until all ranks are here."""
        self.any_rank(False)

    def close(self) -> None:
        """Leave the world and end gloo's threads; without torchrun rank 0 holds the store, so it goes last.

        A thread of gloo may still hold the tensor of the last collective when the main thread has its result. If it
        drops that tensor while the interpreter ends, Python ends the thread inside a destructor, and the process
        aborts (SIGABRT). The threads end with the group, and the group when nothing refers to it any more: hooks,
        sums and default arguments of torch's own functions do not, and cycles are collected here.
        """
        if not dist.is_initialized():
            return
        dist.destroy_process_group()
        gc.collect()
        if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
            return
        keys = [f"trainer/left/{rank}" for rank in range(1, self.world_size)]
        with contextlib.suppress(RuntimeError):  # one that died leaves no key
            if self.is_main:
                self.store.wait(keys, LEAVE)
            else:
                self.store.set(f"trainer/left/{self.rank}", "")


@dataclass(frozen=True, kw_only=True)
class Membership:
    """A rank's device and transport: `group` is the process group of the chosen transport."""

    bootstrap: BootstrapGroup
    device: torch.device
    choice: Choice
    compression: str
    group: Any


class World(BootstrapGroup):
    """Ranks that exchange tensors; subclasses decide what becomes of model and gradients."""

    def __init__(self, member: Membership, heartbeat: HeartbeatWriter | None = None) -> None:
        vars(self).update(vars(member.bootstrap))
        self.member, self.heartbeat = member, heartbeat
        transport = member.choice.transport
        self.add = summation(on_host=transport.on_host, compression=member.compression, group=member.group)
        self._plain = summation(on_host=transport.on_host, compression="none", group=member.group)

    def sum(self, tensor: Tensor) -> Tensor:
        """Add `tensor` up over the ranks, in place."""
        flat = tensor.reshape(-1)
        with self.waiting():
            self._plain(flat)()
        return tensor if flat.data_ptr() == tensor.data_ptr() else tensor.copy_(flat.view_as(tensor))

    def maximum(self, tensor: Tensor) -> Tensor:
        """Take the largest of each element over the ranks, in place, through host memory: these are few."""
        host = tensor.detach().to("cpu", copy=True)
        with self.waiting():
            dist.all_reduce(host, op=dist.ReduceOp.MAX)
        return tensor.copy_(host)

    @torch.no_grad()
    def share_buffers(self, model: nn.Module) -> None:
        """Give all ranks rank 0's buffers, by a sum to which the others add zeros."""
        for buffer in model.buffers():
            self.from_rank(0, buffer)

    @torch.no_grad()
    def from_rank(self, source: int, tensor: Tensor) -> None:
        """Give all ranks rank `source`'s `tensor`, in place, of any dtype."""
        host = tensor.detach().to("cpu", copy=True).contiguous()
        with self.waiting():
            dist.broadcast(host, src=source)
        if self.rank != source:
            tensor.copy_(host)

    def release(self) -> None:
        """End the threads that add, and let go of the process group; votes and values still pass."""
        self.add.close()
        self._plain.close()
        self.member = replace(self.member, group=None)

"""Sums over ranks, started now and waited for later, by each of the transports."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

Wait = Callable[[], None]
Sum = Callable[[Tensor], Wait]  # starts to add a flat tensor up over the ranks, in place; the result is there after


class DirectSum:
    """The process group's own all-reduce, asynchronous; `nccl` and `gloo`."""

    def __init__(self, group: dist.ProcessGroup | None = None) -> None:
        self.group = group

    def __call__(self, flat: Tensor) -> Wait:
        """Start to add `flat` up."""
        work = dist.all_reduce(flat, group=self.group, async_op=True)
        assert work is not None
        return lambda: _wait(work)

    def close(self) -> None:
        """Let go of the process group, whose threads end with it; nothing can be added up afterwards."""
        del self.group


class HostSum:
    """Copy to pinned host memory, add on the CPU with gloo, copy back; in a thread, so that backward goes on.

    One thread, so the ranks' sums meet in the order in which they were started.
    """

    def __init__(self, group: dist.ProcessGroup | None = None) -> None:
        self.group = group
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="host-sum")
        self._pinned: dict[tuple[int, torch.dtype], Tensor] = {}
        self._streams: dict[torch.device, torch.cuda.Stream] = {}

    def __call__(self, flat: Tensor) -> Wait:
        """Start to add `flat` up; on a card its kernels so far are waited for, not those that follow."""
        if not flat.is_cuda:
            return _waiting(self._thread.submit(self._add, flat, None))
        ready = torch.cuda.Event()
        ready.record(torch.cuda.current_stream(flat.device))
        return _waiting(self._thread.submit(self._add, flat, ready))

    def _add(self, flat: Tensor, ready: torch.cuda.Event | None) -> None:
        if ready is None:
            host = self._buffer(flat).copy_(flat)
            dist.all_reduce(host, group=self.group)
            flat.copy_(host)
            return
        stream = self._streams.setdefault(flat.device, torch.cuda.Stream(flat.device))
        with torch.cuda.device(flat.device), torch.cuda.stream(stream):
            ready.wait()
            host = self._buffer(flat).copy_(flat, non_blocking=True)
            torch.cuda.current_stream().synchronize()
            dist.all_reduce(host, group=self.group)
            flat.copy_(host, non_blocking=True)
            torch.cuda.current_stream().synchronize()  # afterwards any stream may read it

    def _buffer(self, flat: Tensor) -> Tensor:
        key = flat.numel(), flat.dtype
        if key not in self._pinned:
            self._pinned[key] = torch.empty(flat.numel(), dtype=flat.dtype, pin_memory=flat.is_cuda)
        return self._pinned[key]

    def close(self) -> None:
        """End the thread and let go of the process group; nothing can be added up afterwards."""
        self._thread.shutdown(wait=True, cancel_futures=True)
        del self.group


class CompressedSum:
    """Send bf16 in place of fp32: half the bytes, and each addend rounded to 8 bits of mantissa."""

    def __init__(self, inner: DirectSum | HostSum) -> None:
        self.inner = inner
        self._small: dict[int, Tensor] = {}

    def __call__(self, flat: Tensor) -> Wait:
        """Start to add `flat` up in bf16; other dtypes than fp32 travel as they are.

        The copy is kept for the next time: a bucket must be sent also where memory has just run out.
        """
        if flat.dtype != torch.float32:
            return self.inner(flat)
        small = self._small.get(flat.data_ptr())
        if small is None or small.shape != flat.shape:
            small = self._small[flat.data_ptr()] = torch.empty_like(flat, dtype=torch.bfloat16)
        small.copy_(flat)
        wait = self.inner(small)

        def finish() -> None:
            wait()
            flat.copy_(small)

        return finish

    def close(self) -> None:
        """Close what it wraps."""
        self.inner.close()


def summation(*, on_host: bool, compression: str, group: dist.ProcessGroup | None = None) -> Any:
    """Return the sum for a transport and a compression.

    Args:
        on_host: copy tensors through pinned host memory.
        compression: one of `choices.COMPRESSIONS`.
        group: process group; None for the default one.
    """
    plain = HostSum(group) if on_host else DirectSum(group)
    return CompressedSum(plain) if compression == "bf16" else plain


def ddp_hook(add: Sum, world_size: int) -> Callable[[object, Any], torch.futures.Future[Tensor]]:
    """Return `add` as a communication hook for torch's DistributedDataParallel, which wants the mean.

    For programs that use DistributedDataParallel themselves: `model.register_comm_hook(None, ddp_hook(...))`.
    """

    # DistributedDataParallel compares annotations with its own types, and these would be strings.
    def hook(_, bucket):  # type: ignore[no-untyped-def]
        flat = bucket.buffer()
        add(flat)()
        done: torch.futures.Future[Tensor] = torch.futures.Future(devices=[flat.device] if flat.is_cuda else [])
        done.set_result(flat.div_(world_size))
        return done

    return hook


def _wait(work: dist.Work) -> None:
    work.wait()


def _waiting(future: Future[None]) -> Wait:
    return future.result

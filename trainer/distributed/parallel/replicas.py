"""Data parallel: each rank holds the whole model and computes its share of every batch."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

from torch import nn

from trainer.device.memory import OutOfMemory
from trainer.distributed.parallel.buckets import GradientSync
from trainer.distributed.parallel.world import World
from trainer.distributed.transports.link import bucket_bytes


class Replicas(World):
    """`--parallel ddp`: gradients are added up in buckets while the last micro-batch's backward runs."""

    sync: GradientSync | None = None

    def prepare(self, model: nn.Module) -> nn.Module:
        """Give all ranks rank 0's weights, and watch the gradients come; `model` itself is what is called."""
        for tensor in model.state_dict().values():
            self.from_rank(0, tensor)
        if self.sync:
            self.sync.close()
        self.sync = GradientSync(model, self.add, bucket_bytes(self.member.choice.link))
        return model

    def micro_step(self, model: nn.Module, *, last: bool) -> AbstractContextManager[None]:
        """Return the context for one micro-batch; on leaving the last, or on running out of memory, all is sent."""
        return self._micro_step(last)

    @contextlib.contextmanager
    def _micro_step(self, last: bool) -> Iterator[None]:
        assert self.sync
        if last:
            self.sync.arm()
        try:
            yield
        except OutOfMemory:
            self.sync.flush()  # the others have sent theirs, or will; the vote that follows drops them all
            raise
        if last:
            self.sync.flush()

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Wait for the sums that were started, and make them the gradients."""
        assert self.sync
        with self.waiting():
            self.sync.finish()

    def release(self) -> None:
        """End the threads and let go of the process group."""
        if self.sync:
            self.sync.close()
        super().release()

"""Gradients in buckets, sent while backward still runs, in the same order on every rank.

This is what torch's DistributedDataParallel does, with three differences that the trainer needs:
- The layout is fixed. DistributedDataParallel makes it anew after the first step, in the order in which gradients
  came; with more than two ranks the order of addition then changes, and a resumed run differs in the last bits.
- A rank that runs out of memory still sends all buckets, so that no other rank waits for it before the vote.
- What is sent is a sum. Losses are divided by the weight of the whole batch, so the sum is the weighted mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from trainer.distributed.transports.reduce import Sum, Wait


class Bucket:
    """Some parameters' gradients as one flat tensor, with a mark behind for each that has one at all.

    `flat` is allocated once: where memory has just run out, the bucket must be sent all the same.
    """

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self.parameters = list(parameters)
        sizes = [parameter.numel() for parameter in self.parameters]
        first = self.parameters[0]
        self.flat = torch.zeros(sum(sizes) + len(sizes), dtype=first.dtype, device=first.device)
        *pieces, self.marks = self.flat.split([*sizes, len(sizes)])
        self.views = [piece.view_as(p) for piece, p in zip(pieces, self.parameters, strict=True)]
        self.waiting = len(self.parameters)

    @torch.no_grad()
    def fill(self) -> None:
        """Copy the gradients in; a missing one is zeros without a mark."""
        self.flat.zero_()
        present = [(v, p.grad) for v, p in zip(self.views, self.parameters, strict=True) if p.grad is not None]
        if present:
            views, gradients = zip(*present, strict=True)
            torch._foreach_copy_(views, gradients)
        if len(present) == len(self.parameters):
            self.marks.fill_(1)
            return
        for index, parameter in enumerate(self.parameters):
            self.marks[index] = float(parameter.grad is not None)

    @torch.no_grad()
    def write_gradients(self) -> None:
        """Copy the sums to the gradients; a parameter without one anywhere stays without."""
        present = [(p.grad, v) for p, v in zip(self.parameters, self.views, strict=True) if p.grad is not None]
        if present:
            gradients, views = zip(*present, strict=True)
            torch._foreach_copy_(gradients, views)
        if len(present) < len(self.parameters):
            for parameter, view, mark in zip(self.parameters, self.views, self.marks.tolist(), strict=True):
                if parameter.grad is None and mark > 0:
                    parameter.grad = view.clone()


def lay_out(parameters: Iterable[nn.Parameter], limit_bytes: int) -> list[Bucket]:
    """Return buckets of at most `limit_bytes` (one parameter may be larger), the last parameters first.

    Backward comes to the last layers first, so their bucket can be sent first. One dtype and device a bucket.
    """
    buckets: list[list[nn.Parameter]] = []
    kind, size = None, 0
    for parameter in reversed([p for p in parameters if p.requires_grad]):
        own = parameter.numel() * parameter.element_size()
        if kind != (parameter.dtype, parameter.device) or size + own > limit_bytes:
            buckets.append([])
            kind, size = (parameter.dtype, parameter.device), 0
        buckets[-1].append(parameter)
        size += own
    return [Bucket(group) for group in buckets]


class GradientSync:
    """Sends the buckets once a step: `arm`, backward, `flush`, then `finish` or, where the step failed, `arm` again."""

    def __init__(self, model: nn.Module, add: Sum, limit_bytes: int) -> None:
        self.add = add
        self.buckets = lay_out(model.parameters(), limit_bytes)
        self.armed, self.sent = False, 0
        self._waits: list[Wait] = []
        self._hooks = [
            parameter.register_post_accumulate_grad_hook(self._hook(bucket))
            for bucket in self.buckets
            for parameter in bucket.parameters
        ]

    def close(self) -> None:
        """Remove the hooks, which hold this object and the process group.

        A parameter stores them where Python's collector cannot look, so a cycle through them is never freed.
        """
        while self._hooks:
            self._hooks.pop().remove()

    def arm(self) -> None:
        """Send each bucket from now on when its last gradient is there; drop what a failed step has sent."""
        self._drain()
        self.armed, self.sent = True, 0
        for bucket in self.buckets:
            bucket.waiting = len(bucket.parameters)

    def flush(self) -> None:
        """Send the buckets that were not sent, so that every rank sends each once, after a failed step, too."""
        if not self.armed:
            self.arm()
        while self.sent < len(self.buckets):
            self._send()
        self.armed = False

    def finish(self) -> None:
        """Wait for all buckets and make their sums the gradients."""
        self._drain()
        for bucket in self.buckets:
            bucket.write_gradients()

    def _hook(self, bucket: Bucket) -> _Arrival:
        return _Arrival(self, bucket)

    def arrived(self, bucket: Bucket) -> None:
        """Count a gradient; send what is complete, but never before the buckets in front of it."""
        if not self.armed:
            return
        bucket.waiting -= 1
        while self.sent < len(self.buckets) and self.buckets[self.sent].waiting <= 0:
            self._send()

    def _send(self) -> None:
        bucket = self.buckets[self.sent]
        bucket.fill()
        self._waits.append(self.add(bucket.flat))
        self.sent += 1

    def _drain(self) -> None:
        while self._waits:
            self._waits.pop(0)()


class _Arrival:
    """The hook of a parameter; a class, so that a model with hooks can still be copied and pickled."""

    def __init__(self, sync: GradientSync, bucket: Bucket) -> None:
        self.sync, self.bucket = sync, bucket

    def __call__(self, _: Tensor) -> None:
        self.sync.arrived(self.bucket)

    def __deepcopy__(self, memo: object) -> _Arrival:
        return self

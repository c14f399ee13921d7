"""Fingerprint of all that a later step depends on, cheap to compare before and after a callback."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

PIECE = 2**24  # bytes at a time: their products take eight times as much


@dataclass(frozen=True, kw_only=True)
class Fingerprint:
    """Names of what a callback must leave alone, each with something that changes when it does.

    Every in-place change raises a tensor's version, which is read without waiting for the device. Changes through
    `.data` and NumPy do not: with `content` the bytes are summed as well, which waits.
    """

    parts: Mapping[str, Any]
    content: bool

    @classmethod
    def of(cls, run: Any, *, content: bool) -> Fingerprint:
        """Return the fingerprint of a `Training`."""
        return cls(parts=dict(parts_of(run, content=content)), content=content)

    def difference(self, run: Any) -> str | None:
        """Return the name of the first part that is another now, None where none is."""
        now = Fingerprint.of(run, content=self.content).parts
        return next((name for name, value in self.parts.items() if now[name] != value), None)


def parts_of(run: Any, *, content: bool) -> Iterator[tuple[str, Any]]:
    """Yield the parts by name."""
    model, optimizer, state = run.model, run.optimizer, run.state
    weights = list(model.parameters())
    moments = [v for weight in weights for v in optimizer.state.get(weight, {}).values() if torch.is_tensor(v)]
    yield "weights", [mark(each, content) for each in weights]
    yield "buffers", [mark(each, content) for each in model.buffers()]
    yield "gradients", [each.grad is not None and mark(each.grad, content) for each in weights]
    yield "the optimizer's state", [mark(each, content) for each in moments]
    yield "the optimizer's settings", [repr(settings_of(group)) for group in optimizer.param_groups]
    yield "requires_grad of a weight", [each.requires_grad for each in weights]
    yield "training or evaluation mode", [each.training for each in model.modules()]
    yield "the position of the run", (state.step, state.epoch, state.batch, state.skipped, state.micro_batch.size)
    yield "the best weights or the history", (state.lowest, len(state.history), [id(v) for v in state.best.values()])


def settings_of(group: Mapping[str, Any]) -> dict[str, Any]:
    """Return an optimizer's settings of one group of weights: learning rate, decay and so on."""
    return {name: value for name, value in group.items() if name != "params"}


def mark(tensor: Tensor, content: bool) -> tuple[int, int, int]:
    """Return where a tensor is, how often it was changed in place, and the sum of its bytes or 0."""
    return tensor.data_ptr(), tensor._version, bytes_of(tensor) if content else 0


@torch.no_grad()
def bytes_of(tensor: Tensor) -> int:
    """Return the sum of a tensor's bytes, each weighted by its place; waits for the device."""
    here = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    flat = here.detach().contiguous().reshape(-1).view(torch.uint8)
    return sum(int((piece * places(piece)).sum()) for piece in flat.split(PIECE))


def places(piece: Tensor) -> Tensor:
    """Return weights from 1 to 251 for the bytes of `piece`: a prime, so that no element size divides it."""
    return torch.arange(len(piece), device=piece.device) % 251 + 1

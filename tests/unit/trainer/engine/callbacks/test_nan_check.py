"""The NaN guard is asked before steps and readings, and sees the rows of its own rank."""

from types import SimpleNamespace

import pytest
import torch

from trainer.engine.callbacks.callback import TakenSteps
from trainer.engine.callbacks.nan_check import NanCheck


class Guard:
    """Notes what it is asked, in order."""

    def __init__(self):
        self.calls = []

    def begin(self):
        self.calls.append("begin")

    def check(self):
        self.calls.append("check")

    def record(self, first, rows, losses):
        self.calls.append((first, [each.tolist() for each in rows], losses.tolist()))


def ranks(world_size, rank):
    def part(count):
        return slice(rank * count // world_size, (rank + 1) * count // world_size)

    return SimpleNamespace(ranks=SimpleNamespace(world_size=world_size, rank_slice=part))


@pytest.mark.parametrize(
    ("world_size", "rank", "own"), [(1, 0, [[1, 2], [3, 4]]), (2, 0, [[1], [3]]), (2, 1, [[2], [4]])]
)
def test_rows_that_are_recorded_are_the_ranks_own(world_size, rank, own):
    guard = Guard()
    taken = TakenSteps(5, [torch.tensor([1, 2]), torch.tensor([3, 4])], torch.tensor([0.5, 0.25]))
    NanCheck(guard).on_step_end(ranks(world_size, rank), taken)
    assert guard.calls == [(5, own, [0.5, 0.25])]


def test_guard_is_called_before_a_step_and_before_losses_are_read():
    guard = Guard()
    check = NanCheck(guard)
    check.on_step_begin(None)
    check.on_losses_ready(None)
    assert guard.calls == ["begin", "check"]

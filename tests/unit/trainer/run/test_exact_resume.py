"""`train N` equals `train k, stop, go on`, bit for bit, in one process; the kills are in test_kills.py."""

from __future__ import annotations

import random
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from tests.fixtures.training import gone_on, interrupted, network, same, training, weights
from trainer.engine.loop import fit
from trainer.storage.checkpoint_tree import decode


@pytest.mark.parametrize("name", ["fp32", "fp64", "bf16", "fp16"])
@pytest.mark.parametrize("step", [1, 6, 7, 8, 20])
def test_stopped_run_ends_like_an_undisturbed_one(name: str, step: int) -> None:
    make = partial(training, name)
    assert same(weights(gone_on(make, interrupted(make, step))), weights(make()))


def test_history_is_the_same_but_for_the_clock() -> None:
    first = [epoch.facts() for epoch in fit(training())]
    second = [epoch.facts() for epoch in fit(gone_on(training, interrupted(training, 10)))]
    assert first == second
    assert len({epoch["batches"] for epoch in first}) == 3


def test_python_and_numpy_generators_resume_too() -> None:
    class Noise(nn.Module):
        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            return inputs + random.gauss(0, 0.1) + np.random.normal(0, 0.1) if self.training else inputs

    def make(**more: object) -> object:
        random.seed(0)
        np.random.seed(0)
        np.random.normal()  # NumPy keeps the second of a pair of normal numbers: that is state, too
        return training(model=nn.Sequential(Noise(), network()), **more)

    assert same(weights(gone_on(make, interrupted(make, 9))), weights(make()))  # type: ignore[arg-type]


def test_scheduler_resumes_where_it_was() -> None:
    def make(**more: object) -> object:
        run = training(**more)
        run.scheduler = torch.optim.lr_scheduler.OneCycleLR(run.optimizer, max_lr=0.1, total_steps=21)
        return run

    plain = weights(training())
    scheduled = weights(make())  # type: ignore[arg-type]
    assert not same(plain, scheduled)
    assert same(weights(gone_on(make, interrupted(make, 9))), scheduled)  # type: ignore[arg-type]


def test_number_of_loader_workers_may_change() -> None:
    files = interrupted(partial(training, loader_workers=3), 10)
    assert same(weights(gone_on(training, files)), weights(training()))
    files = interrupted(training, 10)
    assert same(weights(gone_on(partial(training, loader_workers=2), files)), weights(training()))


def test_micro_batch_and_its_memory_are_in_the_checkpoint() -> None:
    make = partial(training, micro_batch=8)
    run = make()
    run.state.micro_batch.shrink()
    files = interrupted(partial(training, micro_batch=3), 10)
    assert decode(files)["state"]["micro_batch"]["size"] == 3
    assert gone_on(make, files).state.micro_batch.size == 3


def test_flipped_bit_of_the_state_changes_the_end() -> None:
    """What the comparison rests on: without any one part of the state the ends differ."""
    expected, files = weights(training()), interrupted(training, 10)
    for leave_out in ("random", "optimizer", "position", "buffers"):
        run = gone_on(training, files)
        if leave_out == "random":
            torch.manual_seed(5)
        elif leave_out == "optimizer":
            run.optimizer.state.clear()
        elif leave_out == "position":
            run.state.batch -= 1
        else:
            run.model[1].running_mean.zero_()  # type: ignore[index, union-attr]
        if leave_out == "buffers":
            run.epochs = 2  # later epochs would wash it out
            other = training(epochs=2)
            assert not same(weights(run), weights(other))
        else:
            assert not same(weights(run), expected)


def test_state_in_the_middle_of_a_step_is_refused() -> None:
    tree = decode(interrupted(training, 10))
    tree["state"]["micro_step"] = 1
    from trainer.engine.state import TrainState

    with pytest.raises(ValueError, match="middle of a step"):
        TrainState.from_tree(tree["state"])

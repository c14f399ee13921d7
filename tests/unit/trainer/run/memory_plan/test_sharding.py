"""Shares of a step's memory; the numbers are made up, but for one real network without data."""

from __future__ import annotations

from dataclasses import replace

import pytest
from torch import nn

from trainer.run.memory_plan.live_memory import Peak
from trainer.run.memory_plan.program import measured
from trainer.run.memory_plan.shapes import Program, config_of
from trainer.run.memory_plan.sharding import Groups, groups_of, spread

GROUPS = Groups(block=100, block_trained=80, rest=60, rest_trained=40, all=1060)
PARTS = {"weights": 1100, "gradients": 900, "optimizer": 1800, "activations": 500, "workspace": 70}


def peak() -> Peak:
    return Peak(allocated=sum(PARTS.values()), reserved=2 * sum(PARTS.values()), parts=dict(PARTS))


def test_groups_are_the_largest_block_and_all_that_is_in_none() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 5).requires_grad_(False))
    model.rest = nn.Parameter(nn.Linear(2, 2).weight.detach())
    found = groups_of(model)
    assert (found.block, found.block_trained, found.rest) == (4 * 25, 0, 4 * 4)
    assert found.all == 4 * (16 + 25 + 4)


@pytest.mark.parametrize(
    ("segment", "parts"),
    [
        # 40 of the weights' bytes are buffers, which no card shares
        ("forward", {"weights": 40 + 530 + 60 + 300, "gradients": 450, "workspace": 70}),
        ("end of backward", {"weights": 40 + 530 + 60 + 300, "gradients": 450 + 40 + 80, "workspace": 70 + 80}),
        ("optimizer", {"weights": 40 + 530, "gradients": 450, "workspace": 35}),
    ],
)
def test_share_of_two_cards_is_half_and_what_is_whole_for_a_while(segment: str, parts: dict[str, int]) -> None:
    found = spread(segment, peak(), GROUPS, 2, pieces=1)
    assert found.parts == {"optimizer": 900, "activations": 500} | parts
    assert found.allocated == sum(found.parts.values())
    assert found.reserved == 2 * found.allocated


def test_gradients_of_several_pieces_stay_whole_until_the_optimizer() -> None:
    assert spread("backward", peak(), GROUPS, 2, pieces=3).parts["gradients"] == 900
    assert spread("optimizer", peak(), GROUPS, 2, pieces=3).parts["gradients"] == 450


def test_trials_and_segments_without_a_moment_stay() -> None:
    assert spread("trials", peak(), GROUPS, 2, pieces=1) == peak()
    assert spread("forward", Peak(), GROUPS, 2, pieces=1) == Peak()


def test_full_tuning_over_more_cards_takes_less_on_each_down_to_what_is_whole() -> None:
    program = Program(
        raw={**config_of("qwen2.5-0.5b"), "num_hidden_layers": 8, "vocab_size": 1000}, fast=False, sequence=64
    )
    sizes = [measured(replace(program, shards=cards)).largest for cards in (1, 2, 4, 64)]
    allocated = [each.allocated for each in sizes]
    assert allocated == sorted(allocated, reverse=True)
    assert sizes[1].parts["optimizer"] * 2 == pytest.approx(sizes[0].parts["optimizer"], rel=0.01)
    assert allocated[3] > sizes[0].parts["activations"]

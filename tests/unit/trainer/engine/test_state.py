"""The state of a run: kept as a tree between steps, and measured without the clock where runs are compared."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.engine.batch_hash import HashChain
from trainer.engine.state import Epoch, MicroBatch, Sums, TrainState

EPOCH = Epoch(epoch=1, train_loss=0.5, validation_loss=0.25, seconds=2.0, rows_per_second=50.0, best=True)


def state(**changes):
    made = {
        "losses": torch.tensor([0.5]),
        "weights": torch.tensor([1.0]),
        "micro_batch": MicroBatch(limit=8, size=8),
    } | changes
    return TrainState(**made)


def test_state_is_the_same_after_its_tree():
    before = state(
        step=7, epoch=1, batch=3, seconds=1.5, lowest=0.25, best={"a": torch.ones(2)}, history=[EPOCH],
        chain=HashChain(head=b"h" * 16, links=bytearray(b"link")), sums=Sums(loss=1.0, weight=2.0, rows=3), counted=2,
    )  # fmt: skip
    after = TrainState.from_tree(before.as_tree())
    assert torch.equal(after.losses, before.losses)
    assert vars(after).keys() == vars(before).keys()
    plain = [name for name, value in vars(before).items() if not isinstance(value, torch.Tensor) and name != "best"]
    assert {name: getattr(after, name) for name in plain} == {name: getattr(before, name) for name in plain}


def test_links_in_a_tree_do_not_change_with_the_run():
    before = state(chain=HashChain(links=bytearray(b"ab")))
    tree = before.as_tree()
    before.chain.links += b"cd"
    assert bytes(TrainState.from_tree(tree).chain.links) == b"ab"


def test_state_in_the_middle_of_a_step_is_refused():
    with pytest.raises(ValueError, match="middle of a step, at micro-step 2"):
        TrainState.from_tree(state(micro_step=2).as_tree())


def test_tree_with_an_unknown_field_is_refused():
    with pytest.raises(TypeError, match="colour"):
        TrainState.from_tree(state().as_tree() | {"colour": 1})


@given(st.lists(st.floats(0, 9), max_size=6))
def test_measurements_without_gain_follow_the_first_lowest_loss(losses):
    history = [replace(EPOCH, validation_loss=loss) for loss in losses]
    expected = len(losses) - 1 - losses.index(min(losses)) if losses else 0
    assert state(history=history).measurements_without_gain() == expected
    assert state(history=[*history, replace(EPOCH, validation_loss=-1.0)]).measurements_without_gain() == 0


def test_facts_of_a_measurement_leave_the_clock_out():
    slower = replace(EPOCH, seconds=9.0, rows_per_second=1.0)
    assert EPOCH.facts() == slower.facts()
    assert EPOCH.figures() != slower.figures()
    assert "step" not in EPOCH.figures()
    assert replace(EPOCH, step=4).figures()["step"] == 4

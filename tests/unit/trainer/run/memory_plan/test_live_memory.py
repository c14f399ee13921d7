"""Parts of a plan's memory add up to the whole."""

from dataclasses import replace

import pytest
import torch

from tests.fixtures.footprints import ON_CARD
from trainer.run.memory_plan.allocator import PlainAllocator
from trainer.run.memory_plan.live_memory import BLAS_WORKSPACE, HANDLES, TRIALS, LiveMemory
from trainer.run.memory_plan.program import measured


def test_parts_add_up_to_the_whole_and_weights_are_counted_once():
    found = measured(replace(ON_CARD, adapter="lora"))
    assert sum(found.largest.parts.values()) == found.largest.allocated
    assert found.largest.parts["weights"] < 2.6 * found.all + 16 * found.trained
    assert found.reserved >= found.largest.allocated
    assert found.peaks[TRIALS].allocated > 0


@pytest.mark.parametrize("card", [False, True])
def test_card_counts_what_a_softmax_takes_within_itself_and_blas(card):
    memory = LiveMemory(PlainAllocator(), card=card)
    with memory:
        scores = torch.zeros(256, 256, requires_grad=True)
        memory.begin()
        torch.ops.aten._softmax_backward_data(scores.detach(), scores.detach(), -1, torch.float32)
    size = scores.nbytes
    within = 3 * size + HANDLES * BLAS_WORKSPACE if card else 2 * size
    assert max(peak.allocated for peak in memory.peaks.values()) == within

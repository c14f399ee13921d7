"""Parts of a plan's memory add up to the whole."""

from dataclasses import replace

from tests.fixtures.footprints import ON_CARD
from trainer.run.memory_plan.live_memory import TRIALS
from trainer.run.memory_plan.program import measured


def test_parts_add_up_to_the_whole_and_weights_are_counted_once():
    found = measured(replace(ON_CARD, adapter="lora"))
    assert sum(found.largest.parts.values()) == found.largest.allocated
    assert found.largest.parts["weights"] < 2.6 * found.all + 16 * found.trained
    assert found.reserved >= found.largest.allocated
    assert found.peaks[TRIALS].allocated > 0

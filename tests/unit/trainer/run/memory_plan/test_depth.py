"""Footprints of deep networks from shallow ones."""

from dataclasses import replace

import pytest

from tests.fixtures.footprints import ON_CARD, SMALL
from tests.left_out import long
from trainer.run.memory_plan.depth import estimated
from trainer.run.memory_plan.program import measured


@long
def test_depth_from_shallow_networks_equals_the_deep_one():
    deep = replace(ON_CARD, raw={**SMALL, "num_hidden_layers": 12})
    for how in ({"adapter": "lora"}, {}):
        line, whole = estimated(replace(deep, **how)), measured(replace(deep, **how))
        assert line.largest.allocated == pytest.approx(whole.largest.allocated, rel=0.03)
        assert line.flops == pytest.approx(whole.flops, rel=0.01)

"""Recipes for cards: each fits by the plan, and is what its first line says."""

import re

import pytest

from tests.left_out import one_of
from trainer.config.recipe import find, names, resolve
from trainer.run.memory_plan.cards import card_of
from trainer.run.memory_plan.fit import fit
from trainer.run.memory_plan.shapes import SHAPES, Program

PRESETS = [name for name in names() if name.startswith("lm-")]
PLANNED = re.compile(r"# planned for: (\d) x (.+), (\S+)")


def test_presets_cover_the_cards_that_people_have():
    cards = {PLANNED.match(find(name).read_text())[2] for name in PRESETS}
    assert {"MI50 16 GB", "MI50 32 GB", "RX 7900 XT", "RX 7900 XTX", "RX 9070 XT", "MI210", "MI300X"} <= cards
    assert {"8060S 64 GB", "8060S 128 GB"} <= cards


@pytest.mark.parametrize("name", one_of(PRESETS))
def test_preset_fits_its_card_by_the_plan(name):
    text = find(name).read_text()
    count, gpu, model = PLANNED.match(text).groups()
    assert "never run on AMD" in text
    config, card = resolve({"recipe": name}), card_of(gpu)
    assert config.compute.precision == card.precision
    assert config.distributed.ranks == int(count)
    program = Program(
        raw=SHAPES[model],
        adapter=config.model.adapter.adapter,
        precision=config.compute.precision,
        rows=config.compute.micro_batch,
        sequence=config.data.sequence,
        checkpointing=config.compute.activation_checkpointing,
        rank=config.model.adapter.lora_rank,
        attention=card.attention(flag=False),
        compiler=card.compiler,
        pieces=2,
    )
    found = fit(program, card, cards=int(count))
    assert found.fits, f"{found.need:,} of {found.budget:,} bytes"

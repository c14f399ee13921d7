"""What one rank of the scaling benchmark measures, in a world of one."""

from __future__ import annotations

import pytest
import torch

from trainer.diagnostics.bench.cards import scaling_rank
from trainer.diagnostics.bench.cards.scaling_rank import BATCHES, LEAST, Case
from trainer.distributed.collectives import Ranks

CPU, TINY = torch.device("cpu"), Case(widths=(8, 4), batch=16)


def test_cases_have_names_of_their_own_and_both_batches_on_cards() -> None:
    names = [case.name for case in scaling_rank.ON_CARDS]
    assert len(set(names)) == len(names) == 6
    assert names[0] == "54-32-16-1 by 256"


@pytest.mark.usefixtures("torch_as_before")
def test_ways_count_all_rows_of_their_epochs() -> None:
    alone = scaling_rank.train_alone(TINY, CPU, 0.01)
    both = scaling_rank.together("doubled", TINY, 32, Ranks(), CPU, 0.01)
    assert (alone["alone_rows"], both["doubled_rows"]) == (BATCHES * 16, BATCHES * 32)
    assert len(alone["alone"]) >= LEAST
    assert len(both["doubled"]) >= LEAST
    assert both["doubled_losses"][1] < both["doubled_losses"][0]

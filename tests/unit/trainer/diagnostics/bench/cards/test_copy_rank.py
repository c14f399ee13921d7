"""A round trip between the two ranks that stand in for cards, with the other rank played by this test."""

from __future__ import annotations

from typing import Any

import pytest
import torch.distributed as dist
from torch import Tensor

from trainer.diagnostics.bench.cards import copy_rank


@pytest.mark.parametrize(("spoiled", "wrong"), [(False, 0), (True, 1)])
def test_round_trip_counts_bytes_that_came_back_otherwise(
    spoiled: bool, wrong: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried: list[Tensor] = []

    def recv(into: Tensor, _: Any) -> None:
        into.copy_(carried[-1])
        if spoiled:
            into[0] ^= 1

    monkeypatch.setattr(dist, "send", lambda tensor, _: carried.append(tensor.clone()))
    monkeypatch.setattr(dist, "recv", recv)
    found = copy_rank.returned(64, 0, seed=1)
    assert found["wrong"] == wrong
    assert len(found["seconds"]) == copy_rank.ROUNDS

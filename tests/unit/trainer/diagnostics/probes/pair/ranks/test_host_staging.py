"""The retry through host memory: what travels between the ranks lies there, and the card computes all the same.

Torch's meta device stands in for a card: it takes tensors and computes shapes, and nothing can be copied back from it.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from trainer.diagnostics.probes.pair.ranks import collectives_rank, ddp_rank, fsdp2_rank, pipeline_rank
from trainer.diagnostics.probes.pair.ranks.host_staging import Staged
from trainer.distributed.transports.transport import HOST

CARD = torch.device("meta")


@pytest.fixture
def through_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ddp_rank.ROUTE, HOST.name)


def test_staged_layer_computes_what_the_layer_does_forward_and_backward() -> None:
    torch.manual_seed(3)
    plain, rows = torch.nn.Linear(5, 4), torch.randn(7, 5)
    staged = Staged(torch.nn.Linear(5, 4), torch.device("cpu"))
    staged.layer.load_state_dict(plain.state_dict())
    assert torch.equal(staged(rows), plain(rows))
    torch.autograd.backward([plain(rows).square().sum(), staged(rows).square().sum()])
    for mine, right in zip(staged.parameters(), plain.parameters(), strict=True):
        assert torch.equal(mine.grad, right.grad)  # type: ignore[arg-type]


def test_staged_layer_computes_on_the_card() -> None:
    staged = Staged(torch.nn.Linear(5, 4), CARD)
    assert {weight.device.type for weight in staged.parameters()} == {"cpu"}
    with pytest.raises(NotImplementedError, match="meta"):
        staged(torch.randn(7, 5))


def test_collectives_see_host_memory_only_in_the_retry_for_that(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[torch.device] = []

    def note(mine: torch.Tensor, rank: int) -> torch.Tensor:
        seen.append(mine.device)
        return mine

    class OnCard(torch.Tensor):
        """A tensor that says it lies on the card until it is copied to the host."""

        device: Any = CARD

        def cpu(self, *_: Any) -> torch.Tensor:
            return torch.ones(3)

    monkeypatch.delenv(ddp_rank.ROUTE, raising=False)
    assert collectives_rank.by_route(note) is note
    monkeypatch.setenv(ddp_rank.ROUTE, HOST.name)
    assert collectives_rank.by_route(note)(OnCard(), 0).device == CARD
    assert seen == [torch.device("cpu")]


def test_shards_and_stages_are_staged_only_in_the_retry_for_that(
    through_host: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    half, where = pipeline_rank.mine(0, CARD, seed=1)
    assert isinstance(half, Staged)
    assert (half.card, where.type) == (CARD, "cpu")
    assert [type(layer) for layer in fsdp2_rank.model(1, CARD).children()] == [Staged] * 3
    monkeypatch.setenv(ddp_rank.ROUTE, "gloo")
    half, where = pipeline_rank.mine(1, CARD, seed=1)
    assert (type(half), where) == (torch.nn.Sequential, CARD)
    assert {weight.device for weight in fsdp2_rank.model(1, CARD).parameters()} == {CARD}

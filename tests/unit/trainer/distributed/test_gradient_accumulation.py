from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from trainer.distributed.collectives import Ranks
from trainer.distributed.gradient_accumulation import accumulate, cuts
from trainer.models.decoder.recomputation import same_weights
from trainer.models.losses import squared_error_sum

TOLERANCE = 1e-12  # in fp64, relative


def rank(number: int, world_size: int) -> Ranks:
    made = Ranks()
    made.rank, made.world_size = number, world_size
    return made


def masked_error_sum(outputs: Tensor, targets: Tensor) -> Tensor:
    """A loss per token: NaN targets are padding."""
    known = ~targets.isnan()
    return (torch.where(known, outputs - targets, 0.0) ** 2).sum()


def gradient(inputs: Tensor, targets: Tensor, *, size: int, world_size: int, masked: bool = False) -> Tensor:
    """The gradient and the loss that all ranks together come to, the ranks one after the other."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1)).double()
    weight: float | Tensor = (~targets.isnan()).sum() if masked else len(targets)
    loss = torch.zeros((), dtype=torch.float64)
    for number in range(world_size):
        share = rank(number, world_size).rank_slice(len(targets))
        loss += accumulate(
            model,
            inputs[share],
            targets[share],
            size=size,
            weight=weight,
            loss_sum=masked_error_sum if masked else squared_error_sum,
            context=lambda last: nullcontext(),
        )
    return torch.cat([loss[None], *(p.grad.ravel() for p in model.parameters() if p.grad is not None)])


@given(st.integers(0, 50), st.integers(1, 60))
def test_cuts_cover_every_row_once(rows: int, size: int) -> None:
    pieces = list(cuts(rows, size))
    assert [row for piece in pieces for row in range(rows)[piece]] == list(range(rows))
    assert all(0 < piece.stop - piece.start <= size for piece in pieces)


@given(st.integers(0, 100), st.integers(1, 9))
def test_shares_cover_every_row_once(rows: int, world_size: int) -> None:
    shares = [rank(number, world_size).rank_slice(rows) for number in range(world_size)]
    assert [row for share in shares for row in range(rows)[share]] == list(range(rows))
    sizes = [share.stop - share.start for share in shares]
    assert max(sizes) - min(sizes) <= 1


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 5), st.integers(0, 99), st.booleans())
def test_split_over_pieces_and_ranks_gives_the_same_update(
    rows: int, size: int, world_size: int, seed: int, masked: bool
) -> None:
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(rows, 3, generator=generator, dtype=torch.float64)
    targets = torch.randn(rows, 1, generator=generator, dtype=torch.float64)
    if masked and rows > 1:
        targets[: rows // 2] = torch.nan  # one rank may hold nothing but padding
    whole = gradient(inputs, targets, size=rows, world_size=1, masked=masked)
    split = gradient(inputs, targets, size=size, world_size=world_size, masked=masked)
    assert torch.isfinite(whole).all()
    assert (whole - split).abs().max() <= TOLERANCE * max(1.0, whole.abs().max().item())


def test_mean_of_means_would_not_pass() -> None:
    inputs, targets = torch.randn(5, 3, dtype=torch.float64), torch.randn(5, 1, dtype=torch.float64)
    whole = gradient(inputs, targets, size=5, world_size=1)
    means = [gradient(inputs[piece], targets[piece], size=5, world_size=1) for piece in cuts(5, 4)]
    assert (whole - torch.stack(means).mean(0)).abs().max() > 1e-3


def test_last_piece_alone_is_marked_as_last() -> None:
    last_flags: list[bool] = []

    def context(last: bool) -> nullcontext[None]:
        last_flags.append(last)
        return nullcontext()

    model = nn.Linear(3, 1)
    accumulate(
        model,
        torch.randn(7, 3),
        torch.randn(7, 1),
        size=3,
        weight=7,
        loss_sum=squared_error_sum,
        context=context,
    )
    assert last_flags == [False, False, True]


def test_pieces_after_the_first_are_marked_as_of_the_same_weights() -> None:
    marks = []

    class Marked(nn.Linear):
        def forward(self, input: Tensor) -> Tensor:
            marks.append(same_weights())
            return super().forward(input)

    how = {"weight": 5, "loss_sum": squared_error_sum, "context": lambda last: nullcontext()}
    accumulate(Marked(3, 1), torch.ones(5, 3), torch.ones(5, 1), size=2, **how)  # type: ignore[arg-type]
    assert marks == [False, True, True]


def test_replayed_pieces_are_not_computed_again() -> None:
    model, seen = nn.Linear(3, 1), []

    def replay(inputs: Tensor, targets: Tensor, weight: float) -> Tensor | None:
        seen.append((len(inputs), len(targets), weight))
        return torch.tensor(10.0) if len(inputs) == 2 else None

    how = {"weight": 5, "loss_sum": squared_error_sum, "context": lambda last: nullcontext(), "replay": replay}
    loss = accumulate(model, torch.zeros(5, 3), torch.zeros(5, 1), size=2, **how)  # type: ignore[arg-type]
    assert seen == [(2, 2, 5), (2, 2, 5), (1, 1, 5)]
    assert loss.item() == pytest.approx(20 + model.bias.item() ** 2 / 5)

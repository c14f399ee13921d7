from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.data.loading.sampler import Sampler

SIZES = st.integers(1, 200), st.integers(1, 40), st.integers(0, 2**32 - 1), st.integers(0, 5)


@given(*SIZES)
def test_epoch_is_a_permutation_in_batches(rows: int, batch_size: int, seed: int, epoch: int) -> None:
    sampler = Sampler(rows=rows, batch_size=batch_size, seed=seed)
    batches = list(sampler.batches(epoch))
    assert sorted(torch.cat(batches).tolist()) == list(range(rows))
    assert len(batches) == sampler.count(epoch)
    assert [len(batch) for batch in batches] == sampler.sizes(epoch).int().tolist()


@given(*SIZES, st.data())
def test_sampler_resumes_from_any_batch(rows: int, batch_size: int, seed: int, epoch: int, data: st.DataObject) -> None:
    sampler = Sampler(rows=rows, batch_size=batch_size, seed=seed)
    start = data.draw(st.integers(0, sampler.count(epoch)))
    whole = list(sampler.batches(epoch))
    torch.manual_seed(data.draw(st.integers(0, 9)))  # the global generator is not asked
    rest = list(sampler.batches(epoch, start))
    assert len(rest) == len(whole) - start
    assert all(torch.equal(one, other) for one, other in zip(whole[start:], rest, strict=True))


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    orders = {
        tuple(Sampler(rows=30, batch_size=4, seed=seed).order(epoch).tolist()) for seed in (0, 1) for epoch in (0, 1, 2)
    }
    assert len(orders) == 6


def test_order_is_the_one_of_all_time() -> None:
    """A change here makes every unfinished run part from its beginning, and every published one unrepeatable."""
    assert Sampler(rows=8, batch_size=3, seed=0).order(0).tolist() == [5, 2, 3, 1, 6, 0, 4, 7]

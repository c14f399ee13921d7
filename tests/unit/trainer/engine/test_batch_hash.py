"""A chain of batches differs from the first other batch on, and in every later link."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.engine.batch_hash import LINK_BYTES, HashChain

BATCHES = st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=3), min_size=1, max_size=6)


def links(batches, cut_after=()):
    chain, found = HashChain(), ""
    for number, rows in enumerate(batches):
        chain.add(torch.tensor(rows))
        if number in cut_after:
            found += chain.cut()
    text = found + chain.cut()
    return [text[start : start + 2 * LINK_BYTES] for start in range(0, len(text), 2 * LINK_BYTES)]


@given(BATCHES, st.data())
def test_links_differ_from_the_first_other_batch_on(batches, data):
    place = data.draw(st.integers(0, len(batches) - 1))
    other = [*batches[:place], [*batches[place], 99], *batches[place + 1 :]]
    same = [one == two for one, two in zip(links(batches), links(other), strict=True)]
    assert same == [number < place for number in range(len(batches))]


@given(BATCHES, st.sets(st.integers(0, 5)))
def test_ends_of_epochs_change_no_link(batches, cuts):
    assert links(batches, cuts) == links(batches)
    assert len(links(batches)) == len(batches)


def test_order_of_rows_within_a_batch_counts():
    assert links([[1, 2]]) != links([[2, 1]])

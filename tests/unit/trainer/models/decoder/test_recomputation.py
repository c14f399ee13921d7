"""The mark of a pass that is run again."""

from __future__ import annotations

import threading

import pytest

from trainer.models.decoder.recomputation import Recomputation, SameWeights, recomputed, same_weights


def test_mark_holds_within_and_may_be_entered_again():
    mark = Recomputation()
    for _ in range(2):
        with mark, mark:
            assert recomputed()
        assert not recomputed()


def test_mark_ends_with_an_error_as_checkpointing_raises_to_stop_early():
    with pytest.raises(ValueError, match="stop"), Recomputation():
        raise ValueError("stop")
    assert not recomputed()


def test_mark_is_of_one_thread_alone():
    seen = []
    with Recomputation():
        other = threading.Thread(target=lambda: seen.append(recomputed()))
        other.start()
        other.join()
    assert seen == [False]


def test_weights_are_the_same_in_marked_passes_and_in_those_run_again():
    assert not same_weights()
    with SameWeights(), SameWeights():
        assert (same_weights(), recomputed()) == (True, False)
    with Recomputation():
        assert same_weights()
    assert not same_weights()

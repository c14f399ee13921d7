"""The search against SIMULATED histories: such as change once, and such as change at will."""

from itertools import pairwise
from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.nightly.bisection.search import Span, changes, most_questions, order, search, span

ANSWERS = st.sampled_from(["good", "bad", "skip"])


def answers(history):
    return lambda place: history[place]


def ends(history):
    return {0: "good", len(history) - 1: "bad"}


@given(st.integers(1, 200), st.integers(1, 200))
def test_simulated_history_that_changes_once_gives_its_first_bad_version(good, bad):
    history = ["good"] * good + ["bad"] * bad
    found = search(ends(history), answers(history))
    assert (found.good, found.bad, found.skipped) == (good - 1, good, ())
    assert found.monotone
    assert len(found.tested) <= ceil(log2(len(history)))
    assert len(found.tested) <= most_questions(Span(good=0, bad=len(history) - 1), ends(history))


@given(st.integers(1, 60), st.integers(1, 60), st.sets(st.integers(0, 120)))
def test_search_with_unanswered_versions_narrows_to_the_rest(good, bad, silent):
    history = ["good"] * good + ["bad"] * bad
    for place in silent & set(range(1, len(history) - 1)):
        history[place] = "skip"
    found = search(ends(history), answers(history))
    assert found.good < good <= found.bad
    assert found.skipped == tuple(range(found.good + 1, found.bad))
    assert all(history[place] == "skip" for place in found.skipped)


@given(st.lists(ANSWERS, max_size=60))
def test_simulated_history_that_changes_at_will_still_gives_a_step(middle):
    history = ["good", *middle, "bad"]
    found = search(ends(history), answers(history))
    assert (history[found.good], history[found.bad]) == ("good", "bad")
    assert all(history[place] == "skip" for place in range(found.good + 1, found.bad))
    assert len(set(found.tested)) == len(found.tested)


@given(st.lists(ANSWERS, min_size=1, max_size=30))
def test_recorded_history_runs_nothing_and_reports_its_changes(history):
    known = dict(enumerate(history))
    decided = [answer for answer in history if answer != "skip"]
    assert len(changes(known)) == sum(a != b for a, b in pairwise(decided))
    within = span(known)
    falls = any(a == "good" and "bad" in decided[i:] for i, a in enumerate(decided))
    assert (within is not None) == falls
    if within:
        found = search(known, pytest.fail)
        assert found.tested == ()
        assert found.monotone == (len(changes(known)) <= 1)


def test_search_without_a_pair_is_refused():
    assert span({0: "bad", 1: "good"}) is None
    with pytest.raises(ValueError, match="no good version"):
        search({0: "bad", 1: "good"}, pytest.fail)


def test_plan_shows_the_order_in_which_all_would_be_tested():
    known = {0: "good", 8: "bad"}
    assert list(order(known, Span(good=0, bad=8))) == [4, 6, 7]
    history = ["good"] * 8 + ["bad"]
    assert list(search(known, answers(history)).tested) == [4, 6, 7]

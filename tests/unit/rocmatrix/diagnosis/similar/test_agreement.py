"""What several near failures were settled by comes first, and two causes in other words count as one."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.diagnosis.similar.agreement import cosine, covered, ordered

WEIGHTS = {"libnuma": 4.0, "missing": 1.0, "kernel": 2.0, "old": 1.0}
words = st.frozensets(st.sampled_from(sorted(WEIGHTS)))


def weigh(term: str) -> float:
    return WEIGHTS[term]


@given(words, words)
def test_measures_are_shares_and_do_not_depend_on_the_order(one, other):
    for measure in (cosine, covered):
        assert 0 <= measure(one, other, weigh) <= 1 + 1e-9
        assert measure(one, other, weigh) == pytest.approx(measure(other, one, weigh))
        assert bool(measure(one, other, weigh)) == bool(one & other)


def test_short_cause_that_a_long_one_holds_is_covered_whole():
    assert covered({"libnuma"}, set(WEIGHTS), weigh) == 1
    assert cosine({"libnuma"}, set(WEIGHTS), weigh) == pytest.approx(4 / 22**0.5)


def test_heavy_term_counts_more_than_two_light_ones():
    shared_heavy = covered({"libnuma", "missing", "old"}, {"libnuma", "kernel"}, weigh)
    shared_light = covered({"libnuma", "missing", "old"}, {"missing", "old", "kernel"}, weigh)
    assert shared_heavy == pytest.approx(4 / 6) and shared_light == pytest.approx(2 / 4)


def test_failures_whose_causes_agree_come_before_a_nearer_one_alone():
    causes = [{"kernel"}, {"libnuma"}, {"libnuma", "missing"}]
    assert ordered([10.0, 9.0, 9.0], causes, weigh)[0] == 1
    assert ordered([10.0, 5.0, 5.0], causes, weigh) == [0, 1, 2]  # far ones have little of a say


def test_failures_whose_causes_share_nothing_come_in_the_order_of_nearness():
    causes = [{one} for one in WEIGHTS]
    assert not any(cosine(*pair, weigh) for pair in combinations(causes, 2))
    assert ordered([9.0, 8.0, 8.0, 1.0], causes, weigh) == [0, 1, 2, 3]
    assert ordered([], [], weigh) == []

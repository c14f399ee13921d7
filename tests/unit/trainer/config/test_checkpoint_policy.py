from __future__ import annotations

from argparse import ArgumentTypeError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.config.checkpoint_policy import Interval, Retention, parse_interval, parse_retention

CHECKPOINTS = st.dictionaries(st.integers(0, 10**6), st.floats(0, 10)).map(lambda found: list(found.items()))
POLICIES = st.builds(Retention, last=st.integers(0, 5), best=st.integers(0, 3), every=st.integers(0, 100))


def test_last_best_and_every() -> None:
    found = [(10, 0.5), (20, 0.1), (30, 0.4), (40, 0.3), (50, 0.6)]
    assert Retention(last=2).kept(found) == {40, 50}
    assert Retention(last=1, best=1).kept(found) == {20, 50}
    assert Retention(last=1, every=20).kept(found) == {20, 40, 50}
    assert Retention(last=2, best=1, every=30).lasting(found) == {20, 30}


@given(CHECKPOINTS, POLICIES)
def test_newest_always_stays_and_nothing_is_invented(found: list[tuple[int, float]], policy: Retention) -> None:
    kept = policy.kept(found)
    steps = {step for step, _ in found}
    assert kept <= steps
    assert not steps or max(steps) in kept
    assert policy.lasting(found) <= kept


@given(POLICIES)
def test_policy_is_read_as_it_is_written(policy: Retention) -> None:
    assert parse_retention(str(policy)) == policy


@pytest.mark.parametrize(
    ("text", "interval"),
    [
        ("500", Interval(steps=500)),
        ("60s", Interval(seconds=60)),
        ("10m", Interval(seconds=600)),
        ("1h", Interval(seconds=3600)),
        ("0", Interval()),
    ],
)
def test_intervals(text: str, interval: Interval) -> None:
    assert parse_interval(text) == interval
    assert parse_interval(str(interval)) == interval


@pytest.mark.parametrize("text", ["", "1d", "-5", "s", "1.5h"])
def test_text_that_is_no_interval_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="neither steps"):
        parse_interval(text)


@pytest.mark.parametrize("text", ["", "last", "last=-1", "worst=1", "last=2;best=1"])
def test_text_that_is_no_policy_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="not a policy"):
        parse_retention(text)


def test_newest_checkpoint_stays_though_no_count_was_given() -> None:
    found = [(5, 3.0), (10, 1.0), (15, 2.0)]
    assert Retention(last=0).kept(found) == {15}
    assert Retention(last=0, best=1).kept(found) == {10, 15}
    assert Retention(last=1).kept(found) == {15}
    assert Retention(last=2).kept(found) == {10, 15}
    assert Retention(last=0).kept([]) == set()

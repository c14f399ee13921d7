"""Running operations along sessions start anew with each session."""

from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trainer.data.profiles.session_grid import Grid

SESSIONS = st.lists(st.lists(st.integers(-3, 9).map(float), min_size=1, max_size=5), min_size=1, max_size=4)


def grid_of(sessions):
    counts = np.array([len(each) for each in sessions])
    block = SimpleNamespace(
        bars=range(int(counts.sum())), starts=np.cumsum(counts) - counts, counts=counts,
        session=np.repeat(np.arange(len(counts)), counts),
    )  # fmt: skip
    return Grid.of(block), np.array([value for each in sessions for value in each])


@given(SESSIONS)
def test_running_values_are_those_of_each_session_alone(sessions):
    grid, values = grid_of(sessions)
    assert grid.running(values, np.add).tolist() == [sum(each[: n + 1]) for each in sessions for n in range(len(each))]
    assert grid.running(values, np.minimum).tolist() == [
        min(each[: n + 1]) for each in sessions for n in range(len(each))
    ]
    assert grid.first(values).tolist() == [each[0] for each in sessions for _ in each]


@given(SESSIONS, st.integers(0, 6))
def test_earlier_value_is_of_the_same_session(sessions, bars):
    grid, values = grid_of(sessions)
    expected = [each[max(0, n - bars)] for each in sessions for n in range(len(each))]
    assert grid.earlier(values, bars).tolist() == expected


@given(SESSIONS)
def test_first_value_above_zero_is_found_once_it_was_there(sessions):
    grid, values = grid_of(sessions)
    expected, begin = [], 0
    for each in sessions:
        for n in range(len(each)):
            above = [place for place in range(n + 1) if each[place] > 0]
            expected.append(begin + (above[0] if above else 0))
        begin += len(each)
    assert grid.first_above_zero(values).tolist() == expected


@given(SESSIONS)
def test_table_is_filled_behind_short_sessions_and_flattened_again(sessions):
    grid, values = grid_of(sessions)
    table = grid.table(values, -99.0)
    assert grid.flat(table).tolist() == values.tolist()
    assert int((table == -99.0).sum()) == table.size - len(values)

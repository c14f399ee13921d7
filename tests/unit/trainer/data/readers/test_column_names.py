"""Columns of a file are found by their usual spellings, or as they were chosen."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.data.readers.column_names import REQUIRED, find_columns
from trainer.data.readers.forms.naming import plain
from trainer.data.readers.forms.spellings import SPELLINGS
from trainer.runtime.errors import TrainerError

NAMES = ("Date", "Open", "High", "Low", "Close", "Volume")


def test_spelling_stands_for_one_role_alone():
    known = [spelling for spellings in SPELLINGS.values() for spelling in spellings]
    assert len(known) == len(set(known))
    assert all(plain(spelling) == spelling for spelling in known)


@given(st.randoms(use_true_random=False), st.data())
def test_roles_are_found_in_any_order_and_letter_case(order: random.Random, data):
    names = {role: data.draw(st.sampled_from(SPELLINGS[role][:3])) for role in REQUIRED}
    cells = [f"<{name.upper()}>" for name in names.values()]
    order.shuffle(cells)
    found = find_columns(cells, "bars.csv")
    assert {role: plain(cells[place]) for role, place in found.place.items()} == names
    assert found.clock is None


def test_time_of_day_in_a_column_of_its_own_is_the_clock():
    found = find_columns(["Date", "Time", *NAMES[1:]], "bars.csv")
    assert (found.place["date"], found.clock, found.used["time"]) == (0, 1, "Time")


def test_second_column_of_volumes_is_kept_in_reserve():
    assert find_columns([*NAMES, "TickVol"], "bars.csv").spare_volume == len(NAMES)
    assert find_columns([*NAMES, "TickVol"], "bars.csv", {"volume": "TickVol"}).spare_volume is None


@pytest.mark.parametrize(("chosen", "place"), [({"close": "Adj"}, 6), ({"close": "7"}, 6), ({"close": "1"}, 0)])
def test_chosen_column_replaces_the_usual_one(chosen, place):
    assert find_columns([*NAMES, "Adj"], "bars.csv", chosen).place["close"] == place


@pytest.mark.parametrize(
    ("names", "chosen", "code", "words"),
    [
        (NAMES[:-1], {}, "RM512", "no column 'volume'"),
        ((*NAMES, "close"), {}, "RM512", "5 ('Close') and 7 ('close')"),
        (NAMES, {"close": "Clse"}, "RM731", "--columns close=Clse"),
        (NAMES, {"close": "0"}, "RM731", "--columns close=0"),
        (NAMES, {"close": "7"}, "RM731", "--columns close=7"),
    ],
)
def test_column_that_is_missing_or_ambiguous_is_refused(names, chosen, code, words):
    with pytest.raises(TrainerError) as refused:
        find_columns(names, "bars.csv", chosen)
    assert (refused.value.code, words in refused.value.what) == (code, True)


def test_pieces_are_the_volume_next_to_money_that_is_called_volumen():
    names = ["Datum", "Erster", "Hoch", "Tief", "Schlusskurs", "Stuecke", "Volumen"]
    assert find_columns(names, "ariva.csv").used["volume"] == "Stuecke"
    assert find_columns([*names[:5], "Volumen"], "ariva.csv").used["volume"] == "Volumen"

"""Names of columns as they are compared, and what is proposed for those that are missing."""

from __future__ import annotations

import pytest

from trainer.data.readers.forms.naming import chosen_column, missing_columns, plain
from trainer.runtime.errors import TrainerError

NAMES = ["Date", "Open Price", "<HIGH>", "BidLow", "em now"]


@pytest.mark.parametrize(
    ("name", "compared"),
    [("<OPEN>", "open"), ("BidOpen", "bid_open"), ("Adj. Close*", "adj_close"), ("Último", "último")],
)
def test_names_are_compared_in_lower_case_with_words_joined(name: str, compared: str) -> None:
    assert plain(name) == compared


@pytest.mark.parametrize(("column", "place"), [("em now", 4), ("5", 4), ("1", 0)])
def test_column_is_given_by_name_or_number(column: str, place: int) -> None:
    assert chosen_column("close", column, NAMES, "a.csv") == place
    with pytest.raises(TrainerError, match="RM731"):
        chosen_column("close", "6", NAMES, "a.csv")


def test_missing_columns_are_named_at_once_with_the_likely_one() -> None:
    both = missing_columns(["close", "volume"], ["em now"], NAMES, "a.csv")
    assert "'close' and 'volume'" in both.what and "--columns close=NAME,volume=NAME" in both.next
    assert "--columns 'close=em now'" in missing_columns(["close"], ["em now"], NAMES, "a.csv", "em now").next
    assert "volume=none" in missing_columns(["volume"], ["em now"], NAMES, "a.csv").next

"""What metadata.json states of rows."""

from __future__ import annotations

import numpy as np
import pytest

from trainer.tasks.records.rows import span_record


@pytest.mark.parametrize(
    ("last", "shown"), [("2020-01-03T00:00:00", "2020-01-03"), ("2020-01-03T15:59:00", "2020-01-03T15:59:00")]
)
def test_dates_show_a_time_of_day_only_if_there_is_one(last: str, shown: str) -> None:
    dates = np.array(["2020-01-02T00:00:00", last], "datetime64[s]")
    assert span_record(dates) == {"first_date": "2020-01-02", "last_date": shown}


def test_dates_of_a_table_in_any_order_are_the_earliest_and_the_latest() -> None:
    dates = np.array(["2020-03-01", "2020-12-31", "2020-01-01", "2020-02-04"], "datetime64[s]")
    assert span_record(dates) == {"first_date": "2020-01-01", "last_date": "2020-12-31"}

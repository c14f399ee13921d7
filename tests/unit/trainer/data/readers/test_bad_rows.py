"""Bad rows are counted by kind and by what was done, and the first lines are named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.data.readers.bad_rows import KINDS, SHOWN, BadRows
from trainer.data.readers.bars import Reading, open_source
from trainer.runtime.errors import TrainerError

NOTES = st.lists(
    st.tuples(st.sampled_from(sorted(KINDS)), st.lists(st.integers(1, 99), max_size=4), st.booleans()), max_size=6
)


@given(NOTES)
def test_counts_are_of_every_row_and_first_lines_of_the_first_five(notes):
    bad = BadRows(policy="repair", where="bars.csv")
    for kind, lines, repaired in notes:
        bad.note(kind, lines, repaired=repaired)
    found = bad.as_dict()
    for kind in KINDS:
        noted = [(lines, repaired) for each, lines, repaired in notes if each == kind]
        assert found["dropped"].get(kind, 0) == sum(len(lines) for lines, repaired in noted if not repaired)
        assert found["repaired"].get(kind, 0) == sum(len(lines) for lines, repaired in noted if repaired)
        assert found["first_lines"].get(kind, []) == [line for lines, _ in noted for line in lines][:SHOWN]
    assert len(bad.summary().splitlines()) == len(found["dropped"]) + len(found["repaired"])


def test_summary_names_file_count_reason_and_lines():
    bad = BadRows(policy="drop", where="bars.csv", unit="row")
    bad.note("range", [7, 9], repaired=False)
    assert bad.summary() == "bars.csv: 2 dropped, high is below low (first: row 7, 9)"


@pytest.mark.parametrize("kind", KINDS)
def test_refusal_has_the_code_of_its_kind_and_the_line(kind):
    error = BadRows(policy="error", where="bars.csv").refuse(kind, 7, "it is bad")
    assert (error.code, error.what, error.where) == (KINDS[kind][0], "it is bad", "bars.csv, line 7")


def test_price_below_zero_is_answered_with_the_reason_and_what_helps():
    error = BadRows(policy="error", where="bars.csv").refuse("price", 3, "close -37.63")
    assert "logarithms" in error.why and "adjusted by ratios" in error.next and "--on-bad-row drop" in error.next


def test_hour_that_the_zone_never_had_is_answered_with_the_option_for_the_zone(tmp_path):
    rows = [f"2024-03-{day} 02:30,10,12,9,11,5" for day in ("08", "09", "10", "11")]
    (tmp_path / "bars.csv").write_text("\n".join(["time,open,high,low,close,volume", *rows]) + "\n")
    with pytest.raises(TrainerError, match="RM513") as caught:
        list(open_source(tmp_path / "bars.csv", Reading()).chunks())
    assert "never was in America/New_York" in caught.value.what and "--time-zone" in caught.value.next
    assert len(next(open_source(tmp_path / "bars.csv", Reading(zone="UTC")).chunks())) == 4


def test_word_in_place_of_a_time_is_no_question_of_the_zone(tmp_path):
    rows = [f"{time},10,12,9,11,5" for time in ("2024-03-08 02:30", "2024-03-09 02:30", "soon", "2024-03-11 02:30")]
    (tmp_path / "bars.csv").write_text("\n".join(["time,open,high,low,close,volume", *rows]) + "\n")
    with pytest.raises(TrainerError, match="RM513") as caught:
        list(open_source(tmp_path / "bars.csv", Reading()).chunks())
    assert "no date as the others are" in caught.value.what and "--time-zone" not in caught.value.next

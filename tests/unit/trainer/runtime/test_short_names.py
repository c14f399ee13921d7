"""Names are shortened in the middle, and stay apart."""

from __future__ import annotations

import pytest

from trainer.runtime.short_names import shortened, shortened_apart


@pytest.mark.parametrize("name", ["", "a", "فئة", "類" * 40])
def test_short_name_stays(name: str) -> None:
    assert shortened(name) == name


@pytest.mark.parametrize("most", [3, 4, 10, 41])
def test_long_name_keeps_its_beginning_and_end(most: int) -> None:
    found = shortened("begin" + "x" * 200 + "end", most)
    assert len(found) == most
    assert found[0] == "b"
    assert found[-1] == "d"
    assert "…" in found


def test_names_that_differ_at_their_ends_stay_apart() -> None:
    first, second = ("class-" * 33 + "0", "class-" * 33 + "1")
    assert shortened(first) != shortened(second)
    alike = ["x" * 50 + "middle" + "y" * 50, "x" * 50 + "centre" + "y" * 50]
    assert len(set(shortened_apart(alike))) == 2


def test_name_of_several_lines_is_one_line() -> None:
    assert shortened("two\nlines\tand a tab") == "two lines and a tab"

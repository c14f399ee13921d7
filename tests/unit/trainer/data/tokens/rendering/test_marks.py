"""Marks around a part of a text: what they enclose, and where it is without them."""

from __future__ import annotations

import pytest

from trainer.data.tokens.rendering.marks import enclosed, spans_of


@pytest.mark.parametrize(
    ("content", "core", "found"), [(" ab ab\n", "ab", [(4, 6)]), ("ab", "", []), ("x🙂y", "🙂", [(1, 2)])]
)
def test_last_place_of_a_part_is_enclosed_and_found_without_its_marks(content, core, found):
    assert spans_of(enclosed(content, core)) == (content, found)


def test_several_parts_are_found_in_their_order():
    assert spans_of(f"{enclosed('a', 'a')}-{enclosed('bc', 'bc')}") == ("a-bc", [(0, 1), (2, 4)])

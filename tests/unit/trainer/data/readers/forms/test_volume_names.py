"""Columns of volumes by more than the word alone."""

from __future__ import annotations

import pytest

from trainer.data.readers.forms.volume_names import volume_of_parts


@pytest.mark.parametrize(
    ("known", "place", "more"),
    [
        (["volume_usd", "volume_btc"], 1, None),
        (["volume_brl", "volume_qty"], 1, None),  # Profit's own words for money and shares
        (["volume_usd"], 0, None),
        (["up", "down"], 0, 1),
        (["up", "down", "down"], None, None),
        (["traded_volume"], 0, None),
        (["vol_20", "implied_vol", "quote_volume"], None, None),
    ],
)
def test_volume_is_found_by_its_coin_its_parts_or_its_words(known: list[str], place: int | None, more: int | None):
    found: dict[str, int] = {}
    assert (volume_of_parts(known, found), found.get("volume")) == (more, place)

"""Tables of a few columns whose header stands anywhere, or nowhere."""

from __future__ import annotations

import pytest

from trainer.data.readers.forms.plain_table import plain_table

KNOWN = {"date", "close"}
TABLES = {
    "a header": ("Date,Close\n2024-03-07,14.5\n", ["Date", "Close"], [["2024-03-07", "14.5"]]),
    "a title, quoted cells": (
        'A title\n\n"Date";"Close"\n"7.3.2024";"14,5"\n', ["Date", "Close"], [["7.3.2024", "14,5"]]),
    "no header": ("2024-03-07\t14.5\n", ["column_1", "column_2"], [["2024-03-07", "14.5"]]),
    "no known header": ("a,b\n2024-03-07,1\n", ["column_1", "column_2"], [["2024-03-07", "1"]]),
    "three lines": (
        "Price,Close\nTicker,X\nDate,\n2024-03-07,14.5\n", ["Date", "Close"], [["2024-03-07", "14.5"]]),
    "a mark of the encoding": ("\ufeffDate,Close\n2024-03-07,14.5\n", ["Date", "Close"], [["2024-03-07", "14.5"]]),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_table_is_read_from_its_header_on(name: str) -> None:
    text, names, rows = TABLES[name]
    table = plain_table(text.removeprefix("\ufeff").encode(), KNOWN)
    assert (table.columns, [list(row) for row in table.rows()]) == (names, rows)

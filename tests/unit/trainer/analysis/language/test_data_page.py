"""The page on a data set holds its text as text."""

import re

from tests.fixtures.inspected_rows import GOOD
from trainer.analysis.language.data_page import html
from trainer.analysis.language.inspection import inspect


def test_page_has_no_script_and_shows_markup_of_the_data_as_text(rows):
    evil = {"prompt": "<script>alert(1)</script>\x00", "completion": "</pre><img src=x>"}
    text = html(inspect(rows(evil, GOOD)))
    assert "<script" not in text
    assert "<img" not in text
    assert "&lt;img src=x&gt;" in text
    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport"' in text
    assert {"prompt", "answer", "stop", "padding"} <= set(re.findall(r'<span class="(\w+)"', text))

"""Bars that are done are counted on a stream."""

import io

import pytest

from trainer.data.features.progress import bar_counter


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_bars_are_counted_on_a_terminal():
    stream = Terminal()
    with bar_counter(stream) as count:
        count(1200)
        count(300)
    assert "features" in stream.getvalue()
    assert "1.50k bars" in stream.getvalue()


def test_error_within_the_block_passes_through():
    with pytest.raises(KeyError), bar_counter(io.StringIO()):
        raise KeyError

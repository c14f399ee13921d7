"""Charts as SVG."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.browser import violations
from trainer.analysis.report.svg import NARROW, WIDE, Canvas, Frame, axes, bars_across, figure, ticks

pytestmark = pytest.mark.usefixtures("torch_as_before")


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 7), (0.001, 0.002), (1e6, 5e6)])
def test_ticks_are_round_and_inside(low: float, high: float) -> None:
    found = ticks(low, high)
    assert 3 <= len(found) <= 8
    assert low - 1e-9 <= found[0] and found[-1] <= high + 1e-9 * abs(high)


def test_figure_is_drawn_for_both_widths_with_its_description() -> None:
    text = figure("Title", "Caption", lambda canvas: ([f"<g id='{canvas.name}'/>"], 10 * canvas.x_ticks))
    assert text.count('role="img" aria-label="Title. Caption"') == 2
    assert '<svg class="wide" viewBox="0 0 640 50"' in text and '<svg class="narrow" viewBox="0 0 328 30"' in text


@pytest.mark.parametrize("canvas", [WIDE, NARROW], ids=["wide", "narrow"])
def test_words_of_an_axis_fit_into_the_drawing(canvas: Canvas) -> None:
    label = "what came less the forecast, ln of volatility per bar and further words"
    lines = canvas.lines(label)
    assert " ".join(lines) == label and (len(lines) == 1) is (canvas is WIDE)
    frame = Frame(canvas=canvas, x=(0, 1), y=(0, 1), x_label=label, y_label="y")
    drawn = "".join(axes(frame))
    assert all(f">{line}</text>" in drawn for line in lines)
    assert frame.py(0) == frame.bottom == 300 - 46 - 15 * (len(lines) - 1)


@pytest.mark.parametrize("canvas", [WIDE, NARROW], ids=["wide", "narrow"])
def test_name_of_a_bar_stands_next_to_it_or_above(canvas: Canvas) -> None:
    name = "a_name_of_thirty_letters_or_so_"
    parts, height = bars_across(canvas, [(name, 1.0, 0.1), ("b", 0.5, 0.1)], "growth")
    drawn = "".join(parts)
    assert (f">{name}</text>" in drawn) is canvas.is_narrow
    assert height == (14 + 46 + 2 * 38 if canvas.is_narrow else 14 + 46 + 2 * 20)


BAD_PAGE = """<!doctype html><html lang="en"><head><title>bad</title><style>*:focus { outline: none }
 svg { width: 900px }</style></head><body><main><h1>Bad</h1><button></button><button style="outline: 0">b</button>
<svg viewBox="0 0 1800 10" role="img" aria-label="x"><text>small</text></svg></main></body></html>"""


def test_page_with_faults_is_found_to_have_them(tmp_path: Path) -> None:
    """The looks at pages, those of reports among them, report what they are there for."""
    found = "; ".join(violations(BAD_PAGE, folder=tmp_path, width=360))
    expected = ["button-name", "scrolls sideways", "1 pictures are wider", "text of a picture has"]
    assert all(words in found for words in [*expected, "focus is not seen", "no name: <button>"])

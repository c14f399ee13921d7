"""Charts as SVG."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.fixtures.browser import violations
from trainer.analysis.report.svg import DIGIT, NARROW, WIDE, Canvas, Frame, axes, bars_across, figure, short, ticks

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
    label = "actual minus forecast, ln of volatility per bar and some further words, too"
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


@pytest.mark.parametrize("canvas", [WIDE, NARROW], ids=lambda canvas: canvas.name)
@pytest.mark.parametrize("low", [-1_200_000.0, 14_282.25, -98_765_432_109.0, 1e-5])
def test_numbers_of_the_y_axis_are_right_of_its_words(canvas: Canvas, low: float) -> None:
    frame = Frame(canvas=canvas, x=(0, 1), y=(low, low + abs(low) * 0.3), x_label="x", y_label="actual")
    drawn = "".join(axes(frame))
    ends = re.findall(r'<text x="([\d.]+)"[^>]*text-anchor="end">([^<]+)<', drawn)
    assert ends
    for x, words in ends:
        assert float(x) - DIGIT * len(words) >= 19.9  # the words of the axis end at 18


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (-1_200_000.0, "-1.2M"),
        (14_282.25, "14,282.25"),
        (2_000.0, "2,000"),
        (0.30000000000000004, "0.3"),
        (1e-05, "1e-05"),
        (25e9, "25G"),
        (3e18, "3e+18"),
    ],
)
def test_number_of_an_axis_is_short_and_exact(value: float, words: str) -> None:
    assert short(value) == words


def test_bars_whose_names_begin_alike_are_named_apart() -> None:
    rows = [(f"a very long column name number {place} with many words in it", 1.0, 0.0) for place in range(3)]
    for canvas in (WIDE, NARROW):
        parts, _ = bars_across(canvas, [(f"{'x' * 60}{n}", v, d) for n, v, d in rows], "loss")
        names = [part for part in parts if "x" * 5 in part]
        assert len({re.sub(r' [xy]="[^"]*"', "", each) for each in names}) == 3

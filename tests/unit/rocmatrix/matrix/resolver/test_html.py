"""The page stands alone, shows the argument behind each square, and is filtered; seen through a real browser."""

import html
import re
from functools import cache
from html.parser import HTMLParser

import pytest

from rocmatrix.matrix.resolver.explanation import Subject, sections
from rocmatrix.matrix.resolver.grid import grid
from rocmatrix.matrix.resolver.html import explanations, page
from tests.fixtures.browser import chromium, dom, violations
from tests.fixtures.cells import MATRIX
from tests.left_out import one_of

TODAY = "2026-11-21"
GRID = grid(MATRIX)
VOID = {"meta", "input"}


@cache
def shipped():
    """Return the page of the shipped matrix: made when the first test asks for it, not while tests are collected."""
    return page(MATRIX, GRID, today=TODAY)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Write a page and return the function that opens it at a place."""
    chromium()
    folder = tmp_path_factory.mktemp("page")

    def opened(place="", *, text="", script=""):
        path = folder / "page.html"
        path.write_text((text or shipped()).replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
        return dom(path, place, profile=folder / "profile")

    return opened


def panel(document):
    """Return the text of the argument, as a reader sees it."""
    inside = re.search(r'<aside id="argument".*?</aside>', document, re.DOTALL)[0]
    return html.unescape(re.sub(r"<[^>]+>", "", inside))


def shown(document):
    """Return the architectures whose row is not hidden."""
    rows = re.findall(r'<tr data-names="(\w+)\|[^"]*"([^>]*)>', document)
    return [gfx for gfx, attributes in rows if "hidden" not in attributes]


class Balance(HTMLParser):
    """Fails on a tag that is not closed where it should be."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_page_is_whole_and_asks_for_nothing_else():
    balance = Balance()
    balance.feed(shipped())
    assert balance.open == []
    assert not re.search(r"<(link|img|iframe|script[^>]*\ssrc)|@import|url\(|fetch\(|XMLHttpRequest", shipped())
    assert "default-src 'none'" in shipped()
    assert len(shipped()) < 2_500_000


def test_squares_are_labelled_links_in_a_table():
    labels = re.findall(
        r'<td[^>]*><a class="(\w+)[^"]*" href="#([^"]+)" tabindex="-1" aria-label="([^"]+)">', shipped()
    )
    squares = {f"{s.architecture}/{s.release}": s.verdict for row in GRID.rows for s in row.squares}
    assert {place: verdict for verdict, place, _ in labels} == squares
    assert all(verdict in label for verdict, _, label in labels)
    assert shipped().split('<div class="grid"')[1].count('scope="row"') == len(GRID.rows)
    assert shipped().split('<div class="grid"')[1].count('scope="col"') == len(GRID.releases)


def test_data_hold_the_same_argument_as_explain():
    data = explanations(MATRIX, GRID, today=TODAY)
    for release in (GRID.releases[0], GRID.releases[-1]):
        for gfx in MATRIX.architectures:
            subject = Subject(architecture=gfx, torch=release.torch, rocm=release.rocm, release=release)
            numbers = data["squares"][f"{gfx}/{release.name}"]["points"]
            for section in sections(MATRIX, subject, today=TODAY):
                assert [data["points"][n] for n in numbers[section.name]] == [p.described() for p in section.points]


def test_page_of_the_same_day_is_the_same():
    assert page(MATRIX, GRID, today=TODAY) == shipped()
    assert page(MATRIX, GRID, today="2030-01-01") != shipped()


def test_square_shows_its_argument(browser):
    text = panel(browser("#gfx1100/rocm6.2-torch2.5.1"))
    assert "gfx1100 with rocm6.2-torch2.5.1 ~ degraded" in text
    assert text.index("What judges it") < text.index("What to beware of") < text.index("Libraries and drivers")
    assert "Reported: two RX 7900 XT failed at hipblasCreate" in text
    assert "Refuted." in text


def test_cell_is_named_with_its_command(browser):
    document = browser("#gfx1100/rocm6.3-torch2.7.1")
    assert "./invokew build --cell rocm6.3-torch2.7.1-gfx1100" in panel(document)
    assert document.count('aria-current="true"') == 1


def test_expired_rule_is_marked(browser):
    later = page(MATRIX, GRID, today="2030-01-01")
    assert "expired 2027-05-21: look at it again" in panel(browser("#gfx906/rocm6.2-torch2.5.1", text=later))


@pytest.mark.parametrize("place", ["#nowhere/at-all", "#__proto__", "#%22%3E%3Cimg%20src=x%3E"])
def test_missing_folder_is_reported(browser, place):
    document = browser(place)
    assert "There is no square" in panel(document)
    assert "<img" not in document


@pytest.mark.parametrize(
    ("query", "architectures"),
    one_of(
        [
            ("?card=MI50", ["gfx906"]),
            ("?card=gfx110&verdict=degraded", ["gfx1100"]),
            ("?card=no%20such%20card", []),
            ("?card=rx%207900%20xt", ["gfx1100"]),
            ("?card=gfx115", ["gfx1150", "gfx1151", "gfx1152", "gfx1153"]),
            ("?verdict=reported", ["gfx900", "gfx906"]),
            ("?card=MI50&verdict=supported", ["gfx906"]),
        ],
        3,
    ),
)
def test_filters_leave_what_was_requested(browser, query, architectures):
    document = browser(query)
    assert shown(document) == architectures
    assert f"of {len(architectures)} of {len(GRID.rows)} architectures" in document


def test_arrow_keys_move_through_the_grid_and_enter_opens(browser):
    script = """
        const press = key => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
        document.querySelector('a[tabindex="0"]').focus();
        for (const key of ["End", "ArrowDown", "ArrowDown", "ArrowLeft", "ArrowRight", "ArrowRight"]) press(key);
        document.title = document.activeElement.getAttribute("href");
        document.activeElement.click();
    """
    document = browser(script=script)
    assert "<title>#gfx906/rocm5.3-torch2.0.0</title>" in document
    assert "gfx906 with rocm5.3-torch2.0.0" in panel(document)
    assert document.split("<script")[0].count('tabindex="0"') == 1


def test_text_of_the_matrix_is_never_markup(browser):
    evil = "</script><img src=x onerror=alert(1)><b>bold</b>"
    rules = [rule.model_copy(update={"reason": evil}) for rule in MATRIX.rules]
    hostile = MATRIX.model_copy(update={"rules": rules})
    text = page(hostile, grid(hostile), today=TODAY)
    assert "<img" not in text
    document = browser("#gfx1100/rocm6.2-torch2.5.1", text=text)
    assert "<img" not in document
    assert evil in panel(document)


def answered(document):
    """Return the text of the answer to a search."""
    inside = re.search(r'<output id="answer".*?</output>', document, re.DOTALL)[0]
    return html.unescape(re.sub(r"<[^>]+>", "", inside))


@pytest.mark.parametrize(
    ("query", "answer"),
    one_of(
        [
            ("rx7900xt%2020gb", ["Radeon RX 7900 XT is gfx1100", "supported", "./invokew train --gpu gfx1100"]),
            ("gfx803", ["gfx803: ", "broken", "./invokew explain --gpu gfx803"]),
            ("no%20such%20'card", ["No card or architecture here is called", "./invokew explain --gpu 'no such card'"]),
            ("MI50", ["Instinct MI50 is gfx906", "reported", "./invokew train --gpu gfx906"]),
            ("ai%20max%20395%20gpu", ["Ryzen AI Max+ 395 is gfx1151", "./invokew train --gpu gfx1151"]),
            ("RX%206800%20XT", ["Radeon RX 6800 XT is gfx1030", "expected", "not on AMD's list"]),
        ],
        3,
    ),
)
def test_search_for_a_card_is_answered_with_its_command(browser, query, answer):
    text = answered(browser(f"?card={query}"))
    assert all(part in text for part in answer), text


def test_search_without_a_match_takes_the_last_argument_away(browser):
    assert "No square is chosen" in panel(browser("?card=zzz#gfx1100/rocm6.3-torch2.7.1"))


def test_cards_come_before_the_grid_each_with_a_command_of_its_own():
    cards, _ = shipped().split('<div class="grid"')[:2]
    assert {*re.findall(r"<code>\./invokew (?:train|explain) --gpu (\w+)</code>", cards)} == {*MATRIX.architectures}
    for gfx in {cell.architecture for cell in MATRIX.cells if cell.recommended and cell.architecture}:
        assert f"./invokew train --gpu {gfx}</code>" in cards


@pytest.mark.parametrize(("width", "dark"), one_of([(360, True), (1280, False), (360, False), (768, True)]))
def test_page_has_no_violation_that_axe_knows(tmp_path, width, dark):
    assert violations(shipped(), "?card=MI50#gfx906/rocm6.3-torch2.7.1", folder=tmp_path, width=width, dark=dark) == []

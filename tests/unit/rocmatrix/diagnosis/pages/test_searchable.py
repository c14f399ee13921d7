"""The pages of all failures: whole, small, without a network, searched by a pasted line, for every reader."""

import html
import json
import re
from functools import cache
from urllib.parse import quote

import pytest

from rocmatrix.diagnosis.answer import next_step
from rocmatrix.diagnosis.pages import document, searchable
from tests.fixtures.browser import dom, violations
from tests.unit.rocmatrix.diagnosis.known import LISTED, ROOT, SIGNATURES

MOST_BYTES = 1_000_000


@cache
def pages():
    return searchable.files(LISTED, searchable.shares(ROOT))


def few(signatures, cases=9, **explained):
    """The list and the page of the first signature's area, of few signatures."""
    made = searchable.files(signatures, searchable.Shares(cases=cases, explained=explained))
    return made[searchable.FILE], made[f"{searchable.FOLDER}/{signatures[0].area}.html"]


def test_pages_of_failures_are_small():
    texts = pages() | document.files(LISTED, "")
    assert len(texts) == 2 * len(pages())
    assert {path: len(text) for path, text in texts.items() if len(text.encode()) >= MOST_BYTES} == {}


def test_list_leads_to_each_entry_in_the_page_of_its_area():
    rows = re.findall(r'<li id="([^"]+)"><a href="failures/(\w+).html#([^"]+)">', pages()[searchable.FILE])
    assert sorted(rows) == sorted((one.id, one.area, one.id) for one in LISTED)
    for area in {one.area for one in LISTED}:
        entries = re.findall(r'<article id="([^"]+)">', pages()[f"{searchable.FOLDER}/{area}.html"])
        assert entries == [name for name, of, _ in rows if of == area]


def test_entry_that_explains_more_threads_stands_before_others():
    counted = searchable.shares(ROOT).explained
    rows = re.findall(r'<li id="([^"]+)">', pages()[searchable.FILE])
    assert rows == sorted(rows, key=lambda name: -counted.get(name, 0))
    assert counted[rows[0]] > counted.get(rows[-1], 0)


def test_entry_states_what_is_seen_cause_remedy_versions_share_expiry_and_sources():
    one = next(one for one in SIGNATURES if one.id == "hip-invalid-device-function")
    listed, page = few([one], 8, **{one.id: 2})
    shown = html.unescape(page)
    for part in (
        one.sample,
        one.cause,
        one.causes[0].says,
        one.causes[0].test,
        one.remedy,
        next_step(one),
        "2 of 8 kept cases (25.0 %)",
    ):
        assert part.strip() in shown, part
    assert re.search(r"<dt>Look again</dt><dd>from 2027-\d\d-\d\d", shown)
    assert re.search(r'<a href="https://github.com/[\w.-]+/[\w.-]+/issues/\d+"', shown)
    assert "<span>explains 2</span>" in listed


def test_pages_load_nothing_but_areas_and_hold_no_markup_of_the_data():
    for text in pages().values():
        assert re.findall(r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=|url\(|@import|fetch\(", text) == []
    hostile = SIGNATURES[0].model_copy(update={"sample": "<img src=x onerror=alert(1)>"})
    assert ["<img" in text for text in few([hostile])] == [False, False]


def test_shares_are_those_that_the_benchmark_counted():
    kept = json.loads((ROOT / searchable.RESULTS).read_text(encoding="utf-8"))
    counted = searchable.shares(ROOT)
    rows = [row for row in kept["rows"] if row["set"] != "given"]
    assert counted.cases == sum(row["cases"] for row in rows)
    by_signature = sum(row["counts"]["right first"] for row in rows) - kept["explains"]["similar"]
    assert sum(counted.explained.values()) == by_signature
    assert set(counted.explained) <= {one.id for one in LISTED} | {
        name for name in counted.explained if name[:2] == "RM"
    }


def arrived(tmp_path, place, area=""):
    """The document at a place of the list, with an area selected."""
    for path, text in pages().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        chosen = text.replace(f"<option>{area}</option>", f"<option selected>{area}</option>")
        (tmp_path / path).write_text(chosen, encoding="utf-8")
    return dom(tmp_path / searchable.FILE, place, profile=tmp_path / "profile")


def shown(tmp_path, line, area=""):
    """The ids of the entries that a search shows, in order."""
    document = arrived(tmp_path, "#q=" + quote(line), area)
    assert re.search(r"<output[^>]*>\d+ of \d+ failures</output>", document)  # each area's texts have arrived
    return [name for name, hidden in re.findall(r'<li id="([^"]+)"( hidden="")?>', document) if not hidden]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("out of memory", "hip-out-of-memory"),  # three common words in another order are in hundreds of entries
        ("Above 4G Decoding and Resizable BAR on and CSM off", "amdgpu-large-bar-no-space"),  # words of the remedy
    ],
)
def test_pasted_line_finds_its_entry_first(tmp_path, line, expected):
    found = shown(tmp_path, line)
    assert found[0] == expected
    assert len(found) < len(SIGNATURES) / 4


def test_address_of_an_entry_leads_to_it_from_the_list(tmp_path):
    assert "<title>Known failures on AMD cards: driver</title>" in arrived(tmp_path, "#kfd-missing")


def test_area_shows_its_own_best_entries_where_another_area_has_better_ones(tmp_path):
    areas = {one.id: one.area for one in LISTED}
    found = shown(tmp_path, "HIP error invalid device function 100%", area="driver")
    assert {areas[name] for name in found} == {"driver"}


def test_search_without_a_result_is_reported(tmp_path):
    assert shown(tmp_path, "zzzzqqqq") == []


@pytest.mark.parametrize(("page", "width", "dark"), [(0, 1280, False), (1, 768, True), (1, 360, False), (0, 360, True)])
def test_page_has_no_violation_that_axe_knows(tmp_path, page, width, dark):
    listed = [one for one in SIGNATURES if one.causes][:3] + list(SIGNATURES[:3])
    silent = few(listed)[page].replace("parent.postMessage(", "void (")  # the checker waits for a message of its own
    assert violations(silent, folder=tmp_path, width=width, dark=dark) == []

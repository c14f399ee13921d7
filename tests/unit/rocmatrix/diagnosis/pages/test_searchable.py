"""The page of all failures: whole, small, without a network, searched by a pasted line, for every reader."""

import html
import json
import re
from functools import cache

import pytest

from rocmatrix.diagnosis.pages import searchable
from tests.fixtures.browser import dom, violations
from tests.unit.rocmatrix.diagnosis.known import LISTED, ROOT, SIGNATURES

MOST_BYTES = 2_000_000


@cache
def text():
    return searchable.page(LISTED, searchable.shares(ROOT))


def test_page_in_the_repository_is_the_one_of_the_signatures_and_is_small():
    kept = (ROOT / searchable.FILE).read_text(encoding="utf-8")
    assert kept == text()
    assert len(kept.encode()) < MOST_BYTES


def test_entry_states_what_is_seen_cause_remedy_versions_share_expiry_and_sources():
    one = next(one for one in SIGNATURES if one.id == "hip-invalid-device-function")
    page = searchable.page([one], searchable.Shares(cases=8, explained={one.id: 2}))
    shown = html.unescape(page)
    for part in (
        one.sample,
        one.cause,
        one.causes[0].says,
        one.causes[0].test,
        one.remedy,
        "2 of 8 kept cases (25.0 %)",
    ):
        assert part.strip() in shown, part
    assert re.search(r"<dt>Look again</dt><dd>from 2027-\d\d-\d\d", shown)
    assert re.search(r'<a href="https://github.com/[\w.-]+/[\w.-]+/issues/\d+"', shown)


def test_page_loads_nothing_and_holds_no_markup_of_the_data():
    loaded = re.findall(r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=|url\(|@import|fetch\(", text())
    assert loaded == []
    hostile = SIGNATURES[0].model_copy(update={"sample": "<img src=x onerror=alert(1)>"})
    assert "<img" not in searchable.page([hostile], searchable.Shares(cases=1, explained={}))


def test_shares_are_those_that_the_benchmark_counted():
    kept = json.loads((ROOT / searchable.RESULTS).read_text(encoding="utf-8"))
    counted = searchable.shares(ROOT)
    rows = [row for row in kept["rows"] if row["set"] != "given"]
    assert counted.cases == sum(row["cases"] for row in rows)
    assert sum(counted.explained.values()) == sum(row["counts"]["right first"] for row in rows)
    assert set(counted.explained) <= {one.id for one in LISTED} | {
        name for name in counted.explained if name[:2] == "RM"
    }


def shown(tmp_path, place, area=""):
    """The ids of the entries that are shown, in order, and those that are open; with an area selected."""
    page = text().replace(f"<option>{area}</option>", f"<option selected>{area}</option>")
    (tmp_path / "failures.html").write_text(page, encoding="utf-8")
    document = dom(tmp_path / "failures.html", place, profile=tmp_path / "profile")
    entries = re.findall(r"<details ([^>]*)>", document)
    visible = [entry for entry in entries if "hidden" not in entry]
    name = re.compile(r'id="([^"]+)"')
    return [name.search(entry)[1] for entry in visible], [name.search(e)[1] for e in visible if " open" in e]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("RuntimeError: HIP error: invalid device function at /x/y.cpp:77", "hip-invalid-device-function"),
        ("[  12.3] amdgpu 0000:03:00.0: [drm] *ERROR* [CRTC:73:crtc-0] flip_done timed out", "display-controller-hang"),
    ],
)
def test_pasted_line_finds_its_entry_first(tmp_path, line, expected):
    found, _ = shown(tmp_path, "#q=" + line.replace("%", "").replace(" ", "%20"))
    assert found[0] == expected
    assert len(found) < len(SIGNATURES) / 4


def test_address_of_an_entry_opens_it_and_search_without_a_result_is_reported(tmp_path):
    found, opened = shown(tmp_path, "#kfd-missing")
    assert (len(found), opened) == (len(LISTED), ["kfd-missing"])
    assert shown(tmp_path, "#q=zzzzqqqq")[0] == []


def test_area_shows_its_own_best_entries_where_another_area_has_better_ones(tmp_path):
    found, _ = shown(tmp_path, "#q=HIP%20error%20invalid%20device%20function%20100%", area="driver")
    areas = {one.id: one.area for one in LISTED}
    assert found
    assert {areas[name] for name in found} == {"driver"}


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (768, True), (360, True)])
def test_page_has_no_violation_that_axe_knows(tmp_path, width, dark):
    few = [one for one in SIGNATURES if one.causes][:3] + list(SIGNATURES[:3])
    page = searchable.page(few, searchable.Shares(cases=9, explained={})).replace("<details ", "<details open ")
    assert violations(page, folder=tmp_path, width=width, dark=dark) == []

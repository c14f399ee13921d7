"""What asks to be looked at again is listed by the day that is given, and a missing network is only said."""

import http.server
import json
import threading

import pytest
from packaging.version import Version

from rocmatrix.matrix.resolver.freshness import SCHEMA, age, compare, indexes, is_newer, outdated, query
from tests.fixtures.cells import MATRIX

INDEX = "https://download.pytorch.org/whl/rocm7.2"
RELEASES = MATRIX.release_by_name


def test_rules_are_not_expired_on_the_day_they_were_written():
    assert outdated(MATRIX, today="2026-11-21").expired == ()


def test_rules_expire_by_the_day_and_not_by_the_clock():
    some = outdated(MATRIX, today="2027-06-01").expired
    every = outdated(MATRIX, today="2099-01-01").expired
    assert 0 < len(some) < len(every) == len(MATRIX.rules) + len(MATRIX.derived_rules)
    assert all(rule.expires < "2027-06-01" for rule in some)
    assert [rule.expires for rule in some] == sorted(rule.expires for rule in some)


def test_newer_releases_are_newer_and_not_broken():
    found = outdated(MATRIX, today="2026-11-21").newer
    assert found
    for entry in found:
        assert is_newer(RELEASES[entry.release], RELEASES[entry.recommended])
        assert entry.verdict != "broken"
        assert entry.cell is None or MATRIX.cell(entry.cell).release.name == entry.release


@pytest.mark.parametrize(
    ("release", "than", "newer"),
    [
        (("7.2", "2.9.1"), ("7.1", "2.10.0"), False),  # a newer ROCm with an older torch is another choice
        (("7.1", "2.10.0"), ("7.2", "2.9.1"), False),
        (("7.2", "2.10.0"), ("7.1", "2.10.0"), True),
        (("7.2", "2.10.0"), ("7.2", "2.9.1"), True),
        (("7.2", "2.10.0"), ("7.2", "2.10.0"), False),
        ((None, "2.10.0"), (None, "2.9.1"), True),
    ],
)
def test_release_with_an_older_part_is_not_newer(release, than, newer):
    some = next(iter(RELEASES.values()))
    one, other = (some.model_copy(update={"rocm": rocm, "torch": torch}) for rocm, torch in (release, than))
    assert is_newer(one, other) is newer


def test_architecture_left_out_of_newer_releases_stays():
    newer = {entry.release for entry in outdated(MATRIX, today="2026-11-21").newer if entry.architecture == "gfx906"}
    assert not any(RELEASES[name].rocm == "7.2" for name in newer)  # its rocBLAS has no kernels for it
    assert "rocm6.3-torch2.8.0" in newer


def test_index_is_compared_with_the_matrix():
    page = (
        '<a href="/whl/torch-2.13.0%2Brocm7.2-cp312-cp312-linux.whl">x</a> torch-99.1.0+rocm7.2-cp312-cp312-linux.whl'
    )
    answer = compare(MATRIX, INDEX, page)
    assert answer.unknown == ("99.1.0",)
    assert answer.unheard_because is None
    assert compare(MATRIX, INDEX, "torch-2.13.0+rocm7.2-cp312-cp312-linux.whl").unknown == ()


@pytest.mark.parametrize("page", ["", "<html>sign in first</html>", "torch-x.y+rocm7.2-cp312"])
def test_page_without_wheels_counts_as_a_failed_query(page):
    assert "no wheel" in compare(MATRIX, INDEX, page).unheard_because


@pytest.mark.parametrize("index", ["http://127.0.0.1:9", "no address at all"])
def test_answer_without_a_network_reports_it(index):
    answer = query(MATRIX, index)
    assert answer.unheard_because
    assert answer.unknown == ()


def test_malformed_proxy_counts_as_a_failed_query(monkeypatch):
    monkeypatch.setenv("http_proxy", "not a url")
    assert query(MATRIX, "http://192.0.2.1").unheard_because


def test_refusing_index_counts_as_a_failed_query():
    class Refusing(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(403)

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        assert "403" in query(MATRIX, f"http://127.0.0.1:{server.server_port}").unheard_because


def test_indexes_of_recommended_cells_are_the_only_ones_queried():
    assert set(indexes(MATRIX)) == {cell.release.index for cell in MATRIX.cells if cell.recommended}


def test_programs_get_it_with_its_version():
    answers = [compare(MATRIX, INDEX, "")]
    described = json.loads(json.dumps(outdated(MATRIX, today="2027-06-01", answers=answers).described()))
    assert described["schema"] == SCHEMA
    assert described["expired"][0].keys() >= {"rule", "expires", "sources", "confidence", "date"}
    assert described["newer"][0].keys() >= {"architecture", "release", "verdict", "cell"}
    assert described["indexes"][0]["unheard_because"]


def test_ages_are_compared_as_versions():
    assert age(RELEASES["rocm7.14-torch2.10.0"]) > age(RELEASES["rocm7.2-torch2.14.1"])
    assert age(RELEASES["cpu-torch2.13.0"])[0] == Version("0")

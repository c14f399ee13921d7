"""The pages, made of SIMULATED records: whole, offline, safe against what logs hold, for every reader."""

import html
import http.client
import os
import re
import threading
import urllib.error
import urllib.request
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from rocmatrix.cli.commands import common
from rocmatrix.cli.commands import dashboard as command
from rocmatrix.cli.commands.dashboard import Dashboard
from rocmatrix.evidence import store
from rocmatrix.evidence.dashboard import site, view
from rocmatrix.evidence.level import CellStatus
from rocmatrix.evidence.record import Hardware, Number, Trouble
from rocmatrix.matrix.card_names import same
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.browser import chromium, dom, violations
from tests.fixtures.cells import MATRIX
from tests.fixtures.evidence import CARD, record, rocm, smoke
from tests.left_out import one_of

NOW = datetime(2026, 11, 21, tzinfo=UTC)
CELL = "rocm6.3-torch2.7.1-gfx1100"
HOSTILE = "<script>document.title = 'taken'</script><img src=x onerror=alert(1)></pre></details>\"'&amp;\x1b[31m\x00"
REAL = "AMD Radeon RX 7900 XT"  # what a driver calls the matrix's "Radeon RX 7900 XT"
RECORDS = [
    record("build"),
    record("prove", 1),
    *(smoke(24 * day, tflops=90.0 + day, hardware=rocm(name=REAL)) for day in range(1, 6)),
    smoke(24 * 7, status="fail", tflops=60.0, hardware=rocm(name=REAL), log=HOSTILE),
    smoke(24 * 8, marks=("nvidia",), hardware=Hardware(device="cuda", cards=(HOSTILE,), seen=("sm_90",))),
]
BENCHED = tuple(
    Number(probe="matmul", name=name, value=value, unit=unit)
    for name, value, unit in (("fp16 4096x4096x4096", 71.0, "TFLOP/s"), ("fp16 4096x4096x4096 spread", 2.5, "%"))
)
RECORDS.append(record("bench", 24 * 9, hardware=rocm(name=REAL), numbers=BENCHED))
VOID = {"meta", "polyline", "circle"}


@pytest.fixture(scope="module")
def texts():
    pages = command.pages_of(MATRIX, RECORDS, NOW)
    return site.files(pages, view.sections(MATRIX, pages), now="2026-11-21 00:00 UTC")


@pytest.fixture(scope="module")
def folder(texts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "dashboard"
    site.write(folder, texts)
    return folder


class Page(HTMLParser):
    """Fails on a tag that is not closed where it should be; gathers tags, headings and table cells."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags = [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def of(self, *names):
        return [attributes for tag, attributes in self.tags if tag in names]


def test_site_has_a_page_for_each_cell_and_no_dead_link(texts, folder):
    assert set(texts) == {"index.html", *(f"cells/{cell.name}.html" for cell in MATRIX.cells)}
    for name, text in texts.items():
        for target in re.findall(r'href="([^"#]+)"', text):
            assert ((folder / name).parent / target).resolve().is_file()
        for anchor in re.findall(r'href="#([^"]+)"', text):
            assert f'id="{anchor}"' in text


def test_pages_ask_for_nothing_and_run_nothing(texts):
    for text in texts.values():
        assert not re.search(r"<(script|link|img|iframe)|@import|url\(|https?://|\son\w+=", re.sub(r"&lt;.*", "", text))
        assert "default-src 'none'" in text


def test_pages_have_landmarks_headings_in_order_and_headed_tables(texts):
    for text in texts.values():
        page = Page(text)
        for landmark in ("header", "main", "footer"):
            assert len(page.of(landmark)) == 1
        assert page.of("html") == [{"lang": "en"}]
        assert page.of("a")[0] == {"class": "skip", "href": "#content"}
        headings = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
        assert headings[0] == 1
        assert headings.count(1) == 1
        assert all(b - a <= 1 for a, b in pairwise(headings))
        assert all(attributes.get("scope") in ("row", "col") for attributes in page.of("th"))
        assert all(attributes.get("aria-label") for attributes in page.of("svg"))
        ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
        assert len(ids) == len(set(ids))
        assert all(name in ids for _, a in page.tags if (name := a.get("aria-labelledby")))


def luminance(colour):
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("name", site.COLOURS)
def test_text_stands_out_from_its_background(name):
    dark, light = sorted(luminance(colour) for colour in site.COLOURS[name])
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_text_of_a_log_or_a_driver_is_escaped(texts):
    text = texts[f"cells/{CELL}.html"]
    assert "<script" not in text
    assert "<img" not in text
    assert html.escape("<script>document.title", quote=False) in text
    assert text.count("&lt;img src=x onerror=alert(1)&gt;") >= 2  # in the log, and in the name of a card
    Page(text)


def test_browser_runs_nothing_of_a_log(folder, tmp_path):
    chromium()
    document = dom(folder / "cells" / f"{CELL}.html", profile=tmp_path / "profile")
    assert f"<title>{CELL}: evidence</title>" in document
    assert "&lt;script&gt;document.title = 'taken'&lt;/script&gt;" in document
    assert "<script" not in document


def test_regressions_come_first(texts):
    assert "No evidence is recorded yet" not in texts["index.html"]
    index = texts["index.html"]
    rows = re.findall(r'<td role="cell"><span class="badge[^"]*">(\w+)</span></td>', index)
    assert rows[:2] == ["regressed", "slower"]
    assert index.index('id="changes"') < index.index('id="gfx1100"')


def test_driver_s_name_of_a_card_is_the_matrix_s(texts):
    assert same(REAL, "Radeon RX 7900 XT")
    assert not same(REAL, "Radeon RX 7900 XTX")
    pages = command.pages_of(MATRIX, RECORDS, NOW)
    squares = {square.card: square for square in pages[CELL].squares}
    assert REAL not in squares
    square = squares["Radeon RX 7900 XT"]
    assert (square.cell_status.level, square.cell_status.failing, len(square.regressed)) == ("proven", ("smoke",), 1)
    assert squares["Radeon RX 7900 XTX"].cell_status.level == "proven"


def test_marked_records_are_named_and_raise_nothing(texts):
    assert "Marked records: 1" in texts["index.html"]
    text = texts[f"cells/{CELL}.html"]
    assert '<span class="badge l-aside">nvidia</span>' in text
    assert "set aside, marked nvidia" in text


def test_run_that_the_host_ended_is_shown_as_such_and_hides_no_regression():
    host = smoke(
        24 * 9, status="no verdict", hardware=rocm(name=REAL), trouble=Trouble(stage="disk", words="simulated")
    )
    page = command.pages_of(MATRIX, [*RECORDS, host], NOW)[CELL]
    text = site.files({CELL: page}, [], now="-")[f"cells/{CELL}.html"]
    assert '<span class="badge l-aside">ended by the host: disk</span>' in text
    assert text.count('<span class="badge l-bad">failed</span>') == 1  # the failure before it
    assert "1 runs ended by the host" in text
    assert page.changes == command.pages_of(MATRIX, RECORDS, NOW)[CELL].changes
    assert [change.what for change in page.changes if change.failure] == ["regressed"]


def test_newest_proof_is_that_with_the_highest_number_whatever_the_clock():
    proofs = [
        record("prove", hours, passed=passed).model_copy(update={"series": "s", "number": number})
        for number, (hours, passed) in enumerate([(9, True), (1, False)], start=1)
    ]
    page = command.pages_of(MATRIX, proofs, NOW)[CELL]
    assert page.proof is not None
    assert not page.proof.record.passed


def test_numbers_are_drawn_over_time(texts):
    assert (
        'aria-label="AMD Radeon RX 7900 XT: blas fp16: 60 TFLOP/s on 2026-11-08; 6 measurements from 60 to 95"'
        in (texts[f"cells/{CELL}.html"])
    )


def test_bench_is_a_table_and_its_figures_are_drawn_without_their_spreads(texts):
    text = texts[f"cells/{CELL}.html"]
    assert "<td>fp16 4096x4096x4096</td><td>71</td><td>TFLOP/s</td><td>2.5 %</td>" in text
    assert 'aria-label="AMD Radeon RX 7900 XT: matmul fp16 4096x4096x4096: 71 TFLOP/s' in text
    assert "4096 spread" not in text
    assert "a bench shows how fast it is, and raises no level" in text


def test_empty_store_gives_whole_pages(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("ROCMATRIX_EVIDENCE", str(tmp_path / "none.db"))
    monkeypatch.setattr(common, "known_matrix", lambda: MATRIX)
    command.dashboard(Dashboard(out=str(tmp_path / "out"), port=0))
    text = (tmp_path / "out" / "index.html").read_text()
    Page(text)
    assert "No evidence is recorded yet: ./invokew build, prove, smoke and train record it." in text
    assert "since it last passed" not in text
    assert not (tmp_path / "none.db").exists()


def test_foreign_folder_is_left_alone_and_an_own_one_renewed(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("mine")
    with pytest.raises(RocmatrixError) as caught:
        site.write(tmp_path / "mine", {"index.html": ""})
    assert caught.value.code == "RM640"
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]
    site.write(tmp_path / "own", {"index.html": "1", "cells/a.html": "", "cells/b.html": ""})
    site.write(tmp_path / "own", {"index.html": "2", "cells/a.html": ""})
    assert sorted(path.name for path in (tmp_path / "own" / "cells").iterdir()) == ["a.html"]
    assert (tmp_path / "own" / "index.html").read_text() == "2"


def test_server_listens_on_the_loopback_address_for_this_machines_names_only(folder):
    with site.server(folder, 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address, port = server.server_address
        assert address == "127.0.0.1"
        url = f"http://127.0.0.1:{port}/index.html"
        assert b"how far each cell is supported" in urllib.request.urlopen(url, timeout=20).read()
        for name, code in (("evil.example", 421), (f"127.0.0.1.evil.example:{port}", 421)):
            with pytest.raises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(urllib.request.Request(url, headers={"Host": name}), timeout=20)
            assert caught.value.code == code
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/../site.py", timeout=20)
        assert caught.value.code == 404
        server.shutdown()


@pytest.fixture
def own(texts, tmp_path):
    """The pages in a folder that a test may spoil."""
    site.write(tmp_path / "pages", texts)
    return tmp_path / "pages"


@pytest.fixture
def fetch(own):
    """Return a function that asks a server of the folder for a path and gives status and body."""
    with site.server(own, 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()

        def get(path):
            connection = http.client.HTTPConnection(*server.server_address, timeout=20)
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()

        yield get
        server.shutdown()


def test_link_or_a_foreign_file_in_the_folder_is_not_served(own, fetch, tmp_path):
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key.html").write_text("hunter2")
    (own / "cells" / "link.html").symlink_to(tmp_path / "secret" / "key.html")
    (own / "more").symlink_to(tmp_path / "secret")
    (own / "notes.txt").write_text("hunter2")
    (own / "cells" / "deep").mkdir()
    os.mkfifo(own / "cells" / "pipe.html")
    names = ("cells/link.html", "more/key.html", "more/", "notes.txt", "cells/", "cells", ".rocmatrix-dashboard",
             "cells/pipe.html", "cells/../notes.txt", "%2e%2e/%2e%2e/etc/passwd", "cells/%2e%2e/notes.txt",
             "//etc/passwd", "cells//link.html", "cells/link.html?x", "index.html/", "cells/deep.html")  # fmt: skip
    for name in names:
        status, body = fetch(f"/{name}")
        assert status == 404, name
        assert b"hunter2" not in body
    assert fetch("/")[0] == fetch("/index.html?new")[0] == 200
    page = next((own / "cells").glob("*torch*.html")).name
    assert fetch(f"/cells/{page}")[0] == 200


def test_folder_of_cells_that_is_a_link_is_neither_served_nor_written(own, fetch, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    (own / "cells").rename(elsewhere)
    (own / "cells").symlink_to(elsewhere)
    page = next(elsewhere.glob("*torch*.html")).name
    assert fetch(f"/cells/{page}")[0] == 404
    before = {path.name: path.read_text() for path in elsewhere.iterdir()}
    with pytest.raises(RocmatrixError) as caught:
        site.write(own, {"index.html": "", "cells/a.html": ""})
    assert caught.value.code == "RM640"
    assert {path.name: path.read_text() for path in elsewhere.iterdir()} == before


def test_page_is_not_written_through_a_link(own, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("kept")
    for name in ("index.html", site.MARKER, "cells/a.html"):
        (own / name).unlink(missing_ok=True)
        (own / name).symlink_to(precious)
    site.write(own, {"index.html": "new", "cells/a.html": "new"})
    assert precious.read_text() == "kept"
    assert (own / "index.html").read_text() == "new"
    assert not (own / "index.html").is_symlink()


def test_command_reads_the_store(tmp_path, monkeypatch, capsys):
    path = tmp_path / "evidence.db"
    monkeypatch.setenv("ROCMATRIX_EVIDENCE", str(path))
    monkeypatch.setattr(common, "known_matrix", lambda: MATRIX)
    store.add(path, RECORDS)
    command.dashboard(Dashboard(out=str(tmp_path / "out"), port=0))
    assert f"{len(RECORDS)} records" in capsys.readouterr().err
    assert CARD not in (tmp_path / "out" / "index.html").read_text()


def test_simulated_records_have_a_badge_and_no_level():
    marks = ("stand-in", "simulated", "other-base")
    records = [record("build", marks=marks), record("prove", 1, marks=marks), smoke(2, marks=marks)]
    pages = command.pages_of(MATRIX, records, NOW)
    written = site.files(pages, view.sections(MATRIX, pages), now="2026-11-21 00:00 UTC")
    assert {square.cell_status.level for square in pages[CELL].squares} == {"rendered"}
    assert 'class="level l-aside">simulated: smoked<' in written[f"cells/{CELL}.html"]
    assert "no evidence of the cell" in written[f"cells/{CELL}.html"]
    assert '<span class="badge l-aside">simulated: smoked' in written["index.html"]
    assert 'class="level l-smoked">smoked' not in written["index.html"].partition('id="gfx1100"')[2]


def test_trainings_of_unlike_length_are_not_joined():
    numbers = [
        (Number(probe="train", name="epochs", value=float(epochs), unit="epochs"),
         Number(probe="train", name="rows_per_second", value=900.0, unit="1/s"),
         Number(probe="train", name="best_validation_loss", value=loss, unit="1"))
        for epochs, loss in ((1, 0.9), (300, 0.5), (300, 0.4))
    ]  # fmt: skip
    records = [record("train", 24 * day, hardware=rocm(), numbers=made) for day, made in enumerate(numbers)]
    page = command.pages_of(MATRIX, records, NOW)[CELL]
    found = {each.title: len(each.points) for each in page.plots}
    assert {title.partition("train ")[2]: count for title, count in found.items()} == {
        "best_validation_loss, 1 epochs": 1,
        "best_validation_loss, 300 epochs": 2,
        "rows_per_second": 3,
    }


def test_card_below_the_last_level_names_the_next_and_what_shows_it(texts):
    *_, row = re.findall(rf'cells/{CELL}.html">.*?</tr>', texts["index.html"], re.DOTALL)
    assert row.count("for smoked: ./invokew smoke in its image, on the card") == row.count("proven; ") > 0


TRAINED = "for trained: ./invokew train in its image, on "
PAIR = "for two-gpu: ./invokew smoke in its image, on two cards"


@pytest.mark.parametrize(
    ("card", "level", "missing", "expected"),
    [
        (CARD, "built", (), "for proven: ./invokew prove"),
        (CARD, "proven", (), "for smoked: ./invokew smoke in its image, on the card"),
        (CARD, "smoked", (), f"{TRAINED}the card; {PAIR}"),
        (CARD, "two-gpu", (), f"{TRAINED}the card"),
        (CARD, "trained", ("two-gpu",), PAIR),
        (CARD, "trained", (), ""),
        (view.CPU, "none", (), "for rendered: ./invokew render"),
        (view.CPU, "proven", (), "for smoked: ./invokew smoke in its image, on this CPU"),
        (view.CPU, "smoked", (), f"{TRAINED}this CPU"),
        (view.CPU, "trained", ("two-gpu",), ""),
    ],
)
def test_next_step_of_a_square_can_be_taken_on_its_card(card, level, missing, expected):
    cell_status = CellStatus(cell=CELL, card=card, level=level, missing=missing)
    assert view.Square(card=card, cell_status=cell_status, age="", regressed=()).next_step == expected
    aside = view.Square(card=card, cell_status=replace(cell_status, set_aside=2), age="", regressed=()).next_step
    assert aside == "; ".join(filter(None, [expected, "2 records set aside"]))


@pytest.mark.parametrize("name", ["index.html", f"cells/{CELL}.html"])
@pytest.mark.parametrize(("width", "dark"), one_of([(360, False), (768, True), (1280, False)]))
def test_page_has_no_violation_that_axe_knows(texts, tmp_path, name, width, dark):
    assert violations(texts[name], folder=tmp_path, width=width, dark=dark) == []

"""The page of runs on SYNTHETIC data: whole in one file, right in its numbers, and drawn by a browser."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.fixtures import browser
from tests.fixtures.browser import faults, looked_at
from tests.fixtures.synthetic_bars import write_synthetic
from tests.fixtures.tables import mixed, written
from trainer.analysis.compress.subject import Given, read_subject
from trainer.analysis.report.command import MOST_CLASSES, confusion, origin
from trainer.analysis.report.page import table
from trainer.analysis.report.session import last_profile
from trainer.cli import main
from trainer.data.dataset import Dataset
from trainer.data.readers.bars import Reading, open_source

pytestmark = pytest.mark.usefixtures("torch_as_before")

QUICK = ("--epochs", "8", "--learning-rate", "0.01", "--device", "cpu", "--run", "one")


def run(folder: Path, path: Path, *flags: str) -> Path:
    assert main(["train", "--data", str(path), "--output", str(folder), *QUICK, *flags]) == 0
    assert main(["report", str(folder / "one"), "--repeats", "2"]) == 0
    torch.use_deterministic_algorithms(False)
    return folder / "one"


@pytest.fixture(scope="module")
def bars(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on SYNTHETIC minute bars."""
    folder = tmp_path_factory.mktemp("bars")
    write_synthetic(folder / "synthetic.csv", 12_000, seed=1)
    return run(folder, folder / "synthetic.csv", "--batch-size", "256")


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classes")
    return run(folder, written(mixed(), folder), "--target", "y")


def page(folder: Path) -> str:
    return (folder / "report.html").read_text()


def test_page_is_never_written_over_its_data_or_model(classes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file in (classes.parent / "table.csv", classes / "model.safetensors"):
        before = file.read_bytes()
        assert main(["report", str(classes), "--repeats", "1", "--output", str(file)]) == 2
        assert "RM500" in capsys.readouterr().err and file.read_bytes() == before


@pytest.mark.parametrize("which", ["bars", "classes"])
def test_page_is_one_file_without_script_and_describes_its_figures(which: str, request: pytest.FixtureRequest) -> None:
    text = page(request.getfixturevalue(which))
    assert not re.findall(r"<script|<link|<img|@import|url\(|https?://|javascript:", text)
    assert '<html lang="en">' in text
    assert "prefers-color-scheme: dark" in text
    pictures = re.findall(r"<svg [^>]*>", text)
    assert len(pictures) >= 5
    assert all('role="img"' in each and 'aria-label="' in each for each in pictures)
    assert "NaN" not in text
    assert not re.search(r'="-?(nan|inf)"', text)


def test_page_states_that_data_are_synthetic(bars: Path, classes: Path) -> None:
    assert "<title>Run one on synthetic data</title>" in page(bars)
    assert "SYNTHETIC data, no market&#x27;s: synthetic: seeded generator" in page(bars)
    assert "synthetic" not in page(classes).lower()
    assert "No source is recorded for the data." in page(classes)
    assert origin("a seller's file") == " Source: a seller's file."


def test_report_has_its_sections(bars: Path, classes: Path) -> None:
    both = ("Loss by epoch", "Importance of each input", "The split", "Settings")
    for words in (
        *both,
        "Forecasts on the validation part",
        "Errors on the test part",
        "Volume profile of the session",
    ):
        assert words in page(bars)
    for words in (*both, "Calibration on the validation part", "Answers by class"):
        assert words in page(classes)
    assert "A session&#x27;s volume" not in page(classes)  # a table has none
    assert not re.search(r"<h2>[^<]*</h2>\s*</section>", page(bars) + page(classes))


@pytest.mark.parametrize(
    ("which", "width", "dark"),
    [
        ("bars", 360, False),
        ("bars", 1280, True),
        ("classes", 360, True),
        ("classes", 768, True),
        ("classes", 1280, False),
    ],
)
def test_report_has_no_violation_that_axe_knows(
    which: str, tmp_path: Path, width: int, dark: bool, request: pytest.FixtureRequest
) -> None:
    """On a phone, here with a scroll bar, pictures are those drawn for it: none scrolls, and their text is legible."""
    found = looked_at(page(request.getfixturevalue(which)), folder=tmp_path, width=width, dark=dark)
    assert faults(found) == []
    assert found["smallest"] >= 11 and found["pictures"] >= 5


def test_names_from_a_table_are_text_and_never_markup(tmp_path: Path) -> None:
    table = mixed().rename({"x": "<script>alert(1)</script>"})
    assert "<script" not in page(run(tmp_path, written(table, tmp_path), "--target", "z"))


def test_page_of_the_same_run_is_the_same(classes: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert main(["report", str(classes), "--repeats", "2", "--output", str(tmp_path / name)]) == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == page(classes).encode()


def test_drawn_profile_holds_the_sessions_volume(bars: Path) -> None:
    subject = read_subject(bars, Given())
    found = last_profile(subject.metadata, subject.config.data.data)
    assert found is not None
    (data,) = open_source(subject.config.data.data, Reading()).chunks()
    day = data.date.astype("M8[D]") == data.date[-1].astype("M8[D]")
    assert found.bars == day.sum()
    assert found.volume.sum() == pytest.approx(data.volume[day].sum(), rel=1e-6)
    assert (found.price[0], found.price[-1]) == (data.low[day].min(), data.high[day].max())
    assert found.poc == found.price[found.volume.argmax()]
    inside = (found.price >= found.value_low) & (found.price <= found.value_high)
    assert 0.7 <= found.volume[inside].sum() / found.volume.sum() < 0.75


@pytest.mark.parametrize("dark", [False, True])
def test_browser_draws_the_page(bars: Path, tmp_path: Path, dark: bool) -> None:
    shot = tmp_path / "page.png"
    argv = [browser.chromium(), "--headless", "--disable-gpu", "--no-sandbox", f"--user-data-dir={tmp_path}/profile"]
    argv += ["--blink-settings=preferredColorScheme=0"] if dark else ["--blink-settings=preferredColorScheme=1"]
    argv += [f"--screenshot={shot}", "--window-size=800,3600", (bars / "report.html").as_uri()]
    subprocess.run(argv, capture_output=True, check=True, timeout=120)
    pixels = np.asarray(Image.open(shot).convert("RGB")).astype(int)
    background = pixels[5, 5].sum()
    assert (background < 150) == dark
    bars_blue = (
        pixels[..., 2] - pixels[..., 0] > 60
    ).sum()  # histograms, importances and the profile are drawn in blue
    assert bars_blue > 20_000


def test_flag_within_a_cell_is_not_taken_apart_at_its_hyphens() -> None:
    cell = table(("model", "why"), [("trees", "asked for by --baselines trees, not <b>")])
    assert 'by <span class="kept">--baselines</span> trees, not &lt;b&gt;' in cell


@pytest.mark.parametrize("classes_in_all", [1, 2, 20, 21, 300])
def test_answers_by_class_are_a_table_that_can_be_read(classes_in_all: int) -> None:
    labels = tuple("class-" * 33 + str(place) for place in range(classes_in_all))
    target = np.arange(classes_in_all).astype(np.float64)
    chances = np.eye(classes_in_all)[::-1]  # all wrong but, of an odd number, the middle one
    found = confusion(
        labels,
        Dataset(features=target[:, None], target=target, date=np.zeros(len(target), "M8[ms]"), persistence=target),
        chances,
        "test",
    )
    shown = min(classes_in_all, MOST_CLASSES)
    assert found.count("<th ") == 2 * shown + 1
    names = re.findall(r"is (class[^<]*)<", found)
    assert len(set(names)) == shown
    assert max(map(len, names)) < 32
    left_out = re.findall(r"The (\d+) classes with fewest wrong answers are left out", found)
    assert left_out == ([str(classes_in_all - shown)] if classes_in_all > shown else [])
    assert ("is " + names[0] in found) and len(found) < 50_000


def test_interval_stands_below_its_figures() -> None:
    made = table(("figure", "test"), [("right answers", 0.5), ("interval", "0.450 to 0.700"), ("no model", "x" * 40)])
    assert '<td class="number">0.450 to 0.700</td>' in made
    assert f"<td>{'x' * 40}</td>" in made

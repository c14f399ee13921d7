"""Drift and strays of generated files are errors that name the file, and are mended by writing."""

import shutil
from pathlib import Path

import pytest

from rocmatrix.cli import generated, generated_docs
from rocmatrix.cli import generated_architectures as architectures
from rocmatrix.cli import nightly_workflow as workflow
from rocmatrix.diagnosis.comparisons import forms
from rocmatrix.diagnosis.pages import measured, searchable
from rocmatrix.diagnosis.search import known
from rocmatrix.diagnosis.signature import SIGNATURES_FOLDER
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import MATRIX

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def checkout(tmp_path):
    """A copy of what rendering reads and writes."""
    for name in ("images", "compose", "trainer", "docs", "matrix", SIGNATURES_FOLDER):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    listed = (generated_docs.OPTIONS_FILE, generated_docs.ERRORS_FILE, generated_docs.PROBES_FILE)
    tables = architectures.files(MATRIX)
    signatures = (forms.FILE, known.FILE, searchable.RESULTS, f"{measured.RESULTS}/{measured.FROZEN}")
    rooms = [path.relative_to(ROOT) for path in (ROOT / "rocmatrix").rglob("__init__.py")]
    copied = (generated_docs.SCHEMA_FILE, *listed, *signatures, workflow.FILE, *tables, *rooms)
    for name in copied:
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_committed_files_are_those_that_the_matrix_renders():
    assert generated.check(MATRIX, ROOT) == 4 * len(MATRIX.cells) + len(generated_docs.files(MATRIX, ROOT))


EDITED = (
    "images/cpu-torch2.13.0/Dockerfile",
    "compose/cpu-torch2.13.0.yaml",
    "docs/support.md",
    "docs/failures/kernels.md",
    "docs/failures/kernels.html",
    "matrix.schema.json",
    "rocmatrix/host/processors.json",
    "trainer/device/architectures.json",
    workflow.FILE,
)


def edited(path):
    text = path.read_text().replace("2.13.0", "2.13.9").replace('"Rule"', '"Rules"').replace("gfx1100", "gfx1199")
    path.write_text(text.replace("contents: read", "contents: write"))


def test_hand_edits_are_found_and_mended(checkout):
    for name in EDITED:
        edited(checkout / name)
    with pytest.raises(RocmatrixError, match="RM101") as caught:
        generated.check(MATRIX, checkout)
    assert [name for name in EDITED if name not in caught.value.what] == []
    assert sorted(generated.write(MATRIX, checkout)) == sorted(EDITED)
    assert generated.check(MATRIX, checkout)


def test_file_no_cell_renders_is_found_and_removed(checkout):
    stray = checkout / "images/rocm5.0-torch1.0-gfx803/Dockerfile"
    stray.parent.mkdir()
    stray.write_text("FROM scratch\n")
    with pytest.raises(RocmatrixError, match="gfx803"):
        generated.check(MATRIX, checkout)
    generated.write(MATRIX, checkout)
    assert not stray.exists()


def test_files_of_people_next_to_rendered_ones_stay(checkout):
    kept = [checkout / "images/mine/notes.md", checkout / "compose/mine.yaml", checkout / "images/README.md"]
    kept[0].parent.mkdir()
    for path in kept:
        path.write_text("name: mine\n")
    assert generated.check(MATRIX, checkout)
    generated.write(MATRIX, checkout)
    assert all(path.read_text() == "name: mine\n" for path in kept)


def test_rendered_compose_file_without_its_cell_is_removed(checkout):
    stray = checkout / "compose/rocm5.0-torch1.0-gfx803.yaml"
    shutil.copy(next((checkout / "compose").glob("*.yaml")), stray)
    generated.write(MATRIX, checkout)
    assert not stray.exists()


def test_page_of_failures_of_an_area_that_is_gone_is_removed_and_notes_stay(checkout):
    stray, notes = checkout / "docs/failures/gone.html", checkout / "docs/failures/notes.md"
    shutil.copy(checkout / "docs/failures/driver.html", stray)
    notes.write_text("# Notes\n")
    generated.write(MATRIX, checkout)
    assert (stray.exists(), notes.exists()) == (False, True)

"""What an image's size is compared with where the checkout has none, from STAND-IN records of proofs."""

from types import SimpleNamespace

import pytest
import yaml

from rocmatrix.containers.engine import Image
from rocmatrix.evidence import baseline, store
from rocmatrix.evidence.record import Number, Verdict
from rocmatrix.matrix.kernel_library import Baseline
from rocmatrix.verify import size
from tests.fixtures.cells import CPU, GFX906, GFX1100, MATRIX
from tests.fixtures.evidence import IMAGE, record


def proof(hours, taken, *, accepted="", **fields):
    summary = f"{size.ACCEPTED}{accepted}: {taken} bytes" if accepted else f"{taken} bytes"
    values = {
        "cell": GFX1100.name,
        "numbers": (Number(probe="size", name="files", value=float(taken), unit="B"),),
        "verdicts": (Verdict(probe="size", status="passed", summary=summary),),
    }
    return record("prove", hours, **values | fields)


def of(*records, marks=()):
    found = baseline.of(records, marks=marks)
    return found.bytes if found else None


def test_first_size_stays_however_later_images_grow():
    assert of() is None
    assert of(proof(1, 1000), proof(2, 1040), proof(3, 1080)) == 1000


def test_accepted_size_takes_the_place_of_all_before_it():
    grown = [proof(1, 1000), proof(2, 2000, accepted="a new package"), proof(3, 2050)]
    assert of(*grown) == 2000
    assert of(*grown, proof(4, 1500, accepted="it is gone again")) == 1500
    found = baseline.of(grown, marks=())
    assert found is not None
    assert "a new package" in found.of


@pytest.mark.parametrize(
    "other",
    [
        proof(0, 10, passed=False),
        proof(0, 10, marks=("stand-in",)),
        proof(0, 10, numbers=()),
        record("smoke", 0, cell=GFX1100.name, numbers=proof(0, 10).numbers),
    ],
    ids=["not proven", "set aside", "no size", "no proof"],
)
def test_size_of_another_kind_is_no_baseline(other):
    assert of(other) is None
    assert of(other, proof(1, 1000)) == 1000


def test_images_that_are_set_aside_are_compared_with_their_like():
    records = [proof(1, 1000), proof(2, 500, marks=("stand-in", "other-base"))]
    assert of(*records, marks=("other-base", "stand-in")) == 500
    assert of(*records, marks=("stand-in",)) is None


def test_sizes_that_others_sent_are_no_baseline_of_this_machine(tmp_path):
    kept, image = tmp_path / "evidence.db", Image(id=IMAGE, labels={}, size=1)
    store.add(kept, [proof(1, 10)], origin="a-mail.json")
    assert baseline.recorded(kept, GFX1100, image) is None
    store.save(kept, proof(2, 1000))
    found = baseline.recorded(kept, GFX1100, image)
    assert found is not None
    assert found.bytes == 1000


def test_entries_are_for_cells_without_a_baseline():
    rows = yaml.safe_load(baseline.entries(MATRIX, [proof(1, 1000), proof(2, 1020)]))
    (made,) = [Baseline.model_validate(row) for row in rows]
    assert (made.cell, made.newest.bytes) == (GFX1100.name, 1000)
    assert IMAGE in made.newest.of


@pytest.mark.parametrize("fields", [{"marks": ("stand-in",)}, {"passed": False}])
def test_record_that_is_no_evidence_gives_no_entry(fields):
    assert baseline.entries(MATRIX, [proof(1, 1000, **fields)]) == ""


def test_cell_that_has_a_baseline_gets_a_comment_alone():
    known = MATRIX.baseline(CPU.name)
    assert known is not None
    text = baseline.entries(MATRIX, [proof(1, known.newest.bytes + 1, cell=CPU.name)])
    assert yaml.safe_load(text) is None
    assert f"# {CPU.name} has sizes" in text
    assert str(known.newest.bytes + 1) in text
    assert baseline.entries(MATRIX, [proof(1, known.newest.bytes, cell=CPU.name)]) == ""


def test_size_on_record_is_of_this_cell_and_of_images_with_these_labels(tmp_path):
    kept = tmp_path / "evidence.db"
    store.add(kept, [proof(1, 5, cell=CPU.name), proof(2, 70, marks=("stand-in",)), proof(3, 1000)])
    for labels, size_ in (({}, 1000), ({"org.rocmatrix.stand-in": "wheels"}, 70)):
        found = baseline.recorded(kept, GFX1100, Image(id=IMAGE, labels=labels, size=1))
        assert found is not None
        assert found.bytes == size_


def test_recorded_size_names_its_day_its_image_and_the_reason_that_a_person_gave():
    first = baseline.of([proof(1, 1000)], marks=())
    assert first == size.Recorded(bytes=1000, date="2026-11-01", of=f"image {IMAGE}, proven here")
    accepted = baseline.of([proof(1, 1000), proof(2, 2000, accepted="m\u00e9thode")], marks=())
    assert accepted is not None
    assert accepted.of == f"image {IMAGE}, proven here; accepted: m\u00e9thode: 2000 bytes"


def test_entries_are_of_every_cell_in_the_matrix_order_and_in_letters_as_they_are():
    records = [proof(1, 1000, accepted="m\u00e9thode"), proof(1, 2000, cell=GFX906.name)]
    text = baseline.entries(MATRIX, records)
    order = [cell.name for cell in MATRIX.cells if cell.name in (GFX906.name, GFX1100.name)]
    assert [row["cell"] for row in yaml.safe_load(text)] == order
    assert "accepted: m\u00e9thode" in text


def test_comments_are_added_to_entries():
    matrix = SimpleNamespace(cells=(GFX1100, CPU), baseline=MATRIX.baseline)
    text = baseline.entries(matrix, [proof(1, 1000), proof(1, 7, cell=CPU.name)])
    assert text.startswith(f"- cell: {GFX1100.name}\n  sizes:\n    - bytes: 1000\n")
    assert f"# {CPU.name} has sizes; to add below them:\n#     - bytes: 7\n" in text

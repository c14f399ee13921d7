"""A request fits a cell by every axis that it names, and of two cells that fit the better one comes first."""

import pytest

from rocmatrix.matrix.resolver.request import Request, agrees, fits, is_open, preference, same_version
from tests.fixtures.cells import MATRIX

CELLS = {cell.name: cell for cell in MATRIX.cells}
GPU, CPU = CELLS["rocm6.3-torch2.7.1-gfx1100"], CELLS["cpu-torch2.13.0"]


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (Request(), "nothing in particular"),
        (Request(gpu="gfx1100", torch="2.7.1"), "--torch 2.7.1 --gpu gfx1100"),
        (Request(cell="x", companions=("peft", "vllm")), "--cell x --with peft,vllm"),
        (Request(rocm="6.3", python="3.12"), "--rocm 6.3 --python 3.12"),
    ],
)
def test_request_as_text_is_the_options_that_were_given(request_, words):
    assert str(request_) == words


@pytest.mark.parametrize(
    ("cell", "axes", "fit"),
    [
        (GPU, {}, True),
        (CPU, {}, True),
        (GPU, {"gpu": "gfx1100"}, True),
        (GPU, {"gpu": "gfx906"}, False),
        (GPU, {"gpu": "cpu"}, False),
        (CPU, {"gpu": "cpu"}, True),
        (CPU, {"gpu": "gfx1100"}, False),
        (GPU, {"rocm": "6.3", "torch": "2.7.1", "python": GPU.python}, True),
        (GPU, {"rocm": "6.2"}, False),
        (GPU, {"torch": "2.7"}, False),
        (GPU, {"python": "3.1"}, False),
        (CPU, {"rocm": "6.3"}, False),
        (CPU, {"python": CPU.python}, True),
    ],
)
def test_cell_fits_by_every_axis_that_is_named(cell, axes, fit):
    assert fits(cell, Request(**axes)) is fit


@pytest.mark.parametrize(
    ("requested", "version", "same"),
    [
        (None, None, True),
        (None, "6.3", True),
        ("6.3", None, False),
        ("6.3", "6.3.0", True),
        ("6.3", "6.3.1", False),
        ("six", "6.3", False),
        ("6.3", "", False),
    ],
)
def test_versions_are_compared_as_versions_and_an_open_axis_fits_all(requested, version, same):
    assert same_version(requested, version) is same


def changed(name, **fields):
    return GPU.model_copy(update={"name": name, **fields})


def test_recommended_cell_of_two_leads_on_a_named_card_and_the_listed_one_where_the_card_is_open():
    recommended, listed = changed("r", recommended=True, official=False), changed("l", recommended=False, official=True)
    neither = changed("n", recommended=False, official=False)
    for cells in ([recommended, listed, neither], [neither, listed, recommended]):
        assert [c.name for c in sorted(cells, key=preference(Request(gpu="gfx1100")))] == ["r", "l", "n"]
        assert [c.name for c in sorted(cells, key=preference(Request()))] == ["l", "r", "n"]


def test_newer_rocm_and_then_newer_torch_leads_of_two_cells_with_the_same_marks():
    def of(name, **versions):
        return changed(name, recommended=False, official=False, release=GPU.release.model_copy(update=versions))

    cells = [
        of("a", rocm="6.3", torch="2.9.0"),
        of("b", rocm="7.0", torch="2.8.0"),
        of("c", rocm="7.0", torch="2.10.0"),
    ]
    assert [c.name for c in sorted(cells, key=preference(Request()))] == ["c", "b", "a"]


def test_request_is_written_by_the_name_of_its_wheels_and_not_by_the_release_typed():
    assert str(Request(rocm="6.4", rocm_release="6.4.2", gpu="gfx1100")) == "--rocm 6.4 --gpu gfx1100"


@pytest.mark.parametrize(
    ("requested", "version", "fit"),
    [
        ("6", "6.0", True),
        ("6", "6.4", True),
        ("6", "7.0", False),
        ("6", None, False),
        ("10", "10.0", True),
        ("1", "10.0", False),
        ("6.0", "6.4", False),
        ("6.4", "6.4.0", True),
        (None, "6.4", True),
        ("2", "2.14.1", True),
        ("2", "later", False),
    ],
)
def test_version_of_one_number_names_a_series_and_of_two_itself(requested, version, fit):
    assert agrees(requested, version) is fit
    assert is_open(requested) is (requested is None or "." not in requested)


def test_number_of_too_many_digits_for_python_is_another_version():
    assert same_version("7" * 5000, "7.0") is False
    assert same_version("7." + "1" * 5000, "7.1") is False

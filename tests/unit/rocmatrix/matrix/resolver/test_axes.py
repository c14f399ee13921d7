"""The axes that a request leaves open: what stands for each, and what is known next to it."""

import pytest

from rocmatrix.matrix.resolver import axes
from rocmatrix.matrix.resolver.request import Request
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import CPU, GFX906, GFX1100, MATRIX

RELEASE = GFX1100.release


@pytest.mark.parametrize("text", [None, "3.12", "3.9", "3.13t"])
def test_python_is_a_version_with_or_without_its_lock(text):
    assert axes.checked_python(text) == text


@pytest.mark.parametrize("text", ["3", "3.", "3.123", "2.7", "3.12.1", "3.12d", "t", "", "3.12 "])
def test_python_in_another_form_is_refused(text):
    with pytest.raises(RocmatrixError, match="RM404"):
        axes.checked_python(text)


@pytest.mark.parametrize(("python", "built"), [("3.12", True), ("3.13t", True), ("3.12t", False), ("3.13", False)])
def test_free_threaded_build_is_one_of_its_own(python, built):
    release = RELEASE.model_copy(update={"pythons": ["3.12"], "free_threaded": ["3.13"]})
    assert axes.built_for(release, python) is built


def chosen(request, *, architecture="gfx1100", release=RELEASE, cell=GFX1100, found="; one card is here"):
    rows = axes.chosen(MATRIX, request, architecture=architecture, release=release, cell=cell, found=found)
    return {row.axis: (row.value, row.why) for row in rows}


def test_axes_that_were_left_open_are_those_that_are_chosen():
    assert chosen(Request()).keys() == {"gpu", "rocm", "torch"}
    assert chosen(Request(gpu="auto"))["gpu"] == ("gfx1100", "one card is here")
    assert chosen(Request(gpu="gfx1100", rocm="6.3", torch="2.7.1")) == {}
    assert chosen(Request(cell=GFX1100.name)) == {}
    assert chosen(Request(), release=None) == {}
    assert chosen(Request(rocm="cpu"), architecture=None).keys() == {"torch"}


def test_reason_of_a_written_cell_is_its_own_and_no_card_is_named_as_such():
    assert GFX1100.why in chosen(Request())["torch"][1]
    assert chosen(Request(), found="")["gpu"][1].startswith("no card is named")
    assert chosen(Request(), architecture=None, release=CPU.release, cell=CPU)["gpu"][0] == "cpu"
    assert chosen(Request(), architecture=None, cell=None)["gpu"][0] == "none"


def test_release_that_serves_another_one_is_named_with_it():
    value, why = chosen(Request(rocm="6.3", rocm_release="6.3.4"))["rocm"]
    assert (value, why.startswith("ROCm 6.3.4 has no wheels of its own")) == ("6.3", True)


def test_newest_release_is_chosen_past_those_that_a_rule_breaks():
    derived = GFX906.model_copy(update={"written": False})
    why = chosen(Request(gpu="gfx906"), architecture="gfx906", release=GFX906.release, cell=derived)["torch"][1]
    assert "that no rule calls broken; not " in why
    assert why.count("(rule ") <= 3


def test_neighbours_are_judged_by_rules_that_do_not_judge_the_release_itself():
    found = list(axes.neighbours(MATRIX, architecture="gfx1100", release=MATRIX.release_by_name["rocm6.2-torch2.5.1"]))
    own = {rule.id for rule in MATRIX.rules_on("gfx1100", MATRIX.release_by_name["rocm6.2-torch2.5.1"])}
    assert not own & {rule.id for _, rule in found}
    assert all(release.name != "rocm6.2-torch2.5.1" for release, _ in found)
    assert list(axes.neighbours(MATRIX, architecture=None, release=RELEASE)) == []
    assert list(axes.neighbours(MATRIX, architecture="gfx1100", release=None)) == []


def test_python_of_a_cell_is_that_of_its_image_locked_or_not_built():
    def reason(python, cell=GFX1100):
        return axes.python_reason(MATRIX, GFX1100.release, python, cell=cell)

    assert reason(GFX1100.python) == f"the image of {GFX1100.name} has Python {GFX1100.python}"
    assert reason("3.99").startswith(f"{RELEASE.name} has no wheel for Python 3.99")
    others = [python for python in RELEASE.pythons if python != GFX1100.python]
    assert all("locked" in reason(python) for python in others)
    assert reason(others[0], cell=None).endswith("no cell holds it")


def test_series_is_an_axis_that_is_chosen_and_named():
    found = chosen(Request(gpu="gfx1100", rocm="6", torch="2"))
    assert found.keys() == {"rocm", "torch"}
    assert found["rocm"][0] == RELEASE.rocm
    assert found["rocm"][1].startswith("6 names a series; the axis of ")
    assert found["torch"][1].startswith("2 names a series; ")


@pytest.mark.parametrize(
    ("requested", "rest", "unknown"),
    [
        (Request(gpu="gfx1100", rocm="6.3"), Request(gpu="gfx1100", rocm="6.3"), ()),
        (Request(gpu="gfx1100", rocm="6"), Request(gpu="gfx1100", rocm="6"), ()),
        (Request(gpu="gfx1100", rocm="5.0"), Request(gpu="gfx1100", rocm="5.0"), ("ROCm 5.0",)),
        (Request(gpu="gfx1100", rocm="99.0"), Request(gpu="gfx1100", rocm="99.0"), ()),
        (Request(gpu="cpu", rocm="5.0"), Request(gpu="cpu", rocm="5.0"), ()),
    ],
)
def test_versions_without_a_release_are_named_where_they_were_released(requested, rest, unknown):
    assert axes.recorded(MATRIX, requested, ()) == (rest, unknown)

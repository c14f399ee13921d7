"""The matrix as a whole: cells by name, derived ones, other Pythons, and copies that compute anew."""

import pytest

from rocmatrix.matrix.matrix import companions_in
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import CPU, GFX906, MATRIX


def test_cells_are_found_by_their_names_and_names_are_in_the_order_of_the_file():
    assert [MATRIX.cell(name) for name in MATRIX.cell_names] == list(MATRIX.cells)
    assert tuple(cell.name for cell in MATRIX.cells) == MATRIX.cell_names
    assert len(set(MATRIX.cell_names)) == len(MATRIX.cell_names)


def derived():
    return [
        cell
        for release in MATRIX.releases
        for gfx in ([None] if release.rocm is None else MATRIX.architectures)
        if (cell := MATRIX.derived(gfx, release)) is not None
    ]


def test_derived_cells_are_found_by_their_names_and_none_has_two():
    cells = derived()
    assert len(cells) > 100
    assert len({cell.name for cell in cells}) == len(cells)
    for cell in cells[::17]:
        found = MATRIX.cell(cell.name)
        assert (found.release, found.architecture, found.base) == (cell.release, cell.architecture, cell.base)


def test_derived_cell_states_that_it_was_not_written():
    cell = MATRIX.derived("gfx906", MATRIX.release_by_name[GFX906.release.name])
    assert cell.name == GFX906.name
    assert (GFX906.written, cell.written) == (True, False)
    assert cell.why.startswith("derived from its release")


@pytest.mark.parametrize("python", ["2.7", "3.99"])
def test_derived_cell_of_a_python_that_no_base_has_is_none(python):
    assert MATRIX.derived(None, CPU.release, python=python) is None


@pytest.mark.parametrize("name", [CPU.name + "x", CPU.name[:-1], "", "+", CPU.name + "+", CPU.name + "+nothing"])
def test_unknown_name_is_rm010_with_the_nearest(name):
    with pytest.raises(RocmatrixError, match="RM010") as caught:
        MATRIX.cell(name)
    assert repr(name) in caught.value.what
    if name.startswith(CPU.name[:-1]):
        assert CPU.name in caught.value.next


def test_companions_are_part_of_the_name():
    package = MATRIX.companions[0].package
    cell = MATRIX.cell(CPU.adding((package,)).name)
    assert cell.companions == (package,)
    assert MATRIX.cell(cell.name).name == cell.name


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ()),
        ("a", ("a",)),
        ("a-b", ("a-b",)),  # the longer name, where the shorter leaves a word that is none
        ("a-c", ("a", "c")),
        ("c-a-b", ("c", "a-b")),
        ("a-", None),
        ("a-d", None),
        ("ab", None),
        ("-a", None),
    ],
)
def test_companions_of_a_name_may_have_dashes_themselves(text, found):
    assert companions_in(text, ["a", "c", "a-b"]) == found


def test_copy_with_other_data_computes_anew():
    assert len(MATRIX.releases) > 1  # computed before the copy
    fewer = MATRIX.model_copy(update={"series": MATRIX.series[:1]})
    assert fewer.releases == tuple(MATRIX.series[0].releases())
    assert len(MATRIX.releases) > len(fewer.releases)


def test_rules_on_a_combination_are_all_that_match_it():
    for cell in MATRIX.cells[::5]:
        axes = {"architecture": cell.architecture, "torch": cell.release.torch, "rocm": cell.release.rocm}
        every = [*MATRIX.rules, *MATRIX.derived_rules]
        expected = [rule.id for rule in every if rule.when.matches(**axes)]
        assert [rule.id for rule in MATRIX.rules_on(cell.architecture, cell.release)] == expected


def test_kernel_libraries_are_of_cells_with_an_architecture_alone():
    assert MATRIX.kernel_libraries_of(CPU) == ()
    assert MATRIX.kernel_libraries_of(GFX906)


def test_cell_of_another_python_is_given_where_its_wheels_are_locked():
    locked = MATRIX.locks[CPU.lock_name]
    for python in ("3.11", "3.12", "3.13"):
        other = MATRIX.for_python(CPU, python)
        assert (other is None) is (python not in locked)
        if other is not None:
            assert other.base.python == python
            assert [file for file, _ in other.wheels] == locked[python]


def test_sizes_are_those_recorded_for_the_cell():
    recorded = MATRIX.baselines[0]
    assert MATRIX.baseline(recorded.cell) is recorded
    assert MATRIX.baseline("no cell") is None

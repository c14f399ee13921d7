"""`test --room` finds the tests that mirror a room, and refuses a room without any."""

import pytest

from rocmatrix.cli import rooms
from rocmatrix.cli.commands.project import chosen_tests
from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.runtime.paths import ROOT


@pytest.mark.parametrize(
    ("name", "tests"),
    [
        ("trainer/engine", "tests/unit/trainer/engine"),
        ("trainer/engine/", "tests/unit/trainer/engine"),
        ("trainer.engine.steps", "tests/unit/trainer/engine/steps"),
        ("rocmatrix/matrix", "tests/unit/rocmatrix/matrix"),
        ("rocmatrix/matrix/gfx.py", "tests/unit/rocmatrix/matrix/test_gfx.py"),
        ("rocmatrix.matrix.gfx", "tests/unit/rocmatrix/matrix/test_gfx.py"),
        ("trainer", "tests/unit/trainer"),
    ],
)
def test_room_or_module_maps_to_its_mirrored_tests(name, tests):
    assert rooms.tests_of(name, ROOT) == tests


@pytest.mark.parametrize("name", ["trainer/engin", "trainer/engine/nothing", "", ".", "../tests", "tests/unit"])
def test_unknown_room_is_refused_with_rm404(name):
    with pytest.raises(RocmatrixError, match="RM404"):
        rooms.tests_of(name, ROOT)


def test_misspelt_room_is_refused_with_the_nearest_name():
    with pytest.raises(RocmatrixError, match="did you mean trainer/engine"):
        rooms.tests_of("trainer/engin", ROOT)


def test_listed_rooms_have_tests():
    assert all(list((ROOT / rooms.tests_of(name, ROOT)).rglob("test_*.py")) for name in rooms.rooms(ROOT))


def test_paths_and_room_together_are_refused():
    with pytest.raises(RocmatrixError, match="exclude each other"):
        chosen_tests("tests/unit", "trainer/engine", ROOT)


def test_run_without_paths_or_room_takes_all_tests():
    assert chosen_tests("", "", ROOT) == []

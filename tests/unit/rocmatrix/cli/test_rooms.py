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


def checkout(root, modules, tests=(), listed=()):
    for path, text in modules.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    for path in tests:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("def test_sum_of_two_is_two():\n    assert 1 + 1 == 2\n")
    (root / rooms.LISTED).parent.mkdir(parents=True, exist_ok=True)
    (root / rooms.LISTED).write_text("".join(f"{line}\n" for line in listed))
    return root


CODE = "def f(a):\n    return a + 1\n"


def test_checkout_lists_the_modules_without_tests():
    assert rooms.faults(ROOT) == []


def test_most_modules_have_tests_of_their_own():
    listed = (ROOT / rooms.LISTED).read_text().split()
    assert len(listed) <= 0.15 * sum(rooms.modules(ROOT).values())


def test_new_module_without_tests_is_a_fault(tmp_path):
    root = checkout(tmp_path, {"trainer/a/b.py": CODE, "rocmatrix/c.py": CODE}, ["tests/unit/rocmatrix/test_c.py"])
    assert rooms.faults(root) == ["trainer/a/b.py: has no tests in tests/unit/trainer/a/test_b.py"]


def test_file_of_tests_without_a_test_does_not_count(tmp_path):
    root = checkout(tmp_path, {"trainer/b.py": CODE, "tests/unit/trainer/test_b.py": "from trainer import b\n"})
    assert rooms.without_tests(root) == {"trainer/b.py"}


def test_listed_module_that_has_tests_or_is_gone_is_a_fault(tmp_path):
    listed = ["trainer/b.py", "trainer/gone.py", "trainer/late.py"]
    modules = {"trainer/b.py": CODE, "trainer/late.py": CODE}
    root = checkout(tmp_path, modules, ["tests/unit/trainer/test_b.py"], listed)
    assert [fault.split()[1] for fault in rooms.faults(root)] == ["trainer/b.py", "trainer/gone.py"]


@pytest.mark.parametrize(
    ("source", "needed"),
    [
        ("A = 1\nclass B:\n    c: int\n", False),
        ("class B:\n    def c(self) -> int:\n        '''Return it.'''\n", False),
        ("class B:\n    def c(self) -> int: ...\n", False),
        ("class B:\n    def c(self):\n        raise NotImplementedError\n", False),
        ("class B:\n    def c(self):\n        return self.d.e\n", False),
        ("class B:\n    def c(self):\n        return self.d + 1\n", True),
        ("class B:\n    def c(self):\n        return d()\n", True),
        ("def c():\n    '''Do it.'''\n    d()\n", True),
        ("def c():\n    def d():\n        return 1\n    return d\n", True),
        ("async def c():\n    await d()\n", True),
    ],
)
def test_module_needs_tests_where_a_function_does_something(tmp_path, source, needed):
    assert rooms.modules(checkout(tmp_path, {"trainer/b.py": source})) == {"trainer/b.py": needed}


def test_programs_own_files_are_no_modules(tmp_path):
    assert rooms.modules(checkout(tmp_path, {"trainer/__init__.py": CODE, "trainer/__main__.py": CODE})) == {}


def test_main_fails_with_the_module_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(rooms, "ROOT", checkout(tmp_path, {"trainer/b.py": CODE}))
    assert rooms.main() == 1
    assert "trainer/b.py: has no tests" in capsys.readouterr().err
    (tmp_path / rooms.LISTED).write_text("trainer/b.py\n")
    assert rooms.main() == 0
    assert "1 modules, 0 exempt by rule, 1 without tests of their own" in capsys.readouterr().err

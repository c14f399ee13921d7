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


def test_room_is_described_by_the_first_paragraph_of_its_docstring(tmp_path):
    deeper = tmp_path / "trainer/engine/steps"
    deeper.mkdir(parents=True)
    (deeper.parent / "__init__.py").write_text('"""The training\nloop.\n\nAnd more of it.\n"""\n')
    (deeper / "__init__.py").write_text('"""How a step is taken."""\n')
    (tmp_path / "trainer/__init__.py").write_text('"""The program itself."""\n')
    described = {"engine": "The training loop.", "engine/steps": "How a step is taken."}
    assert rooms.described("trainer", tmp_path) == described


@pytest.mark.parametrize("program", rooms.PROGRAMS)
def test_rooms_of_the_checkout_have_a_description(program):
    assert [room for room, text in rooms.described(program, ROOT).items() if not text.endswith(".")] == []


def test_paths_and_room_together_are_refused():
    with pytest.raises(RocmatrixError, match="exclude each other"):
        chosen_tests("tests/unit", "trainer/engine", ROOT)


def test_run_without_paths_or_room_takes_all_tests():
    assert chosen_tests("", "", ROOT) == []


def checkout(root, modules, tests=(), listed=()):
    """A tree of these modules; each file of `tests` imports the module that it mirrors."""
    mirroring = {path: importing(path) for path in tests}
    for path, text in (modules | mirroring).items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / rooms.LISTED).parent.mkdir(parents=True, exist_ok=True)
    (root / rooms.LISTED).write_text("".join(f"{line}\n" for line in listed))
    return root


CODE = "def f(a):\n    return a + 1\n"
ONE_TEST = "def test_sum_of_two_is_two():\n    assert 1 + 1 == 2\n"


def importing(path):
    module = path.removeprefix("tests/unit/").removesuffix(".py").replace("/test_", "/").replace("/", ".")
    return f"import {module}\n{ONE_TEST}"


def test_checkout_lists_the_modules_without_tests():
    assert rooms.faults(ROOT) == []


def test_most_modules_have_tests_of_their_own():
    listed = (ROOT / rooms.LISTED).read_text().split()
    assert len(listed) <= 0.12 * sum(rooms.modules(ROOT).values())


def test_new_module_without_tests_is_a_fault(tmp_path):
    root = checkout(tmp_path, {"trainer/a/b.py": CODE, "rocmatrix/c.py": CODE}, ["tests/unit/rocmatrix/test_c.py"])
    assert rooms.faults(root) == ["trainer/a/b.py: no tests in tests/unit/trainer/a/test_b.py import it"]


def test_file_of_tests_without_a_test_does_not_count(tmp_path):
    root = checkout(tmp_path, {"trainer/b.py": CODE, "tests/unit/trainer/test_b.py": "from trainer import b\n"})
    assert rooms.without_tests(root) == {"trainer/b.py"}


TARGET = """from trainer.a.other import moved
from typing import TYPE_CHECKING
class C: ...
LIMIT: int = 3
try:
    import fast
    HAS = True
except ImportError:
    HAS = False
def f(a):
    inner = a
    return inner + 1
"""


@pytest.mark.parametrize(
    "line",
    [
        "from trainer.a.b import f",
        "from trainer.a.b import C",
        "from trainer.a.b import LIMIT",
        "from trainer.a.b import HAS",
        "from trainer.a.b import moved, f as own",
        "from trainer.a import b",
        "from trainer.a import b as module",
        "import trainer.a.b",
        "import trainer.a.b as module",
        "def module():\n    from trainer.a import b\n    return b",
        "if True:\n    from trainer.a import b",
        "def fast():\n    import os, trainer.a.b",
        "if not TYPE_CHECKING:\n    from trainer.a import b",
        "if TYPE_CHECKING:\n    pass\nelse:\n    from trainer.a import b",
        "try:\n    from trainer.a.b import f\nexcept ImportError:\n    pass",
    ],
)
def test_file_that_imports_the_module_or_its_names_holds_its_tests(tmp_path, line):
    files = {"trainer/a/b.py": TARGET, "tests/unit/trainer/a/test_b.py": f"{line}\n{ONE_TEST}"}
    assert rooms.without_tests(checkout(tmp_path, files)) == set()


@pytest.mark.parametrize(
    "line",
    [
        "",
        "from trainer.a import other",
        "from trainer.a.b import moved",  # another module's, which this one imports
        "from trainer.a.b import inner, fast",
        "from trainer.a.b import anything",
        "from trainer.a.bb import f",
        "import trainer.a",
        "import trainer.a.b.c",
        "import trainer.a.bb",
        "from trainer import a",
        "from trainer.a.b.c import f",
        "from other.a import b",
        "from .b import f",
        "from . import b",
        "# from trainer.a import b",
        "PROGRAM = 'from trainer.a import b'",
        'PROGRAM = """\nfrom trainer.a import b\n"""',
        "import importlib\nb = importlib.import_module('trainer.a.b')",
        "def patched(monkeypatch):\n    monkeypatch.setattr('trainer.a.b.f', None)",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from trainer.a import b",
        "import typing\nif typing.TYPE_CHECKING:\n    from trainer.a.b import f",
    ],
)
def test_file_that_reaches_the_module_otherwise_does_not_hold_its_tests(tmp_path, line):
    files = {"trainer/a/b.py": TARGET, "tests/unit/trainer/a/test_b.py": f"{line}\n{ONE_TEST}"}
    assert rooms.without_tests(checkout(tmp_path, files)) == {"trainer/a/b.py"}


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("class TestB:\n    def test_sum_is_two(self): ...\n", True),
        ("async def test_sum_is_two(): ...\n", True),
        ('PROGRAM = """\ndef test_sum_is_two(): ...\n"""\n', False),
        ("def check_sum_is_two(): ...\n", False),
        ("# def test_sum_is_two(): ...\n", False),
    ],
)
def test_file_holds_tests_where_it_defines_one(tmp_path, text, held):
    files = {"trainer/a/b.py": CODE, "tests/unit/trainer/a/test_b.py": f"from trainer.a import b\n{text}"}
    assert rooms.without_tests(checkout(tmp_path, files)) == (set() if held else {"trainer/a/b.py"})


def test_import_in_a_conftest_or_another_file_does_not_count(tmp_path):
    files = {"trainer/a/b.py": CODE, "tests/unit/trainer/a/test_b.py": ONE_TEST}
    for other in ("conftest.py", "test_c.py", "b.py"):
        files[f"tests/unit/trainer/a/{other}"] = f"from trainer.a import b\n{ONE_TEST}"
    assert rooms.without_tests(checkout(tmp_path, files)) == {"trainer/a/b.py"}


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
    assert "trainer/b.py: no tests in tests/unit/trainer/test_b.py import it" in capsys.readouterr().err
    (tmp_path / rooms.LISTED).write_text("trainer/b.py\n")
    assert rooms.main() == 0
    assert "1 modules, 0 exempt by rule, 1 without tests of their own" in capsys.readouterr().err

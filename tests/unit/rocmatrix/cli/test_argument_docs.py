"""Public functions with three or more parameters describe those that their types do not explain."""

import pytest

from rocmatrix.cli import argument_docs
from rocmatrix.runtime.paths import ROOT

SECTION = """Do it.

    Args:
        a: seconds.
        b: seconds.
        c: seconds, such as
            1.5.

    Raises:
        ValueError: never.
    """


def faults(tmp_path, source):
    (tmp_path / "trainer").mkdir(exist_ok=True)
    (tmp_path / "trainer/module.py").write_text(source)
    return [(place.line, place.name, place.why) for place in argument_docs.places(tmp_path)]


def test_checkout_has_no_finding():
    assert argument_docs.places(ROOT) == []


@pytest.mark.parametrize(
    ("parameters", "missing"),
    [
        ("a: int, b: str, c: float", "a, b, c"),
        ("a: Cell, b: Matrix, c: Path", "c"),
        ("a: Cell | None, b: docker.DockerClient, c: list[Cell]", "c"),
        ("a: torch.Tensor, b: Cell, c: Any, *d: Cell, **e: int", "a, c, e"),
        ("a: Cell, b: Callable[[int], int], *, c=None", "b, c"),
    ],
)
def test_function_with_undescribed_parameters_is_reported_with_their_names(tmp_path, parameters, missing):
    source = f'\ndef f({parameters}) -> None:\n    """Do it."""\n'
    assert faults(tmp_path, source) == [(2, "f", f"Args lacks {missing}")]


@pytest.mark.parametrize(
    "source",
    [
        'def f(a: int, b: int):\n    """Two."""\n',
        'def _f(a: int, b: int, c: int):\n    """Private."""\n',
        'class _A:\n    def f(self, a: int, b: int, c: int):\n        """Of a private class."""\n',
        'class A:\n    def f(self, a: int, b: int):\n        """Two and self."""\n',
        'class A:\n    @override\n    def f(self, a: int, b: int, c: int):\n        """Described by its base."""\n',
        'def f(a: Cell, b: Matrix, c: docker.DockerClient | None):\n    """Types that explain themselves."""\n',
        f'def f(a: int, b: int, c: int):\n    """{SECTION}"""\n',
    ],
)
def test_function_that_needs_no_section_or_has_one_is_accepted(tmp_path, source):
    assert faults(tmp_path, source) == []


def test_section_with_a_name_that_is_no_parameter_is_reported(tmp_path):
    source = f'def f(a: int, b: int, d: int):\n    """{SECTION}"""\n'
    assert faults(tmp_path, source) == [(1, "f", "Args names what is no parameter: c")]


def test_static_method_counts_its_first_parameter(tmp_path):
    source = 'class A:\n    @staticmethod\n    def f(a: int, b: int, c: int):\n        """Three."""\n'
    assert faults(tmp_path, source) == [(3, "A.f", "Args lacks a, b, c")]


def test_main_with_a_finding_fails_and_names_the_function(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(argument_docs, "ROOT", tmp_path)
    assert faults(tmp_path, 'def f(a: int, b: int, c: int):\n    """Do it."""\n')
    assert argument_docs.main() == 1
    assert "trainer/module.py:1: f: Args lacks a, b, c" in capsys.readouterr().err
    assert faults(tmp_path, f'def f(a: int, b: int, c: int):\n    """{SECTION}"""\n') == []
    assert argument_docs.main() == 0

"""The native environment takes the resolved cell's own wheels, or says what it takes instead."""

from pathlib import Path

import pytest

from rocmatrix.images import native_env as native
from rocmatrix.matrix.loading import load as matrix_file
from rocmatrix.runtime.errors import RocmatrixError

ROOT = Path(__file__).resolve().parents[4]
MATRIX = matrix_file.load(ROOT)


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
def test_the_cpu_build_is_locked_for_each_python(python):
    cell, _ = native.choose(MATRIX, MATRIX.cell("cpu-torch2.13.0"), python=python)
    assert cell.python == python
    assert any(file.startswith(f"torch-2.13.0+cpu-cp{python.replace('.', '')}-") for file, _ in cell.wheels)


def test_a_card_takes_its_own_wheels_where_the_python_fits():
    cell, why = native.choose(MATRIX, MATRIX.cell("rocm6.3-torch2.7.1-gfx1100"), python="3.12")
    assert cell.name == "rocm6.3-torch2.7.1-gfx1100"
    assert "3.12" in why


def test_a_card_with_another_python_falls_back_and_says_so():
    cell, why = native.choose(MATRIX, MATRIX.cell("rocm6.0-torch2.4.1-gfx906"), python="3.13")
    assert cell.release.rocm is None
    assert "rocm6.0-torch2.4.1-gfx906" in why


def test_an_unknown_python_is_refused_with_those_that_fit():
    with pytest.raises(RocmatrixError, match="RM403") as caught:
        native.choose(MATRIX, None, python="3.9")
    assert "3.11" in str(caught.value)


def test_pip_installs_from_the_wheelhouse_alone(tmp_path):
    argv = native.pip_argv(tmp_path / "w", tmp_path / "lock")
    assert {"--no-index", "--require-hashes", "--no-deps"} <= set(argv)


def test_a_failing_pip_is_rm402():
    with pytest.raises(RocmatrixError, match="RM402"):
        native.run_pip(["sh", "-c", "echo hash mismatch >&2; exit 1"])


def test_host_and_trainer_pins_agree():
    """Both are installed into one .venv, so a package named by both must have one version."""
    base = dict(
        line.split(" ")[0].split("==")
        for name in ("base", "dev")
        for line in (ROOT / f"requirements/{name}.txt").read_text().splitlines()
        if "==" in line and not line.startswith((" ", "#"))
    )
    for python in ("3.11", "3.12", "3.13", "3.14"):
        cell, _ = native.choose(MATRIX, None, python=python)
        for _, wheel in cell.wheels:
            name = wheel.name.lower().replace("_", "-")
            assert base.get(name, wheel.version) == wheel.version, (name, python)

"""The package index's own torch: recorded for each Python, stated with its size, taken in place of the small one."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.utils import parse_wheel_filename

from rocmatrix.images import native_env
from rocmatrix.images.native import plain_wheels
from rocmatrix.images.pip_report import PLATFORMS
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import MATRIX

ROOT = Path(__file__).resolve().parents[5]
CPU = MATRIX.cell("cpu-torch2.13.0")
TORCH = next(file for file, wheel in CPU.wheels if wheel.name == "torch")
GONE = RocmatrixError("RM104", what=TORCH, why="PyTorch's own index: connection refused")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("python", plain_wheels.PYTHONS)
def test_plain_torch_is_recorded_for_each_python_with_all_its_packages(python: str) -> None:
    small = MATRIX.for_python(CPU, python)
    assert small is not None
    found = plain_wheels.plain(small, ROOT)
    assert found is not None
    files, before = dict(found.cell.wheels), dict(small.wheels)
    kept = {file for file in before if not file.startswith("torch-")}
    assert kept < set(files)
    added = sorted(set(files) - kept)
    assert [file for file in added if file.startswith("torch-")] == [
        f"torch-2.13.0-cp{python.replace('.', '')}-cp{python.replace('.', '')}-manylinux_2_28_x86_64.whl"
    ]
    names = [files[file].name for file in added]
    assert len(names) == len(set(names)) and {"triton", "nvidia-cublas", "nvidia-cudnn-cu13"} <= set(names)
    assert all(re.fullmatch(r"[0-9a-f]{64}", files[file].sha256) for file in added)
    assert "2.7 GB to fetch" in found.words and f"Python {python}" in found.words
    recorded = yaml.safe_load((ROOT / plain_wheels.LOCK).read_text())["2.13.0"]
    assert found.size == sum(recorded[file]["bytes"] for file in added)


def test_cell_for_a_card_and_a_torch_that_is_not_recorded_have_no_plain_wheels(tmp_path: Path) -> None:
    assert plain_wheels.plain(MATRIX.cell("rocm6.3-torch2.7.1-gfx1100"), ROOT) is None
    assert plain_wheels.plain(CPU, tmp_path) is None
    (tmp_path / "requirements").mkdir()
    (tmp_path / plain_wheels.LOCK).write_text("2.12.0: {}\n")
    assert plain_wheels.plain(CPU, tmp_path) is None


def found() -> plain_wheels.Plain:
    plain = plain_wheels.plain(CPU, ROOT)
    assert plain is not None
    return plain


@pytest.mark.parametrize(
    ("typed", "given", "taken"),
    [
        *[("y\n", "", True), ("yes\n", "", True), ("n\n", "", False), ("\n", "", False), ("", "", False)],
        *[("n\n", "yes", True), ("y\n", "no", False), ("y\n", "maybe", False), ("y\n", " YES ", True)],
    ],
)
def test_plain_torch_is_taken_on_a_terminal_where_the_answer_is_yes(
    typed: str, given: str, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    monkeypatch.setattr(sys, "stderr", printed)
    environment = {plain_wheels.ANSWER: given} if given else {}
    if taken:
        plain_wheels.agree(found(), GONE, environment)
    else:
        with pytest.raises(RocmatrixError, match="RM114") as caught:
            plain_wheels.agree(found(), GONE, environment)
        assert "connection refused" in caught.value.why
    assert TORCH in printed.getvalue() and "2.7 GB" in printed.getvalue()
    assert ("[y/N]" in printed.getvalue()) is not bool(given)


def test_plain_torch_is_taken_without_a_terminal_unless_declined(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    plain_wheels.agree(found(), GONE, {})
    assert "2.7 GB" in capsys.readouterr().err
    with pytest.raises(RocmatrixError, match="RM114"):
        plain_wheels.agree(found(), GONE, {plain_wheels.ANSWER: "no"})


def test_small_build_that_cannot_be_fetched_is_replaced_once_and_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second start asks no index about the small build again."""
    tried, installed = [], []
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(native_env, "run_pip", lambda argv, **_: installed.append(argv))
    monkeypatch.setattr(plain_wheels, "agree", lambda *_: None)

    def fetch(cell: object, folder: Path) -> Path:
        tried.append(folder.name)
        if "plain" not in folder.name:
            raise GONE
        return folder

    monkeypatch.setattr("rocmatrix.images.wheelhouse.fetch", fetch)
    for _ in range(2):
        assert "package index's own" in native_env.install_or_plain(CPU, ROOT)
    assert len(tried) == 2 and tried[1] == f"{tried[0].replace('-py', '-plain-py')}"
    assert len(installed) == 1
    lock = (tmp_path / "native.lock").read_text()
    assert "torch==2.13.0 " in lock and "+cpu" not in lock and "nvidia-cublas==" in lock


def test_other_failures_of_fetching_are_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    card = MATRIX.cell("rocm6.3-torch2.7.1-gfx1100")
    for code, cell, file in (
        ("RM103", CPU, TORCH),
        ("RM104", card, next(file for file, wheel in card.wheels if wheel.name == "torch")),
        ("RM104", CPU, "mpmath-1.3.0-py3-none-any.whl"),  # of a network that fails now and then: both need this wheel
    ):

        def fetch(*_: object, code: str = code, file: str = file) -> Path:
            raise RocmatrixError(code, what=file)

        monkeypatch.setattr("rocmatrix.images.wheelhouse.fetch", fetch)
        with pytest.raises(RocmatrixError, match=code):
            native_env.install_or_plain(cell, ROOT)


def test_plain_wheels_have_tags_that_pip_is_given() -> None:
    """pip itself takes manylinux2014 for the older manylinux2010 and manylinux1, too."""
    taken = {*PLATFORMS, "any", "manylinux2010_x86_64", "manylinux1_x86_64"}
    for file in yaml.safe_load((ROOT / plain_wheels.LOCK).read_text())["2.13.0"]:
        *_, tags = parse_wheel_filename(file)
        assert {tag.platform for tag in tags} & taken, file


def listed(*files: str) -> list[dict[str, Any]]:
    """Wheels as uv writes them to pylock.toml."""
    return [
        {"url": f"https://files.example/{file}", "size": place, "hashes": {"sha256": f"{place:064x}"}}
        for place, file in enumerate(files)
    ]


OTHERS = (
    "torch-2.13.0-cp313-cp313t-manylinux_2_28_x86_64.whl",  # without the interpreter's lock: another ABI
    "torch-2.13.0-cp313-cp313-macosx_10_13_x86_64.whl",
    "torch-2.13.0-cp313-cp313-musllinux_1_2_x86_64.whl",
    "torch-2.13.0-cp313-cp313-manylinux_2_28_aarch64.whl",
    "torch-2.13.0-cp313-cp313-manylinux_2_39_x86_64.whl",  # of a newer C library than the bases'
    "torch-2.13.0-cp313-cp313-win_amd64.whl",
    "torch-2.13.0-cp312-cp312-manylinux_2_28_x86_64.whl",
    "torch-2.13.0-cp314-cp314-manylinux_2_28_x86_64.whl",
    "torch-2.13.0-cp3-none-manylinux_2_28_x86_64.whl",
)


@pytest.mark.parametrize(
    "file",
    [
        "torch-2.13.0-cp313-cp313-manylinux_2_28_x86_64.whl",
        "triton-3.7.1-cp313-cp313-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
        "cuda_pathfinder-1.9.0-py3-none-any.whl",
        "cuda_toolkit-13.0.3.0-py2.py3-none-any.whl",
        "nvidia_cublas-13.1.1.3-py3-none-manylinux_2_27_x86_64.whl",
        "nvidia_nvtx-13.0.85-py3-none-manylinux1_x86_64.manylinux_2_5_x86_64.whl",
        "cuda_x-1-cp313-abi3-manylinux_2_28_x86_64.whl",
    ],
)
def test_chosen_wheel_is_the_one_for_this_python_and_the_bases(file: str) -> None:
    wheels = listed(*OTHERS, file, *OTHERS)
    place = len(OTHERS)
    assert plain_wheels._chosen(wheels, "3.13") == (file, {"sha256": f"{place:064x}", "bytes": place})


@pytest.mark.parametrize("other", OTHERS)
def test_wheel_of_another_python_abi_or_system_is_refused(other: str) -> None:
    with pytest.raises(RocmatrixError, match="RM105") as caught:
        plain_wheels._chosen(listed(other), "3.13")
    assert other in caught.value.what + caught.value.why and "3.13" in caught.value.what


def test_package_without_wheels_is_refused() -> None:
    with pytest.raises(RocmatrixError, match="RM105"):
        plain_wheels._chosen([], "3.13")


def test_recorded_wheel_of_another_abi_is_not_taken(tmp_path: Path) -> None:
    rows = {file: {"sha256": "0" * 64, "bytes": 1} for file in OTHERS[:1]}
    (tmp_path / "requirements").mkdir()
    (tmp_path / plain_wheels.LOCK).write_text(yaml.safe_dump({"2.13.0": rows}))
    small = MATRIX.for_python(CPU, "3.13")
    assert small is not None and plain_wheels.plain(small, tmp_path) is None

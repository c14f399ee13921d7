"""The canary kernel: its numbers by Triton's interpreter, and compiled for AMD architectures without a card.

Triton is in no lock of the cells, whose torch brings its own: these tests use one that is importable, or that of the
folder ROCMATRIX_TRITON, by default the one that `.ci/kernels` makes from requirements/kernels.txt.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

ROOT = Path(__file__).parents[5]
FOLDER = os.environ.get("ROCMATRIX_TRITON", str(ROOT / ".rocmatrix" / "ci" / "triton"))
THERE = importlib.util.find_spec("triton") is not None or (Path(FOLDER) / "triton").is_dir()
needs_triton = pytest.mark.skipif(not THERE, reason="triton is not installed; .ci/kernels does it")
LANES = {"gfx906": 64, "gfx90a": 64, "gfx942": 64, "gfx1100": 32, "gfx1151": 32, "gfx1200": 32, "gfx1201": 32}
COMPILE = """
import json, sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from trainer.run.gates import canary
types = {"source": "*fp32", "target": "*fp32", "count": "i32", "PIECE": "constexpr"}
found = {}
for arch, lanes in json.loads(sys.argv[1]).items():
    source = ASTSource(fn=canary.tripled, signature=types, constexprs={"PIECE": canary.PIECE})
    found[arch] = len(triton.compile(source, target=GPUTarget("hip", arch, lanes)).asm["hsaco"])
print(json.dumps(found))
"""
VALUES = """
import torch
from trainer.run.gates import canary, trials
for cells in (trials.CELLS, trials.CELLS - 3):
    found = torch.full((trials.CELLS,), trials.SENTINEL)
    canary.launch(torch.arange(cells, dtype=torch.float32), found[:cells])
    print(repr(trials.canary_fault(found)))
"""


def printed(code: str, folder: Path, *arguments: str, **more: str) -> list[str]:
    path = os.pathsep.join(each for each in (FOLDER, str(ROOT)) if each)
    environment = os.environ | {"PYTHONPATH": path, "TRITON_CACHE_DIR": str(folder), "OMP_NUM_THREADS": "1"} | more
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip().splitlines()


@needs_triton
def test_canary_in_the_interpreter_writes_its_numbers_and_no_others(tmp_path: Path) -> None:
    whole, less = printed(VALUES, tmp_path, TRITON_INTERPRET="1")
    assert whole == "''"
    assert "3 of 4096" in less
    assert "3 of them never written" in less


@needs_triton
def test_canary_compiles_for_each_architecture(tmp_path: Path) -> None:
    found = json.loads(printed(COMPILE, tmp_path, json.dumps(LANES))[-1])
    assert found.keys() == LANES.keys()
    assert all(size > 500 for size in found.values())


def test_canary_is_not_imported_where_there_is_no_triton() -> None:
    code = "import sys; from trainer.run.gates import trials; print('trainer.run.gates.canary' in sys.modules)"
    assert printed(code, Path()) == ["False"]


@pytest.mark.parametrize(("count", "programs"), [(1, 1), (256, 1), (257, 2), (4096, 16)])
def test_canary_is_launched_once_for_each_piece(count: int, programs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over a STAND-IN for triton, which notes how the kernel is launched."""
    stand_in, language = ModuleType("triton"), ModuleType("triton.language")
    stand_in.jit, stand_in.language = (lambda function: function), language  # type: ignore[attr-defined]
    stand_in.cdiv, language.constexpr = (lambda one, other: -(-one // other)), int  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "triton", stand_in)
    monkeypatch.setitem(sys.modules, "triton.language", language)
    monkeypatch.delitem(sys.modules, "trainer.run.gates.canary", raising=False)
    from trainer.run.gates import canary

    launched: list[tuple[object, ...]] = []

    class Kernel:
        def __getitem__(self, grid: tuple[int, ...]) -> object:
            return lambda *values, **options: launched.append((grid, values[2], options["PIECE"]))

    monkeypatch.setattr(canary, "tripled", Kernel())
    canary.launch(torch.zeros(count), torch.zeros(count))
    sys.modules.pop("trainer.run.gates.canary", None)
    assert launched == [((programs,), count, canary.PIECE)]

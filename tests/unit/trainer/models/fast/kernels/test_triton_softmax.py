"""The Triton kernel of the loss: compiled for AMD architectures without a card, and its values by the interpreter.

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

import pytest
import torch

from tests.fixtures.triton_stand_in import Launches, over_stand_in
from tests.left_out import long

ROOT = Path(__file__).parents[6]
FOLDER = os.environ.get("ROCMATRIX_TRITON", str(ROOT / ".rocmatrix" / "ci" / "triton"))
THERE = importlib.util.find_spec("triton") is not None or (Path(FOLDER) / "triton").is_dir()
WHY = "triton is not installed; .ci/kernels does it"
needs_triton = pytest.mark.skipif(not THERE, reason=WHY)

COMPILE = """
import json, re, sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from trainer.models.fast.kernels import triton_softmax as made
types = {"logits": "*bf16", "labels": "*i64", "scales": "*fp32", "losses": "*fp32"}
types |= dict.fromkeys(("stride", "vocabulary", "ignored"), "i32") | {"PIECE": "constexpr"}
found = {}
for arch, lanes in json.loads(sys.argv[1]).items():
    source = ASTSource(fn=made.softmax_rows, signature=types, constexprs={"PIECE": made.PIECE})
    try:
        code = triton.compile(source, target=GPUTarget("hip", arch, lanes), options={"num_warps": made.WARPS}).asm
    except RuntimeError as error:
        found[arch] = str(error).splitlines()[0]
        continue
    spilled = re.search(r"\\.vgpr_spill_count:\\s+(\\d+)", code["amdgcn"])
    found[arch] = {"bytes": len(code["hsaco"]), "spilled": int(spilled.group(1))}
print(json.dumps(found))
"""
CHOSEN = """
import json, torch, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from trainer.models.fast import cross_entropy
from trainer.models.fast.kernels import triton_softmax as made
types = {"logits": "*fp32", "labels": "*i64", "scales": "*fp32", "losses": "*fp32"}
types |= dict.fromkeys(("stride", "vocabulary", "ignored"), "i32") | {"PIECE": "constexpr"}
def launch(*tensors, ignored):  # as on a card of that architecture, where nothing is launched before it is compiled
    source = ASTSource(fn=made.softmax_rows, signature=types, constexprs={"PIECE": made.PIECE})
    triton.compile(source, target=GPUTarget("hip", "gfx900", 64), options={"num_warps": made.WARPS})
    raise SystemExit("it was compiled")
made.launch = launch
known = cross_entropy.candidates()
cross_entropy.candidates = lambda: {name: known[name] for name in ("triton", "plain")}
call = cross_entropy.Call(tokens=32, vocabulary=512, dtype=torch.float32, device=torch.device("cpu"))
head, choice = cross_entropy.choose(call)
print(json.dumps([choice.name, choice.trials[0].name, choice.trials[0].refused, head.softmax.__name__]))
"""
VALUES = """
import torch
from trainer.data.tokens.labels import IGNORED
from trainer.models.fast import cross_entropy
torch.manual_seed(0)
logits, labels, scale = torch.randn(5, 20011) * 4, torch.randint(20011, (5,)), torch.rand(5)
labels[1], labels[2], labels[3] = IGNORED, 0, 20010
exact = cross_entropy.softmax_gradient(logits.double(), labels, scale.double())
found = cross_entropy._triton()(logits.clone(), labels, scale)
print(cross_entropy.relative_error(found, exact), found[0][1].item(), found[1][1].abs().max().item())
"""
LANES = {"gfx906": 64, "gfx90a": 64, "gfx942": 64, "gfx1100": 32, "gfx1151": 32, "gfx1200": 32, "gfx1201": 32}


def run(code, tmp_path, *arguments, **more):
    path = os.pathsep.join(each for each in (FOLDER, str(ROOT)) if each)
    environment = os.environ | {"PYTHONPATH": path, "TRITON_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": "1"} | more
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip().splitlines()[-1]


@needs_triton
@long
def test_kernel_compiles_for_each_architecture_without_spilled_registers(tmp_path):
    found = json.loads(run(COMPILE, tmp_path, json.dumps(LANES)))
    assert found.keys() == LANES.keys()
    assert all(each["bytes"] > 1000 and each["spilled"] == 0 for each in found.values()), found


@needs_triton
def test_kernel_for_gfx1030_is_refused_by_triton_so_that_plain_torch_computes_there(tmp_path):
    """A release of triton that compiles for it fails this test, and moves it to the list above.

    The Triton of the cells for it does (3.7.1: benchmarks/results/kernels.json).
    """
    assert isinstance(json.loads(run(COMPILE, tmp_path, json.dumps({"gfx1030": 32})))["gfx1030"], str)


@needs_triton
def test_loss_is_computed_plainly_where_triton_refuses_the_architecture(tmp_path):
    name, tried, refused, function = json.loads(run(CHOSEN, tmp_path))
    assert (name, function) == ("plain", "softmax_gradient")
    assert tried == "triton"
    assert "PassManager" in refused


@needs_triton
def test_kernel_in_the_interpreter_gives_the_losses_and_gradients_of_fp64(tmp_path):
    error, loss, gradient = map(float, run(VALUES, tmp_path, TRITON_INTERPRET="1").split())
    assert error < 1e-5
    assert loss == gradient == 0.0  # of the token without loss


@pytest.fixture
def kernel(monkeypatch):
    with over_stand_in(monkeypatch, "triton_softmax"):
        from trainer.models.fast.kernels import triton_softmax

        monkeypatch.setattr(triton_softmax, "softmax_rows", Launches())
        yield triton_softmax


def test_launch_runs_one_program_a_row_with_the_rows_own_stride(kernel):
    wide = torch.zeros(6, 40)
    logits, labels, scales, losses = wide[::2, :33], torch.zeros(3).long(), torch.ones(3), torch.zeros(3)
    kernel.launch(logits, labels, scales, losses, ignored=-100)
    ((grid, arguments, options),) = list.__iter__(kernel.softmax_rows)
    assert grid == (3,)
    assert all(given is own for given, own in zip(arguments, (logits, labels, scales, losses), strict=False))
    assert arguments[4:] == (80, 33, -100)  # the stride, the vocabulary, the label without loss
    assert options == {"PIECE": kernel.PIECE, "num_warps": kernel.WARPS}
    assert kernel.PIECE & (kernel.PIECE - 1) == 0  # tl.arange takes powers of two

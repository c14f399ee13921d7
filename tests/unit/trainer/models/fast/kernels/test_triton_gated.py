"""The Triton kernel of gated activations: its values by the interpreter, and how it is launched.

That it compiles for AMD architectures is held by tests/unit/benchmarks/test_kernels.py.
"""

from __future__ import annotations

import pytest
import torch

from tests.fixtures.triton_stand_in import Launches, over_stand_in
from tests.left_out import long
from tests.unit.trainer.models.fast.kernels.test_triton_softmax import needs_triton, run

VALUES = """
import torch
from trainer.models.fast.elementwise import inner_backward
from trainer.models.fast.kernels import triton_gated
from trainer.models.fast.proof import relative_error
torch.manual_seed(0)
triton_gated.PIECE = 16
for kind in triton_gated.KINDS:
    joint, gradient = 3 * torch.randn(5, 2 * 37), torch.randn(5, 37)
    exact = inner_backward(joint.double(), gradient.double(), kind, True)
    triton_gated.backward_over(joint, gradient, kind)
    print(relative_error([joint, gradient], exact), end=" ")
"""


@needs_triton
@long
def test_kernel_in_the_interpreter_gives_gradients_and_value_of_fp64(tmp_path):
    """Columns fill no program."""
    errors = [float(each) for each in run(VALUES, tmp_path, TRITON_INTERPRET="1").split()]
    assert len(errors) == 3 and max(errors) < 1e-6


@pytest.fixture
def kernels(monkeypatch):
    with over_stand_in(monkeypatch, "triton_gated", "triton_gelu"):
        from trainer.models.fast.kernels import triton_gated

        monkeypatch.setattr(triton_gated, "gated_backward", Launches())
        yield triton_gated


@pytest.mark.parametrize(("kind", "number"), [("silu", 0), ("gelu", 1), ("tanh", 2)])
def test_programs_cover_all_rows_and_columns(kernels, kind, number):
    width = kernels.PIECE + 1
    joint, gradient = torch.zeros(3, 2 * width), torch.zeros(3, width)
    kernels.backward_over(joint, gradient, kind)
    ((grid, arguments, options),) = list.__iter__(kernels.gated_backward)
    assert grid == (3, 2)
    assert arguments[0] is joint and arguments[1] is gradient and arguments[2] == width
    assert options["KIND"] == number

"""The Triton kernels of GELU: their values by the interpreter, and how they are launched.

That they compile for AMD architectures is held by tests/unit/benchmarks/test_kernels.py.
"""

from __future__ import annotations

import pytest
import torch

from tests.fixtures.triton_stand_in import Launches, over_stand_in
from tests.left_out import long
from tests.unit.trainer.models.fast.kernels.test_triton_softmax import needs_triton, run

VALUES = """
import torch
from torch.nn import functional
from trainer.models.fast.kernels import triton_gelu
from trainer.models.fast.proof import relative_error
torch.manual_seed(0)
triton_gelu.PIECE, triton_gelu.COLUMNS, triton_gelu.ROWS = 64, 16, 4  # the interpreter takes 25 s for the own sizes
inputs, upstream = 3 * torch.randn(9, 37), torch.randn(9, 37)
for tanh in (False, True):
    exact = inputs.double().requires_grad_()
    outputs = functional.gelu(exact, approximate="tanh" if tanh else "none")
    gradient, = torch.autograd.grad(outputs, exact, upstream.double())
    found = [triton_gelu.forward(inputs, tanh=tanh), *triton_gelu.backward(inputs, upstream, tanh=tanh)]
    print(relative_error(found, [outputs.detach(), outputs.detach(), gradient, gradient.sum(0)]), end=" ")
"""


@needs_triton
@long
def test_kernels_in_the_interpreter_give_gelu_its_gradient_and_the_sum_of_fp64(tmp_path):
    """Rows and columns fill no program."""
    errors = [float(each) for each in run(VALUES, tmp_path, TRITON_INTERPRET="1").split()]
    assert len(errors) == 2 and max(errors) < 1e-6


@pytest.fixture
def kernels(monkeypatch):
    with over_stand_in(monkeypatch, "triton_gelu"):
        from trainer.models.fast.kernels import triton_gelu

        monkeypatch.setattr(triton_gelu, "gelu_forward", Launches())
        monkeypatch.setattr(triton_gelu, "gelu_backward", Launches())
        yield triton_gelu


def test_programs_cover_all_rows_and_columns_and_each_has_a_row_of_sums(kernels):
    inputs = torch.zeros(kernels.ROWS + 1, kernels.COLUMNS + 1)
    kernels.forward(inputs, tanh=True)
    *_, sums = kernels.backward(inputs, torch.ones_like(inputs), tanh=True)
    ((grid, arguments, options),) = list.__iter__(kernels.gelu_forward)
    assert grid[0] * kernels.PIECE >= inputs.numel() == arguments[2] and options["TANH"]
    ((grid, arguments, options),) = list.__iter__(kernels.gelu_backward)
    assert grid == (2, 2)
    assert (arguments[4].shape, arguments[4].dtype, sums.shape) == ((2, inputs.shape[1]), torch.float32, sums.shape)
    assert sums.shape == inputs.shape[1:] and arguments[5:] == inputs.shape and options["TANH"]

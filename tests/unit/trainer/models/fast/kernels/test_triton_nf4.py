"""The Triton kernel of 4-bit weights: its values by the interpreter, and how it is launched.

That it compiles for AMD architectures is held by tests/unit/benchmarks/test_kernels.py.
"""

from __future__ import annotations

import pytest
import torch

from tests.fixtures.triton_stand_in import Launches, over_stand_in
from tests.left_out import long
from tests.unit.trainer.models.fast.kernels.test_triton_softmax import needs_triton, run
from trainer.models.adapters.nf4 import dequantize, quantize

VALUES = """
import torch
from trainer.models.adapters.nf4 import dequantize, quantize
from trainer.models.fast.kernels import triton_nf4
torch.manual_seed(0)
triton_nf4.PIECE = 32
for rows, columns in ((3, 70), (5, 64), (1, 2)):
    packed, scales = quantize(torch.randn(rows, columns) * 10)
    shape = torch.Size((rows, columns))
    cut = (dequantize(packed, scales, shape, torch.float32).view(torch.int32) & -65536).view(torch.float32)
    expected = {torch.bfloat16: cut.bfloat16(), torch.float16: dequantize(packed, scales, shape, torch.float16)}
    for dtype, values in expected.items():
        print(torch.equal(triton_nf4.dequantized(packed, scales, shape, dtype), values), end=" ")
        apart = torch.full((rows, columns + 6), 7.0, dtype=dtype)
        triton_nf4.dequantized(packed, scales, shape, dtype, apart[:, :columns])
        print(torch.equal(apart[:, :columns], values) and bool((apart[:, columns:] == 7).all()), end=" ")
"""


@needs_triton
@long
def test_kernel_in_the_interpreter_gives_the_bits_of_plain_torch(tmp_path):
    """Weights fill no program, and their last block no scale's 64. The interpreter cuts to bf16 where cards round."""
    assert run(VALUES, tmp_path, TRITON_INTERPRET="1").split() == ["True"] * 12


@pytest.fixture
def kernel(monkeypatch):
    with over_stand_in(monkeypatch, "triton_nf4"):
        from trainer.models.fast.kernels import triton_nf4

        monkeypatch.setattr(triton_nf4, "nf4_pairs", Launches())
        yield triton_nf4


@pytest.mark.parametrize(("dtype", "kind"), [(torch.bfloat16, "bf16"), (torch.float16, "fp16")])
def test_programs_cover_all_bytes_and_write_two_values_as_one_number(kernel, dtype, kind):
    packed, scales = quantize(torch.randn(3, 2 * kernel.PIECE))
    found = kernel.dequantized(packed, scales, torch.Size((3, 2 * kernel.PIECE)), dtype)
    ((grid, arguments, options),) = list.__iter__(kernel.nf4_pairs)
    assert (found.shape, found.dtype) == ((3, 2 * kernel.PIECE), dtype)
    assert grid == (3,) and arguments[0] is packed and arguments[1] is scales
    assert (arguments[3].dtype, arguments[3].numel(), arguments[4]) == (torch.int32, len(packed), len(packed))
    assert arguments[3].data_ptr() == found.data_ptr()
    where = {"WIDTH": kernel.PIECE, "ROW": kernel.PIECE}
    assert options == where | {"BYTES": 32, "PIECE": kernel.PIECE, "KIND": kind, "num_warps": kernel.WARPS}


def test_rows_that_lie_apart_are_written_where_they_are(kernel):
    packed, scales = quantize(torch.randn(3, 64))
    made = torch.zeros(3, 80, dtype=torch.bfloat16)
    kernel.dequantized(packed, scales, torch.Size((3, 64)), torch.bfloat16, made[:, :64])
    ((_, arguments, options),) = list.__iter__(kernel.nf4_pairs)
    assert arguments[3].data_ptr() == made.data_ptr() and arguments[3].shape == (3, 32)
    assert (options["WIDTH"], options["ROW"]) == (32, 40)


@pytest.mark.parametrize(("whole", "part"), [((3, 65), slice(0, 64)), ((3, 66), slice(1, 65)), ((64, 3), None)])
def test_results_that_no_pair_can_be_written_to_are_dequantised_by_plain_torch(kernel, whole, part):
    packed, scales = quantize(torch.randn(3, 64))
    made = torch.zeros(whole, dtype=torch.bfloat16)
    out = made.t() if part is None else made[:, part]
    kernel.dequantized(packed, scales, torch.Size((3, 64)), torch.bfloat16, out)
    assert torch.equal(out, dequantize(packed, scales, torch.Size((3, 64)), torch.bfloat16))
    assert not kernel.nf4_pairs


@pytest.mark.parametrize(("shape", "dtype"), [((3, 5), torch.bfloat16), ((4, 5), torch.float32)])
def test_odd_numbers_and_wide_values_are_dequantised_by_plain_torch(kernel, shape, dtype):
    packed, scales = quantize(torch.randn(shape))
    found = kernel.dequantized(packed, scales, torch.Size(shape), dtype)
    assert torch.equal(found, dequantize(packed, scales, torch.Size(shape), dtype))
    assert not kernel.nf4_pairs

"""Kernel libraries and recorded sizes: what is required where, and no raise without its reason."""

import re

import pytest
from pydantic import ValidationError

from rocmatrix.matrix.kernel_library import LIMIT, Baseline, KernelLibrary
from tests.fixtures.cells import GFX906, GFX1100, MATRIX

FIRST = {"bytes": 1000, "date": "2026-11-21", "of": "a test"}


def test_rocm_cells_need_torch_and_rocblas_at_least():
    for cell in MATRIX.cells:
        names = [library.library for library in MATRIX.kernel_libraries_of(cell)]
        assert names == [] if cell.architecture is None else {"torch", "rocBLAS"} <= set(names), cell.name


def test_bundled_cells_are_pruned_and_others_choose_at_install_time():
    rocm = [cell for cell in MATRIX.cells if cell.architecture]
    assert {cell.release.device_code.layout == "bundled" for cell in rocm if cell.prune} == {True}
    assert all(cell.one_architecture for cell in rocm)


def test_hipblaslt_is_not_required_on_cards_that_it_was_not_built_for():
    assert "hipBLASLt" not in [library.library for library in MATRIX.kernel_libraries_of(GFX906)]


@pytest.mark.parametrize(
    ("path", "library"),
    [
        ("/opt/venv/lib/python3.12/site-packages/torch/lib/libtorch_hip.so", "torch"),
        ("/x/site-packages/torch/.kpack/torch_gfx1100.kpack", "torch"),
        ("/x/torch/lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat", "rocBLAS"),
        ("/usr/lib/x86_64-linux-gnu/rocblas/5/library/Kernels.so-000-gfx1100.hsaco", "rocBLAS"),
        ("/usr/lib/x86_64-linux-gnu/rocblas/0.1.50501/library/TensileLibrary_gfx1100.co", "rocBLAS"),
        ("/x/_rocm_sdk_libraries/.kpack/blas_lib_gfx1100.kpack", "rocBLAS"),
        ("/x/torch/lib/hipblaslt/library/extop_gfx1100.co", "hipBLASLt"),
        ("/x/torch/lib/aotriton.images/amd-gfx11xx/flash/attn_fwd/a.aks2", "AOTriton"),
        ("/x/torch/share/miopen/db/gfx1100.kdb", "MIOpen"),
        ("/x/torch/lib/librocblas.so", None),
        ("/x/torch/lib/libtorch_cpu.so", None),
    ],
)
def test_path_belongs_to_its_library(path, library):
    assert next((one.library for one in MATRIX.kernels if one.holds(path)), None) == library


def test_index_is_looked_for_by_architecture():
    rocblas = next(library for library in MATRIX.kernels if library.library == "rocBLAS")
    assert rocblas.index_of(GFX1100.architecture).search("/x/rocblas/library/TensileLibrary_lazy_gfx1100.dat")
    assert not rocblas.index_of("gfx110").search("/x/rocblas/library/TensileLibrary_lazy_gfx1100.dat")


def test_text_that_is_no_regular_expression_is_refused():
    with pytest.raises(ValidationError, match="not a regular expression"):
        KernelLibrary.model_validate(MATRIX.kernels[0].model_dump() | {"files": "("})


def test_size_that_goes_up_needs_a_reason():
    grown = FIRST | {"bytes": 1001}
    with pytest.raises(ValidationError, match="from 1000 to 1001 bytes with no `reason`"):
        Baseline.model_validate({"cell": "x", "sizes": [FIRST, grown]})
    raised = Baseline.model_validate({"cell": "x", "sizes": [FIRST, grown | {"reason": "torch grew"}]})
    assert raised.most == int(1001 * LIMIT)
    assert Baseline.model_validate({"cell": "x", "sizes": [FIRST, FIRST | {"bytes": 999}]}).newest.bytes == 999


def test_wider_limit_needs_a_reason():
    with pytest.raises(ValidationError, match="needs a `limit_reason`"):
        Baseline.model_validate({"cell": "x", "sizes": [FIRST], "limit": 1.2})
    wide = {"cell": "x", "sizes": [FIRST], "limit": 1.2, "limit_reason": "measured on two engines"}
    assert Baseline.model_validate(wide).most == 1200


def test_patterns_of_the_shipped_file_match_something_that_is_tested_here():
    assert all(re.compile(library.files) for library in MATRIX.kernels)
    assert len(MATRIX.kernels) >= 5

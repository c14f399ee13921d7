from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from trainer.diagnostics.probes import placement, runner
from trainer.diagnostics.probes.c_api import trial
from trainer.diagnostics.probes.c_api.trial import Findings
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.single import blas
from trainer.diagnostics.probes.verdict import Check, Device, Verdict

WRONG_GEMM = """
    import sys, torch
    from trainer.diagnostics.probes.single import blas
    from trainer.diagnostics.probes import entry

    def multiply(a, b, out):
        torch.matmul(a[..., :-1], b[..., :-1, :], out=out)  # the last term of each sum is lost

    blas.multiply = multiply
    sys.exit(entry.main("blas", blas.measure))
"""
CARD = Device(kind="rocm", name="AMD Radeon RX 7900 XT", arch="gfx1100")
CPU = Device(kind="cpu", name="a CPU", arch="x86_64")
GROUPS = list(dict.fromkeys(f"CPU {case.group}" for case in blas.cases()))
LOADED = Check(name="load libamdhip64", status="pass")


def failed(verdict: Verdict) -> list[str]:
    return [check.name for check in verdict.checks if check.status == "fail"]


def lose_a_term(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    torch.matmul(a[..., :-1], b[..., :-1, :], out=out)


def forget_a_row(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    out[..., :-1, :].copy_((a @ b)[..., :-1, :])


def return_zeros(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    out.zero_()


def write_nothing(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    pass


def ignore_the_layout(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    left = a.mT.contiguous().view(a.shape) if not a.is_contiguous() else a
    torch.matmul(left, b, out=out)


def use_tf32(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    """Round fp32 inputs to the ten bits of mantissa that tf32 keeps."""
    if out.dtype == torch.float32:
        a, b = ((m.contiguous().view(torch.int32) & ~0x1FFF).view(torch.float32) for m in (a, b))
    torch.matmul(a, b, out=out)


def test_cpu_passes_and_reports_that_no_card_was_tried() -> None:
    verdict = blas.measure(Request(expect="cpu"))
    assert verdict.status == "pass", verdict.summary
    assert "no card was tried" in verdict.summary
    skipped = {check.name: check.detail for check in verdict.checks if check.status == "not-applicable"}
    assert set(skipped) == {"GPU BLAS back ends", "C interface"}
    assert len(verdict.checks) == len(GROUPS) + 1 + len(skipped)


@pytest.mark.parametrize("fault", [lose_a_term, forget_a_row, return_zeros, write_nothing])
def test_dtypes_and_layouts_all_see_a_fault(monkeypatch: pytest.MonkeyPatch, fault: Callable[..., None]) -> None:
    monkeypatch.setattr(blas, "multiply", fault)
    names = failed(blas.measure(Request(expect="cpu")))
    assert set(GROUPS) <= set(names)


def test_dtypes_are_tried_in_every_layout_alone_and_batched() -> None:
    assert len(GROUPS) == len(blas.LIMITS) * len(blas.LAYOUTS) * 2
    assert sum(name.endswith("batched") for name in GROUPS) == len(GROUPS) / 2


def test_unwritten_elements_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "multiply", forget_a_row)
    verdict = blas.measure(Request(expect="cpu"))
    (holes,) = [check for check in verdict.checks if check.name == "CPU unwritten or not finite"]
    per_layout = sum(n for _, n, _ in blas.SHAPES) + sum(batch * n for batch, _, n, _ in blas.BATCHED)
    assert holes.measured == per_layout * len(blas.LAYOUTS) * len(blas.LIMITS)


def test_fault_in_one_layout_is_seen_there_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "multiply", ignore_the_layout)
    assert failed(blas.measure(Request(expect="cpu"))) == [name for name in GROUPS if " T" in name]


def test_tf32_in_place_of_fp32_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "multiply", use_tf32)
    assert failed(blas.measure(Request(expect="cpu"))) == [name for name in GROUPS if "float32" in name]


def test_wrong_product_fails_through_the_runner(make_probe: Any) -> None:
    verdict = runner.run(make_probe(WRONG_GEMM, name="blas"), "cpu")
    assert verdict.status == "fail"
    assert "CPU float32 NN" in verdict.summary


def test_layout_changes_the_memory_and_not_the_matrix() -> None:
    matrix = torch.arange(6.0).view(2, 3)
    for letter, strides in (("N", (3, 1)), ("T", (1, 2))):
        assert torch.equal(blas.stored(matrix, letter), matrix)
        assert blas.stored(matrix, letter).stride() == strides


def test_back_ends_are_both_measured_on_a_card(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[str] = []
    monkeypatch.setattr(blas, "select_back_end", chosen.append)
    monkeypatch.setattr(blas, "multiply_case", lambda case, *_: blas.Result(case=case, error=0.0, not_finite=0))
    checks, results = blas.torch_products(CARD, seed=1)
    assert chosen == ["cublas", "cublaslt"]
    assert len(results) == 2 * len(blas.cases())
    assert {check.name.split()[0] for check in checks} == {"hipBLAS", "hipBLASLt"}


@pytest.mark.parametrize(("error", "status"), [(0.0, "pass"), (0.5, "fail")])
def test_torch_without_a_choice_is_judged_by_its_own_and_not_by_the_c_interface_alone(
    error: float, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blas, "select_back_end", lambda name: "torch has none")
    monkeypatch.setattr(blas, "speed_numbers", lambda device: [])
    monkeypatch.setattr(blas, "multiply_case", lambda case, *_: blas.Result(case=case, error=error, not_finite=0))
    verdict = blas.with_torch(CARD, Findings(checks=(LOADED,), versions={}))
    assert verdict.status == status
    assert "torch's own choice float32 NN" in {check.name for check in verdict.checks}


def test_c_interface_that_misses_torchs_card_contradicts_it() -> None:
    blind = Findings(checks=(LOADED,), versions={}, no_device="hipGetDeviceCount counts 0 devices")
    assert [check.status for check in blas.c_checks(blind, CARD)] == ["pass", "fail"]
    assert [check.status for check in blas.c_checks(blind, CPU)] == ["pass", "not-applicable"]


def without_torch(monkeypatch: pytest.MonkeyPatch, found: Findings) -> None:
    monkeypatch.setattr(placement, "has_torch", lambda: False)
    monkeypatch.setattr(trial, "try_in_child", lambda kind, seconds: found)


def test_libraries_without_torch_and_without_a_card_are_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Findings(checks=(LOADED,), versions={"librocblas": "5.2.0"}, no_device="hipGetDeviceCount returned 100")
    without_torch(monkeypatch, found)
    for expect in ("any", "rocm"):
        verdict = blas.measure(Request(expect=expect))
        assert (verdict.status, verdict.versions) == ("no-device", {"librocblas": "5.2.0"})
        assert "hipGetDeviceCount returned 100" in verdict.summary


def test_broken_library_outweighs_the_missing_card(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Check(name="load libhipblas", status="fail", detail="undefined symbol")
    without_torch(monkeypatch, Findings(checks=(LOADED, broken), versions={}, no_device="none"))
    verdict = blas.measure(Request())
    assert (verdict.status, "undefined symbol" in verdict.summary) == ("fail", True)


def test_working_c_interface_without_torch_passes_and_reports_it(monkeypatch: pytest.MonkeyPatch) -> None:
    without_torch(monkeypatch, Findings(checks=(LOADED, Check(name="hipblasSgemm", status="pass")), versions={}))
    verdict = blas.measure(Request(expect="rocm"))
    assert verdict.status == "pass"
    assert "torch is not installed" in verdict.summary
    assert verdict.device
    assert verdict.device.kind == "rocm"


def test_absence_of_torch_and_a_c_interface_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    without_torch(monkeypatch, Findings(checks=(Check(name="load libamdhip64", status="fail"),), versions={}))
    verdict = blas.measure(Request())
    assert (verdict.status, verdict.device) == ("fail", None)
    with pytest.raises(ModuleNotFoundError):
        blas.measure(Request(expect="cpu"))


def test_nan_is_the_worst_case_of_a_group() -> None:
    cases = blas.cases()[:3]
    results = [blas.Result(case=c, error=e, not_finite=0) for c, e in zip(cases, (0.5, math.nan, 1.0), strict=True)]
    assert blas.worst_case(results) == f"worst: {cases[1]}"


@pytest.mark.parametrize(("dtype", "limit"), [("float32", 1e-5), ("float16", 2e-3), ("bfloat16", 1e-2)])
@pytest.mark.parametrize(("share", "status"), [(0.99, "pass"), (1.01, "fail"), (math.nan, "fail")])
def test_limit_of_a_product_is_where_it_is_stated(dtype: str, limit: float, share: float, status: str) -> None:
    case = blas.Case(dtype=dtype, layout="NN", shape=blas.SHAPES[0])
    results = [blas.Result(case=case, error=error, not_finite=0) for error in (0.0, share * limit, 0.0)]
    assert [check.status for check in blas.judge_results("CPU", results)] == [status, "pass"]

from __future__ import annotations

from typing import Any

import pytest
import torch

from trainer.diagnostics.probes import runner
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.single import attention
from trainer.diagnostics.probes.verdict import Verdict

WRONG_GRADIENT = """
    import sys, torch
    from trainer.diagnostics.probes.single import attention
    from trainer.diagnostics.probes import entry
    honest = attention.attend

    class Halved(torch.autograd.Function):
        @staticmethod
        def forward(ctx, tensor):
            return tensor.clone()

        @staticmethod
        def backward(ctx, gradient):
            return gradient / 2

    attention.attend = lambda kernel, q, k, v, case: honest(kernel, q, Halved.apply(k), v, case)
    sys.exit(entry.main("attention", attention.measure))
"""


def failed(verdict: Verdict) -> list[str]:
    return [check.name for check in verdict.checks if check.status == "fail"]


def test_cpu_passes_with_the_kernels_it_has() -> None:
    verdict = attention.measure(Request(expect="cpu"))
    assert verdict.status == "pass", failed(verdict)
    assert "no card was tried" in verdict.summary
    passed = {check.name.split()[0] for check in verdict.checks if check.status == "pass"}
    assert "math" in passed
    for check in verdict.checks:
        assert check.status == "pass" or check.detail.startswith("refused: ")
    masks = {check.name.split()[2] for check in verdict.checks}
    assert masks == set(attention.MASKS)


def test_wrong_gradient_behind_a_right_output_fails_through_the_runner(make_probe: Any) -> None:
    verdict = runner.run(make_probe(WRONG_GRADIENT, name="attention"), "cpu")
    assert verdict.status == "fail"
    assert failed(verdict)
    assert all(name.endswith("key gradient") for name in failed(verdict))


@pytest.mark.parametrize("wrong", ["mask", "nan", "refusal"])
def test_faults_of_the_math_kernel_are_seen(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    honest = attention.attend

    def attend(kernel: str, q: Any, k: Any, v: Any, case: attention.Case) -> torch.Tensor:
        if wrong == "refusal":
            raise RuntimeError("No available kernel. Aborting execution.")
        if wrong == "mask":
            return honest(kernel, q, k, v, attention.Case(dtype=case.dtype, mask="plain", shape=case.shape))
        return honest(kernel, q, k, v, case) + torch.tensor(float("nan")) * (case.mask == "padded")

    monkeypatch.setattr(attention, "attend", attend)
    monkeypatch.setattr(attention, "KERNELS", {"math": "MATH"})
    names = failed(attention.measure(Request(expect="cpu")))
    expected = {"mask": {"causal", "padded"}, "nan": {"plain", "causal", "padded"}, "refusal": set(attention.MASKS)}
    assert {name.split()[2] for name in names} == expected[wrong]


def test_error_that_is_no_refusal_is_not_taken_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: Any) -> torch.Tensor:
        raise RuntimeError("HIP error: the device is gone (injected)")

    monkeypatch.setattr(attention, "attend", gone)
    with pytest.raises(RuntimeError, match="gone"):
        attention.measure(Request(expect="cpu"))


@pytest.mark.parametrize(("dtype", "limit"), [("float32", 1e-4), ("float16", 5e-3), ("bfloat16", 3e-2)])
@pytest.mark.parametrize("place", range(len(attention.PARTS)))
@pytest.mark.parametrize(("share", "status"), [(0.99, "pass"), (1.01, "fail"), (float("nan"), "fail")])
def test_limit_of_attention_is_where_it_is_stated(
    dtype: str, limit: float, place: int, share: float, status: str
) -> None:
    case = attention.Case(dtype=dtype, mask="plain", shape=attention.SHAPES[0])
    errors = tuple(share * limit if part == place else 0.0 for part in range(len(attention.PARTS)))
    sound = attention.Result(case=case, errors=(0.0,) * len(attention.PARTS), not_finite=0)
    expected = ["pass"] * (len(attention.PARTS) + 1)
    expected[place] = status
    ran = [sound, attention.Result(case=case, errors=errors, not_finite=0)]
    assert [check.status for check in attention.judge("math", ran, attention.LIMITS[dtype])] == expected

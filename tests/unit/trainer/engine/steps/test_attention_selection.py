"""The kernels that this CPU's torch has, and kernels made wrong on purpose."""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from trainer.device.precision import Precision
from trainer.distributed.collectives import Ranks
from trainer.engine.steps import attention_selection as attention
from trainer.engine.steps.attention_selection import (
    KERNELS,
    LIMITS,
    Finding,
    Shape,
    attend,
    choose_attention,
    choose_from,
    compare,
    draw,
    examine,
    worst,
)
from trainer.models.build import build
from trainer.models.kernels import BACKENDS
from trainer.models.transformer import Attention
from trainer.runtime.errors import TrainerError
from trainer.tasks.row_task import attention_of

SMALL = Shape(batch=1, heads=2, length=33, width=16)


@pytest.mark.parametrize("dtype", LIMITS)
def test_math_is_right_on_the_cpu_in_every_format(dtype: torch.dtype) -> None:
    found = examine("math", device="cpu", dtype=dtype, shape=SMALL, seed=0)
    assert found.refused == ""
    assert 0 <= found.error <= LIMITS[dtype]
    assert 0 < found.seconds < math.inf


def test_auto_takes_the_first_that_is_right_and_names_all() -> None:
    chosen = choose_attention("auto", device="cpu", dtype=torch.float32, shape=SMALL)
    usable = [finding.kernel for finding in chosen.findings if not finding.refused]
    assert chosen.kernel == usable[0] == "flash"
    assert all(name in chosen.reason for name in KERNELS)


class WrongGradient(torch.autograd.Function):
    """Passes values on; the gradient is 1 % too large."""

    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:
        return gradient * 1.01


def causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return scaled_dot_product_attention(q, k, v, is_causal=True)


@pytest.mark.parametrize(
    ("wrong", "least"),
    [
        (lambda q, k, v: causal(WrongGradient.apply(q), k, v), 0.009),
        (lambda q, k, v: causal(q, k, WrongGradient.apply(v)), 0.009),
        (scaled_dot_product_attention, 0.1),  # forgot the mask
        (lambda q, k, v: scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.2), 0.01),
        (lambda q, k, v: causal(q, k, v) * torch.where(torch.arange(16) == 3, math.nan, 1.0), math.inf),
    ],
)
def test_wrong_kernel_shows(wrong: Callable[[Tensor, Tensor, Tensor], Tensor], least: float) -> None:
    inputs = draw(SMALL, device="cpu", dtype=torch.float32, seed=0)
    assert compare(causal, inputs, causal=True) < 1e-5
    assert compare(wrong, inputs, causal=True) >= least


def test_kernel_that_is_wrong_on_this_card_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "compare", lambda kernel, inputs, causal: 0.5)
    with pytest.raises(TrainerError, match="RM566") as caught:
        choose_attention("auto", device="cpu", dtype=torch.float32, shape=SMALL)
    assert "error 5.0e-01 against fp64, allowed is 1e-04" in caught.value.what
    assert caught.value.next.startswith("Use --precision fp32")


def test_times_are_reported_and_do_not_decide() -> None:
    findings = [
        Finding(kernel="flash", error=0.5, seconds=1e-6, refused="wrong"),
        Finding(kernel="efficient", error=1e-7, seconds=2e-3),
        Finding(kernel="math", error=1e-7, seconds=1e-3),
    ]
    chosen = choose_from(findings, where="here")
    assert chosen.kernel == "efficient"
    assert "flash is not used: wrong" in chosen.reason
    assert chosen.reason.endswith("math was 2.0 times as fast in this trial, --attention math takes it")


def test_kernel_that_refuses_reports_why() -> None:
    found = examine("efficient", device="cpu", dtype=torch.float32, shape=SMALL, seed=0)
    assert found.refused  # torch has no such kernel for the CPU
    assert "turning off" not in found.refused
    with pytest.raises(TrainerError, match="RM566") as caught:
        choose_attention("efficient", device="cpu", dtype=torch.float32, shape=SMALL)
    assert caught.value.next == "Use --attention auto, which takes the first kernel that is right."


NETWORK = {"kind": "transformer", "widths": [4, 8, 8, 1], "token_width": 8, "heads": 2}


def settle(
    requested: str = "auto", before: str | None = None, name: str = "fp32", **more: Any
) -> tuple[nn.Module, Any]:
    model, precision = build(NETWORK), Precision(name=name, reason="test", device_type="cpu")
    chosen = attend(
        model,
        attention_of(NETWORK),
        requested,
        rows=16,
        device="cpu",
        precision=precision,
        ranks=Ranks(),
        before=before,
        **more,
    )
    return model, chosen


def used(model: nn.Module) -> set[str | None]:
    return {each.kernel for each in model.modules() if isinstance(each, Attention)}


def make_flash_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """An INJECTED fault: where flash alone is allowed, the gradient of the queries is 1 % too large."""

    def kernel(q: Tensor, k: Tensor, v: Tensor, **more: Any) -> Tensor:
        alone = torch.backends.cuda.flash_sdp_enabled() and not torch.backends.cuda.math_sdp_enabled()
        return scaled_dot_product_attention(WrongGradient.apply(q) if alone else q, k, v, **more)

    monkeypatch.setattr(attention, "scaled_dot_product_attention", kernel)


def test_command_line_offers_what_there_is() -> None:
    assert set(KERNELS) == set(BACKENDS)


def test_layers_all_use_the_kernel_and_it_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    model, chosen = settle()
    assert used(model) == {"flash"}
    assert chosen.reason.startswith("the first that is right: flash errs by")
    captured = capsys.readouterr()
    event = json.loads(captured.out)
    assert (event["event"], event["kernel"]) == ("attention", "flash")
    assert [each["kernel"] for each in event["findings"]] == list(KERNELS)
    assert "attention flash: the first that is right" in captured.err
    assert "RM558" not in captured.err  # efficient is not there on a CPU; that is no fault
    assert settle("math")[1].reason.startswith("asked for: math")


def test_kernel_is_tried_in_the_runs_own_shape_and_format(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def look(name: str, *, device: str, dtype: torch.dtype, shape: Shape, seed: int) -> Finding:
        seen.append((dtype, shape))
        return Finding(kernel=name, error=0.0, seconds=1.0)

    monkeypatch.setattr(attention, "examine", look)
    settle(name="bf16")
    assert set(seen) == {(torch.bfloat16, Shape(batch=16, heads=2, length=5, width=4, causal=False))}


def test_wrong_kernel_is_refused_loudly_and_the_next_is_used(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_flash_wrong(monkeypatch)
    model, chosen = settle()
    assert used(model) == {"math"}
    assert [each.wrong for each in chosen.findings] == [True, False, False]
    captured = capsys.readouterr()
    assert "RM558 attention kernel flash is wrong on cpu and not used: error" in captured.err
    assert '"attention_wrong", "code": "RM558", "kernel": "flash"' in captured.out
    with pytest.raises(TrainerError, match="RM566"):
        settle("flash")


@pytest.mark.parametrize("name", ["fp64", "bf16"])
def test_injected_fault_shows_in_other_formats_or_is_below_their_rounding(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    make_flash_wrong(monkeypatch)
    assert used(settle(name=name)[0]) == ({"math"} if name == "fp64" else {"flash"})  # 1 % is within bf16's 3 %


def test_resumed_run_keeps_its_kernel_while_that_is_right(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert used(settle(before="math")[0]) == {"math"}
    assert "bit-identical" not in capsys.readouterr().err
    make_flash_wrong(monkeypatch)
    assert used(settle(before="flash")[0]) == {"math"}
    assert (
        "results will not be bit-identical to the original run: attention flash is now math" in capsys.readouterr().err
    )


def test_kernel_wrong_on_one_rank_is_used_on_no_rank() -> None:
    class Two(Ranks):
        def gather(self, value: list[Finding]) -> list[Any]:
            other = [Finding(kernel="flash", error=0.5, seconds=1e-9, refused="error", wrong=True), *value[1:]]
            return [value, other]

    chosen = choose_attention("auto", device="cpu", dtype=torch.float32, shape=SMALL, ranks=Two())
    assert chosen.kernel == "math"
    slow, quick = (Finding(kernel="math", error=0.0, seconds=seconds) for seconds in (2.0, 1.0))
    assert worst([quick, slow]) == slow


def test_torch_without_the_choice_is_a_reported_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(TrainerError, match="RM562") as caught:
        settle()
    assert "torch 2.3 or later" in caught.value.what


def test_network_without_attention_has_no_kernel() -> None:
    precision = Precision(name="fp32", reason="test", device_type="cpu")
    found = attend(nn.Linear(2, 1), None, rows=1, device="cpu", precision=precision, ranks=Ranks())
    assert found is None

"""Choosing a number format. No card is here: the CPU stands in for one where an architecture is pretended."""

from __future__ import annotations

import pytest
import torch

from tests.fixtures.training import training, weights
from trainer.device import precision
from trainer.device.accelerator import Accelerator, choose
from trainer.device.precision import BEST, Precision, candidate, choose_precision, self_test
from trainer.runtime.errors import TrainerError

CPU = torch.device("cpu")


def card(arch: str, kind: str = "rocm") -> Accelerator:
    """A card by name; its arithmetic is the CPU's."""
    return Accelerator(device="cpu", kind=kind, name="pretended", arch=arch, memory_bytes=1)


@pytest.mark.parametrize("name", ["fp64", "fp32", "bf16", "fp16"])
def test_self_test_passes_where_the_arithmetic_is_right(name: str) -> None:
    fault, seconds = self_test(name, CPU)
    assert fault is None
    assert seconds < 5  # milliseconds on an idle machine


@pytest.mark.parametrize("name", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("wrong", [1.1, float("nan"), 0.0])
def test_self_test_fails_where_it_is_wrong(name: str, wrong: float, monkeypatch: pytest.MonkeyPatch) -> None:
    softmax = torch.softmax
    monkeypatch.setattr(precision.torch, "softmax", lambda values, dim: softmax(values, dim=dim) * wrong)
    monkeypatch.setattr(precision, "_reference", lambda left, right: EXPECTED)
    fault, _ = self_test(name, CPU)
    assert fault is not None
    assert "softmax" in fault


EXPECTED = precision._reference(*precision._operands())


@pytest.mark.parametrize("name", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("place", range(3))
def test_self_test_fails_on_one_zero_in_two_thousand_elements(
    name: str, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = precision._sample

    def zeroed(*given: object) -> tuple[torch.Tensor, ...]:
        found = sample(*given)  # type: ignore[arg-type]
        found[place].view(-1)[::2000] = 0
        return found

    monkeypatch.setattr(precision, "_sample", zeroed)
    monkeypatch.setattr(precision, "_reference", lambda left, right: EXPECTED)
    fault, _ = self_test(name, CPU)
    assert fault is not None
    assert f"its {('product', 'softmax', 'gradient')[place]} is off" in fault


def test_product_that_is_silently_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """As reported for gfx1201 (ROCm/rocm-libraries#5706): a tile of the result is not computed."""
    sample = precision._sample

    def broken(*arguments: object) -> tuple[torch.Tensor, ...]:
        product, *rest = sample(*arguments)  # type: ignore[arg-type]
        product[:16, :16] = 0
        return product, *rest

    monkeypatch.setattr(precision, "_sample", broken)
    monkeypatch.setattr(precision, "_reference", lambda left, right: EXPECTED)
    chosen = choose_precision("auto", card("gfx1201"))
    assert chosen.name == "fp32"
    assert "gfx1201 should do bf16 (WMMA in bf16), but its product is off by" in chosen.reason
    with pytest.raises(TrainerError, match="RM522") as caught:
        choose_precision("bf16", card("gfx1201"))
    assert "its product is off" in caught.value.why


@pytest.mark.parametrize(
    ("arch", "name"), [("gfx906", "fp16"), ("gfx1030", "fp16"), ("gfx90a", "bf16"), ("gfx1100", "bf16")]
)
def test_auto_goes_by_the_architecture(arch: str, name: str) -> None:
    chosen = choose_precision("auto", card(arch))
    assert chosen.name == name
    assert f"auto: {arch}: " in chosen.reason
    assert "self-test passed" in chosen.reason


def test_gfx906_gets_no_bf16_whatever_its_compute_capability() -> None:
    """HIP reports 9.0 for it, as for a card that has bf16."""
    assert BEST["gfx906"][0] == "fp16"
    assert all(BEST[arch][0] != "bf16" for arch in ("gfx900", "gfx906", "gfx1010", "gfx1030"))


def test_unknown_architecture_gets_no_guess() -> None:
    chosen = choose_precision("auto", card("gfx9999"))
    assert chosen.name == "fp32"
    assert "nothing is known" in chosen.reason


def test_auto_on_a_cpu_is_fp32() -> None:
    assert choose_precision("auto", card("x86_64 AVX2", "cpu")).name == "fp32"


def test_device_that_does_not_compute_the_format_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> None:
        raise RuntimeError("HIP error: invalid device function\nmore")

    monkeypatch.setattr(precision, "_sample", broken)
    monkeypatch.setattr(precision, "_reference", lambda left, right: EXPECTED)
    assert choose_precision("auto", card("gfx1100")).reason.endswith("HIP error: invalid device function")


@pytest.mark.parametrize(("name", "scales"), [("fp64", False), ("fp32", False), ("bf16", False), ("fp16", True)])
def test_loss_is_scaled_in_fp16_only(name: str, scales: bool) -> None:
    made = Precision(name=name, reason="", device_type="cpu")
    assert (made.scaler() is not None) == scales
    assert made.weights == (torch.float64 if name == "fp64" else torch.float32)


def test_overflows_are_skipped_and_counted() -> None:
    run = training("fp16")
    run.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**26)  # above what fp16 holds: the first steps overflow
    before = {name: value.clone() for name, value in run.model.named_parameters()}
    seen: list[float] = []
    run.optimizer.register_step_post_hook(lambda *skipped: seen.append(1.0))
    weights(run)
    assert run.state.skipped > 0
    assert len(seen) == 21 - run.state.skipped
    assert run.state.history[-1].skipped == run.state.skipped
    assert any(not torch.equal(before[name], value) for name, value in run.model.named_parameters())


@pytest.mark.parametrize(("requested", "name"), [("bf16", "bf16"), ("auto", "fp32")])
def test_candidate_of_a_cpu_is_what_was_requested_or_fp32(requested: str, name: str) -> None:
    assert candidate(requested, choose("cpu")) == name


def test_fault_found_in_a_child_process_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainer.device.precision.self_test", None)
    card = Accelerator(device="cuda:0", kind="rocm", name="SIMULATED", arch="gfx1100", memory_bytes=2**34)
    found = choose_precision("auto", card, fault="the process died of SIGSEGV")
    assert found.name == "fp32"
    assert "SIGSEGV" in found.reason
    with pytest.raises(TrainerError, match="RM522") as caught:
        choose_precision("bf16", card, fault="the process died of SIGSEGV")
    assert "SIGSEGV" in caught.value.why

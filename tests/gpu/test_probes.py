"""The smoke probes on real cards. Each runs as a user runs it: in a process of its own, with the card expected."""

from __future__ import annotations

import pytest

from trainer.probes import placement, registry, runner
from trainer.probes.verdict import Verdict

ONE_CARD = ("device", "blas", "amp")


def smoke(name: str, cards: int) -> Verdict:
    """Run a probe with this torch's kind of card expected; skip where fewer than `cards` are here."""
    if not placement.has_torch():
        pytest.skip("torch is not installed")
    kind = placement.build_kind()
    if kind == "cpu":
        pytest.skip("this torch is built for the CPU")
    if (here := placement.card_count()) < cards:
        pytest.skip(f"{cards} {kind} card(s) needed, {here} here")
    return runner.run(runner.select([name])[0], kind)


def explain(verdict: Verdict) -> str:
    failed = [check for check in verdict.checks if check.status == "fail"]
    return "\n".join([verdict.summary, *map(str, failed), verdict.stderr_tail])


@pytest.mark.gpu
@pytest.mark.parametrize("name", ONE_CARD)
def test_a_probe_passes_on_the_card(name: str) -> None:
    verdict = smoke(name, cards=1)
    assert verdict.status == "pass", explain(verdict)
    assert verdict.device
    assert verdict.device.kind == placement.build_kind()


@pytest.mark.gpu
def test_both_back_ends_and_the_c_interface_were_tried() -> None:
    verdict = smoke("blas", cards=1)
    passed = {check.name.split()[0] for check in verdict.checks if check.status == "pass"}
    expected = (
        {"hipBLAS", "hipblasSgemm"} if placement.build_kind() == "rocm" else {"cuBLAS", "cuBLASLt", "cublasSgemm_v2"}
    )
    assert expected <= passed, explain(verdict)


@pytest.mark.gpu
def test_one_card_does_not_pass_for_two() -> None:
    verdict = smoke("two_gpu_step", cards=1)
    if placement.card_count() > 1:
        pytest.skip("more than one card is here")
    assert verdict.status == "fail"
    assert [check.name for check in verdict.checks if check.status == "fail"] == ["two cards"]


@pytest.mark.two_gpu
def test_two_cards_step_like_one_process() -> None:
    verdict = smoke("two_gpu_step", cards=2)
    assert verdict.status == "pass", explain(verdict)
    assert verdict.device
    assert verdict.device.kind == placement.build_kind()


def test_every_registered_probe_is_tried_on_cards() -> None:
    assert {probe.name for probe in registry.PROBES} == {*ONE_CARD, "two_gpu_step"}

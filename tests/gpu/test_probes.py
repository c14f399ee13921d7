"""The smoke probes on real cards. Each runs as a user runs it: in a process of its own, with the card expected."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from trainer.probes import placement, registry, runner
from trainer.probes.registry import Probe
from trainer.probes.verdict import Verdict

ONE_CARD = tuple(probe.name for probe in registry.PROBES if probe.cards == 1)
TWO_CARDS = tuple(probe.name for probe in registry.PROBES if probe.cards == 2)
SHORT = {"thermal": 40.0}  # seconds; the load takes half of it
FAULTS = {
    "a wrong product": (
        "blas",
        """
        import sys, torch
        from trainer.probes import blas, entry
        honest = blas.multiply

        def multiply(a, b, out):
            honest(a, b, out)
            out.view(-1)[0] += 100

        blas.multiply = multiply
        sys.exit(entry.main("blas", blas.measure))
        """,
        {"fail"},
    ),
    "a conversion to zeros": (
        "convert",
        """
        import sys, torch
        from trainer.probes import convert, entry
        convert.ROUTES["on the way there"] = lambda source, dtype, target: torch.zeros_like(source, dtype=dtype)
        sys.exit(entry.main("convert", convert.measure))
        """,
        {"fail"},
    ),
    "a copy that turns a bit": (
        "transfer",
        """
        import sys
        from trainer.probes import entry, transfer
        honest = transfer.copy

        def copy(rows, target, **how):
            there = honest(rows, target, **how)
            there[0, 4711] ^= 16
            return there

        transfer.copy = copy
        sys.exit(entry.main("transfer", transfer.measure))
        """,
        {"fail"},
    ),
    "a card that stops to answer": (
        "amp",
        """
        import sys, torch
        from trainer.probes import amp, entry
        honest = amp.Trainer.step

        def step(self, overflow=False):
            if overflow:  # an index out of range on the card: from here on every call to it fails
                self.x[torch.tensor([10**6], device=self.x.device)].sum().item()
            return honest(self, overflow)

        amp.Trainer.step = step
        sys.exit(entry.main("amp", amp.measure))
        """,
        {"fail", "crash"},
    ),
    "a card that is full": (
        "amp",
        """
        import sys, torch
        from trainer.probes import amp, entry

        def fill(request):
            held = []
            while True:
                held.append(torch.ones(1 << 30, device="cuda"))

        sys.exit(entry.main("amp", fill))
        """,
        {"fail"},
    ),
}


def kind_with(cards: int) -> str:
    """This torch's kind of card; skip where fewer than `cards` are here."""
    if not placement.has_torch():
        pytest.skip("torch is not installed")
    kind = placement.build_kind()
    if kind == "cpu":
        pytest.skip("this torch is built for the CPU")
    if (here := placement.card_count()) < cards:
        pytest.skip(f"{cards} {kind} card(s) needed, {here} here")
    return kind


def smoke(name: str, cards: int) -> Verdict:
    """Run a probe with this torch's kind of card expected."""
    kind = kind_with(cards)
    return runner.run(runner.select([name])[0], kind, SHORT.get(name))  # type: ignore[arg-type]


def explain(verdict: Verdict) -> str:
    failed = [check for check in verdict.checks if check.status == "fail"]
    return "\n".join([verdict.summary, *map(str, failed), str(verdict.diagnosis), verdict.stderr_tail])


def passed(verdict: Verdict) -> None:
    """Fail unless the probe passed on the card; a subject that an image need not have may be absent."""
    (probe,) = [probe for probe in registry.PROBES if probe.name == verdict.probe]
    if verdict.status == "not-applicable" and probe.may_be_absent:
        pytest.skip(verdict.summary)
    assert verdict.status == "pass", explain(verdict)
    assert verdict.device
    assert verdict.device.kind == placement.build_kind()


@pytest.mark.gpu
@pytest.mark.parametrize("name", ONE_CARD)
def test_a_probe_passes_on_the_card(name: str) -> None:
    passed(smoke(name, cards=1))


@pytest.mark.gpu
def test_both_back_ends_and_the_c_interface_were_tried() -> None:
    verdict = smoke("blas", cards=1)
    tried = {check.name.split()[0] for check in verdict.checks if check.status == "pass"}
    expected = (
        {"hipBLAS", "hipblasSgemm"} if placement.build_kind() == "rocm" else {"cuBLAS", "cuBLASLt", "cublasSgemm_v2"}
    )
    assert expected <= tried, explain(verdict)


@pytest.mark.gpu
def test_what_the_card_says_of_itself_is_kept_with_units() -> None:
    verdict = smoke("device", cards=1)
    units = {number.name: number.unit for number in verdict.numbers}
    assert units["cuda:0 memory total"] == "bytes"
    assert units["cuda:0 compute units"] == "units"


@pytest.mark.gpu
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_on_the_card_costs_only_its_own_verdict(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, source, statuses = FAULTS[fault]
    kind = kind_with(1)
    (tmp_path / "fault.py").write_text(textwrap.dedent(source))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    faulty = Probe(name=name, module="fault", summary="injected", timeout_seconds=120)
    assert runner.run(faulty, kind).status in statuses  # type: ignore[arg-type]
    passed(smoke("device", cards=1))


@pytest.mark.gpu
def test_a_card_that_nobody_can_see_is_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = kind_with(1)
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
        monkeypatch.setenv(name, "-1")
    assert runner.run(runner.select(["convert"])[0], kind).status == "no-device"  # type: ignore[arg-type]


@pytest.mark.gpu
@pytest.mark.parametrize("name", TWO_CARDS)
def test_one_card_does_not_pass_for_two(name: str) -> None:
    kind_with(1)
    if placement.card_count() > 1:
        pytest.skip("more than one card is here")
    verdict = smoke(name, cards=1)
    assert verdict.status == "fail"
    assert {check.name for check in verdict.checks if check.status == "fail"} <= {"two cards"}


@pytest.mark.two_gpu
@pytest.mark.parametrize("name", TWO_CARDS)
def test_two_cards_work_together(name: str) -> None:
    passed(smoke(name, cards=2))


@pytest.mark.two_gpu
def test_a_step_that_works_only_without_peer_access_is_traced_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = kind_with(2)
    (tmp_path / "faulty_rank.py").write_text(
        "import os, sys\nfrom trainer.probes import ddp_rank\n"
        "if 'TRAINER_PROBE_ROUTE' not in os.environ or os.environ.get('NCCL_SHM_DISABLE'):\n"
        "    os.abort()  # injected: the first try and the one without shared memory die\n"
        "sys.exit(ddp_rank.main())\n"
    )
    (tmp_path / "fault.py").write_text(
        "import sys\nfrom trainer.probes import entry, two_gpu_step\ntwo_gpu_step.RANK_MODULE = 'faulty_rank'\n"
        "sys.exit(entry.main('two_gpu_step', two_gpu_step.measure))\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    faulty = Probe(name="two_gpu_step", module="fault", summary="injected", timeout_seconds=300)
    verdict = runner.run(faulty, kind)  # type: ignore[arg-type]
    assert verdict.status == "fail"
    retries = {check.name: check.status for check in verdict.checks if check.name.startswith("retry")}
    assert retries == {
        "retry with NCCL_P2P_DISABLE=1": "pass",
        "retry with NCCL_SHM_DISABLE=1": "fail",
        "retry with the gloo backend": "pass",
        "retry with averaging through host memory": "pass",
    }, explain(verdict)
    assert verdict.diagnosis["helped"].startswith("NCCL_P2P_DISABLE=1")


def test_every_registered_probe_is_tried_on_cards() -> None:
    assert {*ONE_CARD, *TWO_CARDS} == {probe.name for probe in registry.PROBES}
    assert "two_gpu_step" in TWO_CARDS

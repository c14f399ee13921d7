"""p2p and DataParallel on two made-up cards: their child passes, fails, dies or hangs, and the cause is named."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from trainer.diagnostics.probes import placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.pair import data_parallel, p2p
from trainer.diagnostics.probes.pair.ranks import child, host_facts, torchrun
from trainer.diagnostics.probes.verdict import Check, Device, Verdict, conclude, equal
from trainer.runtime.child_process import Outcome

ROOT = Path(__file__).parents[7]
CARD = Device(kind="rocm", name="two cards that are made up", arch="gfx1100")
PROBES = {"p2p": p2p, "two_gpu_step_data_parallel": data_parallel}
CHILD = """
import os, sys, time
from trainer.diagnostics.probes.pair.ranks import child as in_child
from trainer.diagnostics.probes.verdict import Device, conclude, equal

def direct(request):
    card = Device(kind="rocm", name="a card that is made up", arch="gfx1100")
    {fault}
    return conclude(probe={probe!r}, summary="fine", checks=[check], device=card)

sys.exit(in_child.main({probe!r}, direct, direct))
"""
RIGHT = "check = equal('cuda:0 to cuda:1 4 bytes', 'a', 'a')"
WRONG = "check = equal('cuda:0 to cuda:1 4 bytes', 'a', 'b')"
DENIED = "check = equal('memory opened by another process', 'no', 'yes', detail='RuntimeError: denied')"
UNLESS_P2P_IS_OFF = "check = equal('weights', os.environ.get('NCCL_P2P_DISABLE', ''), '1')"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a probe whose child has this fault, on a made-up machine with two cards and an IOMMU that translates."""
    group = tmp_path / "sys/kernel/iommu_groups/7"
    group.mkdir(parents=True)
    (group / "type").write_text("DMA-FQ\n")
    monkeypatch.setattr(host_facts, "ROOT", tmp_path)
    monkeypatch.setattr(placement, "place", lambda expect: CARD)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}{os.pathsep}{tmp_path}")

    def start(name: str, fault: str, *, cards: int = 2, timeout: float = 100.0) -> Verdict:
        (tmp_path / "faulty_child.py").write_text(CHILD.format(probe=name, fault=fault))
        monkeypatch.setattr(PROBES[name], "MODULE", "faulty_child")
        monkeypatch.setattr(placement, "card_count", lambda: cards)
        return PROBES[name].measure(Request(expect="rocm", timeout_seconds=timeout))  # type: ignore[attr-defined, no-any-return]

    return start


@pytest.mark.parametrize("name", PROBES)
def test_child_that_passes_is_the_verdict(name: str, run: Any) -> None:
    verdict = run(name, RIGHT)
    assert (verdict.status, verdict.summary, verdict.diagnosis) == ("pass", "fine", {})


@pytest.mark.parametrize(("fault", "status"), [(WRONG, "fail"), ("os.abort()", "crash")])
def test_copies_that_go_wrong_are_traced_to_what_stands_between_the_cards(fault: str, status: str, run: Any) -> None:
    verdict = run("p2p", fault)
    assert verdict.status == status
    assert verdict.summary.endswith("Likely: the IOMMU stands between the cards.")


def test_copies_that_hang_are_explained_before_the_limit(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torchrun, "limit_of", lambda request: 2.0)
    verdict = run("p2p", "time.sleep(600)")
    assert verdict.status == "timeout"
    assert verdict.diagnosis["likely cause"] == "the IOMMU stands between the cards"


def test_ipc_alone_that_is_denied_is_named(run: Any) -> None:
    verdict = run("p2p", DENIED)
    assert verdict.summary.endswith("Likely: card memory cannot be shared between processes (IPC denied).")
    assert verdict.diagnosis["evidence"] == "RuntimeError: denied"


def test_data_parallel_is_tried_again_without_peer_access_and_without_shared_memory(run: Any) -> None:
    verdict = run("two_gpu_step_data_parallel", UNLESS_P2P_IS_OFF)
    assert verdict.status == "fail"
    retries = {check.name: check.status for check in verdict.checks if check.name.startswith("retry")}
    assert retries == {"retry with NCCL_P2P_DISABLE=1": "pass", "retry with NCCL_SHM_DISABLE=1": "fail"}
    summary = "Fails as it is; passes with NCCL_P2P_DISABLE=1 (likely: the IOMMU stands between the cards)."
    assert verdict.summary.endswith(summary)


def test_ipc_that_only_a_later_pair_is_denied_is_named(run: Any) -> None:
    later = DENIED.replace("'memory", "'cards 2 and 3: memory")
    assert run("p2p", later).diagnosis["evidence"] == "RuntimeError: denied"


@pytest.fixture(params=[2, 3, 5, 8])
def many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """As many SIMULATED cards, of which the driver lets each reach into each."""
    cards: int = request.param
    monkeypatch.setattr(placement, "place", lambda expect: CARD)
    monkeypatch.setattr(placement, "card_count", lambda: cards)
    monkeypatch.setattr(placement, "card_ids", lambda: tuple(f"0000:{card:02x}:00" for card in range(cards)))
    monkeypatch.setattr(torch.cuda, "can_device_access_peer", lambda here, there: here != there)
    return cards


def test_copies_go_from_and_to_each_card(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def seen(direction: tuple[str, str], size: int, seed: int) -> Check:
        return equal(f"{direction[0]} to {direction[1]} {size} bytes", 1, 1)

    opened: list[Sequence[int]] = []
    monkeypatch.setattr(p2p, "check", seen)
    monkeypatch.setattr(p2p, "best_seconds", lambda work, cards: 1.0)
    monkeypatch.setattr(torch, "zeros", lambda *_, **__: None)
    monkeypatch.setattr(torch, "empty", lambda *_, **__: None)
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: None)
    monkeypatch.setattr(p2p.ipc, "error", lambda *, pair: opened.append(pair) or "")
    verdict = p2p.direct(Request(expect="rocm"))
    assert verdict.status == "pass"
    names, measured = [check.name for check in verdict.checks], [number.name for number in verdict.numbers]
    assert (len(names), len(measured)) == (len(set(names)), len(set(measured)))
    for card in range(many):
        assert any(name.startswith(f"cuda:{card} to") for name in names)
        assert any(f"to cuda:{card} " in name for name in names)
        assert any(card in pair for pair in opened)
    assert len(verdict.cards) == many
    assert verdict.cards == verdict.present


def test_data_parallel_steps_on_each_card(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """DataParallel itself takes cards: on a CPU it is replaced by what it was asked for."""
    devices: list[int] = []

    def instead(model: torch.nn.Module, pair: Sequence[int]) -> tuple[torch.nn.Module, set[str]]:
        devices.extend(pair)
        return model, {f"cuda:{card}" for card in pair}

    monkeypatch.setattr(data_parallel, "spread", instead)
    monkeypatch.setattr(data_parallel, "first", lambda pair: torch.device("cpu"))
    verdict = data_parallel.direct(Request(expect="rocm"))
    assert verdict.status == "pass", verdict.summary
    assert set(devices) == set(range(many))
    names = [check.name for check in verdict.checks]
    assert len(names) == len(set(names))
    assert verdict.cards == verdict.present == placement.card_ids()


@pytest.mark.parametrize("name", PROBES)
def test_hidden_card_is_named_where_one_is_seen(
    name: str, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in host_facts.HIDING:
        monkeypatch.delenv(variable, raising=False)
    for number in (1, 2):
        node = tmp_path / f"sys/class/kfd/kfd/topology/nodes/{number}"
        node.mkdir(parents=True)
        (node / "properties").write_text("simd_count 96\n")
    verdict = run(name, RIGHT, cards=1)
    assert verdict.status == "not-applicable"
    assert verdict.summary.endswith("Likely: a card is hidden.")
    assert "device node" in verdict.diagnosis["evidence"]


@pytest.mark.parametrize(("argv", "part"), [([], "parent"), (["--direct"], "child"), (["--timeout", "3"], "parent")])
def test_flag_decides_which_part_of_a_probe_runs(
    argv: list[str], part: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def answer(name: str) -> Any:
        checks = [equal("bytes", "a", "a")]
        return lambda request: conclude(probe="p2p", summary=f"{name} {request.expect}", checks=checks, device=CARD)

    monkeypatch.setattr("trainer.diagnostics.probes.entry.claim_stdout", lambda: sys.stdout)
    assert child.main("p2p", answer("parent"), answer("child"), [*argv, "--expect", "cpu"]) == 0
    assert json.loads(capfd.readouterr().out)["summary"] == f"{part} cpu"


def test_verdict_runs_the_module_as_a_child_and_repeats_what_it_wrote(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: dict[str, Any] = {}

    def instead(argv: Sequence[str], *, seconds: float, env: dict[str, str]) -> Outcome:
        seen.update(argv=list(argv), seconds=seconds, env=env)
        return Outcome(returncode=-6, timed_out=False, stdout="", stderr="terminate called\n", seconds=1.0)

    monkeypatch.setattr(child, "run_limited", instead)
    verdict = child.verdict("p2p", "a.module", Request(expect="rocm"), 7.5, {"NCCL_P2P_DISABLE": "1"})
    assert seen["argv"] == [sys.executable, "-m", "a.module", "--direct", "--expect", "rocm", "--timeout", "7.5"]
    assert (seen["seconds"], seen["env"]["NCCL_P2P_DISABLE"]) == (7.5, "1")
    assert seen["env"].items() >= {key: os.environ[key] for key in ("PATH",)}.items()
    assert (verdict.probe, verdict.status) == ("p2p", "crash")
    assert "terminate called" in capsys.readouterr().err


def test_probe_that_is_not_registered_has_no_verdict() -> None:
    with pytest.raises(ValueError, match="unpack"):
        child.verdict("p3p", "a.module", Request(), 1.0)

"""Each probe of two ranks with stand-ins for two cards: gloo ranks on this CPU in place of NCCL, and faults by way."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.fixtures.made_up_ranks import CARD, PROBES, made_up
from tests.left_out import long, one_of
from trainer.diagnostics.probes import placement, runner
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.pair.ranks import cause_search, ipc, judge, torchrun
from trainer.diagnostics.probes.verdict import Device
from trainer.runtime.child_process import Outcome

PROBE = """
    import sys
    from trainer.diagnostics.probes.pair.ranks import cause_search as two_cards
    two_cards.TRANSPORTS = tuple(each for each in two_cards.TRANSPORTS if each.name in {transports!r})
    from trainer.diagnostics.probes.pair.ranks import ipc as card_ipc
    from trainer.diagnostics.probes.pair import collectives
    import importlib
    from trainer.diagnostics.probes import entry, placement, registry
    probe = importlib.import_module(next(each.module for each in registry.PROBES if each.name == "{module}"))
    from trainer.diagnostics.probes.verdict import Device

    stand_in = Device(kind="cuda", name="stand-in for two cards", arch="none")
    placement.place, placement.card_count = lambda expect: stand_in, lambda: 2
    card_ipc.error = lambda seconds: ""
    collectives.SIZES = collectives.SIZES_CPU
    probe.RANK_MODULE = "faulty_rank"
    sys.exit(entry.main("{module}", probe.measure))
"""
RANK = """
import os, sys
fault = {plan!r}.get(os.environ.get("TRAINER_PROBE_ROUTE", "as it is"), "abort")
if fault == "abort":
    os.abort()
import torch, torch.distributed as dist
from trainer.diagnostics.probes.pair.ranks import collectives_rank, ddp_rank, {rank} as honest

join = dist.init_process_group
dist.init_process_group = lambda backend, **how: join("gloo", **how)  # gloo stands in for NCCL
ddp_rank.choose_device = lambda backend: torch.device("cpu")
if fault == "fail":  # a sum that is wrong
    reduce = collectives_rank.all_reduce
    collectives_rank.OPERATIONS["all-reduce"] = lambda mine, rank: reduce(mine, rank) + 1
sys.exit(ddp_rank.take_part(None, honest.phases))
"""
# What each way that is tried comes to; the first try aborts. Few ways a probe, for each starts two ranks.
PLANS: dict[str, tuple[str, dict[str, str]]] = {
    "two_gpu_step": ("ddp_rank", {"nccl-no-p2p": "abort", "host": "pass"}),
    "collectives": ("collectives_rank", {"nccl-no-p2p": "fail", "gloo": "pass", "host": "pass"}),
    "two_gpu_step_fsdp2": ("fsdp2_rank", {"gloo": "pass"}),
    "two_gpu_step_pipeline": ("pipeline_rank", {"host": "pass"}),
}
SETTINGS = {
    transport.name: cause_search.TransportTrial(transport=transport, cause="", seconds=0.0).settings
    for transport in cause_search.TRANSPORTS
}


@long
@pytest.mark.parametrize("name", one_of(PROBES))
def test_two_ranks_that_fail_are_tried_again_with_each_transport_and_stay_failed(
    name: str, make_probe: Any, tmp_path: Path
) -> None:
    rank, plan = PLANS[name]
    (tmp_path / "faulty_rank.py").write_text(RANK.format(plan=plan, rank=rank))
    verdict = runner.run(make_probe(PROBE.format(module=name, transports=tuple(plan)), name=name), "cuda", 400)
    if verdict.status == "not-applicable":
        pytest.skip(verdict.summary)
    assert verdict.status == "fail"
    retries = {check.name: check.status for check in verdict.checks if check.name.startswith("retry")}
    right = {f"retry with {SETTINGS[which]}": "pass" if end == "pass" else "fail" for which, end in plan.items()}
    assert retries == right, f"{verdict.checks}\n{verdict.stderr_tail}"
    helped = next(SETTINGS[transport] for transport, end in plan.items() if end == "pass")
    assert f"Fails as it is; passes with {helped} (likely: " in verdict.summary


@pytest.mark.parametrize("name", PROBES)
def test_ranks_that_pass_are_not_tried_again(name: str, monkeypatch: pytest.MonkeyPatch, machine: Path) -> None:
    monkeypatch.setattr(cause_search, "retry", lambda *_: pytest.fail("a probe that passes tries nothing again"))
    verdict = made_up(monkeypatch, name, worked=("as it is",))
    assert (verdict.status, verdict.diagnosis) == ("pass", {}), verdict.summary


@pytest.mark.parametrize("name", PROBES)
@pytest.mark.parametrize("hangs", [True, False])
def test_iommu_that_translates_is_found(name: str, hangs: bool, monkeypatch: pytest.MonkeyPatch, machine: Path) -> None:
    (machine / "sys/kernel/iommu_groups/7/type").write_text("DMA-FQ\n")
    verdict = made_up(monkeypatch, name, hangs=hangs, worked=("nccl-no-p2p", "gloo", "host"))
    assert verdict.status == ("timeout" if hangs else "fail")
    expected = "Fails as it is; passes with NCCL_P2P_DISABLE=1 (likely: the IOMMU stands between the cards)."
    assert verdict.summary.endswith(expected)


@pytest.mark.parametrize("name", PROBES)
def test_small_shared_memory_is_found(name: str, monkeypatch: pytest.MonkeyPatch, machine: Path) -> None:
    (machine / "dev/shm").unlink()
    (machine / "dev/shm").symlink_to("/proc")  # a file system that has no room at all
    verdict = made_up(monkeypatch, name, worked=("nccl-no-shm", "host"))
    assert verdict.summary.endswith("passes with NCCL_SHM_DISABLE=1 (likely: /dev/shm is too small).")
    assert verdict.diagnosis["evidence"] == "it works without; /dev/shm has 0 MiB free"


@pytest.mark.parametrize("name", PROBES)
def test_hidden_card_is_found(name: str, monkeypatch: pytest.MonkeyPatch, machine: Path) -> None:
    monkeypatch.setenv("ROCR_VISIBLE_DEVICES", "0")
    verdict = made_up(monkeypatch, name, worked=("as it is",), cards=1)
    assert verdict.status == "fail"  # two cards were expected, however well the CPU did
    assert verdict.summary.endswith("Likely: a card is hidden.")
    assert verdict.diagnosis["evidence"] == "2 cards on this machine, 1 seen by torch; ROCR_VISIBLE_DEVICES=0"


@pytest.mark.parametrize("name", PROBES)
def test_reason_is_reported_in_time_where_everything_hangs(
    name: str, monkeypatch: pytest.MonkeyPatch, machine: Path
) -> None:
    now = [1000.0]

    def hang(seconds: float) -> str:
        now[0] += seconds
        return f"no end within {seconds:g} s"

    def hanging(module: str, device: Device, seed: int, limit: float, **how: Any) -> tuple[Outcome, list[Any]]:
        hang(limit)
        return Outcome(returncode=-9, timed_out=True, stdout="", stderr="", seconds=limit), [[], []]

    clock = SimpleNamespace(monotonic=lambda: now[0])
    for module in (judge, cause_search):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(ipc, "error", hang)
    (probe,) = runner.select([name])[:1]
    monkeypatch.setattr(placement, "place", lambda expect: CARD)
    monkeypatch.setattr(placement, "card_count", lambda: 2)
    monkeypatch.setattr(torchrun, "run_ranks", hanging)
    verdict = PROBES[name].measure(Request(expect="rocm", timeout_seconds=probe.timeout_seconds))  # type: ignore[attr-defined]
    assert now[0] - 1000.0 <= probe.timeout_seconds - torchrun.MARGIN_SECONDS
    assert verdict.status == "timeout"
    assert {check.status for check in verdict.checks} == {"fail"}
    assert "Fails as it is, and each other transport that was tried" in verdict.summary

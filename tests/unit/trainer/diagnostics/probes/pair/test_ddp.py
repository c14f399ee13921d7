from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.left_out import long
from trainer.diagnostics.probes import placement, runner
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.pair import ddp
from trainer.diagnostics.probes.pair.ranks import torchrun
from trainer.diagnostics.probes.registry import Probe
from trainer.diagnostics.probes.verdict import Device, Verdict
from trainer.runtime.child_process import Outcome

PROBE = """
    import sys
    from trainer.diagnostics.probes import entry
    from trainer.diagnostics.probes.pair import ddp as two_gpu_step
    from trainer.diagnostics.probes.pair.ranks import torchrun as two_ranks
    two_gpu_step.RANK_MODULE = "faulty_rank"
    two_ranks.MARGIN_SECONDS = {margin}
    sys.exit(entry.main("two_gpu_step", two_gpu_step.measure))
"""
SUMMING = """
import sys
from trainer.diagnostics.probes.pair.ranks import ddp_rank
honest = ddp_rank.wrap

def wrap(model, device):
    shared = honest(model, device)
    def add(state, bucket):
        import torch.distributed as dist
        return dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(lambda future: future.value()[0])
    shared.register_comm_hook(None, add)
    return shared

ddp_rank.wrap = wrap
sys.exit(ddp_rank.main())
"""
SLEEPING = """
import os, sys, time
from trainer.diagnostics.probes.pair.ranks import ddp_rank
if os.environ["RANK"] == "1":
    ddp_rank.choose_device = lambda backend: time.sleep(600)
sys.exit(ddp_rank.main())
"""
ABORTING = """
import os, sys
from trainer.diagnostics.probes.pair.ranks import ddp_rank
if os.environ["RANK"] == "1":
    ddp_rank.compare_gradients = lambda *_: os.abort()
sys.exit(ddp_rank.main())
"""


def failed(checks: Any) -> set[str]:
    return {check.name for check in checks if check.status == "fail"}


@pytest.fixture
def run_with_rank(make_probe: Any, tmp_path: Path) -> Any:
    """Run the whole probe with these lines as its rank program."""

    def run(rank: str, *, timeout: float = 90.0, margin: float = 10.0) -> Verdict:
        (tmp_path / "faulty_rank.py").write_text(rank)
        return runner.run(make_probe(PROBE.format(margin=margin), name="two_gpu_step"), "cpu", timeout)

    return run


def test_two_gloo_ranks_step_like_one_process_without_home_or_network_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "USER", "LOGNAME"):
        monkeypatch.delenv(name, raising=False)
    probe = Probe(name="two_gpu_step", module="trainer.diagnostics.probes.pair.ddp", summary="", timeout_seconds=120)
    verdict = runner.run(probe, "cpu")
    assert verdict.status == "pass", f"{verdict.summary}\n{verdict.stderr_tail}"
    assert verdict.summary.startswith("Two gloo ranks on CPU")
    assert "two cards were not tested" in verdict.summary
    assert sum(check.status == "pass" for check in verdict.checks) == 7


@long
def test_ranks_that_add_instead_of_averaging_are_seen(run_with_rank: Any) -> None:
    verdict = run_with_rank(SUMMING)
    assert verdict.status == "fail"
    assert failed(verdict.checks) == {"gradients against analytic mean", "weights against one process"}
    (gradients,) = [check for check in verdict.checks if check.name == "gradients against analytic mean"]
    assert gradients.measured == pytest.approx(1.0, rel=1e-4)  # twice the mean is off by once the mean


@long
def test_rank_that_sleeps_is_a_timeout_that_names_its_phase(run_with_rank: Any) -> None:
    verdict = run_with_rank(SLEEPING, timeout=30.0, margin=12.0)
    assert verdict.status == "timeout"
    assert "rank 1 stopped after 'started'" in verdict.summary


@long
def test_rank_that_aborts_is_a_failure_that_names_its_phase(run_with_rank: Any) -> None:
    verdict = run_with_rank(ABORTING)
    assert verdict.status == "fail"
    assert {"ranks finished", "torchrun's exit status"} <= failed(verdict.checks)
    assert "rank 1 stopped after 'joined'" in verdict.summary


@pytest.mark.parametrize(
    ("expect", "cards", "status"),
    [
        ("rocm", 2, "pass"),
        ("any", 3, "pass"),
        ("rocm", 1, "fail"),
        ("cuda", 1, "fail"),
        ("any", 1, "not-applicable"),
        ("cpu", 0, "not-applicable"),
    ],
)
def test_single_card_fails_closed_where_cards_are_expected(expect: str, cards: int, status: str) -> None:
    assert torchrun.cards_check(expect, cards).status == status


def finished(**weights: Any) -> torchrun.Report:
    return [
        {"phase": "started", "pid": weights.pop("pid")},
        {"phase": "joined", "seconds": 0.5},
        {"phase": "gradients", "error": weights.pop("gradient_error", 1e-7)},
        {"phase": "weights", "error": 1e-7, "moved": 0.2, "sha256": "a", "seconds": 0.1} | weights,
        {"phase": "done"},
    ]


def judge(*reports: torchrun.Report, returncode: int = 0) -> set[str]:
    outcome = Outcome(returncode=returncode, timed_out=False, stdout="", stderr="", seconds=1.0)
    return failed([*torchrun.finish_checks(outcome, reports), *ddp.step_checks(reports)])


def test_findings_of_the_ranks_each_have_their_check() -> None:
    good = finished(pid=1)
    assert judge(good, finished(pid=2)) == set()
    assert judge(good, finished(pid=1)) == {"processes"}
    assert judge(good, finished(pid=2, gradient_error=0.5)) == {"gradients against analytic mean"}
    assert judge(good, finished(pid=2, gradient_error=float("nan"))) == {"gradients against analytic mean"}
    assert judge(good, finished(pid=2, error=1e-3)) == {"weights against one process"}
    assert judge(good, finished(pid=2, moved=0.0)) == {"weights moved"}
    assert judge(good, finished(pid=2, moved=float("nan"))) == {"weights moved"}


def test_limits_of_two_ranks_are_where_they_are_stated() -> None:
    good = finished(pid=1)
    for name, limit, check in (
        ("gradient_error", 1e-5, "gradients against analytic mean"),
        ("error", 1e-5, "weights against one process"),
    ):
        assert judge(good, finished(pid=2, **{name: 0.99 * limit})) == set()
        assert judge(good, finished(pid=2, **{name: 1.01 * limit})) == {check}
    assert judge(good, finished(pid=2, moved=1.01e-2)) == set()
    assert judge(good, finished(pid=2, moved=0.99e-2)) == {"weights moved"}


def test_ranks_that_did_not_end_have_findings_of_their_own() -> None:
    good = finished(pid=1)
    assert judge(good, finished(pid=2, sha256="b")) == {"distinct weights among ranks"}
    assert judge(good, finished(pid=2), returncode=1) == {"torchrun's exit status"}
    assert judge(good, finished(pid=2)[:3]) == {"ranks finished"}
    assert judge(good, []) == {"ranks finished"}


def test_ranks_use_loopback_unless_set_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GLOO_SOCKET_IFNAME", raising=False)
    assert torchrun.rank_environment()["GLOO_SOCKET_IFNAME"] == "lo"
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "eth7")
    assert torchrun.rank_environment()["GLOO_SOCKET_IFNAME"] == "eth7"


def test_two_cards_use_nccl_and_the_cpu_gloo(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []

    def run_limited(argv: list[str], **_: Any) -> Outcome:
        started.append(argv)
        return Outcome(returncode=0, timed_out=False, stdout="", stderr="", seconds=0.0)

    monkeypatch.setattr(torchrun, "run_limited", run_limited)
    card = Device(kind="rocm", name="AMD Instinct MI300X", arch="gfx942")
    for device, backend in ((card, "nccl"), (placement.cpu(), "gloo")):
        torchrun.run_ranks("some_rank", device, seed=1, limit=60.0)
        argv = started[-1]
        assert argv[argv.index("--backend") + 1] == backend


def test_missing_card_where_one_is_expected_is_no_device() -> None:
    if placement.build_kind() != "cpu":
        pytest.skip("this torch is built for cards")
    with pytest.raises(placement.NoDeviceError, match="built for cpu"):
        ddp.measure(Request(expect="rocm"))

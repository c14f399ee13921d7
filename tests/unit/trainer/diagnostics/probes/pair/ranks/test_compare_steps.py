"""FSDP2, the pipeline and the collectives over two gloo ranks, honest and with faults; what needs cards says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.left_out import long, one_of
from trainer.diagnostics.probes import runner
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.pair import data_parallel, fsdp2, p2p, pipeline
from trainer.diagnostics.probes.pair.ranks import compare_steps, ddp_rank
from trainer.diagnostics.probes.verdict import Verdict

PROBE = """
    import sys
    import importlib
    from trainer.diagnostics.probes import entry, registry
    probe = importlib.import_module(next(each.module for each in registry.PROBES if each.name == "{module}"))
    probe.RANK_MODULE = "faulty_rank"
    sys.exit(entry.main("{module}", probe.measure))
"""
WRONG_SUM = """
import sys
from trainer.diagnostics.probes.pair.ranks import collectives_rank, ddp_rank
honest = collectives_rank.all_reduce

def all_reduce(mine, rank):
    summed = honest(mine, rank)
    summed[-1] += 1
    return summed

collectives_rank.OPERATIONS["all-reduce"] = all_reduce
sys.exit(ddp_rank.take_part(None, collectives_rank.phases))
"""
UNSHARDED = """
import sys
from trainer.diagnostics.probes.pair.ranks import ddp_rank, fsdp2_rank
honest = fsdp2_rank.shard

def shard(model, device):
    sharded = honest(model, device)
    sharded.set_requires_gradient_sync(False)  # gradients that never meet
    return sharded

fsdp2_rank.shard = shard
sys.exit(ddp_rank.take_part(None, fsdp2_rank.phases))
"""
SUMMED_PIECES = """
import sys
from trainer.diagnostics.probes.pair.ranks import ddp_rank, pipeline_rank
honest = pipeline_rank.pipeline

def pipeline(half, rank, device):
    schedule = honest(half, rank, device)
    mean = schedule._loss_fn
    schedule._loss_fn = lambda output, target: mean(output, target) * pipeline_rank.PIECES
    return schedule

pipeline_rank.pipeline = pipeline
sys.exit(ddp_rank.take_part(None, pipeline_rank.phases))
"""
FAULTS = {
    "collectives": (WRONG_SUM, "all-reduce"),
    "two_gpu_step_fsdp2": (UNSHARDED, ""),
    "two_gpu_step_pipeline": (SUMMED_PIECES, "weights against one process"),
}


def failed(verdict: Verdict) -> list[str]:
    return [check.name for check in verdict.checks if check.status == "fail"]


@long
@pytest.mark.parametrize("name", one_of(FAULTS))  # the night of the CPU cell has them all pass
def test_two_gloo_ranks_pass_and_report_that_no_two_cards_were_tested(name: str) -> None:
    (probe,) = runner.select([name])
    verdict = runner.run(probe, "cpu")
    if verdict.status == "not-applicable":
        pytest.skip(verdict.summary)
    assert verdict.status == "pass", f"{verdict.summary}\n{verdict.stderr_tail}"
    assert "two cards were not tested" in verdict.summary


@pytest.mark.parametrize("name", one_of(FAULTS))
def test_fault_in_the_ranks_fails(name: str, make_probe: Any, tmp_path: Path) -> None:
    source, words = FAULTS[name]
    (tmp_path / "faulty_rank.py").write_text(source)
    verdict = runner.run(make_probe(PROBE.format(module=name), name=name), "cpu", 90)
    assert verdict.status == "fail", verdict.summary
    assert any(words in check for check in failed(verdict))


@pytest.mark.parametrize("probe", [p2p, data_parallel])
def test_steps_of_two_cards_are_not_applicable_on_a_cpu(probe: Any) -> None:
    verdict = probe.measure(Request(expect="cpu"))
    assert verdict.status == "not-applicable"
    assert "here is none" in verdict.summary


@pytest.mark.parametrize("probe", [fsdp2, pipeline])
def test_torch_that_lacks_it_is_named(probe: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "why_not", lambda: "It was not tried: torch 2.4 has none.")
    verdict = probe.measure(Request(expect="cpu"))
    assert (verdict.status, verdict.summary) == ("not-applicable", "It was not tried: torch 2.4 has none.")


def reports(*weights: dict[str, float]) -> list[list[dict[str, Any]]]:
    """Reports of ranks that compared these weights and reached their end."""
    return [[{"phase": "weights", **each}, {"phase": "done"}] for each in weights]


def weight(**changes: float) -> dict[str, float]:
    return {"error": 0.0, "moved": 1.0, "held": 5, "of": 10} | changes


@pytest.mark.parametrize(
    ("changes", "failing"),
    [
        ({}, []),
        ({"error": compare_steps.WEIGHT_LIMIT}, []),
        ({"error": 1.01 * compare_steps.WEIGHT_LIMIT}, ["weights against one process"]),
        ({"error": float("nan")}, ["weights against one process"]),
        ({"moved": compare_steps.MOVED_LIMIT}, []),
        ({"moved": 0.99 * compare_steps.MOVED_LIMIT}, ["weights moved"]),
        ({"held": 4}, ["weights held by both ranks"]),
        ({"held": 10}, ["weights held by both ranks"]),
    ],
)
def test_weights_of_either_rank_decide_the_checks(changes: dict[str, float], failing: list[str]) -> None:
    for ranks in ([weight(), weight(**changes)], [weight(**changes), weight()]):
        checks = compare_steps.weight_checks(reports(*ranks))
        assert len(checks) == 3
        assert [check.name for check in checks if check.status == "fail"] == failing


def test_rank_that_did_not_end_leaves_nothing_to_check() -> None:
    whole = reports(weight(), weight())
    assert compare_steps.weight_checks([whole[0], whole[1][:-1]]) == []
    assert compare_steps.weight_checks([whole[0], []]) == []


def test_weights_are_compared_with_those_of_the_model_trained_alone() -> None:
    alone = ddp_rank.seeded_mlp(3)
    steps = [ddp_rank.joined(ddp_rank.draw_shards(3, step)) for step in range(ddp_rank.STEPS)]
    ddp_rank.train(alone, steps, torch.device("cpu"))
    whole = ddp_rank.flat_weights(alone)
    half = slice(0, len(whole) // 2)
    same = compare_steps.compare(whole[half].double(), 3, torch.device("cpu"), held=7, part=half)
    assert (same["error"], same["held"], same["of"]) == (0.0, 7, len(whole))
    assert same["moved"] > compare_steps.MOVED_LIMIT
    other = compare_steps.compare(whole.double() * 1.001, 3, torch.device("cpu"), held=7)
    assert other["error"] == pytest.approx(1e-3, rel=0.01)

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from trainer.diagnostics.probes import numerics
from trainer.diagnostics.probes.pair.ranks import ddp_rank


def test_closed_form_is_autograds_gradient() -> None:
    model = torch.nn.Linear(ddp_rank.FEATURES, ddp_rank.OUTPUTS).double()
    x, y = (tensor.double() for tensor in ddp_rank.draw_shards(7, step=0)[0])
    ddp_rank.backward(model, (x, y), torch.device("cpu"))
    closed = ddp_rank.analytic_gradient(model.weight.detach(), model.bias.detach(), (x, y))
    assert numerics.relative_error(ddp_rank.flat_gradients(model), closed) < 1e-12


def test_mean_over_equal_shards_is_the_gradient_of_the_joined_batch() -> None:
    weight, bias = (p.detach() for p in torch.nn.Linear(ddp_rank.FEATURES, ddp_rank.OUTPUTS).parameters())
    shards = ddp_rank.draw_shards(7, step=3)
    mean = torch.stack([ddp_rank.analytic_gradient(weight, bias, shard) for shard in shards]).mean(dim=0)
    assert numerics.relative_error(mean, ddp_rank.analytic_gradient(weight, bias, ddp_rank.joined(shards))) < 1e-12


def test_shards_follow_from_the_seed_and_differ_among_ranks_and_steps() -> None:
    assert torch.equal(ddp_rank.draw_shards(7, step=1)[0][0], ddp_rank.draw_shards(7, step=1)[0][0])
    drawn = [shard[0] for step in range(3) for shard in ddp_rank.draw_shards(7, step)]
    assert len({tuple(x.flatten().tolist()) for x in drawn}) == len(drawn)


def test_phases_are_appended_as_they_are_reached(tmp_path: Path) -> None:
    report = tmp_path / "rank0.jsonl"
    ddp_rank.note(report, "started", pid=1)
    ddp_rank.note(report, "joined", world=2)
    assert [json.loads(line)["phase"] for line in report.read_text().splitlines()] == ["started", "joined"]


@pytest.mark.parametrize("backend", ["gloo", "nccl"])
def test_process_of_gloo_alone_ends_without_torchs_destructors(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    ended: list[int] = []
    monkeypatch.setattr(ddp_rank, "leave_after_gloo", ended.append)
    with pytest.raises(SystemExit) as caught:
        ddp_rank.leave(3, ["rank", "--backend", backend])
    assert caught.value.code == 3
    assert ended == ([3] if backend == "gloo" else [])

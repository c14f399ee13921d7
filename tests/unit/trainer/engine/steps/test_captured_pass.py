"""Micro-batches by captured graphs, with a STAND-IN for graphs: the run is that of the loop's own passes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.fixtures.captured_stand_in import StandIn, language_run
from tests.fixtures.training import same, weights
from trainer.engine.loop import forward_backward
from trainer.engine.oom_recovery import cut_smaller
from trainer.engine.steps import captured_pass
from trainer.engine.steps.captured_pass import CapturedPass
from trainer.engine.steps.cuda_graph import NoGraphError


@pytest.fixture(autouse=True)
def roomy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device with memory to spare, which a CPU does not tell."""
    monkeypatch.setattr(captured_pass, "card_memory", lambda device: (10**9, 10**9))


@pytest.mark.parametrize(
    "how",
    [{}, {"lora": True}, {"checkpointing": "full"}, {"micro_batch": 6}, {"micro_batch": 4}, {"rows": 5}],
    ids=["plain", "lora", "recomputed", "whole", "uneven", "fewer_rows_than_a_batch"],
)
def test_run_by_graphs_is_that_of_eager_passes_with_a_stand_in(how: dict[str, Any]) -> None:
    expected = weights(language_run(**how))
    run = language_run(**how)
    run.captured = steps = StandIn(run)
    assert same(weights(run), expected)
    assert steps.launched


def test_first_micro_batch_makes_gradients_and_the_others_add_with_a_stand_in() -> None:
    run = language_run(rows=20)  # batches of 6, 6, 6 and 2 rows, two at a time
    run.captured = steps = StandIn(run)
    weights(run)
    assert steps.launched == [0, 1, 1, 0, 1, 1, 0, 1, 1, 0] * 2
    assert steps.captures == 2


def batch_of(run: Any, rows: int) -> tuple[Any, Any]:
    return run.train.rows(torch.arange(rows), run.device)  # type: ignore[no-any-return]


def test_smaller_micro_batch_and_what_follows_an_eager_one_are_left_to_the_loop() -> None:
    run = language_run()
    steps = StandIn(run)
    inputs, targets = batch_of(run, 1)
    assert steps(inputs, targets, torch.ones(())) is None
    inputs, targets = batch_of(run, 2)
    assert steps(inputs, targets, 2.0) is None  # a weight that a graph cannot read
    assert steps(inputs, targets, torch.ones(())) is not None
    for weight in run.model.parameters():
        weight.grad = torch.zeros_like(weight)
    assert steps(inputs, targets, torch.ones(())) is None
    assert steps.launched == [0]


def test_weights_that_moved_are_captured_anew_with_a_stand_in() -> None:
    run = language_run()
    steps = StandIn(run)
    inputs, targets = batch_of(run, 2)
    steps(inputs, targets, torch.ones(()))
    run.model.zero_grad(set_to_none=True)
    block = run.model.decoder.blocks[0]  # type: ignore[union-attr, operator]
    block.mlp.up_proj.weight = torch.nn.Parameter(block.mlp.up_proj.weight.detach().clone())
    steps(inputs, targets, torch.ones(()))
    assert steps.captures == 2


def test_refused_capture_is_not_tried_again_and_the_loop_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def refuse(self: CapturedPass, fixed: Any, pool: object) -> Any:
        tried.append(fixed)
        raise NoGraphError("no capture here")

    monkeypatch.setattr(CapturedPass, "_graph_of", refuse)
    for name in ("synchronize", "empty_cache"):
        monkeypatch.setattr(torch.cuda, name, lambda *device: None)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 0)
    monkeypatch.setattr(torch.cuda, "device", lambda device: captured_pass.gc_disabled())
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    expected = weights(language_run())
    run = language_run()
    run.captured = steps = CapturedPass(run)
    assert same(weights(run), expected)
    assert (steps.refused, len(tried)) == ("no capture here", 1)


@pytest.mark.parametrize(("free", "released"), [(999, True), (1000, False)])
def test_graphs_give_their_memory_back_where_less_is_free(
    free: int, released: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(captured_pass, "card_memory", lambda device: (free, 10**6))
    run = language_run()
    steps = StandIn(run)
    steps(*batch_of(run, 2), torch.ones(()))
    steps.make_room()
    assert steps.release() is not released


def test_memory_of_graphs_is_given_back_before_a_micro_batch_is_halved() -> None:
    run = language_run()
    run.captured = steps = StandIn(run)
    inputs, targets = batch_of(run, 2)
    forward_backward(run, inputs, targets, rows=2, weight=torch.ones(()))
    assert steps.graphs
    undone = []
    snapshot: Any = SimpleNamespace(apply=lambda model, device: undone.append(device))
    cut_smaller(run, snapshot)
    assert (run.captured, run.state.micro_batch.size, steps.graphs, len(undone)) == (None, 2, [], 1)
    cut_smaller(run, snapshot)
    assert run.state.micro_batch.size == 1

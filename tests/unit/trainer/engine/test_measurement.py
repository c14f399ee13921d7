from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.fixtures.planned_runs import planned, tokens
from tests.fixtures.tokens import IGNORED, Toy, counted, token_loss
from tests.fixtures.training import network, part, same, training, weights
from trainer.device.precision import Precision
from trainer.engine.callbacks.callback import Callback, TakenSteps
from trainer.engine.callbacks.callback_list import Callbacks
from trainer.engine.loop import fit
from trainer.engine.measurement import best_of, is_due, require_finite, sums_since
from trainer.engine.state import Epoch, Sums
from trainer.engine.steps.step_strategy import choose_step
from trainer.engine.training import Plan, Training, new_training
from trainer.runtime.errors import TrainerError

BATCHES = 7  # of an epoch of the fixture's run: 50 rows, 8 at a time


def run(**more: Any) -> tuple[Training, list[Epoch]]:
    made = training(**more)
    return made, fit(made)


@pytest.mark.parametrize(
    ("more", "steps"),
    [
        ({}, [None, None, None]),
        ({"max_steps": 10}, [7, 10]),
        ({"max_steps": 14}, [7, 14]),
        ({"max_steps": 3}, [3]),
        ({"eval_every": 5}, [5, 10, 15, 20, 21]),
        ({"eval_every": 7}, [7, 14, 21]),
        ({"eval_every": 5, "max_steps": 10}, [5, 10]),
        ({"eval_every": 5, "max_steps": 12}, [5, 10, 12]),
        ({"eval_every": 100}, [21]),
        ({"eval_every": 1, "max_steps": 9}, list(range(1, 10))),
    ],
)
def test_run_is_measured_after_the_given_steps(more: dict[str, Any], steps: list[int | None]) -> None:
    made, history = run_with(more)
    assert [epoch.step for epoch in history] == steps
    assert made.state.step == (steps[-1] or 3 * BATCHES)


def run_with(more: dict[str, Any]) -> tuple[Training, list[Epoch]]:
    made = tokens(**more)
    return made, fit(made)


@pytest.mark.parametrize("make", ["rows", "tokens"])
def test_training_loss_of_measurements_is_that_of_their_batches(make: str) -> None:
    losses: list[tuple[float, float]] = []
    made = {"rows": planned, "tokens": tokens}[make](eval_every=5)
    record(made, losses)
    history = fit(made)
    for epoch, since in zip(history, (0, 5, 10, 15, 20), strict=True):
        assert epoch.step is not None
        batches = losses[since : epoch.step]
        mean = sum(loss * weight for loss, weight in batches) / sum(weight for _, weight in batches)
        assert epoch.train_loss == pytest.approx(mean, rel=1e-5)


def record(made: Training, losses: list[tuple[float, float]]) -> None:
    """Note each step's loss and weight when its optimizer step is done."""
    weights_seen: list[float] = []

    def note(*_: Any) -> None:
        state = made.state
        rows = made.sampler.sizes(state.epoch)[state.batch].item()
        weights_seen.append(rows if made.batch_weight is None else state.weights[state.batch].item())

    class Losses(Callback):
        def on_step_end(self, run: Any, taken: TakenSteps) -> None:
            losses.append((taken.losses[-1].item(), weights_seen[-1]))

    made.callbacks = Callbacks([Losses()])
    made.optimizer.register_step_post_hook(note)


def test_batch_is_weighted_by_counted_tokens_however_it_is_cut() -> None:
    whole, pieces, single = (weights(tokens(micro_batch=size, model=still())) for size in (None, 3, 1))
    for name, value in whole.items():
        torch.testing.assert_close(pieces[name], value, rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(single[name], value, rtol=1e-4, atol=1e-6)


def still() -> Toy:
    """Without dropout, whose draws depend on the cut."""
    torch.manual_seed(3)
    made = Toy()
    made.dropout = nn.Identity()  # type: ignore[assignment]
    return made


def test_loss_of_a_step_is_the_mean_over_tokens() -> None:
    made = tokens(max_steps=1, learning_rate=1e-12, model=still())
    batch = made.sampler.order(0)[:8]
    inputs, targets = made.train.rows(batch, made.device)
    with torch.no_grad():
        logits = made.model(**inputs)
    mean = nn.functional.cross_entropy(logits.reshape(-1, 11), targets.reshape(-1), ignore_index=IGNORED).item()
    (epoch,) = fit(made)
    assert epoch.train_loss == pytest.approx(mean, rel=1e-6)


def test_validation_loss_is_the_mean_over_tokens() -> None:
    made = tokens(max_steps=2, micro_batch=4)
    (epoch,) = fit(made)
    inputs, targets = made.validation.rows(torch.arange(15), made.device)
    with torch.no_grad():
        made.model.eval()
        mean = (token_loss(made.model(**inputs), targets) / counted(targets)).item()
    assert epoch.validation_loss == pytest.approx(mean, rel=1e-6)


def test_loss_summed_in_16_bits_is_refused() -> None:
    def rounded(outputs: Tensor, targets: Tensor) -> Tensor:
        return token_loss(outputs, targets).bfloat16()

    with pytest.raises(TypeError, match="bfloat16"):
        fit(tokens(loss_sum=rounded))


def test_losses_are_summed_in_32_bits_under_autocast() -> None:
    seen: list[torch.dtype] = []

    def noting(outputs: Tensor, targets: Tensor) -> Tensor:
        seen.append(outputs.dtype)
        return token_loss(outputs, targets)

    made = tokens(loss_sum=noting, precision=Precision(name="bf16", reason="test", device_type="cpu"), max_steps=3)
    (epoch,) = fit(made)
    assert set(seen) == {torch.bfloat16}
    assert made.state.losses.dtype == torch.float32
    assert epoch.train_loss != torch.tensor(epoch.train_loss).bfloat16().item()


def test_early_stop_ends_the_run_after_measurements_without_gain() -> None:
    made, history = run_with({"epochs": 100, "learning_rate": 0.5, "patience": 3})
    losses = [epoch.validation_loss for epoch in history]
    assert len(history) < 100
    assert len(history) - 1 - losses.index(min(losses)) == 3
    assert made.state.batch == 0


def test_run_without_patience_never_ends_early() -> None:
    assert len(run_with({"epochs": 30, "learning_rate": 0.5})[1]) == 30


@pytest.mark.parametrize("more", [{}, {"eval_every": 4}])
def test_clipped_gradients_have_at_most_this_norm(more: dict[str, Any]) -> None:
    norms: list[float] = []
    made = tokens(clip_norm=0.05, **more)
    made.optimizer.register_step_pre_hook(
        lambda *_: norms.append(
            torch.stack([w.grad.norm() for w in made.model.parameters() if w.grad is not None]).norm().item()
        )
    )
    fit(made)
    assert len(norms) == 3 * BATCHES
    assert max(norms) == pytest.approx(0.05, rel=1e-3)


def test_gradients_below_the_limit_stay_to_the_bit() -> None:
    assert same(weights(planned(clip_norm=1e6)), weights(planned()))


def test_best_weights_on_the_host_are_the_same() -> None:
    assert same(weights(planned(best_on_host=True)), weights(planned()))


def test_epoch_without_the_new_settings_has_the_fields_it_always_had() -> None:
    _, history = run()
    assert list(json.loads(json.dumps(history[0].facts()))) == [
        *("epoch", "train_loss", "validation_loss", "best", "batches", "skipped")
    ]


@pytest.mark.parametrize(
    "more", [{"eval_every": 3}, {"max_steps": 10}, {"eval_every": 4, "max_steps": 11, "patience": 2}]
)
def test_steps_taken_several_at_a_time_are_measured_like_single_ones(more: dict[str, Any]) -> None:
    found = []
    for way in ("eager", "direct"):
        plan = Plan(**({"epochs": 3, "batch_size": 8, "learning_rate": 1e-2, "seed": 0} | more))
        made = new_training(network(noisy=False), part(), part(20, 1), plan)
        assert choose_step(way, made).name == way
        assert (made.launches is not None) == (way == "direct")
        found.append(([epoch.facts() for epoch in fit(made)], made.model.state_dict()))
    (eager, weights_of_eager), (direct, weights_of_direct) = found
    assert eager == direct
    assert same(weights_of_eager, weights_of_direct)


@pytest.mark.parametrize(
    ("every", "epoch", "ended", "measured", "due"),
    [
        (None, 0, False, None, True),
        (None, 2, False, 14, True),
        (5, 0, False, None, False),
        (5, 1, False, None, False),
        (5, 2, False, None, True),  # the third epoch of three
        (5, 0, True, None, True),
        (5, 2, False, 13, True),
        (5, 2, False, 14, False),  # this very step is measured already
    ],
)
def test_end_of_an_epoch_is_measured_unless_steps_decide(
    every: int | None, epoch: int, ended: bool, measured: int | None, due: bool
) -> None:
    made = training(epochs=3)
    made.plan, made.state.epoch, made.state.step = replace(made.plan, eval_every=every), epoch, 14
    made.stop_agreed = ended
    history = Epoch(
        epoch=1, train_loss=1, validation_loss=1, seconds=1, rows_per_second=1, best=True, batches="", step=measured
    )
    made.state.history = [history] if measured else []
    assert is_due(made) is due


def test_sums_count_the_batches_since_the_last_measurement_by_their_rows() -> None:
    made = training()  # 50 rows, 8 at a time: the seventh batch has 2
    made.state.counted, made.state.batch = 5, 7
    made.state.sums = Sums(loss=1.0, weight=3.0, rows=4)
    losses = torch.tensor([9.0, 9.0, 9.0, 9.0, 9.0, 0.5, 2.0])
    assert sums_since(made, losses) == Sums(loss=1.0 + 0.5 * 8 + 2.0 * 2, weight=3.0 + 10, rows=14)
    made.state.batch = 5
    assert sums_since(made, losses) == made.state.sums


@pytest.mark.parametrize("losses", [(float("nan"), 1.0), (1.0, float("inf")), (-float("inf"), 1.0)])
def test_loss_that_is_not_finite_ends_the_run_with_its_epoch(losses: tuple[float, float]) -> None:
    require_finite(3, 1e300, -1.0)
    with pytest.raises(TrainerError, match="RM530") as caught:
        require_finite(3, *losses)
    assert caught.value.where == "epoch 3"


@pytest.mark.parametrize("on_host", [True, False])
def test_best_weights_are_copies_that_later_steps_do_not_change(on_host: bool) -> None:
    made = training()
    made.plan = replace(made.plan, best_on_host=on_host)
    kept = best_of(made)
    before = {name: value.clone() for name, value in kept.items()}
    with torch.no_grad():
        for value in made.model.parameters():
            value.add_(1.0)
    assert same(kept, before)
    assert not same(best_of(made), before)

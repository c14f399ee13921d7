"""The choice of captured passes, with a STAND-IN for graphs and for the clock."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.fixtures.captured_stand_in import StandIn, language_run
from tests.fixtures.training import network, same
from trainer.engine.steps import captured_trial
from trainer.engine.steps.captured_trial import Passed, PassTrial, distance, reason_against, shaken
from trainer.engine.steps.step_strategy import choose_step
from trainer.engine.training import Training
from trainer.models.adapters.lora import LoraConfig, add_lora
from trainer.runtime.errors import TrainerError

CARD = torch.device("cuda", 0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A card by name, whose passes take the seconds named here."""
    times = SimpleNamespace(eager=0.4, graph=0.1, waiting=0.1)

    def timed(run: Training, batch: Any) -> tuple[float, float]:
        captured_trial.taken(run, batch)
        return (times.eager if run.captured is None else times.graph), times.waiting

    monkeypatch.setattr(captured_trial, "timed", timed)
    monkeypatch.setattr(captured_trial, "CapturedPass", StandIn)
    monkeypatch.setattr(captured_trial, "on_card", lambda device: True)
    return times


def test_graphs_that_are_right_and_faster_are_used(clock: SimpleNamespace) -> None:
    run = language_run()
    before = {name: value.clone() for name, value in run.model.state_dict().items()}
    choice = choose_step("auto", run)
    assert (choice.name, choice.same_bits) == ("graph", True)
    assert "the same bits as eager; 100.0 ms for forward and backward, eager 400.0" in choice.reason
    assert isinstance(run.captured, StandIn)
    assert same(run.model.state_dict(), before)
    assert all(weight.grad is None for weight in run.model.parameters())


@pytest.mark.parametrize(
    ("eager", "graph", "waiting", "why"),
    [(0.1, 0.099, 0.1, "not faster"), (0.4, 0.1, 0.51, "the card works for 51%")],
)
def test_graphs_without_a_gain_are_used_only_on_request(
    clock: SimpleNamespace, eager: float, graph: float, waiting: float, why: str
) -> None:
    clock.eager, clock.graph, clock.waiting = eager, graph, waiting
    run = language_run()
    choice = choose_step("auto", run)
    assert choice.name == "eager"
    assert why in choice.reason
    assert run.captured is None
    assert choose_step("graph", language_run()).name == "graph"


def test_graph_that_computes_the_rows_of_its_capture_is_found_out(
    clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StandIn, "stale", True)
    run = language_run()
    assert "off eager's" in choose_step("auto", run).reason
    with pytest.raises(TrainerError, match="RM585"):
        choose_step("graph", language_run())
    assert run.captured is None


def test_graph_that_holds_values_of_weights_is_found_out(
    clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Frozen(StandIn):
        def _passed(self, fixed: Any) -> torch.Tensor:
            if not hasattr(self, "values"):
                self.values = [weight.detach().clone() for weight in self.training.model.parameters()]
            now = [weight.detach().clone() for weight in self.training.model.parameters()]
            self._put(self.values)
            loss = super()._passed(fixed)
            self._put(now)
            return loss

        @torch.no_grad()
        def _put(self, values: list[torch.Tensor]) -> None:
            for weight, value in zip(self.training.model.parameters(), values, strict=True):
                weight.data.copy_(value)

    monkeypatch.setattr(captured_trial, "CapturedPass", Frozen)
    assert "off eager's" in choose_step("auto", language_run()).reason


def refusals() -> Iterator[Any]:
    yield "graphs are for cards", lambda run: None, {}
    yield "several ranks", lambda run: setattr(run.ranks, "world_size", 2), {"card": True}
    yield "loss scaler", lambda run: setattr(run, "scaler", object()), {"card": True}
    yield "does not say", lambda run: setattr(run, "model", network()), {"card": True}
    yield "wrapped or compiled", lambda run: setattr(run, "forward", object()), {"card": True}
    yield "no whole micro-batch", lambda run: setattr(run.state.micro_batch, "size", 21), {"card": True}
    yield "tokens without loss", lambda run: setattr(run.model, "drop_ignored", True), {"card": True}
    yield "dropout draws", adapted_with_dropout, {"card": True}
    yield "wait on the host", lambda run: None, {"card": True, "checkpointing": "offloaded"}
    yield "by document", lambda run: setattr(first(run).self_attn, "backend", "documents"), {"card": True}
    yield "class of transformers", lambda run: setattr(run.model, "decoder", torch.nn.Linear(1, 1)), {"card": True}


def first(run: Training) -> Any:
    return run.model.decoder.blocks[0]  # type: ignore[union-attr, operator]


def adapted_with_dropout(run: Training) -> None:
    add_lora(run.model.decoder, LoraConfig(rank=2, targets=("q_proj",), dropout=0.1), seed=1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("why", "change", "how"), list(refusals()), ids=lambda value: value if type(value) is str else ""
)
def test_reasons_against_a_graph(why: str, change: Any, how: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captured_trial, "on_card", lambda device: how.get("card", False))
    run = language_run(**{name: value for name, value in how.items() if name != "card"})
    if how.get("card"):
        assert reason_against(run, requested=False) is None or how.get("checkpointing")
    change(run)
    assert why in (reason_against(run, requested=False) or "")


def test_amd_cards_and_dropped_tokens_need_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captured_trial, "on_card", lambda device: True)
    run = language_run()
    run.model.drop_ignored = True  # type: ignore[assignment]
    assert reason_against(run, requested=True) is None
    run = language_run()
    monkeypatch.setattr(torch.version, "hip", "7.2")
    assert "never tried on an AMD card" in (reason_against(run, requested=False) or "")
    assert reason_against(run, requested=True) is None


@pytest.mark.parametrize("fails", [False, True])
def test_tokens_without_loss_are_computed_while_graphs_are_used(clock: SimpleNamespace, fails: bool) -> None:
    run = language_run()
    run.model.drop_ignored = True  # type: ignore[assignment]
    if fails:
        StandIn.stale = True
    try:
        if fails:
            with pytest.raises(TrainerError, match="RM585"):
                choose_step("graph", run)
        else:
            choose_step("graph", run)
    finally:
        StandIn.stale = False
    assert run.model.drop_ignored is fails


def test_shaken_weights_differ_and_come_back_to_the_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    run = language_run(lora=True)
    before = {name: value.clone() for name, value in run.model.state_dict().items()}
    with shaken(run.model):
        changed = {name for name, value in run.model.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == {name for name, weight in run.model.named_parameters() if weight.requires_grad}
    assert same(run.model.state_dict(), before)
    monkeypatch.setattr(captured_trial, "SHAKEN", 16)
    with shaken(run.model):
        changed = {name for name, value in run.model.state_dict().items() if not torch.equal(value, before[name])}
    assert len(changed) == 1


def passed(loss: float, norms: list[float], sums: list[float]) -> Passed:
    return Passed(loss=torch.tensor(loss), norms=torch.tensor(norms), sums=torch.tensor(sums))


def test_distance_is_relative_to_loss_and_norms() -> None:
    one = passed(2.0, [4.0, 1.0], [0.5, 0.1])
    assert distance(one, one) == 0
    assert distance(passed(2.2, [4.0, 1.0], [0.5, 0.1]), one) == pytest.approx(0.1)
    assert distance(passed(2.0, [4.4, 1.0], [0.5, 0.1]), one) == pytest.approx(0.1)
    assert distance(passed(2.0, [4.0, 1.0], [0.5, 0.3]), one) == pytest.approx(0.2)
    assert distance(passed(2.0, [float("nan"), 1.0], [0.5, 0.1]), one) == float("inf")


def test_gradients_that_are_rounding_alone_weigh_little() -> None:
    one, other = passed(1.0, [10.0, 1e-9], [0.0, 1e-10]), passed(1.0, [10.0, 3e-9], [0.0, 2e-10])
    assert distance(one, other) < 1e-8


def test_noise_of_eager_passes_is_allowed_and_more_is_not() -> None:
    def trial(apart: float, noise: float) -> PassTrial:
        captured: Any = None
        return PassTrial(captured=captured, apart=apart, noise=noise, eager=1.0, faster=0.5)

    assert trial(0.0, 0.0).fault(requested=False) is None
    assert trial(0.039, 0.01).fault(requested=False) is None
    assert "4.1e-02 off" in (trial(0.041, 0.01).fault(requested=True) or "")
    assert "within the noise" in trial(0.01, 0.01).reason()

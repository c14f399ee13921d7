"""Batches that grow: sizes by epoch, steps, graphs, placements and resume."""

from __future__ import annotations

import json
import struct
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.fixtures.graph_stand_in import StandIn
from tests.fixtures.training import ROWS, OnMeasured, gone_on, interrupted, joined, network, same, training, weights
from trainer.config.batch_schedule import CONSTANT, BatchSchedule, parse_batch_schedule
from trainer.config.train import TrainConfig
from trainer.data.loading.placement import Feed, place
from trainer.data.loading.sampler import Sampler
from trainer.device.memory import OutOfMemory
from trainer.distributed.collectives import Ranks
from trainer.distributed.watchdog.heartbeat import HeartbeatWriter, read_beat
from trainer.engine.batch_size_change import require_rows, rows_at_most
from trainer.engine.callbacks.callback import Callback
from trainer.engine.callbacks.callback_list import Callbacks
from trainer.engine.loop import fit
from trainer.engine.lr_schedule import Shape, schedule_of
from trainer.engine.state import Epoch
from trainer.engine.steps.batch_size_probe import can_be_timed
from trainer.engine.steps.step_strategy import choose_step
from trainer.engine.training import Training
from trainer.models.mlp import mlp
from trainer.run.checkpoint_writer import capture
from trainer.run.rank_setup import alike
from trainer.run.resume_settings import with_settings_of
from trainer.runtime.errors import TrainerError
from trainer.storage.checkpoint_tree import encode

GROWING = BatchSchedule(changes=((2, 16), (3, 50)))  # 7, 4 and 1 batches: steps 1 to 7, 8 to 11, 12


STEPS = 12


@pytest.fixture(autouse=True)
def faster_by_decree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainer.engine.steps.step_strategy.FASTER", 0.0)


def small() -> nn.Sequential:
    torch.manual_seed(1)
    return mlp(3, (8, 4))


def scheduled(step: str = "eager", schedule: BatchSchedule = GROWING, **more: Any) -> Training:
    made = training(model=network() if step == "eager" else small(), batch_schedule=schedule, **more)
    choose_step(step, made)
    return made


def ended(made: Training) -> dict[str, bytes]:
    """Return the bytes of all that the next step would depend on, without the clock's."""
    fit(made)
    tree = capture(made)
    assert tree is not None
    for epoch in tree["state"]["history"]:
        epoch["seconds"] = epoch["rows_per_second"] = 0.0
    return joined(encode(tree))


class Sizes(Callback):
    """Notes the micro-batch after each measurement."""

    def __init__(self, sizes: list[int]) -> None:
        self.sizes = sizes

    def on_validation_end(self, run: Any, measured: Any) -> None:
        self.sizes.append(run.state.micro_batch.size)


class Log(Callback):
    """Keeps the lines of batches.jsonl, and no checkpoint."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def on_batch_log(self, run: object, line: dict[str, Any]) -> None:
        self.lines.append(line)


def test_sizes_are_those_of_the_epochs_that_the_run_counts() -> None:
    sampler = Sampler(rows=ROWS, batch_size=8, seed=0, schedule=parse_batch_schedule("3:16,5:50"))
    assert [sampler.size(epoch) for epoch in range(6)] == [8, 8, 16, 16, 50, 50]
    assert [sampler.count(epoch) for epoch in range(6)] == [7, 7, 4, 4, 1, 1]
    assert [sampler.steps(epochs) for epochs in (1, 2, 3, 4, 5, 6)] == [7, 14, 18, 22, 23, 24]
    assert sampler.different(0, 6) == [8, 16, 50]
    assert sampler.different(3, 6) == [16, 50]
    assert sampler.different(0, 2) == [8]
    for epoch in range(6):
        assert sampler.sizes(epoch).tolist() == [float(len(rows)) for rows in sampler.batches(epoch)]


def test_row_order_is_the_same_whatever_the_schedule() -> None:
    plain, other = (Sampler(rows=ROWS, batch_size=8, seed=4, schedule=each) for each in (CONSTANT, GROWING))
    for epoch in range(4):
        assert torch.equal(torch.cat(list(plain.batches(epoch))), torch.cat(list(other.batches(epoch))))


def test_batches_without_a_schedule_are_those_before_schedules_existed() -> None:
    """The hash over all batches of three epochs, from before there were schedules."""
    assert fit(scheduled("eager", CONSTANT))[-1].batches == "5ef2b0cd961e71105aaabda500ffad11"


@pytest.mark.parametrize("step", ["eager", "direct"])
def test_schedule_that_changes_nothing_gives_the_very_bytes(step: str) -> None:
    expected = ended(scheduled(step, CONSTANT))
    assert ended(scheduled(step, BatchSchedule(changes=((2, 8),)))) == expected
    assert ended(scheduled(step, BatchSchedule(changes=((9, 16),)))) == expected
    assert ended(scheduled(step, GROWING)) != expected


@pytest.mark.parametrize("at", [3, 7, 8, 9, 11])
@pytest.mark.parametrize(("before", "after"), [("eager", "eager"), ("direct", "direct"), ("direct", "plain")])
def test_stopped_run_resumes_before_at_and_after_a_change(at: int, before: str, after: str) -> None:
    makes = {"plain": lambda **more: training(model=small(), batch_schedule=GROWING, **more)}
    first, second = (makes.get(each, partial(scheduled, each)) for each in (before, after))
    expected = ended(first())
    resumed = gone_on(second, interrupted(first, at))
    assert resumed.state.step == at
    assert ended(resumed) == expected
    assert resumed.state.step == STEPS


def test_several_steps_at_a_time_are_single_ones_at_each_size() -> None:
    made, plain = scheduled("direct"), training(model=small(), batch_schedule=GROWING)
    assert made.launches is not None
    assert sorted(made.launches.steps) == [8, 16, 50]  # type: ignore[attr-defined]
    assert plain.launches is None
    assert ended(made) == ended(plain)


def test_sizes_are_each_chosen_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "trainer.engine.steps.step_strategy.MOST_FLOPS", {"cpu": 6 * 73 * 20}
    )  # fewer than a step over 50 rows takes
    made = training(model=small(), batch_schedule=GROWING)
    choice = choose_step("auto", made)
    assert made.launches is not None
    assert sorted(made.launches.steps) == [8, 16]  # type: ignore[attr-defined]
    assert choice.name == "direct"
    assert "batches of 50 eager, auto: not direct" in choice.reason
    assert "bound by arithmetic" in choice.reason
    assert ended(made) == ended(training(model=small(), batch_schedule=GROWING))


def test_size_that_is_not_possible_is_reported_before_the_first_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "trainer.engine.steps.manual_autograd.why_not", lambda made: "no" if made.sampler.batch_size == 50 else None
    )
    with pytest.raises(TrainerError, match="RM585"):
        choose_step("direct", training(model=small(), batch_schedule=GROWING))


def test_sizes_each_have_a_graph_with_a_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainer.engine.steps.cuda_graph.addresses", lambda training: ())
    monkeypatch.setattr("trainer.engine.steps.cuda_graph.why_not", lambda training: None)
    monkeypatch.setattr("trainer.engine.steps.cuda_graph.GraphSteps", StandIn)
    made = training(model=small(), batch_schedule=GROWING)
    assert choose_step("graph", made).same_bits
    sizes = {size: steps.size for size, steps in made.launches.steps.items()}  # type: ignore[union-attr]
    assert sizes == {8: 8, 16: 16, 50: 50}
    assert ended(made) == ended(training(model=small(), batch_schedule=GROWING))


@pytest.mark.parametrize("name", ["host", "mapped"])
@pytest.mark.parametrize("workers", [0, 2])
def test_placements_all_follow(name: str, workers: int) -> None:
    made = training(batch_schedule=GROWING, loader_workers=workers)
    made.train = place([made.train], Feed(name=name, reason="test"), torch.device("cpu"))
    assert ended(made) == ended(training(batch_schedule=GROWING))


def test_log_and_the_history_have_each_epochs_own_batches(capsys: pytest.CaptureFixture[str]) -> None:
    keeper = Log()
    made = training(batch_schedule=GROWING, callbacks=Callbacks([keeper]))
    history = fit(made)
    assert [line["first_step"] for line in keeper.lines] == [1, 8, 12]
    assert [len(line["links"]) // 8 for line in keeper.lines] == [7, 4, 1]
    assert [len(line["losses"]) // 8 for line in keeper.lines] == [7, 4, 1]
    assert [line["head"] for line in keeper.lines] == [epoch.batches for epoch in history]
    bits = bytes.fromhex(keeper.lines[2]["losses"])
    assert struct.unpack(">f", bits)[0] == pytest.approx(history[2].train_loss)
    events_ = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["epoch"], one["rows"], one["batches"]) for one in events_] == [(2, 16, 4), (3, 50, 1)]


def test_weights_of_batches_get_room_too() -> None:
    made = training(batch_schedule=GROWING, batch_weight=lambda targets: targets.new_tensor(float(len(targets))))
    found = weights(made)
    plain = training(batch_schedule=GROWING)
    assert same(found, weights(plain))
    assert made.state.history[-1].facts() == plain.state.history[-1].facts()


def test_cosine_ends_with_the_last_step() -> None:
    def made(**more: Any) -> Training:
        run = training(batch_schedule=GROWING, **more)
        shape = Shape(name="cosine", steps=run.sampler.steps(run.epochs), warmup=0, decay=1)
        run.scheduler = schedule_of(shape, run.optimizer)
        return run

    whole = made()
    expected = ended(whole)
    assert whole.optimizer.param_groups[0]["lr"] == 0.0
    for at in (7, 8, 11):
        assert ended(gone_on(made, interrupted(made, at))) == expected


class Short(nn.Sequential):
    """A network that runs out of memory above ten rows."""

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = super().forward(inputs)
        if self.training and len(inputs) > 10:
            raise OutOfMemory("HIP out of memory")
        return outputs


def test_size_that_memory_allowed_stays_the_limit_of_larger_batches() -> None:
    made = training(model=Short(*small()), batch_schedule=GROWING, guarded=True)
    sizes = []
    made.callbacks = Callbacks([Sizes(sizes)])
    fit(made)
    assert sizes == [8, 8, 8]
    assert (made.state.micro_batch.limit, made.state.micro_batch.halvings) == (50, 1)


def test_rows_at_a_time_grow_with_the_batch_up_to_what_was_requested() -> None:
    for requested, expected in ((None, [8, 16, 50]), (12, [8, 12, 12]), (4, [4, 4, 4])):
        made = training(batch_schedule=GROWING, micro_batch=requested)
        sizes: list[int] = []
        made.callbacks = Callbacks([Sizes(sizes)])
        fit(made)
        assert sizes == expected
    files = interrupted(partial(training, batch_schedule=GROWING), 9)
    made = gone_on(partial(training, batch_schedule=GROWING), files)
    made.most_rows = 9  # what an attempt left that could not be undone
    assert rows_at_most(made) == 9


def test_batch_of_more_rows_than_there_are_is_refused_by_name() -> None:
    require_rows(GROWING, 50)
    with pytest.raises(TrainerError, match="RM500") as caught:
        require_rows(GROWING, 49)
    assert caught.value.what == "--batch-schedule 3:50: the training part has 49 rows"


def test_resumed_run_keeps_its_schedule() -> None:
    stored = {"config": json.loads(json.dumps(TrainConfig.of(batch_schedule=GROWING).as_dict()))}
    assert stored["config"]["batch_schedule"] == "2:16,3:50"
    assert with_settings_of(TrainConfig.of(), "one", stored).loop.batch_schedule == GROWING
    assert with_settings_of(TrainConfig.of(batch_schedule=GROWING), "one", stored).loop.batch_schedule == GROWING
    earlier = {"config": {name: value for name, value in stored["config"].items() if name != "batch_schedule"}}
    assert with_settings_of(TrainConfig.of(), "one", earlier).loop.batch_schedule == CONSTANT
    for before, was in ((stored, "2:16,3:50"), (earlier, "none")):
        with pytest.raises(TrainerError, match=f"(?s)RM551.*--batch-schedule {was}"):
            with_settings_of(TrainConfig.of(batch_schedule=BatchSchedule(changes=((2, 32),))), "one", before)


def test_ranks_with_other_schedules_are_not_alike() -> None:
    assert "batch_schedule" in alike()


def test_growing_batches_get_no_suggestion_to_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainer.engine.steps.batch_size_probe.LARGER", 2)
    monkeypatch.setattr("trainer.engine.steps.batch_size_probe.FEWEST", 1)
    for schedule, expected in ((CONSTANT, True), (BatchSchedule(changes=((2, 12),)), True), (GROWING, False)):
        made = training(batch_schedule=schedule)
        assert can_be_timed(made, choose_step("eager", made)) == expected


def test_watchdog_learns_anew_after_a_change(tmp_path: Path) -> None:
    ranks = Ranks()
    with HeartbeatWriter(tmp_path / "rank-0") as beats:
        ranks.heartbeat = beats
        seen: list[int] = []

        def look(_: Epoch) -> None:
            beat = read_beat(tmp_path / "rank-0")
            assert beat is not None
            seen.append(beat.passes["optimizer"])

        schedule = BatchSchedule(changes=((3, 16),))
        fit(training(batch_schedule=schedule, ranks=ranks, callbacks=Callbacks([OnMeasured(look)])))
    assert seen == [7, 14, 4]

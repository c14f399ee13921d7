"""What the loop takes from a configuration."""

import pytest

from trainer.config.train import TrainConfig
from trainer.run.plan import plan_of, requested_attention, rows_tried

DECIDED = {
    "epochs": 7, "learning_rate": 0.25, "seed": 11, "max_steps": 99, "eval_every": 5, "patience": 3, "clip_norm": 0.5,
}  # fmt: skip


@pytest.mark.parametrize("name", DECIDED)
def test_setting_of_the_loop_reaches_the_plan_under_its_name(name):
    assert getattr(plan_of(TrainConfig.of(**{name: DECIDED[name]})), name) == DECIDED[name]


@pytest.mark.parametrize(("where", "on_host"), [("host", True), ("device", False)])
def test_best_weights_are_kept_where_the_setting_has_them(where, on_host):
    assert plan_of(TrainConfig.of(best_on=where)).best_on_host is on_host


@pytest.mark.parametrize(("micro_batch", "rows"), [(None, 64), (16, 16), (128, 64)])
def test_kernel_is_tried_with_the_rows_of_a_step(micro_batch, rows):
    config = TrainConfig.of(batch_size=64, **({} if micro_batch is None else {"micro_batch": micro_batch}))
    assert rows_tried(config) == rows


def test_network_without_attention_asks_for_no_kernel():
    assert requested_attention(TrainConfig.of()) == "auto"

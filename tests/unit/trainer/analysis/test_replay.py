"""A saved step computed again: what shows the failure, the loss that the run had, and files that are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from trainer.analysis import replay
from trainer.models.build import build
from trainer.models.losses import CROSS_ENTROPY
from trainer.runtime.errors import TrainerError
from trainer.telemetry.nan_guard import KIND, VERSION

ARCHITECTURE = {"kind": "mlp", "widths": [3, 4, 1], "activation": "ReLU"}


def saved(tmp_path: Path, *, weight: float = 0.5, **changes: Any) -> Path:
    model = build(ARCHITECTURE)
    for parameter in model.parameters():
        nn.init.constant_(parameter, weight)
    whole = {
        "kind": KIND, "version": VERSION, "step": 7, "suspect": "layer 0", "architecture": ARCHITECTURE,
        "model": model.state_dict(), "inputs": torch.ones(2, 3), "targets": torch.zeros(2, 1),
        "random": [torch.get_rng_state()],
    }  # fmt: skip
    torch.save(whole | changes, tmp_path / "step.pt")
    return tmp_path / "step.pt"


def test_step_that_is_finite_here_returns_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert replay.replay(saved(tmp_path)) == 1
    assert "step 7: all is finite here, on the CPU" in capsys.readouterr().err


def test_weight_whose_products_overflow_returns_0_with_its_layer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replay.replay(saved(tmp_path, weight=3e38)) == 0
    captured = capsys.readouterr()
    assert '"reproduced": true' in captured.out
    assert "is not finite" in captured.err.splitlines()[-1]
    (first,) = (line for line in captured.err.splitlines() if "(Linear)" in line and line.split()[2] == "2x4")
    assert first.split()[3] == "8"  # all of the layer's outputs


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"version": VERSION + 1}, f"this trainer reads {VERSION}"),
        ({"kind": "other"}, "something else"),
        ({"more": 1}, "something else"),
        ({"model": {}}, "weights and architecture differ"),
        ({"architecture": {"kind": "mlp"}}, "no network that this trainer builds"),
        ({"architecture": ["mlp"]}, "no network that this trainer builds"),
        ({"architecture": ARCHITECTURE | {"kind": "os"}}, "no network that this trainer builds"),
        ({"architecture": ARCHITECTURE | {"loss": "hinge"}}, "no network that this trainer builds"),
    ],
)
def test_file_of_another_form_is_refused(tmp_path: Path, changes: dict[str, Any], what: str) -> None:
    with pytest.raises(TrainerError, match="RM508") as caught:
        replay.replay(saved(tmp_path, **changes))
    assert what in caught.value.what


def test_mean_loss_is_the_squared_error_of_a_row() -> None:
    loss = replay.loss_of(ARCHITECTURE, torch.tensor([[1.0], [3.0]]), torch.zeros(2, 1))
    assert loss.item() == 5.0


def test_loss_of_weighted_classes_divides_by_the_weights_of_the_rows() -> None:
    outputs, targets = torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([[0.0], [1.0]])
    weights = [1.0, 3.0]
    described = {**ARCHITECTURE, "loss": CROSS_ENTROPY, "class_weights": weights}
    expected = nn.functional.cross_entropy(outputs, targets[:, 0].long(), weight=torch.tensor(weights))
    assert replay.loss_of(described, outputs, targets).item() == pytest.approx(expected.item(), rel=1e-6)


def test_table_counts_what_is_not_finite_and_shows_the_largest_that_is() -> None:
    values = torch.tensor([[1.0, float("nan")], [float("inf"), -2.5]])
    _, line, empty = replay.table([("x", values), ("none", torch.tensor(float("nan")))]).splitlines()
    assert line.split() == ["x", "2x2", "2", "2.5"]
    assert empty.split() == ["none", "-", "1", "-"]


def test_observers_leave_with_their_block() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    tables: list[tuple[str, torch.Tensor]] = []
    with replay.observing(model, tables):
        model(torch.ones(1, 2))
    model(torch.ones(1, 2))
    assert [name for name, _ in tables] == ["0 (Linear)", "1 (ReLU)"]

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tests.fixtures.guarded_runs import WIDTH, Run
from trainer.cli import main
from trainer.runtime.errors import TrainerError
from trainer.telemetry.nan_guard import Recorded, copied, one_by_one, random_state, set_random_state


class FailingAt(nn.Module):
    """Passes values on until its nth call, then infinity, each time it is computed from the same state."""

    def __init__(self, call: int) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.call = call

    def forward(self, values: Tensor) -> Tensor:
        self.calls += 1
        return values * torch.where(self.calls == self.call, torch.inf, 1.0)


@pytest.mark.parametrize("every", [1, 4, 5, 100])
def test_layer_the_step_and_the_weights_before_it_are_found(tmp_path: Path, every: int) -> None:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(WIDTH, 4), FailingAt(5), nn.Linear(4, 1))
    run = Run(tmp_path, model, every=every)
    with pytest.raises(TrainerError) as caught:
        run.steps(12)
    assert (caught.value.code, caught.value.what) == ("RM506", "the output of layer 1 (FailingAt) is not finite")
    assert caught.value.where == "step 5"
    saved = torch.load(tmp_path / "nan-step-5.pt", weights_only=True)
    assert saved["model"]["1.calls"] == 4
    assert torch.equal(saved["inputs"], run.inputs[40:50])
    torch.manual_seed(1)
    undisturbed = Run(tmp_path, nn.Sequential(nn.Linear(WIDTH, 4), FailingAt(99), nn.Linear(4, 1)))
    torch.manual_seed(1)
    undisturbed.model[0].load_state_dict(nn.Linear(WIDTH, 4).state_dict())
    undisturbed.model[2].load_state_dict(nn.Linear(4, 1).state_dict())
    undisturbed.steps(4)
    assert all(torch.equal(saved["model"][name], value) for name, value in undisturbed.model.state_dict().items())


def test_frozen_weights_are_kept_without_a_copy(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(WIDTH, 4), nn.Linear(4, 1))
    model[0].requires_grad_(requires_grad=False)
    good = Run(tmp_path, model).guard._good
    assert good is not None
    copies = {name: value.data_ptr() != model.state_dict()[name].data_ptr() for name, value in good["model"].items()}
    assert copies == {"0.weight": False, "0.bias": False, "1.weight": True, "1.bias": True}


def test_batch_that_is_not_finite_is_named_as_such(tmp_path: Path) -> None:
    run = Run(tmp_path, every=4)
    run.inputs[33, 1] = torch.nan
    with pytest.raises(TrainerError, match="the inputs of the batch is not finite"):
        run.steps(6)
    assert (tmp_path / "nan-step-4.pt").exists()


def test_replay_shows_the_failure_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(tmp_path)
    with torch.no_grad():
        run.model[2].weight[0, 0] = 3e38  # finite, but its products are not
    run = Run(tmp_path, run.model)  # the guard keeps the weights that it finds at first
    with pytest.raises(TrainerError) as caught:
        run.steps(3)
    file = str(caught.value.next).removeprefix("python -m trainer replay ")
    assert main(["replay", file]) == 0
    captured = capsys.readouterr()
    event = json.loads(captured.out)
    assert (
        event["suspect"]
        == event["recorded"]
        == "the " + str(caught.value.what).removeprefix("the ").removesuffix(" is not finite")
    )
    assert "not finite" in captured.err


def test_weights_without_a_failure_are_those_without_the_guard(tmp_path: Path) -> None:
    guarded, bare = Run(tmp_path, every=2), Run(tmp_path, every=0)
    for run in (guarded, bare):
        run.steps(12)
    assert all(torch.equal(a, b) for a, b in zip(guarded.model.parameters(), bare.model.parameters(), strict=True))
    assert list(tmp_path.iterdir()) == []


def test_finding_of_one_rank_ends_all(tmp_path: Path) -> None:
    run = Run(tmp_path, agree=lambda bad: True)
    with pytest.raises(TrainerError, match="another rank's loss is not finite"):
        run.steps(2)
    assert list(tmp_path.iterdir()) == []


def test_loss_that_overflows_over_finite_outputs_is_named(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.targets[:] = 1e30
    with pytest.raises(TrainerError, match="the loss of finite outputs is not finite"):
        run.steps(1)


def test_model_too_large_to_keep_twice_is_reported(tmp_path: Path) -> None:
    run = Run(tmp_path, most_bytes=10)
    run.inputs[5, 0] = torch.nan
    with pytest.raises(TrainerError) as caught:
        run.steps(2)
    assert "no second copy of the model is kept" in str(caught.value.why)
    assert (tmp_path / "nan-step-1.pt").exists()


def test_failure_that_does_not_repeat_is_reported(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.guard.record(1, [torch.arange(10)], torch.tensor([torch.nan]))
    with pytest.raises(TrainerError) as caught:
        run.guard.check()
    assert "did not repeat" in str(caught.value.why)


@pytest.mark.parametrize("content", [b"", b"no archive", "text", {"kind": "other"}])
def test_file_that_is_no_replay_is_refused(tmp_path: Path, content: object) -> None:
    path = tmp_path / "x.pt"
    path.write_bytes(content) if isinstance(content, bytes) else torch.save(content, path)
    assert main(["replay", str(path)]) == 2
    assert main(["replay", str(tmp_path / "absent.pt")]) == 2


def test_code_in_a_replay_file_is_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Trap:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "sprung",))

    torch.save({"kind": Trap()}, tmp_path / "x.pt")
    assert main(["replay", str(tmp_path / "x.pt")]) == 2
    assert "RM508" in capsys.readouterr().err
    assert not (tmp_path / "sprung").exists()


def test_recorded_steps_are_numbered_one_by_one() -> None:
    rows = [torch.tensor([n]) for n in range(3)]
    steps = [
        Recorded(first=4, rows=rows[:2], losses=torch.tensor([0.5, 1.5])),
        Recorded(first=6, rows=rows[2:], losses=torch.tensor([2.5])),
    ]
    found = one_by_one(steps)
    assert [(each.step, each.rows.item(), each.loss.item()) for each in found] == [
        (4, 0, 0.5),
        (5, 1, 1.5),
        (6, 2, 2.5),
    ]
    assert one_by_one([]) == []


def test_copies_share_no_memory_with_what_they_were_made_of() -> None:
    weight, listed = torch.ones(2, requires_grad=True), [1, {"a": (2.5, None)}]
    made = copied({"weight": weight, "list": listed})
    with torch.no_grad():
        weight.add_(1)
    listed[1]["a"] = ()  # type: ignore[index,call-overload]
    assert made["weight"].tolist() == [1.0, 1.0] and not made["weight"].requires_grad
    assert made["list"] == [1, {"a": (2.5, None)}]


def test_random_numbers_repeat_from_a_kept_state() -> None:
    state = random_state()
    first = torch.rand(3)
    set_random_state(state)
    assert torch.equal(torch.rand(3), first)


@pytest.mark.parametrize(("every", "steps", "looks"), [(3, 2, 0), (3, 3, 1), (3, 4, 1), (0, 9, 0), (1, 1, 1)])
def test_losses_are_looked_at_once_so_many_steps_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int, steps: int, looks: int
) -> None:
    run, seen = Run(tmp_path, every=every), []
    monkeypatch.setattr(run.guard, "check", lambda: seen.append(1))
    run.guard.record(1, [torch.arange(1)] * steps, torch.ones(steps))
    run.guard.begin()
    assert len(seen) == looks


def test_step_that_comes_again_is_counted_once(tmp_path: Path) -> None:
    run = Run(tmp_path, every=3)
    for _ in range(2):
        run.guard.record(7, [torch.arange(1)], torch.tensor([torch.nan]))
    run.guard.record(7, [torch.arange(1)], torch.tensor([1.0]))  # undone, and finite this time
    run.guard.check()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("spare", "kept"), [(0, True), (-1, False)])
def test_second_copy_is_kept_up_to_its_bound(tmp_path: Path, spare: int, kept: bool) -> None:
    size = sum(value.nbytes for value in Run(tmp_path).model.state_dict().values())
    run = Run(tmp_path, most_bytes=3 * size + spare)  # the weights and AdamW's two moments
    assert (run.guard._good is not None) is kept

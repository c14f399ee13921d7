"""What a callback must leave alone: each change is found and named, and reading changes nothing."""

from types import SimpleNamespace

import pytest
import torch

from trainer.engine.callbacks.fingerprint import Fingerprint, bytes_of


def run():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    model(torch.randn(4, 3)).square().sum().backward()
    optimizer.step()
    state = SimpleNamespace(
        step=1, epoch=0, batch=1, skipped=0, micro_batch=SimpleNamespace(size=4), lowest=0.5, history=[1],
        best={"a": object()},
    )  # fmt: skip
    return SimpleNamespace(model=model, optimizer=optimizer, state=state)


def weight(run):
    return next(run.model.parameters())


CHANGES = {
    "weights": lambda r: weight(r).detach().mul_(2),
    "buffers": lambda r: r.model[1].running_mean.add_(1),
    "gradients": lambda r: weight(r).grad.zero_(),
    "the optimizer's state": lambda r: r.optimizer.state[weight(r)]["exp_avg"].add_(1),
    "the optimizer's settings": lambda r: r.optimizer.param_groups[0].update(lr=0.2),
    "requires_grad of a weight": lambda r: weight(r).requires_grad_(False),
    "training or evaluation mode": lambda r: r.model[1].eval(),
    "the position of the run": lambda r: setattr(r.state, "step", 2),
    "the best weights or the history": lambda r: r.state.history.append(2),
}


@pytest.mark.parametrize("content", [False, True])
@pytest.mark.parametrize("name", CHANGES)
def test_change_of_a_part_is_named(name, content):
    made = run()
    before = Fingerprint.of(made, content=content)
    assert before.difference(made) is None
    CHANGES[name](made)
    assert before.difference(made) == name


def test_change_past_the_version_is_found_by_the_content_alone():
    made = run()
    quick, whole = Fingerprint.of(made, content=False), Fingerprint.of(made, content=True)
    weight(made).data[0, 0] += 1
    assert (quick.difference(made), whole.difference(made)) == (None, "weights")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_sum_of_bytes_differs_where_two_values_are_exchanged(dtype):
    one = torch.tensor([0, 1, 0], dtype=dtype)
    assert bytes_of(one) != bytes_of(one.roll(1))
    assert bytes_of(one) == bytes_of(one.clone())
    assert bytes_of(one[:0]) == 0

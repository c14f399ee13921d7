from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim.optimizer import _use_grad_for_differentiable

from trainer.device.compiler_import import MARKED, _unmarked, avoid_compiler_import

ROOT = Path(__file__).resolve().parents[4]
# Trained by both processes, once with what is tested and once with torch's own optimizer.
TRAINED = """
import sys
import torch
from torch import nn

def weights(optimizer_of):
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = optimizer_of(model)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(4, 3)).square().sum().backward()
        optimizer.step()
        schedule.step()
    optimizer.load_state_dict(optimizer.state_dict())
    return [each.detach().flatten().tolist() for each in model.parameters()]
"""
RUN = """
from trainer.engine.optimizer import optimizer_of
print(weights(lambda model: optimizer_of("adamw", model, 0.1, fused=FUSED)))
print(sorted(name for name in sys.modules if name.startswith("torch._dynamo")))
"""


def own_step(self: torch.optim.Optimizer) -> None:
    """Stand in for an optimizer's step."""


as_of_torch: Any = _use_grad_for_differentiable(own_step)


def test_optimizer_of_a_run_steps_without_the_compiler_and_gives_the_values_of_torchs_own() -> None:
    space: dict = {}
    exec(TRAINED, space)
    text = TRAINED + RUN.replace("FUSED", "False")
    done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, check=True)
    found, imported = done.stdout.splitlines()
    assert imported == "[]"
    assert found == str(space["weights"](lambda model: torch.optim.AdamW(model.parameters(), lr=0.1)))


def test_methods_that_are_marked_are_those_of_torch() -> None:
    assert all(hasattr(getattr(torch.optim.Optimizer, name), "__wrapped__") for name in MARKED)


def test_imported_compiler_leaves_optimizers_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.optim.SGD, "step", as_of_torch)
    monkeypatch.setitem(sys.modules, "torch._dynamo", sys)
    avoid_compiler_import()
    assert torch.optim.SGD.step is as_of_torch


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD])
def test_steps_own_of_a_class_lose_their_marks_where_torch_wrapped_them(
    monkeypatch: pytest.MonkeyPatch, kind: type[torch.optim.Optimizer]
) -> None:
    monkeypatch.setattr(kind, "step", as_of_torch)
    monkeypatch.delitem(sys.modules, "torch._dynamo", raising=False)
    avoid_compiler_import()
    assert kind.step is not as_of_torch
    assert kind.step.__wrapped__ is own_step  # type: ignore[attr-defined]


def test_step_that_is_wrapped_otherwise_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    hooked: Any = torch.optim.Optimizer.profile_hook_step(own_step)
    monkeypatch.setattr(torch.optim.SGD, "step", hooked)
    monkeypatch.delitem(sys.modules, "torch._dynamo", raising=False)
    avoid_compiler_import()
    assert torch.optim.SGD.step is hooked


@pytest.mark.parametrize("enabled", [True, False])
def test_gradient_mode_is_off_in_a_step_and_restored_after_one_that_raises(enabled: bool) -> None:
    seen = []

    def step(self: torch.optim.Optimizer, error: Exception | None = None) -> str:
        seen.append(torch.is_grad_enabled())
        if error:
            raise error
        return "stepped"

    optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=0.1)
    with torch.set_grad_enabled(enabled):
        assert _unmarked(step)(optimizer) == "stepped"
        with pytest.raises(KeyError):
            _unmarked(step)(optimizer, KeyError("x"))
        assert torch.is_grad_enabled() is enabled
    assert seen == [False, False]

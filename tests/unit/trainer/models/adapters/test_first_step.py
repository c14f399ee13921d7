"""A step of a few tokens with an adapter by peft: what is refused before a run, and that nothing of it stays."""

from __future__ import annotations

import pytest
import torch

from tests.fixtures.decoders import RAWS
from tests.fixtures.later import imported_later
from trainer.device.precision import Precision
from trainer.models.activation_checkpointing import checkpointed, layers
from trainer.models.adapters import by_peft, first_step
from trainer.models.language.model import LanguageModel
from trainer.models.pretrained import own_class
from trainer.runtime.errors import TrainerError

imported_later("peft", "peft is not installed")
imported_later("transformers", "transformers is not installed")
PLAIN = Precision(name="fp32", reason="", device_type="cpu")
LAYERS = {"target_modules": ["q_proj", "v_proj"]}
METHODS = {
    "PREFIX_TUNING": {"num_virtual_tokens": 2},
    "MULTITASK_PROMPT_TUNING": {"num_virtual_tokens": 2, "num_tasks": 2, "num_ranks": 1},
    "ADALORA": {"init_r": 4, "target_r": 2, "total_step": 9, **LAYERS},
    "LOKR": {"r": 2, **LAYERS},
}


def model_of(kind, choice):
    decoder = own_class.made(RAWS["qwen2"])
    by_peft.wrapped(decoder, {"peft_type": kind, **METHODS[kind]}, seed=0)
    model = LanguageModel(decoder)
    return checkpointed(model, choice, layers(model))


@pytest.mark.parametrize(
    ("kind", "choice", "next_"),
    [
        ("PREFIX_TUNING", "full", "--activation-checkpointing off"),
        ("PREFIX_TUNING", "selective", "--activation-checkpointing off"),
        ("ADALORA", "selective", "--activation-checkpointing full or off"),
        ("MULTITASK_PROMPT_TUNING", "full", "another method"),  # whatever is computed again
    ],
)
def test_method_that_cannot_take_a_step_is_refused_with_what_to_do(kind, choice, next_):
    with pytest.raises(TrainerError) as caught:
        first_step.require_step(model_of(kind, choice), PLAIN, choice, kind=kind)
    assert caught.value.code == "RM712"
    assert kind in caught.value.what
    assert next_ in caught.value.next


@pytest.mark.parametrize(("kind", "choice"), [("PREFIX_TUNING", "off"), ("LOKR", "full")])
def test_step_that_is_taken_leaves_no_gradient_and_no_drawn_number(kind, choice):
    model = model_of(kind, choice)
    weights = [weight.detach().clone() for weight in model.parameters()]
    torch.manual_seed(3)
    first_step.require_step(model, PLAIN, choice, kind=kind)
    drawn = torch.rand(1)
    torch.manual_seed(3)
    assert torch.equal(drawn, torch.rand(1))
    assert all(weight.grad is None for weight in model.parameters())
    assert all(torch.equal(now, before) for now, before in zip(model.parameters(), weights, strict=True))


def test_memory_that_runs_out_is_left_to_the_run(monkeypatch):
    """The error is INJECTED."""

    def full(*_args):
        raise torch.OutOfMemoryError("no room")

    monkeypatch.setattr(first_step, "_loss", full)
    first_step.require_step(model_of("LOKR", "off"), PLAIN, "off", kind="LOKR")

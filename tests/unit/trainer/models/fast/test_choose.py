"""Faster blocks are used where they are right and faster, and left out with the reason."""

from __future__ import annotations

import copy
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from tests.fixtures.fast_blocks import decoder, request, wrapped
from trainer.models.adapters.lora import lora_modules
from trainer.models.fast import block_trial, choose
from trainer.models.fast.elementwise import PLAIN
from trainer.models.fast.proof import Trial


@pytest.mark.parametrize(
    ("name", "factor"), [("inner_backward", 1.01), ("added_and_normed", 1.01), ("heads", 1.01), ("inner", 1.01)]
)
def test_use_fast_of_a_block_one_percent_wrong_leaves_it_out_with_the_error(quick, monkeypatch, name, factor):
    right = getattr(PLAIN, name)

    def wrong(*values):
        made = right(*values)
        if isinstance(made, tuple):
            return (made[0] * factor, *made[1:])
        return made * factor

    broken = replace(PLAIN, **{name: wrong})
    monkeypatch.setattr(choose.elementwise, "compiled", lambda **how: broken)
    monkeypatch.setattr(choose.elementwise, "PLAIN", broken)
    model = wrapped(decoder("qwen2", ("all",)))
    choice = choose.use_fast(model, request()).choices["blocks"]
    assert choice.name == "plain"
    assert "against fp64" in choice.why
    assert all(block.fast is None for block in model.decoder.model.layers)


@pytest.mark.parametrize("wrong", ["up", "down"])
def test_use_fast_of_an_adapter_left_out_of_the_joint_product_is_refused(quick, monkeypatch, wrong):
    right = choose.adapted.Joint.refresh

    def refresh(self):
        right(self)
        getattr(self, wrong).zero_()

    monkeypatch.setattr(choose.adapted.Joint, "refresh", refresh)
    model = wrapped(decoder("qwen2", ("all",)))
    assert choose.use_fast(model, request()).names()["blocks"] == "plain"


def test_use_fast_of_slower_blocks_leaves_them_out(quick, monkeypatch):
    times = iter(range(1, 1000))
    monkeypatch.setattr(block_trial, "seconds_of", lambda work, device: float(next(times)))
    choice = choose.use_fast(wrapped(decoder("llama", ("all",))), request()).choices["blocks"]
    assert choice.name == "plain"


@pytest.mark.parametrize(
    ("seconds", "held", "kept"), [(1.02, 5, True), (1.02, 10, False), (1.2, 5, True), (1.3, 5, False), (0.9, 20, True)]
)
def test_blocks_not_clearly_slower_than_plain_ones_are_used_where_they_hold_less(seconds, held, kept):
    plain = Trial(name="plain", seconds=1.0, held=10)
    assert choose._better(Trial(name="way", seconds=seconds, held=held), plain, requested=False) is kept


@pytest.mark.parametrize(("later", "kept"), [(1.1, True), (1.4, False)])
def test_blocks_that_hold_less_are_timed_again_before_they_are_left_for_their_time(monkeypatch, later, kept):
    times = {"plain": 1.0, "way": later}
    anew = lambda block, trial, request: replace(trial, seconds=min(trial.seconds, times[trial.name]))  # noqa: E731
    monkeypatch.setattr(choose, "timed_again", anew)
    block, found = SimpleNamespace(fast=None), Trial(name="way", seconds=1.5, held=5)
    plain, found = choose._confirmed(block, lambda block: "way", None, Trial(name="plain", seconds=1.0, held=10), found)
    assert (block.fast, found.seconds, plain.seconds) == ("way" if kept else None, later, 1.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"dropout": 0.1}, "dropout"),
        ({"trained": True}, "weights other than the adapters' are trained"),
    ],
)
def test_use_fast_of_a_model_it_cannot_compute_names_the_reason(quick, change, words):
    model = decoder("llama", ("all",))
    if "dropout" in change:
        for _, module in lora_modules(model):
            module.dropout = change["dropout"]
    else:
        model.model.layers[1].input_layernorm.weight.requires_grad_(True)
    choice = choose.use_fast(wrapped(model), request()).choices["blocks"]
    assert (choice.name, words in choice.why) == ("plain", True)


def test_use_fast_of_an_unfinished_run_uses_what_it_chose(quick):
    before = {"attention": "math, grouped", "blocks": "plain", "loss": "plain"}
    model = wrapped(decoder("llama", ("all",)))
    assert choose.use_fast(model, request(before=before)).names() == before
    before["blocks"] = "adapters folded, plain elementwise"
    assert choose.use_fast(model, request(before=before)).names() == before


def test_held_weights_are_those_that_autocast_would_round_to():
    model = decoder("llama", ("q_proj",), dtype=torch.float32)
    before = copy.deepcopy(model)
    choose.hold_frozen_weights_in(model, torch.bfloat16)
    held, was = dict(model.named_parameters()), dict(before.named_parameters())
    assert held["model.layers.0.mlp.up_proj.weight"].dtype == torch.bfloat16
    assert held["model.layers.0.self_attn.q_proj.lora_A"].dtype == torch.float32
    assert held["model.norm.weight"].dtype == torch.float32
    assert all(torch.equal(held[name], was[name].to(held[name].dtype)) for name in held)


def test_held_weights_that_a_load_replaces_are_not_read():
    model = decoder("llama", ("q_proj",), dtype=torch.float32)
    with torch.no_grad():
        model.get_submodule("model.layers.0.mlp.up_proj").weight.fill_(1.5)
    before = copy.deepcopy(model)
    filling = torch.utils.deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = True
    try:
        choose.hold_frozen_weights_in(model, torch.bfloat16, replaced=True)
    finally:
        torch.utils.deterministic.fill_uninitialized_memory = filling
        torch.use_deterministic_algorithms(False)
    held, was = dict(model.named_parameters()), dict(before.named_parameters())
    assert held["model.layers.0.mlp.up_proj.weight"].isnan().all()
    assert held["model.layers.0.mlp.up_proj.weight"].dtype == torch.bfloat16
    trained = [name for name, weight in was.items() if weight.requires_grad]
    assert trained and all(torch.equal(held[name], was[name]) for name in trained)


def test_use_fast_forms_the_results_in_fp64_once_for_all_trials(quick, monkeypatch):
    """They take the host seconds for a large block, and a way that spoils the block's weights must not spoil them."""
    right, calls = choose.exact_results, []
    monkeypatch.setattr(choose, "exact_results", lambda *given: (calls.append(given), right(*given))[1])
    monkeypatch.setattr(block_trial, "exact_results", None)
    monkeypatch.setattr(block_trial, "seconds_of", lambda work, device: 1.0)
    choice = choose.use_fast(wrapped(decoder("llama", ("all",), quantized=True)), request()).choices["blocks"]
    assert len(choice.trials) == 3 and len(calls) == 1


def test_use_fast_refuses_a_way_that_spoils_the_weights_of_the_block_it_was_tried_on(quick, monkeypatch):
    right = choose.adapted.AdaptedBlock.__init__

    def spoiling(self, block, *given, **more):
        right(self, block, *given, **more)
        block.mlp.up_proj.base.weight.mul_(1.5)

    monkeypatch.setattr(choose.adapted.AdaptedBlock, "__init__", spoiling)
    choice = choose.use_fast(wrapped(decoder("llama", ("all",))), request()).choices["blocks"]
    assert choice.name == "plain" and "against fp64" in choice.why

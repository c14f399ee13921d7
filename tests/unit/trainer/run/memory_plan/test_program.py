"""The plan of a step against the bytes that torch's allocator reports for the same step on real tensors."""

import contextlib
from dataclasses import replace

import pytest
from torch.utils.checkpoint import DefaultDeviceType

from benchmarks.plan_error import GPT_SMALL, error_on_host
from tests.fixtures.footprints import ON_CARD, SMALL
from tests.left_out import long, one_of
from trainer.engine import optimizer
from trainer.models.fast import own_gelu
from trainer.run.memory_plan import program as program_module
from trainer.run.memory_plan.allocator import DoesNotFitError
from trainer.run.memory_plan.depth import estimated
from trainer.run.memory_plan.fit import least_bytes
from trainer.run.memory_plan.live_memory import TRIALS
from trainer.run.memory_plan.program import measured
from trainer.run.memory_plan.shapes import Program

ON_HOST = Program(raw=SMALL, rows=4, sequence=128, fast=False, card=False, precision="fp32")


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"adapter": "lora", "checkpointing": "full"},
        {"adapter": "qlora", "precision": "bf16"},
        {"adapter": "lora", "method": "dpo"},
        {"adapter": "lora", "method": "kto", "rows": 1, "group": 3},
        {"optimizer": "adamw8bit"},
        {"optimizer": "muon"},
    ],
    ids=str,
)
def test_plan_for_a_host_equals_what_its_allocator_reports(how):
    planned, real = error_on_host(replace(ON_HOST, **how))
    assert planned == pytest.approx(real, rel=0.01)


def test_optimizers_with_smaller_states_take_less():
    held = {}
    for name in ("adamw", "adamw8bit", "muon", "adamw-host"):
        found = measured(replace(ON_CARD, optimizer=name)).peaks["forward"].parts
        held[name] = found["optimizer"]
        assert least_bytes(replace(ON_CARD, optimizer=name)) <= found["weights"]
    assert held["adamw8bit"] < 0.6 * held["adamw"]
    assert held["muon"] < 0.8 * held["adamw"]
    assert held["adamw-host"] < 2000  # the loop's own numbers


def test_best_weights_are_a_copy_of_what_is_trained():
    base = replace(ON_CARD, adapter="lora", fast=False)
    without, kept = (measured(replace(base, best=each)) for each in (False, True))
    more = kept.peaks["forward"].parts["weights"] - without.peaks["forward"].parts["weights"]
    assert 4 * kept.trained <= more < 4 * kept.trained + 64 * 512


def test_targets_and_dropout_of_an_adapter_are_planned():
    base = replace(ON_CARD, adapter="lora", fast=False)
    whole, few, dropped = (
        measured(replace(base, **how)) for how in ({}, {"targets": ["q_proj"]}, {"targets": ["q_proj"], "dropout": 0.1})
    )
    assert few.trained == 3 * 16 * 2 * 64 < whole.trained
    assert dropped.peaks["forward"].allocated > few.peaks["forward"].allocated


@long
def test_optimizer_with_moments_on_the_host_takes_a_piece_of_them_in_its_step(monkeypatch):
    monkeypatch.setattr(optimizer, "PIECE", 2**10)
    there, away = (measured(replace(ON_CARD, optimizer=name)) for name in ("adamw", "adamw-host"))
    assert away.largest.allocated < there.largest.allocated - 6 * there.trained  # of 8 bytes, and temporaries


def test_checkpointing_holds_less_and_computes_more():
    kinds = ("off", "full", "offloaded")
    off, full, offloaded = (measured(replace(ON_CARD, adapter="lora", checkpointing=each)) for each in kinds)
    assert full.largest.allocated < off.largest.allocated
    assert offloaded.largest.allocated <= 1.02 * full.largest.allocated
    assert full.flops > 1.2 * off.flops


def test_inputs_that_wait_on_the_host_take_nothing_of_the_card():
    deep = replace(ON_CARD, adapter="lora", raw={**ON_CARD.raw, "num_hidden_layers": 12})
    full, offloaded = (measured(replace(deep, checkpointing=each)) for each in ("full", "offloaded"))
    one = deep.rows * deep.sequence * deep.raw["hidden_size"] * 2  # a layer's, in bf16
    held, waiting = (each.peaks["forward"].parts["activations"] for each in (full, offloaded))
    assert 9 * one <= held - waiting <= 11 * one


def test_math_attention_grows_with_the_square_of_the_sequence():
    sizes = {}
    for kernel in ("flash", "math"):
        for sequence in (256, 512):
            program = replace(ON_CARD, rows=1, sequence=sequence, attention=(kernel, kernel))
            sizes[kernel, sequence] = measured(program).largest.parts["activations"]
    assert sizes["flash", 512] < 2.2 * sizes["flash", 256]
    assert sizes["math", 512] > 2.8 * sizes["math", 256]


def test_gradients_stay_through_the_next_micro_batch():
    one, two = (measured(replace(ON_CARD, rows=1, sequence=32, pieces=pieces)) for pieces in (1, 2))
    assert two.peaks["forward"].allocated > one.peaks["forward"].allocated + 3 * one.trained


def test_step_beyond_the_limit_ends_within_it():
    program = replace(ON_CARD, adapter="lora")
    peak = measured(program).largest.allocated
    assert measured(program, limit=2 * peak + 2**26).largest.allocated == peak
    with pytest.raises(DoesNotFitError):
        measured(program, limit=peak // 2)


def test_network_that_is_larger_on_the_host_than_the_limit_is_planned_within_it():
    """Weights are made in fp32, and frozen ones are held in 4 bits."""
    raw = {**SMALL, "hidden_size": 512, "intermediate_size": 1536, "vocab_size": 64, "num_hidden_layers": 12}
    program = replace(ON_CARD, raw=raw, adapter="qlora", rank=2, rows=1, sequence=16, fast=False, checkpointing="full")
    free = measured(program)
    assert measured(program, limit=free.reserved).largest == free.largest
    assert 4 * free.all > free.reserved


@pytest.mark.parametrize("how", one_of([{}, {"adapter": "lora", "checkpointing": "full"}]), ids=str)
def test_trials_beyond_the_limit_give_way_to_the_step(how):
    program = replace(ON_CARD, rows=1, sequence=512, **how)
    free = measured(program)
    limit = free.reserved + 2**21
    assert free.peaks[TRIALS].reserved > limit
    found = measured(program, limit=limit)
    assert found.largest == free.largest
    assert found.flops <= free.flops  # of trials, as far as they went


@long
@pytest.mark.parametrize(
    "windows", [{"max_window_layers": 7}, {"layer_types": ["full_attention"] * 7 + ["sliding_attention"]}]
)
def test_depth_of_blocks_that_differ_is_measured_whole(windows):
    raw = {**SMALL, "num_hidden_layers": 8, "use_sliding_window": True, "sliding_window": 64, **windows}
    program = replace(ON_CARD, raw=raw)
    assert estimated(program).largest == measured(program).largest


@long
def test_own_gelu_is_planned_without_its_output_kept_in_each_layer(monkeypatch):
    raw = {**GPT_SMALL, "n_layer": 2}
    program = replace(ON_CARD, raw=raw, precision="bf16", compiler=True)
    kept = measured(program).peaks["forward"].parts["activations"]
    monkeypatch.setattr(own_gelu, "LEAST", program.rows * program.sequence)
    own = measured(program).peaks["forward"].parts["activations"]
    outputs = program.rows * program.sequence * 4 * raw["n_embd"] * 2  # of one layer, in 16 bits
    assert kept - own == raw["n_layer"] * outputs


def test_checkpoints_of_a_plan_look_at_the_host_and_at_the_card_again_afterwards(monkeypatch):
    """With a card that torch starts in the meantime, torch's checkpoint raises where it looks at the card."""
    monkeypatch.setattr(DefaultDeviceType, "_default_device_type", "cuda")
    with contextlib.suppress(ZeroDivisionError), program_module._checkpoints_of_host():
        assert DefaultDeviceType.get_device_type() == "cpu"
        raise ZeroDivisionError
    assert DefaultDeviceType.get_device_type() == "cuda"

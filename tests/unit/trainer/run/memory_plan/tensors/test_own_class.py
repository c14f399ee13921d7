"""Methods by peft on tensors without data against the bytes that torch's allocator reports for a real step on a CPU."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from benchmarks.plan_error import BY_PEFT, COMMON, FAMILIES, error_on_host
from tests.left_out import one_of
from trainer.run.memory_plan.program import measured
from trainer.run.memory_plan.shapes import Program
from trainer.run.memory_plan.tensors.own_class import own_class_without_data
from trainer.runtime.errors import TrainerError

# Of smaller ones the scratch of a CPU's kernels for 16 bits, which no plan has, is up to 2 % of all: 85 kB of 4.3 MB.
RAW = {**COMMON, **FAMILIES["qwen2"]}
ON_HOST = Program(raw=RAW, adapter="peft", rows=4, sequence=256, fast=False, card=False, precision="fp32")


@pytest.mark.parametrize(
    "how", one_of([{}, {"method": "dpo", "rows": 2}, {"precision": "bf16", "checkpointing": "full"}]), ids=str
)
@pytest.mark.parametrize("name", one_of(BY_PEFT))
def test_plan_of_a_method_by_peft_equals_what_the_hosts_allocator_reports(name, how):
    planned, real = error_on_host(replace(ON_HOST, peft=BY_PEFT[name], **how))
    assert planned == pytest.approx(real, rel=0.001)


def test_frozen_weights_of_a_method_by_peft_are_held_in_sixteen_bits_on_a_card():
    wide, narrow = (
        measured(replace(ON_HOST, peft=BY_PEFT["dora"], card=True, precision="bf16", fast=fast)).largest.parts[
            "weights"
        ]
        for fast in (False, True)
    )
    assert narrow < 0.8 * wide


def test_step_that_a_method_by_peft_cannot_take_is_an_error_with_its_reason():
    prefix = {"peft_type": "PREFIX_TUNING", "num_virtual_tokens": 4}
    with pytest.raises(TrainerError, match="RM712") as caught:
        measured(replace(ON_HOST, peft=prefix, checkpointing="full"))
    assert "PREFIX_TUNING" in caught.value.what and "checkpointing" in caught.value.next


def test_conversion_of_modules_is_torchs_own_again_afterwards():
    before, module = nn.Module._apply, nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    with pytest.raises(TrainerError), own_class_without_data({}):
        assert nn.Module._apply is not before
        kept = module[0].weight
        module.to("cpu")
        assert module[0].weight is kept
        module.double()
        assert {each.dtype for each in (*module.parameters(), module[1].running_mean)} == {torch.float64}
        raise ZeroDivisionError
    assert nn.Module._apply is before

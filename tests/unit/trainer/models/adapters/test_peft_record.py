"""adapter_config.json: what is computed here, what goes through peft, and what is refused."""

from __future__ import annotations

import dataclasses
import json

import pytest

from trainer.models.adapters import peft_record
from trainer.runtime.errors import TrainerError

PLAIN = {"peft_type": "LORA", "r": 8, "lora_alpha": 16}


def folder_of(tmp_path, text):
    (tmp_path / peft_record.CONFIG).write_text(text if isinstance(text, str) else json.dumps(text))
    return tmp_path


@pytest.mark.parametrize("text", ["{", "[]", "[" * 100_000, "1"], ids=range(4))
def test_record_that_is_no_object_is_refused(tmp_path, text):
    with pytest.raises(TrainerError) as caught:
        peft_record.read(folder_of(tmp_path, text))
    assert caught.value.code == "RM712"


def test_record_that_is_missing_is_refused(tmp_path):
    with pytest.raises(TrainerError, match="is missing"):
        peft_record.read(tmp_path)


def test_options_of_the_installed_peft_are_all_known():
    peft = pytest.importorskip("peft")
    fields = {each.name for each in dataclasses.fields(peft.LoraConfig)}
    assert fields <= peft_record.READ | set(peft_record.NEUTRAL)


def test_defaults_of_the_installed_peft_are_computed_here(tmp_path):
    peft = pytest.importorskip("peft")
    record = {
        key: list(value) if isinstance(value, set) else value for key, value in peft.LoraConfig().to_dict().items()
    }
    assert peft_record.is_own(record)
    assert peft_record.require_lora(folder_of(tmp_path, record))["r"] == 8


@pytest.mark.parametrize("option", ["use_dora", "use_bdlora", "kasa_config", "of_next_year"])
def test_option_that_may_change_the_computation_is_not_ignored(tmp_path, option):
    assert not peft_record.is_own({**PLAIN, option: True})
    with pytest.raises(TrainerError, match=option):
        peft_record.require_lora(folder_of(tmp_path, {**PLAIN, option: True}))
    assert peft_record.is_own({**PLAIN, option: None})


@pytest.mark.parametrize("given", ["pissa", "pissa_niter_4", "olora", "loftq", "corda", "lora_ga"])
def test_first_weights_that_change_the_base_are_refused(tmp_path, given):
    with pytest.raises(TrainerError, match="changes the base"):
        peft_record.require_lora(folder_of(tmp_path, {**PLAIN, "init_lora_weights": given}))
    peft_record.require_base_kept({**PLAIN, "init_lora_weights": "gaussian"}, "here")


@pytest.mark.parametrize("value", ["8", None, True, float("nan"), float("inf"), -1, 2])
def test_number_out_of_its_bounds_is_refused(tmp_path, value):
    with pytest.raises(TrainerError, match="no valid number"):
        peft_record.number({"x": value}, "x", tmp_path, most=2)
    assert peft_record.number({"x": 1.5}, "x", tmp_path, most=2) == 1.5


def test_rank_and_targets_are_those_of_peft():
    record = {
        **PLAIN,
        "rank_pattern": {"q_proj": 4, r"layers\.1\.mlp\.up_proj": 2},
        "target_modules": ["q_proj", "up_proj"],
    }
    ranks = [peft_record.rank_of(record, f"model.layers.1.{name}") for name in ("self_attn.q_proj", "mlp.up_proj", "k")]
    assert ranks == [4, 2, 8]
    assert peft_record.is_targeted(record, "layers.0.q_proj")
    assert not peft_record.is_targeted({**record, "exclude_modules": ["q_proj"]}, "layers.0.q_proj")
    assert not peft_record.is_targeted({**record, "layers_to_transform": [1]}, "layers.0.q_proj")
    assert peft_record.is_targeted({**PLAIN, "target_modules": r".*\.q_\w+"}, "layers.0.q_proj")
    assert not peft_record.is_targeted({**PLAIN, "target_modules": "all-linear"}, "layers.0.q_proj")

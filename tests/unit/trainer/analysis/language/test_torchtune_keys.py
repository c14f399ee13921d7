from __future__ import annotations

import pytest

from trainer.analysis.language.torchtune_keys import RULES, Became, Left, rule_of
from trainer.config.recipe import keys

RECIPE = {"model.lora_attn_modules": ["q_proj"], "gradient_accumulation_steps": 2}


def test_rule_of_each_key_takes_null_and_names_known_settings():
    known = {each.name for each in keys().values()}
    for key in RULES:
        for value in (None, True, 2, "torchtune.models.llama2.lora_llama2_7b", ["q_proj"]):
            try:
                became = rule_of(key)(value, RECIPE)
            except (TypeError, ValueError):
                continue
            assert isinstance(became, Left) or set(became.settings) <= known


def test_section_without_a_rule_for_a_key_answers_for_it():
    assert rule_of("profiler.cpu")(True, {}) == RULES["profiler"](True, {})
    assert "no setting" in rule_of("nowhere.at.all")(1, {}).why


def test_quantised_base_is_qlora():
    network = "torchtune.models.llama2.lora_llama2_7b"
    assert rule_of("model._component_")(network, {"model.quantize_base": True}) == Became(
        settings={"adapter": "qlora"}, note="sizes are those of the model folder's config.json"
    )


@pytest.mark.parametrize(
    ("component", "settings"),
    [
        ("torch.optim.AdamW", {"weight_decay": 0.01}),
        ("bitsandbytes.optim.AdamW8bit", {"optimizer": "adamw8bit"}),
        ("bitsandbytes.optim.PagedAdamW8bit", {"optimizer": "adamw8bit"}),
    ],
)
def test_optimizer_of_a_recipe_becomes_the_trainers(component: str, settings: dict[str, object]) -> None:
    found = RULES["optimizer._component_"](component, {})
    assert isinstance(found, Became)
    assert found.settings == settings


def test_key_within_a_section_has_the_rule_of_the_nearest_one_above() -> None:
    assert rule_of("checkpointer.checkpoint_files.max_filename") is RULES["checkpointer.checkpoint_files"]
    assert "config.json" in rule_of("model.embed_dim")(2048, {}).why


@pytest.mark.parametrize(
    ("train", "validation", "settings"),
    [
        ("train[:95%]", "train[95%:]", {"validation_share": 0.05}),
        ("train[:95%]", "train[90%:]", None),
        ("train[:95%]", None, None),
        ("train", "test", None),
    ],
)
def test_parts_of_one_file_are_a_share_that_is_held_out(train, validation, settings) -> None:
    found = RULES["dataset.split"](train, {"dataset_val.split": validation})
    assert getattr(found, "settings", None) == settings

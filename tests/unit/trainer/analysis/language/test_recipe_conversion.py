"""Recipes of torchtune converted; the recipe here is our own, with torchtune's keys."""

from __future__ import annotations

import os

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as some

from trainer.analysis.language.recipe_conversion import convert, converted, leaves, read
from trainer.cli import main
from trainer.config.recipe import find, from_recipe, resolve
from trainer.runtime.errors import TrainerError

LORA = """
output_dir: /tmp/out
model:
  _component_: torchtune.models.qwen2_5.lora_qwen2_5_1_5b_instruct
  lora_attn_modules: [q_proj, output_proj]
  apply_lora_to_mlp: True
  lora_rank: 32
  lora_alpha: 64
tokenizer: {_component_: torchtune.models.qwen2_5.qwen2_5_tokenizer, path: /m/vocab.json, max_seq_len: 1024}
checkpointer:
  _component_: torchtune.training.FullModelHFCheckpointer
  checkpoint_dir: /m
  output_dir: ${output_dir}/weights
dataset: {_component_: torchtune.datasets.alpaca_dataset, packed: True}
seed: 7
shuffle: True
epochs: 3
max_steps_per_epoch: 10
batch_size: 2
gradient_accumulation_steps: 8
optimizer: {_component_: torch.optim.AdamW, lr: 2e-3, fused: True}
lr_scheduler: {_component_: torchtune.training.lr_schedulers.get_cosine_schedule_with_warmup, num_warmup_steps: 5}
loss: {_component_: torchtune.modules.loss.LinearCrossEntropyLoss}
enable_activation_checkpointing: True
dtype: bf16
clip_grad_norm: null
compile: False
unheard_of: {deep: [1, 2], empty: {}}
"""


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "theirs.yaml"
    path.write_text(LORA)
    return path


def test_settings_are_carried_over_and_can_be_trained_with(recipe, tmp_path, capsys):
    output = tmp_path / "ours.yaml"
    assert main(["convert-recipe", "--recipe", str(recipe), "--output", str(output)]) == 0
    config = resolve({"recipe": str(output), "data": tmp_path / "rows.jsonl"})
    assert (config.loop.batch_size, config.compute.micro_batch, config.loop.max_steps) == (16, 2, 30)
    assert config.model.adapter.lora_targets == ("q_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
    assert (config.optimizer.learning_rate, config.optimizer.weight_decay) == (2e-3, 0.01)
    assert (config.compute.activation_checkpointing, config.loop.seed) == ("full", 7)
    shown = capsys.readouterr().err
    assert "unheard_of.deep: [1, 2]" in shown
    assert find(str(output)) == output


def test_conversion_has_each_key_in_one_of_two_lists(recipe):
    conversion = converted(read(recipe))
    listed = [line.key for line in (*conversion.carried, *conversion.left)]
    assert sorted(listed) == sorted(key for key, _ in leaves(yaml.safe_load(LORA)))
    assert all(line.why for line in conversion.left)
    values = {line.key: line.value for line in conversion.left}
    assert values["checkpointer.output_dir"] == "/tmp/out/weights"


@pytest.mark.parametrize(
    ("builder", "targets", "packing"),
    [
        ("gemma2.lora_gemma2_9b", ["q_proj", "o_proj", "gate_proj", "up_proj", "down_proj"], None),
        ("phi3.lora_phi3_mini", ["qkv_proj", "o_proj", "gate_up_proj", "down_proj"], None),
        ("phi4.qlora_phi4_14b", ["qkv_proj", "o_proj", "gate_up_proj", "down_proj"], None),
        ("qwen2_5.lora_qwen2_5_3b", ["q_proj", "o_proj", "gate_proj", "up_proj", "down_proj"], True),
    ],
)
def test_family_of_transformers_alone_has_the_layers_of_its_files_and_no_packing(builder, targets, packing, recipe):
    recipe.write_text(LORA.replace("qwen2_5.lora_qwen2_5_1_5b_instruct", builder))
    found = converted(read(recipe))
    assert (found.settings["lora_targets"], found.settings.get("packing")) == (targets, packing)
    notes = " ".join(line.why for line in found.carried)
    assert ("transformers' own class" in notes) is (packing is None)


VALUES = some.one_of(
    some.none(), some.booleans(), some.integers(-5, 5), some.floats(allow_nan=False), some.text(max_size=5),
    some.lists(some.text(max_size=3), max_size=3),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(some.dictionaries(some.sampled_from([key for key, _ in leaves(yaml.safe_load(LORA))]), VALUES))
def test_whatever_a_known_key_has_for_a_value_it_is_listed_once(values):
    conversion = converted(values)
    assert sorted(line.key for line in (*conversion.carried, *conversion.left)) == sorted(values)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("- a\n", "RM721"),
        ("a: [", "RM721"),
        ("model: {}\n", "RM722"),
        ("teacher_model: {}\nmodel: {}\noptimizer: {}\n", "RM722"),
        ("ref_checkpointer: {}\nmodel: {}\noptimizer: {}\n", "RM722"),
        ("model: {_component_: torchtune.models.t5.t5_encoder}\noptimizer: {}\n", "RM722"),
        (LORA.replace("/m\n", "${nowhere}\n"), "RM723"),
        (LORA.replace("/tmp/out", "${output_dir}"), "RM723"),
        (LORA.replace("/tmp/out", '["${output_dir}"]'), "RM723"),
        (LORA.replace("/tmp/out", "&self [*self]"), "RM723"),
        (LORA.replace("/tmp/out", "&self {a: *self}"), "RM721"),
        (LORA.replace("/tmp/out", "2024-13-45"), "RM721"),
    ],
)
def test_recipe_that_cannot_be_converted_is_refused(text, code, recipe, tmp_path):
    recipe.write_text(text)
    with pytest.raises(TrainerError, match=code):
        convert(recipe, tmp_path / "ours.yaml")
    assert not (tmp_path / "ours.yaml").exists()


def test_file_that_is_there_is_kept(recipe, tmp_path):
    convert(recipe, tmp_path / "ours.yaml")
    with pytest.raises(TrainerError, match="RM724"):
        convert(recipe, tmp_path / "ours.yaml")
    assert from_recipe(tmp_path / "ours.yaml")


def test_key_with_line_breaks_stays_in_its_comment(recipe, tmp_path):
    recipe.write_text(LORA + '"other\\nrun:\\n  output: /elsewhere\\n#\\a": 1\n')
    convert(recipe, tmp_path / "ours.yaml")
    assert "output" not in [each.name for each in from_recipe(tmp_path / "ours.yaml")]


def test_defaults_of_torchtune_are_added_where_the_trainer_has_others(recipe):
    without = LORA.replace(", packed: True", ", packed: null").replace("  lora_rank: 32\n  lora_alpha: 64\n", "")
    recipe.write_text(without)
    found = converted(read(recipe))
    expected = {"packing": False, "train_on_prompts": True, "lora_rank": 8, "lora_alpha": 16}
    assert {name: found.settings[name] for name in expected} == expected
    assert [line.key for line in converted({"model._component_": "torchtune.models.qwen3.qwen3_8b"}).added] == [
        "dataset.packed"
    ]


def test_pipe_without_a_writer_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "recipe.yaml")
    with pytest.raises(TrainerError, match="RM721"):
        convert(tmp_path / "recipe.yaml", tmp_path / "out.yaml")

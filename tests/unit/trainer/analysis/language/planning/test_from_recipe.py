"""A recipe is planned with every setting that it holds: what `train --recipe` would do."""

import json
from types import SimpleNamespace

import pytest

from trainer.analysis.language.planning.from_recipe import batch_of, requested
from trainer.cli import main
from trainer.config.recipe import find, names, resolve
from trainer.config.sections.decoder import DecoderConfig
from trainer.config.sections.tokens import TokensConfig
from trainer.config.setting import settings_of
from trainer.config.train import OF_EVERY_KIND
from trainer.data.tokens.tokenizer import ByteTokenizer
from trainer.run.memory_plan.shapes import SHAPES
from trainer.run.memory_plan.start_size import step_settings
from trainer.runtime.errors import TrainerError
from trainer.tasks.language.network import new_config
from trainer.tasks.language_model import LanguageTask

LANGUAGE = [name for name in names() if name.startswith("lm-")]
TINY = {
    **{"model_type": "llama", "vocab_size": 512, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2},
    **{"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512},
}
RICH = """
data:
  task: lm
language:
  model: MODEL
  adapter: lora
  method: kto
  lora_rank: 4
  lora_alpha: 8
  lora_dropout: 0.1
  lora_targets: [q_proj, v_proj]
  sequence: 96
  kto_group: 3
  fast: "off"
model:
  activation_checkpointing: full
train:
  precision: bf16
  micro_batch: 3
  batch_size: 8
  batch_schedule: 2:24
  optimizer: adamw8bit
  clip_norm: 1.0
  eval_every: 10
ranks:
  ranks: 2
"""
# Settings of a run of a language model by whether a plan is made of them; the others take no memory of a step's.
COUNTED = {
    *("data.task", "language.method", "language.sequence", "language.kto_group", "language.packing", "language.model"),
    *("language.decoder_layers", "language.decoder_width", "language.adapter", "language.lora_rank", "language.fast"),
    *("language.lora_dropout", "language.lora_targets", "language.peft_config", "train.epochs", "train.max_steps"),
    *("train.batch_size", "train.batch_schedule", "train.eval_every", "train.best_on", "train.optimizer"),
    *("train.clip_norm", "train.precision", "train.use_mixed_precision", "train.micro_batch", "ranks.ranks"),
    *("model.activation_checkpointing", "ranks.parallel"),
}
STATED_AS_NOT_COUNTED = {"train.step", "model.compile"}
WITHOUT_MEMORY = {
    # which rows, and what they are called
    *("data.data", "language.bad_rows", "language.too_long", "language.stop_token", "language.train_on_prompts"),
    *("language.validation_share", "language.rename", "language.max_rows", "data.feed", "data.loader_workers"),
    # numbers that scale
    *("language.lora_alpha", "language.lora_stabilized", "language.dpo_beta", "language.kto_good_weight"),
    *("language.kto_bad_weight", "train.learning_rate", "train.muon_learning_rate", "train.weight_decay"),
    *("train.schedule", "train.warmup_steps", "train.warmup_ratio", "train.decay_ratio", "train.seed"),
    "language.reference",  # cached: the same passes forward, before the first step in place of within each
    # what is done with the results, and by whom
    *("run.output", "run.run", "run.resume", "checkpoint.checkpoint_every", "checkpoint.keep", "model.export"),
    *("run.skip_gpu_cleanup", "train.patience", "train.weights", "run.device", "run.threads", "run.gates"),
    *("ranks.comms", "ranks.gradient_compression", "ranks.max_restarts", "ranks.hang_timeout", "ranks.hang_floor"),
    *("telemetry.track", "telemetry.callback", "telemetry.nan_guard"),
}


@pytest.fixture
def recipe(tmp_path):
    """A function from a recipe's text to its path, MODEL in it being a tiny model's folder."""
    (tmp_path / "config.json").write_text(json.dumps(TINY))

    def written(text):
        path = tmp_path / "own.yaml"
        path.write_text(text.replace("MODEL", str(tmp_path)))
        return str(path)

    return written


def trained(config, raw):
    """The fields of a program that `train` plans with, see `planned_start`; the data's part is a stub."""
    data, method = config.data, "pretrain" if config.data.method == "auto" else config.data.method
    stub = SimpleNamespace(method=method, train=SimpleNamespace())
    task = LanguageTask(config=data, decoder=config.model, data=stub, tokenizer=ByteTokenizer(), template=None)
    return {**task.planned(raw), **step_settings(config)}


def program_of(**options):
    plan = requested(**options)
    (program,) = plan.programs(plan.card())
    return plan, program


def as_trained(program, names):
    return {name: list(value) if name == "targets" else value for name, value in vars(program).items() if name in names}


@pytest.mark.parametrize("name", LANGUAGE)
def test_recipe_that_comes_with_the_trainer_is_planned_as_it_is_trained(name):
    config, (plan, program) = resolve({"recipe": name}), program_of(recipe=name)
    expected = trained(config, SHAPES[plan.model])
    assert as_trained(program, expected) == expected
    assert find(name).read_text().startswith(f"# planned for: {plan.cards} x {plan.gpu}, {plan.model}\n")
    assert (plan.cards, plan.parallel) == (config.distributed.ranks, config.distributed.parallel)
    assert (plan.micro_batch, plan.precision) == (config.compute.micro_batch, config.compute.precision)
    assert plan.step_rows * plan.cards == config.loop.batch_size


@pytest.mark.parametrize("name", sorted({*names()} - {*LANGUAGE}))
def test_recipe_of_another_task_is_refused(name):
    with pytest.raises(TrainerError, match="RM500") as caught:
        requested(recipe=name, gpu="RX 7900 XTX")
    assert "no language model" in caught.value.what


def test_own_recipe_is_planned_with_each_of_its_settings(recipe):
    path = recipe(RICH)
    config, (plan, program) = resolve({"recipe": path}), program_of(recipe=path, gpu="RX 7900 XTX")
    expected = trained(config, TINY)
    assert as_trained(program, expected) == expected
    assert (program.adapter, program.method, program.group, program.rank, program.dropout) == ("lora", "kto", 3, 4, 0.1)
    assert (program.targets, program.best, program.clip_norm) == (["q_proj", "v_proj"], True, 1.0)
    assert (plan.step_rows, plan.micro_batch, plan.cards) == (12, 3, 2)


def test_settings_of_a_language_model_are_all_known_to_the_plan():
    known = {
        setting.key for kind in (TokensConfig, DecoderConfig, *OF_EVERY_KIND) for setting in settings_of(kind).values()
    }
    assert known == COUNTED | STATED_AS_NOT_COUNTED | WITHOUT_MEMORY


def test_settings_that_are_not_counted_are_stated(recipe):
    more = RICH.replace("model:\n  activation", 'model:\n  compile: "on"\n  activation').replace(
        "  clip_", "  step: graph\n  clip_"
    )
    for text, stated in ((RICH, False), (more, True)):
        words = "\n".join(requested(recipe=recipe(text), gpu="RX 7900 XTX").notes)
        assert all((f"not counted: {name}" in words) is stated for name in STATED_AS_NOT_COUNTED)


def test_options_stand_before_the_recipe():
    more = {"model": "qwen2.5-0.5b", "gpu": "MI300X", "sequence": 512, "micro_batch": 1, "precision": "fp32"}
    more |= {"method": "qlora", "lora_rank": 8, "cards": 4, "parallel": "fsdp2", "optimizer": "muon"}
    plan, program = program_of(recipe="lm-mi210-lora-13b", **more, activation_checkpointing="off", rows="packed")
    assert (plan.model, plan.gpu, plan.micro_batch, plan.cards, plan.step_rows) == ("qwen2.5-0.5b", "MI300X", 1, 4, 2)
    assert (program.sequence, program.precision, program.adapter, program.rank) == (512, "fp32", "qlora", 8)
    assert (program.shards, program.optimizer, program.checkpointing, program.packed) == (4, "muon", "off", True)


@pytest.mark.parametrize(("method", "adapter"), [("dpo", "lora"), ("kto", "lora"), ("full", "none")])
def test_method_given_next_to_a_recipe_keeps_its_adapter_for_preferences(method, adapter):
    _, program = program_of(recipe="lm-mi210-lora-13b", method=method)
    assert (program.method, program.adapter) == ("pretrain" if method == "full" else method, adapter)


def test_recipe_without_a_model_plans_the_new_decoder_of_train(recipe):
    path = recipe("data:\n  task: lm\nlanguage:\n  decoder_layers: 2\n  decoder_width: 64\n")
    plan, program = program_of(recipe=path, gpu="RX 7900 XTX")
    config = resolve({"recipe": path})
    assert program.raw == new_config(config.model, config.data.sequence, ByteTokenizer())
    assert (program.sequence, program.precision, plan.step_rows) == (256, "fp32", 8)  # as train has them


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("language:\n  adapter: lora\n", "has to be there"),
        ("language:\n  model: MODEL\n  method: dpo\n", "without an adapter"),
        ("language:\n  model: MODEL\ntrain:\n  precision: fp64\n", "train.precision fp64"),
        ("language:\n  model: MODEL\nranks:\n  parallel: pipeline\n", "ranks.parallel pipeline"),
        ("language:\n  model: MODEL\n  adapter: peft\n", "without --peft-config"),
    ],
)
def test_recipe_that_no_plan_is_made_of_is_refused(recipe, text, words):
    with pytest.raises(TrainerError, match="RM500") as caught:
        program_of(recipe=recipe("data:\n  task: lm\n" + text), gpu="RX 7900 XTX")
    assert words in caught.value.what


@pytest.mark.parametrize("option", ["model", "gpu"])
def test_missing_option_is_named(option):
    given = {"model": "qwen2.5-0.5b", "gpu": "RX 7900 XTX"}
    del given[option]
    with pytest.raises(TrainerError, match=f"--{option} is missing"):
        program_of(**given)


def test_recipe_with_a_batch_schedule_is_planned_for_its_largest_step(recipe):
    assert batch_of(resolve({"recipe": recipe(RICH)})) == 24


def test_recipe_is_planned_by_the_command(recipe, capsys):
    small = RICH.replace("micro_batch: 3", "micro_batch: auto").replace("method: kto", "method: sft")
    assert main(["plan", "--recipe", recipe(small), "--gpu", "RX 7900 XTX"]) == 0
    out, err = capsys.readouterr()
    first, planned = (json.loads(line) for line in out.splitlines())
    assert (first["cards"], first["precision"], first["sequence"]) == (2, "bf16", 96)
    assert (planned["rows"], planned["checkpointing"], planned["optimizer"], planned["fits"]) == (
        12,
        "full",
        "adamw8bit",
        True,
    )
    assert "12 rows a card, 12 at a time" in err and "micro_batch auto" in err

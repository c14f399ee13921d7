"""Requests of plans: methods by peft, what is refused, and what a method is called."""

import json

import pytest

from trainer.analysis.language.planning import request as module
from trainer.analysis.language.planning.request import STEPS, PlanRequest, name_of, peft_content, require_packages
from trainer.run.memory_plan.shapes import SHAPES, Program
from trainer.runtime.errors import TrainerError

DORA = {"peft_type": "LORA", "use_dora": True, "r": 8, "target_modules": "all-linear"}
ADALORA = {
    "peft_type": "ADALORA",
    "init_r": 6,
    "target_r": 4,
    "tinit": 50,
    "tfinal": 100,
    "target_modules": "all-linear",
}


@pytest.fixture
def adapter(tmp_path):
    """A function from an adapter's configuration to its file."""

    def written(content):
        path = tmp_path / "adapter_config.json"
        path.write_text(json.dumps(content))
        return path

    return written


def programs(**options):
    plan = PlanRequest(model="qwen2.5-0.5b", gpu="RX 7900 XTX", **options)
    return plan.programs(plan.card())


def test_method_by_peft_is_planned_without_and_with_checkpointing(adapter):
    found = programs(peft_config=adapter(DORA))
    assert [(each.adapter, each.method, each.peft, each.checkpointing) for each in found] == [
        ("peft", "pretrain", DORA, checkpointing) for checkpointing in ("off", "full")
    ]
    assert {each.method for each in programs(peft_config=adapter(DORA), method="dpo")} == {"dpo"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "peft"}, "without --peft-config"),
        ({"method": "qlora", "peft_config": DORA}, "which is a method itself"),
        ({"peft_config": ADALORA, "cards": 2, "parallel": "fsdp2"}, "RM563"),
        ({"peft_config": {"r": 8}}, "RM712"),
    ],
)
def test_method_that_no_plan_is_made_of_is_refused(options, words, adapter):
    given = {name: adapter(value) if name == "peft_config" else value for name, value in options.items()}
    with pytest.raises(TrainerError, match=words):
        programs(**given)


@pytest.mark.parametrize(
    ("given", "steps", "total"), [({}, None, STEPS + 150), ({}, 300, 300), ({"total_step": 400}, None, 400)]
)
def test_adalora_has_the_runs_steps_or_enough_of_them(given, steps, total, adapter):
    assert peft_content(adapter({**ADALORA, **given}), steps=steps)["total_step"] == total


@pytest.mark.parametrize("missing", [["peft"], ["transformers"], ["peft", "transformers"]])
def test_missing_packages_are_named_with_how_they_are_installed(missing, monkeypatch, adapter):
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None if name in missing else "there")
    with pytest.raises(TrainerError, match="RM716") as caught:
        programs(peft_config=adapter(DORA))
    assert f"not installed: {' and '.join(missing)}" in caught.value.what
    assert f"pip install {' '.join(missing)}" in caught.value.next


def test_installed_packages_are_found():
    require_packages()


@pytest.mark.parametrize(
    ("how", "name"),
    [
        ({}, "full"),
        ({"adapter": "lora"}, "lora"),
        ({"adapter": "qlora", "method": "sft"}, "qlora"),
        ({"adapter": "lora", "method": "dpo"}, "dpo"),
        ({"adapter": "qlora", "method": "kto"}, "kto qlora"),
        ({"adapter": "peft", "peft": DORA}, "dora"),
        ({"adapter": "peft", "peft": ADALORA, "method": "dpo"}, "dpo adalora"),
        ({"adapter": "peft", "peft": {"peft_type": "LORA"}, "method": "dpo"}, "dpo lora"),
    ],
)
def test_method_is_named_by_what_is_trained_and_by_preferences(how, name):
    assert name_of(Program(raw=SHAPES["qwen2.5-0.5b"], **how)) == name

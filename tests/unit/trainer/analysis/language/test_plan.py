"""The command plan: one configuration by part, the table of what fits, and refusals with what would fit."""

import json

import pytest

from trainer.analysis.language.plan import PlanRequest, plan
from trainer.cli import main
from trainer.runtime.errors import TrainerError

SHAPE = {
    "model_type": "llama",
    "vocab_size": 512,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(SHAPE))
    return str(path)


def events(text):
    return [json.loads(line) for line in text.splitlines()]


def test_plan_of_one_configuration_reports_its_parts(model, capsys):
    given = ["--method", "lora", "--activation-checkpointing", "off", "--micro-batch", "2", "--sequence", "64"]
    assert main(["plan", "--model", model, "--gpu", "RX 7900 XTX", *given]) == 0
    out, err = capsys.readouterr()
    first, second = events(out)
    assert (first["arch"], first["attention"], first["measured_on_this_card"]) == (
        "gfx1100",
        ["flash", "efficient"],
        False,
    )
    assert second["fits"] is True
    assert sum(second["parts"].values()) == second["bytes"] <= second["needed_bytes"]
    low, high = second["tokens_per_second"]
    assert 0 < low < high
    assert "not measured on an AMD card" in err


def test_table_has_more_rows_with_checkpointing(model, capsys):
    plan(PlanRequest(model=model, gpu="MI50 16 GB", method="lora", sequence=64, memory_gib=1.05))
    assumed, off, full = events(capsys.readouterr().out)
    assert assumed["attention"] == ["math", "math"]
    assert off["precision"] == "fp16"  # gfx906 has no bf16
    assert full["rows"] >= 2 * off["rows"]


def test_plan_that_does_not_fit_names_what_would(model, capsys):
    requested = PlanRequest(
        model=model,
        gpu="RX 7900 XTX",
        method="lora",
        activation_checkpointing="off",
        micro_batch=4096,
        sequence=64,
        memory_gib=1.2,
        fast="off",
    )
    with pytest.raises(TrainerError, match="RM737") as caught:
        plan(requested)
    words = str(caught.value)
    assert "GiB are needed, 0.3 are there" in words
    assert "This would fit: lora in bf16" in words


def test_plan_for_more_memory_than_any_way_leaves_names_the_least(model, capsys):
    with pytest.raises(TrainerError, match="RM737") as caught:
        plan(PlanRequest(model=model, gpu="RX 7900 XTX", method="qlora", sequence=64, memory_gib=0.9, fast="off"))
    assert "a card of at least" in str(caught.value)


def test_two_cards_hold_the_whole_each_and_share_the_rows(model, capsys):
    how = {"model": model, "gpu": "RX 7900 XT", "method": "full", "activation_checkpointing": "off", "sequence": 64}
    for cards in (1, 2):
        plan(PlanRequest(**how, micro_batch=2, cards=cards))
    first, second = (each for each in events(capsys.readouterr().out) if each["event"] == "planned")
    assert first["bytes"] == second["bytes"]
    assert second["tokens_per_second"][1] == pytest.approx(2 * first["tokens_per_second"][1], abs=2)

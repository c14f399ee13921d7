"""The command plan: one configuration by part, the table of what fits, and refusals with what would fit."""

import json
import re
from dataclasses import replace

import pytest

from tests.left_out import long, one_of
from trainer.analysis.language import plan as plan_module
from trainer.analysis.language.plan import assumed, brief, plan, what_fits
from trainer.analysis.language.planning.request import METHODS, PlanRequest
from trainer.cli import main
from trainer.run.memory_plan.cards import CONTEXT, GIB
from trainer.run.memory_plan.fit import MOST_ROWS, exact_fit
from trainer.run.memory_plan.program import measured
from trainer.runtime.errors import TrainerError

SHAPE = {
    "model_type": "llama",
    "vocab_size": 512,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
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


@long
def test_table_has_more_rows_with_checkpointing(model, capsys):
    plan(PlanRequest(model=model, gpu="MI50 16 GB", method="lora", sequence=64, memory_gib=1.15))
    assumed, off, full = events(capsys.readouterr().out)
    assert assumed["attention"] == ["math", "math"]
    assert off["precision"] == "fp16"  # gfx906 has no bf16
    assert full["rows"] >= 2 * off["rows"]


@long
def test_longest_row_that_is_reported_fits_and_a_longer_one_does_not(tmp_path, capsys):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({**SHAPE, "max_position_embeddings": 4096}))
    how = {"model": str(config), "gpu": "MI50 16 GB", "method": "lora", "activation_checkpointing": "full"}
    how |= {"memory_gib": 1.2, "fast": "off"}
    plan(PlanRequest(**how, sequence=64, micro_batch=1, longest=True))
    found = events(capsys.readouterr().out)[-1]
    assert (found["event"], found["most"], found["tokens"] % 128) == ("longest_row", 4096, 0)
    assert 0 < found["tokens"] < 4096
    assert plan(PlanRequest(**how, sequence=found["tokens"], micro_batch=1)) == 0
    capsys.readouterr()
    with pytest.raises(TrainerError, match="RM737"):
        plan(PlanRequest(**how, sequence=found["tokens"] * 9 // 8, micro_batch=1, longest=True))
    assert events(capsys.readouterr().out)[-1] == found


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


@pytest.mark.parametrize("method", one_of(["full", "qlora"]))
def test_plan_for_more_memory_than_any_program_leaves_names_the_least_and_for_which(method, model, capsys):
    requested = {"model": model, "gpu": "RX 7900 XTX", "sequence": 64, "fast": "off", "activation_checkpointing": "off"}
    error, offered = refused(PlanRequest(**requested, method=method, memory_gib=0.9))
    assert offered is None
    least = r"a card of at least [\d.]+ GiB for qlora in bf16, 1 x 64 tokens, full checkpointing\.$"
    assert re.search(least, error.next)


def test_plan_whose_weights_alone_do_not_fit_offers_no_shorter_row(model, capsys):
    how = {"model": model, "gpu": "RX 7900 XTX", "sequence": 64, "fast": "off", "method": "qlora"}
    for memory, offered in ((CONTEXT / GIB + 1e-4, False), (CONTEXT / GIB + 1e-3, True)):
        error, _ = refused(PlanRequest(**how, activation_checkpointing="full", memory_gib=memory))
        assert ("shorter --sequence" in error.next) is offered


@pytest.mark.parametrize(("length", "stated"), [(512, False), (513, True)])
def test_row_beyond_what_the_model_is_made_for_is_stated(length, stated, model, capsys):
    requested = PlanRequest(model=model, gpu="RX 7900 XTX", sequence=length)
    card = requested.card()
    assumed(model, requested.programs(card)[0], card, 1)
    assert ("that the model is made for" in capsys.readouterr().err) is stated


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0123, "0.012"),
        (1.25, "1.2"),
        (99.4, "99"),
        (99.6, "100"),
        (344.0, "340"),
        (1149.0, "1,100"),
        (99_999.0, "100,000"),
    ],
)
def test_seconds_have_two_digits_that_count(seconds, text):
    assert brief(seconds) == text


OFFER = re.compile(r"This would fit: (\w+) in \w+, ([\d,]+) x [\d,]+ tokens(?:, (\w+) checkpointing)?\.")


def refused(requested):
    """Plan what does not fit; return the error, and the program that its hint offers, None without one."""
    with pytest.raises(TrainerError, match="RM737") as caught:
        plan(requested)
    offer = OFFER.search(caught.value.next)
    if offer is None:
        return caught.value, None
    program = replace(requested.programs(requested.card())[0], **METHODS[offer[1]], checkpointing=offer[3] or "off")
    return caught.value, replace(program, rows=int(offer[2].replace(",", "")))


@long
def test_refusal_after_the_exact_plan_offers_what_fits_by_it(model, capsys):
    how = {"model": model, "gpu": "RX 7900 XTX", "method": "lora", "activation_checkpointing": "full", "sequence": 64}
    program = PlanRequest(**how).programs(PlanRequest(**how).card())[0]
    found = measured(replace(program, rows=64))
    requested = PlanRequest(**how, micro_batch=64, memory_gib=(CONTEXT + found.largest.allocated + 2**20) / GIB)
    _, offered = refused(requested)
    assert offered.rows < 64
    assert exact_fit(offered, requested.card()).fits


@long
def test_refused_table_states_what_the_rows_requested_need(model, capsys):
    error, offered = refused(
        PlanRequest(model=model, gpu="RX 7900 XTX", micro_batch=1024, sequence=64, memory_gib=1.0, fast="off")
    )
    need, budget = map(float, re.findall(r"([\d.]+) (?:GiB are needed|are there)", error.why))
    assert "1024 x 64 tokens" in error.what
    assert need > budget
    assert offered is None or offered.rows < 1024


@pytest.mark.parametrize(
    ("rows", "tried"),
    [({"most_rows": 8}, [(2, 7), (2, 8), (2, 8)]), ({}, [(1, 7), (1, MOST_ROWS), (1, MOST_ROWS)])],
)
def test_refused_step_of_a_recipe_is_offered_in_pieces_of_its_rows(rows, tried, model, monkeypatch):
    seen = []

    def largest(program, card, *, cards, most_rows):
        seen.append((program.pieces, most_rows))

    monkeypatch.setattr(plan_module, "largest_fit", largest)
    requested = PlanRequest(model=model, gpu="RX 7900 XTX", method="lora", sequence=64, fast="off", memory_gib=0.5)
    program = replace(requested.programs(requested.card())[0], rows=8)
    assert "card of at least" in what_fits(program, requested.card(), 1, **rows)
    assert seen == tried


@long
def test_plan_for_dpo_that_does_not_fit_offers_no_quantised_weights(model, capsys):
    error, offered = refused(
        PlanRequest(model=model, gpu="RX 7900 XTX", method="dpo", sequence=64, memory_gib=0.9005, fast="off")
    )
    assert offered is None
    assert "a card of at least" in error.next


@pytest.mark.parametrize("size", [["--micro-batch", "4097"], ["--sequence", str(2**25)], ["--lora-rank", str(2**20)]])
def test_size_that_no_run_has_is_refused(size, model, capsys):
    assert main(["plan", "--model", model, "--gpu", "RX 7900 XTX", *size]) == 2
    assert "RM500" in capsys.readouterr().err


def test_micro_batch_of_more_tokens_than_any_card_holds_is_refused(model):
    with pytest.raises(TrainerError, match="RM500"):
        plan(PlanRequest(model=model, gpu="RX 7900 XTX", micro_batch=4096, sequence=2**16))


@pytest.mark.parametrize(("gpu", "stated"), [("MI50 16 GB", True), ("RX 7900 XTX", False)])
def test_number_format_that_the_card_has_not_is_stated(gpu, stated, capsys):
    requested = PlanRequest(model="qwen2.5-0.5b", gpu=gpu, precision="bf16")
    card = requested.card()
    assumed(requested.model, requested.programs(card)[0], card, 1)
    assert ("no bf16 in hardware" in capsys.readouterr().err) is stated


def test_sequence_beyond_learned_positions_is_refused():
    with pytest.raises(TrainerError, match="RM500") as caught:
        plan(PlanRequest(model="gpt2-124m", gpu="RX 7900 XTX", sequence=1025))
    assert "--sequence 1024" in caught.value.next


def test_two_cards_hold_the_whole_each_and_share_the_rows(model, capsys):
    how = {"model": model, "gpu": "RX 7900 XT", "method": "full", "activation_checkpointing": "off", "sequence": 64}
    for cards in (1, 2):
        plan(PlanRequest(**how, micro_batch=2, cards=cards))
    first, second = (each for each in events(capsys.readouterr().out) if each["event"] == "planned")
    assert first["bytes"] == second["bytes"]
    assert second["tokens_per_second"][1] == pytest.approx(2 * first["tokens_per_second"][1], abs=2)


@long
def test_shards_of_two_cards_fit_where_the_whole_does_not_and_are_offered(tmp_path, capsys):
    """The size is between the two, by the plan's own numbers."""
    (tmp_path / "config.json").write_text(
        json.dumps({**SHAPE, "num_hidden_layers": 6, "hidden_size": 256, "intermediate_size": 1024})
    )
    how = {"model": str(tmp_path / "config.json"), "gpu": "RX 7900 XT", "method": "full", "sequence": 64, "fast": "off"}
    how |= {"activation_checkpointing": "full"}
    needs = []
    for parallel in ("ddp", "fsdp2"):
        plan(PlanRequest(**how, micro_batch=1, cards=2, parallel=parallel))
        found = events(capsys.readouterr().out)
        assert next(each["parallel"] for each in found if each["event"] == "plan") == parallel
        needs.append(next(each["needed_bytes"] for each in found if each["event"] == "planned"))
    assert needs[1] < needs[0]
    between = {**how, "memory_gib": (CONTEXT + sum(needs) / 2) / GIB}
    assert plan(PlanRequest(**between, micro_batch=1, cards=2, parallel="fsdp2")) == 0
    with pytest.raises(TrainerError, match="RM737") as caught:
        plan(PlanRequest(**between, micro_batch=1, cards=2))
    assert "--parallel fsdp2 over 2 cards" in caught.value.next


def test_plan_of_several_cards_states_what_each_holds(model, capsys):
    how = {"model": model, "gpu": "RX 7900 XT", "method": "lora", "activation_checkpointing": "off", "sequence": 64}
    for cards, parallel, words in ((1, "ddp", None), (2, "ddp", "holds the whole"), (4, "fsdp2", "1/4 of weights")):
        plan(PlanRequest(**how, micro_batch=1, cards=cards, parallel=parallel))
        text = capsys.readouterr().err
        assert "--parallel" not in text if words is None else words in text

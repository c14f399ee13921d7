"""Messages under the names that data sets give them, and fields that decide what is trained."""

from __future__ import annotations

import pytest

from tests.fixtures.token_files import ANSWER, TEMPLATE, TOKENIZER, USER, rows_of, trained, write
from trainer.config.sections.tokens import TokensConfig
from trainer.data.tokens.chat_template import CHATML, ChatTemplate
from trainer.data.tokens.load import load
from trainer.data.tokens.messages import RowError, messages_of, require_order, tools_of, transcribed, weight_of
from trainer.data.tokens.records import read_records
from trainer.data.tokens.row import RowPolicy
from trainer.data.tokens.tokenize import tokenize_judged, tokenize_pairs
from trainer.runtime.errors import TrainerError

OTHER = {"role": "assistant", "content": "No"}
END = "<|im_end|>"
CALL = '{"name": "f", "arguments": {"x": 1}}'


def pairs_of(path):
    return tokenize_pairs(read_records(path), TOKENIZER, TEMPLATE, RowPolicy(length=500)).rows


@pytest.mark.parametrize("name", ["weight", "loss_weight", "train", "training", "trainable", "loss", "loss_mask"])
@pytest.mark.parametrize("off", [0, False])
def test_message_whose_switch_is_off_carries_no_loss(tmp_path, name, off):
    path = write(tmp_path / "a.jsonl", {"messages": [USER, {**ANSWER, name: off}, USER, {**OTHER, name: 1}]})
    assert trained(rows_of(path).rows[0]) == f"No{END}"


LOSING = [
    ({"messages": [USER, ANSWER], "label": False}, "KTO"),
    ({"messages": [USER, ANSWER], "kto_tag": True}, "KTO"),
    ({"prompt": "a", "completion": "b", "label": True}, "KTO"),
    ({"prompt": "a", "completion": "b", "label": "Desirable"}, "marked as good or bad"),
    ({"prompt": "a", "completion": "b", "label": 7}, "1 marks a good answer"),
    ({"prompt": "a", "completion": "b", "label": 1, "kto_tag": False}, "differ"),
    ({"prompt": "a", "completion": "b", "label": "-1"}, "1 marks a good answer"),
    ({"prompt": "a", "completion": "b", "kto_tag": "fine"}, "kto_tag is 'fine'"),
    ({"instruction": "a", "output": "b", "text": "a b", "label": False}, "KTO"),
    ({"prompt": "a", "completion": "b", "label": 0.0}, "KTO"),
    ({"messages": [USER, ANSWER], "functions": [{"name": "f"}]}, "functions"),
    ({"messages": [USER, ANSWER], "images": ["a.png"]}, "images"),
    ({"image": "a.jpg", "conversations": [USER, ANSWER]}, "image"),
    ({"messages": [USER, ANSWER], "rejected_output": "No"}, "worse answer"),
    ({"query": "Hi", "response": "Hello", "rejected_response": "No"}, "worse answer"),
    ({"messages": [{"role": "user", "content": [{"type": "image", "value": "a.png"}]}, ANSWER]}, "no text"),
    ({"messages": [USER, {**ANSWER, "function_call": {"name": "f"}}]}, "older form"),
    ({"messages": [USER, {**ANSWER, "train_detail": [{"train": False}]}]}, "parts"),
    ({"conversations": [USER, {"from": "function_call", "value": "{}"}]}, "name and arguments"),
    ({"conversations": [USER, {"from": "function_call", "value": "f(1)"}]}, "name and arguments"),
    ({"system": "Be brief.", "question": "Hi", "chosen": "a", "rejected": "b"}, "neither prompt nor messages"),
    ({"chosen": "The sky is blue.", "rejected": "The sky is green."}, "neither prompt nor messages"),
]


@pytest.mark.parametrize(("row", "words"), LOSING, ids=range(len(LOSING)))
def test_field_that_would_be_lost_is_refused_with_its_line(tmp_path, row, words):
    with pytest.raises(TrainerError) as caught:
        rows_of(write(tmp_path / "a.jsonl", row))
    assert (caught.value.code, words in caught.value.what) == ("RM708", True), caught.value.what
    assert caught.value.where.endswith(":1")


@pytest.mark.parametrize("label", ["positive", 0.7, "0.7"])
def test_label_of_another_meaning_is_no_reason(tmp_path, label):
    path = write(tmp_path / "a.jsonl", {"messages": [USER, ANSWER], "label": label})
    assert len(rows_of(path).rows) == 1


def test_message_loses_the_fields_that_are_null_which_templates_ask_for():
    (message,) = messages_of({"messages": [{"role": None, "from": "human", "value": "Q", "tool_calls": None}]})
    assert message == {"role": "user", "content": "Q"}


def test_fields_that_hold_nothing_are_no_reason(tmp_path):
    nothing = {"images": [], "functions": None, "tools": "[]", "label": None, "image": ""}
    answer = {**ANSWER, "function_call": None, "reasoning_content": "", "train": None}
    path = write(tmp_path / "a.jsonl", {"messages": [USER, answer], **nothing})
    assert trained(rows_of(path).rows[0]) == f"Hello{END}"
    assert tools_of({"tools": "[]"}) is None


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "thinking"])
def test_reasoning_is_refused_unless_the_template_writes_it(tmp_path, name):
    path = write(tmp_path / "a.jsonl", {"messages": [USER, {**ANSWER, name: "because"}]})
    with pytest.raises(TrainerError) as caught:
        rows_of(path)
    assert (caught.value.code, name in caught.value.what) == ("RM706", True)
    writes = CHATML.replace("message['content'] + '<|im_end|>'", f"message.{name} + message.content + '<|im_end|>'")
    rows = rows_of(path, template=ChatTemplate(text=writes, source="test")).rows
    assert trained(rows[0]) == f"becauseHello{END}"


def test_calls_under_a_role_of_their_own_become_tool_calls():
    turn = {"from": "function_call", "value": f"[{CALL}, {CALL}]"}
    message = messages_of({"conversations": [USER, turn]})[1]
    assert (message["role"], message["content"], len(message["tool_calls"])) == ("assistant", "", 2)
    assert message["tool_calls"][0] == {"type": "function", "function": {"name": "f", "arguments": {"x": 1}}}


def test_prompt_of_messages_carries_no_loss_in_earlier_answers(tmp_path):
    row = {"prompt": [USER, {**OTHER, "weight": 1}, USER], "completion": [ANSWER]}
    assert trained(rows_of(write(tmp_path / "a.jsonl", row)).rows[0]) == f"Hello{END}"


PAIRS = [
    {"prompt": "Hi", "chosen": [USER, ANSWER], "rejected": [USER, OTHER], "messages": [USER, ANSWER]},  # UltraFeedback
    {"chosen": "\n\nHuman: Hi\n\nAssistant: Hello", "rejected": "\n\nHuman: Hi\n\nAssistant: No"},  # HH-RLHF
    {"messages": [USER], "chosen": ANSWER, "rejected": OTHER},
    {"messages": [USER, ANSWER], "rejected_response": "No"},  # ms-swift
    {"messages": [USER, ANSWER], "rejected_messages": [USER, OTHER]},
    {"chosen_messages": [USER, ANSWER], "rejected_messages": [USER, OTHER]},  # LLaMA-Factory
]


@pytest.mark.parametrize("row", PAIRS, ids=range(len(PAIRS)))
def test_pair_has_its_conversation_once(tmp_path, row):
    (chosen, rejected), *_ = pairs_of(write(tmp_path / "a.jsonl", row))
    assert [trained(each) for each in (chosen, rejected)] == [f"Hello{END}", f"No{END}"]
    whole = TEMPLATE.render([USER, ANSWER]).text
    assert chosen.tokens == TOKENIZER.encode(whole).ids


@pytest.mark.parametrize("names", [("chosen", "rejected"), ("completion",)])
def test_system_next_to_texts_goes_through_the_template(tmp_path, names):
    row = {"system": "Be brief.", "prompt": "Hi", **dict(zip(names, ("Hello", "No"), strict=False))}
    path = write(tmp_path / "a.jsonl", row)
    tokens = pairs_of(path)[0][0].tokens if len(names) == 2 else rows_of(path).rows[0].tokens
    assert (
        tokens == TOKENIZER.encode(TEMPLATE.render([{"role": "system", "content": "Be brief."}, USER, ANSWER]).text).ids
    )


def test_transcript_has_its_turns_and_other_texts_stay():
    turns = transcribed("\n\nHuman: a\n\nb: c\n\nAssistant: d\n\nHuman: e\n\nAssistant:")
    assert [each["content"] for each in turns] == ["a\n\nb: c", "d", "e", ""]
    assert transcribed("An answer.\n\nHuman: no") == "An answer.\n\nHuman: no"


def test_pair_among_conversations_is_refused_unless_answers_are_requested(tmp_path):
    pair = {"prompt": "Q", "chosen": "a", "rejected": "b"}
    path = write(tmp_path / "a.jsonl", {"messages": [USER, ANSWER]}, {"messages": [USER, ANSWER]}, pair)
    config = {"data": path, "task": "lm", "sequence": 64}
    with pytest.raises(TrainerError) as caught:
        load(path, TokensConfig(**config), TOKENIZER, TEMPLATE, folder=tmp_path, seed=0)
    assert (caught.value.code, caught.value.where.endswith(":3")) == ("RM708", True)
    given = load(path, TokensConfig(**config, method="sft"), TOKENIZER, TEMPLATE, folder=tmp_path, seed=0)
    assert given.facts["rows"] == 3
    dropped = load(path, TokensConfig(**config, bad_rows="drop"), TOKENIZER, TEMPLATE, folder=tmp_path, seed=0)
    assert dropped.facts["changed"] == {"RM708": 1}


def test_weight_and_order_are_checked():
    assert weight_of({**ANSWER, "weight": True}, 1) == 1.0
    with pytest.raises(RowError, match="no number"):
        weight_of({**ANSWER, "train": "yes"}, 1)
    with pytest.raises(RowError, match="begins with nothing"):
        require_order([])


MARKS = [
    ("label", True),
    ("label", 1),
    ("label", 1.0),
    ("kto_tag", "Good"),
    ("label", "desirable"),
    ("kto_tag", "TRUE"),
]
MARKS += [("label", "1"), ("kto_tag", " 1.0")]  # as every cell of a table is a text
GOOD = len(MARKS)
MARKS += [("label", False), ("kto_tag", 0), ("label", 0.0), ("label", "bad"), ("kto_tag", "rejected")]
MARKS += [("label", "0"), ("kto_tag", "0.0")]


@pytest.mark.parametrize("number", range(len(MARKS)))
@pytest.mark.parametrize(
    "layout",
    [
        {"prompt": "Hi", "completion": "Hello"},
        {"messages": [USER, ANSWER]},
        {"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]},
        {"instruction": "Hi", "output": "Hello"},
        {"prompt": [USER], "completion": [ANSWER]},
    ],
)
def test_mark_of_an_answer_is_read_with_each_layout(tmp_path, layout, number):
    name, value = MARKS[number]
    (made,) = judged_of(write(tmp_path / "a.jsonl", {**layout, name: value}))
    end = "<|endoftext|>" if isinstance(layout.get("completion"), str) else END
    assert (made.good, trained(made.row)) == (number < GOOD, f"Hello{end}")


def judged_of(path):
    return tokenize_judged(read_records(path), TOKENIZER, TEMPLATE, RowPolicy(length=500, whole=True)).rows


def test_pair_among_marked_answers_is_a_good_and_a_bad_one(tmp_path):
    whole = {"chosen": [USER, ANSWER], "rejected": [USER, OTHER]}
    rows = judged_of(write(tmp_path / "a.jsonl", {"prompt": "a", "chosen": "b", "rejected": "c"}, whole))
    assert [(each.good, trained(each.row)) for each in rows] == [
        *((True, "b<|endoftext|>"), (False, "c<|endoftext|>")),
        *((True, f"Hello{END}"), (False, f"No{END}")),
    ]


@pytest.mark.parametrize("row", [{"prompt": "a", "completion": "b"}, {"text": "a", "label": True}])
def test_answer_without_a_mark_among_marked_ones_is_refused(tmp_path, row):
    marked = {"prompt": "a", "completion": "b", "label": True}
    with pytest.raises(TrainerError) as caught:
        load_rows(write(tmp_path / "a.jsonl", marked, row))
    assert (caught.value.code, "neither good nor bad" in caught.value.what) == ("RM708", True)
    assert caught.value.where.endswith(":2")


def test_marked_answer_among_pairs_is_refused_with_the_method_that_takes_it(tmp_path):
    for row, advice in (({"label": True}, "--method kto"), ({}, "Correct or delete")):
        path = write(tmp_path / "a.jsonl", {"prompt": "a", "completion": "b", **row})
        with pytest.raises(TrainerError) as caught:
            load_rows(path, method="dpo")
        assert (caught.value.code, advice in caught.value.next) == ("RM708", True)


@pytest.mark.parametrize(("marks", "counts"), [([True] * 8, "8 good and 0 bad"), ([False] * 5, "0 good and 5 bad")])
def test_answers_of_one_kind_alone_are_refused(tmp_path, marks, counts):
    rows = [{"prompt": str(number), "completion": "b", "label": mark} for number, mark in enumerate(marks)]
    with pytest.raises(TrainerError) as caught:
        load_rows(write(tmp_path / "a.jsonl", *rows))
    assert (caught.value.code, counts in caught.value.what) == ("RM714", True)


def load_rows(path, **settings):
    return load(path, TokensConfig(data=path, **settings), TOKENIZER, TEMPLATE, folder=path.parent, seed=0)


def test_marked_answers_are_counted_and_two_at_least_held_out(tmp_path):
    rows = [{"prompt": str(number), "completion": "b", "label": number < 3} for number in range(9)]
    path = write(tmp_path / "a.jsonl", *rows)
    data = load_rows(path, kto_group=3)
    assert (data.method, data.facts["good"], data.facts["bad"]) == ("kto", 3, 6)
    assert (len(data.train), len(data.validation)) == (3, 1)
    assert int(data.train.verdicts.abs().sum()) == 7
    assert int(data.validation.verdicts.abs().sum()) == 2
    with pytest.raises(TrainerError, match="RM714"):
        load_rows(write(tmp_path / "b.jsonl", *rows[1:4]))


def test_parts_with_values_are_text_reasoning_and_calls():
    """As LLaMA-Factory writes messages."""
    parts = [{"type": "reasoning", "value": "Hm."}, {"type": "text", "value": "I look."}]
    (message,) = messages_of(
        {"messages": [{"role": "assistant", "content": [*parts, {"type": "tool_call", "value": CALL}]}]}
    )
    assert (message["content"], message["reasoning_content"]) == ("I look.", "Hm.")
    assert message["tool_calls"] == [{"type": "function", "function": {"name": "f", "arguments": {"x": 1}}}]

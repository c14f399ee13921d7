"""Records of each format, and those that are none."""

from __future__ import annotations

import json

import pytest

from tests.fixtures.token_files import ANSWER, TEMPLATE, TOKENIZER, USER, rows_of, trained, write
from trainer.data.tokens.load import of_one_kind
from trainer.data.tokens.records import Record, read_records
from trainer.data.tokens.row import RowPolicy
from trainer.data.tokens.tokenize import tokenized_pair
from trainer.runtime.errors import TrainerError

CHAT = [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "A"}]


def test_json_list_and_byte_order_mark_and_blank_lines_are_read(tmp_path):
    (tmp_path / "a.json").write_text("\n " + json.dumps([{"messages": [USER, ANSWER]}] * 2))
    (tmp_path / "b.jsonl").write_text("\ufeff\n" + json.dumps({"messages": [USER, ANSWER]}) + "\n\n", encoding="utf-8")
    assert len(rows_of(tmp_path / "a.json").rows) == 2
    assert len(rows_of(tmp_path / "b.jsonl").rows) == 1


@pytest.mark.parametrize("content", ["{0}\n\n{0}\n", "[{0},\n{0}]", "\ufeff\n{0}\r\n{0}"])
def test_row_that_is_a_list_of_messages_is_a_conversation_on_a_line_and_in_a_list(tmp_path, content):
    """As xtuner's files of OpenAI's form have them."""
    (tmp_path / "a.jsonl").write_text(content.replace("{0}", json.dumps([USER, ANSWER])), encoding="utf-8")
    write(tmp_path / "b.jsonl", *[{"messages": [USER, ANSWER]}] * 2)
    found, known = ([row.tokens for row in rows_of(tmp_path / name).rows] for name in ("a.jsonl", "b.jsonl"))
    assert found == known


BAD = [
    ({"title": "t", "mapping": {}, "current_node": "c"}, "it is ChatGPT's export; write a row"),
    ({"uuid": "u", "chat_messages": [{"sender": "human", "text": "Q"}]}, "sender human is user"),
    ({"contents": [{"role": "user", "parts": [{"text": "Q"}]}]}, "role model is assistant"),
    ('{"messages": [', "not valid JSON"),
    ("[1]", "a row is an object"),
    ("[" * 100_000, "not valid JSON"),
    ({"question": "a", "answer": "b"}, "no known fields"),
    ({"messages": []}, "at least one"),
    ({"messages": "hi"}, "at least one"),
    ({"messages": ["hi"]}, "no object"),
    ({"messages": [{"role": "narrator", "content": "x"}]}, "narrator"),
    ({"messages": [{"role": "user"}, ANSWER]}, "no text"),
    ({"messages": [ANSWER]}, "begins with assistant"),
    ({"messages": [USER]}, "ends with user"),
    ({"messages": [USER, USER, ANSWER]}, "two user"),
    ({"messages": [USER, ANSWER, ANSWER]}, "two assistant"),
    ({"messages": [USER, {"role": "system", "content": "x"}, ANSWER]}, "only the first"),
    ({"messages": [USER, {**ANSWER, "weight": -1}]}, "weight"),
    ({"messages": [USER, {**ANSWER, "weight": "high"}]}, "weight"),
    ({"instruction": "a"}, "output"),
    ({"messages": [USER, ANSWER], "conversations": [{"from": "human", "value": "Else"}]}, "both there, and differ"),
    (
        {"chosen": [USER, ANSWER], "rejected": [{**USER, "content": "Else"}, {**ANSWER, "content": "No"}]},
        "differ before their last answers, first in message 1",
    ),
    ({"prompt": 1, "completion": "x"}, "prompt and completion"),
]


@pytest.mark.parametrize(("row", "words"), BAD, ids=range(len(BAD)))
def test_bad_row_is_refused_with_its_line_and_dropped_on_request(tmp_path, row, words):
    path = write(tmp_path / "a.jsonl", {"messages": [USER, ANSWER]}, "", row)
    with pytest.raises(TrainerError) as caught:
        rows_of(path)
    assert caught.value.code == "RM708"
    assert words in caught.value.what
    assert caught.value.where.endswith("a.jsonl:3")
    kept = rows_of(path, bad_rows="drop")
    assert (len(kept.rows), kept.changed["RM708"]) == (1, 1)
    assert kept.first["RM708"].endswith(":3")


def test_file_that_is_not_utf8_or_missing_is_refused(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "\xff"}\n')
    for name in ("a.jsonl", "none.jsonl"):
        with pytest.raises(TrainerError) as caught:
            rows_of(tmp_path / name)
        assert caught.value.code == "RM717"


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": "Q", "chosen": "good", "rejected": "bad"},
        {"prompt": [USER], "chosen": [{"role": "assistant", "content": "good"}], "rejected": "bad"},
        {
            "conversations": [{"from": "human", "value": "Hi"}],
            "chosen": {"from": "gpt", "value": "good"},
            "rejected": {"from": "gpt", "value": "bad"},
        },
        {"chosen": [USER, {"role": "assistant", "content": "good"}],
         "rejected": [USER, {"role": "assistant", "content": "bad"}]},
        {"instruction": "Do", "input": "", "chosen": "good", "rejected": "bad"},
    ],
)  # fmt: skip
def test_preference_pair_of_each_format_trains_both_last_answers(tmp_path, row):
    (record,) = read_records(write(tmp_path / "a.jsonl", row))
    chosen, rejected = tokenized_pair(record, TOKENIZER, TEMPLATE, RowPolicy(length=500))
    assert trained(chosen).startswith("good<|")
    assert trained(rejected).startswith("bad<|")


def message(role, content):
    return {"role": role, "content": content}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ('{"prompt": "a", "prompt": "b", "completion": "c"}', "'prompt' is there twice"),
        ('{"prompt": "\\ud800", "completion": "b"}', "surrogate"),
        ('{"text": "cut \\uD83D short"}', "surrogate"),
        ("{", "one line"),
        (json.dumps({"instruction": "do", "input": 5, "output": "x"}), "input is no text"),
        (json.dumps({"instruction": "do", "system": ["s"], "output": "x"}), "system is no text"),
        (json.dumps({"instruction": "do", "output": "x", "history": 5}), "history"),
        (json.dumps({"instruction": "do", "output": "x", "history": [["a", None]]}), "history"),
        (json.dumps({"messages": [message({"x": 1}, "a")]}), "has the role {'x': 1}"),
        (json.dumps({"messages": [message(["user"], "a")]}), "has the role ['user']"),
        (json.dumps({"messages": [message(None, "a")]}), "has the role None"),
        (json.dumps({"prompt": "a", "completion": "b", "label": 3}), "KTO"),
        (json.dumps({"prompt": "a", "chosen": "b", "rejected": "b"}), "the same"),
    ],
)
def test_row_that_would_train_other_tokens_is_refused_in_a_line_and_in_a_list(tmp_path, row, words):
    (tmp_path / "a.jsonl").write_text(row + "\n")
    (found,) = read_records(tmp_path / "a.jsonl")
    assert isinstance(found, TrainerError)
    assert (found.code, words in str(found), ":1" in str(found)) == ("RM708", True, True), str(found)


def test_field_that_is_there_twice_in_a_list_is_refused(tmp_path):
    (tmp_path / "a.json").write_text('[{"text": "a", "text": "b"}]')
    with pytest.raises(TrainerError, match="RM717") as caught:
        list(read_records(tmp_path / "a.json"))
    assert "'text' is there twice" in str(caught.value)


@pytest.mark.parametrize(
    "messages",
    [
        [message("User", "a"), message(" ASSISTANT", "b")],
        [message("human", "a"), message("ai", "b")],
        [{"from": "user", "value": "a"}, {"from": "chatgpt", "value": "b"}],
        [message("user", ["a"]), message("assistant", [{"type": "text", "text": "b"}])],
    ],
)
def test_roles_and_parts_as_other_programs_write_them_are_read(tmp_path, messages):
    (tmp_path / "a.jsonl").write_text(json.dumps({"messages": messages}))
    (found,) = read_records(tmp_path / "a.jsonl")
    assert [(each["role"], each["content"]) for each in found.messages] == [("user", "a"), ("assistant", "b")]


def test_separators_within_a_text_do_not_end_a_row(tmp_path):
    text = "a\u2028b\u2029c\x85d"
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": text}, ensure_ascii=False) + "\r\n", newline="")
    (found,) = read_records(tmp_path / "a.jsonl")
    assert found.text == text


def test_pair_of_whole_conversations_next_to_their_prompt_is_read_once(tmp_path):
    better, worse = ([message("user", "a"), message("assistant", each)] for each in ("b", "c"))
    row = {"prompt": "a", "chosen": better, "rejected": worse}
    (tmp_path / "a.jsonl").write_text(json.dumps(row))
    (found,) = read_records(tmp_path / "a.jsonl")
    assert ([*found.messages], [*found.rejected]) == (better, worse)


def test_turns_in_front_of_a_pair_that_it_does_not_repeat_are_kept(tmp_path):
    before = [message("system", "s"), message("user", "a"), message("assistant", "b")]
    better, worse = ([message("user", "c"), message("assistant", each)] for each in ("d", "e"))
    (tmp_path / "a.jsonl").write_text(json.dumps({"prompt": before, "chosen": better, "rejected": worse}))
    (found,) = read_records(tmp_path / "a.jsonl")
    assert ([*found.messages], [*found.rejected]) == ([*before, *better], [*before, *worse])


def test_half_of_a_character_in_a_json_list_is_a_mistake_of_its_row(tmp_path):
    (tmp_path / "a.json").write_text('[{"text": "a"}, {"text": "b \\ud83d"}, {"text": "c \\ud83d\\ude00"}]')
    one, two, three = read_records(tmp_path / "a.json")
    assert (one.text, three.text) == ("a", "c \U0001f600")
    assert isinstance(two, TrainerError) and "surrogate" in str(two)


@pytest.mark.parametrize("name", ["system", "system_prompt"])
def test_system_prompt_next_to_the_messages_is_the_first_message(tmp_path, name):
    row = {name: "S", "conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}
    (tmp_path / "a.jsonl").write_text(json.dumps(row))
    (found,) = read_records(tmp_path / "a.jsonl")
    assert found.messages[0] == {"role": "system", "content": "S"}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"instruction": "I", "context": "C", "response": "R"}, "give --rename response=output,context=input"),
        (
            {"system_prompt": "S", "question": "Q", "response": "R"},
            "give --rename question=instruction,response=output",
        ),
        ({"Question": "Q", "Answer": "R"}, "give --rename Question=instruction,Answer=output"),
        ({"query": "Q", "response": "R", "type": "t"}, "give --rename query=instruction,response=output"),
        ({"inputs": "Q", "targets": "A"}, "give --rename inputs=instruction,targets=output"),
        ({"system": "S", "question": "Q", "chosen": "a", "rejected": "b"}, "give --rename question=prompt"),
        ({"text": "Hi", "role": "prompter", "parent_id": None}, "one message of a conversation"),
        ({"prompt": "P", "completion": "C", "label": 5}, "KTO"),
        ({"system": {"text": "S"}, "messages": CHAT}, "system is neither a text nor a list of texts"),
    ],
)
def test_layout_of_a_known_data_set_is_refused_with_what_to_rename(tmp_path, row, words):
    (tmp_path / "a.jsonl").write_text(json.dumps(row))
    (found,) = read_records(tmp_path / "a.jsonl")
    assert isinstance(found, TrainerError)
    assert words in found.what


@pytest.mark.parametrize("system", [[{"type": "text", "text": "Be"}, {"text": " kind."}], ["Be kind."], "Be kind."])
def test_system_message_of_parts_is_the_first_message(tmp_path, system):
    (tmp_path / "a.jsonl").write_text(json.dumps({"system": system, "messages": CHAT}))
    (found,) = read_records(tmp_path / "a.jsonl")
    assert found.messages[0] == {"role": "system", "content": "Be kind."}
    assert [each["role"] for each in found.messages] == ["system", "user", "assistant"]


TALK = {"messages": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "R"}]}


@pytest.mark.parametrize("nothing", [None, []])
@pytest.mark.parametrize("row", [TALK, {"instruction": "Q", "output": "R"}, {"prompt": "Q", "completion": "R"}])
def test_fields_of_other_rows_of_a_table_that_hold_nothing_decide_nothing(tmp_path, row, nothing):
    others = dict.fromkeys(("messages", "conversations", "chosen", "rejected", "instruction", "text"), nothing)
    (record,) = read_records(write(tmp_path / "a.jsonl", {**others, **row}))
    (alone,) = read_records(write(tmp_path / "a.jsonl", row))
    assert record == alone


@pytest.mark.parametrize(
    ("row", "words"),
    [({"text": "free"}, "a text"), ({"prompt": "Q", "chosen": "R", "rejected": "W"}, "a pair")],
)
def test_row_of_another_kind_among_answers_is_refused_unless_the_method_is_given(tmp_path, row, words):
    path = write(tmp_path / "a.jsonl", TALK, row)
    found = list(of_one_kind(read_records(path), "sft"))
    assert isinstance(found[0], Record)
    assert (found[1].code, words in found[1].what, "--method sft" in found[1].next) == ("RM708", True, True)
    assert all(isinstance(each, Record) for each in read_records(path))


@pytest.mark.parametrize("name", ["system", "system_prompt"])
@pytest.mark.parametrize(
    "row",
    [
        {"instruction": "Q", "output": "R"},
        {"prompt": "Q", "completion": "R"},
        {"prompt": "Q", "chosen": "R", "rejected": "W"},
        {"instruction": "Q", "chosen": "R", "rejected": "W"},
    ],
)
def test_system_prompt_next_to_any_kind_of_row_is_the_first_message(tmp_path, row, name):
    (found,) = read_records(write(tmp_path / "a.jsonl", {name: "S", **row}))
    assert [each["content"] for each in found.messages] == ["S", "Q", "R"]


@pytest.mark.parametrize("row", [{"instruction": "Q", "output": "R"}, {"prompt": "Q", "completion": "R"}])
def test_tools_next_to_texts_are_those_of_the_conversation(tmp_path, row):
    (found,) = read_records(write(tmp_path / "a.jsonl", {"tools": [{"name": "f"}], **row}))
    assert (found.tools, len(found.messages)) == ([{"name": "f"}], 2)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"prompt": "Q", "completion": "R", "history": [["a", "b"]]}, "--rename prompt=instruction,completion=output"),
        ({"prompt": "Q", "chosen": "R", "rejected": "W", "history": [["a", "b"]]}, "--rename prompt=instruction"),
        ({"instruction": "Q", "output": "R", "system": "S", "system_prompt": "T"}, "both there, and differ"),
        ({"conversation": TALK["messages"], "model": "m"}, "give --rename conversation=messages"),
        ({"text": ["a", "b"]}, "text is no text, but of the kind list"),
        ({"messages": "no list"}, "no JSON of a list"),
        ({"messages": "[{'role': 'user', 'content': 'Q'}]"}, "Python's notation"),
        ({"prompt": "Q", "completion": "[{'content': 'R', 'role': 'assistant'}]"}, "Python's notation"),
        ({**TALK, "chat_template_kwargs": {"tools": []}}, "chat_template_kwargs has tools"),
        ({**TALK, "chat_template_kwargs": "think"}, "chat_template_kwargs is no object"),
    ],
)
def test_field_that_would_be_left_out_is_refused_with_what_to_do(tmp_path, row, words):
    (found,) = read_records(write(tmp_path / "a.jsonl", row))
    assert isinstance(found, TrainerError)
    assert words in found.what


def test_messages_may_be_the_text_of_their_json(tmp_path):
    (found,) = read_records(write(tmp_path / "a.jsonl", {"messages": json.dumps(TALK["messages"])}))
    assert [each["content"] for each in found.messages] == ["Q", "R"]

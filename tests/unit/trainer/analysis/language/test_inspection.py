"""The page on rows for a language model: what is trained, counted and refused, from files that people bring."""

import json

import pytest

from tests.fixtures.inspected_rows import GOOD
from trainer.analysis.language.data_page import html
from trainer.analysis.language.inspection import ANSWER, PROMPT, STOP, inspect
from trainer.cli import main
from trainer.config.sections.tokens import TokensConfig
from trainer.data.tokens.load import load
from trainer.data.tokens.tokenizer import ByteTokenizer
from trainer.tasks.language.inputs import template_of

ROBOT = {"messages": [{"role": "user", "content": "a"}, {"role": "robot", "content": "b"}]}
PAIR = {"prompt": "2+2=", "chosen": "4", "rejected": "five"}


def test_conversation_shows_the_answer_and_its_stop_token_as_trained(rows):
    sample = inspect(rows(GOOD)).samples[0]
    by_part = {kind: "".join(text for each, text in sample.parts if each == kind) for kind in (ANSWER, STOP)}
    assert by_part == {ANSWER: "漢字 & <i>", STOP: "<|im_end|>"}
    assert sample.trained == len("漢字 & <i>".encode()) + 1
    assert "hé <b>" in sample.parts[0][1]
    assert sample.padding == 256 - sample.tokens


def test_wrong_rows_are_found_with_their_line_and_the_trainers_treatment(rows):
    long, empty = {"prompt": "x", "completion": "y" * 400}, {"prompt": "x", "completion": ""}
    path = rows(GOOD, "{broken", ROBOT, long, empty)
    seen = inspect(path)
    assert [(each.where.rsplit(":", 1)[1], each.code) for each in seen.findings] == [
        ("2", "RM708"),
        ("3", "RM708"),
        ("4", "RM711"),
        ("5", "RM709"),
    ]
    assert {each.outcome for each in seen.findings} == {"training stops here"}
    assert (seen.rows, seen.usable) == (5, 1)
    lenient = inspect(path, bad_rows="drop", too_long="cut")
    assert [each.outcome for each in lenient.findings].count("the row is dropped") == 3
    assert "its end is cut off" in {each.outcome for each in lenient.findings}


def test_counts_are_those_that_training_records(rows, tmp_path):
    answers = [{"prompt": f"{n}+1=", "completion": str(n + 1)} for n in range(20)]
    path, tokenizer = rows(*answers), ByteTokenizer()
    seen = inspect(path)
    facts = load(path, TokensConfig(), tokenizer, template_of(None, tokenizer), folder=tmp_path, seed=0).facts
    assert (seen.tokens, seen.trained, seen.usable) == (facts["tokens"], facts["trained_tokens"], facts["rows"])


def test_pairs_show_both_answers_and_a_row_without_one_is_found(rows):
    seen = inspect(rows(PAIR, {"prompt": "a", "completion": "b"}))
    assert seen.method == "dpo"
    assert ["".join(text for kind, text in each.parts if kind == ANSWER) for each in seen.samples] == ["4", "five"]
    assert [each.code for each in seen.findings] == ["RM708"]


def test_marked_answers_are_shown_with_their_mark_and_counted(rows):
    marked = {"prompt": "2+2=", "completion": "5", "label": False}
    path = rows(marked, PAIR, {"prompt": "a", "completion": "b"})
    seen = inspect(path)
    assert (seen.method, seen.good, seen.usable, [each.code for each in seen.findings]) == ("kto", 1, 2, ["RM708"])
    assert [each.where.rsplit(":", 1)[1] for each in seen.samples] == ["1 (bad)", "2 (good)", "2 (bad)"]
    assert ">1 and 2</td>" in html(seen)


def test_pair_among_rows_of_answers_is_found_as_training_refuses_it(rows):
    path = rows({"prompt": "a", "completion": "b"}, PAIR)
    seen = inspect(path)
    assert [(each.code, each.outcome) for each in seen.findings] == [("RM708", "training stops here")]
    assert (inspect(path, method="sft").findings, seen.usable) == ([], 1)


def test_text_is_shown_in_windows_that_are_all_trained(rows):
    seen = inspect(rows("In the beginning was the word. " * 40, name="text.txt"), sequence=64, samples=2)
    assert len(seen.samples) == 2
    assert [kind for kind, _ in seen.samples[0].parts] == [PROMPT, ANSWER]
    assert seen.rows == (seen.tokens - 1) // 64


def test_command_writes_the_page_and_names_findings(rows, tmp_path, capsys):
    path, page = rows(GOOD, "{broken"), tmp_path / "page.html"
    assert main(["show-data", "--data", str(path), "--output", str(page)]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) | {"file": ""} == {
        **{"event": "shown", "file": "", "findings": 1, "rows": 2, "usable": 1},
        **{"tokens": inspect(path).tokens, "trained": inspect(path).trained},
    }
    assert f"{path}:2" in captured.err
    assert f"{path}:2" in page.read_text()


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"\n\n"])
def test_file_that_cannot_be_read_is_refused_without_a_traceback(content, tmp_path, capsys):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    assert main(["show-data", "--data", str(path), "--output", str(tmp_path / "page.html")]) == 2
    assert json.loads(capsys.readouterr().out)["code"] == "RM717"
    assert not (tmp_path / "page.html").exists()

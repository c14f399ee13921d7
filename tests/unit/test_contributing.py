"""CONTRIBUTING.md names files and rooms that exist, and the quiz has an answer for each question."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()
QUESTIONS, ANSWERS = TEXT.split("## Quiz: which room?")[1].split("<summary>Answers</summary>")
NAMED = sorted(set(re.findall(r"`((?:trainer|rocmatrix|matrix|tests)/[\w./]+)`", TEXT)))


@pytest.mark.parametrize("path", [path for path in NAMED if "NAME" not in path])
def test_path_named_in_contributing_exists(path):
    assert (ROOT / path).exists() or (ROOT / f"{path}.py").is_file()


def test_room_table_has_paths_to_check():
    assert len(NAMED) > 40


def test_quiz_has_twenty_questions_and_an_answer_to_each():
    numbers = [int(number) for number in re.findall(r"^(\d+)\. ", QUESTIONS, re.MULTILINE)]
    assert numbers == list(range(1, 21))
    assert [int(number) for number in re.findall(r"(?:^|· ?)(\d+) `", ANSWERS, re.MULTILINE)] == numbers


def test_answer_of_the_quiz_is_a_room():
    rooms = re.findall(r"\d+ `([\w/]+)`", ANSWERS)
    assert len(rooms) == 20
    assert all((ROOT / room / "__init__.py").is_file() for room in rooms)

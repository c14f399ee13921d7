"""A line of shell as the words of its commands."""

import pytest

from rocmatrix.doctor.environment.shell import words


def test_command_within_a_word_is_part_of_that_word():
    text = "A=$(date '+%F %T' | tr ' ' _) b `c ; d` $((1 + 2)) && e"
    assert list(words.parts(text)) == [["A=$(date '+%F %T' | tr ' ' _)", "b", "`c ; d`", "$((1 + 2))"], ["e"]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if a; then b -i x/rocm6.0; elif c; then d;fi", [["if", "a"], ["then", "b", "-i", "x/rocm6.0"], ["elif", "c"],
                                                          ["then", "d"], ["fi"]]),
        ("case x in a) b ;; esac", [["case", "x", "in", "a)", "b"], ["esac"]]),
        ("a|b", [["a"], ["b"]]),
        ("a || b 2>&1", [["a"], ["b", "2>&1"]]),
        ("a 'b;c' \"d|e\"", [["a", "b;c", "d|e"]]),
        ("pip install x@https://y/z#sha=0 torch # torch==1", [["pip", "install", "x@https://y/z#sha=0", "torch"]]),
        ("a 'b", [["a", "'b"]]),
    ],
)  # fmt: skip
def test_line_of_shell_is_divided_at_semicolons_and_bars_outside_quotes(text, expected):
    assert list(words.parts(text)) == expected


def test_continued_lines_are_one_with_the_number_of_the_first():
    found = list(words.lines("# c\na \\\n  b\n\nc\n"))
    assert [(line.text, line.number) for line in found] == [("a    b", 2), ("c", 5)]


def test_line_is_divided_once_for_all_rules(monkeypatch):
    calls = []
    divided = words.split
    monkeypatch.setattr(words, "split", lambda text: calls.append(text) or divided(text))
    words._parts.cache_clear()
    for _ in range(3):
        assert list(words.parts("pip install a; ls", "install")) == [["pip", "install", "a"], ["ls"]]
    assert list(words.parts("ls", "install")) == []
    assert calls == ["pip install a; ls"]

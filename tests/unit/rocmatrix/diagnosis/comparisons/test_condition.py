"""A condition is read as it is written, and one that says nothing is refused."""

import pytest

from rocmatrix.diagnosis.comparisons.condition import Condition, parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a_b is known", Condition(left="a_b", relation="known")),
        ("a is unknown", Condition(left="a", relation="unknown")),
        ("a is not b", Condition(left="a", relation="is not", right="b")),
        ("a not in b_c", Condition(left="a", relation="not in", right="b_c")),
        ("a older than 6.11 (2 parts)", Condition(left="a", relation="older than", right="6.11", parts=2)),
        ("a is /dev/kfd", Condition(left="a", relation="is", right="/dev/kfd")),
        ("a of another generation than b", Condition(left="a", relation="of another generation than", right="b")),
    ],
)
def test_condition_is_read(text, expected):
    assert parse(text) == expected


@pytest.mark.parametrize("text", ["", "a", "a is", "a beats b", "A is known", "a is known b"])
def test_condition_without_relation_is_refused(text):
    if text == "a is known b":  # the text `known b`: a value may be any text
        assert parse(text).right == "known b"
    else:
        with pytest.raises(ValueError, match="relation"):
            parse(text)

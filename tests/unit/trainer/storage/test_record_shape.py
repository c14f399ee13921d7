"""Dataclasses as JSON Schema, and JSON values read as them: what the one accepts the other does."""

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.storage.record_shape import read_as, schema_of


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part."""

    name: str
    share: float | None = None


@dataclass(frozen=True, kw_only=True)
class Whole:
    """A whole of parts."""

    count: int
    parts: list[Part]
    by_name: dict[str, int]
    anything: Any = None
    good: bool = True


TEXT = st.text(max_size=4)
PARTS = st.builds(Part, name=TEXT, share=st.none() | st.floats(allow_nan=False, allow_infinity=False))
WHOLES = st.builds(
    Whole, count=st.integers(), parts=st.lists(PARTS, max_size=2),
    by_name=st.dictionaries(TEXT, st.integers(), max_size=2),
    anything=st.none() | TEXT, good=st.booleans(),
)  # fmt: skip


@given(WHOLES)
def test_value_that_was_written_is_read_back(whole):
    stored = json.loads(json.dumps(dataclasses.asdict(whole)))
    assert read_as(Whole, stored, "record") == whole


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"count": "1"}, "record.count"),
        ({"count": True}, "record.count"),
        ({"count": 1.5}, "record.count"),
        ({"parts": {}}, "record.parts"),
        ({"parts": [{"name": 1}]}, "record.parts[0].name"),
        ({"parts": [{}]}, "record.parts[0]"),
        ({"by_name": {"a": None}}, "record.by_name.a"),
        ({"good": 1}, "record.good"),
    ],
)
def test_value_of_another_type_is_refused_with_its_place(change, place):
    sound = {"count": 1, "parts": [], "by_name": {}}
    read_as(Whole, sound, "record")
    with pytest.raises(ValueError, match=place.replace("[", r"\[")):
        read_as(Whole, sound | change, "record")


def test_schema_refers_to_dataclasses_and_requires_fields_without_a_default():
    definitions: dict[str, Any] = {}
    assert schema_of(Whole, definitions) == {"$ref": "#/$defs/Whole"}
    assert definitions["Whole"]["required"] == ["count", "parts", "by_name"]
    assert definitions["Whole"]["properties"]["parts"] == {"type": "array", "items": {"$ref": "#/$defs/Part"}}
    assert definitions["Part"]["properties"]["share"] == {"anyOf": [{"type": "number"}, {"type": "null"}]}
    assert definitions["Part"]["description"] == "A part."

"""A resumed run reports callbacks that are new, missing or changed, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.run import resume_callbacks
from trainer.run.resume_callbacks import callback_changes, hashes_of, report_changed_callbacks

HASHES = st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"))


@given(HASHES, HASHES)
def test_change_of_each_callback_is_named_once(before, now):
    found = callback_changes(before, now)
    different = {name for name in before | now if before.get(name) != now.get(name)}
    assert {text.split()[0] for text in found} == different
    assert len(found) == len(different)


@pytest.mark.parametrize("before", [None, "text", 7, []])
def test_record_without_callbacks_is_one_of_none(before):
    assert callback_changes(before, {"a": "1"}) == ["a is new"]


def test_run_without_callbacks_records_nothing_of_them():
    assert hashes_of({}) == hashes_of({"callbacks": None}) == {}
    assert hashes_of({"callbacks": [{"name": "a.py:A", "sha256": "1"}]}) == {"callbacks": {"a.py:A": "1"}}


@pytest.mark.parametrize(
    ("settings", "reported"),
    [(None, 0), ({"callbacks": {"a.py:A": "1"}}, 0), ({"callbacks": {"a.py:A": "2"}}, 1), ({}, 1)],
)
def test_difference_is_reported_of_a_resumed_run_alone(monkeypatch, settings, reported):
    events, lines = [], []
    monkeypatch.setattr(resume_callbacks, "emit", lambda name, **fields: events.append((name, fields)))
    monkeypatch.setattr(resume_callbacks, "say", lines.append)
    report_changed_callbacks(settings, {"callbacks": [{"name": "a.py:A", "sha256": "1"}]})
    assert [name for name, _ in events] == ["callbacks_changed"] * reported
    assert len(lines) == reported

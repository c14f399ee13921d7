"""When known failures are named: not for runs that went well, and not by a single common word."""

from __future__ import annotations

from rocmatrix.diagnosis.similar import likeness
from rocmatrix.diagnosis.similar.likeness import COUNT, PASTED, alike, supported

LINES = "rocminfo: Unable to open /dev/kfd read-write: Permission denied"


def test_failure_of_a_signature_has_known_ones_next_to_it():
    found = alike(LINES, ["kfd-permission-denied"], failed=True, lines=1)
    assert len(found) == COUNT
    assert all("kfd" in one.cause or "group" in one.cause for one in found)


def test_few_lines_are_compared_without_a_signature():
    assert alike(LINES, (), failed=False, lines=PASTED)
    assert not alike(LINES, (), failed=False, lines=PASTED + 1)
    assert alike(LINES, (), failed=True, lines=PASTED + 1)


def test_score_below_the_least_is_no_likeness(monkeypatch):
    assert alike("error: kfd", (), failed=True, lines=1)
    monkeypatch.setattr(likeness, "LEAST", 1e9)
    assert not alike("error: kfd", (), failed=True, lines=1)


def test_cause_is_supported_where_a_near_failure_has_it_or_its_own_sample_is_near():
    other = "a sample of other words"
    assert supported(LINES, "kfd-permission-denied", other)
    assert not supported(LINES, "pip-externally-managed", other)
    assert supported(
        "error: externally-managed-environment", "pip-externally-managed", "externally-managed-environment"
    )

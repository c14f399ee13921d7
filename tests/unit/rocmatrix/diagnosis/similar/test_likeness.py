"""When known failures are named: not for runs that went well, and not by a single common word."""

from __future__ import annotations

from rocmatrix.diagnosis.similar import likeness
from rocmatrix.diagnosis.similar.likeness import COUNT, PASTED, alike

LINES = "rocminfo: Unable to open /dev/kfd read-write: Permission denied"


def test_failure_of_a_signature_has_known_ones_beside_it():
    found = alike(LINES, ["kfd-permission-denied"], failed=True)
    assert len(found) == COUNT
    assert all("kfd" in one.cause for one in found)


def test_few_lines_that_report_trouble_are_compared_without_a_signature():
    assert alike(LINES, (), failed=False)
    assert not alike("\n".join([*(["step"] * PASTED), LINES]), (), failed=False)
    assert not alike("loaded amdgpu, 2 cards, render nodes 128 and 129", (), failed=False)


def test_too_few_common_terms_are_no_likeness(monkeypatch):
    assert alike("error: kfd", (), failed=True)
    monkeypatch.setattr(likeness, "LEAST", 1e9)
    assert not alike("error: kfd", (), failed=True)

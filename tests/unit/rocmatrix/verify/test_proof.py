"""The verdict of a proof, and an engine that does not answer."""

import pytest

from rocmatrix.runtime.errors import RocmatrixError
from rocmatrix.verify import proof
from rocmatrix.verify.finding import Check, Finding
from tests.fixtures import cells

PASSED = Check(name="a", summary="")
SKIPPED = Check(name="b", summary="", skipped=True)
FAILED = Check(name="c", summary="", findings=(Finding(code="RM217", what="x"),))


def verdict(*checks):
    return proof.Proof(cell="c", architecture=None, subject="s", checks=checks).proven


def test_a_proof_needs_a_check_that_passed_and_none_that_failed():
    assert verdict(PASSED) and verdict(PASSED, SKIPPED)
    assert not verdict(PASSED, FAILED)
    assert not verdict(SKIPPED)
    assert not verdict()


def test_no_engine_is_named(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(RocmatrixError) as raised:
        proof.of_image(cells.MATRIX, cells.CPU, "x", today="2026-11-21")
    assert raised.value.code == "RM201"

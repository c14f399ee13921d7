"""The verdict of a proof, and an engine that does not answer."""

import json
from pathlib import Path

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


def test_proof_needs_a_check_that_passed_and_none_that_failed():
    assert verdict(PASSED) and verdict(PASSED, SKIPPED)
    assert not verdict(PASSED, FAILED)
    assert not verdict(SKIPPED)
    assert not verdict()


def test_missing_engine_is_named(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(RocmatrixError) as raised:
        proof.of_image(cells.MATRIX, cells.CPU, "x", today="2026-11-21", root=Path())
    assert raised.value.code == "RM201"


def test_names_that_cannot_be_printed_are_escaped():
    name = b"/opt/\xff\x1b[2J\n".decode("utf-8", "surrogateescape")
    finding = Finding(code="RM217", what="x", places=(name, "/opt/ä"))
    assert finding.summary.endswith("/opt/\\udcff\\x1b[2J\\n, /opt/ä")
    assert json.loads(json.dumps(finding.described(), ensure_ascii=False).encode())["places"][1] == "/opt/ä"


OWN = f"mirror.example/ubuntu@{cells.GFX1100.base.digest}"
EVIL = "sha256:" + "e" * 64


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ({}, [cells.GFX1100.base.reference]),
        ({"org.rocmatrix.base.id": EVIL}, [cells.GFX1100.base.reference]),
        ({"org.rocmatrix.base": "", "org.rocmatrix.base.id": EVIL}, [cells.GFX1100.base.reference]),
        ({"org.rocmatrix.base": OWN, "org.rocmatrix.base.id": EVIL}, [OWN, cells.GFX1100.base.reference]),
        ({"org.rocmatrix.base": "another", "org.rocmatrix.base.id": EVIL}, [EVIL, "another"]),
    ],
)
def test_base_to_compare_with_is_named_by_id_where_the_image_is_marked_alone(monkeypatch, labels, names):
    """An id in labels is whatever their writer chose: without a mark it would stand for the base of the cell."""
    found = []
    monkeypatch.setattr(proof.engine, "image", lambda _, name: found.append(name))
    assert proof.base_of(None, labels, cells.GFX1100) is None
    assert found == names

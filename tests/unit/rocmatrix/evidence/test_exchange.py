"""Evidence travels as JSON: what comes back is what was sent, and what was touched on the way is refused."""

import json
from datetime import UTC, datetime

import pytest

from rocmatrix.evidence import exchange
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.evidence import record, smoke

NOW = datetime(2026, 11, 21, tzinfo=UTC)
RECORDS = [record("build"), smoke(1, tflops=91.25, log='a "quoted" [log] {with} "records": ['), record("train", 2)]


@pytest.fixture
def sent(tmp_path):
    path = tmp_path / "evidence.json"
    exchange.write(path, RECORDS)
    return path


def refused(path, code="RM622"):
    with pytest.raises(RocmatrixError) as caught:
        exchange.read(path, now=NOW)
    assert caught.value.code == code
    return caught.value.render()


def changed(path, change):
    data = json.loads(path.read_text())
    change(data)
    path.write_text("\n".join(['{"format": ' + json.dumps(data["format"]) + ",", '"schema": 1, "records": [',
                               ",\n".join(json.dumps(r) for r in data["records"]), "]}"]))  # fmt: skip


def test_what_is_written_is_read(sent):
    assert exchange.read(sent, now=NOW) == RECORDS
    assert [path.name for path in sent.parent.iterdir()] == ["evidence.json"]


def test_nothing_is_an_empty_list(tmp_path):
    exchange.write(tmp_path / "none.json", [])
    assert exchange.read(tmp_path / "none.json", now=NOW) == []


def test_reformatting_is_no_tampering(sent):
    sent.write_text(json.dumps(json.loads(sent.read_text()), indent=4))
    assert exchange.read(sent, now=NOW) == RECORDS


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("passed", False, "id:"),
        ("cell", "rocm7.2-torch2.12.1-gfx1100", "id:"),
        ("marks", ["nvidia"], "id:"),
        ("log", "another", "id:"),
        ("at", "2027-01-01T00:00:00.000Z", "id:"),
        ("at", "2026-13-01T00:00:00.000Z", "at:"),
        ("passed", "yes", "passed:"),
        ("kind", "rumour", "kind:"),
        ("image", "latest", "image:"),
        ("level", "trained", "level:"),
    ],
)
def test_a_record_that_was_touched_is_refused_with_line_and_field(sent, field, value, named):
    changed(sent, lambda data: data["records"][1].update({field: value}))
    words = refused(sent)
    assert "line 4" in words
    assert named in words


def test_a_nested_field_is_named(sent):
    changed(sent, lambda data: data["records"][1]["numbers"][0].update(value="fast"))
    assert "numbers.0.value" in refused(sent)


def test_evidence_of_tomorrow_is_refused(tmp_path):
    path = tmp_path / "tomorrow.json"
    exchange.write(path, [record("build", 24 * 40)])
    assert "yet to come" in refused(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "line 1"),
        ('{"a":\n1,\n]', "line 3"),
        ("[]", "format"),
        ('{"format": "another", "schema": 1, "records": []}', "format"),
        ('{"format": "rocmatrix-evidence", "schema": 3, "records": []}', "schema"),
        ('{"format": "rocmatrix-evidence", "schema": 1, "records": {}}', "records"),
        ('{"format": "rocmatrix-evidence", "schema": 1, "records": [], "levels": []}', "levels"),
        ('{"format": "rocmatrix-evidence", "schema": 1, "records": [1]}', "no object"),
    ],
)
def test_a_foreign_file_is_refused(tmp_path, text, words):
    path = tmp_path / "foreign.json"
    path.write_text(text)
    assert words in refused(path)


def test_bytes_are_refused(tmp_path):
    path = tmp_path / "bytes.json"
    path.write_bytes(b"\xff\xfe\x00")
    assert "UTF-8" in refused(path)

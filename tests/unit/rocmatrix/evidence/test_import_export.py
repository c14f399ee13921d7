"""Evidence travels as JSON: what comes back is what was sent, and what was touched on the way is refused."""

import json
import os
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rocmatrix.evidence import import_export
from rocmatrix.evidence.record import LOG_BYTES, Record
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.evidence import START, record, smoke

NOW = datetime(2026, 11, 21, tzinfo=UTC)
RECORDS = [record("build"), smoke(1, tflops=91.25, log='a "quoted" [log] {with} "records": ['), record("train", 2)]


@pytest.fixture
def sent(tmp_path):
    path = tmp_path / "evidence.json"
    import_export.write(path, RECORDS)
    return path


def refused(path, code="RM622"):
    with pytest.raises(RocmatrixError) as caught:
        import_export.read(path, now=NOW)
    assert caught.value.code == code
    return caught.value.render()


def changed(path, change):
    data = json.loads(path.read_text())
    change(data)
    path.write_text("\n".join(['{"format": ' + json.dumps(data["format"]) + ",", '"schema": 1, "records": [',
                               ",\n".join(json.dumps(r) for r in data["records"]), "]}"]))  # fmt: skip


def test_exported_records_are_imported_equal(sent):
    assert import_export.read(sent, now=NOW) == RECORDS
    assert [path.name for path in sent.parent.iterdir()] == ["evidence.json"]


def test_empty_export_is_an_empty_list(tmp_path):
    import_export.write(tmp_path / "none.json", [])
    assert import_export.read(tmp_path / "none.json", now=NOW) == []


def test_reformatting_is_no_tampering(sent):
    sent.write_text(json.dumps(json.loads(sent.read_text()), indent=4))
    assert import_export.read(sent, now=NOW) == RECORDS


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
def test_record_that_was_touched_is_refused_with_line_and_field(sent, field, value, named):
    changed(sent, lambda data: data["records"][1].update({field: value}))
    words = refused(sent)
    assert "line 4" in words
    assert named in words


def test_nested_field_is_named(sent):
    changed(sent, lambda data: data["records"][1]["numbers"][0].update(value="fast"))
    assert "numbers.0.value" in refused(sent)


def test_evidence_of_tomorrow_is_refused(tmp_path):
    path = tmp_path / "tomorrow.json"
    import_export.write(path, [record("build", 24 * 40)])
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
def test_foreign_file_is_refused(tmp_path, text, words):
    path = tmp_path / "foreign.json"
    path.write_text(text)
    assert words in refused(path)


def test_bytes_are_refused(tmp_path):
    path = tmp_path / "bytes.json"
    path.write_bytes(b"\xff\xfe\x00")
    assert "UTF-8" in refused(path)


def sealed(path, change):
    """Write a file whose one record was changed by somebody who can compute hashes."""
    data = record("build").described()
    change(data)
    del data["id"]
    path.write_text(import_export.written([Record.model_validate_json(json.dumps(data))]))


DEVANAGARI = {ord("0") + digit: 0x966 + digit for digit in range(10)}
HOSTILE_RECORDS = {
    "a log of 50 MB": ("log", "x" * 50_000_000),
    "a log one byte too long": ("log", "x" * (LOG_BYTES + 1)),
    "a log of few characters and many bytes": ("log", "\U0001f4a9" * (LOG_BYTES // 3)),
    "digits that are not ASCII": ("at", "2026-11-21T00:00:00.000Z".translate(DEVANAGARI)),
    "digits of another width": ("at", "\uff12\uff10\uff12\uff16-11-21T00:00:00.000Z"),
    "the year 1": ("at", "0001-01-01T00:00:00.000Z"),
    "the epoch": ("at", "1970-01-01T00:00:00.000Z"),
    "a negative time": ("seconds", -1.0),
    "a run of a thousand years": ("seconds", 3.2e10),
    "characters left out below zero": ("log_omitted", -1),
    "characters left out beyond all numbers": ("log_omitted", 2**60),
    "a million versions": ("versions", {str(number): "1" for number in range(20_000)}),
    "a version as long as a log": ("versions", {"torch": "1" * (LOG_BYTES + 1)}),
    "a million cards": ("hardware", {"device": "rocm", "cards": ["x"] * 20_000}),
    "a million marks": ("marks", ["synthetic"] * 20_000),
}


@pytest.mark.parametrize("case", HOSTILE_RECORDS)
def test_record_that_no_run_can_have_made_is_refused_though_its_hash_is_right(tmp_path, case):
    field, value = HOSTILE_RECORDS[case]
    path = tmp_path / "hostile.json"
    try:
        sealed(path, lambda data: data.update({field: value}))
    except ValueError:  # the record itself refuses it already
        return
    assert "line 2" in refused(path)


HOSTILE_TEXTS = {
    "lists in lists": '{"format": "rocmatrix-evidence", "schema": 1, "records": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "objects in objects": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "a deep record": '{"format": "rocmatrix-evidence", "schema": 1, "records": [{"a": '
    + "[" * 5000
    + "]" * 5000
    + "}]}",
    "a number of 10,000 digits": '{"format": "rocmatrix-evidence", "schema": ' + "9" * 10_000 + ', "records": []}',
    "half a surrogate": '{"format": "rocmatrix-evidence", "schema": 1, "records": [{"kind": "\\ud800"}]}',
    "a name that is half a surrogate": '{"format": "rocmatrix-evidence", "schema": 1, "records": [], "\\ud800": 1}',
    "a record of numbers": '{"format": "rocmatrix-evidence", "schema": 1, "records": [{"id": NaN, "kind": Infinity}]}',
    "nothing": "",
    "zeros": "\0" * 1000,
    "a mark of byte order": "\ufeff{}",
}


@pytest.mark.parametrize("case", HOSTILE_TEXTS)
def test_hostile_text_is_refused_with_a_code(tmp_path, case):
    path = tmp_path / "hostile.json"
    path.write_text(HOSTILE_TEXTS[case])
    refused(path)


def test_file_beyond_the_bound_is_refused_without_being_read_whole(tmp_path):
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate(2**40)  # a hole of a terabyte
    assert "MiB" in refused(path)


def test_pipe_without_a_writer_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "no regular file" in refused(tmp_path / "pipe")
    assert "no regular file" in refused(Path("/dev/zero"))


def test_lines_are_counted_once_for_many_records(tmp_path):
    path = tmp_path / "many.json"
    import_export.write(path, [smoke(number) for number in range(40)])
    assert list(import_export._lines_of(path.read_text())) == list(range(2, 42))


def test_place_that_leaves_no_number_for_the_next_record_is_refused(tmp_path):
    path = tmp_path / "sent.json"
    far = record("build").model_copy(update={"series": "s", "number": import_export.MOST_NUMBER})
    path.write_text(import_export.written([far]))
    with pytest.raises(RocmatrixError, match="RM622") as caught:
        import_export.read(path)
    assert caught.value.what.startswith("number: ")


def test_key_that_stands_twice_is_refused(tmp_path):
    path = tmp_path / "twice.json"
    path.write_text(import_export.written([smoke()]).replace('"passed": true', '"passed": false, "passed": true', 1))
    assert "a key stands twice" in refused(path)


@pytest.mark.parametrize(("ahead", "taken"), [(timedelta(minutes=9), True), (timedelta(minutes=11), False)])
def test_time_that_is_yet_to_come_is_refused_but_for_clocks_that_differ_by_minutes(tmp_path, ahead, taken):
    path = tmp_path / "ahead.json"
    import_export.write(path, [smoke()])
    with nullcontext() if taken else pytest.raises(RocmatrixError, match=r"RM622[\s\S]*yet to come"):
        import_export.read(path, now=START - ahead)

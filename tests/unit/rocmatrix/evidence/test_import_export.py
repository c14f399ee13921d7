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


def refused(path):
    """Return what a file is refused for, and on which line; None where none is named."""
    with pytest.raises(RocmatrixError, match="RM622") as caught:
        import_export.read(path, now=NOW)
    place, _, line = caught.value.where.partition(", line ")
    assert place == str(path)
    return caught.value.what, int(line) if line else None


def changed(path, change):
    data = json.loads(path.read_text())
    change(data)
    path.write_text("\n".join(['{"format": ' + json.dumps(data["format"]) + ",", '"schema": 1, "records": [',
                               ",\n".join(json.dumps(r) for r in data["records"]), "]}"]))  # fmt: skip


def test_exported_records_are_imported_equal(sent):
    assert import_export.read(sent, now=NOW) == RECORDS
    assert [path.name for path in sent.parent.iterdir()] == ["evidence.json"]


def test_text_is_written_as_it_is_and_a_place_where_the_record_has_one():
    plain = record("build", log="größer")
    text = import_export.written([plain])
    assert '"größer"' in text
    assert not {*import_export.PLACE} & json.loads(text)["records"][0].keys()
    (row,) = json.loads(import_export.written([plain.model_copy(update={"series": "s", "number": 7})]))["records"]
    assert (row["series"], row["number"]) == ("s", 7)


def test_record_of_the_past_is_read_by_this_machines_clock(tmp_path):
    old = record("build").model_copy(update={"at": "2021-01-01T00:00:00.000Z"})
    import_export.write(tmp_path / "old.json", [old])
    assert import_export.read(tmp_path / "old.json") == [old]


def test_empty_export_is_an_empty_list(tmp_path):
    import_export.write(tmp_path / "none.json", [])
    text = (tmp_path / "none.json").read_text()
    assert text == '{"format": "rocmatrix-evidence", "schema": 2, "records": []}\n'
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
    what, line = refused(sent)
    assert line == 4
    assert what.startswith(f"{named} ")
    assert "None" not in what


def test_record_of_another_hash_is_refused_with_both(sent):
    changed(sent, lambda data: data["records"][1].update(passed=False))
    other = RECORDS[1].model_copy(update={"passed": False}).id
    assert refused(sent) == (
        f"id: the content's hash is {other}, and the record is called {RECORDS[1].id!r}: it was changed", 4,
    )  # fmt: skip


def test_nested_field_is_named(sent):
    changed(sent, lambda data: data["records"][1]["numbers"][0].update(value="fast"))
    assert refused(sent)[0].startswith("numbers.0.value: ")


def test_evidence_of_tomorrow_is_refused(tmp_path):
    path, made = tmp_path / "tomorrow.json", record("build", 24 * 40)
    import_export.write(path, [made])
    assert refused(path) == (f"at: {made.at} is yet to come", 2)


def test_time_that_python_reads_in_one_way_alone_is_no_date(sent, monkeypatch):
    def instant(_):
        raise ValueError("hour 24, which fromisoformat reads from Python 3.14 on")

    monkeypatch.setattr(import_export, "instant", instant)
    assert refused(sent) == ("at: it is no date", 2)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[]", 'format: it has no "format": "rocmatrix-evidence"'),
        ('{"format": "another", "schema": 1, "records": []}', 'format: it has no "format": "rocmatrix-evidence"'),
        ('{"format": "[{", "schema": 1, "records": []}', 'format: it has no "format": "rocmatrix-evidence"'),
        (
            '{"format": "rocmatrix-evidence", "schema": 3, "records": []}',
            "schema: its schema is 3, and this program reads 1 and 2",
        ),
        ('{"format": "rocmatrix-evidence", "schema": 1, "records": {}}', "records: it is no list"),
        ('{"format": "rocmatrix-evidence", "schema": 1}', "records: it is no list"),
        (
            '{"format": "rocmatrix-evidence", "schema": 1, "records": [], "levels": []}',
            "levels: the field is not known",
        ),
        ('{"format": "rocmatrix-evidence", "schema": 1, "records": [1]}', "a record is no object"),
    ],
)
def test_foreign_file_is_refused(tmp_path, text, what):
    path = tmp_path / "foreign.json"
    path.write_text(text)
    assert refused(path) == (what, None)


@pytest.mark.parametrize(("text", "line"), [("{", 1), ('{"a":\n1,\n]', 3)])
def test_text_that_is_no_json_is_refused_with_its_line(tmp_path, text, line):
    path = tmp_path / "foreign.json"
    path.write_text(text)
    what, found = refused(path)
    assert (what.startswith("it is no JSON: Expecting "), found) == (True, line)


def test_bytes_are_refused(tmp_path):
    path = tmp_path / "bytes.json"
    path.write_bytes(b"\xff\xfe\x00")
    assert refused(path) == ("it is no text in UTF-8", None)


def test_lines_are_those_of_the_list_however_the_text_is_set():
    named = [record("build", cell="records"), record("build", 1)]  # a value that is called as the list is
    text = import_export.written(named)
    assert list(import_export._lines_of("\n" + text)) == [3, 4]
    compact = json.dumps(json.loads(text), separators=(",", ":"))
    assert list(import_export._lines_of(compact)) == [1, 1]
    assert list(import_export._lines_of("{}")) == []


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"at": "2019-12-31T23:59:59.999Z"}, "at"),
        ({"log": "x" * LOG_BYTES}, None),
        ({"log": "x" * (LOG_BYTES + 1)}, "log"),
        ({"log_omitted": import_export.MOST_COUNT - 1}, None),
        ({"log_omitted": import_export.MOST_COUNT}, "log_omitted"),
        ({"seconds": import_export.MOST_SECONDS - 1.0}, None),
        ({"seconds": float(import_export.MOST_SECONDS)}, "seconds"),
        ({"versions": {"torch": "1" * LOG_BYTES}}, None),
        ({"versions": {"torch": "1" * (LOG_BYTES + 1)}}, "versions"),
        ({"marks": ("synthetic",) * import_export.MOST_ITEMS}, None),
        ({"marks": ("synthetic",) * (import_export.MOST_ITEMS + 1)}, "records"),
    ],
)
def test_bounds_are_those_that_a_run_can_reach(change, field):
    assert import_export._out_of_bounds(record("build").model_copy(update=change)) == field


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
    what, line = refused(path)
    assert (what.endswith(": it is out of all bounds"), line) == (True, 2)


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
    assert refused(path) == ("it is larger than 256 MiB; `--export FILE --cell NAME` writes it in parts", None)


def test_file_of_the_most_bytes_is_read(sent, monkeypatch):
    size = sent.stat().st_size
    monkeypatch.setattr(import_export, "MOST_BYTES", size)
    assert import_export.read(sent, now=NOW) == RECORDS
    monkeypatch.setattr(import_export, "MOST_BYTES", size - 1)
    assert refused(sent)[0].startswith("it is larger than 0 MiB")


def test_pipe_without_a_writer_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        assert refused(path) == ("it is no regular file", None)


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
    assert refused(path) == ("it is no JSON of ours: a key stands twice", None)


def test_text_that_is_nested_too_deep_is_refused_by_what_reading_it_raises(tmp_path):
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000)
    assert refused(path) == ("it is no JSON of ours: RecursionError", None)


@pytest.mark.parametrize(("ahead", "taken"), [(timedelta(minutes=10), True), (timedelta(minutes=10, seconds=1), False)])
def test_time_that_is_yet_to_come_is_refused_but_for_clocks_that_differ_by_minutes(tmp_path, ahead, taken):
    path = tmp_path / "ahead.json"
    import_export.write(path, [smoke()])
    with nullcontext() if taken else pytest.raises(RocmatrixError, match=r"RM622[\s\S]*yet to come"):
        import_export.read(path, now=START - ahead)

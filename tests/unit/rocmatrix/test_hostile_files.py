"""Hostile files that the host's programs open: evidence, its database, logs. Each ends in a code, never in RM499."""

import gzip
import json
import os
import sqlite3

import pytest

from rocmatrix.cli.commands import common, dashboard, diagnose, evidence
from rocmatrix.cli.commands.dashboard import Dashboard
from rocmatrix.cli.commands.diagnose import Diagnose
from rocmatrix.cli.commands.evidence import Evidence
from rocmatrix.evidence import import_export, store
from rocmatrix.evidence.record import Record
from rocmatrix.runtime import console
from tests.fixtures import hostile
from tests.fixtures.cells import MATRIX
from tests.fixtures.evidence import record, smoke

SMOKE = smoke(1, tflops=91.25, log="a log").described()


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    monkeypatch.setenv("ROCMATRIX_EVIDENCE", str(tmp_path / "evidence.db"))
    monkeypatch.setattr(common, "known_matrix", lambda: MATRIX)
    monkeypatch.setattr(evidence, "known_matrix", lambda: MATRIX)
    monkeypatch.setattr(console, "LOGS", tmp_path / "logs")


@pytest.fixture
def ends(capsys):
    """Return a function that runs a command and gives its status; a defect of the program fails the test."""

    def run(case, command, *args, **named):
        try:
            command(*args, **named)
            status = 0
        except SystemExit as ended:
            status = ended.code or 0
        stderr = capsys.readouterr().err
        assert "RM499" not in stderr, (case, stderr[-600:])
        assert "Traceback" not in stderr, (case, stderr[-600:])
        assert status in (0, 1, 2), (case, status)
        assert status != 2 or "RM" in stderr, (case, stderr)
        return status, stderr

    return run


def imported(path):
    return Evidence(take=str(path))


def texts_of(document):
    """Yield the file as it was spoiled, and again with the hash that its content has then, where it has one."""
    yield {**document}
    texts = {name: value for name, value in document.items() if name != "id"}
    try:
        made = Record.model_validate_json(json.dumps(texts))
        yield {**texts, "id": made.id}
    except ValueError:
        return


def test_damaged_records_are_imported_or_refused_with_a_code(tmp_path, ends):
    path, refused = tmp_path / "sent.json", 0
    cases = hostile.sample(hostile.mutations(SMOKE), 400)
    for case, document in cases:
        for made in texts_of(document):
            content = {"format": import_export.FORMAT, "schema": import_export.SCHEMA, "records": [made]}
            path.write_bytes(hostile.text_of(content))
            status, message = ends(case, evidence.evidence, imported(path))
            assert status == 0 or "RM622" in message, (case, message)
            refused += status == 2
    assert refused > len(cases) / 2
    status, _ = ends("the page of what was taken", dashboard.dashboard, Dashboard(out=str(tmp_path / "out"), port=0))
    assert status == 0
    pages = "".join(page.read_text() for page in (tmp_path / "out").rglob("*.html"))
    assert "<script>alert" not in pages


@pytest.mark.parametrize("case", hostile.TEXTS)
def test_texts_that_are_no_evidence_are_refused(tmp_path, ends, case):
    path = tmp_path / "sent.json"
    path.write_bytes(hostile.TEXTS[case])
    status, message = ends(case, evidence.evidence, imported(path))
    assert (status, "RM622" in message) == (2, True)


DATABASES = {
    "nothing": lambda path: path.touch(),
    "a text": lambda path: path.write_text("no database"),
    "a folder": lambda path: path.mkdir(),
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "a body that is no JSON": lambda path: change(path, "UPDATE record SET body = '{'"),
    "a body nested too deep": lambda path: change(path, "UPDATE record SET body = ?", hostile.deep(20_000)),
    "a body that is a number": lambda path: change(path, "UPDATE record SET body = 7"),
    "a body that is bytes": lambda path: change(path, "UPDATE record SET body = x'ff00'"),
    "a log that is no zip": lambda path: change(path, "UPDATE record SET log = x'00'"),
    "a log that is a text": lambda path: change(path, "UPDATE record SET log = 'text'"),
    "another table": lambda path: change(path, "DROP TABLE record"),
}


def change(path, statement, *values):
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(statement, values)
    connection.close()


@pytest.mark.parametrize("case", DATABASES)
def test_damaged_store_is_reported_by_every_program_that_reads_it(tmp_path, ends, case):
    path = tmp_path / "evidence.db"
    store.add(path, [record("build"), smoke(1)])
    if case in ("nothing", "a text", "a folder"):
        path.unlink()
    DATABASES[case](path)
    ends(case, evidence.evidence, Evidence())
    ends(case, evidence.evidence, Evidence(export=str(tmp_path / "out.json")))
    ends(case, dashboard.dashboard, Dashboard(out=str(tmp_path / "out"), port=0))


LOGS = {
    "nothing": b"",
    "zeros": b"\0" * 100_000,
    "bytes": bytes(range(256)) * 1000,
    "one line of 20 MB": b"x" * 20_000_000,
    "escapes": b"\x1b[31m" * 100_000,
    "a packed file cut off": gzip.compress(b"HIP error " * 10_000)[:-20],
    "a packed file that is none": b"\x1f\x8b" + b"\0" * 100,
    "packed zeros": gzip.compress(b"\0" * 50_000_000),
    "JSON nested too deep": hostile.deep(50_000).encode(),
    "a docker line nested too deep": b'{"log": ' + hostile.deep(50_000).encode() + b"}\n",
    "half a surrogate": b'{"log":"\\ud800","stream":"stderr","time":"x"}\n' * 10,
    "a number of 10,000 digits": b'{"log": ' + b"9" * 10_000 + b"}\n",
    "brackets": b"([{<" * 50_000,
}


@pytest.mark.parametrize("case", LOGS)
def test_log_of_any_bytes_is_read_or_refused_with_a_code(tmp_path, ends, case):
    path = tmp_path / "log"
    path.write_bytes(LOGS[case])
    ends(case, diagnose.diagnose, Diagnose(log=str(path), gpu="gfx1100"))


@pytest.mark.parametrize("kind", ["pipe", "folder", "link to itself", "absent", "name"])
def test_log_of_another_kind_is_refused_and_not_waited_for(tmp_path, ends, kind):
    path = tmp_path / "log"
    match kind:
        case "folder":
            path.mkdir()
        case "link to itself":
            path.symlink_to(path.name)
        case "pipe":
            os.mkfifo(path)
        case "name":
            path = tmp_path / ("x" * 300)
    if kind == "pipe":  # a pipe may be a log: `diagnose <(...)`; somebody has to write to it
        if os.fork() == 0:
            path.write_bytes(b"HIP error: out of memory\n")
            os._exit(0)
        ends(kind, diagnose.diagnose, Diagnose(log=str(path), gpu="gfx1100"))
        os.wait()
        return
    assert ends(kind, diagnose.diagnose, Diagnose(log=str(path), gpu="gfx1100"))[0] == 2

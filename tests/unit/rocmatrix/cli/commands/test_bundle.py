"""`evidence --bundle`: planted names and secrets are in no byte of it; it is bounded, shown first, the same twice."""

import gzip
import io
import json
import re
import tarfile

import pytest

from rocmatrix.cli.commands import bundle
from rocmatrix.cli.commands import evidence as command
from rocmatrix.cli.commands.evidence import Evidence
from rocmatrix.evidence import store
from rocmatrix.evidence.bundle import archive, contents
from rocmatrix.evidence.record import Number, Trouble, Verdict
from rocmatrix.host import simulated
from rocmatrix.runtime import console
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures import cells, machines
from tests.fixtures.evidence import record

CELL = "rocm7.2-torch2.12.1-gfx1100"
LINE = (
    "token hf_plantedplantedplanted; MY_VALUE planted-secret-value; in /home/plantedperson/acme on plantedhost, "
    "at bob@plantedstation9:~$, on plantednode.corp, in (plantedpeer, 29500), 10.3.68.117, 3c:7c:3f:00:12:ab, "
    "Serial Number: 692300415017, /mnt/plantedplace/bars.csv, planted@example.org\n"
)
PLANTED = ("planted", "10.3.68", "3c:7c", "692300415017", "acme")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A simulated desk of two cards, with hostile values in its tree, its shell, its records and its logs."""
    machine = machines.two_rx_7900_xt(tmp_path / "plantedhost")
    machine.write("proc/cmdline", f"BOOT_IMAGE=/vmlinuz root=/dev/disk/by-id/planted {LINE}")
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / f"smoke-{CELL}-plantedhost-1.log").write_text(LINE * 3 + "RM208 The smoke suite failed\n")
    (logs / "traceback-1.log").write_text(f'File "/home/plantedperson/acme/x.py"\n{LINE}')
    (logs / "plantedhost-2.log").write_bytes(b"\xff\xfe" + LINE.encode())
    for name, value in {
        "HOME": "/home/plantedperson", "USER": "plantedperson", "HOSTNAME": "plantedhost",
        "MY_TOKEN": "planted-secret-value",
        simulated.VARIABLE: str(machine.root), "HSA_OVERRIDE_GFX_VERSION": LINE.strip(),
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(console, "LOGS", logs)
    monkeypatch.setattr("socket.gethostname", lambda: "plantedhost")
    monkeypatch.setattr("socket.getfqdn", lambda: "plantedhost.planted.corp")
    verdict = Verdict(probe="blas", status="fail", summary=LINE, cards=(LINE,))
    about = {"verdicts": (verdict,), "numbers": (Number(probe=LINE, name=LINE, value=1.0, unit=LINE),), "commit": LINE}
    about |= {"versions": {"torch": LINE, "plantedhost": "1"}, "trouble": Trouble(stage="engine", words=LINE)}
    kept = tmp_path / "evidence.db"
    store.add(kept, [record(kind, cell=CELL, passed=False, log=LINE * 9, **about) for kind in ("smoke", "bench")])
    store.add(kept, [record("train", cell=CELL, log="of another machine")], origin="other.json")
    return tmp_path


def made(place, **more):
    """Return the file of a bundle, written without a question."""
    options = {"bundle": str(place / "b.tar.gz"), "evidence": str(place / "evidence.db"), "yes": True}
    command.evidence(Evidence(**options | more))
    return place / "b.tar.gz"


def texts(file):
    with tarfile.open(file) as archived:
        return {each.name: archived.extractfile(each).read().decode() for each in archived.getmembers()}


def test_bundle_of_a_hostile_machine_holds_no_planted_value(place, capsys):
    file = made(place)
    whole = gzip.decompress(file.read_bytes()).decode(errors="replace").lower()
    assert [word for word in PLANTED if word in whole] == []
    listed = capsys.readouterr().err.partition("the bundle, with")[2].partition(str(place))[0].lower()
    assert [word for word in PLANTED if word in listed] == []


def test_bundle_holds_doctor_versions_request_records_and_logs(place):
    found = texts(made(place))
    names = sorted(found)
    assert [name for name in names if "record" in name] == [
        f"bundle/records/01-smoke-{CELL}.json", f"bundle/records/02-bench-{CELL}.json",
    ]  # fmt: skip
    assert json.loads(found["bundle/versions.json"])["simulated"] is True
    assert json.loads(found["bundle/doctor.json"])["checks"][0]["code"] == "D101"
    assert "gfx1100" in found["bundle/request.json"]
    assert "RM208 The smoke suite failed" in found[f"bundle/logs/smoke-{CELL}-<name>-1.log"]
    assert len([name for name in names if name.startswith("bundle/logs/")]) == 3


def test_bundle_made_twice_has_the_same_bytes_and_names_no_owner(place):
    parts = [contents.Part(name="b", text="2"), contents.Part(name="a", text="1")]
    assert archive.packed(parts) == archive.packed(parts[::-1])
    with tarfile.open(fileobj=io.BytesIO(archive.packed(parts))) as archived:
        assert {(each.mtime, each.uid, each.uname) for each in archived.getmembers()} == {(0, 0, "")}
    assert made(place).read_bytes() == made(place).read_bytes()


def test_bundle_of_large_logs_and_records_is_bounded(place):
    wide = tuple(Verdict(probe=f"p{n}", status="pass", summary="ü" * 4000) for n in range(60))
    for number in range(9):
        (place / "logs" / f"train-{CELL}-{number}.log").write_bytes(b"x" * 300_000 + b"\n" + b"y" * 99 * 1024 + b"\n")
    store.add(place / "evidence.db", [record("smoke", 1, cell=CELL, verdicts=wide, log=("z" * 79 + "\n") * 3_500)])
    found = texts(made(place))
    assert sum(len(text.encode()) for text in found.values()) <= contents.MOST_BYTES
    assert any("left_out" in text for text in found.values())
    assert len([name for name in found if name.startswith("bundle/logs/")]) == contents.MOST_LOGS


def test_part_that_is_left_out_is_listed(place, capsys, monkeypatch):
    for number in range(3):
        (place / "logs" / f"train-{CELL}-{number}.log").write_text("z" * 900)
    monkeypatch.setattr(archive.bounded, "__kwdefaults__", {"most": 2_000})
    found = texts(made(place))
    shown = capsys.readouterr().err
    _, _, rest = shown.partition("left out")
    listed = re.findall(r"bytes  (\S+)$", rest, re.MULTILINE)
    assert listed
    assert not {f"bundle/{name}" for name in listed} & found.keys()


def test_bundle_without_terminal_or_yes_is_shown_and_not_written(place, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(SystemExit):
        made(place, yes=False)
    shown = capsys.readouterr()
    assert "RM678" in shown.err
    assert '"code": "D101"' in shown.out
    assert "doctor.json" in shown.err
    assert not (place / "b.tar.gz").exists()


@pytest.mark.parametrize(("typed", "written"), [("y\n", True), ("s\ny\n", True), ("n\n", False), ("", False)])
def test_bundle_at_a_terminal_is_written_after_a_yes_alone(place, capsys, monkeypatch, typed, written):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr("sys.stdin", Terminal(typed))
    try:
        made(place, yes=False)
    except SystemExit as ended:
        assert ended.code == 2
    assert (place / "b.tar.gz").exists() is written
    assert ('"code": "D101"' in capsys.readouterr().out) is typed.startswith("s")


def test_bundle_that_would_leak_is_refused(place, capsys, monkeypatch):
    monkeypatch.setattr("rocmatrix.evidence.bundle.contents.clean", lambda text, _: text)  # redaction of logs is off
    with pytest.raises(SystemExit):
        made(place)
    assert "RM679" in (stderr := capsys.readouterr().err)
    assert "plantedperson" not in stderr
    assert not (place / "b.tar.gz").exists()


def test_bundle_of_a_cell_that_never_ran_is_refused(place, capsys):
    with pytest.raises(SystemExit):
        made(place, cell="rocm7.2-torch2.12.1-gfx942")
    assert capsys.readouterr().err.splitlines()[-3].startswith("RM677")


@pytest.mark.parametrize("name", ["nodir/b.tar.gz", ".", "evidence.db/b.tar.gz"])
def test_bundle_that_cannot_be_written_names_its_flag(place, capsys, name):
    with pytest.raises(SystemExit):
        made(place, bundle=str(place / name))
    assert "RM404" in (stderr := capsys.readouterr().err)
    assert "--bundle" in stderr


def test_bundle_with_damaged_evidence_is_made_and_states_it(place):
    (place / "evidence.db").write_bytes(b"no database at all")
    found = texts(made(place))
    assert "records_unreadable" in found["bundle/versions.json"]


@pytest.mark.parametrize("other", [{"export": "a.json"}, {"take": "a.json"}, {"sizes": True}, {"json": True}], ids=str)
def test_bundle_with_another_errand_is_rm404_and_does_neither(place, capsys, other):
    options = Evidence(bundle=str(place / "b.tar.gz"), evidence=str(place / "evidence.db"), yes=True, **other)
    with pytest.raises(SystemExit) as ended:
        command.evidence(options)
    assert ended.value.code == 2
    assert "RM404" in capsys.readouterr().err
    assert not (place / "b.tar.gz").exists()


def bundled(place, monkeypatch, cell):
    """Bundle a cell's records from the evidence file of `place`, unasked."""
    monkeypatch.setattr("rocmatrix.evidence.recorder.evidence_file", lambda: place / "evidence.db")
    bundle.bundle(str(place / "b.tar.gz"), cells.MATRIX, cell=cell, confirmed=True)


def test_cell_without_a_record_is_bundled_for_its_log(place, monkeypatch):
    other = "rocm7.2-torch2.12.1-gfx942"
    with pytest.raises(RocmatrixError, match="RM677") as refused:
        bundled(place, monkeypatch, other)
    assert refused.value.what == other
    (place / "logs" / f"build-{other}-1.log").write_text("RM202\n")
    bundled(place, monkeypatch, other)
    assert [name for name in texts(place / "b.tar.gz") if "record" in name] == []


def test_release_and_packages_of_the_machine_are_those_that_it_has(monkeypatch):
    monkeypatch.setattr("platform.freedesktop_os_release", lambda: {"ID": "debian", "BUG_REPORT_URL": "x"})
    assert bundle._os_release() == {"ID": "debian"}

    def missing():
        raise OSError

    monkeypatch.setattr("platform.freedesktop_os_release", missing)
    assert bundle._os_release() == {}
    monkeypatch.setattr(bundle, "_PACKAGES", ("pytest", "no-such-package"))
    assert list(bundle._packages()) == ["pytest"]


@pytest.mark.parametrize(
    ("typed", "written"), [("Y\n", True), ("yes\n", True), ("ye\n", False), ("\n", False), ("s\ns\nyes\n", True)]
)
def test_answer_is_a_yes_in_either_form_alone(place, monkeypatch, typed, written):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr("sys.stdin", Terminal(typed))
    file = str(place / "b.tar.gz")
    if written:
        bundle._confirm(file, [contents.Part(name="a", text="1")])
        return
    with pytest.raises(RocmatrixError, match="RM678"):
        bundle._confirm(file, [contents.Part(name="a", text="1")])

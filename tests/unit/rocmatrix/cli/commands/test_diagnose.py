"""`./invokew diagnose`: what it prints, and its status."""

import gc
import io
import json
import sys
import zipfile

import pytest

from rocmatrix.cli.commands import diagnose as command
from rocmatrix.cli.commands.diagnose import Diagnose
from rocmatrix.diagnosis import project_errors
from rocmatrix.diagnosis.machine.host_report import HostReport

OUT_OF_MEMORY = "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has 8 GiB\n"
FAULT = "RuntimeError: HIP error: invalid device function\n"


def diagnosed(log, capsys, **options):
    status = 0
    try:
        command.diagnose(Diagnose(log=str(log), **options))
    except SystemExit as ended:
        status = ended.code
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "a.log"
    path.write_text("step 1\n" + FAULT)
    return path


def test_text_has_cause_remedy_source_rule_and_next_step(log, capsys):
    status, out, _ = diagnosed(log, capsys, gpu="gfx803")
    assert status == 0
    assert out.startswith("hip-invalid-device-function: ")
    for label in ("seen:   line 2", "cause:", "remedy:", "hint:", "source:", "rule:   gfx803-in-no-release (broken)"):
        assert label in out


def test_json_has_the_same_fields(log, capsys):
    status, out, _ = diagnosed(log, capsys, json=True, gpu="RX 7900 XT")
    found = json.loads(out)
    assert status == 0
    best = found["failures"][0]
    assert (best["id"], best["line"], best["count"]) == ("hip-invalid-device-function", 2, 1)
    assert best["sources"]
    assert [rule["id"] for rule in best["rules"]] == ["gfx1100-visible-igpu"]


def test_cell_shows_the_rules_against_it(log, capsys):
    cell = next(iter(command.known_matrix().cells))
    status, _, _ = diagnosed(log, capsys, cell=cell.name)
    assert status == 0


def test_empty_diagnosis_is_status_1_with_the_next_step(tmp_path, capsys):
    path = tmp_path / "a.log"
    path.write_text("all is well\n/opt/amdgpu/share/libdrm/amdgpu.ids: No such file or directory\n")
    status, out, _ = diagnosed(path, capsys)
    assert status == 1
    assert "nothing here explains a failure (2 lines read)" in out
    assert "amdgpu-ids-missing: The table of card names is not found" in out
    assert "cause:  Harmless" in out  # the only thing reported stands in full, with its cause
    path.write_text("all is well\n")
    assert "hint:" in diagnosed(path, capsys)[1]


def test_collector_rests_while_a_log_is_searched(log, capsys, monkeypatch):
    enabled = []
    original = command._seen
    monkeypatch.setattr(command, "_seen", lambda args: enabled.append(gc.isenabled()) or original(args))
    diagnosed(log, capsys)
    gc.disable()
    try:
        diagnosed(log, capsys)
        assert (enabled, gc.isenabled()) == ([False, False], False)
    finally:
        gc.enable()
    diagnosed(log, capsys)
    assert gc.isenabled()


@pytest.mark.parametrize("name", ["none.log", "."])
def test_missing_log_is_status_2(tmp_path, capsys, name):
    status, _, err = diagnosed(tmp_path / name, capsys)
    assert status == 2
    assert "RM610" in err


def test_unknown_cell_or_card_is_status_2(log, capsys):
    assert diagnosed(log, capsys, cell="none")[0] == 2
    assert diagnosed(log, capsys, gpu="RX 79000")[0] == 2


def test_card_that_its_cell_is_not_for_is_refused(log, capsys):
    cell = next(cell.name for cell in command.known_matrix().cells if cell.architecture == "gfx1100")
    status, _, err = diagnosed(log, capsys, cell=cell, gpu="MI50")
    assert status == 2
    assert "RM404" in err
    assert "gfx906" in err
    assert diagnosed(log, capsys, cell=cell, gpu="RX 7900 XT")[0] == 0


def test_line_counts_once_however_many_patterns_it_matches(tmp_path, capsys):
    path = tmp_path / "a.log"
    path.write_text(OUT_OF_MEMORY)
    _, out, _ = diagnosed(path, capsys)
    assert f"seen:   line 1: {OUT_OF_MEMORY[:40]}" in out
    path.write_text(OUT_OF_MEMORY * 3)
    assert "seen:   line 1 and 2 more: " in diagnosed(path, capsys)[1]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_two_bytes_a_letter_are_read_as_letters(tmp_path, capsys, encoding):
    path = tmp_path / "a.log"
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    path.write_bytes(mark + f"Größe Ċ 中文 {FAULT}".encode(encoding))
    _, out, _ = diagnosed(path, capsys)
    assert f"seen:   line 1: Größe Ċ 中文 {FAULT.strip()}" in out


def test_standard_input_is_read(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(FAULT.encode()))))
    status, out, _ = diagnosed("-", capsys)
    assert status == 0
    assert "line 1" in out


def test_empty_standard_input_is_status_2(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(b""))))
    assert diagnosed("-", capsys)[0] == 2


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("RM566 No attention kernel is right", "No attention kernel is right"),  # the trainer's
        ("2026-11-22T03:00:00Z RM303 No card of this host fits", "No card of this host fits"),  # the host's, by docker
    ],
)
def test_own_errors_are_known_with_their_next_step(tmp_path, capsys, line, title):
    path = tmp_path / "a.log"
    path.write_text(f"step 1\n{line}\n  what:  the details\n")
    status, out, _ = diagnosed(path, capsys)
    code = line.split("Z ")[-1].split()[0]
    entry = project_errors.entries()[code]
    assert status == 0
    assert out.startswith(f"{code}: {title}\n  seen:   line 2")
    assert f"cause:  {entry.meaning}" in out
    assert f"hint:   {entry.next}" in out
    assert out.count(entry.next) == 1


def test_cause_of_a_coded_error_comes_before_it(tmp_path, capsys):
    path = tmp_path / "a.log"
    path.write_text(f"{FAULT}RM208 The smoke suite failed\n")
    _, out, _ = diagnosed(path, capsys)
    assert out.startswith("hip-invalid-device-function: ")
    assert "also:   RM208: The smoke suite failed (line 2)" in out


def test_unknown_code_is_no_error_of_the_project(tmp_path, capsys):
    path = tmp_path / "a.log"
    path.write_text("RM998 No attention kernel is right\nRM566 holds a number of ours and other words\n")
    assert diagnosed(path, capsys)[0] == 1


@pytest.mark.parametrize("as_json", [False, True])
def test_diagnose_with_share_prints_no_names(tmp_path, capsys, as_json):
    path = tmp_path / "a.log"
    path.write_text("/home/greg/a.py at 10.3.68.117: RuntimeError: HIP error: invalid device function\n")
    _, plain, _ = diagnosed(path, capsys, json=as_json)
    _, shared, _ = diagnosed(path, capsys, json=as_json, share=True)
    assert "greg" in plain
    assert "10.3.68.117" in plain
    assert "greg" not in shared
    assert "10.3.68.117" not in shared
    assert "invalid device function" in shared


def test_shared_diagnosis_has_no_name_that_another_of_its_values_gives_away(tmp_path, capsys):
    path = tmp_path / "home" / "petrov" / "log"
    path.parent.mkdir(parents=True)
    path.write_text("RuntimeError: HIP error: invalid device function (petrov)\n")
    assert "petrov)" in diagnosed(path, capsys, json=True)[1]
    assert "petrov" not in diagnosed(path, capsys, json=True, share=True)[1]


def test_failed_checks_of_a_host_with_a_card_rank_its_causes(log, capsys, monkeypatch):
    log.write_text("RuntimeError: No HIP GPUs are available\n")
    monkeypatch.setattr(command, "_own_report", lambda: HostReport(failed=frozenset({"D110"})))
    assert "likely: The device nodes may not be opened" in diagnosed(log, capsys)[1]
    assert "likely:" not in diagnosed(log, capsys, gpu="gfx1100")[1]


def test_host_without_a_card_does_not_affect_a_log(monkeypatch):
    from rocmatrix.doctor import examination

    failing = examination.Examination(findings=(), no_card=True, inventory={})
    monkeypatch.setattr(examination, "examine", lambda *_: failing)
    assert command._own_report() == HostReport()


def test_report_of_doctor_stands_in_for_this_host(log, tmp_path, capsys):
    log.write_text("RuntimeError: No HIP GPUs are available\n")
    report = tmp_path / "doctor.json"
    report.write_text(json.dumps({"checks": [{"code": "D101", "status": "error"}], "inventory": {"cards": []}}))
    _, out, _ = diagnosed(log, capsys, doctor=str(report))
    assert "likely: No driver serves the card" in out
    assert "[doctor's check D101 fails on this host.]" in out


def test_report_of_doctor_that_cannot_be_read_is_refused(log, tmp_path, capsys):
    status, _, err = diagnosed(log, capsys, doctor=str(tmp_path / "none.json"))
    assert status == 2
    assert "RM686" in err


def test_folder_is_diagnosed_and_its_report_quotes_the_log_of_the_failure(tmp_path, capsys):
    (tmp_path / "a.log").write_text("step 1\n")
    (tmp_path / "b.log").write_text("step 2\n" + FAULT)
    status, out, _ = diagnosed(tmp_path, capsys, json=True, gpu="gfx1100")
    assert (status, json.loads(out)["failures"][0]["log"]) == (0, "b.log")
    status, out, _ = diagnosed(tmp_path, capsys, report=True, gpu="gfx1100")
    assert status == 0
    assert "step 2" in out
    assert "## ROCm version" in out


@pytest.mark.parametrize("piped", [True, False])
def test_zip_archive_is_diagnosed_and_its_report_quotes_the_log_of_the_failure(tmp_path, capsys, monkeypatch, piped):
    path = tmp_path / "logs.zip"
    with zipfile.ZipFile(path, "w") as held:
        held.writestr("0_build.txt", "step 1\n")
        held.writestr("test/3_run.txt", "step 2\n" + FAULT)
    for options in ({"json": True}, {"report": True}):
        stdin = io.TextIOWrapper(io.BufferedReader(io.BytesIO(path.read_bytes())))
        monkeypatch.setattr(sys, "stdin", stdin)
        status, out, _ = diagnosed("-" if piped else path, capsys, gpu="gfx1100", **options)
        assert status == 0
        if "json" in options:
            assert json.loads(out)["failures"][0]["log"] == "test/3_run.txt"
        else:
            assert "step 2" in out


def test_report_of_standard_input_quotes_it(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"step 4\n" + FAULT.encode()))))
    status, out, _ = diagnosed("-", capsys, report=True)
    assert status == 0
    assert f"step 4\n{FAULT}" in out


def test_watched_log_prints_until_it_is_interrupted(log, capsys, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(command.time, "sleep", interrupt)
    status, out, _ = diagnosed(log, capsys, watch=True, gpu="gfx1100")
    assert status == 0
    assert out.startswith("hip-invalid-device-function: ")
    log.write_text("step 1\n")
    assert diagnosed(log, capsys, watch=True, gpu="gfx1100")[0] == 1


@pytest.mark.parametrize("options", [{"log": "-"}, {"report": True}])
def test_input_that_cannot_be_watched_is_status_2(log, capsys, options):
    status, _, err = diagnosed(**({"log": log} | options), capsys=capsys, watch=True)
    assert status == 2
    assert "RM684" in err

"""What a person types: status, output for people and programs, and mistakes in words."""

import json
from dataclasses import replace

import pytest

from rocmatrix.cli.commands import doctor
from rocmatrix.cli.commands.doctor import Doctor, Topology
from rocmatrix.doctor import host
from rocmatrix.doctor.host import Engine
from tests.fixtures import machines, sysfs


@pytest.fixture(autouse=True)
def quiet_shell(monkeypatch):
    monkeypatch.setattr(host, "query_engine", lambda: (Engine(version="29.3.0"), None))
    for name in ("HIP_DISABLE_IPC", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)


def run(capsys, options, *, as_json=False):
    status = 0
    try:
        doctor.doctor(replace(options, json=as_json))
    except SystemExit as end:
        status = end.code
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_recorded_tree_is_examined_without_this_machine(tmp_path, capsys):
    machines.two_rx_7900_xt(tmp_path)
    status, out, err = run(capsys, Doctor(sysfs=str(tmp_path)))
    assert status == 0
    assert "! D202 The link has all the card's lanes: card 0 at 0000:01:00.0: x8 of x16" in out
    assert "? D401 A container engine answers: a recorded tree does not hold it" in out
    assert f"read from the recorded tree {tmp_path}, not from this machine" in err
    assert "environment" not in err


def test_error_ends_with_status_one_and_its_fix(tmp_path, capsys):
    machines.two_rx_7900_xt(tmp_path)
    (tmp_path / "dev/kfd").unlink()
    status, out, err = run(capsys, Doctor(sysfs=str(tmp_path)))
    # the topology lists the cards: the driver works, and a container was given their render nodes alone
    assert (status, "✗ D110" in out, "--device=/dev/kfd" in out, "modprobe" in out) == (1, True, True, False)
    assert "what is marked error stops a run" in err


def test_machine_without_a_card_is_reported_and_no_error(tmp_path, capsys):
    sysfs.no_driver(tmp_path)
    status, out, err = run(capsys, Doctor(sysfs=str(tmp_path)))
    assert status == 0
    assert "no AMD card was found in this machine: CPU cells only" in err
    assert "- D101" in out


def test_json_holds_every_check_and_only_values_with_a_rule(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "secret-word")
    monkeypatch.setenv("HIP_DISABLE_IPC", "1")
    status, out, _ = run(capsys, Doctor(env=True), as_json=True)
    document = json.loads(out)
    assert status == 1
    assert [row["rule"] for row in document["environment"] if row["severity"] == "error"] == ["hip-disable-ipc"]
    assert document["places"] == ["the shell"]
    assert "secret-word" not in out
    machines.mi50(tmp_path)
    _, out, _ = run(capsys, Doctor(sysfs=str(tmp_path)), as_json=True)
    check = next(row for row in json.loads(out)["checks"] if row["code"] == "D201")
    assert set(check) == {"code", "title", "status", "seen", "why", "fix", "source"}


def test_doctor_examines_this_machine_whatever_it_is(capsys):
    status, out, err = run(capsys, Doctor())
    assert status in (0, 1)
    assert "D101" in out
    assert "host: " in err
    assert "environment: " in err


def test_files_are_judged_as_the_cell_that_is_named(tmp_path, capsys):
    path = tmp_path / "Dockerfile"
    path.write_text("FROM x\nENV HSA_XNACK=1\n")
    _, out, _ = run(capsys, Doctor(dockerfile=str(path)))
    assert f"· xnack-unsupported [no-op] {path}:2: HSA_XNACK=1" in out
    status, out, _ = run(capsys, Doctor(dockerfile=str(path), cell="rocm7.2-torch2.12.1-gfx1100"))
    assert (status, f"! xnack-unsupported [no-op] {path}:2" in out, "D101" in out) == (0, True, False)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (Doctor(sysfs="/nowhere"), "RM310"),
        (Doctor(compose="/nowhere"), "RM310"),
        (Doctor(dockerfile="/nowhere"), "RM310"),
        (Doctor(cell="rocm7.2-torch2.12.1-gfx11000"), "RM010"),
    ],
)
def test_mistake_is_reported_as_text_with_status_two(capsys, options, code):
    status, out, err = run(capsys, options)
    assert (status, out) == (2, "")
    assert err.startswith(code)
    assert "Traceback" not in err


def test_picture_is_written_and_a_wrong_path_is_reported(tmp_path, capsys):
    machines.two_rx_7900_xt(tmp_path / "machine")
    doctor.topology(Topology(sysfs=str(tmp_path / "machine"), svg=str(tmp_path / "picture.svg")))
    assert (tmp_path / "picture.svg").read_text().startswith("<svg")
    assert "card 1: gfx1100" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        doctor.topology(Topology(sysfs=str(tmp_path / "machine"), svg=str(tmp_path / "none" / "picture.svg")))
    assert "RM206" in capsys.readouterr().err


def test_reason_that_many_checks_share_is_printed_once(tmp_path, capsys):
    sysfs.no_driver(tmp_path)
    _, out, _ = run(capsys, Doctor(sysfs=str(tmp_path)))
    assert sum("no AMD card was found in this machine" in line for line in out.splitlines()) <= 2
    assert "D110, D111" in out


def test_json_holds_the_inventory(tmp_path, capsys):
    machines.two_rx_7900_xt(tmp_path)
    _, out, _ = run(capsys, Doctor(sysfs=str(tmp_path)), as_json=True)
    assert [card["pci_address"] for card in json.loads(out)["inventory"]["cards"]] == ["0000:03:00.0", "0000:08:00.0"]


def test_named_file_of_any_form_is_linted_and_corrected(tmp_path, capsys):
    from rocmatrix.cli.commands import doctor as command

    path = tmp_path / "run.sh"
    text = "#!/bin/sh\ndocker run --ipc=host --device=/dev/dri --group-add video rocm/dev-ubuntu-24.04:6.4.1\n"
    path.write_text(text)
    for options, written in (({"diff": True}, False), ({"fix": True}, True)):
        with pytest.raises(SystemExit):
            command.doctor(command.Doctor(file=str(path), **options))
        assert "+docker run --ipc=host --device=/dev/kfd --device=/dev/dri" in capsys.readouterr().out
        assert (path.read_text() != text) is written
    assert (tmp_path / "run.sh.before-fix").read_text() == text


def test_findings_that_need_action_stand_first(tmp_path, capsys):
    machines.two_rx_7900_xt(tmp_path)
    (tmp_path / "dev/kfd").unlink()
    marks = [line[0] for line in run(capsys, Doctor(sysfs=str(tmp_path)))[1].splitlines() if line[0] != " "]
    needing_action = [mark in "✗!" for mark in marks]
    assert any(needing_action) and needing_action == sorted(needing_action, reverse=True)


def test_lines_are_folded_to_the_terminal_and_whole_in_a_pipe(tmp_path, capsys, monkeypatch):
    machines.two_rx_7900_xt(tmp_path)
    whole = run(capsys, Doctor(sysfs=str(tmp_path)))[1].splitlines()
    assert max(map(len, whole)) > 80
    monkeypatch.setattr(doctor.sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(doctor.text_table, "width", lambda: 40)
    folded = run(capsys, Doctor(sysfs=str(tmp_path)))[1].splitlines()
    words = [word for line in whole for word in line.split()]
    assert [word for line in folded for word in line.split()] == words
    assert [line for line in folded if len(line) > 40 and len(line.split()) > 1] == []

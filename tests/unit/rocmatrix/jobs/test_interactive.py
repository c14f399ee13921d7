"""A person's choices become a run spec; a program on the terminal ends with its own status."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rocmatrix.containers.device_selection import card_numbers
from rocmatrix.containers.runspec import Chosen
from rocmatrix.containers.settings import CdiDevice, Device, Mount
from rocmatrix.host.hardware import read_hardware
from rocmatrix.jobs import interactive
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures import cells, sysfs


def spec_on(machine, cell=cells.GFX1100, *, by_cdi_name=False, **choices):
    choices_ = Chosen(**{"image": "", "command": (), "run_folder": Path("/srv/run"), "user": "1000:1000"} | choices)
    return interactive.spec_for(
        choices_, cell=cell, hardware=read_hardware(machine), root=machine.root, by_cdi_name=by_cdi_name
    )


def test_job_without_a_command_is_a_shell(tmp_path):
    spec = spec_on(sysfs.two_rx_7900_xt(tmp_path))
    assert (spec.entrypoint, spec.command) == ("bash", ())


def test_first_argument_replaces_the_images_program(tmp_path):
    spec = spec_on(sysfs.two_rx_7900_xt(tmp_path), command=("python", "-c", "print('a  b')"))
    assert (spec.entrypoint, spec.command) == ("python", ("-c", "print('a  b')"))


def test_cards_are_chosen_by_number(tmp_path):
    spec = spec_on(sysfs.two_rx_7900_xt(tmp_path), cards=(1,))
    assert [row.host for row in spec.of(Device)] == ["/dev/kfd", "/dev/dri/renderD129"]


def test_cards_can_be_requested_by_their_cdi_names(tmp_path):
    spec = spec_on(sysfs.two_rx_7900_xt(tmp_path), by_cdi_name=True)
    assert [row.value for row in spec.of(CdiDevice)] == ["amd.com/gpu=0", "amd.com/gpu=1"]


def test_missing_card_and_missing_data_are_reported(tmp_path):
    with pytest.raises(RocmatrixError, match="RM303"):
        spec_on(sysfs.two_rx_7900_xt(tmp_path), cards=(7,))
    with pytest.raises(RocmatrixError, match="--data names nothing"):
        spec_on(sysfs.two_rx_7900_xt(tmp_path), data=tmp_path / "absent")


def test_data_is_mounted_to_be_read(tmp_path):
    data = tmp_path / "bars.csv"
    data.touch()
    mounts = spec_on(sysfs.no_driver(tmp_path / "m"), cells.CPU, data=data).of(Mount)
    assert [mount.read_only for mount in mounts if mount.origin == str(data)] == [True]


@pytest.mark.parametrize(
    ("typed", "numbers"), [("", ()), ("all", ()), ("0", (0,)), (" 1, 0 ", (1, 0)), ("0-2, 6", (0, 1, 2, 6))]
)
def test_card_numbers(typed, numbers):
    assert card_numbers(typed) == numbers


@pytest.mark.parametrize("typed", ["a", "0,", "-1", "0;1", "²", "3-1", "0-9999", "0--1", "0-", "all,1"])
def test_card_that_is_no_number_is_reported(typed):
    with pytest.raises(RocmatrixError, match="RM404"):
        card_numbers(typed)


@pytest.mark.parametrize(("enforce", "selinux"), [("1\n", True), ("0\n", False), (None, False)])
def test_selinux_counts_where_it_is_enforced(tmp_path, enforce, selinux):
    if enforce:
        (tmp_path / "sys/fs/selinux").mkdir(parents=True)
        (tmp_path / "sys/fs/selinux/enforce").write_text(enforce)
    assert interactive.host_of(tmp_path).selinux == selinux


def test_input_is_handed_on_and_a_terminal_only_where_there_is_one(tmp_path, monkeypatch):
    spec = spec_on(sysfs.two_rx_7900_xt(tmp_path))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    assert interactive.attached_argv(spec)[:4] == ["docker", "run", "--interactive", "--rm"]
    assert "--tty" not in interactive.attached_argv(spec)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert interactive.attached_argv(spec)[2:4] == ["--interactive", "--tty"]


def test_programs_status_is_handed_on():
    assert interactive.attached([sys.executable, "-c", "raise SystemExit(7)"]) == 7


def test_missing_client_is_reported():
    with pytest.raises(RocmatrixError, match="RM201"):
        interactive.attached(["no-such-engine"])


def test_termination_reaches_the_program_and_is_waited_for():
    inner = (
        "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(9)); print('up', flush=True); time.sleep(60)"
    )
    attached = f"attached([{sys.executable!r}, '-c', {inner!r}])"
    outer = f"from rocmatrix.jobs.interactive import attached; raise SystemExit({attached})"
    root = Path(__file__).resolve().parents[4]
    with subprocess.Popen([sys.executable, "-c", outer], stdout=subprocess.PIPE, cwd=root, env=os.environ) as process:
        assert process.stdout.readline() == b"up\n"
        process.terminate()
        assert process.wait(timeout=50) == 9


@pytest.mark.parametrize("status", [125, 126, 127])
def test_engine_statuses_have_a_message(status):
    assert interactive.refused(status).code == "RM207"


@pytest.mark.parametrize(
    ("status", "words"),
    [(127, "device"), (132, "SIGILL"), (134, "SIGABRT"), (135, "SIGBUS"), (137, "memory ran out"), (139, "SIGSEGV"),
     (143, "SIGTERM")],
)  # fmt: skip
def test_signal_that_ended_a_program_is_named_with_the_next_step(status, words):
    error = interactive.refused(status)
    assert (error.code, words in error.what) == ("RM207", True)
    assert error.next and f"status {status}" in error.why


@pytest.mark.parametrize("status", [0, 1, 2, 124, 128, 130, 131, 255])
def test_programs_statuses_are_its_own(status):
    assert interactive.refused(status) is None

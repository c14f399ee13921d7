"""No job computes on the CPU in a card's place unseen; a shell's choice of cards holds natively and in a container."""

from contextlib import nullcontext
from dataclasses import replace

import pytest

from rocmatrix.host.hardware import read_hardware
from rocmatrix.jobs.cards import requirement
from rocmatrix.jobs.job import JobRequest
from rocmatrix.jobs.programs import BENCH, PROGRAMS, SMOKE, TRAIN
from rocmatrix.matrix.resolver.resolve import Request, resolve
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures import cells, machines, sysfs
from tests.fixtures.cells import MATRIX

NAVI_22 = sysfs.RX_7900_XT | {"gfx_target_version": 100301, "device_id": 0x73DF}
POLARIS = sysfs.RX_7900_XT | {"gfx_target_version": 80003, "device_id": 0x67DF}


def one(root, model):
    machine = sysfs.Machine(root)
    machine.amdgpu(kfd_gid=992)
    machine.cpu(0)
    machine.gpu(1, model, minor=128, gid=992, memory=12 * sysfs.GIB)
    return read_hardware(machine)


def chosen(hardware, **axes):
    return resolve(MATRIX, Request(**axes), cards=hardware.architectures, unusable=hardware.unusable)


@pytest.mark.parametrize("gpu", [None, "auto"])
@pytest.mark.parametrize(("model", "code"), [(NAVI_22, "RM102"), (POLARIS, "RM303")])
@pytest.mark.parametrize("program", [SMOKE, BENCH])
def test_test_of_a_card_without_a_locked_cell_names_what_it_needs(tmp_path, gpu, model, code, program):
    hardware = one(tmp_path, model)
    with pytest.raises(RocmatrixError, match=code) as caught:
        requirement.require_card(program, chosen(hardware, gpu=gpu), hardware)
    assert f"./invokew {program.name} --gpu cpu" in caught.value.next
    assert ("--allow-unlocked, then" in caught.value.next) == (code == "RM102")


def test_test_of_a_card_that_no_driver_serves_is_refused(tmp_path):
    hardware = read_hardware(machines.unserved(tmp_path))
    with pytest.raises(RocmatrixError, match="RM301"):
        requirement.require_card(SMOKE, chosen(hardware), hardware)


def test_cpu_is_tested_where_it_was_named_or_nothing_else_is_there(tmp_path):
    hardware = one(tmp_path / "card", POLARIS)
    requirement.require_card(SMOKE, chosen(hardware, gpu="cpu"), hardware)
    requirement.require_card(TRAIN, chosen(hardware), hardware)
    bare = read_hardware(sysfs.no_driver(tmp_path / "bare"))
    requirement.require_card(SMOKE, chosen(bare), bare)


def test_graphics_of_a_processor_that_no_cell_serves_leave_the_cpu_to_be_tested(tmp_path):
    hardware = one(tmp_path, POLARIS)
    integrated = replace(hardware, cards=tuple(replace(card, integrated=True) for card in hardware.cards))
    requirement.require_card(SMOKE, chosen(integrated), integrated)


def test_unlocked_cell_is_taken_where_it_is_allowed_and_no_locked_one_serves():
    allowed = resolve(MATRIX, Request(gpu="auto"), cards=("gfx1031",), allow_unlocked=True)
    assert allowed.cell.architecture == "gfx1031"
    assert allowed.unserved is None
    locked = resolve(MATRIX, Request(), cards=("gfx1031", "gfx1100"), allow_unlocked=True)
    assert locked.cell.architecture == "gfx1100"


def job_request(program="train", **choices):
    return JobRequest(program=PROGRAMS[program], **({"request": Request(), "where": "auto", "options": {}} | choices))


def test_cards_of_the_shell_are_the_jobs_and_those_named_come_first(tmp_path, monkeypatch, capsys):
    hardware = read_hardware(sysfs.two_rx_7900_xt(tmp_path))
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "1")
    for each, cards in ((job_request(), (1,)), (job_request(cards=(0,)), (0,))):
        assert requirement.with_cards_of_shell(each, cell=cells.GFX1100, hardware=hardware).cards == cards
    assert requirement.with_cards_of_shell(job_request(), cell=cells.CPU, hardware=hardware).cards == ()
    assert "cards 1, by HIP_VISIBLE_DEVICES=1" in capsys.readouterr().err


@pytest.mark.parametrize("requested", [{"gpu": "gfx1100"}, {"cell": cells.GFX1100.name}, {"rocm": "6.3"}])
def test_native_run_for_a_card_that_is_not_here_is_refused_before_wheels_are_fetched(tmp_path, requested, monkeypatch):
    monkeypatch.delenv("HSA_OVERRIDE_GFX_VERSION", raising=False)
    bare, other = read_hardware(sysfs.no_driver(tmp_path / "a")), read_hardware(sysfs.mi50(tmp_path / "b"))
    named = job_request(request=Request(**requested))
    for hardware, code in ((bare, "RM301"), (other, "RM303")):
        with pytest.raises(RocmatrixError, match=code):
            requirement.check_native_cards(named, cell=cells.GFX1100, hardware=hardware)
    with nullcontext():
        requirement.check_native_cards(named, cell=cells.GFX1100, hardware=replace(bare, wsl2=True))
        requirement.check_native_cards(replace(named, options={"device": "cpu"}), cell=cells.GFX1100, hardware=bare)
        monkeypatch.setenv("HSA_OVERRIDE_GFX_VERSION", "11.0.0")
        requirement.check_native_cards(named, cell=cells.GFX1100, hardware=other)

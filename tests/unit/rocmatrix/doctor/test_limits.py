"""Checks of what limits a run: IOMMU, engine."""

from rocmatrix.doctor.host import Engine
from tests.fixtures import machines, sysfs
from tests.fixtures.doctor import FOLDER, SECOND, findings_on


def test_iommu_is_judged_by_the_command_line_where_groups_are_unknown(tmp_path):
    machine = machines.two_rx_7900_xt(tmp_path)
    for folder in (FOLDER, SECOND):
        (tmp_path / folder / "iommu_group/type").unlink()
    assert findings_on(machine)["D301"].status == "ok"
    machine.write("proc/cmdline", "quiet\n")
    assert findings_on(machine)["D301"].status == "note"
    machine.write("sys/class/iommu/dmar0/x", "")
    assert findings_on(machine)["D301"].status == "warning"


def test_engine_of_a_machine_without_a_card_gets_no_advice_on_cards(tmp_path):
    found = findings_on(sysfs.no_driver(tmp_path), engine=Engine(version="24.0.7"))["D402"]
    assert (found.status, found.fix) == ("not applicable", None)

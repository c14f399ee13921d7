"""What the doctor's checks read of a host: limits, groups of the IOMMU, and whether there is anything of AMD's."""

import pytest

from rocmatrix.doctor import host
from tests.fixtures import machines, sysfs


def read(machine):
    return host.read(machine, environment=None)


def test_host_without_anything_of_amds_states_why_no_card_is_judged(tmp_path):
    found = read(sysfs.no_driver(tmp_path))
    assert found.absent
    assert found.no_card == host.NO_CARD


def test_card_without_its_driver_is_no_absence(tmp_path):
    found = read(machines.unserved(tmp_path))
    assert not found.absent
    assert found.amd_devices
    assert found.no_card != host.NO_CARD


def test_facts_of_a_running_machine_are_unknown_unless_given(tmp_path):
    found = read(machines.two_rx_7900_xt(tmp_path))
    assert (found.user, found.engine, found.disk, found.shared_memory_bytes, found.environment) == (None,) * 5
    assert len(found.iommu_types) == 2


@pytest.mark.parametrize(
    ("row", "memlock"), [("8388608              8388608              bytes", "8388608"), (None, None)]
)
def test_soft_limit_of_locked_memory_is_read_where_it_stands(tmp_path, row, memlock):
    machine = machines.two_rx_7900_xt(tmp_path)
    machine.write("proc/self/limits", f"Max locked memory         {row}\n" if row else "Max cpu time  unlimited\n")
    assert read(machine).memlock == memlock

"""Maps of numbers: what overlaps, what is not mapped, and whether a group of the host is."""

from pathlib import Path

import pytest

from rocmatrix.doctor.environment.files.machines import guest, idmap


def of(*rows):
    return guest.read("".join(f"lxc.idmap: {row}\n" for row in rows), Path("1.conf"))


@pytest.mark.parametrize(
    ("rows", "rules"),
    [
        (["u 0 100000 65536", "g 0 100000 44", "g 44 44 1", "g 45 100045 65491"], []),
        (["u 0 100000 65536", "g 0 100000 45", "g 44 44 1", "g 45 100045 65491"], ["idmap-overlaps"]),
        (["g 0 100000 65536"], ["idmap-without-users"]),
        (["u 0 100000 65536", "u 0 200000 1", "g 0 100000 65536"], ["idmap-overlaps"]),
        (["u 0 100000"], []),  # no map, which LXC itself refuses
        ([], []),
    ],
)
def test_maps_are_judged_kind_by_kind(rows, rules):
    assert [finding.rule for finding in idmap.findings(of(*rows))] == rules


@pytest.mark.parametrize(("row", "mapped"), [("g 44 44 1", True), ("g 0 100000 65536", False), ("u 44 44 1", False)])
def test_group_of_the_host_is_one_below_the_mapped_numbers(row, mapped):
    assert idmap.maps_groups(of(row)) is mapped

"""Nodes of a container: which lines allow which node."""

from pathlib import Path

import pytest

from rocmatrix.doctor.environment.files.machines import guest, lxc

KFD = "lxc.mount.entry: /dev/kfd dev/kfd none bind,create=file"
RENDER = "lxc.mount.entry: /dev/dri/renderD129 dev/dri/renderD129 none bind,create=file"


def rules(*rows):
    return {finding.rule for finding in lxc.findings(guest.read("\n".join(rows), Path("1.conf")))}


@pytest.mark.parametrize(
    ("allowed", "node", "covered"),
    [
        ("c 226:129 rwm", RENDER, True),
        ("c 226:128 rwm", RENDER, False),
        ("c *:* rwm", RENDER, True),
        ("c 234:0 rwm", KFD, True),
        ("c 254:0 rwm", KFD, True),
        ("c 233:0 rwm", KFD, False),  # no number that the kernel hands out by itself
        ("c 255:0 rwm", KFD, False),
        ("c 384:0 rwm", KFD, True),
        ("c 511:* rwm", KFD, True),
        ("c 512:* rwm", KFD, False),
        ("c 226:* rwm", KFD, False),
        ("b 226:* rwm", RENDER, False),
        ("c", RENDER, False),
    ],
)
def test_line_of_the_cgroup_covers_a_node_by_its_numbers(allowed, node, covered):
    assert ("node-not-allowed" in rules(f"lxc.cgroup2.devices.allow: {allowed}", node)) is not covered


def test_device_of_proxmox_allows_the_node_that_is_mounted_too():
    assert "node-not-allowed" not in rules("dev0: /dev/dri/renderD129,gid=44", RENDER)


@pytest.mark.parametrize(
    "row", ["lxc.hook.pre-start: sh -c 'chmod 666 /dev/kfd'", "# udev: MODE=0666 for kfd and renderD128"]
)
def test_nodes_that_the_host_opens_need_no_map(row):
    rows = ("unprivileged: 1", "lxc.cgroup2.devices.allow: a", KFD, RENDER)
    assert "nodes-without-owner" in rules(*rows)
    assert "nodes-without-owner" not in rules(*rows, row)

"""A spec holds least privilege, the host's own numbers, and a reason and source for every row."""

import os
import struct
from contextlib import nullcontext
from pathlib import Path

import pytest

from rocmatrix.containers import emit
from rocmatrix.containers.emit.podman import podman_run_argv
from rocmatrix.containers.runspec import Chosen, _agreed, explain, portable_spec, run_spec
from rocmatrix.containers.settings import (
    Device,
    Environment,
    Group,
    HostText,
    Mount,
    User,
)
from rocmatrix.host.hardware import read_hardware
from rocmatrix.images import build
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures import cells, sysfs
from tests.fixtures.machine_specs import spec_for


def test_cpu_cell_needs_no_card(tmp_path):
    assert spec_for(sysfs.no_driver(tmp_path), cells.CPU).cell == cells.CPU.name


def test_rocm_cell_with_no_card_is_refused(tmp_path):
    with pytest.raises(RocmatrixError, match="RM301"):
        spec_for(sysfs.no_driver(tmp_path))


@pytest.mark.parametrize(
    "choices", [{"user": "me"}, {"user": "1000"}, {"run_folder": Path("run")}, {"data": Path("d")}]
)
def test_names_and_relative_paths_are_no_input(tmp_path, choices):
    with pytest.raises(ValueError, match="is not"):
        spec_for(sysfs.two_rx_7900_xt(tmp_path), **choices)


@pytest.mark.parametrize("cell", cells.MATRIX.cells, ids=lambda cell: cell.name)
def test_rows_of_every_cell_have_a_reason_and_a_source(cell):
    rows = explain(portable_spec(cell))
    assert rows
    for row in rows:
        assert row.reason.strip(), row
        assert row.source.strip(), row


def test_portable_spec_knows_no_host():
    spec = portable_spec(cells.GFX1100)
    assert spec.portable
    assert [row.host for row in spec.of(Device)] == ["/dev/kfd", "/dev/dri"]
    assert all(isinstance(row.gid, HostText) for row in spec.of(Group))
    assert isinstance(spec.of(User)[0].value, HostText)
    assert spec.image == build.tag(cells.GFX1100)


def test_portable_spec_of_a_cpu_cell_has_no_devices():
    spec = portable_spec(cells.CPU)
    assert spec.of(Device) + spec.of(Group) == ()


def test_group_that_two_features_need_is_given_once():
    groups = [Group(gid=gid, reason="for the test", source="the test") for gid in (992, 44, 992)]
    assert [setting.gid for setting in _agreed(groups)] == [992, 44]


@pytest.mark.parametrize(("enforce", "given"), [("1\n", 1), ("0\n", 0), ("", 0), (None, 0)])
def test_labels_are_lifted_once_on_each_engine_where_selinux_is_enforced(tmp_path, enforce, given):
    machine = sysfs.two_rx_7900_xt(tmp_path)
    if enforce is not None:
        machine.write("sys/fs/selinux/enforce", enforce)
    spec = spec_for(machine)
    option = "--security-opt=label=disable"
    assert emit.docker_options(spec).count(option) == given
    assert emit.docker_sdk_arguments(spec)["security_opt"].count("label=disable") == given
    assert emit.compose_file(spec).count("label=disable") == given
    assert podman_run_argv(spec, rootless=True, selinux=bool(given)).count(option) == given


def test_run_under_a_rootless_engine_is_root_inside_and_names_no_group(tmp_path):
    machine = sysfs.strix_halo(tmp_path)
    spec = spec_for(machine, cells.GFX1151, rootless=True)
    assert [row.value for row in spec.of(User)] == ["0:0"]
    assert "1000:100" in spec.of(User)[0].reason
    assert spec.of(Group) == ()
    assert [row.host for row in spec.of(Device)] == ["/dev/kfd", "/dev/dri/renderD128"]
    assert [row.origin for row in spec.of(Mount) if row.kind == "volume"] == [
        row.origin for row in spec_for(machine, cells.GFX1151).of(Mount) if row.kind == "volume"
    ]  # the user's own caches, whichever engine


def test_node_that_only_a_group_opens_is_refused_under_a_rootless_engine(tmp_path):
    machine = sysfs.two_rx_7900_xt(tmp_path)
    assert len(spec_for(machine).of(Group)) == 1
    with pytest.raises(RocmatrixError, match="rootless engine") as refused:
        spec_for(machine, rootless=True)
    assert refused.value.code == "RM302"
    assert "setfacl -m u:1000:rw /dev/kfd" in refused.value.next


def test_primary_group_of_the_user_opens_a_node_under_a_rootless_engine(tmp_path):
    machine = sysfs.two_rx_7900_xt(tmp_path, render_gid=100)
    assert len(spec_for(machine, rootless=True).of(Device)) == 3


@pytest.mark.parametrize("choices", [{"rootless": True}, {"device_rules": False}])
@pytest.mark.parametrize(("unique", "visible"), [(0xA2, "GPU-00000000000000a2"), (0, "1")])
def test_engine_without_device_rules_is_given_every_card_and_the_variable_chooses(tmp_path, choices, unique, visible):
    """ROCm/legacy-rocm-build#3144: the kernel shows it both cards, and ROCr ends with 0x1008 where one has no node."""
    machine = sysfs.desktop_with_igpu(tmp_path, render_gid=100)
    machine.gpu(2, sysfs.RX_7900_XT, minor=129, gid=100, memory=20 * sysfs.GIB, unique_id=unique)
    spec = spec_for(machine, **choices)
    nodes = {row.host: row.reason for row in spec.of(Device)}
    assert list(nodes) == ["/dev/kfd", "/dev/dri/renderD128", "/dev/dri/renderD129"]
    assert "does not use" in nodes["/dev/dri/renderD128"]
    assert "no other is passed" not in "".join(nodes.values())
    assert [row.content for row in spec.of(Environment) if row.name == "ROCR_VISIBLE_DEVICES"] == [visible]


def test_engine_with_device_rules_is_given_no_card_that_the_run_leaves_out(tmp_path):
    spec = spec_for(sysfs.desktop_with_igpu(tmp_path))
    assert [row.host for row in spec.of(Device)] == ["/dev/kfd", "/dev/dri/renderD129"]


@pytest.mark.parametrize(
    ("entries", "opens"),
    [
        ([(0x02, 6, 1000)], True),
        ([(0x02, 6, 1001)], False),
        ([(0x02, 4, 1000)], False),
        ([(0x08, 6, 1000)], False),  # a group of that number
        ([(0x02, 6, 1000), (0x10, 4, 0)], False),  # the mask
        ([(0x02, 6, 1000), (0x10, 6, 0)], True),
        ([], False),
    ],
)
def test_access_list_of_a_node_opens_it_under_a_rootless_engine(tmp_path, monkeypatch, entries, opens):
    raw = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    monkeypatch.setattr(os, "getxattr", lambda path, name: raw)
    machine = sysfs.two_rx_7900_xt(tmp_path)
    with nullcontext() if opens else pytest.raises(RocmatrixError, match="RM302"):
        spec_for(machine, rootless=True)


@pytest.mark.parametrize("word", ["q\udcff", "a\0b"])
def test_word_that_no_engine_can_be_handed_is_refused(tmp_path, word):
    hardware = read_hardware(sysfs.no_driver(tmp_path))
    plan = {"image": "i", "run_folder": Path("/srv"), "user": "1000:1000"}
    for chosen in (Chosen(command=["p", word], **plan), Chosen(command=[], entrypoint=word, **plan)):
        with pytest.raises(RocmatrixError, match="RM404"):
            run_spec(cells.CPU, hardware, chosen)


@pytest.mark.parametrize("name", ["q\udcff", "a\r\nb"])
def test_path_that_an_engine_reads_as_another_is_refused(tmp_path, name):
    hardware = read_hardware(sysfs.no_driver(tmp_path))
    for plan in ({"run_folder": Path("/srv") / name}, {"run_folder": Path("/srv"), "data": Path("/srv") / name}):
        with pytest.raises(RocmatrixError, match="RM404"):
            run_spec(cells.CPU, hardware, Chosen(image="i", command=[], user="1000:1000", **plan))


def test_program_with_an_empty_name_is_refused(tmp_path):
    chosen = Chosen(image="i", command=[], entrypoint="", run_folder=Path("/srv"), user="1000:1000")
    with pytest.raises(RocmatrixError, match=r"RM404[\s\S]*empty name"):
        run_spec(cells.CPU, read_hardware(sysfs.no_driver(tmp_path)), chosen)

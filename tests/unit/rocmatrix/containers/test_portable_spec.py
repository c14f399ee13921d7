"""A spec for another machine holds nothing of this one, and the network that its number of machines needs."""

from pathlib import Path

import pytest

from rocmatrix.containers.portable_spec import Places, elsewhere_spec, locked_memory
from rocmatrix.containers.settings import UNLIMITED, Device, Environment, Group, Limit, Mount, Network, User
from tests.fixtures import cells


def spec(places=None, **changes):
    settings = {"image": "i", "command": ["train"], "user": None} | changes
    return elsewhere_spec(cells.GFX1100, places=places or Places(results="/srv/runs"), **settings)


def test_spec_of_another_machine_has_no_node_card_or_limit_of_this_one():
    found = spec()
    assert found.of(Device) + found.of(Limit) + found.of(User) + found.of(Group) == ()
    assert "ROCR_VISIBLE_DEVICES" not in {row.name for row in found.of(Environment)}


def test_named_user_and_groups_are_given_by_number():
    found = spec(user="1000:100", groups=(44, 992))
    assert [row.value for row in found.of(User)] == ["1000:100"]
    assert [row.gid for row in found.of(Group)] == [44, 992]


@pytest.mark.parametrize(
    ("changes", "network", "word"),
    [
        ({}, "none", "reads local files"),
        ({"nodes": 2}, "host", "bridge ends at its own machine"),
        ({"rdma": True}, "host", "adapter's addresses"),
        ({"nodes": 2, "rdma": True}, "host", "adapter's addresses"),
    ],
)
def test_network_is_the_machines_own_for_several_nodes_or_rdma(changes, network, word):
    (row,) = spec(**changes).of(Network)
    assert (row.value, word in row.reason) == (network, True)


def test_files_of_a_run_are_mounted_read_only_but_its_results():
    code = (Path("/srv/a.py"),)
    data = {"data": "/srv/bars.csv", "data_target": "/data/bars.csv"}
    found = spec(Places(results="/srv/runs", recipe=Path("/srv/r.yaml"), callbacks=code, **data)).of(Mount)
    written = {row.target for row in found if not row.read_only}
    assert written == {"/training", "/cache"}
    read = {(row.origin, row.target) for row in found if row.read_only}
    assert read == {
        ("/srv/bars.csv", "/data/bars.csv"),
        ("/srv/r.yaml", "/recipe/r.yaml"),
        ("/srv/a.py", "/callbacks/0/a.py"),
    }


def test_locked_memory_is_unlimited():
    limit = locked_memory()
    assert (limit.name, limit.soft, limit.hard) == ("memlock", UNLIMITED, UNLIMITED)

"""Options of Pyxis: what it would misread is refused, and nothing of the container reaches the node's programs."""

import shlex
from dataclasses import replace

import pytest

from rocmatrix.containers.emit.cluster.pyxis import in_pyxis
from rocmatrix.containers.portable_spec import Places, elsewhere_spec
from rocmatrix.containers.settings import AddCapability, CdiDevice, Ipc, Limit, Mount
from tests.fixtures import cells

WHY = {"reason": "r", "source": "s"}
SPEC = elsewhere_spec(
    cells.GFX1100, image="/shared/i.sqsh", command=("train",), places=Places(results="/srv/runs"), user=None
)


def test_variables_of_the_container_are_set_inside_of_it_alone():
    made = in_pyxis(SPEC, cards=True)
    assert made.environment == {}  # XDG_CACHE_HOME and USER would move Enroot's own files
    words = shlex.split(" ".join(made.command))
    assert words[0] == "env" and words[-1] == "python"
    assert {"HOME=/tmp", "XDG_CACHE_HOME=/cache", "USER=trainer"} <= set(words)


@pytest.mark.parametrize(
    ("options", "nodes"),
    [
        ({"cards": True}, ["/dev/kfd:/dev/kfd", "/dev/dri:/dev/dri"]),
        ({"cards": False}, []),
        ({"cards": False, "rdma": True}, ["/dev/infiniband:/dev/infiniband"]),
    ],
)
def test_device_nodes_are_named_for_sites_that_hide_dev(options, nodes):
    (mounts,) = (word for word in in_pyxis(SPEC, **options).step if word.startswith("--container-mounts="))
    assert mounts.partition("=")[2].split(",") == [*nodes, "/srv/runs:/training", "tmpfs:/tmp", '"$work":/cache']


@pytest.mark.parametrize("path", ["/a,b", "/a:b", "/a b", "/a$HOME", "/a`id`", '/a"b', "/a\\b"])
def test_path_that_pyxis_would_misread_is_refused(path):
    mount = Mount(kind="bind", origin=path, target="/data/b", read_only=True, **WHY)
    with pytest.raises(ValueError, match="Pyxis would misread"):
        in_pyxis(replace(SPEC, settings=(*SPEC.settings, mount)), cards=True)


@pytest.mark.parametrize(
    "setting",
    [
        AddCapability(value="SYS_PTRACE", **WHY),
        CdiDevice(value="amd.com/gpu=0", **WHY),
        Ipc(value="host", **WHY),
        Limit(name="memlock", soft=-1, hard=-1, **WHY),
        Mount(kind="volume", origin="other", target="/other", read_only=False, **WHY),
    ],
)
def test_setting_that_pyxis_lacks_is_refused(setting):
    with pytest.raises(ValueError, match=f"no word for {setting.flag}"):
        in_pyxis(replace(SPEC, settings=(*SPEC.settings, setting)), cards=True)

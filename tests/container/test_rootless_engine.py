"""What a real rootless Docker makes of the emitter: who owns the results, and which nodes open. Cards are STAND-INS."""

import os
import shutil
import stat
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from rocmatrix.containers import engine
from rocmatrix.containers.device_selection import usable_nodes
from rocmatrix.containers.emit.docker import docker_run_argv
from rocmatrix.containers.settings import Limit
from rocmatrix.host.hardware import read_hardware
from rocmatrix.host.sysfs import DeviceNode
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures import rootless_engine, small_image, sysfs
from tests.fixtures.rootless_engine import UID
from tests.fixtures.small_image import TRY_TO_OPEN, TRY_TO_WRITE, spec_for

pytestmark = pytest.mark.container

PATHS = {"/dev/kfd": "kfd", "/dev/dri/renderD128": "dri/renderD128"}


@pytest.fixture(scope="module")
def rootless():
    """Start a rootless engine with the small image; yield its folder."""
    if lacking := rootless_engine.lacking():
        pytest.skip(lacking)
    folder = Path(tempfile.mkdtemp(prefix="rm-", dir="/tmp"))
    with pytest.MonkeyPatch.context() as here:
        try:
            with rootless_engine.engine(folder) as address:
                here.setenv("DOCKER_HOST", address)
                argv = ["docker", "import", "-", small_image.IMAGE]
                subprocess.run(argv, input=small_image.tools(), capture_output=True, check=True)
                yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def results(rootless):
    folder = Path(tempfile.mkdtemp(dir=rootless / "home"))
    os.chown(folder, UID, UID)
    return folder


def card(folder, tmp_path, *, place):
    """Return a machine with one card whose nodes are those of the engine's /dev; `place`: as they are found outside."""
    machine = sysfs.Machine(tmp_path / "machine")
    machine.amdgpu(kfd_gid=rootless_engine.RENDER_GROUP)
    machine.gpu(1, sysfs.RX_7900_XT, minor=128, gid=rootless_engine.RENDER_GROUP, unique_id=1)
    nodes = {}
    for path, name in PATHS.items():
        outside = rootless_engine.node(folder, name)
        seen = outside.stat()
        nodes[path] = DeviceNode(
            path=path, uid=seen.st_uid, gid=seen.st_gid, mode=stat.S_IMODE(seen.st_mode),
            place=str(outside) if place else None,
        )  # fmt: skip
    found = read_hardware(machine)
    return replace(found, kfd=nodes["/dev/kfd"], cards=(replace(found.cards[0], render=nodes["/dev/dri/renderD128"]),))


def refused(hardware):
    try:
        usable_nodes(hardware, hardware.cards, user=f"{UID}:{UID}", rootless=True)
    except RocmatrixError as error:
        return error.code
    return None


def run(hardware, results, script, *words):
    """Run the emitted command, as if each node were open: what the engine makes of it is what counts."""
    opened = replace(
        hardware,
        kfd=replace(hardware.kfd, mode=0o666),
        cards=tuple(replace(card, render=replace(card.render, mode=0o666)) for card in hardware.cards),
    )
    spec = spec_for(opened, results, ["sh", "-c", script, "-", *words], user=f"{UID}:{UID}", rootless=True)
    spec = replace(spec, settings=tuple(s for s in spec.settings if not isinstance(s, Limit)))
    return subprocess.run(docker_run_argv(spec), capture_output=True, text=True, check=False, timeout=120)


def test_rootless_engine_is_known_by_its_own_report(rootless):
    assert engine.rootless_kind() == "docker"


@pytest.mark.parametrize(
    ("given", "code", "state"),
    [
        ({"mode": 0o660}, "RM302", "closed"),  # as udev gives it: its group is another one inside
        ({"mode": 0o666}, None, "open"),
        ({"mode": 0o660, "user": UID}, None, "open"),  # as logind or setfacl names a user
        ({"mode": 0o660, "user": UID + 1}, "RM302", "closed"),
    ],
)
def test_node_that_the_check_calls_open_opens_in_a_run_and_no_other(rootless, results, tmp_path, given, code, state):
    for name in PATHS.values():
        rootless_engine.give(rootless_engine.node(rootless, name), **given)
    assert refused(card(rootless, tmp_path, place=True)) == code
    done = run(card(rootless, tmp_path / "b", place=False), results, TRY_TO_OPEN, *PATHS)
    assert done.stdout.splitlines() == [f"{path} {state}" for path in PATHS], done.stderr


def test_results_belong_to_the_user_and_the_root_file_system_is_closed(rootless, results, tmp_path):
    for name in PATHS.values():
        rootless_engine.give(rootless_engine.node(rootless, name), mode=0o666)
    script = f"id -u; {TRY_TO_WRITE}"
    done = run(card(rootless, tmp_path, place=False), results, script, "/training/made", "/bin/made", "/cache/made")
    assert done.stdout.splitlines() == ["0", "/training/made written", "/bin/made kept", "/cache/made written"], (
        done.stderr
    )
    assert (results / "made").stat().st_uid == UID

"""What podman, run by root, makes of the emitter. Device nodes are STAND-INS, harmless nodes made by mknod.

Its default limits are left out and runc runs the containers: a machine without CAP_SYS_RESOURCE cannot raise limits,
and crun refuses the old and the new cgroups side by side. Rootless podman is not tried: keep-groups needs crun.
"""

import json
import os
import shutil
import subprocess

import pytest

from rocmatrix.containers.emit import cdi
from rocmatrix.containers.emit.podman import podman_run_argv
from tests.container.test_cdi_container import from_places
from tests.fixtures import small_image
from tests.fixtures.small_image import GID, GROUP, TRY_TO_OPEN, TRY_TO_WRITE, UID, on_stand_ins, spec_for

pytestmark = [pytest.mark.container, pytest.mark.skipif(not shutil.which("podman"), reason="podman is not installed")]

CONFIGURATION = """\
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
runtime = "runc"
"""
IMAGE = f"localhost/{small_image.IMAGE}"


@pytest.fixture(scope="module")
def podman(tmp_path_factory):
    """Return a function that runs podman with images and settings of the tests' own."""
    if os.geteuid() != 0:
        pytest.skip("mknod and podman's root mode need root")
    folder = tmp_path_factory.mktemp("podman")
    (folder / "containers.conf").write_text(CONFIGURATION)
    environment = os.environ | {"CONTAINERS_CONF": str(folder / "containers.conf")}

    def podman(argv, **options):
        assert argv[0] == "podman"
        return subprocess.run(argv, capture_output=True, env=environment, check=False, **options)

    made = podman(["podman", "import", "-", IMAGE], input=small_image.tools())
    if made.returncode:
        pytest.skip(f"podman cannot import an image here: {made.stderr.decode().strip()}")
    yield podman
    podman(["podman", "rmi", "--force", IMAGE])


def run(podman, spec):
    try:
        return podman(podman_run_argv(spec, rootless=False, selinux=False), text=True)
    finally:
        podman(["podman", "volume", "rm", "--force", f"rocmatrix-cache-{spec.cell}-{UID}"])


def test_arbitrary_user_opens_the_nodes_it_was_given_and_no_others(podman, run_folder, stand_ins):
    hardware, places = stand_ins
    nodes = ["/dev/kfd", "/dev/dri/renderD128", "/dev/dri/renderD129"]
    command = ["sh", "-c", f"id -G; id -u; {TRY_TO_OPEN}", "sh", *nodes]
    done = run(podman, on_stand_ins(spec_for(hardware, run_folder, command, cards=[0], image=IMAGE), places))
    assert done.returncode == 0, done.stderr
    opened = ["/dev/kfd open", "/dev/dri/renderD128 open", "/dev/dri/renderD129 closed"]
    assert done.stdout.splitlines() == [f"{GID} {GROUP}", f"{UID}", *opened]


def test_podman_writes_to_its_folders_only(podman, run_folder, stand_ins, tmp_path):
    data = tmp_path / "bars, daily.csv"
    data.touch()
    data.chmod(0o666)
    hardware, places = stand_ins
    written, kept = ["/training/a", "/cache/a", "/tmp/a"], ["/a", "/run/a", "/var/tmp/a", "/data/bars, daily.csv"]
    command = ["sh", "-c", TRY_TO_WRITE, "sh", *written, *kept]
    done = run(podman, on_stand_ins(spec_for(hardware, run_folder, command, image=IMAGE, data=data), places))
    assert done.stdout.splitlines() == [f"{p} written" for p in written] + [f"{p} kept" for p in kept], done.stderr


def test_cards_are_given_by_their_cdi_names(podman, run_folder, stand_ins, tmp_path, monkeypatch):
    monkeypatch.setattr(cdi, "KIND", "rocmatrix.test/podman")
    hardware, places = stand_ins
    file = cdi.FOLDERS[-1] / f"rocmatrix-test-podman-{os.getpid()}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(from_places(cdi.specification(hardware), places)))
    try:
        command = ["sh", "-c", f"ls /dev/dri; {TRY_TO_OPEN}", "sh", "/dev/kfd", "/dev/dri/renderD129"]
        spec = cdi.by_name(spec_for(hardware, run_folder, command, cards=[1], image=IMAGE), hardware)
        done = run(podman, spec)
    finally:
        file.unlink()
    assert done.stdout.splitlines() == ["renderD129", "/dev/kfd open", "/dev/dri/renderD129 open"], done.stderr

"""The README's commands on a real engine: build, train and smoke in the CPU cell's image.

The image's base is Debian bookworm from debootstrap, in the place of debian:bookworm-slim; its wheels are real.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.left_out import long

pytestmark = pytest.mark.container

ROOT = Path(__file__).resolve().parents[2]
QUICK = ["device", "rng", "checkpoint"]  # test_nightly has the verdicts of all


def invokew(*args, cwd=ROOT, status=0):
    done = subprocess.run(
        [str(ROOT / "invokew"), *args], cwd=cwd, capture_output=True, text=True, check=False, timeout=500
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def runs(tmp_path_factory, debian):
    """One run natively and one in the container, side by side."""
    output = tmp_path_factory.mktemp("runs")
    where = {"native": ["--in", "native"], "container": ["--in", "container", "--base", debian]}
    for name, choice in where.items():
        invokew("train", "--cell", "cpu-torch2.13.0", "--output", str(output), "--run", name, "--epochs", "20", *choice)
    return output


def test_run_in_the_container_gives_the_weights_of_a_native_run(runs):
    native, container = (runs / name / "model.safetensors" for name in ("native", "container"))
    assert container.read_bytes() == native.read_bytes()


def test_run_records_cell_image_and_commit(runs):
    records = {name: json.loads((runs / name / "metadata.json").read_text()) for name in ("native", "container")}
    assert {record["matrix_cell"] for record in records.values()} == {"cpu-torch2.13.0"}
    assert records["container"]["image"].startswith("sha256:")
    assert records["native"]["image"] is None
    assert records["native"]["git_commit"] == records["container"]["git_commit"]
    assert records["native"]["data"]["sha256"] == records["container"]["data"]["sha256"]


def test_files_of_a_container_belong_to_the_user_who_started_it(runs):
    owners = {path.stat().st_uid for path in (runs / "container").iterdir()}
    assert owners == {os.getuid()}


@long
def test_data_of_the_host_is_mounted_read_only(tmp_path, debian):
    data = tmp_path / "mine.csv"
    data.write_bytes((ROOT / "trainer/data/sp500_vix_daily.csv").read_bytes())
    choice = ["--in", "container", "--base", debian, "--epochs", "1", "--run", "r"]
    invokew("train", "--cell", "cpu-torch2.13.0", "--data", str(data), *choice, cwd=tmp_path)
    assert json.loads((tmp_path / "TRAINING/r/metadata.json").read_text())["data"]["name"] == "mine.csv"


@long
def test_chosen_probes_pass_in_the_image(debian):
    chosen = [word for name in QUICK for word in ("--probe", name)]
    done = invokew("smoke", "--cell", "cpu-torch2.13.0", "--in", "container", "--base", debian, "--json", *chosen)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    found = {event["probe"]: event["status"] for event in events if event["event"] == "probe"}
    assert found == dict.fromkeys(QUICK, "pass"), done.stderr


def test_unknown_probe_is_one_error_and_no_failed_suite(debian):
    done = invokew(
        "smoke", "--cell", "cpu-torch2.13.0", "--in", "container", "--base", debian, "--probe", "blass", status=2
    )
    assert "RM590" in done.stderr
    assert "blas" in done.stderr
    assert "RM208" not in done.stderr


def test_full_disk_leaves_no_run(tmp_path, debian):
    if os.getuid() != 0:
        pytest.skip("mounting a small file system needs root")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(disk)], check=True)
    try:
        choice = ["--in", "container", "--base", debian, "--epochs", "2"]
        done = invokew("train", "--cell", "cpu-torch2.13.0", "--output", str(disk), *choice, status=2)
        assert "RM54" in done.stderr
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_stopped_engine_is_named(tmp_path):
    environment = {**os.environ, "DOCKER_HOST": f"unix://{tmp_path}/no.sock"}
    argv = [str(ROOT / "invokew"), "train", "--in", "container"]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "RM201" in done.stderr
    assert str(tmp_path) in done.stderr

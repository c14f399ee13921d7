"""The CPU image does its work for root and for a user id that nobody knows, confined as every run is.

Read-only root, no network, no capability; only the run folder and the cache can be written.
"""

import json

import pytest

from tests.left_out import long, one_of

pytestmark = pytest.mark.container

USERS = {"root": "0:0", "unknown": "12345:12345", "unknown-in-group-0": "12345:0"}
# What depends on the user: shared memory, a run's files, ranks that meet (caches: test_compile_container).
PROBES = ["device", "transfer", "checkpoint", "collectives"]


@pytest.mark.parametrize("user", one_of(USERS.values()), ids=USERS)
def test_device_probe_passes(cpu_image, run, user):
    ended = run(cpu_image.tag, "smoke", "--probe", "device", "--expect", "cpu", user=user)
    assert ended.status == 0, ended.stderr
    verdict, end = ended.lines
    assert (verdict["probe"], verdict["status"]) == ("device", "pass")
    assert end["passed"] == 1


@long
def test_probes_that_need_files_and_other_processes_pass_for_a_user_without_a_name(cpu_image, run):
    ended = run(cpu_image.tag, "smoke", "--expect", "cpu", *(f"--probe={name}" for name in PROBES))
    assert {line["probe"]: line["status"] for line in ended.lines[:-1]} == dict.fromkeys(PROBES, "pass"), ended.stderr
    assert ended.status == 0


def test_card_that_was_promised_and_is_not_there_fails(cpu_image, run):
    ended = run(cpu_image.tag, "smoke", "--probe", "device", "--expect", "rocm")
    assert ended.status == 1
    assert ended.lines[0]["status"] != "pass"


@pytest.mark.parametrize("user", one_of(USERS.values()), ids=USERS)
def test_training_leaves_a_complete_run_of_that_user(cpu_image, run, tmp_path, user):
    ended = run(cpu_image.tag, "train", "--output=/training", "--run=r", "--epochs=1", "--data-fraction=0.5", user=user)
    assert ended.status == 0, ended.stderr
    folder = tmp_path / "r"
    assert {"model.pt", "model.safetensors", "metadata.json", "metrics.jsonl"} <= {p.name for p in folder.iterdir()}
    owner, group = map(int, user.split(":"))
    assert {(p.stat().st_uid, p.stat().st_gid) for p in folder.iterdir()} == {(owner, group)}
    assert json.loads((folder / "metadata.json").read_text())["config"]["epochs"] == 1


@pytest.mark.parametrize("user", USERS.values(), ids=USERS)
def test_other_paths_cannot_be_written(cpu_image, run, user):
    places = "/ /opt/venv /opt/rocmatrix /usr /etc /var/log"
    program = f"for d in {places}; do touch $d/x && echo $d; done; touch /training/x"
    ended = run(cpu_image.tag, "-c", program, entrypoint="sh", user=user)
    assert ended.stdout == ""
    assert ended.status == 0


def test_network_is_absent(cpu_image, run):
    program = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=5)"
    ended = run(cpu_image.tag, "-c", program, entrypoint="python")
    assert ended.status == 1
    assert "Network is unreachable" in ended.stderr


def test_modules_of_the_run_folder_are_not_taken_for_the_images_own(cpu_image, run, tmp_path):
    """Neither by the suite nor by the processes that it starts: a forged torch would pass every probe."""
    for name in ("torch", "numpy", "trainer", "json"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('taken from the run folder')\n")
    ended = run(cpu_image.tag, "smoke", "--expect", "cpu", "--probe", "device", "--probe", "collectives")
    assert {line["probe"]: line["status"] for line in ended.lines[:-1]} == {"device": "pass", "collectives": "pass"}
    assert "run folder" not in ended.stdout + ended.stderr

"""Jobs as `./invokew submit` makes them, in a real Slurm whose nodes are SIMULATED other machines.

There, device nodes have other names and owners, programs are where only a login's PATH finds them, and no name
service knows the machine. Docker and Apptainer are stand-ins that write down what reaches them, where cards are
asked for: nothing here has a card. One training runs in the real engine.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures import other_machine
from tests.fixtures import slurm as harness
from tests.left_out import long

pytestmark = pytest.mark.slurm

ROOT = Path(__file__).resolve().parents[2]
CELL = "rocm6.3-torch2.7.1-gfx1100"
CPU = "cpu-torch2.13.0"
NOTE = """#!/bin/sh
[ "$1" = rm ] && exit 0
printf '%s\\n' "$@" >{folder}/words
env >{folder}/environment
"""


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """Start a Slurm on two other machines; its `notes` is where the stand-ins write."""
    if lacking := harness.lacking() or other_machine.lacking():
        pytest.skip(lacking)
    folder = tmp_path_factory.mktemp("elsewhere")
    note = NOTE.format(folder=folder)
    machine = other_machine.machine(folder / "machine", docker=note, apptainer=note, python9=note)
    with harness.slurm(folder / "slurm", machine) as running:
        running.notes = folder
        yield running


def submit(slurm, output, *words):
    """Submit through the command line, in an environment that holds a secret and another PATH, and return the log."""
    argv = [sys.executable, "-P", "-m", "invoke", "--search-root", str(ROOT), "submit", "--engine", "slurm"]
    environment = {**os.environ, "SLURM_CONF": slurm.environment["SLURM_CONF"], "A_SECRET": "hunter2"}
    argv += ["--output", str(output), "--run", "r", *words]
    done = subprocess.run(argv, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1])


def noted(slurm):
    words = (slurm.notes / "words").read_text().splitlines()
    return words, dict(line.split("=", 1) for line in (slurm.notes / "environment").read_text().splitlines())


@pytest.mark.parametrize("cards", [1, 2])
def test_docker_gets_the_nodes_devices_groups_and_slurms_choice_of_cards(elsewhere, tmp_path, cards):
    number = submit(elsewhere, tmp_path, "--under", "docker", "--cell", CELL, "--cards", str(cards))
    elsewhere.wait(number, "COMPLETED")
    words, environment = noted(elsewhere)
    assert {"--device=/dev/kfd:/dev/kfd:rw", f"--group-add={other_machine.KFD_GROUP}"} <= set(words)
    for node in other_machine.RENDER_NODES:
        assert f"--device=/dev/dri/{node}:/dev/dri/{node}:rw" in words
    assert f"--group-add={other_machine.RENDER_GROUP}" in words
    assert "--user=0:0" in words
    assert "--env=ROCR_VISIBLE_DEVICES" in words
    assert environment["ROCR_VISIBLE_DEVICES"] == ",".join(map(str, range(cards)))
    assert environment["OF_THE_LOGIN"] == "there"
    assert "A_SECRET" not in environment


def test_apptainer_gets_the_nodes_devices_and_slurms_choice_of_cards(elsewhere, tmp_path):
    given = ["--under", "apptainer", "--image", "/shared/i.sif", "--cell", CELL, "--cards", "1"]
    number = submit(elsewhere, tmp_path, *given)
    elsewhere.wait(number, "COMPLETED")
    words, environment = noted(elsewhere)
    assert words[0] == "exec"
    (work,) = (Path(word.partition("=")[2]) for word in words if word.startswith("--workdir="))
    assert work.name == f"rocmatrix-{number}"
    assert not work.exists()  # the job removes it
    assert {"--bind=/dev/kfd", "--bind=/dev/dri"} <= set(words)
    assert not any("renderD" in word for word in words)
    assert environment["APPTAINERENV_ROCR_VISIBLE_DEVICES"] == environment["ROCR_VISIBLE_DEVICES"] == "0"


def test_nodes_own_python_sees_slurms_choice_once(elsewhere, tmp_path):
    python = elsewhere.notes / "machine" / "site" / "python9"
    given = ["--python", str(python), "--checkout", "/shared/checkout", "--cell", CELL, "--cards", "1"]
    elsewhere.wait(submit(elsewhere, tmp_path, *given), "COMPLETED")
    words, environment = noted(elsewhere)
    assert words[:3] == ["-P", "-m", "torch.distributed.run"]
    assert environment["PYTHONPATH"] == "/shared/checkout"
    assert environment["ROCR_VISIBLE_DEVICES"] == "0"
    assert not {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"} & environment.keys()


def test_missing_tool_of_a_node_is_named_with_its_code(elsewhere, tmp_path):
    number = submit(elsewhere, tmp_path, "--under", "docker", "--cell", CPU, "--rdma")
    elsewhere.wait(number, "FAILED")
    log = (tmp_path / f"r-{number}.log").read_text()
    assert f"rocmatrix RM425: no /dev/infiniband on {other_machine.NAME}" in log


@long
def test_two_ranks_of_one_node_train_in_the_real_engine_without_a_network(tmp_path):
    image = os.environ.get("ROCMATRIX_TEST_IMAGE", f"rocmatrix:test-{CPU}")
    if lacking := harness.lacking() or other_machine.lacking():
        pytest.skip(lacking)
    docker = shutil.which("docker")
    if (
        docker is None
        or subprocess.run([docker, "image", "inspect", image], capture_output=True, check=False).returncode
    ):
        pytest.skip(f"no engine here that holds {image}")
    machine = other_machine.machine(tmp_path / "machine", docker=docker)
    output = tmp_path / "runs"
    output.mkdir()
    settings = ["--under", "docker", "--image", image, "--cell", CPU, "--processes", "2", "--epochs", "2"]
    with harness.slurm(tmp_path / "slurm", machine) as slurm:
        number = submit(slurm, output, *settings, "--device", "cpu")
        log = output / f"r-{number}.log"
        slurm.wait(number, "COMPLETED")
    script = (output / "r.sbatch").read_text()
    assert "--network=none" in script
    assert (output / "r" / "model.safetensors").exists()
    events = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    (done,) = [event for event in events if event["event"] == "done"]
    (step,) = [event for event in events if event["event"] == "step"]
    assert done["best"]["epoch"] in (1, 2)
    assert "several ranks" in step["reason"]

"""The batch script in a real Slurm: accepted, confined, stopped with a word, queued again.

The programs here are shell scripts in the place of Python, which write down what reached them; no torch.
"""

import time

import pytest

from rocmatrix.containers.emit.cluster.pyxis import in_pyxis
from rocmatrix.containers.emit.cluster.slurm_request import SlurmRequest
from rocmatrix.containers.emit.sbatch_script import (
    Batch,
    Launcher,
    in_apptainer,
    in_docker,
    native_launcher,
    sbatch_script,
)
from rocmatrix.containers.portable_spec import Places, elsewhere_spec
from tests.fixtures import cells

pytestmark = pytest.mark.slurm

# What Python gets are torchrun's words; a note of them and of the environment is all that this one does.
REPORT = """#!/bin/sh
printf '%s\\n' "$@" >{folder}/words-$SLURM_NODEID
env >{folder}/environment-$SLURM_NODEID
"""
# Runs until it is told to stop, takes a moment to write its checkpoint, and ends as a stopped trainer does.
WORK = """#!/bin/sh
trap 'sleep 1; echo saved >>{folder}/checkpoint-$SLURM_NODEID; exit 1' TERM
[ -e {folder}/checkpoint-$SLURM_NODEID ] && {{ echo resumed >>{folder}/resumed-$SLURM_NODEID; exit 0; }}
touch {folder}/started-$SLURM_NODEID
while :; do sleep 0.1; done
"""


@pytest.fixture
def program(tmp_path):
    """Return a function that writes a shell script, and makes the launcher that starts it."""

    def program(text):
        script = tmp_path / "program"
        script.write_text(text.format(folder=tmp_path))
        script.chmod(0o755)
        return Launcher(command=(str(script),), environment={"GIVEN": "it's $HOME"})

    return program


@pytest.fixture
def submit(slurm, tmp_path):
    """Return a function that submits a batch on two nodes and returns the job's number; a secret is at hand."""

    def submit(launcher):
        batch = Batch(name="t", arguments=("--run=a b",), log=str(tmp_path / "log-%j"), nodes=2, processes=3)
        path = tmp_path / "job.sbatch"
        path.write_text(sbatch_script(batch, launcher))
        return int(slurm.call("sbatch", "--parsable", str(path), A_SECRET="hunter2").split()[0])

    return submit


def until(path):
    end = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < end, f"{path} did not appear"
        time.sleep(0.05)
    return path


SPEC = elsewhere_spec(cells.GFX1100, image="i", command=["train"], places=Places(results="/srv/t"), user=None, nodes=2)
REQUEST = SlurmRequest(time_limit="1:00:00", gres="gpu:2", memory="100M", cpus=2)


def in_python(_, *, cards):
    return native_launcher("/usr/bin/python3", {}, cards=cards)


@pytest.mark.parametrize("under", [in_python, in_docker, in_apptainer, in_pyxis])
def test_slurm_accepts_every_script(slurm, tmp_path, under):
    batch = Batch(name="t", arguments=("train",), log="/tmp/l o g-%j", nodes=2, cards=2, request=REQUEST)
    path = tmp_path / "job.sbatch"
    path.write_text(sbatch_script(batch, under(SPEC, cards=True)))
    assert "on nodes n[1-2]" in slurm.call("sbatch", "--test-only", str(path))
    path.write_text(path.read_text().replace("--nodes=2", "--nodes=3"))
    slurm.call("sbatch", "--test-only", str(path), status=1)
    path.write_text(path.read_text().replace("--nodes=3", "--nodes=2").replace("gpu:2", "gpu:3"))
    slurm.call("sbatch", "--test-only", str(path), status=1)


def test_nodes_get_torchruns_variables_and_no_secret(slurm, submit, program, tmp_path):
    number = submit(program(REPORT))
    slurm.wait(number, "COMPLETED")
    words = [(tmp_path / f"words-{node}").read_text().splitlines() for node in (0, 1)]
    assert words[0] == words[1]
    assert words[0][:4] == ["-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=3"]
    assert f"--rdzv-id={number}-0" in words[0]
    assert words[0][-4:] == ["-m", "--", "trainer", "--run=a b"]
    for node in (0, 1):
        environment = (tmp_path / f"environment-{node}").read_text()
        assert "GIVEN=it's $HOME\n" in environment
        assert "hunter2" not in environment


def test_requeued_job_was_signalled_to_save_and_resumes(slurm, submit, program, tmp_path):
    number = submit(program(WORK))
    for node in (0, 1):
        until(tmp_path / f"started-{node}")
    slurm.call("scontrol", "requeue", str(number))
    slurm.start_again(number)
    assert slurm.wait(number, "COMPLETED")["Restarts"] == "1"
    assert [(tmp_path / f"resumed-{node}").read_text() for node in (0, 1)] == ["resumed\n"] * 2


def test_signal_that_comes_before_the_time_limit_saves_and_queues_the_job_again(slurm, submit, program, tmp_path):
    number = submit(program(WORK))
    for node in (0, 1):
        until(tmp_path / f"started-{node}")
    slurm.call("scancel", "--batch", "--signal=USR1", str(number))  # as --signal=B:USR1@120 has it sent
    slurm.start_again(number)
    assert slurm.wait(number, "COMPLETED")["Restarts"] == "1"
    assert [(tmp_path / f"resumed-{node}").read_text() for node in (0, 1)] == ["resumed\n"] * 2


def test_cancelled_job_saves_and_stays_cancelled(slurm, submit, program, tmp_path):
    number = submit(program(WORK))
    for node in (0, 1):
        until(tmp_path / f"started-{node}")
    slurm.call("scancel", str(number))
    slurm.wait(number, "CANCELLED")
    for node in (0, 1):
        assert until(tmp_path / f"checkpoint-{node}").read_text() == "saved\n"
    assert slurm.job(number)["Restarts"] == "0"

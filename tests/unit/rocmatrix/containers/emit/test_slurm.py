"""A batch script of one run spec: as looked at, read by a shell as it was meant, and with no word left out."""

import re
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmatrix.containers.emit.slurm import (
    Batch,
    Launcher,
    in_apptainer,
    in_docker,
    natively,
    on_the_nodes_network,
    sbatch_script,
)
from rocmatrix.containers.runspec import run_spec
from rocmatrix.containers.settings import CdiDevice, Environment, Ipc, Limit, Mount
from rocmatrix.host.hardware import survey
from tests.fixtures import cells, sysfs
from tests.fixtures.golden import assert_golden

WHY = {"reason": "r", "source": "s"}
BATCH = Batch(name="run-1", arguments=("train", "--run=run-1"), log="/srv/runs/run-1-%j.log", nodes=2, processes=2)
TEXT = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=12)
# Stands in for srun: prints its words, one a line, as a shell has read them.
SRUN = "srun() { printf '%s\\n' \"$@\"; }; scancel() { :; }; scontrol() { :; }; hostname() { echo head; }\n"


def spec(tmp_path, machine, cell):
    made = run_spec(
        cell,
        survey(machine(tmp_path / "machine")),
        image=f"rocmatrix:{cell.name}",
        command=("train", "--output=/training", "--run=run-1"),
        run_folder=Path("/srv/runs"),
        user="1000:1001",
        features=("network",),
    )
    return on_the_nodes_network(made)


def read_by_a_shell(script):
    """Run the script with srun stood in for, and return the words that the step is started with."""
    argv = ["sh", "-c", SRUN + script]
    done = subprocess.run(argv, env={"SLURM_JOB_ID": "7", "PATH": "/bin"}, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("machine", "cell", "host"),
    [(sysfs.two_rx_7900_xt, cells.GFX1100, "two-rx-7900-xt"), (sysfs.mi50, cells.GFX906, "mi50")],
)
@pytest.mark.parametrize("under", [in_docker, in_apptainer])
def test_what_is_emitted_is_what_was_looked_at(tmp_path, under, machine, cell, host):
    script = sbatch_script(replace(BATCH, cards=2, partition="gpu"), under(spec(tmp_path, machine, cell)))
    assert_golden(f"cluster/{host}.{under.__name__.replace('_', '-')}.sbatch", script)


def test_a_native_script_is_what_was_looked_at():
    script = sbatch_script(
        replace(BATCH, time_limit="4:00:00"), natively("/opt/venv/bin/python", {"PYTHONPATH": "/a b"})
    )
    assert_golden("cluster/native.sbatch", script)


def test_hosts_with_other_groups_get_other_numbers(tmp_path):
    def groups(machine, cell, folder):
        return re.findall(r"--group-add=(\S+)", sbatch_script(BATCH, in_docker(spec(tmp_path / folder, machine, cell))))

    assert groups(sysfs.two_rx_7900_xt, cells.GFX1100, "a") == ["992"]
    assert groups(sysfs.mi50, cells.GFX906, "b") == ["44", "109"]


@given(argument=TEXT, content=TEXT, python=TEXT)
def test_every_word_reaches_the_step_as_it_is(argument, content, python):
    batch = replace(BATCH, arguments=(argument, "a b", "$HOME", "'\"\\"))
    words = read_by_a_shell(sbatch_script(batch, natively(f"/opt/{python}", {"A": content})))
    assert words[:4] == ["--kill-on-bad-exit=1", f"/opt/{python}", "-P", "-m"]
    assert words[words.index("--") :] == ["--", "trainer", argument, "a b", "$HOME", "'\"\\"]
    assert {"--rdzv-id=7-0", "--rdzv-endpoint=head:20007", "--nnodes=2", "--nproc-per-node=2"} <= set(words)


def test_a_container_has_the_jobs_name_and_is_removed_by_it(tmp_path):
    script = sbatch_script(BATCH, in_docker(spec(tmp_path, sysfs.no_driver, cells.CPU)))
    words = read_by_a_shell(script)
    assert "--name=rocmatrix-7" in words
    assert "--entrypoint=python" in words
    assert script.count('docker rm --force "rocmatrix-$SLURM_JOB_ID"') == 2


def test_a_job_with_an_engines_cards_takes_whole_nodes(tmp_path):
    with_cards = sbatch_script(BATCH, in_docker(spec(tmp_path / "a", sysfs.mi50, cells.GFX906)))
    without = sbatch_script(BATCH, in_docker(spec(tmp_path / "b", sysfs.no_driver, cells.CPU)))
    assert "#SBATCH --exclusive\n" in with_cards
    assert "--exclusive" not in without


@pytest.mark.parametrize(
    "setting",
    [
        Limit(name="memlock", soft=-1, hard=-1, **WHY),
        Ipc(value="host", **WHY),
        CdiDevice(value="amd.com/gpu=0", **WHY),
    ],
)
def test_what_apptainer_has_no_word_for_is_refused(tmp_path, setting):
    asked = spec(tmp_path, sysfs.mi50, cells.GFX906)
    with pytest.raises(ValueError, match=shlex.quote(setting.flag)):
        in_apptainer(replace(asked, settings=(*asked.settings, setting)))


def test_apptainer_gets_variables_with_commas_whole_and_no_path_that_it_would_misread(tmp_path):
    asked = spec(tmp_path, sysfs.mi50, cells.GFX906)
    commas = Environment(name="ROCR_VISIBLE_DEVICES", content="GPU-a,GPU-b", **WHY)
    made = in_apptainer(replace(asked, settings=(*asked.settings, commas)))
    assert made.environment["APPTAINERENV_ROCR_VISIBLE_DEVICES"] == "GPU-a,GPU-b"
    path = Mount(kind="bind", origin="/srv/a,b", target="/data/b", read_only=True, **WHY)
    with pytest.raises(ValueError, match="/srv/a,b"):
        in_apptainer(replace(asked, settings=(*asked.settings, path)))


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "a b"},
        {"name": "-x"},
        {"partition": "gpu\n#SBATCH --uid=0"},
        {"time_limit": "1:00 --uid=0"},
        {"log": "/srv/a\n#SBATCH --uid=0"},
        {"log": '/srv/a"b'},
        {"log": "/srv/%u/a"},
        {"nodes": 0},
        {"processes": 0},
    ],
)
def test_what_a_line_of_sbatch_would_misread_is_refused(wrong):
    with pytest.raises(ValueError, match=r"line of #SBATCH|at least"):
        replace(BATCH, **wrong)


def test_a_path_with_a_space_is_quoted():
    script = sbatch_script(replace(BATCH, log="/srv/my runs/%j.log"), Launcher(words=("true",)))
    assert '#SBATCH --output="/srv/my runs/%j.log"\n' in script

"""A batch script of one run spec: as looked at, read by a shell as it was meant, and with no word left out."""

import shlex
import subprocess
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from rocmatrix.containers.settings import CdiDevice, Environment, Ipc, Limit, Mount
from tests.fixtures import cells
from tests.fixtures.golden import assert_golden

WHY = {"reason": "r", "source": "s"}
BATCH = Batch(name="run-1", arguments=("train", "--run=run-1"), log="/srv/runs/run-1-%j.log", nodes=2, processes=2)
TEXT = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=12)
# Stands in for srun: prints its words but the node's text, one a line, as a shell has read them.
SRUN = """\
srun() { printf '%s\\n' "$@" | sed '/^sh$/,/^on-node$/d'; }
scancel() { :; }
scontrol() { :; }
docker() { :; }
hostname() { echo head; }
"""


def spec(cell=cells.GFX1100, nodes=2, rdma=False):
    return elsewhere_spec(
        cell,
        image=f"rocmatrix:{cell.name}",
        command=("train", "--output=/training", "--run=run-1"),
        places=Places(results="/srv/runs"),
        user=None,
        nodes=nodes,
        rdma=rdma,
    )


def read_by_a_shell(script):
    """Run the script with srun stood in for, and return the words that the step is started with."""
    argv = ["sh", "-c", SRUN + script]
    done = subprocess.run(argv, env={"SLURM_JOB_ID": "7", "PATH": "/bin"}, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize(("cell", "host"), [(cells.GFX1100, "two-rx-7900-xt"), (cells.GFX906, "mi50")])
@pytest.mark.parametrize("under", [in_docker, in_apptainer, in_pyxis])
def test_emitted_script_equals_the_reviewed_text(under, cell, host):
    batch = replace(BATCH, cards=2, request=SlurmRequest(partition="gpu"))
    script = sbatch_script(batch, under(spec(cell), cards=True))
    assert_golden(f"cluster/{host}.{under.__name__.replace('_', '-')}.sbatch", script)


def test_native_script_equals_the_reviewed_one():
    script = sbatch_script(
        replace(BATCH, request=SlurmRequest(time_limit="4:00:00")),
        native_launcher("/opt/venv/bin/python", {"PYTHONPATH": "/a b"}, cards=True),
    )
    assert_golden("cluster/native.sbatch", script)


@pytest.mark.parametrize(("cpus", "words"), [(16, ["--cpus-per-task=16"]), (None, [])])
def test_cores_are_named_to_the_step_itself_for_srun_takes_over_none(cpus, words):
    script = sbatch_script(replace(BATCH, request=SlurmRequest(cpus=cpus)), native_launcher("python", {}))
    assert [word for word in read_by_a_shell(script) if word.startswith("--cpus")] == words


@pytest.mark.parametrize("under", [in_docker, in_apptainer, in_pyxis])
def test_site_settings_equal_the_reviewed_text(under):
    request = SlurmRequest(
        partition="gpu", account="proj-1", qos="high", reservation="maint", constraint="[mi300x|mi250]&ib",
        memory="64G", cpus=16, gres="gpu:mi300x:8,lustre:1", modules=("slurm", "apptainer/1.3"),
        further=("exclude=n7,n8", "hint=nomultithread"),
    )  # fmt: skip
    assert request.cards == 8
    script = sbatch_script(replace(BATCH, cards=8, request=request), under(spec(rdma=True), cards=True, rdma=True))
    assert_golden(f"cluster/site.{under.__name__.replace('_', '-')}.sbatch", script)


def test_several_nodes_meet_at_the_first_and_one_on_its_loopback():
    one = sbatch_script(replace(BATCH, nodes=1), in_docker(spec(nodes=1), cards=True))
    assert {"--standalone", "--local-addr=127.0.0.1", "--network=none"} <= set(one.split())
    assert "--rdzv-endpoint" not in one
    two = sbatch_script(BATCH, in_docker(spec(), cards=True))
    assert {'--rdzv-endpoint="$head:$port"', "--network=host"} <= set(two.split())


@given(argument=TEXT, content=TEXT, python=TEXT)
def test_arguments_reach_the_step_unchanged(argument, content, python):
    batch = replace(BATCH, arguments=(argument, "a b", "$HOME", "'\"\\"))
    words = read_by_a_shell(sbatch_script(batch, native_launcher(f"/opt/{python}", {"A": content})))
    assert words[1:4] == [f"/opt/{python}", "-P", "-m"]
    assert words[words.index("--") :] == ["--", "trainer", argument, "a b", "$HOME", "'\"\\"]
    assert {"--rdzv-id=7-0", "--rdzv-endpoint=head:20007", "--nnodes=2", "--nproc-per-node=2"} <= set(words)


def test_container_has_the_jobs_name_and_is_removed_by_it():
    script = sbatch_script(BATCH, in_docker(spec(cells.CPU), cards=False))
    words = read_by_a_shell(script)
    assert "--name=rocmatrix-7" in words
    assert "--entrypoint=python" in words
    assert script.count('docker rm --force "rocmatrix-$SLURM_JOB_ID"') == 2


def test_job_with_an_engines_cards_takes_whole_nodes():
    with_cards = sbatch_script(BATCH, in_docker(spec(cells.GFX906), cards=True))
    without = sbatch_script(BATCH, in_docker(spec(cells.CPU), cards=False))
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
def test_setting_that_apptainer_lacks_is_refused(setting):
    run_spec = spec(cells.GFX906)
    with pytest.raises(ValueError, match=shlex.quote(setting.flag)):
        in_apptainer(replace(run_spec, settings=(*run_spec.settings, setting)), cards=True)


def test_apptainer_gets_variables_with_commas_whole_and_no_path_that_it_would_misread():
    run_spec = spec(cells.GFX906)
    commas = Environment(name="ROCR_VISIBLE_DEVICES", content="GPU-a,GPU-b", **WHY)
    made = in_apptainer(replace(run_spec, settings=(*run_spec.settings, commas)), cards=True)
    assert made.environment["APPTAINERENV_ROCR_VISIBLE_DEVICES"] == "GPU-a,GPU-b"
    assert "APPTAINERENV_HOME" not in made.environment  # Apptainer refuses it
    assert "env HOME=/tmp python" in " ".join(made.command)
    path = Mount(kind="bind", origin="/srv/a,b", target="/data/b", read_only=True, **WHY)
    with pytest.raises(ValueError, match="/srv/a,b"):
        in_apptainer(replace(run_spec, settings=(*run_spec.settings, path)), cards=True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "a b"},
        {"name": "-x"},
        {"log": "/srv/a\n#SBATCH --uid=0"},
        {"log": '/srv/a"b'},
        {"log": "/srv/%u/a"},
        {"log": "/srv/a\rb"},
        {"nodes": 0},
        {"processes": 0},
    ],
)
def test_line_that_sbatch_would_misread_is_refused(wrong):
    with pytest.raises(ValueError, match=r"line of #SBATCH|at least"):
        replace(BATCH, **wrong)


@pytest.mark.parametrize("name", ["my runs", "o'brien", "#1", "tab\there", "a;b", "$HOME"])
def test_path_that_is_no_plain_word_is_quoted(name):
    script = sbatch_script(replace(BATCH, log=f"/srv/{name}/%j.log"), Launcher(command=("true",)))
    assert f'#SBATCH --output="/srv/{name}/%j.log"\n' in script

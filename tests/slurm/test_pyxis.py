"""Jobs under Pyxis in a real Slurm on a SIMULATED other machine.

Pyxis and Enroot are a stand-in: an srun that notes the options of theirs, and runs the step with the variables of an
image in /etc/environment. Seen once by hand with the real ones (Pyxis 0.24.0, Enroot 4.1.2): a training of two nodes.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures import other_machine
from tests.fixtures import slurm as harness

pytestmark = pytest.mark.slurm

ROOT = Path(__file__).resolve().parents[2]
CELL = "rocm6.3-torch2.7.1-gfx1100"
SRUN = """#!/bin/sh
[ "$1" != --help ] || exec echo "      --container-image=[USER@][REGISTRY#]IMAGE[:TAG]|PATH"
inside=
for word; do
    shift
    case $word in
        --container-* | --no-container-*) inside=yes; echo "$word" >>{folder}/container ;;
        sh) [ -z "$inside" ] || set -- "$@" unshare --mount {folder}/inside; set -- "$@" sh ;;
        *) set -- "$@" "$word" ;;
    esac
done
exec srun_of_slurm "$@"
"""
INSIDE = """#!/bin/sh
mount --bind {folder}/environment /etc/environment
export PYTHONPATH=/opt/image  # the image's is not replaced by the node's
exec "$@"
"""
NOTE = """#!/bin/sh
printf '%s\\n' "$@" >{folder}/words
env >{folder}/seen
ls -ld "${{TMPDIR:-/tmp}}/rocmatrix-$SLURM_JOB_ID" >{folder}/work
"""


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    if lacking := harness.lacking() or other_machine.lacking():
        pytest.skip(lacking)
    if not Path("/etc/environment").exists():
        pytest.skip("no /etc/environment here to put an image's in place of")
    folder = tmp_path_factory.mktemp("pyxis")
    programs = {"srun": SRUN, "python": NOTE}
    texts = {name: text.format(folder=folder) for name, text in programs.items()}
    machine = other_machine.machine(folder / "machine", srun_of_slurm=shutil.which("srun"), **texts)
    image = f"PATH={folder}/machine/site:/usr/bin:/bin\nPYTHONPATH=/opt/image\n"
    (folder / "environment").write_text(image)
    (folder / "inside").write_text(INSIDE.format(folder=folder))
    (folder / "inside").chmod(0o755)
    with harness.slurm(folder / "slurm", machine) as running:
        running.notes = folder
        yield running


def submit(slurm, output, *words):
    argv = [sys.executable, "-P", "-m", "invoke", "--search-root", str(ROOT), "submit", "--engine", "slurm"]
    argv += ["--under", "pyxis", "--image", "/shared/i.sqsh", "--output", str(output), "--run", "r", *words]
    environment = {**os.environ, "SLURM_CONF": slurm.environment["SLURM_CONF"], "A_SECRET": "hunter2"}
    done = subprocess.run(argv, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1])


def test_container_gets_the_nodes_cards_and_of_their_variables_slurms_choice_alone(elsewhere, tmp_path):
    number = submit(elsewhere, tmp_path, "--cell", CELL, "--cards", "1")
    elsewhere.wait(number, "COMPLETED")
    options = (elsewhere.notes / "container").read_text().splitlines()
    assert "--container-image=/shared/i.sqsh" in options
    (mounts,) = (word.partition("=")[2].split(",") for word in options if word.startswith("--container-mounts="))
    work = f"/tmp/rocmatrix-{number}"
    given = {"/dev/kfd:/dev/kfd", "/dev/dri:/dev/dri", f"{tmp_path}:/training", "tmpfs:/tmp", f"{work}:/cache"}
    assert set(mounts) == given
    assert (elsewhere.notes / "work").read_text().startswith("drwx------")
    assert not Path(work).exists()  # the job removes it
    words = (elsewhere.notes / "words").read_text().splitlines()
    assert words[:2] == ["-m", "torch.distributed.run"]
    seen = dict(line.split("=", 1) for line in (elsewhere.notes / "seen").read_text().splitlines())
    assert seen["ROCR_VISIBLE_DEVICES"] == "0"
    assert (seen["HOME"], seen["PYTHONPATH"], seen["TRITON_CACHE_DIR"]) == ("/tmp", "/opt/image", "/cache/triton")
    gone = {"OF_THE_LOGIN", "A_SECRET", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"}
    assert not gone & seen.keys()


def test_node_without_adapters_ends_the_job_before_an_image_is_unpacked(elsewhere, tmp_path):
    (elsewhere.notes / "container").unlink(missing_ok=True)
    number = submit(elsewhere, tmp_path, "--cell", CELL, "--cards", "1", "--rdma")
    elsewhere.wait(number, "FAILED")
    log = (tmp_path / f"r-{number}.log").read_text()
    assert f"rocmatrix RM425: no /dev/infiniband on {other_machine.NAME}" in log
    assert not (elsewhere.notes / "container").exists()


def test_site_without_pyxis_names_what_its_srun_lacks(elsewhere, tmp_path):
    srun = elsewhere.notes / "machine" / "site" / "srun"
    text = srun.read_text()
    srun.write_text(text.replace("container-image=[", "mem=["))
    try:
        number = submit(elsewhere, tmp_path, "--cell", CELL, "--cards", "1")
        elsewhere.wait(number, "FAILED")
    finally:
        srun.write_text(text)
    log = (tmp_path / f"r-{number}.log").read_text()
    assert f"rocmatrix RM425: srun knows no --container-image on {other_machine.NAME}" in log

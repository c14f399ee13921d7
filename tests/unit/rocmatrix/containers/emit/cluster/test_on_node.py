"""What a step of Slurm finds out on its node, run by a shell; docker and apptainer are stood in for."""

import os
import subprocess
from pathlib import Path

import pytest

from rocmatrix.containers.emit.cluster import on_node

STAND_IN = '#!/bin/sh\nprintf \'%s\\n\' "$@" "cards=$ROCR_VISIBLE_DEVICES$APPTAINERENV_ROCR_VISIBLE_DEVICES"\n'


@pytest.fixture
def run(tmp_path):
    """Return a function: a step's text and its arguments to the finished shell."""
    for name in ("docker", "apptainer"):
        (tmp_path / name).write_text(STAND_IN)
        (tmp_path / name).chmod(0o755)

    def run(text, *arguments, **environment):
        argv = ["sh", "-c", text, "on-node", *arguments]
        path = {"PATH": f"{tmp_path}:/usr/bin:/bin", "ROCMATRIX_CACHE": "cache"}
        path |= {"SLURM_JOB_ID": "7", "TMPDIR": str(tmp_path)}
        return subprocess.run(argv, env=path | environment, capture_output=True, text=True, check=False)

    return run


@pytest.mark.parametrize(
    ("cards", "lists", "seen"),
    [
        (True, {"ROCR_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "0"}, "1 unset"),
        (False, {"ROCR_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "0"}, "1 0"),
        (True, {"HIP_VISIBLE_DEVICES": "0"}, "unset 0"),
    ],
)
def test_native_step_counts_cards_by_one_list(run, cards, lists, seen):
    text = 'echo "${ROCR_VISIBLE_DEVICES:-unset} ${HIP_VISIBLE_DEVICES:-unset}"'
    assert run(on_node.native(cards=cards), "sh", "-c", text, **lists).stdout == f"{seen}\n"


def test_docker_step_is_the_nodes_user_with_a_cache_of_its_own(run):
    words = run(on_node.docker(cards=False, rdma=False), "image", "train a").stdout.splitlines()
    user = f"--user={os.getuid()}:{os.getgid()}"
    cache = f"--mount=type=volume,source=cache-{os.getuid()},target=/cache"
    assert words == ["run", "--rm", "--pull=never", user, cache, "image", "train a", "cards="]


@pytest.mark.parametrize("under", [on_node.docker, on_node.apptainer, on_node.before_pyxis])
@pytest.mark.parametrize(
    ("requested", "missing"),
    [({"cards": True, "rdma": False}, "/dev/kfd"), ({"cards": False, "rdma": True}, "infiniband")],
)
def test_node_without_what_a_job_needs_refuses_it(run, tmp_path, under, requested, missing):
    done = run(under(**requested).replace("/dev/", f"{tmp_path}/dev/"), "image")  # of this machine no file is read
    assert (done.returncode, done.stdout) == (1, "")
    assert "RM425" in done.stderr
    assert missing in done.stderr


def test_apptainer_step_binds_the_nodes_and_passes_the_cards_that_slurm_chose(run, tmp_path):
    (tmp_path / "dev/dri").mkdir(parents=True)
    text = on_node.apptainer(cards=True, rdma=False).replace(on_node.NEEDS_CARDS, "")
    done = run(text.replace("/dev/", f"{tmp_path}/dev/"), "image", ROCR_VISIBLE_DEVICES="GPU-a")
    work = f"--workdir={tmp_path}/rocmatrix-7"
    assert done.stdout.splitlines() == ["exec", f"--bind={tmp_path}/dev/dri", work, "image", "cards=GPU-aGPU-a"]


def test_apptainer_step_writes_on_the_nodes_disk_and_not_into_64_mib_of_memory(run, tmp_path):
    text = on_node.apptainer(cards=False, rdma=False)
    for _ in range(2):  # a job that is queued again finds its folder
        assert f"--workdir={tmp_path}/rocmatrix-7" in run(text, "image").stdout
    assert (tmp_path / "rocmatrix-7").stat().st_mode & 0o777 == 0o700


def test_site_with_singularity_alone_gets_the_variables_under_its_prefix(run, tmp_path):
    (tmp_path / "apptainer").unlink()
    (tmp_path / "singularity").write_text('#!/bin/sh\nprintf \'%s\\n\' "$@" "$SINGULARITYENV_A" "$SINGULARITYENV_B"\n')
    (tmp_path / "singularity").chmod(0o755)
    text = on_node.apptainer(cards=False, rdma=False)
    odd = "a,b \"c\" $HOME `d` 'e'\nsecond line"
    done = run(text, "image", "train a", APPTAINERENV_A=odd, APPTAINERENV_B="/cache")
    assert done.stdout == f"exec\n--workdir={tmp_path}/rocmatrix-7\nimage\ntrain a\n{odd}\n/cache\n"


def test_node_without_apptainer_and_singularity_refuses_the_job(run, tmp_path):
    (tmp_path / "apptainer").unlink()
    done = run(on_node.apptainer(cards=False, rdma=False), "image")
    assert (done.returncode, done.stdout) == (1, "")
    assert "RM425: no apptainer and no singularity in the PATH" in done.stderr


def test_folder_of_another_user_is_refused(run, tmp_path):
    (tmp_path / "rocmatrix-7").write_text("")  # what is there is no folder of this user's own
    done = run(on_node.apptainer(cards=False, rdma=False), "image")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"RM425: no folder of this user at {tmp_path}/rocmatrix-7" in done.stderr


def test_link_that_another_user_has_put_in_place_of_the_work_folder_is_refused(run, tmp_path):
    (tmp_path / "rocmatrix-7").symlink_to(tmp_path)
    done = run(on_node.apptainer(cards=False, rdma=False), "image")
    assert (done.returncode, done.stdout) == (1, "")
    assert "RM425" in done.stderr


def test_step_of_pyxis_has_the_images_variables_and_path_and_of_the_nodes_slurms_alone(run, tmp_path):
    image = tmp_path / "environment"
    image.write_text("PATH=/opt/venv/bin:/usr/bin:/bin\nPYTHONPATH=/opt/rocmatrix\n")
    text = on_node.pyxis(rdma=False).replace("/etc/environment", str(image))
    node = {"LD_LIBRARY_PATH": "/opt/rocm/lib", "CUDA_VISIBLE_DEVICES": "0", "PYTHONHOME": "/usr", "A": "1\nB=2"}
    kept = {"PYTHONPATH": "/opt/rocmatrix", "ROCR_VISIBLE_DEVICES": "1", "SLURM_JOB_ID": "7"}
    done = run(text, "env", **node, **kept)
    seen = dict(line.split("=", 1) for line in done.stdout.splitlines())
    seen.pop("_", None)
    assert seen == {**kept, "PATH": "/opt/venv/bin:/usr/bin:/bin", "PWD": str(Path.cwd())}


def test_step_of_pyxis_keeps_the_path_of_an_image_without_one(run, tmp_path):
    (tmp_path / "environment").touch()
    text = on_node.pyxis(rdma=False).replace("/etc/environment", str(tmp_path / "environment"))
    assert run(text, "printenv", "PATH").stdout == f"{tmp_path}:/usr/bin:/bin\n"

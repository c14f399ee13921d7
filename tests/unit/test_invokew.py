"""The wrapper: one environment, made once, and clear words when a Python is missing."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.fixtures.cells import MATRIX
from tests.left_out import long

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path):
    """A checkout whose lock is empty, so that making its environment needs no network."""
    shutil.copy(ROOT / "invokew", tmp_path / "invokew")
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements/base.txt").write_text("")
    return tmp_path


def run(checkout, *args, **environment):
    return subprocess.run(
        [str(checkout / "invokew"), *args],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": os.environ["PATH"], **environment},
    )


def test_missing_python_is_rm401(checkout):
    done = run(checkout, "--list", ROCMATRIX_PYTHON="/nowhere/python3")
    assert done.returncode == 2
    assert done.stderr.startswith("RM401 ")
    assert not (checkout / ".venv").exists()


@long
def test_wrapper_behind_a_link_uses_its_own_checkout(checkout, tmp_path_factory):
    (link := tmp_path_factory.mktemp("bin") / "rocmatrix").symlink_to(checkout / "invokew")
    argv = [str(link), "--list"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd="/", env={"PATH": os.environ["PATH"]})
    assert f"Making {checkout}/.venv" in done.stderr
    assert [path.name for path in link.parent.iterdir()] == ["rocmatrix"]


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_closed_streams_of_the_wrapper_lead_nowhere(checkout, shell, closed):
    if not shutil.which(shell):
        pytest.skip(f"no {shell} is here")
    (checkout / ".venv/bin").mkdir(parents=True)
    (checkout / ".venv/bin/python").write_text(
        "#!/bin/sh\nfor fd in 0 1 2; do [ -e /proc/$$/fd/$fd ] || exit 9; done\n"
    )
    (checkout / ".venv/bin/python").chmod(0o755)
    shutil.copy(checkout / "requirements/base.txt", checkout / ".venv/.rocmatrix-base")
    argv = [shell, "-c", f'"$0" --list {closed}', str(checkout / "invokew")]
    assert subprocess.run(argv, check=False, env={"PATH": os.environ["PATH"]}).returncode == 0


def test_settings_that_send_an_installation_elsewhere_are_none_of_pips(checkout):
    (checkout / ".venv/bin").mkdir(parents=True)
    (checkout / ".venv/bin/python").write_text("#!/bin/sh\nenv\n")  # in place of a Python: shows what it was given
    (checkout / ".venv/bin/python").chmod(0o755)
    shutil.copy(checkout / "requirements/base.txt", checkout / ".venv/.rocmatrix-base")
    elsewhere = {f"PIP_{name}": "1" for name in ("TARGET", "PREFIX", "ROOT", "DRY_RUN", "USER")}
    shown = run(checkout, "cells", PIP_INDEX_URL="https://mirror/simple", **elsewhere).stdout.splitlines()
    assert {line for line in shown if line.startswith("PIP_")} == {
        "PIP_INDEX_URL=https://mirror/simple", "PIP_REQUIRE_VIRTUALENV=1", "PIP_USER=0",
    }  # fmt: skip


def test_old_python_is_rm401(checkout):
    old = checkout / "python3"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    assert "3.11 or newer" in run(checkout, ROCMATRIX_PYTHON=str(old)).stderr


def test_python_without_venv_is_rm401(checkout):
    bare = checkout / "python3"
    bare.write_text('#!/bin/sh\ncase "$*" in *venv*) exit 1;; esac\nexit 0\n')
    bare.chmod(0o755)
    done = run(checkout, ROCMATRIX_PYTHON=str(bare))
    assert "lacks the venv module" in done.stderr
    assert done.returncode == 2


@long
def test_lock_that_cannot_be_installed_is_rm402_and_tried_again(checkout):
    (checkout / "requirements/base.txt").write_text("no-such-package==1.0 --hash=sha256:" + "0" * 64 + "\n")
    for _ in range(2):
        done = run(checkout, "--list", PIP_NO_INDEX="1")
        assert "RM402" in done.stderr
        assert "Making" in done.stderr


def test_environment_is_made_once_per_lock(checkout):
    assert "Making" in run(checkout, "--list").stderr
    assert "Making" not in run(checkout, "--list").stderr
    (checkout / "requirements/base.txt").write_text("# changed\n")
    assert "Making" in run(checkout, "--list").stderr


def test_two_calls_at_once_make_one_environment(checkout):
    first, second = (
        subprocess.Popen([str(checkout / "invokew"), "--list"], stderr=subprocess.PIPE, text=True) for _ in range(2)
    )
    outputs = [process.communicate(timeout=120)[1] for process in (first, second)]
    assert sum("Making" in words for words in outputs) == 1
    assert not (checkout / ".venv.lock").exists()


@pytest.fixture
def quick(checkout, tmp_path):
    """Return a STAND-IN Python that makes an environment of two files at once, its pip installing nothing."""
    real = Path(sys.executable).resolve()
    stand_in = checkout / "quick"
    stand_in.write_text(f"""#!/bin/sh
case "$*" in
*"-m venv --clear "*)
    for folder; do :; done
    [ -e {checkout}/slow ] && {{ rm -rf "$folder/pyvenv.cfg"; touch {checkout}/clearing; exec sleep 60; }}
    rm -rf "$folder" && mkdir -p "$folder/bin" && echo made >"$folder/pyvenv.cfg"
    printf '#!/bin/sh\\ncase "$*" in *"-m pip "*) exit 0;; esac\\nexec {real} "$@"\\n' >"$folder/bin/python"
    chmod +x "$folder/bin/python" ;;
*) exec {real} "$@" ;;
esac
""")
    stand_in.chmod(0o755)
    return {"ROCMATRIX_PYTHON": str(stand_in)}


def job_in(checkout, environment):
    """Start a call that stays: the environment's program is replaced by one that sleeps."""
    (checkout / "rocmatrix/cli").mkdir(parents=True, exist_ok=True)
    (checkout / "rocmatrix/cli/program.py").write_text(
        "import os, time\nif 'STAY' in os.environ:\n    print('up', flush=True)\n    time.sleep(60)\n"
    )
    job = subprocess.Popen(
        [str(checkout / "invokew")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PATH": os.environ["PATH"], "STAY": "", **environment},
    )
    assert job.stdout.readline() == "up\n"
    return job


def test_maker_that_was_killed_leaves_no_lock_and_nothing_half_made_is_believed(checkout, quick):
    run(checkout, "--list", **quick)
    (checkout / "requirements/base.txt").write_text("# changed\n")
    (checkout / "slow").touch()
    maker = subprocess.Popen(
        [str(checkout / "invokew")],
        env={"PATH": os.environ["PATH"], **quick},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while not (checkout / "clearing").exists():
        time.sleep(0.01)
    os.killpg(maker.pid, signal.SIGKILL)
    maker.wait()
    (checkout / "slow").unlink()
    (checkout / "requirements/base.txt").write_text("")  # as it was before: what was cleared must not pass for it
    done = run(checkout, "--list", **quick)
    assert "Making" in done.stderr
    assert "waiting" not in done.stderr


def test_folder_that_an_older_wrapper_left_as_lock_is_not_in_the_way(checkout, quick):
    (checkout / ".venv.lock").mkdir()
    assert "waiting" not in run(checkout, "--list", **quick).stderr


@long
@pytest.mark.parametrize("locks", ["flock", "python"])
def test_changed_lock_does_not_clear_the_environment_under_a_running_job(checkout, tmp_path, quick, locks):
    if locks == "python":
        without_flock = tmp_path / "bin"
        without_flock.mkdir()
        for name in ("sh", "dirname", "cmp", "cp", "mv", "rm", "sleep", "env", "mkdir", "chmod", "touch"):
            (without_flock / name).symlink_to(shutil.which(name))
        (without_flock / "python3").write_text(f'#!/bin/sh\nexec {Path(sys.executable).resolve()} "$@"\n')
        (without_flock / "python3").chmod(0o755)
        path = str(without_flock)
    else:
        path = os.environ["PATH"]
    run(checkout, "--list", PATH=path, **quick)
    job = job_in(checkout, quick)
    try:
        before = (checkout / ".venv/pyvenv.cfg").stat().st_ino
        (checkout / "requirements/base.txt").write_text("# changed\n")
        done = run(checkout, "--list", PATH=path, **quick)
        assert done.returncode == 2
        assert done.stderr.splitlines()[-2].startswith("RM670 The environment is in use")
        assert f"process {job.pid}" in done.stderr
        assert (checkout / ".venv/pyvenv.cfg").stat().st_ino == before
    finally:
        job.kill()
        job.communicate()
    assert "Making" in run(checkout, "--list", PATH=path, **quick).stderr  # the killed job's lock went with it


def test_unchanged_environment_serves_many_calls_at_once(checkout, quick):
    run(checkout, "--list", **quick)
    job = job_in(checkout, quick)
    try:
        second = job_in(checkout, quick)
        second.kill()
        second.communicate()
    finally:
        job.kill()
        job.communicate()


def test_checkout_that_cannot_be_written_still_runs(checkout, quick):
    run(checkout, "--list", **quick)
    (checkout / ".venv.guard").unlink()
    script = (checkout / "invokew").read_text().replace("if (: >>", "if (false; : >>/nowhere/x; : >>")
    (checkout / "invokew").write_text(script)  # stands in for a read-only mount: root may write anywhere
    assert "RM402" not in run(checkout, "--list", **quick).stderr
    (checkout / "requirements/base.txt").write_text("# changed\n")
    assert "cannot be written" in run(checkout, "--list", **quick).stderr


def test_python_that_wheels_are_locked_for_comes_before_a_newer_one(checkout, tmp_path):
    """A stand-in states its version for the question of the wrapper; the test stops where the environment is made."""
    for name, minor in (("python3", 99), ("python3.13", 13)):
        script = (
            f'#!/bin/sh\nexec {Path(sys.executable).resolve()} -c "import sys; sys.version_info = (3, {minor}, 0)\n'
        )
        script += 'exec(sys.argv[1])" "$2"\n'
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    text = (checkout / "invokew").read_text()
    body = text[text.index("suits() {") : text.index("# A kernel lock on descriptor")]
    done = subprocess.run(
        ["/bin/sh", "-c", f"fail() {{ echo none; exit 2; }}\n{body}\nfind_python"],
        env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == str(tmp_path / "python3.13")


def test_newest_python_of_the_wrapper_is_the_newest_that_wheels_are_locked_for():
    (newest,) = re.findall(r"for newest in (\d+) 99;", (ROOT / "invokew").read_text())
    locked = {python for pythons in MATRIX.locks.values() for python in pythons}
    assert max(int(python.partition(".")[2]) for python in locked) == int(newest)

"""The native environment takes the resolved cell's own wheels, or says what it takes instead."""

import hashlib
import json
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

from rocmatrix.images import native_env
from rocmatrix.images.lock import TRAINER_REQUIREMENTS
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures.cells import MATRIX

ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
def test_cpu_build_is_locked_for_each_python(python):
    cell, _ = native_env.choose(MATRIX, MATRIX.cell("cpu-torch2.13.0"), python=python)
    assert cell.python == python
    assert any(file.startswith(f"torch-2.13.0+cpu-cp{python.replace('.', '')}-") for file, _ in cell.wheels)


def test_card_takes_its_own_wheels_where_the_python_fits():
    cell, why = native_env.choose(MATRIX, MATRIX.cell("rocm6.3-torch2.7.1-gfx1100"), python="3.12")
    assert cell.name == "rocm6.3-torch2.7.1-gfx1100"
    assert "3.12" in why


def test_card_with_another_python_falls_back_and_reports_it():
    cell, why = native_env.choose(MATRIX, MATRIX.cell("rocm6.0-torch2.4.1-gfx906"), python="3.13")
    assert cell.release.rocm is None
    assert "rocm6.0-torch2.4.1-gfx906" in why


def test_unknown_python_is_refused_with_those_that_fit():
    with pytest.raises(RocmatrixError, match="RM403") as caught:
        native_env.choose(MATRIX, None, python="3.9")
    assert "3.11" in str(caught.value)


def test_pip_installs_from_the_wheelhouse_alone(tmp_path):
    argv = native_env.pip_argv(tmp_path / "w", tmp_path / "lock")
    assert {"--no-index", "--require-hashes", "--no-deps"} <= set(argv)


def _wheel(folder, version):
    """Write a wheel of a package without code, and return its sha256."""
    name = f"demo-{version}.dist-info"
    folder.mkdir()
    path = folder / f"demo-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}/METADATA", f"Metadata-Version: 2.1\nName: demo\nVersion: {version}\n")
        archive.writestr(f"{name}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{name}/RECORD", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("setting", ["variable", "file"])
def test_wheels_of_this_machines_pip_settings_are_no_source(setting, tmp_path):
    """pip prefers demo 1.0+cpu of a folder that is configured, also under --no-index, and then refuses its hash."""
    requested, _ = _wheel(tmp_path / "wheelhouse", "1.0"), _wheel(tmp_path / "configured", "1.0+cpu")
    lock, config = tmp_path / "lock", tmp_path / "pip.conf"
    lock.write_text(f"demo==1.0 --hash=sha256:{requested}\n")
    config.write_text(f"[global]\nfind-links = {tmp_path / 'configured'}\n")
    named = {"variable": {"PIP_FIND_LINKS": str(tmp_path / "configured")}, "file": {"PIP_CONFIG_FILE": str(config)}}
    argv = [*native_env.pip_argv(tmp_path / "wheelhouse", lock), "--target", str(tmp_path / "installed")]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    environment = {**plain, **named[setting], "PIP_NO_COMPILE": "0"}
    with pytest.raises(RocmatrixError, match="RM402"):
        native_env.run_pip(argv, environment=environment)
    alone = native_env.wheelhouse_alone(environment)
    native_env.run_pip(argv, environment=alone)
    assert (tmp_path / "installed" / "demo-1.0.dist-info").is_dir()
    assert alone["PIP_NO_COMPILE"] == "0" and alone["PATH"] == os.environ["PATH"]


def test_failing_pip_is_rm402():
    with pytest.raises(RocmatrixError, match="RM402"):
        native_env.run_pip(["sh", "-c", "echo hash mismatch >&2; exit 1"])


def test_host_and_trainer_pins_agree():
    """Both are installed into one .venv, so a package named by both must have one version."""
    base = dict(
        line.split(" ")[0].split("==")
        for name in ("base", "dev")
        for line in (ROOT / f"requirements/{name}.txt").read_text().splitlines()
        if "==" in line and not line.startswith((" ", "#"))
    )
    for python in ("3.11", "3.12", "3.13", "3.14"):
        cell, _ = native_env.choose(MATRIX, None, python=python)
        for _, wheel in cell.wheels:
            name = wheel.name.lower().replace("_", "-")
            assert base.get(name, wheel.version) == wheel.version, (name, python)


INSTALL = """
import sys, time
import subprocess
import sys
import time
from pathlib import Path
from rocmatrix.matrix.loading import load as matrix_file
from rocmatrix.images import native_env as native, wheelhouse
root, prefix, log, cell, seconds, stay = sys.argv[1:]
sys.prefix = prefix
log = Path(log)
wheelhouse.fetch = lambda cell, folder: folder
def pip(argv, environment):
    for word in ("begins", "ends"):
        with log.open("a") as file:
            file.write(f"{cell} {word}\\n")
        time.sleep(float(seconds))
native.run_pip = pip
try:
    native.install(matrix_file.load(Path(root)).for_python(matrix_file.load(Path(root)).cell(cell), "3.12"), Path(root))
except native.RocmatrixError as error:
    print(error.render(), flush=True)
    sys.exit(2)
print("installed", flush=True)
time.sleep(float(stay))
"""
CPU, CARD = "cpu-torch2.13.0", "rocm6.3-torch2.7.1-gfx1100"


@pytest.fixture
def installing(tmp_path):
    """Return how to start an installation whose pip is a STAND-IN that only notes its beginning and its end."""
    started = []
    (tmp_path / "prefix").mkdir()

    def start(cell, *, seconds=0.3, stay=0.0):
        argv = [sys.executable, "-c", INSTALL, str(ROOT), str(tmp_path / "prefix"), str(tmp_path / "log")]
        process = subprocess.Popen(
            [*argv, cell, str(seconds), str(stay)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_two_installations_at_once_take_turns_and_the_same_wheels_are_installed_once(installing, tmp_path):
    outputs = [process.communicate(timeout=60) for process in (installing(CPU), installing(CPU))]
    assert [out for out, _ in outputs] == ["installed\n", "installed\n"]
    assert (tmp_path / "log").read_text().split("\n") == [f"{CPU} begins", f"{CPU} ends", ""]


def test_wheels_that_a_running_job_loads_are_not_replaced(installing, tmp_path):
    job = installing(CPU, seconds=0, stay=60)
    assert job.stdout.readline() == "installed\n"
    out, _ = installing(CARD, seconds=0).communicate(timeout=60)
    assert out.startswith("RM670 ")
    assert str(job.pid) in out
    assert CARD not in (tmp_path / "log").read_text()
    assert installing(CPU, seconds=0).communicate(timeout=60)[0] == "installed\n"  # the same wheels serve many
    job.kill()
    job.wait()
    assert installing(CARD, seconds=0).communicate(timeout=60)[0] == "installed\n"


def test_installation_that_was_killed_is_not_believed(installing, tmp_path):
    installing(CPU, seconds=0).communicate(timeout=60)
    killed = installing(CARD, seconds=30)
    while CARD not in (tmp_path / "log").read_text():
        time.sleep(0.01)
    killed.kill()
    killed.wait()
    (tmp_path / "log").write_text("")
    assert installing(CPU, seconds=0).communicate(timeout=60)[0] == "installed\n"
    assert (tmp_path / "log").read_text() == f"{CPU} begins\n{CPU} ends\n"  # half of another cell's is there


def test_environment_of_another_user_is_used_as_it_is_or_its_missing_wheels_are_named(tmp_path, monkeypatch):
    cell = MATRIX.for_python(MATRIX.cell(CPU), "3.12")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(native_env.os, "access", lambda *_: False)
    with pytest.raises(RocmatrixError, match="may not write there") as refused:
        native_env.install(cell, ROOT)
    assert (refused.value.code, refused.value.where, list(tmp_path.iterdir())) == ("RM402", str(tmp_path), [])
    with pytest.raises(RocmatrixError, match=r"requirements/dev\.txt"):
        native_env.install_requirements(ROOT, "dev")
    (tmp_path / native_env.STAMP).write_text(native_env._digest(cell))
    native_env.install(cell, ROOT)


@pytest.fixture
def stand_ins(tmp_path, monkeypatch):
    """Return the function that puts a stand-in for a Python on an otherwise empty PATH; it states some packages."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("ROCMATRIX_PYTHON", raising=False)
    monkeypatch.setattr(sys, "_base_executable", str(tmp_path / "python3"))

    def made(name, *packages):
        versions = {"python": "3.12.1", **dict.fromkeys(packages, "1.0")}
        (tmp_path / name).write_text(f"#!/bin/sh\nprintf '%s' '{json.dumps(versions)}'\n")
        (tmp_path / name).chmod(0o755)
        return str(tmp_path / name)

    return made


def test_installed_torch_is_taken_from_the_first_python_that_has_all(stand_ins):
    stand_ins("python3", "numpy")
    stand_ins("python3.13", "torch")
    whole = stand_ins("python3.12", "torch", *native_env.IMPORTED)
    found = native_env.installed()
    assert (found.python, found.cell) == (whole, None)
    assert found.why == f"torch 1.0, installed for {whole} (3.12.1); --use-installed-torch"


def test_installed_torch_without_what_the_trainer_imports_is_refused_with_what_is_missing(stand_ins):
    first = stand_ins("python3", "torch", *native_env.IMPORTED[1:])
    second = stand_ins("python3.13")
    with pytest.raises(RocmatrixError) as caught:
        native_env.installed()
    assert caught.value.code == "RM655"
    assert caught.value.what == f"{first} lacks numpy; {second} lacks torch"


def test_python_that_is_named_is_the_only_one_tried(stand_ins, monkeypatch, tmp_path):
    stand_ins("python3", "torch", *native_env.IMPORTED)
    monkeypatch.setenv("ROCMATRIX_PYTHON", str(tmp_path / "other"))
    with pytest.raises(RocmatrixError, match="no Python was found"):
        native_env.installed()


def test_packages_that_the_trainer_imports_are_those_of_the_lock():
    assert {*native_env.IMPORTED} == {*TRAINER_REQUIREMENTS} - {"tensorboardx"}  # a tracker, imported where asked for

"""What must stop a build stops it, with a clear error, and leaves no image. Wheels are STAND-INS."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rocmatrix.containers import engine
from rocmatrix.images import build, buildkit, render
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures import cells
from tests.fixtures.stand_ins import stand_in_cell, stand_in_wheel
from tests.left_out import long

pytestmark = pytest.mark.container

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def cell(tmp_path):
    return stand_in_cell(cells.GFX1100, tmp_path / "wheels", name="stand-in-failing")


@pytest.fixture
def wheels(cell, tmp_path):
    return tmp_path / "wheels"


@pytest.fixture
def root(cell, lay_out, client):
    """Return a checkout with a STAND-IN lock; no image may come of it."""
    root = lay_out(cell, cells.GFX1100)
    (root / "images" / cell.name / "requirements.lock").write_text(render.requirements_lock(cell))
    assert engine.image(client, build.tag(cell)) is None
    yield root
    left = engine.image(client, build.tag(cell))
    if left is not None:  # taken away, so that one failure is not the next run's as well
        client.images.remove(build.tag(cell), force=True)
    assert left is None, "a failed build left an image"


def tamper(cell, wheels):
    """Put other content under the name of one wheel; it is still a wheel that pip would install."""
    victim = next(wheel for _, wheel in cell.wheels if wheel.name == "numpy")
    return stand_in_wheel(victim.name, victim.version, wheels, content="TAMPERED = True\n"), victim


def straight(cell, root, wheels, base):
    """Build as `build.build` does, without its own check of the wheels before."""
    argv = build.buildx_argv(cell, root=root, wheelhouse=wheels, inputs="x", base=base)
    buildkit.run(argv, log=build.log_file(cell, root))


def test_tampered_wheel_is_found_before_the_build(cell, root, wheels, debian):
    path, victim = tamper(cell, wheels)
    with pytest.raises(RocmatrixError, match="RM103") as caught:
        build.build(cell, root=root, base=debian, wheelhouse=wheels)
    assert path.name in str(caught.value)
    assert victim.sha256 in str(caught.value)
    assert not build.log_file(cell, root).exists()


@long
def test_tampered_wheel_is_found_inside_the_build_too(cell, root, wheels, debian):
    path, victim = tamper(cell, wheels)
    with pytest.raises(RocmatrixError, match="RM202"):
        straight(cell, root, wheels, debian)
    log = build.log_file(cell, root).read_text()
    assert "DO NOT MATCH THE HASHES" in log
    assert victim.sha256 in log
    assert path.name.partition("-")[0] in log


@long
def test_wrong_hash_in_the_lock_stops_the_build(cell, root, wheels, debian):
    lock = root / "images" / cell.name / "requirements.lock"
    right = cell.wheels[0][1].sha256
    lock.write_text(lock.read_text().replace(right, right[::-1]))
    with pytest.raises(RocmatrixError, match="RM202"):
        build.build(cell, root=root, base=debian, wheelhouse=wheels)
    assert right[::-1] in build.log_file(cell, root).read_text()


def test_lock_without_hashes_stops_the_build(cell, root, wheels, debian):
    lock = root / "images" / cell.name / "requirements.lock"
    lines = [line.removesuffix(" \\") for line in lock.read_text().splitlines() if "--hash" not in line]
    lock.write_text("\n".join(lines) + "\n")
    with pytest.raises(RocmatrixError, match="RM202"):
        build.build(cell, root=root, base=debian, wheelhouse=wheels)
    assert "Hashes are required" in build.log_file(cell, root).read_text()


@long
def test_wheel_that_is_missing_is_not_fetched_from_a_network(cell, root, wheels, debian):
    (wheels / cell.wheels[0][0]).unlink()
    with pytest.raises(RocmatrixError, match="RM202"):
        straight(cell, root, wheels, debian)
    assert "No matching distribution found" in build.log_file(cell, root).read_text()


def test_unknown_base_is_rm204(cell, root, wheels):
    with pytest.raises(RocmatrixError, match="RM204") as caught:
        build.build(cell, root=root, base="rocmatrix-test/no-such-base:1", wheelhouse=wheels)
    assert "rocmatrix-test/no-such-base:1" in str(caught.value)


def test_stopped_engine_is_rm201(cell, root, wheels, debian, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{root}/stopped.sock")
    with pytest.raises(RocmatrixError, match="RM201"):
        build.build(cell, root=root, base=debian, wheelhouse=wheels)


def test_command_line_reports_it_without_a_traceback(tmp_path):
    argv = [sys.executable, "-m", "invoke", "build", "--cell", cells.CPU.name]
    environment = {**os.environ, "DOCKER_HOST": f"unix://{tmp_path}/stopped.sock"}
    done = subprocess.run(argv, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "RM201" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_ctrl_c_leaves_nothing_tagged(cell, root, wheels, debian):
    """The interrupt comes while the wheels are installed; the fixture sees that no image is left."""
    code = "import sys; from pathlib import Path; from rocmatrix.images import buildkit; "
    code += "buildkit.run(sys.argv[2:], log=Path(sys.argv[1]))"
    slow = root / "images" / cell.name / "Dockerfile"
    uncached = f"sleep 20 && : {time.time_ns()} && python3 -m venv"
    slow.write_text(slow.read_text().replace("python3 -m venv", uncached))
    argv = build.buildx_argv(cell, root=root, wheelhouse=wheels, inputs="x", base=debian)
    log = build.log_file(cell, root)
    command = [sys.executable, "-c", code, str(log), *argv]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as builder:
        for line in builder.stderr:
            if "runtime 2/" in line:
                break
        time.sleep(1)
        builder.send_signal(signal.SIGINT)
        started = time.monotonic()
        builder.communicate(timeout=60)
    assert builder.returncode != 0
    assert time.monotonic() - started < 15

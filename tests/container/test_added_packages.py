"""Images with packages added by name and by a requirements file: real wheels, real engine, on the CPU cell."""

import json
import os
import socket
import subprocess
import time
import urllib.request
from dataclasses import replace

import pytest

from rocmatrix.cli.commands.run import Run
from rocmatrix.containers.settings import Limit
from rocmatrix.host.hardware import read_hardware
from rocmatrix.images import build, companion_lock, render
from rocmatrix.images.added import requirements_file
from rocmatrix.jobs import interactive
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures import cells, sysfs
from tests.left_out import WHOLE, long

pytestmark = [pytest.mark.container, long]  # one image of a GB; the stages are rendered and read by unit tests
# JupyterLab brings some 80 wheels more, each of them fetched by a pip of its own.
SERVERS = ("jupyterlab", "tensorboard") if WHOLE else ("tensorboard",)

LOOK = """
import json, torch
from importlib.metadata import version
print(json.dumps([torch.__version__, version({!r})]))
"""


@pytest.fixture(scope="module")
def built_with(cpu_image, cpu_cell, cpu_root, cpu_wheels, debian):
    """Return a function that locks and builds the tests' CPU cell with packages; its images go with the module."""
    made = []

    def built_with(*packages):
        named = companion_lock.added(cells.MATRIX, cpu_cell, packages)
        try:
            cell = companion_lock.locked(cells.MATRIX, named, cpu_root)
            render.make_ready(cell, cpu_root)
            built = build.build(cell, root=cpu_root, base=debian, wheelhouse=cpu_wheels)
        except RocmatrixError as error:
            if error.code not in ("RM104", "RM105") or "from versions: none" not in error.render():
                raise
            pytest.skip(f"the packages cannot be fetched here: {error.what}")
        made.append(built.tag)
        return cell, built

    yield built_with
    for tag in made:  # by the command line, which waits for a busy engine longer than the SDK's 20 seconds
        subprocess.run(["docker", "image", "rm", "--force", tag], capture_output=True, check=True)


def holds_its_lock(cell, built, run):
    ended = run(built.tag, "-m", "pip", "list", "--format=json", "--disable-pip-version-check", entrypoint="python")
    found = {package["name"].lower().replace("_", "-"): package["version"] for package in json.loads(ended.stdout)}
    locked = {wheel.name.lower().replace("_", "-"): wheel.version for _, wheel in cell.wheels}
    assert found.pop("pip")
    assert found == locked
    checked = run(built.tag, "-m", "pip", "check", entrypoint="python")
    assert checked.status == 0, checked.stdout


@pytest.fixture(scope="module")
def both(built_with, tmp_path_factory, cpu_root):
    """Build one image with companions and a requirements file; return its cell, it, and the file's word."""
    path = tmp_path_factory.mktemp("own") / "requirements.txt"
    path.write_text("torch>=2\nnumpy\neinops>=0.8\nrich==13.*; python_version >= '3.10'\n")
    word = requirements_file.take(path, cpu_root)
    return *built_with(*SERVERS, word), word


def test_image_with_companions_and_a_requirements_file_holds_both_next_to_the_cells_torch(both, run):
    cell, built, word = both
    assert {*SERVERS} <= {wheel.name for file, wheel in cell.wheels if file in cell.added}
    assert built.tag.endswith(f"-with-{'-'.join(cell.companions)}")
    assert set(built.image.labels["org.rocmatrix.companions"].split(",")) == {*SERVERS, word}
    holds_its_lock(cell, built, run)
    torch = next(wheel.version for _, wheel in cells.CPU.wheels if wheel.name == "torch")
    for name, version in (("tensorboard", "2."), ("rich", "13."), ("einops", "0.")):
        (found,) = run(built.tag, "-c", LOOK.format(name), entrypoint="python").lines
        assert found[0] == torch
        assert found[1].startswith(version)


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def answer(address, process, seconds=180):
    """What a server answers; on a busy machine it may need a minute to begin."""
    until = time.monotonic() + seconds
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5) as found:
                return found.status, found.read().decode()
        except OSError:
            time.sleep(0.2)
    return process.poll(), "no answer"


@pytest.fixture
def served(client, tmp_path):
    """Return a function that runs a command as `run --port` does, to the address of its port on this machine."""
    started = []
    tmp_path.chmod(0o777)

    def served(cell, built, inside, command):
        port = free_port()
        typed = Run(port=[f"{port}:{inside}"], output=str(tmp_path), user="12345:12345")
        own = cell.model_copy(update={"name": f"{cell.name}-{os.getpid()}"})  # and with it the cache's volume
        hardware = read_hardware(sysfs.no_driver(tmp_path / "machine"))
        spec = interactive.spec_for(typed.chosen(command), cell=own, hardware=hardware)
        kept = tuple(each for each in spec.settings if not isinstance(each, Limit))  # see conftest.run
        name = f"rocmatrix-test-{os.getpid()}-{port}"
        argv = interactive.attached_argv(replace(spec, image=built.image.id, settings=kept))
        argv = [*argv[:2], f"--name={name}", *argv[2:]]
        with (tmp_path / "log").open("wb") as log:
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        started.append((name, process, own))
        return f"http://127.0.0.1:{port}", process

    yield served
    for name, process, own in started:
        subprocess.run(["docker", "rm", "--force", name], capture_output=True, check=False)
        process.wait(timeout=60)
        for volume in client.volumes.list(filters={"name": own.name}):
            volume.remove(force=True)


@pytest.mark.parametrize(
    ("port", "command", "path", "words"),
    [
        (6006, "tensorboard --logdir=/training --host=0.0.0.0 --port=6006", "/data/environment", '"data_location"'),
        (8888, "jupyter lab --ip=0.0.0.0 --no-browser", "/api", '"version"'),
    ],
)  # fmt: skip
def test_server_of_an_added_package_answers_on_the_port_that_is_published(
    both, served, tmp_path, port, command, path, words
):
    cell, built, _ = both
    address, process = served(cell, built, port, command.split())
    status, text = answer(address + path, process)
    assert (status, words in text) == (200, True), (text, (tmp_path / "log").read_text())

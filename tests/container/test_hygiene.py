"""What the CPU image must not hold, and what it must say. Each check is also seen to find something."""

import json
import os
from pathlib import Path

import pytest

os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")
from testcontainers.core.container import DockerContainer

from tests.fixtures import cells

pytestmark = pytest.mark.container

STRAYS = Path(__file__).with_name("strays.py")
COMPILE = "python -m compileall -q -f --invalidation-mode timestamp"
PLANTED = {
    "not empty": "touch /tmp/left /var/log/apt.log /var/lib/apt/lists/list",
    "cache": "mkdir -p /root/.cache/pip",
    "wheel": "touch /opt/torch.whl",
    "history": "touch /root/.bash_history",
    "set-id": "cp /bin/sh /opt/sh && chmod 4755 /opt/sh",
    "open to all": "mkdir /opt/open && chmod 777 /opt/open",
    "byte code": "mkdir /opt/rocmatrix/trainer/__pycache__",
    "byte code with times": f"{COMPILE} /opt/venv/lib/python3*/site-packages/tqdm",
    "owned by nobody known": "touch /opt/mine && chown 1000 /opt/mine",
}


@pytest.fixture(scope="module")
def container(cpu_image):
    """Return the CPU image running as root, so that no folder is closed to the search."""
    settings = {"entrypoint": ["sleep", "600"], "user": "0", "network_mode": "none"}
    container = DockerContainer(cpu_image.tag).with_kwargs(**settings)
    with container.with_volume_mapping(str(STRAYS), "/strays.py", "ro") as running:
        yield running


def found(container):
    ended = container.exec(["python", "/strays.py"])
    assert ended.exit_code == 0, ended.output.decode()
    return json.loads(ended.output)


@pytest.fixture(scope="module")
def clean(container):
    """Return what was found before anything was planted."""
    return found(container)


@pytest.mark.parametrize("kind", PLANTED)
def test_image_has_no_leftovers(clean, kind):
    assert clean[kind] == []


def test_leftovers_of_every_kind_are_searched(clean):
    assert clean.keys() == PLANTED.keys()


@pytest.fixture(scope="module")
def planted(clean, container):
    """Return what is found once one leftover of each kind was planted: kinds are searched apart."""
    for command in PLANTED.values():
        done = container.exec(["sh", "-c", command])
        assert done.exit_code == 0, done.output.decode()
    return found(container)


@pytest.mark.parametrize("kind", PLANTED)
def test_search_finds_what_is_planted(planted, kind):
    assert planted[kind] != []


def test_packages_are_compiled_beforehand(container):
    program = "import torch._C, torch.nn, pathlib; print(pathlib.Path(torch.nn.__cached__).is_file())"
    assert container.exec(["python", "-c", program]).output.decode().strip() == "True"


def test_default_user_is_not_root(client, cpu_image):
    assert client.images.get(cpu_image.tag).attrs["Config"]["User"] == "10001:10001"


def test_command_prints_its_usage(cpu_image, run):
    ended = run(cpu_image.tag)
    assert ended.status == 0
    assert "train" in ended.stdout


LABELS = ["title", "description", "base.name", "licenses"]
OWN_LABELS = ["cell", "torch", "rocm", "architecture", "lock", "inputs"]


def test_labels_are_there(cpu_image):
    labels = cpu_image.image.labels
    for name in [f"org.opencontainers.image.{key}" for key in LABELS] + [f"org.rocmatrix.{key}" for key in OWN_LABELS]:
        assert labels[name], name
    assert labels["org.rocmatrix.cell"] == cells.CPU.name


def test_environment_holds_no_secret_and_no_path_of_the_builder(client, cpu_image):
    names = {variable.partition("=")[0] for variable in client.images.get(cpu_image.tag).attrs["Config"]["Env"]}
    own = {"PATH", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "HOME"}
    assert names == own | {variable.name for variable in cells.CPU.environment}

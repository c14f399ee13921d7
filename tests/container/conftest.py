"""Images for the tests, each made once a session, under names of the tests' own.

Bases come from debootstrap where that can run, so no registry is needed; otherwise they are pulled.
"""

import fcntl
import hashlib
import io
import json
import os
import shutil
import stat
import subprocess
import tarfile
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from rocmatrix.containers import emit, engine
from rocmatrix.containers.runspec import Chosen, run_spec
from rocmatrix.containers.settings import Limit, Mount
from rocmatrix.host.hardware import read_hardware
from rocmatrix.images import build, wheelhouse
from rocmatrix.runtime.errors import RocmatrixError
from tests.fixtures import cells, small_image, sysfs
from tests.fixtures.stand_ins import stand_in_cell

ROOT = Path(__file__).resolve().parents[2]
# Of the tests' Debian, what no test reads that exports an image; dpkg still lists it.
LEFT_OUT = (
    *(f"usr/share/{name}/" for name in ("doc", "locale", "man", "info", "zoneinfo", "perl", "i18n")),
    *(f"usr/lib/x86_64-linux-gnu/{name}" for name in ("perl", "gconv", "libicu", "dri", "libLLVM")),
    *(f"usr/lib/x86_64-linux-gnu/lib{name}" for name in ("asan", "tsan", "lsan", "ubsan", "isl", "c.a")),
    *(f"usr/bin/x86_64-linux-gnu-{name}" for name in ("gcc", "g++", "cpp", "lto", "ld", "gold", "dwp")),
    "usr/lib/gcc/", "usr/libexec/", "usr/lib/python3.11/config-3.11-x86_64-linux-gnu/libpython",
    *(f"usr/include/{name}/" for name in ("linux", "c++", "asm-generic", "drm")),
    "usr/lib/systemd/", "usr/lib/udev/", "var/cache/debconf/",
)  # fmt: skip
SMALL = "rocmatrix-test/small-base"
PULLED = {"debian-bookworm": "debian:bookworm-slim", "debian-trixie": "debian:trixie-slim"}

os.environ.setdefault("TESTCONTAINERS_RYUK_DISABLED", "true")  # its image comes from a registry


def pytest_collection_modifyitems(items):
    """Give tests with a real engine half an hour: a night with its proof takes more than the usual ten minutes."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(1800))


@pytest.fixture(scope="session")
def client():
    if obstacle := engine.obstacle():
        pytest.skip(f"no container engine answers: {obstacle}")
    client = engine.connect(work=True)
    yield client
    client.close()


@pytest.fixture(scope="session")
def small(client):
    """Return the name of a tiny image of this machine's own programs."""
    client.api.import_image_from_data(small_image.tools(), repository=small_image.REPOSITORY, tag=small_image.TAG)
    yield small_image.IMAGE
    client.images.remove(small_image.IMAGE, force=True)


@pytest.fixture
def run_folder(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    folder.chmod(0o777)
    return folder


@pytest.fixture
def stand_ins(tmp_path):
    """Return a host with two cards, and where the nodes lie that stand in for its /dev/kfd and render nodes."""
    if os.geteuid() != 0:
        pytest.skip("mknod needs root")
    harmless = small_image.HARMLESS
    numbers = [node.stat().st_rdev for node in (Path("/dev", name) for name in harmless) if node.exists()]
    if len(numbers) < 3:
        pytest.skip(f"this machine has fewer than three of /dev/{{{','.join(harmless)}}}")
    places = {}
    for name, number in zip(("kfd", "dri/renderD128", "dri/renderD129"), numbers, strict=False):
        place = tmp_path / "stand-ins" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        os.mknod(place, stat.S_IFCHR, number)
        os.chown(place, 0, small_image.GROUP)
        place.chmod(0o660)
        places[f"/dev/{name}"] = str(place)
    return read_hardware(sysfs.two_rx_7900_xt(tmp_path / "machine", render_gid=small_image.GROUP)), places


@pytest.fixture(scope="session")
def debian(client):
    """Return a base of the CPU cell's distribution, Debian bookworm; for ROCm cells it is a STAND-IN."""
    return _base(client, "debian-bookworm")


@pytest.fixture(scope="session")
def trixie(client):
    """Return plain Debian trixie, which holds neither Python nor certificates."""
    return _base(client, "debian-trixie")


@pytest.fixture(scope="session")
def small_base(client, debian):
    """Return the tests' Debian without what no test reads: an image is exported for each proof.

    It is made once for all processes, and kept as the whole Debian is.
    """
    name = f"{SMALL}:{hashlib.sha256(repr((engine.image(client, debian).id, LEFT_OUT)).encode()).hexdigest()[:12]}"
    # one for each user: in a sticky folder even root may not open another's file to create it (fs.protected_regular)
    with (Path(tempfile.gettempdir()) / f"rocmatrix-test-small-base-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if engine.image(client, name) is None:
            _import_small(client, debian, name)
    return name


def _import_small(client, whole, name):
    container, kept = client.containers.create(whole, ["true"]), io.BytesIO()
    try:
        exported = subprocess.run(["docker", "export", container.id], capture_output=True, check=True).stdout
    finally:
        container.remove()
    with tarfile.open(fileobj=io.BytesIO(exported)) as read, tarfile.open(fileobj=kept, mode="w") as write:
        for member in read:
            if not member.name.startswith(LEFT_OUT):
                write.addfile(member, read.extractfile(member) if member.isreg() else None)
    subprocess.run(["docker", "import", "-", name], input=kept.getvalue(), capture_output=True, check=True)


def _base(client, name):
    made = subprocess.run([ROOT / ".ci" / "bases", name], capture_output=True, text=True, check=False)
    if made.returncode == 0:
        return f"rocmatrix-test/{name}"
    try:
        engine.obtain(client, PULLED[name])
    except RocmatrixError as error:
        pytest.skip(f"no base: {made.stderr.strip()}; {error.why}")
    return PULLED[name]


@pytest.fixture(scope="session")
def lay_out(tmp_path_factory):
    """Return a function that copies what a cell's image is made of, as `cell.name`, into a new checkout."""

    def lay_out(cell, dockerfile_of):
        root = tmp_path_factory.mktemp(cell.name)
        shutil.copytree(ROOT / "trainer", root / "trainer", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(ROOT / "images" / dockerfile_of.name, root / "images" / cell.name)
        return root

    return lay_out


@pytest.fixture(scope="session")
def cpu_wheels():
    """Return the real wheels of the CPU cell, fetched where this checkout keeps them."""
    folder = wheelhouse.default_folder(ROOT, cells.CPU)
    try:
        return wheelhouse.fetch(cells.CPU, folder)
    except RocmatrixError as error:
        if error.code != "RM104":
            raise
        pytest.skip(f"the CPU cell's wheels cannot be fetched here: {error.what}")


@pytest.fixture(scope="session")
def cpu_cell():
    """Return the CPU cell under a name of the tests' own, so that nobody's image is replaced."""
    return cells.CPU.model_copy(update={"name": f"test-{cells.CPU.name}"})


@pytest.fixture(scope="session")
def cpu_root(lay_out, cpu_cell):
    return lay_out(cpu_cell, cells.CPU)


@pytest.fixture(scope="session")
def cpu_image(client, debian, cpu_wheels, cpu_cell, cpu_root):
    """Build the CPU cell for real: its own Dockerfile, lock and wheels; Debian's base made by debootstrap."""
    return build.build(cpu_cell, root=cpu_root, base=debian, wheelhouse=cpu_wheels)


@pytest.fixture(scope="session")
def stand_in(tmp_path_factory):
    """Return a function: a cell to its STAND-IN with tiny wheels, and their folder, one for each release."""
    place = tmp_path_factory.mktemp("stand-ins")

    def stand_in(cell):
        folder = place / cell.release.name
        return stand_in_cell(cell, folder), folder

    return stand_in


@pytest.fixture
def run(client, cpu_cell, tmp_path):
    """Return a function that runs a command in an image as the run spec of a host with no card confines it.

    `arguments` are docker's own and win. The run folder is `tmp_path`, open to every user. Limits are left
    out: an engine without CAP_SYS_RESOURCE, as on some CI machines, cannot lift them.
    """

    own = cpu_cell.model_copy(update={"name": f"{cpu_cell.name}-{os.getpid()}"})  # and with it the cache's volume

    def run(image, *command, user="12345:12345", **arguments):
        hardware = read_hardware(sysfs.no_driver(tmp_path / "machine"))
        spec = run_spec(own, hardware, Chosen(image=image, command=command, run_folder=tmp_path, user=user))
        spec = replace(spec, settings=tuple(s for s in spec.settings if not isinstance(s, Limit)))
        container = client.containers.create(**emit.docker_sdk_arguments(spec) | arguments)
        try:
            container.start()
            status = container.wait(timeout=300)["StatusCode"]
            return Ended(status, *(container.logs(stdout=out, stderr=not out).decode() for out in (True, False)))
        finally:
            container.remove(force=True, v=True)
            for mount in spec.of(Mount):
                if mount.kind == "volume":
                    client.volumes.get(str(mount.origin)).remove()

    tmp_path.chmod(0o777)
    return run


class Ended:
    """A container that has ended: its exit status and what it printed."""

    def __init__(self, status, stdout, stderr):
        self.status, self.stdout, self.stderr = status, stdout, stderr

    @property
    def lines(self):
        """The JSON lines on standard output."""
        return [json.loads(line) for line in self.stdout.splitlines()]

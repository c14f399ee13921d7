"""A checkout for the rehearsal: this program's own code and templates, with STAND-IN wheels and trainer.

The machines are SIMULATED: trees shaped after sysfs, with device nodes made by mknod that are /dev/null by number.
"""

import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import yaml

from rocmatrix.images import render
from rocmatrix.matrix.loading import load
from tests.fixtures import cells, sysfs
from tests.fixtures.device_code import wheel_tree
from tests.fixtures.stand_ins import stand_in_wheel

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).resolve().parent
GFX1100, GFX942 = "rocm7.2-torch2.12.1-gfx1100", "rocm7.2-torch2.12.1-gfx942"
GROUP = 54321
NULL = os.makedev(1, 3)
MI300X = sysfs.RX_7900_XT | {
    "simd_count": 1216, "simd_per_cu": 4, "gfx_target_version": 90402, "device_id": 29857,
}  # fmt: skip
SCENES = {
    GFX1100: {"gfx": "gfx1100", "card": "Radeon RX 7900 XT"},
    GFX942: {"gfx": "gfx942", "card": "Instinct MI300X"},
}


def machine(place, model, *, cards):
    """Write the tree of a SIMULATED machine, its nodes real device nodes; return where it starts."""
    made = sysfs.Machine(place)
    made.amdgpu(kfd_gid=GROUP, dkms="6.16.6")
    made.cpu(0)
    memory = (192 if model is MI300X else 20) * sysfs.GIB
    for number in range(cards):
        made.gpu(number + 1, model, minor=128 + number, gid=GROUP, memory=memory, unique_id=0xA0 + number)
    for node in (place / "dev/kfd", *sorted((place / "dev/dri").glob("renderD*"))):
        node.unlink()
        os.mknod(node, stat.S_IFCHR, NULL)
        os.chown(node, 0, GROUP)
        node.chmod(0o660)
    return place


def lay_out(place):
    """Copy what commands need into a checkout of its own; return it. The two cells' wheels are STAND-INS."""
    for name in ("rocmatrix", "templates", "matrix"):
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("matrix.yaml", "matrix.schema.json", "tasks.py"):
        shutil.copy(ROOT / name, place / name)
    shutil.copytree(HERE / "stand_in_trainer", place / "trainer", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "rocmatrix/runtime/trainer/probes.json", place / "trainer/probes.json")
    lock_stand_ins(place)
    matrix = load.load(place)
    for name in SCENES:
        render.write_recipe(matrix.cell(name), place / "images" / name)
    return place


def lock_stand_ins(place):
    """Write the wheels, and a lock that names them and nothing else."""
    cell, folder = cells.MATRIX.cell(GFX1100), place / "wheels"
    folder.mkdir()
    kernels = wheel_tree(*sorted(cell.release.architectures))
    chosen = {wheel.name: wheel for _, wheel in cell.wheels if wheel.name in ("torch", "numpy")}
    made = [
        stand_in_wheel(name, wheel.version, folder, kernels=kernels if name == "torch" else None)
        for name, wheel in sorted(chosen.items())
    ]
    hashes = {path.name: digest(path) for path in made}
    about = {"index": "python", "sources": ["stand-in"], "confidence": "derived", "sha256": hashes}
    (place / "matrix/wheels.yaml").write_text(yaml.safe_dump([about]))
    lock = {cell.lock_name: {cell.python: sorted(hashes)}}
    (place / "matrix/locks.yaml").write_text(yaml.safe_dump(lock))


def digest(path):
    from rocmatrix.images.wheelhouse import sha256

    return sha256(path)


class Ended:
    """A command that has ended."""

    def __init__(self, status, text):
        self.status, self.text = status, text


class Running:
    """A command that was begun."""

    def __init__(self, checkout, pid, output):
        self.checkout, self.pid, self.output = checkout, pid, output

    @property
    def text(self):
        return self.output.read_text(errors="replace")

    def until(self, condition, seconds=60):
        """Wait for what `condition` returns; fail where the command ends before."""
        until = time.monotonic() + seconds
        while not (found := condition()):
            assert time.monotonic() < until, f"waited in vain; it said:\n{self.text}"
            assert Path(f"/proc/{self.pid}").exists() and not self.is_zombie, f"it ended before:\n{self.text}"
            time.sleep(0.02)
        return found

    @property
    def is_zombie(self):
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            return True

    def kill(self, number=9):
        os.kill(self.pid, number)
        return self.end()

    def end(self):
        status = self.checkout.request({"wait": self.pid})["status"]
        return Ended(status, self.text)


class Checkout:
    """A laid-out checkout, its machine and evidence, and a worker that runs its commands."""

    def __init__(self, place, tree, base, enter=()):
        self.place, self.tree, self.base = place, tree, base
        self.cell = GFX1100
        self.evidence = place / "state" / "evidence.db"
        self.evidence.parent.mkdir(exist_ok=True)
        self.environment = {}
        self.count = 0
        own = {name: value for name, value in os.environ.items() if not name.startswith(("ROCMATRIX_", "PYTHONPATH"))}
        self.worker = subprocess.Popen(
            [*enter, sys.executable, "-P", str(HERE / "worker.py")], cwd=place, env=own, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert json.loads(self.worker.stdout.readline())["ready"]

    def close(self):
        self.worker.stdin.close()
        self.worker.wait(timeout=20)
        self.worker.stdout.close()

    def request(self, request):
        self.worker.stdin.write(json.dumps(request) + "\n")
        self.worker.stdin.flush()
        return json.loads(self.worker.stdout.readline())

    def begin(self, *argv, **more):
        """Begin a command as typed after `./invokew`."""
        self.count += 1
        output = self.place / "outputs" / f"{self.count}.txt"
        output.parent.mkdir(exist_ok=True)
        environment = {
            "ROCMATRIX_SIMULATED": str(self.tree),
            "ROCMATRIX_STAND_IN": "wheels and trainer of the rehearsal",
            "ROCMATRIX_EVIDENCE": str(self.evidence),
            **self.environment,
        }
        request = {"argv": list(argv), "environment": environment, "output": str(output), **more}
        return Running(self, self.request(request)["pid"], output)

    def run(self, *argv, **more):
        """Run a command to its end."""
        ended = self.begin(*argv, **more).end()
        return ended

    def night_argv(self):
        wheels = str(self.place / "wheels")
        return ("nightly", "--cell", self.cell, "--jobs", "1", "--base", self.base, "--wheelhouse", wheels)

    def play(self, **scene):
        """Write what the stand-in trainer is to do next."""
        folder = self.place / ".rocmatrix" / "smoke"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "paused").unlink(missing_ok=True)
        (folder / "scenario.json").write_text(json.dumps(SCENES[self.cell] | scene))

    @property
    def paused(self):
        return self.place / ".rocmatrix" / "smoke" / "paused"

    def night(self, **more):
        return self.run(*self.night_argv(), **more)

    def begin_night(self, **more):
        return self.begin(*self.night_argv(), **more)

    def change_trainer(self, text=None):
        """Change what the image is made of, so that the next night has something to build; return what was there."""
        path = self.place / "trainer" / "__init__.py"
        before = path.read_text()
        path.write_text(text or f"{before}# {time.monotonic_ns()}\n")
        return before

    def leg(self, stage):
        """Return how the newest night stands at a stage of the cell, None where it has not come to it."""
        try:
            with closing(sqlite3.connect(f"file:{self.evidence}?mode=ro", uri=True)) as connection:
                row = connection.execute(
                    "SELECT state FROM leg WHERE stage = ? AND night = (SELECT name FROM night ORDER BY rowid DESC)",
                    (stage,),
                ).fetchone()
        except sqlite3.Error:
            return None
        return row and row[0]

    def explained(self, truth):
        """Return what a scenario that fails is explained by: what is on record, and what the command before printed."""
        printed = (self.place / "outputs" / f"{self.count - 1}.txt").read_text(errors="replace")
        return f"{truth.cell_status}\n{truth.records[-1:]}\n{printed[-4000:]}"

    def truth(self):
        """Return what `evidence` and the dashboard say of the cell. All that is on record is marked simulated."""
        page = self.place / "page"
        ended = self.run("evidence", "--cell", self.cell, "--json", "dashboard", "--out", str(page))
        assert ended.status == 0, ended.text
        reported, _ = json.JSONDecoder().raw_decode(ended.text[ended.text.index("{") :])
        assert all("simulated" in record["marks"] for record in reported["records"])
        own, simulated = ([s for s in reported["standings"] if s["simulated"] is kind] for kind in (False, True))
        assert [s["level"] for s in own] == ["rendered"]  # no card of the cell's ever ran it
        return Truth(simulated, reported["records"], (page / "cells" / f"{self.cell}.html").read_text())


class Truth:
    """What is on record of the cell, as the program states it."""

    def __init__(self, cell_statuses, records, page):
        self.records, self.page = records, page
        (self.cell_status,) = cell_statuses
        self.level = self.cell_status["level"]
        self.failures = [*self.cell_status["failing"], *self.cell_status["failures"]]
        # The page is another program's view of the same: it has to say the same.
        assert f"simulated: {self.level}</span>" in page
        assert all(name in page for name in self.failures)

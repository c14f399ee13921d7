"""Five owners' walks for real: a git clone, its images built and run by the commands as typed, in at most five.

STAND-INS, as neither AMD's wheels nor a registry nor a card is here: wheels with the locked names and versions, Debian
in place of Ubuntu, a trainer that records what it is given, /dev/null behind the nodes of SIMULATED cards. Unlocked
cells take what pip finds: the pip.conf of the base names a folder of stand-ins in place of the index. The walks are
typed as dry runs in tests/unit/rocmatrix/cli/test_owners.py.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from packaging.specifiers import SpecifierSet

from rocmatrix.images import render, wheelhouse
from rocmatrix.matrix.loading import load
from tests.container.rehearsal import checkout as making
from tests.fixtures import sysfs
from tests.fixtures.stand_ins import stand_in_kernels, stand_in_wheel
from tests.left_out import long

pytestmark = pytest.mark.container

ROOT = Path(__file__).resolve().parents[2]
OLD, NEW, MI50 = "rocm6.2-torch2.5.1-gfx1100", "rocm6.3-torch2.7.1-gfx1100", "rocm6.0-torch2.4.1-gfx906"
HALO = "rocm7.2-torch2.12.1-gfx1151"
OLDER = "rocm6.0-torch2.4.1-gfx1100"
UNLOCKED = {"5.7": "rocm5.7-torch2.3.1-gfx1100", "7.0": "rocm7.0-torch2.10.0-gfx1100"}
LOCKED = (OLD, NEW, MI50, HALO, OLDER)
ADDED = ("accelerate", "peft", "transformers")
WITH = f"-with-{'-'.join(ADDED)}"
UNPINNED = ("numpy", "polars", "pyyaml", "safetensors", "tensorboardx", "tqdm", "zstandard")  # next to torch
HELD = ("torch", "numpy")  # of a cell's wheels, those that have a stand-in
SCRIPT = (
    "--data es.csv --output TR --epochs 10 --batch_size 256 --learning_rate 0.001 --hidden_layers 32,16 "
    "--use_mixed_precision --data_fraction 0.05 --chunk_size 50000 --skip_gpu_cleanup"
)
TRAINER = """
import json, sys
from pathlib import Path

argv, inside = sys.argv[1:], Path("/training")
data = next(Path(word.partition("=")[2]) for word in argv if word.startswith("--data="))
nodes = sorted(node.name for node in Path("/dev/dri").glob("renderD*"))
seen = {"argv": argv, "lines": len(data.read_text().splitlines()), "nodes": nodes}
(inside / "seen.json").write_text(json.dumps(seen))
arch = next(word for word in argv if word.startswith("--cell=")).partition("-with-")[0].rpartition("-")[2]
device = {"kind": "rocm", "name": f"SIMULATED {arch}", "arch": arch}
print(json.dumps({"event": "start", "device": device, "data": {"source": "STAND-IN"}}))
print(json.dumps({"event": "epoch", "train_loss": 1.0, "validation_loss": 1.0}))
print(json.dumps({"event": "done", "run": "stand-in", "best": {"validation_loss": 1.0}}))
"""
TUNE = """
import json, os
from pathlib import Path

import accelerate, peft, torch, transformers

modules = (torch, transformers, peft, accelerate)
nodes = sorted(node.name for node in Path("/dev/dri").glob("renderD*"))
found = {"versions": {m.__name__: m.__version__ for m in modules}, "stand_in": all(m.STAND_IN for m in modules)}
Path("adapter.json").write_text(json.dumps(found | {"nodes": nodes, "cache": os.environ["HF_HOME"]}))
"""

COMPARE = """
import json
from pathlib import Path

import torch

nodes = sorted(node.name for node in Path("/dev/dri").glob("renderD*"))
with Path("compared.jsonl").open("a") as file:
    print(json.dumps({"torch": torch.__version__, "stand_in": torch.STAND_IN, "nodes": nodes}), file=file)
"""


def changed_files():
    """What the working tree has besides its last commit; a clone is of that."""
    listed = ["git", "-C", str(ROOT), "ls-files", "-z", "--modified", "--others", "--exclude-standard"]
    done = subprocess.run(listed, capture_output=True, text=True, check=True)
    return [name for name in done.stdout.split("\0") if name]


@pytest.fixture(scope="module")
def clone(tmp_path_factory, client, small_base):
    """Return a clone of this checkout with STAND-INS for its wheels, base and trainer, and where packages come from."""
    if os.geteuid() != 0:
        pytest.skip("mknod needs root")
    place = tmp_path_factory.mktemp("owner") / "rocmatrix"
    done = subprocess.run(["git", "clone", "--quiet", "--depth=1", f"file://{ROOT}", str(place)], check=False)
    if done.returncode != 0:
        pytest.skip("this checkout is no repository that can be cloned")
    for name in changed_files():
        (place / name).unlink(missing_ok=True)
        if (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, place / name)
    (place / "trainer" / "__main__.py").write_text(TRAINER)
    base = base_with_an_index(place, small_base)
    stand_in_base(place, base)
    links = lock_stand_ins(place)
    yield place, links
    remove(client)
    client.images.remove(base)


def base_with_an_index(place, small):
    """Make a base whose pip finds the STAND-INS of unlocked cells' wheels, and asks no index; return its name."""
    folder, matrix, name = place / "index", load.load(place), "rocmatrix-test/base-with-an-index"
    folder.mkdir()
    (folder / "pip.conf").write_text("[global]\nno-index = true\nfind-links = /opt/stand-ins\n")
    for cell in map(matrix.cell, UNLOCKED.values()):
        stand_in_wheel("torch", f"{cell.release.torch}+rocm{cell.release.rocm}", folder, kernels=stand_in_kernels(cell))
    for package in UNPINNED:
        stand_in_wheel(package, "1.0", folder)
    (folder / "Dockerfile").write_text(f"FROM {small}\nCOPY *.whl /opt/stand-ins/\nCOPY pip.conf /etc/pip.conf\n")
    subprocess.run(["docker", "build", "--quiet", "--tag", name, str(folder)], capture_output=True, check=True)
    return name


def stand_in_base(place, name):
    """Name the tests' Debian as the base of Ubuntu's cells, as a site without a registry would name its own."""
    text = (place / "matrix.yaml").read_text()
    own = load.load(place).bases["ubuntu-24.04"]
    written = f"image: {own.image}\n    digest: {own.digest}\n"
    assert text.count(written) >= 1
    instead = f"image: {name}\n    digest_unknown_because: a STAND-IN\n"
    (place / "matrix.yaml").write_text(text.replace(written, instead, 1))


def lock_stand_ins(place):
    """Write the cells' STAND-IN wheels where their own would lie, the locks, and a folder with the companions."""
    matrix, hashes, locks = load.load(place), {}, {}
    links = place / "links"
    links.mkdir()
    for cell in map(matrix.cell, LOCKED):
        folder = wheelhouse.default_folder(place, cell)
        folder.mkdir(parents=True, exist_ok=True)  # cells of one lock share it
        chosen = {wheel.name: wheel.version for _, wheel in cell.wheels if wheel.name in HELD}
        kernels = {"torch": stand_in_kernels(cell)}
        made = [stand_in_wheel(name, chosen[name], folder, kernels=kernels.get(name)) for name in sorted(chosen)]
        hashes |= {path.name: wheelhouse.sha256(path) for path in made}
        locks[cell.lock_name] = {cell.python: sorted(path.name for path in made)}
    for package, cell in ((package, cell) for package in ADDED for cell in (MI50, HALO)):
        stand_in_wheel(package, version_of(matrix, package, matrix.cell(cell)), links)
    about = {"index": "python", "sources": ["stand-in"], "confidence": "derived", "sha256": hashes}
    (place / "matrix/wheels.yaml").write_text(yaml.safe_dump([about]))
    (place / "matrix/locks.yaml").write_text(yaml.safe_dump(locks))
    matrix = load.load(place)
    for cell in (cell for cell in map(matrix.cell, LOCKED) if cell.written):
        render.write_recipe(cell, place / "images" / cell.name)
    return links


def version_of(matrix, package, cell):
    """The newest made-up version that goes with the cell's torch by the matrix."""
    companion = next(each for each in matrix.companions if each.package == package)
    bounds = companion.version(architecture=cell.architecture, torch=cell.release.torch, rocm=cell.release.rocm)
    every = [f"{major}.{minor}.0" for major in range(6) for minor in range(60)]
    return [version for version in every if version in SpecifierSet(bounds or "")][-1]


def remove(client):
    for cell in (OLD, NEW, OLDER, *UNLOCKED.values(), f"{MI50}{WITH}", f"{HALO}{WITH}"):
        argv = ["docker", "image", "rm", "--force", f"rocmatrix:simulated-{cell}"]
        subprocess.run(argv, capture_output=True, check=True)
    for volume in client.volumes.list(filters={"name": "rocmatrix-cache-simulated-"}):
        if any(cell in volume.name for cell in (*LOCKED, *UNLOCKED.values())):
            volume.remove(force=True)


@pytest.fixture
def typed(clone, tmp_path):
    """Return a function that runs what is typed behind `./invokew`, in a folder with the owner's files."""
    place, links = clone
    tree = tmp_path / "machine"
    home = tmp_path / "home"
    home.mkdir()
    (home / "es.csv").write_text("timestamp,open,high,low,close,volume\n2024-01-02 09:30,1,2,0,1,5\n")
    (home / "tune.py").write_text(TUNE)
    (home / "compare.py").write_text(COMPARE)
    (home / "notes.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
    (home / "model").mkdir()
    own = {name: value for name, value in os.environ.items() if not name.startswith(("ROCMATRIX_", "PYTHONPATH"))}
    known = {
        "ROCMATRIX_SIMULATED": str(tree),
        "ROCMATRIX_STAND_IN": "wheels, base and trainer",
        "ROCMATRIX_EVIDENCE": str(tmp_path / "evidence.db"),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(links),
    }

    def typed(words):
        program = [sys.executable, "-P", str(place / "rocmatrix/cli/program.py"), "--search-root", str(place)]
        argv = [*program, *shlex.split(words)]
        done = subprocess.run(argv, cwd=home, env=own | known, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"./invokew {words}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    typed.home, typed.tree = home, tree
    return typed


@long
def test_owner_of_two_rx_7900_xt_comes_from_6_2_to_6_3_in_three_commands(typed):
    making.machine(typed.tree, sysfs.RX_7900_XT, cards=2)
    assert f"built rocmatrix:simulated-{OLD}" in typed("build --rocm 6.2 --torch 2.5.1")
    assert f"built rocmatrix:simulated-{NEW}" in typed("build --rocm 6.3")
    output = typed(f"train --rocm 6.3 {SCRIPT}")
    assert "SIMULATED machine" in output
    seen = json.loads((typed.home / "TR/seen.json").read_text())
    assert (seen["lines"], seen["nodes"]) == (2, ["renderD128", "renderD129"])
    assert {"--data-fraction=0.05", "--hidden-layers=32,16", "--batch-size=256"} <= {*seen["argv"]}
    assert f"--cell={NEW}" in " ".join(seen["argv"])


@long
def test_owner_of_an_mi50_runs_a_script_of_its_own_in_two_commands(typed):
    making.machine(typed.tree, sysfs.MI50, cards=1)
    request = "--gpu MI50 --torch 2.4.1+rocm6.0 --with transformers,peft,accelerate"
    assert f"built rocmatrix:simulated-{MI50}{WITH}" in typed(f"build {request}")
    typed(f"run {request} --code . -- python /code/tune.py")
    found = json.loads((typed.home / "TRAINING/adapter.json").read_text())
    assert found["versions"].keys() == {"torch", *ADDED}
    assert (found["versions"]["torch"], found["stand_in"]) == ("2.4.1+rocm6.0", True)
    assert (found["nodes"], found["cache"].startswith("/cache")) == (["renderD128"], True)


@long
def test_owner_of_a_strix_halo_trains_an_adapter_and_runs_a_script_in_three_commands(typed):
    making.machine(typed.tree, sysfs.STRIX_HALO, cards=1)
    request = "--with transformers,peft,accelerate"
    assert f"built rocmatrix:simulated-{HALO}{WITH}" in typed(f"build {request}")
    typed(f"run {request} --code . -- python /code/tune.py")
    found = json.loads((typed.home / "TRAINING/adapter.json").read_text())
    assert (found["versions"].keys(), found["stand_in"]) == ({"torch", *ADDED}, True)
    typed(f"train {request} --task lm --model model --adapter lora --data notes.jsonl")
    seen = json.loads((typed.home / "TRAINING/seen.json").read_text())
    assert (seen["lines"], seen["nodes"]) == (2, ["renderD128"])
    assert {"--task=lm", "--adapter=lora", f"--cell={HALO}{WITH}"} <= {*seen["argv"]}


@long
def test_reader_of_a_guide_of_7_0_trains_on_two_cards_in_four_commands(typed):
    making.machine(typed.tree, sysfs.RX_7900_XT, cards=2)
    name = UNLOCKED["7.0"]
    output = typed("build --gpu 'RX 7900 XT' --rocm 7.0 --allow-unlocked")
    assert f"built rocmatrix:simulated-{name}" in output
    assert "unlocked: no hash is recorded for torch 2.10.0" in output
    dry = typed("train --rocm 7.0 --data es.csv --num_gpus 2 --dry-run")
    assert f"rocmatrix:simulated-{name} is up to date" in dry
    assert not (typed.home / "TRAINING/seen.json").exists()
    typed("train --rocm 7.0 --data es.csv --num_gpus 2")
    seen = json.loads((typed.home / "TRAINING/seen.json").read_text())
    assert seen["nodes"] == ["renderD128", "renderD129"]
    assert {"--ranks=2", f"--cell={name}"} <= {*seen["argv"]}
    typed("run --rocm 7.0 --code . -- python /code/compare.py")
    assert compared(typed) == [("2.10.0+rocm7.0", ["renderD128", "renderD129"])]


@long
def test_owner_of_one_card_compares_four_versions_in_five_commands(typed):
    making.machine(typed.tree, sysfs.RX_7900_XT, cards=1)
    assert "unlocked: no hash is recorded for torch 2.3.1" in typed("explain --rocm 5.7")
    command = "--code . -- python /code/compare.py"
    for rocm in ("5.7", "6.0", "6.3", "7.0"):
        allowed = "--allow-unlocked " if rocm in UNLOCKED else ""
        output = typed(f"run --rocm {rocm} {allowed}{command}")
        assert ("it has what its index serves, unchecked" in output) is (rocm in UNLOCKED)
    versions = ("2.3.1+rocm5.7", "2.4.1+rocm6.0", "2.7.1+rocm6.3", "2.10.0+rocm7.0")
    assert compared(typed) == [(version, ["renderD128"]) for version in versions]


def compared(typed):
    """What each run of compare.py found: its torch, a STAND-IN, and the cards' nodes."""
    rows = [json.loads(line) for line in (typed.home / "TRAINING/compared.jsonl").read_text().splitlines()]
    assert all(row["stand_in"] for row in rows)
    return [(row["torch"], row["nodes"]) for row in rows]

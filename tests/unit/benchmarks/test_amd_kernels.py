"""What Triton compiles for the trainer on AMD architectures, with no card: on record, and a few compiled anew."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.amd_kernels import __main__ as amd_kernels
from benchmarks.amd_kernels.__main__ import Limit

ROOT = Path(__file__).parents[3]
ROW = {"subject": "mlp", "kernel": "k", "bytes": 9, "spilled": 0, "shared": 0, "refused": ""}
LIMIT = Limit(shared=65536, spilled={"mlp": 3})
FEW = """
import json
from dataclasses import asdict
from benchmarks.amd_kernels import compiling, inductor, subjects
honest = subjects.subjects
inductor.subjects = lambda: (each for each in honest() if each.name == "normed")
import sys
for lanes, archs in json.loads(sys.argv[1]).items():
    for arch, each in compiling.compiled(archs, int(lanes), 40):
        print(json.dumps([arch, asdict(each)]))
"""


def kept():
    return json.loads(amd_kernels.RESULTS.read_text())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, None),
        ({"spilled": 3}, None),
        ({"spilled": 4}, "4 spilled registers, 3 accepted"),
        ({"subject": "other", "spilled": 1}, "1 spilled registers, 0 accepted"),
        ({"shared": 65536}, None),
        ({"shared": 65537}, "65537 bytes of shared memory of 65536"),
        ({"refused": "no such target"}, "no such target"),
    ],
)
def test_kernel_just_beyond_its_budget_is_named(change, words):
    found = amd_kernels.beyond("gfx1100", [ROW | change], LIMIT)
    assert [line.partition(": ")[2] for line in found] == ([words] if words else [])


def test_kernel_that_compiles_where_all_were_refused_is_named():
    refused = Limit(shared=65536, spilled={}, refused=True)
    assert amd_kernels.beyond("gfx1030", [ROW], refused) == ["gfx1030 mlp k: compiles, and is listed as refused"]
    assert amd_kernels.beyond("gfx1030", [ROW | {"refused": "unsupported"}], refused) == []


def test_each_architecture_with_a_cell_is_on_record_within_its_budget():
    kernels, limits = kept()["kernels"], amd_kernels.limits()
    assert kernels.keys() == limits.keys() >= {"gfx906", "gfx942", "gfx1100", "gfx1201", "gfx1152"}
    assert not [line for arch, limit in limits.items() for line in amd_kernels.beyond(arch, kernels[arch], limit)]
    compiling = [rows for arch, rows in kernels.items() if not limits[arch].refused]
    assert {(row["subject"]) for rows in compiling for row in rows} >= {"own", "loss", "mlp", "llama leave"}


def test_record_is_of_these_sources_and_this_triton():
    """A change of what is compiled asks for `python -m benchmarks.amd_kernels`, which takes minutes."""
    assert kept()["deciding"] == amd_kernels.deciding_hash()
    assert f"triton=={kept()['triton']} " in (ROOT / "requirements" / "kernels.txt").read_text()


def test_generated_kernels_compile_for_both_widths_of_a_wave_and_are_refused_for_gfx1030(tmp_path):
    folder = amd_kernels.TRITON
    if importlib.util.find_spec("triton") is None and not (folder / "triton").is_dir():
        pytest.skip("triton is not installed; .ci/kernels does it")
    own = {"TRITON_CACHE_DIR": str(tmp_path / "t"), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "i")}
    environment = os.environ | own | {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"}
    argv = [sys.executable, "-c", FEW, json.dumps({64: ["gfx942"], 32: ["gfx1030", "gfx1201"]})]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = list(map(json.loads, done.stdout.strip().splitlines()))
    found = {arch: [row for name, row in rows if name == arch] for arch, _ in rows}
    for arch in ("gfx942", "gfx1201"):
        assert {row["subject"] for row in found[arch]} == {"own", "normed"}
        assert all(row["bytes"] > 1000 and not row["refused"] for row in found[arch]), found[arch]
    assert all(row["refused"] for row in found["gfx1030"]), found["gfx1030"]

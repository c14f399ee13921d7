"""Compile every kernel for every architecture of the matrix, and compare with the budget of spilled registers.

    python -m benchmarks.amd_kernels                  all; writes benchmarks/results/amd_kernels.json
    python -m benchmarks.amd_kernels gfx1100 gfx942   these alone; the others' results are kept

Triton comes from `.ci/kernels`, or from the folder ROCMATRIX_TRITON. Nothing runs on a card. Status 1 where an
architecture is not as benchmarks/amd_kernels/budget.yaml states.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import yaml

from rocmatrix.matrix.loading import load as matrix_file

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "amd_kernels.json"
BUDGET = ROOT / "benchmarks" / "amd_kernels" / "budget.yaml"
TRITON = Path(os.environ.get("ROCMATRIX_TRITON", ROOT / ".rocmatrix" / "ci" / "triton"))
WITHOUT_CELL = ("gfx1152", "gfx1153")  # sold, in no cell yet
UNITS = 40  # compute units of each made-up card; large reductions are split by them
# What decides the kernels: the trainer's functions, and how they are traced and compiled.
DECIDING = (
    *(
        "benchmarks/amd_kernels/subjects.py",
        "benchmarks/amd_kernels/inductor.py",
        "benchmarks/amd_kernels/compiling.py",
    ),
    *("trainer/models/fast/triton_softmax.py", "trainer/models/fast/cross_entropy.py"),
    *("trainer/models/fast/elementwise.py", "trainer/models/fast/compiled.py", "trainer/models/decoder/model.py"),
    *("trainer/models/mlp.py", "trainer/models/transformer.py"),
    "requirements/kernels.txt",
)
Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Limit:
    """What is accepted of an architecture: shared memory in bytes, spilled registers by subject, or refusal."""

    shared: int
    spilled: Mapping[str, int]
    refused: bool = False


def architectures() -> list[str]:
    """Return the architectures of all cells, and those without a cell that people own."""
    cells = {cell.architecture for cell in matrix_file.load(ROOT).cells if cell.architecture}
    return sorted({*cells, *WITHOUT_CELL}, key=lambda name: int(name[3:], 16))


def lanes(arch: str) -> int:
    """Return the lanes of a wave: 64 on GCN and CDNA, 32 on RDNA."""
    return 64 if arch.startswith("gfx9") else 32


def compiled(archs: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Compile all kernels for architectures whose waves are of one width, in a process of its own.

    Raises:
        RuntimeError: it fails, with the end of what it printed.
    """
    argv = [sys.executable, "-m", "benchmarks.amd_kernels.compiling", str(lanes(archs[0])), str(UNITS), *archs]
    with tempfile.TemporaryDirectory() as caches:
        own = {"TRITON_CACHE_DIR": f"{caches}/triton", "TORCHINDUCTOR_CACHE_DIR": f"{caches}/inductor"}
        path = os.pathsep.join([str(TRITON), str(ROOT)])
        environment = {**os.environ, **own, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(argv, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{', '.join(archs)}: {done.stderr[-2000:]}")
    for row in (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")):
        yield row.pop("arch"), row


def deciding_hash(root: Path = ROOT) -> str:
    """Return a hash over the files that decide the kernels."""
    digest = hashlib.sha256()
    for name in DECIDING:
        digest.update(name.encode() + b"\0" + (root / name).read_bytes())
    return digest.hexdigest()


def limits(path: Path = BUDGET) -> dict[str, Limit]:
    """Read the budget: what is accepted by architecture."""
    written = yaml.safe_load(path.read_text())
    shared = written["shared_memory"]
    return {
        arch: Limit(
            shared=shared.get(arch, shared["others"]),
            spilled=written["spilled"].get(arch, {}),
            refused=arch in written["refused"],
        )
        for arch in architectures()
    }


def beyond(arch: str, rows: Iterable[Row], limit: Limit) -> list[str]:
    """Return what of an architecture is not as its limit states, a line a kernel.

    Args:
        rows: its kernels, as `compiling.Compiled`.
    """
    found = []
    for row in rows:
        kernel = f"{arch} {row['subject']} {row['kernel']}"
        if bool(row["refused"]) != limit.refused:
            found.append(f"{kernel}: {row['refused'] or 'compiles, and is listed as refused'}")
        if row["spilled"] > (most := limit.spilled.get(row["subject"], 0)):
            found.append(f"{kernel}: {row['spilled']} spilled registers, {most} accepted")
        if row["shared"] > limit.shared:
            found.append(f"{kernel}: {row['shared']} bytes of shared memory of {limit.shared}")
    return found


def main(argv: Sequence[str]) -> int:
    """Compile, write the results and print what is beyond the budget. Returns 1 where something is."""
    kept = json.loads(RESULTS.read_text())["kernels"] if argv and RESULTS.exists() else {}
    chosen = list(argv) or architectures()
    for width in (32, 64):
        archs = [arch for arch in chosen if lanes(arch) == width]
        made = sorted(compiled(archs), key=lambda pair: pair[0]) if archs else []
        for arch, pairs in groupby(made, key=lambda pair: pair[0]):
            kept[arch] = [row for _, row in pairs]
            print(summary(arch, kept[arch]), flush=True)
    facts = {"triton": version(), "deciding": deciding_hash(), "kernels": dict(sorted(kept.items()))}
    RESULTS.write_text(json.dumps(facts, indent=1) + "\n")
    found = [line for arch, limit in limits().items() for line in beyond(arch, kept.get(arch, ()), limit)]
    print("\n".join(found) or "all within the budget")
    return 1 if found else 0


def summary(arch: str, rows: Sequence[Row]) -> str:
    """Return one line on an architecture."""
    refused, worst = sum(bool(row["refused"]) for row in rows), max(row["spilled"] for row in rows)
    shared = max(row["shared"] for row in rows)
    return f"{arch}: {len(rows)} kernels, {refused} refused, most spilled {worst}, most shared memory {shared} bytes"


def version() -> str:
    """Return the version of the Triton that is used."""
    (found,) = TRITON.glob("triton-*.dist-info")
    return found.name.split("-")[1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Hold what Triton compiles for AMD cards to a budget: registers, spills and shared memory of each kernel.

    .ci/kernels                                       # fetch Triton, once
    python -m benchmarks.kernels.budget              # compile all for every architecture, compare, write the table
    python -m benchmarks.kernels.budget --accept     # and take the figures over as the new budget
    python -m benchmarks.kernels.budget --own --triton FOLDER     # the trainer's own, by the Triton of a cell

The budget is benchmarks/kernels/budget.json, the table benchmarks/results/kernels.json. A figure above its budget
fails, and so does an architecture that is refused now or was refused before. Nothing is run: no AMD card was there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TRITON = ROOT / ".rocmatrix" / "ci" / "triton"
GENERATED = Path(__file__).with_name("generated.json")
BUDGET = Path(__file__).with_name("budget.json")
RESULTS = ROOT / "benchmarks" / "results" / "kernels.json"
COUNTED = ("vgprs", "spilled", "sgprs_spilled")  # shared memory is held to the card's own limit
# Bytes of shared memory (LDS) that one workgroup can have: LLVM's limits, llvm/test/CodeGen/AMDGPU/lds-limit-*.ll.
SHARED = {"gfx950": 163840, "gfx1250": 327680}
SHARED_OTHERS = 65536
# One card of each set of instructions that Triton treats alike: GCN 5, CDNA 1 to 4, RDNA 3, 3.5 and 4.
REPRESENTATIVES = ("gfx906", "gfx908", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1151", "gfx1201")

Row = Mapping[str, Any]


def shared_limit(architecture: str) -> int:
    """Return the bytes of shared memory that a workgroup can have."""
    return SHARED.get(architecture, SHARED_OTHERS)


def architectures() -> list[str]:
    """Return every architecture of the matrix."""
    rows = json.loads((ROOT / "trainer" / "device" / "architectures.json").read_text())
    return [str(row["name"]) for row in rows]


def compile_rows(plan: Mapping[str, Any], triton: Path = TRITON) -> tuple[dict[str, str], list[Row]]:
    """Return the versions that compiled, and a row for each kernel, architecture and configuration.

    Args:
        plan: see benchmarks.kernels.compile.
        triton: folder that holds the package.
    """
    with tempfile.TemporaryDirectory() as cache:
        own = {"PYTHONPATH": f"{triton}{os.pathsep}{ROOT}", "TRITON_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"}
        argv = [sys.executable, "-m", "benchmarks.kernels.compile", json.dumps(plan)]
        done = subprocess.run(argv, cwd=ROOT, env=os.environ | own, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the compiler's process ended with {done.returncode}: {done.stderr[-2000:]}")
    versions, *rows = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    return versions, rows


def key(row: Row) -> str:
    """Return a kernel's name in the budget: Inductor's are numbered, for names recur."""
    return str(row["kernel"]) if row["number"] is None else f"{row['number']} {row['kernel']}"


def figures(rows: Iterable[Row]) -> dict[str, dict[str, dict[str, int] | str]]:
    """Return by architecture and kernel the figures, or why it is refused.

    Of several configurations, from which Inductor takes the fastest, the one that spills least counts, for those that
    spill more than 32 registers are dropped by Inductor on AMD; of shared memory the most.
    """
    grouped: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        grouped.setdefault((row["architecture"], key(row)), []).append(row)
    found: dict[str, dict[str, dict[str, int] | str]] = {}
    for (architecture, kernel), each in grouped.items():
        found.setdefault(architecture, {})[kernel] = _of_kernel(each)
    return found


def _of_kernel(rows: Sequence[Row]) -> dict[str, int] | str:
    compiled = [row for row in rows if "refused" not in row]
    if not compiled:
        return str(rows[0]["refused"])
    best = min(compiled, key=lambda row: (row["spilled"], row["vgprs"]))
    return {**{name: int(best[name]) for name in COUNTED}, "shared": max(int(row["shared"]) for row in compiled)}


def exceeded(found: Mapping[str, Mapping[str, Any]], budget: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield what breaks the budget, or a card's own limit.

    Args:
        found: see `figures`.
        budget: the same of before.
    """
    for architecture, kernels in found.items():
        for kernel, now in kernels.items():
            where, before = f"{kernel} for {architecture}", budget.get(architecture, {}).get(kernel)
            if before is None:
                yield f"{where}: no budget"
            elif isinstance(now, str) or isinstance(before, str):
                if isinstance(now, str) != isinstance(before, str):
                    yield f"{where}: {_shown(now)}, and before {_shown(before)}"
            else:
                yield from (
                    f"{where}: {name} {now[name]}, budget {before[name]}"
                    for name in COUNTED
                    if now[name] > before[name]
                )
            if not isinstance(now, str) and now["shared"] > shared_limit(architecture):
                yield f"{where}: {now['shared']} bytes of shared memory, a workgroup has {shared_limit(architecture)}"


def _shown(outcome: Any) -> str:
    return f"refused ({outcome})" if isinstance(outcome, str) else "compiled"


def read_budget() -> dict[str, Any]:
    """Return the budget."""
    content: dict[str, Any] = json.loads(BUDGET.read_text())
    return content


def plan_of(names: Sequence[str], *, own: bool = True, configurations: int = 99) -> dict[str, Any]:
    """Return a plan for all kernels.

    Args:
        names: of architectures.
        own: with the trainer's own kernels.
        configurations: of each of Inductor's kernels at most.
    """
    about = {"own": own, "generated": str(GENERATED), "numbers": None, "configurations": configurations}
    return {"architectures": list(names), **about}


def main() -> int:
    """Compile, compare, write; 1 where a budget is broken and not accepted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accept", action="store_true")
    parser.add_argument("--triton", type=Path, default=TRITON)
    parser.add_argument("--every", action="store_true", help="Inductor's kernels for every architecture: an hour")
    parser.add_argument("--own", action="store_true", help="the trainer's own kernels alone")
    args = parser.parse_args()
    began = time.monotonic()
    versions, rows = compile_rows(plan_of(architectures()) | {"generated": None}, args.triton)
    if not args.own:
        plan = plan_of(architectures() if args.every else REPRESENTATIVES, own=False)
        rows += compile_rows(plan, args.triton)[1]
    found = figures(rows)
    broken = [] if args.accept or args.own else list(exceeded(found, read_budget()["architectures"]))
    if args.accept:
        others = [name for name in architectures() if not args.every and name not in REPRESENTATIVES]
        rows_of_others = compile_rows(plan_of(others, own=False, configurations=1), args.triton)[1]  # 12 minutes
        kept = [row for row in (*rows, *rows_of_others) if row["configuration"] == 0]
        first = {"first_configuration": figures(kept)}
        BUDGET.write_text(json.dumps({**versions, "architectures": found, **first}, indent=1) + "\n")
    results = json.loads(RESULTS.read_text()) if RESULTS.is_file() else {}
    results[versions["triton"]] = {**versions, "seconds": round(time.monotonic() - began), "architectures": found}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    outcome = "the new budget" if args.accept else "not compared" if args.own else f"{len(broken)} above the budget"
    print(*broken, f"{len(rows)} compilations by Triton {versions['triton']}: {outcome}", sep="\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

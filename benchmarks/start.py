"""How long a person waits before anything happens: help, the lists, a request resolved, all cells rendered.

    python benchmarks/start.py

Each is a process of its own, taken in turns; wall and processor seconds, least and median. Raw results go to
benchmarks/results/start.json.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "start.json"
ROUNDS = 9
LOADED = "from rocmatrix.matrix.loading import load as matrix_file; "
RESOLVED = (
    f"{LOADED}from rocmatrix.matrix.resolver import resolve; from rocmatrix.matrix.resolver.request import Request; "
)
RENDERED = f"{LOADED}from rocmatrix.images import render; "
HERE = "from pathlib import Path; root = Path.cwd(); "
STARTS: dict[str, list[str]] = {
    "an interpreter that does nothing": [sys.executable, "-c", "pass"],
    "python -m trainer --help": [sys.executable, "-m", "trainer", "--help"],
    "python -m trainer train --help": [sys.executable, "-m", "trainer", "train", "--help"],
    "./invokew --list": [sys.executable, "-P", "rocmatrix/cli/program.py", "--search-root", ".", "--list"],
    "the matrix loaded, a request resolved": [
        sys.executable,
        "-c",
        f"{RESOLVED}{HERE}resolve.resolve(matrix_file.load(root), Request(gpu='RX 7900 XT'))",
    ],
    "all cells rendered": [sys.executable, "-c", f"{RENDERED}{HERE}render.files(matrix_file.load(root))"],
}


def once(argv: list[str]) -> tuple[float, float]:
    """Return wall and processor seconds of a process and its children."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(argv, cwd=ROOT, capture_output=True, check=True)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure in turns, print, keep."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in STARTS}
    for _ in range(ROUNDS):
        for name, argv in STARTS.items():
            taken[name].append(once(argv))
    for name, rows in taken.items():
        wall, processor = zip(*rows, strict=True)
        least = f"wall {min(wall):.3f} s, processor {min(processor):.3f} s"
        print(f"{name:40} least: {least}; median wall {statistics.median(wall):.3f} s")
    machine = {"python": platform.python_version(), "processors": os.cpu_count(), "load_1_min": os.getloadavg()[0]}
    RESULTS.write_text(json.dumps({"machine": machine, "wall_and_processor_seconds": taken}, indent=1) + "\n")


if __name__ == "__main__":
    main()

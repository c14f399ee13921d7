"""Peak memory of a training on more rows than it may hold: rows mapped under a limit, and rows in memory.

    python -m benchmarks.mapped --bars 5200000

SYNTHETIC minute bars from a seed. Each way is `python -m trainer train --features intraday` in a process of its own;
the first, under the limit, computes the features, and the others find them. A process's own memory
(RssAnon), mapped pages (RssFile, which the system may drop at any time) and VmData are read every 20 ms. The limit is
RLIMIT_DATA: the program's own memory, mapped files left out, and it is set below what the features alone take. Raw
results go to benchmarks/results/mapped.json.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.fixtures.synthetic_bars import NAME, write_synthetic  # noqa: E402

LONGEST = 1200  # seconds; Rust's threads wait for ever where one of them got no memory
KEPT = ("RssAnon", "RssFile", "VmData", "VmHWM")


def figures(pid: int) -> dict[str, int]:
    """Return bytes of a process's memory by kind; none where it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return {}
    read = (line.split(":") for line in lines)
    return {name: int(value.split()[0]) * 1024 for name, value in read if name in KEPT}


def watched(command: list[str], limit: int | None) -> dict[str, Any]:
    """Run `command` and return its exit status, the peak of each figure and its last words."""
    began, peak = time.perf_counter(), dict.fromkeys(KEPT, 0)
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output)
        if limit:
            resource.prlimit(process.pid, resource.RLIMIT_DATA, (limit, limit))
        while process.poll() is None and time.perf_counter() - began < LONGEST:
            peak = {name: max(most, figures(process.pid).get(name, 0)) for name, most in peak.items()}
            time.sleep(0.02)
        process.kill()
        process.wait()
        output.seek(0)
        words = output.read()
    result = {"exit": process.returncode, "seconds": round(time.perf_counter() - began, 1), "limit": limit}
    return result | {"peak_bytes": peak} | ({"said": words[-500:]} if process.returncode else {})


def trained(folder: Path, name: str, feed: str, limit: int | None, share: float = 1.0) -> dict[str, Any]:
    """Train by way of `feed`; return what was measured and the hashes of what came out."""
    flags = {"data": folder / "bars.csv", "output": folder, "cache": folder / "cache", "run": name, "feed": feed}
    flags |= {
        "features": "intraday",
        "horizon": 30,
        "batch-size": 4096,
        "epochs": 1,
        "device": "cpu",
        "workers": 1,
        "chunk-size": 20_000,
        "data-fraction": share,
    }
    command = [sys.executable, "-m", "trainer", "train", *(f"--{key}={value}" for key, value in flags.items())]
    measured = watched(command, limit)
    files = [folder / name / file for file in ("model.safetensors", "metrics.jsonl", "batches.jsonl")]
    digests = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.exists()}
    return {"name": name, "feed": feed, **measured, "sha256": digests}


def main() -> int:
    """Measure and write the raw results; fails where a way trained other weights, or the limit was no limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bars", type=int, default=5_200_000)
    parser.add_argument("--limit", type=int, default=1150, help="MiB of RLIMIT_DATA")
    parser.add_argument("--scratch", type=Path, help="folder on a disk (default: the system's)")
    options = parser.parse_args()
    load, limit = os.getloadavg()[0], options.limit * 2**20
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        folder = Path(scratch)
        write_synthetic(folder / "bars.csv", options.bars)
        csv = (folder / "bars.csv").stat().st_size
        # the first makes the features of all bars, and learns from the last of them
        runs = [trained(folder, "features-limited", "mapped", limit, share=0.02)]
        runs += [trained(folder, *way) for way in [("mapped-limited", "mapped", limit), ("device", "device", None)]]
        arrow = sum(file.stat().st_size for file in (folder / "cache").glob("*.arrow"))
    result = {
        "data": f"{NAME}; {options.bars:,} bars",
        "machine": f"{platform.machine()}, {os.cpu_count()} processors, shared with other work",
        "load_before": load,
        "csv_bytes": csv,
        "feature_file_bytes": arrow,
        "runs": runs,
    }
    (ROOT / "benchmarks" / "results" / "mapped.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))
    _, limited, held = runs
    same = held["sha256"] == limited["sha256"] and len(held["sha256"]) > 1
    return 0 if same and limit < arrow and held["peak_bytes"]["VmData"] > limit else 1


if __name__ == "__main__":
    sys.exit(main())

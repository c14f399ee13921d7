"""Peak memory of a training on a table larger than it may hold: columns and rows mapped under a limit, and in memory.

    python -m benchmarks.mapped_table --rows 3000000

SYNTHETIC numbers from a seed, as Parquet and as CSV. Each way is `python -m trainer train --target y` in a process of
its own, watched as `benchmarks.mapped` does; the limit is RLIMIT_DATA, the program's own memory. Raw results go to
benchmarks/results/mapped_table.json.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.mapped import watched  # noqa: E402

PART = 100_000  # rows that are drawn at a time


def written(path: Path, rows: int, columns: int) -> None:
    """Write numbers of which a few tell something about `y`, and one column of words."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(0)
    parts = []
    for first in range(0, rows, PART):
        count = min(PART, rows - first)
        drawn = rng.normal(size=(columns, count)).astype(np.float32).astype(np.float64)
        table = {f"c{number}": values for number, values in enumerate(drawn)}
        words = rng.choice(["red", "green", "blue"], count)
        parts.append(path.with_name(f"part-{first}.parquet"))
        pl.DataFrame(table | {"colour": words, "y": drawn[0] - 2 * drawn[1] + (words == "red")}).write_parquet(
            parts[-1]
        )
    frame = pl.scan_parquet(parts)
    frame.sink_csv(path) if path.suffix == ".csv" else frame.sink_parquet(path, row_group_size=PART)
    for part in parts:
        part.unlink()


def trained(data: Path, name: str, feed: str, limit: int | None) -> dict[str, Any]:
    """Train by way of `feed`; return what was measured and the hashes of what came out."""
    folder = data.parent / "runs"
    flags = {"data": data, "target": "y", "output": folder, "run": name, "feed": feed, "device": "cpu"}
    flags |= {"batch-size": 4096, "epochs": 1}
    command = [sys.executable, "-m", "trainer", "train", *(f"--{key}={value}" for key, value in flags.items())]
    measured = watched(command, limit)
    files = [folder / name / file for file in ("model.safetensors", "metrics.jsonl", "batches.jsonl")]
    digests = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.exists()}
    return {
        "name": name,
        "data": data.suffix,
        "bytes": data.stat().st_size,
        "feed": feed,
        **measured,
        "sha256": digests,
    }


def main() -> int:
    """Measure and write the raw results; fails where a way trained other weights, or the limit was no limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--columns", type=int, default=64)
    parser.add_argument("--rows-csv", type=int, default=300_000)
    parser.add_argument("--limit", type=int, default=1400, help="MiB of RLIMIT_DATA")
    parser.add_argument("--scratch", type=Path, help="folder on a disk (default: the system's)")
    options = parser.parse_args()
    load, limit = os.getloadavg()[0], options.limit * 2**20
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        large, text = Path(scratch, "table.parquet"), Path(scratch, "table.csv")
        written(large, options.rows, options.columns)
        runs = [trained(large, "mapped-limited", "mapped", limit), trained(large, "memory", "host", None)]
        written(text, options.rows_csv, options.columns)
        runs += [trained(text, "csv-mapped", "mapped", None), trained(text, "csv-memory", "host", None)]
    matrix = options.rows * (options.columns + 1) * 8
    result = {
        "data": f"SYNTHETIC; {options.rows:,} rows of {options.columns + 2} columns, {options.rows_csv:,} rows as CSV",
        "machine": f"{platform.machine()}, {os.cpu_count()} processors, shared with other work",
        "load_before": load,
        "matrix_bytes": matrix,
        "runs": runs,
    }
    (ROOT / "benchmarks" / "results" / "mapped_table.json").write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))
    same = all(one["sha256"] == other["sha256"] and len(one["sha256"]) > 1 for one, other in (runs[:2], runs[2:]))
    return 0 if same and limit < matrix and runs[1]["peak_bytes"]["VmData"] > limit else 1


if __name__ == "__main__":
    sys.exit(main())

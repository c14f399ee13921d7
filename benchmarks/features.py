"""All features of SYNTHETIC minute bars: CSV to Arrow, wall time and peak memory of all processes.

    python -m benchmarks.features [--bars 1700000] [--workers 2] [--market futures|crypto]

futures: 1.7 million bars at 0.25 with a VIX, sessions 09:30-16:00; crypto: a year around the clock at 0.01, a day of
which spans about 200,000 rows. Raw results are kept in benchmarks/results/features.json and features_crypto.json. The
machine is named there, with its load; the bars are synthetic.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).parent / "results"
MARKETS = {"futures": (1_700_000, "features.json", ()), "crypto": (525_600, "features_crypto.json", ("--tick=0.01",))}
AROUND_THE_CLOCK = ("--session=00:00-24:00", "--session-zone=UTC", "--half-days=none")


def main() -> None:
    """Run once for one worker and once for as many as asked, and write what was seen."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--market", choices=MARKETS, default="futures")
    arguments.add_argument("--bars", type=int)
    arguments.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    typed = arguments.parse_args()
    usual, name, options = MARKETS[typed.market]
    bars = typed.bars or usual
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "synthetic.csv"
        write(typed.market, data, bars)
        options = (*options, *(AROUND_THE_CLOCK if typed.market == "crypto" else ()))
        runs = [measured(data, Path(folder), workers, options) for workers in sorted({1, typed.workers})]
    same = len({run.pop("sha256") for run in runs}) == 1
    record = {
        "data": f"SYNTHETIC: {bars:,} seeded minute bars, {typed.market}",
        "what": "one process from CSV text to an Arrow file of features, the start of Python included",
        "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} processors, shared with other work",
        "load_average": os.getloadavg(),
        "python": platform.python_version(),
        "files_equal_for_all_workers": same,
        "runs": runs,
    }
    (RESULTS / name).write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(record, indent=1))


def write(market: str, path: Path, bars: int) -> None:
    """Write SYNTHETIC bars of a market."""
    made = f"write_synthetic(Path({str(path)!r}), {bars})"
    make = f"from pathlib import Path; from tests.fixtures.synthetic_bars import write_synthetic; {made}"
    if market == "crypto":
        make = f"from pathlib import Path; from benchmarks.features import crypto; crypto(Path({str(path)!r}), {bars})"
    subprocess.run([sys.executable, "-c", make], cwd=ROOT, check=True)


def crypto(path: Path, bars: int) -> None:
    """Write SYNTHETIC minute bars around the clock near 60,000 at 0.01."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(3)
    close = 60_000 * np.exp(np.cumsum(rng.normal(0, 0.0007, bars)))
    first = np.concatenate([close[:1], close[:-1]])
    high = np.maximum(first, close) * (1 + np.abs(rng.normal(0, 0.0003, bars)))
    low = np.minimum(first, close) * (1 - np.abs(rng.normal(0, 0.0003, bars)))
    prices = {name: values.round(2) for name, values in (("open", first), ("high", high), ("low", low))}
    times = np.datetime64("2025-01-01", "ms") + 60_000 * np.arange(bars)
    volume = (rng.exponential(10, bars) + 0.001).round(3)
    frame = pl.DataFrame({"date": times, **prices, "close": close.round(2), "volume": volume})
    frame.with_columns(pl.col("date").dt.strftime("%Y-%m-%dT%H:%M:%S+00:00")).write_csv(path)


def measured(data: Path, folder: Path, workers: int, options: tuple[str, ...]) -> dict[str, object]:
    """Return seconds, peak resident memory of the process with its workers, and the features' hash."""
    out = folder / "features.arrow"
    argv = [
        sys.executable,
        "-m",
        "trainer",
        "features",
        f"--data={data}",
        f"--out={out}",
        f"--workers={workers}",
        *options,
    ]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    process = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    peak = [0]
    watch = threading.Thread(target=watch_memory, args=(process, peak))
    watch.start()
    process.communicate()
    seconds = time.perf_counter() - began
    watch.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    record = json.loads((folder / "features.arrow.json").read_text())
    digest = subprocess.run(["sha256sum", str(out)], capture_output=True, text=True, check=True).stdout.split()[0]
    return {
        "workers": workers,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2),
        "bars_per_second": round(record["rows"]["bars"] / seconds),
        "peak_rss_bytes": peak[0],
        "features": len(record["features"]),
        "sha256": digest,
    }


def watch_memory(process: subprocess.Popen[bytes], peak: list[int]) -> None:
    """Keep the highest sum of resident memory of the process and its children, looked at every 20 ms.

    Pages that processes share, and pages of the mapped file, are counted in each: the figure is not too low.
    """
    while process.poll() is None:
        peak[0] = max(peak[0], sum(resident(pid) for pid in [process.pid, *children(process.pid)]))
        time.sleep(0.02)


def children(pid: int) -> list[int]:
    """Return the processes below `pid`."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            direct = [int(word) for word in task.read_text().split()]
        except OSError:
            continue
        found += [below for child in direct for below in (child, *children(child))]
    return found


def resident(pid: int) -> int:
    """Return the resident memory of a process in bytes, 0 where it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


if __name__ == "__main__":
    main()

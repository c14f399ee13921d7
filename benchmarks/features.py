"""54 features of 1.7 million SYNTHETIC minute bars: CSV to Arrow, wall time and peak memory of all processes.

    python -m benchmarks.features [--bars 1700000] [--workers 2]

Raw results are kept in benchmarks/results/features.json. The machine is named there; the bars are synthetic.
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
RESULTS = Path(__file__).parent / "results" / "features.json"


def main() -> None:
    """Run once for one worker and once for as many as asked, and write what was seen."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--bars", type=int, default=1_700_000)
    arguments.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    asked = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "synthetic.csv"
        make = "import sys; from pathlib import Path; from tests.fixtures.synthetic_bars import write_synthetic as w; "
        subprocess.run([sys.executable, "-c", make + f"w(Path({str(data)!r}), {asked.bars})"], cwd=ROOT, check=True)
        runs = [measured(data, Path(folder), workers) for workers in sorted({1, asked.workers})]
    same = len({run.pop("sha256") for run in runs}) == 1
    said = {
        "data": f"synthetic: {asked.bars:,} seeded minute bars",
        "what": "one process from CSV text to an Arrow file of 54 features, the start of Python included",
        "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} processors, shared with other work",
        "load_average": os.getloadavg(),
        "python": platform.python_version(),
        "files_equal_for_all_workers": same,
        "runs": runs,
    }
    RESULTS.write_text(json.dumps(said, indent=1) + "\n")
    print(json.dumps(said, indent=1))


def measured(data: Path, folder: Path, workers: int) -> dict[str, object]:
    """Return seconds, peak resident memory of the process with its workers, and the features' hash."""
    out = folder / "features.arrow"
    argv = [sys.executable, "-m", "trainer", "features", f"--data={data}", f"--out={out}", f"--workers={workers}"]
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

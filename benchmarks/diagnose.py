"""Diagnose a log of 200 MB, and compare with the plain loop: seconds and peak memory, kept in results/diagnose.json.

    python -m benchmarks.diagnose                    200 MB each; and the plain loop
    python -m benchmarks.diagnose --megabytes 20

The logs are synthetic: lines as trainers, RCCL and a driver print them, a known failure near the end. Each figure is
of a process of its own.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

from rocmatrix.diagnosis import log_reader, signature
from rocmatrix.diagnosis.matcher import Scanner
from rocmatrix.diagnosis.ranking import HostContext, rank

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "diagnose.json"
MEGABYTE = 1 << 20
FAILURE = b"[rank0]: RuntimeError: HIP error: invalid device function\n"
SAMPLE_LINES = 20_000
WORDS = ("settings", "network", "module", "driver", "kernel", "tensor", "layer", "index", "queue", "worker", "stream")


def plain_line(step: int, chance: random.Random) -> str:
    """Return a line of progress as a trainer prints it."""
    return f"epoch {step // 1000} step {step} loss={chance.random():.6f} lr=1e-4 {chance.randrange(99999)} tok/s"


def ranks_line(step: int, chance: random.Random) -> str:
    """Return a line with a rank, a time and a level before it."""
    prefix = f"[rank{step % 8}]: 2026-11-21 10:{step % 60:02d}:11,123 - root - INFO - "
    return prefix + plain_line(step, chance)


def rccl_line(step: int, chance: random.Random) -> str:
    """Return a line of a talkative RCCL."""
    channel = chance.randrange(64)
    return (
        f"node7:4{step % 100:02d}:402 [{step % 8}] NCCL INFO Channel {channel:02d}/64 : 0[0] -> 1[1] via P2P/IPC comm"
    )


def warning_line(step: int, chance: random.Random) -> str:
    """Return a harmless warning that a signature knows, in every line: the worst case for the fixed texts."""
    return f"UserWarning: expandable_segments not supported on this platform {chance.randrange(99)} {step}"


def refused_line(step: int, chance: random.Random) -> str:
    """Return an error that does not count, as the program went on: each line has other words."""
    words = " ".join(chance.choice(WORDS) for _ in range(6))
    return f"error: {words} {step} is missing, falling back"


def exception_line(step: int, chance: random.Random) -> str:
    """Return an exception that no signature knows by its words: each line has other ones."""
    words = " ".join(chance.choice(WORDS) for _ in range(5))
    return f"ValueError: the {words} {step} has no frobnicator"


def traceback_line(step: int, chance: random.Random) -> str:
    """Return a traceback that differs from others in its numbers alone, as of a server that fails in every request."""
    return (
        'Traceback (most recent call last):\n  File "/venv/lib/python3.12/site-packages/torch/nn/modules/module.py",'
        f" line {chance.randrange(2000)}, in _call_impl\n    return forward_call(*args, **kwargs)\n"
        f"torch.OutOfMemoryError: HIP out of memory. Tried to allocate {chance.randrange(900)}.00 MiB. ({step})"
    )


LINES: dict[str, Callable[[int, random.Random], str]] = {
    "plain": plain_line,
    "ranks": ranks_line,
    "rccl": rccl_line,
    "warnings": warning_line,
    "refused errors": refused_line,
    "exceptions": exception_line,
    "tracebacks": traceback_line,
}


def write(kind: str, path: Path, size: int) -> None:
    """Write a log of `size` bytes whose last lines hold a failure."""
    chance = random.Random(7)
    block = "".join(LINES[kind](step, chance) + "\n" for step in range(SAMPLE_LINES)).encode()
    with path.open("wb") as log:
        for _ in range(size // len(block)):
            log.write(block)
        log.write(FAILURE + block[: len(block) // 100])


def scanned(path: Path) -> str:
    """Diagnose a log as the command does; return the best match."""
    scanner = Scanner(signature.load(ROOT))
    with log_reader.opened(path) as stream:
        found = scanner.scan(log_reader.chunks(stream, name=str(path)))
    return rank(found.matches.values(), HostContext()).failures[0].signature.id


def plain_loop(path: Path) -> str:
    """Search the whole text for one pattern after another, as the simplest program would."""
    text = path.read_text(errors="replace")
    hits = [one.id for one in signature.load(ROOT) for pattern in one.match if re.search(pattern, text, re.MULTILINE)]
    return hits[0]


def measured(method: str, path: Path) -> dict[str, object]:
    """Run one method on one log in a process of its own."""
    argv = [sys.executable, "-m", "benchmarks.diagnose", "--one", method, "--log", str(path)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, object] = json.loads(done.stdout)
    return found


def one(method: str, path: Path) -> dict[str, object]:
    """Measure seconds and peak memory of this process."""
    began, worked = time.perf_counter(), time.process_time()
    best = {"scan": scanned, "plain loop": plain_loop}[method](path)
    seconds, processor = time.perf_counter() - began, time.process_time() - worked
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    size = path.stat().st_size / MEGABYTE
    return {
        "method": method,
        "megabytes": round(size, 1),
        "seconds": round(seconds, 2),
        "processor_seconds": round(processor, 2),
        "peak_mb": round(peak),
        "best": best,
    }


def rows(megabytes: int) -> Iterator[dict[str, object]]:
    """Yield a row for every kind of log and method."""
    with tempfile.TemporaryDirectory() as folder:
        log, packed = Path(folder, "a.log"), Path(folder, "a.log.gz")
        for kind in LINES:
            write(kind, log, megabytes * MEGABYTE)
            yield {"log": kind, **measured("scan", log)}
        write("warnings", log, megabytes * MEGABYTE)
        with log.open("rb") as plain, gzip.open(packed, "wb", compresslevel=1) as out:
            shutil.copyfileobj(plain, out)
        yield {"log": "warnings, gzip", **measured("scan", packed)}
        write("ranks", log, megabytes * MEGABYTE)
        yield {"log": "ranks", **measured("plain loop", log)}


def main() -> None:
    """Measure and keep the raw figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--one", choices=["scan", "plain loop"])
    parser.add_argument("--log", type=Path)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(options.one, options.log)))
        return
    python, load = platform.python_version(), os.getloadavg()[0]
    machine = f"{platform.machine()}, {os.cpu_count()} processors, Python {python}, load {load:.1f}"
    figures = list(rows(options.megabytes))
    found = {"date": date.today().isoformat(), "machine": machine, "data": "synthetic", "rows": figures}
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(RESULTS.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()

"""Kill training runs with SIGKILL at random moments, damage checkpoints, and compare what comes out byte by byte.

    python benchmarks/kills.py --kills 100 --damages 200

Each run is a process of its own, forked from this one after the imports so that a hundred take minutes, not an
hour. A killed run is started again with `--resume auto`, as often as it takes. Runs on the CPU of this machine,
on the shipped sample; it says nothing of a GPU. Raw results go to benchmarks/results/kills.json.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import platform
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
import torch._dynamo  # noqa: E402  optimizers import it at their first use

from trainer.cli import main as trainer  # noqa: E402
from trainer.run import train  # noqa: E402, F401  imported before the fork, so that a child begins at once

FORK = multiprocessing.get_context("fork")
SAME = ("model.pt", "model.safetensors", "metrics.jsonl", "batches.jsonl")
ABOUT = ("metadata.json", "recipe.yaml", "telemetry.jsonl")  # name the run, or tell the time
FLAGS = ("--device", "cpu", "--epochs", "30", "--checkpoint-every", "25", "--keep", "last=3", "--resume", "auto")
LATER, LATEST = 0.3, 1.2  # chance of a further kill of the same run; of an undisturbed run's time, the last moment


def start(output: Path, name: str, log: Path) -> multiprocessing.process.BaseProcess:
    """Start or go on with a run in a process of its own; what it says is appended to `log`."""

    def work() -> None:
        with log.open("a") as stream:
            os.dup2(stream.fileno(), 1)
            os.dup2(stream.fileno(), 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        status = trainer(["train", "--output", str(output), "--run", name, *FLAGS])
        sys.stdout.flush()
        os._exit(status)

    process = FORK.Process(target=work)
    process.start()
    return process


def finish(output: Path, name: str, log: Path) -> int | None:
    """Run to the end and return the exit status."""
    process = start(output, name, log)
    process.join(300)
    return process.exitcode


def fingerprint(run: Path) -> dict[str, bytes]:
    """Return the files that must not depend on whether a run was disturbed."""
    return {name: (run / name).read_bytes() for name in SAME}


def moment(output: Path, name: str) -> str:
    """Return where the kill hit, from what is on the disk."""
    partial = output / f".{name}.partial"
    if (output / name).exists():
        return "after the rename"
    if not partial.exists():
        return "before the folder"
    if list((partial / "checkpoints").glob(".step-*")):
        return "while a checkpoint was written"
    if (partial / "metadata.json").exists() or (partial / "model.pt").exists():
        return "while the model was saved"
    count = len(list((partial / "checkpoints").glob("step-*")))
    return "between checkpoints" if count else "before the first checkpoint"


def kill_one(output: Path, name: str, seconds: float, rng: random.Random) -> list[str]:
    """Kill one run at least once, then let it end; return where the kills hit."""
    log = output / f"{name}.log"
    hits: list[str] = []
    while not hits or rng.random() < LATER:
        process = start(output, name, log)
        time.sleep(rng.uniform(0, LATEST * seconds))
        assert process.pid is not None
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        process.join()
        if process.exitcode == -signal.SIGKILL:
            hits.append(moment(output, name))
        elif not hits:  # it was done already: another one
            shutil.rmtree(output / name)
    return hits


def kills(count: int, output: Path, expected: dict[str, bytes], seconds: float, rng: random.Random) -> dict[str, Any]:
    """Return what became of `count` runs, each killed at least once."""
    hits: Counter[str] = Counter()
    same = complete = clean = 0
    for number in range(count):
        name = f"kill{number}"
        hits.update(kill_one(output, name, seconds, rng))
        complete += finish(output, name, output / f"{name}.log") == 0
        same += fingerprint(output / name) == expected
        clean += {path.name for path in (output / name).iterdir()} == {*SAME, *ABOUT}
        shutil.rmtree(output / name)
    return {
        "runs": count,
        "kills": sum(hits.values()),
        "complete": complete,
        "identical": same,
        "no_leftovers": clean,
        "where": dict(hits),
    }


def damages() -> dict[str, Callable[[Path, random.Random], object]]:
    """Return the ways to damage one checkpoint's folder."""
    return {
        "bit flipped": _flip,
        "truncated": lambda folder, rng: _rewrite(_file(folder, rng), lambda data: data[: rng.randrange(len(data))]),
        "emptied": lambda folder, rng: _file(folder, rng).write_bytes(b""),
        "file missing": lambda folder, rng: _file(folder, rng).unlink(),
        "zeros in the middle": _zeros,
        "bytes added": lambda folder, rng: _rewrite(_file(folder, rng), lambda data: data + b"\0"),
        "tensors of another": lambda folder, rng: shutil.copy(_other(folder) / "tensors.safetensors", folder),
        "manifest of another": lambda folder, rng: shutil.copy(_other(folder) / "manifest.json", folder),
        "a pickle instead": _pickle,
        "half written": lambda folder, rng: _remove_all_but_state(folder),
    }


def _remove_all_but_state(folder: Path) -> None:
    for path in folder.iterdir():
        if path.name != "state.json":
            path.unlink()


def damage_some(count: int, output: Path, expected: dict[str, bytes], rng: random.Random) -> dict[str, Any]:
    """Damage the newest one, two or all checkpoints of a stopped run, go on with it, and return what became of it."""
    log, ways = output / "stopped.log", damages()
    stopped = stop_in_the_middle(output, log)
    recognised, same, complete = 0, 0, 0
    used: Counter[str] = Counter()
    for number in range(count):
        name, twin = f"damage{number}", output / f".damage{number}.partial"
        shutil.copytree(stopped, twin)
        folders = sorted((twin / "checkpoints").glob("step-*"), reverse=True)
        hit = folders[: rng.choice((1, 1, 1, 2, len(folders)))]
        for folder in hit:
            way = rng.choice(sorted(ways))
            ways[way](folder, rng)
            used[way] += 1
        own_log = output / f"{name}.log"
        complete += finish(output, name, own_log) == 0
        events = [json.loads(line) for line in own_log.read_text().splitlines() if line.startswith("{")]
        found = [event["path"] for event in events if event["event"] == "checkpoint_damaged"]
        resumed = next(event for event in events if event["event"] == "resumed")
        good = [int(folder.name[5:]) for folder in folders[len(hit) :]]
        recognised += len(found) == len(hit) and resumed["step"] == (good[0] if good else 0)
        same += fingerprint(output / name) == expected
        shutil.rmtree(output / name)
    return {
        "runs": count,
        "damaged_checkpoints": sum(used.values()),
        "recognised_and_the_one_before_used": recognised,
        "complete": complete,
        "identical": same,
        "ways": dict(used),
        "code_of_a_pickle_ran": (output / "PWNED").exists(),
    }


def stop_in_the_middle(output: Path, log: Path) -> Path:
    """Return the unfinished folder of a run with three checkpoints, stopped by SIGTERM."""
    process, twin = start(output, "stopped", log), output / ".stopped.partial"
    while len(list((twin / "checkpoints").glob("step-*"))) < 3 and process.is_alive():
        time.sleep(0.001)
    process.terminate()
    process.join()
    assert process.exitcode == 75, log.read_text()
    return twin


def _file(folder: Path, rng: random.Random) -> Path:
    return rng.choice(sorted(path for path in folder.iterdir() if path.stat().st_size))


def _other(folder: Path) -> Path:
    whole = folder.parents[2] / ".stopped.partial" / "checkpoints"
    return next(path for path in sorted(whole.glob("step-*")) if path.name != folder.name)


def _rewrite(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


def _flip(folder: Path, rng: random.Random) -> None:
    path = _file(folder, rng)
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def _zeros(folder: Path, rng: random.Random) -> None:
    path = _file(folder, rng)
    data = bytearray(path.read_bytes())
    first = rng.randrange(len(data) // 2)
    last = first + len(data) // 4
    data[first:last] = bytes(last - first)
    path.write_bytes(data)


class _Harm:
    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.place,)


def _pickle(folder: Path, rng: random.Random) -> None:
    torch.save({"model": _Harm(folder.parents[2] / "PWNED")}, folder / "tensors.safetensors")


def main() -> int:
    """Run both parts and write the raw results; return 1 where anything was not as it must be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--damages", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--result", type=Path, default=ROOT / "benchmarks" / "results" / "kills.json")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder)
        finish(output, "warm", output / "warm.log")
        began = time.monotonic()
        assert finish(output, "undisturbed", output / "undisturbed.log") == 0
        seconds = time.monotonic() - began
        expected = fingerprint(output / "undisturbed")
        assert fingerprint(output / "warm") == expected
        result = {
            "machine": f"{platform.machine()}, {os.cpu_count()} CPUs, torch {torch.__version__}, CPU only",
            "undisturbed_seconds": round(seconds, 3),
            "seed": options.seed,
            "kills": kills(options.kills, output, expected, seconds, rng),
            "damages": damage_some(options.damages, output, expected, rng),
            "seconds": round(time.monotonic() - began, 1),
        }
    options.result.parent.mkdir(parents=True, exist_ok=True)
    options.result.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))
    killed, damaged = result["kills"], result["damages"]
    good = all(killed["runs"] == killed[name] for name in ("complete", "identical", "no_leftovers"))
    good &= all(
        damaged["runs"] == damaged[name] for name in ("complete", "identical", "recognised_and_the_one_before_used")
    )
    return 0 if good and not damaged["code_of_a_pickle_ran"] else 1


if __name__ == "__main__":
    sys.exit(main())

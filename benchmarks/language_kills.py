"""Kill runs of language models with SIGKILL at random moments, resume them, and compare what comes out byte by byte.

    python -m benchmarks.language_kills --runs 4

Each case is run undisturbed once, and `--runs` times with kills: half of them while a checkpoint is being written, the
others at any moment. A killed run is started again with `--resume auto`, as often as it takes. Networks are tiny, their
weights random, the rows made up here; on the CPU of this machine, no card. Raw results go to
benchmarks/results/language_kills.json.
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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.kills import moment
from trainer.cli import main as trainer
from trainer.data.tokens import load
from trainer.run import train  # noqa: F401  imported before the fork, so that a child begins at once
from trainer.tasks import language_model  # noqa: F401  likewise

ROOT = Path(__file__).resolve().parents[1]
FORK = multiprocessing.get_context("fork")
ABOUT = ("metadata.json", "recipe.yaml", "telemetry.jsonl")  # name the run, or hold times
COMMON = ("--task", "lm", "--device", "cpu", "--keep", "last=3", "--resume", "auto")
SMALL = ("--sequence", "32", "--decoder-layers", "2", "--decoder-width", "32")
STEPS = ("--max-steps", "40", "--checkpoint-every", "2", "--batch-size", "4")
GROWING = ("--epochs", "3", "--batch-size", "8", "--batch-schedule", "2:16,3:32")
TUNED = ("--model", "BASE", "--data", "CHATS", "--sequence", "64", *STEPS)
ADAPTED = (*TUNED, "--adapter", "lora", "--lora-rank", "4", "--lora-dropout", "0.1")
PAIRS = ("--model", "BASE", "--data", "PAIRS", "--sequence", "64", "--adapter", "lora", *STEPS)
MARKED = ("--model", "BASE", "--data", "MARKED", "--sequence", "64", "--adapter", "lora", *STEPS)
RANKED = (*SMALL, "--data", "TEXT", "--max-steps", "60", "--checkpoint-every", "2", "--batch-size", "4", "--ranks", "2")
LATER, WRITING = 0.3, 0.5  # chance of a further kill of the same run, and of one during the writing of a checkpoint
LIMIT = 240  # seconds of one start


@dataclass(frozen=True, kw_only=True)
class Case:
    """Options of a run. in_memory: bytes of text above which tokens become shards on the disk."""

    options: tuple[str, ...]
    in_memory: int = load.IN_MEMORY


CASES: dict[str, Case] = {
    "from scratch, validated every 7 steps": Case(options=(*SMALL, "--data", "TEXT", *STEPS, "--eval-every", "7")),
    "from scratch, streaming shards": Case(options=(*SMALL, "--data", "TEXT", *STEPS), in_memory=1000),
    "from scratch, larger batches from epoch 2 on, Muon": Case(
        options=(*SMALL, "--data", "TEXT", *GROWING, "--optimizer", "muon", "--checkpoint-every", "2")
    ),
    "full, packed, 8-bit AdamW, last weights": Case(
        options=(*TUNED, "--optimizer", "adamw8bit", "--weights", "last", "--eval-every", "5", "--schedule", "cosine")
    ),
    "LoRA, packed, validated every 3 steps": Case(options=(*ADAPTED, "--eval-every", "3", "--patience", "9")),
    "LoRA, not packed, recomputed, micro-batch 3": Case(
        options=(*ADAPTED, "--packing", "false", "--activation-checkpointing", "full", "--micro-batch", "3")
    ),
    "QLoRA, packed": Case(options=(*TUNED, "--adapter", "qlora", "--lora-dropout", "0.1", "--warmup-steps", "5")),
    "DPO with LoRA": Case(options=(*PAIRS, "--lora-dropout", "0.1", "--eval-every", "4")),
    "KTO with LoRA": Case(options=(*MARKED, "--lora-dropout", "0.1", "--eval-every", "4", "--kto-group", "3")),
    "2 ranks, ddp": Case(options=(*RANKED, "--eval-every", "9")),
    "2 ranks, fsdp2": Case(options=(*RANKED, "--parallel", "fsdp2")),
}


def rows(folder: Path) -> dict[str, Path]:
    """Write the data; return the files by the names that stand for them in options."""
    words = [f"line {n}: {'abcdefgh'[n % 8] * (n % 5 + 1)} and {n * 7 % 13}\n" for n in range(600)]
    chats = [_chat(f"{n} plus {n % 7}?", f"{n + n % 7}.") for n in range(60)]
    pairs = [{"prompt": f"{n}?", "chosen": f"yes, {n}", "rejected": "no" + "!" * (n % 4)} for n in range(60)]
    marked = [{"prompt": f"{n}?", "completion": f"yes, {n}", "label": n % 3 > 0} for n in range(60)]
    files = {"TEXT": folder / "text.txt", "CHATS": folder / "chats.jsonl", "PAIRS": folder / "pairs.jsonl"}
    files["MARKED"] = folder / "marked.jsonl"
    files["TEXT"].write_text("".join(words))
    for name, made in (("CHATS", chats), ("PAIRS", pairs), ("MARKED", marked)):
        files[name].write_text("".join(json.dumps(row) + "\n" for row in made))
    return files


def _chat(question: str, answer: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]}


def start(options: Sequence[str], log: Path, in_memory: int) -> multiprocessing.process.BaseProcess:
    """Start a run, or resume it, in a process of its own; its output is appended to `log`."""

    def work() -> None:
        with log.open("a") as stream:
            os.dup2(stream.fileno(), 1)
            os.dup2(stream.fileno(), 2)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        load.IN_MEMORY = in_memory
        status = trainer(["train", *options])
        sys.stdout.flush()
        os._exit(status)

    process = FORK.Process(target=work)
    process.start()
    return process


def finish(options: Sequence[str], log: Path, in_memory: int) -> None:
    """Run to the end. Raises RuntimeError with the end of the log where that fails."""
    process = start(options, log, in_memory)
    process.join(LIMIT)
    if process.exitcode != 0:
        raise RuntimeError(f"status {process.exitcode}: {log.read_text()[-3000:]}")


def outcome(run: Path) -> dict[str, Any]:
    """Return what must not depend on whether a run was disturbed: its files, and the figures of metadata.json.

    Folders are left out: watchdog/ has the stacks of ranks that waited for a killed one.
    """
    files = {path.name: path.read_bytes() for path in run.iterdir() if path.name not in ABOUT and path.is_file()}
    return {**files, "figures": json.loads((run / "metadata.json").read_text())["metrics"]}


def family(pid: int) -> list[int]:
    """Return a process and those that descend from it, from /proc: torchrun's ranks have sessions of their own."""
    found = [pid]
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            if int(path.read_text().rpartition(")")[2].split()[1]) == pid:
                found += family(int(path.parent.name))
    return found


def kill(pid: int, ranks: bool, rng: random.Random) -> None:
    """Kill a run: all of its processes, or among ranks at times one alone, which the others have to survive."""
    pids = family(pid)
    chosen = [rng.choice(pids)] if ranks and rng.random() < 0.5 else pids
    for each in chosen:
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


def moment_of_kill(partial: Path, seconds: float, rng: random.Random, alive: Callable[[], bool]) -> None:
    """Wait for a random moment of a run, or for one within the writing of a checkpoint."""
    until = time.monotonic() + rng.uniform(0, 1.1 * seconds)
    if rng.random() >= WRITING:
        time.sleep(max(0.0, until - time.monotonic()))
        return
    hold = until - 0.5 * seconds
    while alive() and (time.monotonic() < hold or not list(partial.glob("checkpoints/.step-*"))):
        time.sleep(0.0002)
    time.sleep(rng.uniform(0, 0.004))


def disturbed(case: Case, options: Sequence[str], name: str, seconds: float, rng: random.Random) -> list[str]:
    """Kill one run at least once, then let it end; return where the kills hit."""
    output, hits = Path(options[options.index("--output") + 1]), list[str]()
    log, ranks = output / f"{name}.log", "--ranks" in options
    while not hits or rng.random() < LATER:
        process = start(options, log, case.in_memory)
        assert process.pid is not None
        moment_of_kill(output / f".{name}.partial", seconds, rng, process.is_alive)
        where, ended = moment(output, name), not process.is_alive()
        tree = family(process.pid)
        kill(process.pid, ranks, rng)
        process.join(LIMIT)
        await_end(tree)
        if not ended:
            hits.append(where)
        elif not hits:  # it was done already: once more
            shutil.rmtree(output / name)
    finish(options, log, case.in_memory)
    return hits


def await_end(pids: Sequence[int]) -> None:
    """Wait until the processes of a killed run have ended; ranks take a checkpoint first."""
    until = time.monotonic() + LIMIT
    while any(Path(f"/proc/{pid}/cmdline").exists() and _runs(pid) for pid in pids):
        assert time.monotonic() < until, "processes of a killed run do not end"
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def tried(case: Case, folder: Path, names: dict[str, str], count: int, rng: random.Random) -> dict[str, Any]:
    """Return what became of `count` disturbed runs of a case."""

    def options(name: str) -> list[str]:
        given = [names.get(each, each) for each in case.options]
        return [*COMMON, *given, "--output", str(folder), "--run", name]

    began = time.monotonic()
    finish(options("whole"), folder / "whole.log", case.in_memory)
    seconds, expected = time.monotonic() - began, outcome(folder / "whole")
    hits, differ, leftovers = Counter[str](), Counter[str](), Counter[str]()
    for number in range(count):
        shutil.rmtree(folder / ".tokens", ignore_errors=True)  # made again, so that kills hit that, too
        name = f"killed{number}"
        hits.update(disturbed(case, options(name), name, seconds, rng))
        found = outcome(folder / name)
        differ.update(key for key in expected.keys() | found.keys() if expected.get(key) != found.get(key))
        leftovers.update(path.name for path in folder.glob(f".{name}*"))
        shutil.rmtree(folder / name)
    return {
        "runs": count,
        "kills": sum(hits.values()),
        "where": dict(hits),
        "seconds_undisturbed": round(seconds, 2),
    } | {
        "differing_files": dict(differ),
        "leftovers": dict(leftovers),
    }


def main() -> int:
    """Run the cases and write the raw results; return 1 where a file differs or something is left."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=4, help="disturbed runs a case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="cases whose name has this text")
    parser.add_argument("--result", type=Path, default=ROOT / "benchmarks" / "results" / "language_kills.json")
    chosen = parser.parse_args()
    rng, results = random.Random(chosen.seed), dict[str, Any]()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        names = {name: str(path) for name, path in rows(folder).items()} | {"BASE": str(folder / "base")}
        base = [*COMMON, *SMALL, "--data", names["TEXT"], "--max-steps", "3", "--sequence", "64"]
        finish([*base, "--output", str(folder), "--run", "base"], folder / "base.log", load.IN_MEMORY)
        for number, (name, case) in enumerate(CASES.items()):
            if chosen.only in name:
                place = folder / f"case{number}"
                place.mkdir()
                results[name] = tried(case, place, names, chosen.runs, rng)
                print(name, json.dumps(results[name]), flush=True)
    good = not any(each["differing_files"] or each["leftovers"] for each in results.values())
    machine = f"{platform.machine()}, {os.cpu_count()} CPUs, torch {torch.__version__}, CPU only"
    kills = sum(each["kills"] for each in results.values())
    record = {"machine": machine, "seed": chosen.seed, "kills": kills, "same": good, "cases": results}
    chosen.result.write_text(json.dumps(record, indent=2) + "\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

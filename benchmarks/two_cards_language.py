"""Language models on one card and on two of this machine: the same weights, the rate, and a resume on other numbers.

    python -m benchmarks.two_cards_language OUTPUT_FOLDER [--seconds 300] [--cases NAME ...]

`same`: a decoder from scratch in fp64, by every way between two ranks; the relative distance of its weights from one
rank's must stay below TOLERANCE. `resumed`: fsdp2 killed with SIGKILL after a checkpoint of parts and resumed on one
and on two ranks, and one rank's run resumed as fsdp2 on two. `ddp` is timed: LoRA r16, the shape of Qwen2.5-1.5B,
8 rows of 2,048 a card, bf16, random weights: twice one card is the sum of two runs at once, a card each. `large`: full
tuning by fsdp2, a pipeline and a split sequence of the shape of 0.5B in bf16, with rates, peaks and last losses next
to one card's. On a machine without cards two gloo ranks stand in, and the shapes of `ddp` and `large` are tiny.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import safetensors.torch  # noqa: E402
import torch  # noqa: E402

from benchmarks.language_speed import facts  # noqa: E402
from benchmarks.language_speed_cases import base_folder  # noqa: E402
from benchmarks.two_cards import text  # noqa: E402

TOLERANCE = 1e-10  # relative Frobenius norm, in fp64
CARDS = torch.cuda.device_count()
SMALL = "--task lm --precision fp64 --seed 1 --decoder-layers 4 --decoder-width 256 --sequence 256 --batch-size 16"
WAYS = {
    "ddp": "--parallel ddp",
    "fsdp2": "--parallel fsdp2",
    "pipeline": "--parallel pipeline --micro-batch 4",
    "sequence": "--parallel sequence",
}
LIMIT = 240  # seconds of a run


def train(folder: Path, name: str, words: str, cards: str = "0,1") -> dict[str, Any]:
    """Train on some cards; return seconds and what went wrong, if anything."""
    began = time.monotonic()
    process = started(folder, name, words, cards)
    try:
        out, err = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        err += f"\nno end after {LIMIT} s"
    (folder / f"{name}.events").write_text(out)
    seconds = round(time.monotonic() - began, 1)
    if process.returncode:
        return {"failed": (err + out)[-1500:].replace(str(folder), "").replace(f"{ROOT}/", ""), "seconds": seconds}
    return {"seconds": seconds}


def started(folder: Path, name: str, words: str, cards: str) -> subprocess.Popen[str]:
    """Start a training in a process group of its own."""
    command = [sys.executable, "-m", "trainer", "train", *words.split(), "--output", str(folder), "--run", name]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"CUDA_VISIBLE_DEVICES": cards},
        start_new_session=True,
    )


def weights(run: Path) -> torch.Tensor:
    """Return all weights of a run in one row."""
    files = sorted(run.glob("*.safetensors"))
    found = [value for file in files for _, value in sorted(safetensors.torch.load_file(file).items())]
    return torch.cat([each.reshape(-1).double() for each in found])


def apart(folder: Path, name: str, reference: str) -> float:
    """Return the relative distance of two runs' weights."""
    found, needed = weights(folder / name), weights(folder / reference)
    return float((found - needed).norm() / needed.norm())


def same(folder: Path) -> dict[str, Any]:
    """Train by each way and compare with one card; two trainings at once, since nothing is timed."""
    job = f"{SMALL} --max-steps 30 --data {text(folder)}"
    runs = {"one": ("--ranks 1", "0"), "one again": ("--ranks 1", "1")}
    runs |= {way: (f"--ranks 2 {flags}", "0,1") for way, flags in WAYS.items()}
    with ThreadPoolExecutor(2) as pool:
        waiting = {
            name: pool.submit(train, folder, name.replace(" ", "-"), f"{job} {flags}", cards)
            for name, (flags, cards) in runs.items()
        }
        made = {name: each.result() for name, each in waiting.items()}
    for name, found in made.items():
        if "failed" not in found and "failed" not in made["one"]:
            found["apart"] = apart(folder, name.replace(" ", "-"), "one")
            found["equal"] = found["apart"] <= TOLERANCE
    return {"tolerance": TOLERANCE, "steps": 30, "runs": made}


def killed(folder: Path, name: str, words: str, cards: str) -> str | None:
    """Start a training and kill it after its second checkpoint; return why that failed."""
    process = started(folder, name, words, cards)
    assert process.stdout is not None
    seen = 0
    for line in process.stdout:
        seen += '"event": "checkpoint"' in line
        if seen == 2:
            os.killpg(process.pid, signal.SIGKILL)
            break
    _, err = process.communicate()
    return None if seen == 2 else err[-1200:]


def resumed(folder: Path) -> dict[str, Any]:
    """Resume runs on other numbers of cards than they were begun on."""
    job = f"{SMALL} --max-steps 120 --checkpoint-every 20 --data {text(folder)}"
    two, one = f"{job} --ranks 2 --parallel fsdp2", f"{job} --ranks 1"
    with ThreadPoolExecutor(3) as pool:
        calm = pool.submit(train, folder, "calm", one, "1")
        dead = [
            pool.submit(killed, folder, "parts", two, "0,1"),
            pool.submit(killed, folder, "whole", one, "0"),
        ]
        made: dict[str, Any] = {"calm": calm.result(), "killed": [each.result() for each in dead]}
    copies = {"parts on one": ("parts", one), "parts on two": ("parts", two), "whole on two, fsdp2": ("whole", two)}
    with ThreadPoolExecutor(2) as pool:
        waiting = {name: pool.submit(resume, folder, name, begun, words) for name, (begun, words) in copies.items()}
        made |= {name: each.result() for name, each in waiting.items()}
    return made


def resume(folder: Path, name: str, begun: str, words: str) -> dict[str, Any]:
    """Resume a copy of a killed run, and compare its end with that of the run that was never killed."""
    copy = folder / "copies" / name.replace(" ", "-").replace(",", "")
    copy.mkdir(parents=True)
    shutil.copytree(folder / f".{begun}.partial", copy / f".{begun}.partial")
    found = train(copy, begun, f"{words} --resume {begun}", "0,1" if "--ranks 2" in words else "1")
    if "failed" not in found:
        ours, calm = weights(copy / begun), weights(folder / "calm")
        found["apart"] = ((ours - calm).norm() / calm.norm()).item()
        found["equal"] = found["apart"] <= TOLERANCE
        found["resumed_at"] = resumed_step(copy / f"{begun}.events")
    return found


def resumed_step(events: Path) -> Any:
    """Return the event of the resume."""
    lines = [json.loads(line) for line in events.read_text().splitlines() if line.startswith("{")]
    return next((line for line in lines if line.get("event") in ("resume", "resumed")), None)


def figures(run: Path) -> dict[str, Any]:
    """Return rate, peak and last loss of a run: the rate of the windows but the first and the last."""
    lines = [json.loads(line) for line in (run / "telemetry.jsonl").read_text().splitlines()]
    windows = [line for line in lines if line["event"] == "window"]
    late = windows[1:-1] or windows[-1:]  # the last one holds the validation at the end of the epoch
    rows = sum(each["rows_per_second"] * each["seconds"] for each in late)
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return {
        "rows_per_second": round(rows / sum(each["seconds"] for each in late), 4),
        "windows": [[each["step"], each["steps"], round(each["step_ms"], 2)] for each in windows],
        "memory": windows[-1]["memory"],
        "utilization": windows[-1]["utilization"],
        "metrics": metrics[-1],
    }


def timed(folder: Path, runs: dict[str, tuple[str, str]], job: str) -> dict[str, Any]:
    """Train one after the other, those of a card each at once, and return the figures."""
    made: dict[str, Any] = {}
    alone = {name: each for name, each in runs.items() if len(each[1]) == 1}
    with ThreadPoolExecutor(2) as pool:
        waiting = {
            name: pool.submit(train, folder, name, f"{job} {flags}", card) for name, (flags, card) in alone.items()
        }
        made |= {name: each.result() for name, each in waiting.items()}
    for name, (flags, cards) in runs.items():
        if name not in alone:
            made[name] = train(folder, name, f"{job} {flags}", cards)
    for name in [name for name, found in made.items() if "failed" not in found]:
        made[name] |= figures(folder / name)
    return made


def shape(large: str) -> str:
    """Return the shape to train: on a CPU a tiny one, for the mechanics alone."""
    return large if CARDS else "tiny"


def data(folder: Path, tokens: int) -> Path:
    """Write random bytes, enough for all rows."""
    path = folder / "random.txt"
    letters = torch.randint(33, 122, (1600 * (tokens + 1) if CARDS else 40_000,), dtype=torch.uint8)
    path.write_bytes(letters.numpy().tobytes())
    return path


def ddp(folder: Path) -> dict[str, Any]:
    """Time LoRA on one card, twice at once, and on two by DDP."""
    tokens, rows, steps = (2048, 8, 55) if CARDS else (64, 4, 8)
    job = f"--task lm --model {base_folder(shape('qwen2.5-1.5b'), folder)} --data {data(folder, tokens)}"
    job += f" --adapter lora --lora-rank 16 --precision bf16 --sequence {tokens} --max-steps {steps}"
    job += " --weight-decay 0 --checkpoint-every 0 --validation-share 0.02 --epochs 20 --gates off"
    runs = {
        "card-0": (f"--ranks 1 --batch-size {rows}", "0"),
        "card-1": (f"--ranks 1 --batch-size {rows}", "1"),
        "both": (f"--ranks 2 --parallel ddp --batch-size {2 * rows}", "0,1"),
    }
    made = timed(folder, runs, job)
    if not any("failed" in each for each in made.values()):
        twice = made["card-0"]["rows_per_second"] + made["card-1"]["rows_per_second"]
        made["share_of_twice_one"] = round(made["both"]["rows_per_second"] / twice, 4)
        made["tokens_per_second"] = round(made["both"]["rows_per_second"] * tokens)
    return made


def large(folder: Path) -> dict[str, Any]:
    """Time full tuning by fsdp2, and a pipeline and a split sequence of LoRA, next to one card each."""
    tokens, rows, steps = (2048, 8, 40) if CARDS else (64, 4, 8)
    base = f"--task lm --model {base_folder(shape('qwen2.5-0.5b'), folder)} --data {data(folder, tokens)} --seed 1"
    base += f" --precision bf16 --max-steps {steps} --weight-decay 0 --checkpoint-every 0 --validation-share 0.02"
    base += f" --batch-size {rows} --sequence {tokens} --fast off --epochs 20 --gates off"
    lora = "--adapter lora --lora-rank 16"
    runs = {
        "full-one": ("--ranks 1", "0"),
        "lora-one": (f"--ranks 1 {lora}", "1"),
        "full-fsdp2": ("--ranks 2 --parallel fsdp2", "0,1"),
        "lora-pipeline": (f"--ranks 2 --parallel pipeline --micro-batch 2 {lora}", "0,1"),
        "lora-sequence": (f"--ranks 2 --parallel sequence {lora}", "0,1"),
    }
    return timed(folder, runs, base)


CASES = {"ddp": ddp, "same": same, "resumed": resumed, "large": large}


def main() -> int:
    """Run the cases and write the results after each; return 0 where nothing failed and what must be equal is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--cases", nargs="*", default=list(CASES))
    parser.add_argument("--seconds", type=float, default=1e9, help="after which no further case is begun")
    given = parser.parse_args()
    began = time.monotonic()
    made: dict[str, Any] = {"machine": {**facts(), "cards": CARDS}, "cases": {}}
    for name in given.cases:
        if time.monotonic() - began > given.seconds:
            break
        folder = given.folder.resolve() / name
        folder.mkdir(parents=True)
        try:
            made["cases"][name] = CASES[name](folder)
        except Exception as error:  # the other cases are still worth their time
            made["cases"][name] = {"failed": f"{type(error).__name__}: {error}"}
        (given.results or folder.parent / "two_cards_language.json").write_text(json.dumps(made, indent=1) + "\n")
        print(name, json.dumps(made["cases"][name])[:3000], flush=True)
    texts = json.dumps(made)
    return int('"failed"' in texts or '"equal": false' in texts)


if __name__ == "__main__":
    sys.exit(main())

"""One card against two on this machine: copies, scaling, and what `--ranks auto` takes for three kinds of training.

    python -m benchmarks.two_cards OUTPUT_FOLDER

Writes bench.jsonl, and a line a training to choices.jsonl: the record under `rank_choice`, and whether the run by auto
has the weights of the run by its number. Takes torch, numpy and safetensors; trainings take polars as well and are left
out, and named so, where it is absent. On a CPU two gloo ranks stand in for cards.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

TRAININGS = {
    "the sample, 32-16 hidden, batch 32": "--epochs 3 --seed 1",
    "four layers of 2048, batch 4096": "--epochs 3 --seed 1 --hidden-layers 2048,2048,2048,2048 --data {table} "
    "--target y --batch-size 4096 --baselines none",
    "decoder of 4 layers, width 512": "--task lm --data {text} --max-steps 50 --seed 1 --decoder-layers 4 "
    "--decoder-width 512 --sequence 256 --batch-size 64",
}


def main(folder: Path) -> int:
    """Run all; return 0 where the bench passed and every run by auto has the weights of the run by its number."""
    folder.mkdir(parents=True, exist_ok=True)
    bench = [sys.executable, "-m", "trainer", "bench", "--only", "scaling,p2p", "--seconds", "20"]
    done = subprocess.run(bench, stdout=(folder / "bench.jsonl").open("w"), check=False)
    if importlib.util.find_spec("polars") is None:
        print("polars is absent: nothing was trained", file=sys.stderr)
        return done.returncode
    names = {"{table}": str(table(folder)), "{text}": str(text(folder))}
    lines = [
        compared(name, [names.get(each, each) for each in words.split()], folder) for name, words in TRAININGS.items()
    ]
    (folder / "choices.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return done.returncode or int(not all(line["equal"] for line in lines))


def table(folder: Path) -> Path:
    """Write a SYNTHETIC table of 200,000 rows and return it."""
    path = folder / "synthetic.csv"
    rows = (",".join(f"{(row * prime) % 101 / 101:.4f}" for prime in (7, 11, 13, 17, 19)) for row in range(200_000))
    path.write_text("a,b,c,d,y\n" + "\n".join(rows) + "\n")
    return path


def text(folder: Path) -> Path:
    """Write a SYNTHETIC text of 3 MB and return it."""
    path = folder / "synthetic.txt"
    path.write_text("".join(f"line {row} of {row * 7919 % 104729}\n" for row in range(150_000)))
    return path


def compared(name: str, words: list[str], folder: Path) -> dict[str, object]:
    """Train by auto and by the number that it took; return the record and whether the weights are equal.

    Args:
        name: name of the training.
        words: its flags.
        folder: parent of the runs.
    """
    runs = folder / "".join(each if each.isalnum() else "-" for each in name)
    trained(words, runs, "auto", "auto")
    record = json.loads((runs / "auto" / "metadata.json").read_text())["rank_choice"]
    trained(words, runs, "number", str(record["ranks"]))
    return {"training": name, "equal": weights(runs / "auto") == weights(runs / "number"), **record}


def trained(words: list[str], runs: Path, run: str, ranks: str) -> None:
    """Train a run. Raises CalledProcessError where it fails.

    Args:
        words: flags of the training.
        runs: parent of the run's folder.
        run: name of the run.
        ranks: value of --ranks.
    """
    more = ["--output", str(runs), "--run", run, "--ranks", ranks]
    subprocess.run([sys.executable, "-m", "trainer", "train", *words, *more], check=True)


def weights(run: Path) -> list[str]:
    """Return the SHA-256 of each file of weights."""
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(run.glob("*.safetensors"))]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

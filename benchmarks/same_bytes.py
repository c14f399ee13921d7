"""Whether two commits of this repository write the same bytes from the same inputs, command by command, on the CPU.

    python -m benchmarks.same_bytes OLD [NEW] [--only train-bars,features]

Each commit is exported by git into a temporary folder, and the same commands run in both, with this Python and its
packages: `train` (bars, a table, a language model), `predict`, `report` and `compress` of the finished runs,
`features`, `explain`, `cells` and `render`. Settings whose defaults have changed are given. Bars, table and text are
SYNTHETIC, from seeds. Per file it prints equal, differs, or which commit alone has it; a command that fails in one is
named so. Raw results go to benchmarks/results/same_bytes.json; reasons for differences stand next to it in
same_bytes.md. Exit status 1 where a file differs or is in one alone.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).parent / "results" / "same_bytes.json"
MADE = "same-bytes"  # folder in an exported commit; paths are relative to it, so that no output has the folder's name
PROGRAMS = ("rocmatrix/cli/program.py", "rocmatrix/program.py")  # where a commit has it
RUN = ("train", "--device=cpu", "--threads=1", "--seed=3", "--learning-rate=0.001", f"--output={MADE}/runs")
TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\+00:00|Z)")
OF_RUN = ("model.safetensors", "model.pt", "metrics.jsonl", "batches.jsonl", "adapter_model.safetensors")


@dataclass(frozen=True, kw_only=True)
class Case:
    """One command and what is compared of it.

    Args:
        argv: command and options, of the trainer unless `host`.
        host: whether the host's program runs it.
        files: globs below the exported commit; standard output is compared besides where `printed`.
    """

    name: str
    argv: tuple[str, ...]
    host: bool = False
    files: tuple[str, ...] = ()
    printed: bool = False


def of_run(name: str) -> tuple[str, ...]:
    """Return globs of a run's files that hold no time, path or version."""
    return tuple(f"{MADE}/runs/{name}/{file}" for file in OF_RUN)


def made(name: str) -> str:
    """Return the path of a file that a command writes."""
    return f"{MADE}/{name}"


def of_finished_run(name: str, run: str, data: str) -> tuple[str, ...]:
    """Return `predict`, `report` or `compress` of a finished run, writing below `MADE`."""
    model = () if name == "report" else (f"--model={MADE}/runs/{run}",)
    folder = (f"{MADE}/runs/{run}",) if name == "report" else ()
    return (name, *folder, *model, f"--data={data}")


SAMPLE, TABLE, BARS, TEXT = "trainer/data/sp500_vix_daily.csv", made("table.csv"), made("bars.csv"), made("text.jsonl")
FORECASTS = (made("bars-forecast.csv"), made("table-forecast.csv"))
REPORT, SMALLER = made("report.html"), made("smaller")
DECODER = ("--decoder-layers=1", "--decoder-width=32")
CASES = (
    Case(name="train-bars", argv=(*RUN, "--run=bars", "--epochs=3"), files=of_run("bars")),
    Case(
        name="train-bars-eager",
        argv=(*RUN, "--run=eager", "--epochs=3", "--step=eager", "--precision=bf16", "--batch-size=64"),
        files=of_run("eager"),
    ),
    Case(
        name="train-table",
        argv=(*RUN, "--run=table", "--epochs=3", f"--data={TABLE}", "--target=y"),
        files=of_run("table"),
    ),
    Case(
        name="train-transformer",
        argv=(*RUN, "--run=attend", "--epochs=1", f"--data={TABLE}", "--target=y", "--network=transformer"),
        files=of_run("attend"),
    ),
    Case(
        name="train-lm",
        argv=(*RUN, "--run=lm", "--task=lm", "--max-steps=3", "--sequence=64", f"--data={TEXT}", *DECODER),
        files=of_run("lm"),
    ),
    Case(
        name="features",
        argv=("features", f"--data={BARS}", f"--out={MADE}/features.arrow", "--workers=1"),
        files=(made("features.arrow"),),
    ),
    Case(
        name="predict-bars",
        argv=(*of_finished_run("predict", "bars", SAMPLE), f"--output={FORECASTS[0]}"),
        files=FORECASTS[:1],
    ),
    Case(
        name="predict-table",
        argv=(*of_finished_run("predict", "table", TABLE), f"--output={FORECASTS[1]}"),
        files=FORECASTS[1:],
    ),
    Case(name="report", argv=(*of_finished_run("report", "bars", SAMPLE), f"--output={REPORT}"), files=(REPORT,)),
    Case(
        name="compress",
        argv=(*of_finished_run("compress", "bars", SAMPLE), f"--output={SMALLER}", "--epochs=2"),
        files=(f"{SMALLER}/*/model.safetensors",),
    ),
    Case(name="explain-gfx1100", argv=("explain", "--gpu=gfx1100"), host=True, printed=True),
    Case(name="explain-refused", argv=("explain", "--gpu=gfx1201", "--rocm=6.1"), host=True, printed=True),
    Case(name="cells", argv=("cells",), host=True, printed=True),
    Case(name="render", argv=("render",), host=True, files=("images/**/*", "compose/**/*", "docs/**/*")),
)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a command left in one commit: its exit status, the last line of standard error, a hash of each file."""

    status: int
    last_line: str
    sha256: dict[str, str]


def export(commit: str, folder: Path) -> None:
    """Write the files of a commit into a new folder."""
    folder.mkdir()
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)


def write_inputs(folder: Path) -> None:
    """Write SYNTHETIC bars, a table and a text from seeds: the same for each commit."""
    from random import Random

    from tests.fixtures.synthetic_bars import write_synthetic

    folder.mkdir()
    write_synthetic(folder / "bars.csv", 20_000)
    draw = Random(5)
    rows = [(draw.gauss(0, 1), draw.gauss(2, 3), draw.choice(("red", "green", "blue"))) for _ in range(600)]
    lines = [
        f"{a:.6f},{b:.6f},{colour},{a - b / 2 + (colour == 'red') + draw.gauss(0, 0.1):.6f}" for a, b, colour in rows
    ]
    (folder / "table.csv").write_text("\n".join(["a,b,colour,y", *lines, ""]))
    words = ("the", "card", "computes", "a", "step", "of", "training", "and", "then", "another")
    texts = [" ".join(draw.choices(words, k=12)) for _ in range(400)]
    (folder / "text.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))


def run_case(case: Case, tree: Path) -> Outcome:
    """Run one command in an exported commit."""
    program = next((name for name in PROGRAMS if (tree / name).exists()), PROGRAMS[0])
    start = ("-P", program, "--search-root", ".") if case.host else ("-m", "trainer")
    environment = {**os.environ, "PYTHONPATH": str(tree), "COLUMNS": "100", "NO_COLOR": "1", "OMP_NUM_THREADS": "1"}
    argv = [sys.executable, *start, *case.argv]
    ended = subprocess.run(argv, cwd=tree, env=environment, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    found = {path.relative_to(tree).as_posix(): path for glob in case.files for path in tree.glob(glob)}
    hashes = {name: digest(content_of(path)) for name, path in sorted(found.items()) if path.is_file()}
    hashes |= {f"{name} (values)": values_of(path) for name, path in found.items() if path.suffix == ".arrow"}
    if case.printed:
        hashes["standard output"] = digest(ended.stdout)
    lines = ended.stderr.decode(errors="replace").strip().splitlines()
    return Outcome(status=ended.returncode, last_line=lines[-1] if lines else "", sha256=hashes)


def content_of(path: Path) -> bytes:
    """Return a file's bytes, without the times of runs where it is a page."""
    content = path.read_bytes()
    return TIME.sub(b"TIME", content) if path.suffix == ".html" else content


def values_of(path: Path) -> str:
    """Return a hash of an Arrow file's columns without the metadata of its schema."""
    import polars as pl

    return digest(pl.read_ipc(path).serialize())


def digest(content: bytes) -> str:
    """Return the SHA-256 of some bytes as hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def compared(old: Outcome, new: Outcome) -> dict[str, str]:
    """Return `equal`, `differs`, `old alone` or `new alone` by file; where a command failed, its last line."""
    if old.status or new.status:
        failed = [f"{name} failed: {one.last_line}" for name, one in (("old", old), ("new", new)) if one.status]
        return {"(command)": "; ".join(failed)}
    if not (old.sha256 or new.sha256):
        return {"(command)": "nothing to compare was written"}
    return {name: verdict(old.sha256.get(name), new.sha256.get(name)) for name in sorted({*old.sha256, *new.sha256})}


def verdict(old: str | None, new: str | None) -> str:
    """Return how two hashes of one file compare; None is a file that is absent."""
    if old is None:
        return "new alone"
    if new is None:
        return "old alone"
    return "equal" if old == new else "differs"


def full_name(commit: str) -> str:
    """Return a commit's hash."""
    argv = ["git", "rev-parse", "--verify", f"{commit}^{{commit}}"]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def keep(commits: dict[str, str], found: dict[str, dict[str, str]]) -> None:
    """Add what was found to the raw results under both commits; what they hold of other cases and commits stays."""
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    pair = kept.setdefault("..".join(commit[:12] for commit in commits.values()), {})
    pair |= {"device": "cpu", "data": "SYNTHETIC, and the sample of daily bars", "found": pair.get("found", {}) | found}
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


def main() -> int:
    """Run the commands in both commits, print and keep what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new", nargs="?", default="HEAD")
    parser.add_argument("--only", default=",".join(case.name for case in CASES))
    args = parser.parse_args()
    commits = {"old": full_name(args.old), "new": full_name(args.new)}
    found: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, commit in commits.items():
            export(commit, Path(folder) / name)
            write_inputs(Path(folder) / name / MADE)
        for case in (case for case in CASES if case.name in args.only.split(",")):
            found[case.name] = compared(*(run_case(case, Path(folder) / name) for name in commits))
            for file, what in found[case.name].items():
                print(f"{case.name:18} {file:60} {what}", flush=True)
    keep(commits, found)
    return 0 if all(what == "equal" for files in found.values() for what in files.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

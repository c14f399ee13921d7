"""Tokens per second and peak memory of language models in the trainer's own loop, next to other programs.

    python -m benchmarks.language_speed 'lora*' 'scratch*' equal --peers FOLDER   # each in a process of its own
    python -m benchmarks.language_speed --one lora-8                             # one case in this process
    python -m benchmarks.language_speed '*' --workers 5 --peers FOLDER           # starts side by side, timed alone

A case is a run as `train` makes it: its data, its choice of faster ways, its loop with guard and telemetry, on a model
of random weights in the shape named. Timed are the steps from WARM on, between two waits for the device; peak memory is
that of the whole process, trials and start included. Tokens are random printable bytes: only time and memory are looked
at. `equal` trains nanoGPT's model and ours from the same weights on the same rows in fp32, and compares the losses.
Raw results go to benchmarks/results/language_speed.json, with each case's choices and reasons. Peers are TRL and HF
Trainer by benchmarks.trl_speed, and nanoGPT by its own model.py, which FOLDER has in `nanoGPT/`: it is not part of
this repository. With --workers, what is timed (trials, steps) is timed while the others are stopped: benchmarks.alone.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from benchmarks.alone import Alone, left, trials_alone  # noqa: E402
from benchmarks.language_speed_cases import (  # noqa: E402
    CASES,
    GPT,
    NANO,
    PEER_GIB,
    PEERS,
    UNSLOTH,
    Case,
    base_folder,
    settings_of,
)

__all__ = ["CASES", "assembled", "base_folder", "facts"]

WARM, STEPS = 8, 20
ANEW = 3  # after this step graphs are captured anew: torch counts their memory then, next to an optimizer's state
ALONE = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}  # a compiler's workers have sessions of their own, which none stops
PATIENCE, SHARE = 560, 0.9  # seconds of one case; of the card's memory for all processes together
EQUAL_STEPS, EQUAL_ROWS, EQUAL_TOLERANCE = 10, 4, 1e-5  # relative, of each step's loss in fp32


@contextmanager
def assembled(config: Any) -> Iterator[Any]:
    """Yield the run as `train` puts it together, guard and telemetry included."""
    from trainer.distributed.collectives import Ranks
    from trainer.engine.instrumentation import callbacks_of
    from trainer.engine.steps.compile import compile_if_worth_it
    from trainer.engine.steps.step_strategy import choose_step
    from trainer.models.decoder.model import Decoder
    from trainer.run.phases.assemble import assemble, begin_record
    from trainer.run.phases.attempt import Attempt
    from trainer.run.phases.prepare import prepare, read
    from trainer.run.train import open_on

    bootstrap = Ranks()
    attempt = Attempt(config=config, name=None, settings=None, bootstrap=bootstrap)
    initialize = Decoder.initialize
    Decoder.initialize = lambda self, seed=None: None  # type: ignore[method-assign]  # the folder's weights follow
    task, attempt = read(attempt)
    prepared = prepare(attempt, task)
    Decoder.initialize = initialize  # type: ignore[method-assign]
    with open_on(bootstrap, config.run, None, need_bytes=0) as folder:
        record = begin_record(prepared, attempt, folder, bootstrap)
        training = assemble(prepared, attempt, folder, bootstrap, record)
        compile_if_worth_it(training, config.compute.compile, config.distributed.parallel)
        choice = choose_step(config.compute.step, training)
        record["step"] = f"{choice.name}: {choice.reason}"
        described = prepared.network.description
        own = callbacks_of(training, config.telemetry, folder, prepared.accelerator, described, config.as_dict())
        training.callbacks = training.callbacks.after(*own)
        yield training, record


def timed(case: Case, steps: int, alone: Alone) -> dict[str, Any]:
    """Return tokens per second and peak memory of a case, with what the run chose.

    first_step_after_s: from the settings to the end of the first step, with reading rows, gates, loading and quantising
    weights, trials and compilation (ready_after_s: all but the first step); without what Python imports at the top.
    Next to other members of `alone` both count what the others take, too. peak_gib is of the steps, start_gib of what
    came before: a start takes what is there, and where that is too little it tries fewer ways.
    """
    with tempfile.TemporaryDirectory() as temporary, trials_alone(alone):
        config = settings_of(case, Path(temporary), steps)  # writes the model and the rows, which a user has
        peak_gib()
        began = time.perf_counter()
        with assembled(config) as (training, record):
            ready = time.perf_counter()
            start_gib = peak_gib()
            marks = marked_steps(training, steps, alone)
            seconds = marks[steps] - marks[WARM]
            tokens = (steps - WARM) * case.rows * case.tokens * (2 if case.method == "dpo" else 1)
            counted = {"dpo": "pairs_per_second", "kto": "answers_per_second"}.get(case.method)
            return {
                "tokens_per_second": round(tokens / seconds),
                **({counted: round((steps - WARM) * case.rows / seconds, 2)} if counted else {}),
                **reserved(),
                "peak_gib": peak_gib(),
                "graphs": training.captured is not None,
                "start_gib": start_gib,
                "ready_after_s": round(ready - began, 1),
                "first_step_after_s": round(marks[1] - began, 1),
                "last_loss": training.state.losses[training.state.batch - 1].item(),
                "step": record.get("step"),
                "chosen": record.get("fast"),
                "settings": {**vars(case), "flags": list(case.flags)},
            }


def peak_gib() -> float | None:
    """Return torch's largest memory since the last call, and begin anew."""
    if not torch.cuda.is_available():
        return None
    found = torch.cuda.max_memory_allocated() / 2**30
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    return round(found, 3)


def reserved() -> dict[str, float]:
    """Return what torch's allocator holds at most, graphs' memory included, in GiB."""
    return {"reserved_gib": round(torch.cuda.max_memory_reserved() / 2**30, 2)} if torch.cuda.is_available() else {}


def marked_steps(training: Any, steps: int, alone: Alone) -> dict[int, float]:
    """Train, and return the clock after some steps, the device waited for; from WARM on the device is held alone."""
    from trainer.engine.callbacks.callback import Callback
    from trainer.engine.loop import run_epoch

    marks: dict[int, float] = {}

    class Marks(Callback):
        """Keeps the time after some steps."""

        def on_step_end(self, run: Any, taken: Any) -> None:
            if run.state.step == WARM:
                alone.enter()
            if run.state.step == ANEW and run.captured is not None:
                run.captured.release()
            if run.state.step in (1, WARM, steps):
                if torch.cuda.is_available():
                    torch.cuda.synchronize()
                marks[run.state.step] = time.perf_counter()
            if run.state.step == steps:
                alone.leave()

    training.callbacks = training.callbacks.after(Marks())
    training.callbacks.on_train_begin(training)
    while not training.ended:
        run_epoch(training)
    return marks


def equal(folder: Path) -> dict[str, Any]:
    """Train nanoGPT's model and ours side by side in fp32 and return both rows of losses."""
    sys.path.insert(0, str(folder / "nanoGPT"))
    import model as nanogpt  # type: ignore

    from trainer.engine.loop import run_epoch

    torch.backends.cuda.matmul.allow_tf32 = False
    case = Case(shape=GPT, rows=EQUAL_ROWS, tokens=1024)
    found: dict[str, Any] = {}
    for fast in ("off", "auto"):
        more = ("--precision", "fp32", "--learning-rate", "1e-4", "--fast", fast)
        with (
            tempfile.TemporaryDirectory() as folder_,
            assembled(settings_of(case, Path(folder_), EQUAL_STEPS, *more)) as (training, record),
        ):
            theirs = nano(nanogpt, training) if fast == "off" else found["theirs"]
            while not training.ended:
                run_epoch(training)
            ours = training.state.losses[:EQUAL_STEPS].tolist()
        apart = max(abs(one - other) / other for one, other in zip(ours, theirs, strict=True))
        found |= {"theirs": theirs, f"ours, --fast {fast}": ours, f"largest difference, --fast {fast}": apart}
        found[f"chosen, --fast {fast}"] = record.get("fast")
    worst = max(value for name, value in found.items() if name.startswith("largest"))
    return found | {"tolerance": EQUAL_TOLERANCE, "equal": worst <= EQUAL_TOLERANCE}


def nano(model: Any, training: Any) -> list[float]:
    """Return the losses of nanoGPT's model from our weights, on the rows that ours will see, with its own AdamW."""
    twin = model.GPT(model.GPTConfig(block_size=1024, vocab_size=50304, dropout=0.0, bias=True)).to(training.device)
    take_over(twin, training.model.decoder)
    optimizer = torch.optim.AdamW(twin.parameters(), lr=1e-4, weight_decay=0.0)
    losses, order = [], training.sampler.order(0)
    for numbers in order[: EQUAL_STEPS * EQUAL_ROWS].split(EQUAL_ROWS):
        inputs, _ = training.train.rows(numbers, training.device)
        _, loss = twin(inputs["tokens"], inputs["labels"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@torch.no_grad()
def take_over(twin: Any, decoder: Any) -> None:
    """Copy our weights into nanoGPT's model; both hold (outputs, inputs)."""
    from trainer.models.pretrained.families import file_module

    held = dict(twin.named_parameters())
    for name, value in decoder.named_parameters():
        module, _, kind = name.rpartition(".")
        held.pop(f"{file_module('gpt2', module)}.{kind}").copy_(value)
    assert not held, f"not taken over: {list(held)}"


def nano_speed(folder: Path, steps: int, alone: Alone, *, bias: bool) -> dict[str, Any]:
    """Return the figures of nanoGPT's own model and step in bf16, as its bench.py takes them: 64 rows of 1,024."""
    sys.path.insert(0, str(folder / "nanoGPT"))
    import model as nanogpt

    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    network = nanogpt.GPT(nanogpt.GPTConfig(block_size=1024, vocab_size=50304, dropout=0.0, bias=bias)).cuda()
    optimizer = network.configure_optimizers(1e-2, 1e-4, (0.9, 0.95), "cuda")
    inputs, labels = (torch.randint(50304, (64, 1024), device="cuda") for _ in range(2))
    compiled: Any = torch.compile(network)
    marks: dict[int, float] = {}
    for step in range(1, steps + 1):
        with torch.autocast("cuda", torch.bfloat16):
            _, loss = compiled(inputs, labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step == WARM:
            alone.enter()
        if step in (WARM, steps):
            torch.cuda.synchronize()
            marks[step] = time.perf_counter()
    alone.leave()
    return {
        "tokens_per_second": round((steps - WARM) * 64 * 1024 / (marks[steps] - marks[WARM])),
        "peak_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2),
    }


def one(name: str, steps: int, peers: Path | None, alone: Alone) -> dict[str, Any]:
    """Return the figures of one case, or of nanoGPT, or the comparison of losses."""
    if name == "equal":
        assert peers is not None, "--peers names the folder with nanoGPT"
        return equal(peers)
    if name in NANO:
        assert peers is not None, "--peers names the folder with nanoGPT"
        return nano_speed(peers, steps, alone, bias=NANO[name])
    return timed(CASES[name], steps, alone)


def command(name: str, steps: int, peers: Path | None) -> list[str]:
    """Return the program of one case."""
    if name in PEERS:
        return [sys.executable, "-m", "benchmarks.trl_speed", *PEERS[name]]
    if name in UNSLOTH:
        return [sys.executable, "-m", "benchmarks.unsloth_speed", *UNSLOTH[name]]
    more = ["--peers", str(peers)] if peers else []
    return [sys.executable, "-m", "benchmarks.language_speed", "--one", name, "--steps", str(steps), *more]


def child(argv: list[str], members: Path | None) -> dict[str, Any]:
    """Run one case in a process group of its own: memory and compiled code begin empty.

    Args:
        argv: the program; members: folder of benchmarks.alone, None where nothing runs next to it.
    """
    with tempfile.TemporaryDirectory() as caches:
        own = {"TORCHINDUCTOR_CACHE_DIR": f"{caches}/inductor", "TRITON_CACHE_DIR": f"{caches}/triton"}
        process = subprocess.Popen(
            [*argv, *(["--alone", str(members)] if members else [])],
            cwd=ROOT,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=os.environ
            | own
            | (ALONE if members else {}),  # a cache that others use has locks, which one that is stopped would keep
            start_new_session=True,
        )
        try:
            output = process.communicate(timeout=PATIENCE)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output = process.communicate()[0] + f"\nno end after {PATIENCE} s"
    if members:
        left(members, process.pid)
    lines = [line for line in output.splitlines() if line.startswith("FIGURES ")]
    return json.loads(lines[-1][8:]) if lines else {"failed": output.replace(f"{ROOT}/", "")[-1500:]}


def facts() -> dict[str, Any]:
    """Return where this ran."""
    there = torch.cuda.is_available()
    return {
        "device": torch.cuda.get_device_name() if there else platform.processor(),
        "torch": torch.__version__,
        "hip": torch.version.hip,
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def gib_of(name: str) -> int:
    """Return the memory that a case's process is expected to take, generously."""
    return CASES[name].expected if name in CASES else PEER_GIB.get(name, 42)


def most_gib() -> int:
    """Return what all processes may take of the card; without a card nothing is counted."""
    there = torch.cuda.is_available()
    return int(SHARE * torch.cuda.get_device_properties(0).total_memory / 2**30) if there else 10**6


def run_all(names: list[str], options: argparse.Namespace, results: dict[str, Any]) -> None:
    """Run the cases, `--workers` at a time within the card's memory, and write the results after each."""
    waiting, room, lock = list(names), [most_gib()], threading.Condition()

    def work(members: Path | None) -> None:
        while True:
            with lock:
                while waiting and gib_of(waiting[0]) > room[0]:
                    lock.wait()
                if not waiting or time.monotonic() > options.until:
                    return
                name = waiting.pop(0)
                room[0] -= gib_of(name)
            found = child(command(name, options.steps, options.peers), members)
            with lock:
                room[0] += gib_of(name)
                results["cases"][name] = found
                shown = {key: value for key, value in found.items() if key not in ("chosen", "settings")}
                print(f"{name}: {json.dumps(shown)[:900]}", flush=True)
                options.results.write_text(json.dumps(results, indent=1) + "\n")
                lock.notify_all()

    with tempfile.TemporaryDirectory() as folder:
        members = Path(folder) / "members" if options.workers > 1 else None
        threads = [threading.Thread(target=work, args=(members,)) for _ in range(options.workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def main() -> None:
    """Run what is asked for, print a line each, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--one")
    parser.add_argument("--alone", type=Path)
    parser.add_argument("--steps", type=int, default=WARM + STEPS)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9, help="after which no further case is begun")
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results" / "language_speed.json")
    options = parser.parse_args()
    options.peers = options.peers.resolve() if options.peers else None
    if options.one:
        found = one(options.one, options.steps, options.peers, Alone(options.alone))
        print("FIGURES " + json.dumps(found), flush=True)
        return
    options.until = time.monotonic() + options.seconds
    known = [*CASES, "equal", *NANO, *PEERS, *UNSLOTH]
    names = list(dict.fromkeys(name for each in options.cases for name in known if fnmatch(name, each)))
    run_all(names, options, {"machine": facts(), "cases": {}})


if __name__ == "__main__":
    main()

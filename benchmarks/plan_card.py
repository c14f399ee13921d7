"""Peak memory and seconds of real training steps on a card, over many configurations; no plan is read here.

    python -m benchmarks.plan_card '*' --workers 8      # a process each, on a machine with a card
    python -m benchmarks.plan_card '*' --part 1/2       # every second one, on a second card
    python -m benchmarks.plan_card '*' --later          # the second list, whose plans stand in plan_later.json
    python -m benchmarks.plan_card --one tiny           # one in this process; on a CPU: the mechanics alone

A configuration is a run as `train` makes it: its data, its choice of faster ways, its loop with guard and telemetry.
Weights are random; a number of layers below the shape's is named in the results. Peaks are torch's own counts
(max_memory_allocated, max_memory_reserved) of a process of its own, of the trials and of the steps apart. Processes
share the card, and a lock gives it to one of them for whatever is timed, so that compilation alone is done side by
side. `limit` is the share of the card's memory that torch may take (set_per_process_memory_fraction), set before the
trials. Raw results: benchmarks/results/plan_card.json; `python -m benchmarks.plan_error --card` compares the plan.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import gc
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any, cast

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from benchmarks.allocations import at_peak  # noqa: E402
from benchmarks.language_speed import facts  # noqa: E402
from benchmarks.plan_card_cases import CONFIGURATIONS, LATER, STEPS, Configuration, settings_of  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "plan_card.json"
GIB = 2**30
TIMED = 2  # steps of a run, its last; the second is traced
TRACED = 2
SHARE, PATIENCE = 0.9, 300  # of the card's memory for all processes together; seconds of one


class Gate:
    """The card for oneself, among the processes that name the same file; without a file nothing is waited for."""

    def __init__(self, path: str | None) -> None:
        self.file = Path(path).open("w") if path else None  # noqa: SIM115 -- held to the end of the process
        self.depth, self.waited = 0, 0.0

    @contextlib.contextmanager
    def closed(self) -> Iterator[None]:
        """Hold the card within the context."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def enter(self) -> None:
        """Wait for the card."""
        self.depth += 1
        if self.file is not None and self.depth == 1:
            began = time.perf_counter()
            fcntl.flock(self.file, fcntl.LOCK_EX)
            self.waited += time.perf_counter() - began

    def leave(self) -> None:
        """Give the card to the next."""
        self.depth -= 1
        if self.file is not None and self.depth == 0:
            wait()
            fcntl.flock(self.file, fcntl.LOCK_UN)


def wait() -> None:
    """Wait for the card."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


@contextlib.contextmanager
def prepared(one: Configuration, gate: Gate) -> Iterator[None]:
    """Draw weights on the card, set its limit once they are placed, and time by oneself, within the context."""
    from trainer.models.fast import attention, block_trial, choose, cross_entropy, proof
    from trainer.run import rank_setup
    from trainer.run.phases import network as phase
    from trainer.tasks.language_model import LanguageTask

    network, placed, seconds_of = LanguageTask.network, rank_setup.placed, proof.seconds_of
    there = torch.cuda.is_available()

    def drawn(build: Callable[[], Any]) -> Any:
        if torch.empty(0).device.type == "meta" or not there:
            return build()
        with gate.closed(), torch.device("cuda"):
            model = build()
            if one.adapter != "none" and one.precision == "bf16":
                choose.hold_frozen_weights_in(model, torch.bfloat16)  # sooner than the run: the host holds less
        model = model.cpu()
        free()
        return model

    def limited(*args: Any) -> Any:
        model = placed(*args)
        counts()  # what drawing the weights took is no part of the run
        if there and one.limit:
            torch.cuda.set_per_process_memory_fraction(one.limit * GIB / torch.cuda.mem_get_info()[1])
        return model

    def alone(work: Callable[[], object], device: torch.device) -> float:
        """Time fewer calls than a run does: the lock is what processes wait for."""
        proof.WARM, proof.ROUNDS, proof.CALLS = 2, 3, 2
        with gate.closed():
            return seconds_of(work, device)

    def own(self: LanguageTask) -> Any:
        spec = network(self)
        with_weights = partial(cast(Callable[..., Any], spec.build), unset=False)  # the folder holds none
        return replace(spec, build=lambda: drawn(with_weights), load=None)

    timing = (block_trial, attention, cross_entropy)
    LanguageTask.network, phase.placed = own, limited  # type: ignore[method-assign, attr-defined, assignment]
    for module in timing:
        module.seconds_of = alone  # type: ignore[attr-defined]
    try:
        yield
    finally:
        LanguageTask.network, phase.placed = network, placed  # type: ignore[method-assign, attr-defined]
        for module in timing:
            module.seconds_of = seconds_of  # type: ignore[attr-defined]


def free() -> None:
    """Give back what nothing uses."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


@contextlib.contextmanager
def assembled(config: Any) -> Iterator[Any]:
    """Yield the run as `train` puts it together, guard and telemetry included, and its record."""
    from trainer.distributed.collectives import Ranks
    from trainer.engine.callbacks.progress import Progress
    from trainer.engine.instrumentation import callbacks_of
    from trainer.run.phases.assemble import assemble, begin_record
    from trainer.run.phases.attempt import Attempt
    from trainer.run.phases.prepare import prepare, read
    from trainer.run.train import open_on, select_step_strategy

    bootstrap = Ranks()
    attempt = Attempt(config=config, name=None, settings=None, bootstrap=bootstrap)
    task, attempt = read(attempt)
    ready = prepare(attempt, task)
    with open_on(bootstrap, config.run, None, need_bytes=0) as folder:
        record = begin_record(ready, attempt, folder, bootstrap)
        training = assemble(ready, attempt, folder, bootstrap, record)
        select_step_strategy(training, config.compute.step)
        own = callbacks_of(
            training, config.telemetry, folder, ready.accelerator, ready.network.description, config.as_dict()
        )
        training.callbacks = training.callbacks.after(*(each for each in own if not isinstance(each, Progress)))
        yield training, record


def one_run(name: str, gate: Gate) -> dict[str, Any]:
    """Return peaks, seconds and choices of one configuration."""
    from trainer.engine.loop import run_epoch

    one, began = CONFIGURATIONS[name], time.perf_counter()
    with (
        tempfile.TemporaryDirectory() as temporary,
        prepared(one, gate),
        assembled(settings_of(one, Path(temporary))) as (training, record),
    ):
        torch.manual_seed(0)
        trials = counts()
        marks = marks_of(gate)
        training.callbacks = training.callbacks.after(marks)
        ready = time.perf_counter() - began
        while not training.ended:
            run_epoch(training)
        batch, _ = training.train.rows(torch.arange(one.rows), torch.device("cpu"))
        state = training.state
        return {
            "configuration": asdict(one),
            "trials": trials,
            "steps": marks.seen,
            "peak": {key: max(each[key] for each in marks.seen) for key in ("allocated", "reserved")},
            "seconds_a_step": min(each["seconds"] for each in marks.seen[-TIMED:]),
            "shape_of_batch": list(batch["tokens"].shape),
            "labels_without_loss": int((batch["labels"] < 0).sum()),
            "halvings": state.micro_batch.halvings,
            "micro_batch": state.micro_batch.size,
            "live_at_peak": marks.live,
            "chosen": {part: each["name"] for part, each in (record.get("fast") or {}).items()},
            "why": {part: each["why"] for part, each in (record.get("fast") or {}).items()},
            "process": {"ready_s": round(ready, 1), "waited_s": round(gate.waited, 1)},
            "last_loss": state.losses[state.batch - 1].item(),
        }


def counts() -> dict[str, int]:
    """Return torch's counts of the process so far, and begin them anew."""
    if not torch.cuda.is_available():
        return {"allocated": 0, "reserved": 0, "now": 0}
    found = {
        "allocated": torch.cuda.max_memory_allocated(),
        "reserved": torch.cuda.max_memory_reserved(),
        "now": torch.cuda.memory_allocated(),
    }
    free()
    torch.cuda.reset_peak_memory_stats()
    return found


def marks_of(gate: Gate) -> Any:
    """Return the callback that holds the card for all steps, counts and times each, and traces one."""
    from trainer.engine.callbacks.callback import Callback

    class Marks(Callback):
        seen: list[dict[str, Any]] = []  # noqa: RUF012
        live: list[Any] = []  # noqa: RUF012

        def on_step_begin(self, run: Any) -> None:
            if not self.seen:
                gate.enter()
            wait()
            if run.state.step + 1 == TRACED:
                trace(on=True)
            self.resting = torch.cuda.memory_allocated() if torch.cuda.is_available() else 0
            self.began = time.perf_counter()

        def on_step_end(self, run: Any, taken: Any) -> None:
            wait()
            seconds = time.perf_counter() - self.began
            if run.state.step == TRACED:
                self.live = trace(on=False)
            found = {"seconds": round(seconds, 5), "resting": self.resting}
            if torch.cuda.is_available():
                found["allocated"] = torch.cuda.max_memory_allocated()
                found["reserved"] = torch.cuda.max_memory_reserved()
                torch.cuda.reset_peak_memory_stats()
            else:
                found["allocated"] = found["reserved"] = 0
            self.seen.append(found)
            if run.state.step == STEPS:
                gate.leave()

    return Marks()


def trace(*, on: bool) -> list[Any]:
    """Begin to record allocations, or end it and return those of the step that are there at its largest moment."""
    if not torch.cuda.is_available():
        return []
    if on:
        torch.cuda.memory._record_memory_history("all", context="alloc", stacks="python", max_entries=400_000)
        return []
    events = torch.cuda.memory._snapshot()["device_traces"][0]
    torch.cuda.memory._record_memory_history(None)
    return at_peak(events)


def child(name: str, gate: Path) -> dict[str, Any]:
    """Run one configuration in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.plan_card", "--one", name, "--gate", str(gate)]
    environment = {**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "2", "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=PATIENCE, env=environment
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"no end after {PATIENCE} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("FIGURES ")]
    output = (done.stdout + done.stderr).replace(f"{ROOT}/", "")  # the record names no folder of the machine
    return json.loads(lines[-1][8:]) if lines else {"failed": output[-1500:]}


def run_all(names: list[str], workers: int, results: Path, until: float) -> None:
    """Run the configurations side by side, within the card's memory, and write the results after each.

    Args:
        until: time.monotonic after which none is begun.
    """
    made: dict[str, Any] = {"machine": facts(), "runs": {}}
    waiting, held, lock, most = list(names), [0.0], threading.Condition(), most_gib()
    expected = expectations(names)

    def work() -> None:
        while True:
            with lock:
                while waiting and (fitting := _next(waiting, most - held[0], expected)) is None:
                    lock.wait()
                if not waiting or fitting is None or time.monotonic() > until:
                    return
                waiting.remove(fitting)
                held[0] += expected[fitting]
            found = child(fitting, gate)
            with lock:
                held[0] -= expected[fitting]
                made["runs"][fitting] = found
                results.write_text(json.dumps(made, indent=1) + "\n")
                print(f"{fitting}: {shown(found)}", flush=True)
                lock.notify_all()

    with tempfile.NamedTemporaryFile() as file:
        gate = Path(file.name)
        threads = [threading.Thread(target=work) for _ in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def most_gib() -> int:
    """Return what all processes may take of the card; torch without a card gives what an H200 has."""
    whole = torch.cuda.get_device_properties(0).total_memory if torch.cuda.is_available() else 139 * GIB
    return int(SHARE * whole / GIB)


def _next(waiting: list[str], room: float, expected: Mapping[str, float]) -> str | None:
    return next((name for name in waiting if expected[name] <= room), None)


def expectations(names: list[str]) -> dict[str, float]:
    """Return the GiB that each process is expected to take: what it took when it ran before, and its context."""
    runs = json.loads(RESULTS.read_text())["runs"] if RESULTS.is_file() else {}
    found = {name: float(CONFIGURATIONS[name].expected) for name in names}
    for name in names:
        if "peak" in runs.get(name, {}):
            found[name] = max(runs[name][when]["reserved"] for when in ("peak", "trials")) / GIB * 1.05 + 2
    return found


def shown(found: dict[str, Any]) -> str:
    """Return a line of results."""
    if "failed" in found:
        last = str(found["failed"])[-300:].replace("\n", " | ")
        return f"failed: {last}"
    peak = {key: round(value / GIB, 3) for key, value in found["peak"].items()}
    return json.dumps({**peak, "s": found["seconds_a_step"], "halvings": found["halvings"], **found["process"]})


def main() -> None:
    """Run what is requested, print a line each, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--one")
    parser.add_argument("--later", action="store_true", help="of the second list, planned before it was run")
    parser.add_argument("--gate")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--part", default="0/1", help="which shares of the names of how many, as 1/2 or 0,1/5")
    parser.add_argument("--seconds", type=float, default=500, help="after which no further configuration is begun")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    if given.one:
        print("FIGURES " + json.dumps(one_run(given.one, Gate(given.gate))), flush=True)
        return
    listed = [name for name in CONFIGURATIONS if name != "tiny" and (name in LATER) == given.later]
    names = [name for name in listed if any(fnmatch(name, each) for each in given.names)]
    own, parts = given.part.split("/")
    ordered = sorted(names, key=lambda name: CONFIGURATIONS[name].expected)
    names = [name for part in own.split(",") for name in ordered[int(part) :: int(parts)]]
    run_all(names, given.workers, given.results.resolve(), time.monotonic() + given.seconds)


if __name__ == "__main__":
    main()

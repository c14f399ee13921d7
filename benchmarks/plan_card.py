"""Peak memory and seconds of real training steps on a card, over many configurations; no plan is read here.

    python -m benchmarks.plan_card '*' --workers 8      # a process each, on a machine with a card
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
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from benchmarks.language_speed import facts  # noqa: E402
from trainer.run.memory_plan.program import DEPTH  # noqa: E402
from trainer.run.memory_plan.shapes import SHAPES  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "plan_card.json"
GIB = 2**30
STEPS, TIMED = 4, 2  # steps of a run, the last of which are timed; the second is traced
TRACED = 2
MOST_GIB, PATIENCE = 125, 300  # of all processes together; seconds of one
TINY = {"vocab_size": 512, "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
KNOWN: dict[str, dict[str, Any]] = {
    **SHAPES,
    "tiny": SHAPES["qwen2.5-0.5b"] | TINY | {"num_attention_heads": 4},
    "qwen3-0.6b": {
        **{"model_type": "qwen3", "vocab_size": 151936, "hidden_size": 1024, "intermediate_size": 3072},
        **{"num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128},
        **{"max_position_embeddings": 40960, "rope_theta": 1e6, "rms_norm_eps": 1e-6, "tie_word_embeddings": True},
    },
}


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """What is trained and how; `layers` 0: the shape's own. limit: GiB for torch, 0 for the whole card."""

    shape: str
    layers: int = 0
    method: str = "pretrain"
    adapter: str = "none"
    precision: str = "bf16"
    sequence: int = 1024
    rows: int = 8
    micro_batch: int = 0
    checkpointing: str = "off"
    limit: int = 0
    fast: str = "auto"
    expected: int = 20  # GiB of the process, for the sharing of the card alone

    @property
    def raw(self) -> dict[str, Any]:
        """Return config.json."""
        raw = dict(KNOWN[self.shape])
        if self.layers:
            raw[next(name for name in DEPTH if name in raw)] = self.layers
        return raw

    @property
    def packed(self) -> bool:
        """Whether rows hold several documents."""
        return self.method == "sft"


def _known() -> Iterator[tuple[str, Configuration]]:
    """Yield the configurations, named by what they are."""
    gpt, small, big, llama, three = "gpt2-124m", "qwen2.5-0.5b", "qwen2.5-1.5b", "llama-3.2-1b", "qwen2.5-3b"
    seven, mistral, eight, thirteen = "qwen2.5-7b", "mistral-7b", "llama-3.1-8b", "llama-2-13b"
    of = Configuration
    each = [
        of(shape=gpt, sequence=1024, rows=16, expected=12),
        of(shape=gpt, sequence=1024, rows=32, checkpointing="full", expected=10),
        of(shape=gpt, sequence=1024, rows=8, precision="fp32", expected=16),
        of(shape=gpt, sequence=512, rows=32, checkpointing="selective", expected=12),
        of(shape=gpt, sequence=1024, rows=8, adapter="lora", expected=8),
        of(shape=gpt, sequence=512, rows=16, fast="off", expected=12),
        of(shape=small, sequence=512, rows=8, expected=14),
        of(shape=small, sequence=2048, rows=4, checkpointing="full", expected=14),
        of(shape=small, sequence=1024, rows=2, precision="fp32", limit=16, expected=16),
        of(shape=small, sequence=2048, rows=8, checkpointing="selective", expected=25),
        of(shape=small, sequence=512, rows=32, fast="off", expected=40),
        of(shape=small, sequence=1024, rows=8, micro_batch=2, expected=14),
        of(shape=small, adapter="lora", sequence=2048, rows=8, expected=20),
        of(shape=small, adapter="lora", sequence=8192, rows=1, checkpointing="full", expected=8),
        of(shape=small, adapter="lora", sequence=1024, rows=8, micro_batch=2, expected=8),
        of(shape=small, adapter="qlora", sequence=4096, rows=2, expected=20),
        of(shape=small, adapter="lora", method="sft", sequence=2048, rows=4, limit=24, expected=20),
        of(shape=small, method="sft", sequence=1024, rows=8, checkpointing="full", expected=16),
        of(shape=small, adapter="lora", method="dpo", sequence=512, rows=8, expected=14),
        of(shape=small, adapter="qlora", method="dpo", sequence=1024, rows=4, checkpointing="full", expected=10),
        of(shape=small, adapter="lora", method="dpo", precision="fp32", sequence=512, rows=2, limit=16, expected=16),
        of(shape="qwen3-0.6b", adapter="lora", sequence=2048, rows=4, limit=16, expected=16),
        of(shape="qwen3-0.6b", sequence=1024, rows=4, limit=20, expected=18),
        of(shape=big, adapter="lora", sequence=2048, rows=8, limit=32, expected=32),
        of(shape=big, adapter="lora", sequence=2048, rows=4, checkpointing="full", expected=10),
        of(shape=big, adapter="lora", sequence=8192, rows=2, checkpointing="full", limit=16, expected=16),
        of(shape=big, adapter="qlora", sequence=512, rows=16, expected=20),
        of(shape=big, adapter="qlora", sequence=2048, rows=4, checkpointing="full", limit=16, expected=10),
        of(shape=big, sequence=1024, rows=4, limit=32, expected=32),
        of(
            shape=big, adapter="qlora", method="sft", sequence=2048, rows=4, checkpointing="full", limit=16, expected=14
        ),
        of(shape=big, adapter="lora", method="dpo", sequence=1024, rows=4, checkpointing="full", limit=20, expected=14),
        of(shape=big, adapter="lora", precision="fp32", sequence=1024, rows=2, limit=20, expected=20),
        of(shape=big, adapter="lora", sequence=512, rows=1, expected=8),
        of(shape=big, adapter="lora", sequence=4096, rows=2, checkpointing="selective", limit=24, expected=24),
        of(shape=big, adapter="lora", sequence=2048, rows=4, fast="off", limit=32, expected=32),
        of(shape=llama, adapter="lora", sequence=1024, rows=8, expected=20),
        of(shape=llama, sequence=512, rows=4, checkpointing="full", limit=24, expected=24),
        of(shape=llama, adapter="qlora", sequence=4096, rows=1, limit=16, expected=16),
        of(shape=three, adapter="lora", sequence=2048, rows=2, limit=20, expected=20),
        of(shape=three, adapter="qlora", sequence=8192, rows=1, checkpointing="full", limit=16, expected=16),
        of(shape=seven, adapter="lora", sequence=2048, rows=1, checkpointing="full", limit=24, expected=40),
        of(shape=seven, layers=6, sequence=512, rows=4, expected=60),
        of(shape=seven, layers=4, adapter="lora", sequence=8192, rows=4, expected=50),
        of(shape=mistral, layers=8, adapter="lora", sequence=2048, rows=4, expected=20),
        of(shape=mistral, adapter="qlora", sequence=1024, rows=1, checkpointing="full", limit=16, expected=40),
        of(shape=mistral, adapter="qlora", sequence=2048, rows=2, checkpointing="full", limit=20, expected=40),
        of(shape=eight, layers=4, adapter="lora", method="dpo", sequence=1024, rows=2, expected=24),
        of(
            shape=eight,
            layers=4,
            adapter="lora",
            method="sft",
            sequence=4096,
            rows=1,
            checkpointing="full",
            expected=20,
        ),
        of(shape=thirteen, layers=4, adapter="qlora", sequence=2048, rows=8, limit=24, expected=30),
        of(shape=thirteen, layers=2, adapter="lora", sequence=4096, rows=8, checkpointing="full", expected=24),
        # of those that a plan may refuse: the largest is passed, by more or by less
        of(shape=big, sequence=1024, rows=8, limit=24, expected=24),
        of(shape=big, adapter="lora", sequence=2048, rows=8, limit=24, expected=24),
        of(shape=mistral, adapter="lora", sequence=1024, rows=1, limit=16, expected=40),
    ]
    for one in each:
        yield name_of(one), one
    yield "tiny", of(shape="tiny", sequence=64, rows=4, adapter="lora")


def name_of(one: Configuration) -> str:
    """Return a configuration as text."""
    depth = f" ({one.layers} layers)" if one.layers else ""
    kind = "full" if one.adapter == "none" else one.adapter
    more = [f"pieces of {one.micro_batch}"] if one.micro_batch else []
    more += [f"{one.checkpointing} checkpointing"] if one.checkpointing != "off" else []
    more += ["--fast off"] if one.fast == "off" else []
    more += [f"{one.limit} GiB"] if one.limit else []
    size = f"{one.rows} x {one.sequence}"
    return ", ".join([f"{one.shape}{depth}", f"{kind} {one.method} {one.precision}", size, *more])


CONFIGURATIONS: dict[str, Configuration] = dict(_known())


def base_folder(one: Configuration, folder: Path) -> Path:
    """Write config.json and the byte tokenizer; weights are drawn on the card."""
    from trainer.data.tokens.tokenizer import ByteTokenizer

    made = folder / "base"
    made.mkdir()
    (made / "config.json").write_text(json.dumps(one.raw))
    for name, content in ByteTokenizer().files().items():
        (made / name).write_bytes(content)
    return made


def rows_file(one: Configuration, folder: Path) -> Path:
    """Write enough random text, conversations or pairs for all steps and a little validation."""
    count = one.rows * (STEPS + 1) + 4
    generator = torch.Generator().manual_seed(0)
    letters = torch.randint(33, 122, (count, one.sequence + 1), generator=generator).to(torch.uint8)
    if one.method == "pretrain":
        (folder / "data.txt").write_bytes(letters.numpy().tobytes())
        return folder / "data.txt"
    with (folder / "data.jsonl").open("w") as file:
        for row in letters:
            text = bytes(row.tolist()).decode()
            for each in _rows_of(one, text):
                file.write(json.dumps(each) + "\n")
    return folder / "data.jsonl"


def _rows_of(one: Configuration, text: str) -> Iterator[dict[str, str]]:
    if one.method == "dpo":
        answer = one.sequence - 40  # with the prompt and the stop token: nearly the whole row
        yield {"prompt": text[:32], "chosen": text[32 : 32 + answer], "rejected": text[33 : 33 + answer]}
        return
    part = one.sequence // 4
    for begin in range(0, 4 * part, part):  # four documents fill a row but for a few tokens
        yield {"prompt": text[begin : begin + 16], "completion": text[begin + 16 : begin + part - 4]}


def settings_of(one: Configuration, folder: Path) -> Any:
    """Return the configuration as the command line would make it."""
    from trainer.cli import parse
    from trainer.config.recipe import resolve

    more = ["--adapter", one.adapter, "--lora-rank", "16"] if one.adapter != "none" else []
    more += ["--micro-batch", str(one.micro_batch or one.rows)]  # auto would start with what a plan allows
    arguments = [
        *["--task", "lm", "--model", str(base_folder(one, folder)), "--output", str(folder), "--run", "timed"],
        *["--data", str(rows_file(one, folder)), "--sequence", str(one.sequence), "--batch-size", str(one.rows)],
        *["--max-steps", str(STEPS), "--checkpoint-every", "0", "--validation-share", "0.02", "--method", one.method],
        *["--weight-decay", "0", "--precision", one.precision, "--activation-checkpointing", one.checkpointing],
        *["--fast", one.fast, *more],
    ]
    given = parse(["train", *arguments])
    return resolve({name: value for name, value in given.items() if name != "command"})


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
    from trainer.models.fast import attention, choose, cross_entropy, proof
    from trainer.run.phases import prepare
    from trainer.tasks.language_model import LanguageTask

    network, placed, seconds_of = LanguageTask.network, prepare.placed, choose.seconds_of
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
        return replace(spec, build=lambda: drawn(spec.build), load=None)

    timing = (choose, attention, cross_entropy)
    LanguageTask.network, prepare.placed = own, limited  # type: ignore[method-assign]
    for module in timing:
        module.seconds_of = alone  # type: ignore[attr-defined]
    try:
        yield
    finally:
        LanguageTask.network, prepare.placed = network, placed  # type: ignore[method-assign]
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
    from trainer.run.phases.prepare import Attempt, prepare, read
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


def at_peak(events: list[dict[str, Any]]) -> list[Any]:
    """Return [bytes, count, where] of what the step had allocated at its largest moment, largest first."""
    best = now = place = 0
    for number, event in enumerate(events):
        now += event["size"] * {"alloc": 1, "free_completed": -1}.get(event["action"], 0)
        if now > best:
            best, place = now, number
    live: dict[int, dict[str, Any]] = {}
    for event in events[: place + 1]:
        if event["action"] == "alloc":
            live[event["addr"]] = event
        elif event["action"] == "free_completed":
            live.pop(event["addr"], None)
    found = Counter((event["size"], where_of(event)) for event in live.values())
    listed = [[size, count, where] for (size, where), count in found.items()]
    return sorted(listed, key=lambda each: -each[0] * each[1])[:40]


def where_of(event: dict[str, Any]) -> str:
    """Return the first frames of an allocation that are of this repository."""
    frames = [f"{Path(each['filename']).stem}:{each['line']}" for each in event.get("frames", [])]
    own = [each for each, frame in zip(frames, event.get("frames", []), strict=True) if "trainer/" in frame["filename"]]
    return " < ".join((own or frames)[:3])


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
    return json.loads(lines[-1][8:]) if lines else {"failed": (done.stdout + done.stderr)[-1500:]}


def run_all(names: list[str], workers: int, results: Path, until: float) -> None:
    """Run the configurations side by side, within the card's memory, and write the results after each.

    Args:
        until: time.monotonic after which none is begun.
    """
    made: dict[str, Any] = {"machine": facts(), "runs": {}}
    waiting, held, lock = list(names), [0], threading.Condition()

    def work() -> None:
        while True:
            with lock:
                while waiting and (fitting := _next(waiting, MOST_GIB - held[0])) is None:
                    lock.wait()
                if not waiting or time.monotonic() > until:
                    return
                waiting.remove(fitting)
                held[0] += CONFIGURATIONS[fitting].expected
            found = child(fitting, gate)
            with lock:
                held[0] -= CONFIGURATIONS[fitting].expected
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


def _next(waiting: list[str], room: int) -> str | None:
    fitting = [name for name in waiting if CONFIGURATIONS[name].expected <= room]
    return max(fitting, key=lambda name: CONFIGURATIONS[name].expected, default=None)


def shown(found: dict[str, Any]) -> str:
    """Return a line of results."""
    if "failed" in found:
        return "failed: " + found["failed"][-300:].replace("\n", " | ")
    peak = {key: round(value / GIB, 3) for key, value in found["peak"].items()}
    return json.dumps({**peak, "s": found["seconds_a_step"], "halvings": found["halvings"], **found["process"]})


def main() -> None:
    """Run what is requested, print a line each, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--one")
    parser.add_argument("--gate")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=500, help="after which no further configuration is begun")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    if given.one:
        print("FIGURES " + json.dumps(one_run(given.one, Gate(given.gate))), flush=True)
        return
    names = [name for name in CONFIGURATIONS if name != "tiny" and any(fnmatch(name, each) for each in given.names)]
    run_all(names, given.workers, given.results.resolve(), time.monotonic() + given.seconds)


if __name__ == "__main__":
    main()

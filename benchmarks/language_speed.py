"""Tokens per second and peak memory of language models in the trainer's own loop, next to other programs.

    python -m benchmarks.language_speed 'lora*' 'scratch*' equal --peers FOLDER   # each in a process of its own
    python -m benchmarks.language_speed --one lora-8                             # one case in this process
    python -m benchmarks.language_speed 'nanoGPT*' 'TRL*' --peers FOLDER         # the peers' own scripts

A case is a run as `train` makes it: its data, its choice of faster ways, its loop with guard and telemetry, on a model
of random weights in the shape named. Timed are the steps from WARM on, between two waits for the device; peak memory is
that of the whole process, trials and start included. Tokens are random printable bytes: only time and memory are looked
at. `equal` trains nanoGPT's model and ours from the same weights on the same rows in fp32, and compares the losses.
Raw results go to benchmarks/results/language_speed.json, with each case's choices and reasons.

FOLDER holds the peers' scripts and nanoGPT's model.py in `nanoGPT/`; they are not part of this repository.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from trainer.run.memory_plan.shapes import SHAPES as KNOWN  # noqa: E402

WARM, STEPS = 8, 20
SHAPES: dict[str, dict[str, Any]] = {
    "qwen2.5-1.5b": KNOWN["qwen2.5-1.5b"],
    "qwen2.5-0.5b": KNOWN["qwen2.5-0.5b"],
    "tiny": KNOWN["qwen2.5-0.5b"]
    | {"vocab_size": 320, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4},
    "gpt2-124m": KNOWN["gpt2-124m"] | {"activation_function": "gelu"},  # nanoGPT's
}
EQUAL_STEPS, EQUAL_ROWS, EQUAL_TOLERANCE = 10, 4, 1e-5  # relative, of each step's loss in fp32


@dataclass(frozen=True, kw_only=True)
class Case:
    """One run: model, rows of a step, tokens of a row, and further flags of `train`."""

    shape: str
    rows: int
    tokens: int
    flags: tuple[str, ...] = ()
    method: str = "pretrain"
    settings: dict[str, Any] = field(default_factory=dict)


LORA = ("--adapter", "lora", "--lora-rank", "16")
QLORA = ("--adapter", "qlora", "--lora-rank", "16")
FULL = ("--activation-checkpointing", "full")
FREE = ("--fast", "nondeterministic")
BIG, SMALL, GPT = "qwen2.5-1.5b", "qwen2.5-0.5b", "gpt2-124m"
CASES: dict[str, Case] = {
    "lora-8": Case(shape=BIG, rows=8, tokens=2048, flags=LORA),
    "lora-8, nondeterministic": Case(shape=BIG, rows=8, tokens=2048, flags=(*LORA, *FREE)),
    "lora-8-plain": Case(shape=BIG, rows=8, tokens=2048, flags=(*LORA, "--fast", "off")),
    "lora-16": Case(shape=BIG, rows=16, tokens=2048, flags=LORA),
    "lora-4-full": Case(shape=BIG, rows=4, tokens=2048, flags=(*LORA, *FULL)),
    "lora-4-full, nondeterministic": Case(shape=BIG, rows=4, tokens=2048, flags=(*LORA, *FULL, *FREE)),
    "lora-8-full": Case(shape=BIG, rows=8, tokens=2048, flags=(*LORA, *FULL)),
    "lora-8-selective": Case(shape=BIG, rows=8, tokens=2048, flags=(*LORA, "--activation-checkpointing", "selective")),
    "qlora-8": Case(shape=BIG, rows=8, tokens=2048, flags=QLORA),
    "full-0.5b": Case(shape=SMALL, rows=8, tokens=2048),
    "full-1.5b": Case(shape=BIG, rows=8, tokens=2048),
    "dpo-0.5b": Case(shape=SMALL, rows=8, tokens=1024, flags=LORA, method="dpo"),
    "dpo-1.5b": Case(shape=BIG, rows=4, tokens=1024, flags=LORA, method="dpo"),
    "tiny-qlora": Case(shape="tiny", rows=4, tokens=64, flags=QLORA),
    "tiny": Case(shape="tiny", rows=4, tokens=64, flags=LORA),  # the mechanics, on a machine without a card
    "tiny-dpo": Case(shape="tiny", rows=4, tokens=512, flags=LORA, method="dpo"),
    "scratch": Case(shape=GPT, rows=64, tokens=1024),
    "scratch, nondeterministic": Case(shape=GPT, rows=64, tokens=1024, flags=FREE),
    "scratch-plain": Case(shape=GPT, rows=64, tokens=1024, flags=("--fast", "off")),
}
PEERS: dict[str, list[str]] = {
    "TRL, its defaults (full checkpointing), LoRA, batch 8": ["trl_lora.py", "trl", "8"],
    "TRL with Liger, no checkpointing, LoRA, batch 8": ["trl_lora.py", "trl", "8", "liger", "nockpt"],
    "HF Trainer, peft and Liger, no checkpointing, LoRA, batch 8": ["trl_lora.py", "hf", "8", "liger"],
}
NANO = {"nanoGPT": False, "nanoGPT with biases, as GPT-2 has": True}  # its model.py, compiled, its own optimizer


def base_folder(shape: str, folder: Path) -> Path:
    """Write a model of random weights in bf16 (GPT-2 in fp32), with the byte tokenizer."""
    from trainer.data.tokens.tokenizer import ByteTokenizer
    from trainer.models.decoder.model import Decoder
    from trainer.models.pretrained.families import decoder_config
    from trainer.models.pretrained.folder import Pretrained, write

    made = folder / shape
    raw = SHAPES[shape]
    where = "cuda" if torch.cuda.is_available() else "cpu"
    with torch.device(where):
        model = Decoder(decoder_config(raw))
        torch.manual_seed(0)
        model.initialize()
    model = model.cpu() if raw["model_type"] == "gpt2" else model.bfloat16().cpu()
    write(made, Pretrained(model=model, raw=raw))
    for name, content in ByteTokenizer().files().items():
        (made / name).write_bytes(content)
    return made


def rows_file(case: Case, folder: Path, steps: int) -> Path:
    """Write enough random text, or pairs, for all steps and a little validation."""
    generator = torch.Generator().manual_seed(0)
    count = case.rows * (steps + 2)
    letters = (torch.randint(33, 122, (count, case.tokens + 1), generator=generator)).to(torch.uint8)
    if case.method != "dpo":
        (folder / "data.txt").write_bytes(letters.numpy().tobytes())
        return folder / "data.txt"
    half = case.tokens - 200
    with (folder / "data.jsonl").open("w") as file:
        for row in letters:
            text = bytes(row.tolist()).decode()
            pair = {"prompt": text[:100], "chosen": text[100:half], "rejected": text[50 : half - 50]}
            file.write(json.dumps(pair) + "\n")
    return folder / "data.jsonl"


def settings_of(case: Case, folder: Path, steps: int, *more: str) -> Any:
    """Return the configuration as the command line would make it."""
    from trainer.cli import parse
    from trainer.config.recipe import resolve

    given = parse(["train", *arguments(case, folder, steps, *more)])
    return resolve({name: value for name, value in given.items() if name != "command"})


def arguments(case: Case, folder: Path, steps: int, *more: str) -> list[str]:
    """Return the arguments of `train`."""
    precision = [] if "--precision" in (*case.flags, *more) else ["--precision", "bf16"]
    return [
        *["--task", "lm", "--model", str(base_folder(case.shape, folder)), "--output", str(folder), "--run", "timed"],
        *["--data", str(rows_file(case, folder, steps)), "--sequence", str(case.tokens), "--batch-size"],
        *[str(case.rows), "--max-steps", str(steps), "--checkpoint-every", "0", "--validation-share", "0.02"],
        *["--method", case.method, "--weight-decay", "0", *precision, *case.flags, *more],
    ]


@contextmanager
def assembled(config: Any) -> Iterator[Any]:
    """Yield the run as `train` puts it together, guard and telemetry included."""
    from trainer.distributed.collectives import Ranks
    from trainer.engine.instrumentation import callbacks_of
    from trainer.engine.steps.compile import compile_if_worth_it
    from trainer.models.decoder.model import Decoder
    from trainer.run.phases.assemble import assemble, begin_record
    from trainer.run.phases.attempt import Attempt
    from trainer.run.phases.prepare import prepare, read
    from trainer.run.train import open_on, select_step_strategy

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
        select_step_strategy(training, config.compute.step)
        described = prepared.network.description
        own = callbacks_of(training, config.telemetry, folder, prepared.accelerator, described, config.as_dict())
        training.callbacks = training.callbacks.after(*own)
        yield training, record


def timed(case: Case, steps: int) -> dict[str, Any]:
    """Return tokens per second and peak memory of a case, with what the run chose.

    first_step_after_s: from the settings to the end of the first step, with reading rows, gates, loading and quantising
    weights, trials and compilation (ready_after_s: all but the first step); without what Python imports at the top.
    """
    with tempfile.TemporaryDirectory() as temporary:
        config = settings_of(case, Path(temporary), steps)  # writes the model and the rows, which a user has
        began = time.perf_counter()
        with assembled(config) as (training, record):
            ready = time.perf_counter()
            marks = marked_steps(training, steps)
            answers = 2 if case.method == "dpo" else 1
            tokens = (steps - WARM) * case.rows * case.tokens * answers
            return {
                "tokens_per_second": round(tokens / (marks[steps] - marks[WARM])),
                "peak_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2) if torch.cuda.is_available() else None,
                "ready_after_s": round(ready - began, 1),
                "first_step_after_s": round(marks[1] - began, 1),
                "last_loss": training.state.losses[training.state.batch - 1].item(),
                "chosen": record.get("fast"),
                "settings": {**vars(case), "flags": list(case.flags)},
            }


def marked_steps(training: Any, steps: int) -> dict[int, float]:
    """Train, and return the clock after some steps, the device waited for."""
    from trainer.engine.callbacks.callback import Callback
    from trainer.engine.loop import run_epoch

    marks: dict[int, float] = {}

    class Marks(Callback):
        """Keeps the time after some steps."""

        def on_step_end(self, run: Any, taken: Any) -> None:
            if run.state.step in (1, WARM, steps):
                if torch.cuda.is_available():
                    torch.cuda.synchronize()
                marks[run.state.step] = time.perf_counter()

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


def nano_speed(folder: Path, steps: int, *, bias: bool) -> dict[str, Any]:
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
        if step in (WARM, steps):
            torch.cuda.synchronize()
            marks[step] = time.perf_counter()
    return {
        "tokens_per_second": round((steps - WARM) * 64 * 1024 / (marks[steps] - marks[WARM])),
        "peak_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2),
    }


def peer(name: str, folder: Path) -> dict[str, Any]:
    """Run one peer's script and return its own line of figures."""
    script, *more = PEERS[name]
    done = subprocess.run(
        [sys.executable, script, *more], cwd=folder, capture_output=True, text=True, check=False, timeout=400
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT")]
    return {"line": lines[-1]} if lines else {"failed": (done.stdout + done.stderr)[-600:]}


def one(name: str, steps: int, peers: Path | None) -> dict[str, Any]:
    """Return the figures of one case, or of a peer, or the comparison of losses."""
    if name == "equal":
        assert peers is not None, "--peers names the folder with nanoGPT"
        return equal(peers)
    if name in NANO:
        assert peers is not None, "--peers names the folder with nanoGPT"
        return nano_speed(peers, steps, bias=NANO[name])
    return timed(CASES[name], steps)


def child(name: str, steps: int, peers: Path | None) -> dict[str, Any]:
    """Run one case in a process of its own: memory and compiled code begin empty."""
    if name in PEERS:
        assert peers is not None
        return peer(name, peers)
    more = ["--peers", str(peers)] if peers else []
    command = [sys.executable, "-m", "benchmarks.language_speed", "--one", name, "--steps", str(steps), *more]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=400)
    lines = [line for line in done.stdout.splitlines() if line.startswith("FIGURES ")]
    return json.loads(lines[-1][8:]) if lines else {"failed": (done.stdout + done.stderr)[-1500:]}


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


def main() -> None:
    """Run what is asked for, print a line each, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--one")
    parser.add_argument("--steps", type=int, default=WARM + STEPS)
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results" / "language_speed.json")
    asked = parser.parse_args()
    peers = asked.peers.resolve() if asked.peers else None
    if asked.one:
        print("FIGURES " + json.dumps(one(asked.one, asked.steps, peers)), flush=True)
        return
    known = [*CASES, "equal", *NANO, *PEERS]
    names = list(dict.fromkeys(name for each in asked.cases for name in known if fnmatch(name, each)))
    results: dict[str, Any] = {"machine": facts(), "cases": {}}
    for name in names:
        results["cases"][name] = found = child(name, asked.steps, peers)
        shown = {key: value for key, value in found.items() if key not in ("chosen", "settings")}
        print(f"{name}: {json.dumps(shown)[:900]}", flush=True)
        asked.results.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

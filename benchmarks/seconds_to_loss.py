"""Seconds to a validation loss: nanoGPT's 124M and ours on the same text, each with its own optimizer.

    python -m benchmarks.seconds_to_loss FILE.txt nanoGPT muon --peers FOLDER    # a process each, one after the other
    python -m benchmarks.seconds_to_loss FILE.txt --one muon --steps 20          # one in this process

Both train GPT-2's shape of 124M on bytes of the text, 64 rows of 1,024 a step, in bf16, from weights of their own; the
last 5 % of the windows are validated on, the same for both. nanoGPT runs its own model, compiled, with the step, the
schedule and the settings of its train.py and config/train_gpt2.py; warm-up and decay are cut to the run's length, as
its own comments advise. Ours is the loop of `train`, with guard and telemetry. The clock runs over training steps from
the second on, scaled to all: compilation and trials are before it, validation is left out; `start_s` has what was
before. Raw results: benchmarks/results/seconds_to_loss.json. FOLDER holds nanoGPT's model.py in `nanoGPT/`.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from benchmarks.language_speed import assembled, base_folder, facts  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "seconds_to_loss.json"
ROWS, TOKENS, HELD = 64, 1024, 0.05
NANO_STEPS, OUR_STEPS, LOOKS = 600, 375, 5
WARM_SHARE = 0.05  # of nanoGPT's steps; at its own 2,000 of 600,000 it would hardly have any
NANO: dict[str, float] = {"nanoGPT": 6e-4, "nanoGPT, 1.5e-3": 1.5e-3}  # learning rates; 6e-4 is its own for 124M
MUON = ("--optimizer", "muon", "--schedule", "linear", "--weight-decay", "0.1")
ADAMW = ("--optimizer", "adamw", "--schedule", "linear", "--weight-decay", "0.1", "--warmup-steps", "20")
OURS: dict[str, tuple[str, ...]] = {
    "muon": (*MUON, "--muon-learning-rate", "0.02", "--learning-rate", "1e-3"),
    "muon, 0.02, 3e-3": (*MUON, "--muon-learning-rate", "0.02", "--learning-rate", "3e-3"),
    "muon, 0.04, 3e-3": (*MUON, "--muon-learning-rate", "0.04", "--learning-rate", "3e-3"),
    "muon, AdamW's size, 1e-3": (*MUON, "--learning-rate", "1e-3"),
    "adamw, 1e-3": (*ADAMW, "--learning-rate", "1e-3"),
}


class Clock:
    """Seconds of the steps so far, from the second on, scaled to all of them; validation is not counted."""

    def __init__(self, steps: int, validate: Callable[[], float], began: float) -> None:
        self.looks = {round(steps * (number + 1) / LOOKS) for number in range(LOOKS)}
        self.validate, self.began, self.curve = validate, began, list[dict[str, float]]()
        self.start_s, self.passed, self.resumed = 0.0, 0.0, 0.0

    def after(self, step: int) -> None:
        """Begin after the first step; validate where a look is due."""
        if step == 1:
            self.start_s, self.resumed = time.perf_counter() - self.began, waited()
        elif step in self.looks:
            self.passed += waited() - self.resumed
            seconds = self.passed * step / (step - 1)
            self.curve.append({"step": step, "seconds": round(seconds, 2), "loss": round(self.validate(), 4)})
            self.resumed = waited()

    def figures(self) -> dict[str, Any]:
        """Return the curve, and the rate over all steps."""
        last = self.curve[-1]
        rate = round(last["step"] * ROWS * TOKENS / last["seconds"])
        peak = round(torch.cuda.max_memory_allocated() / 2**30, 2) if torch.cuda.is_available() else None
        return {"curve": self.curve, "tokens_per_second": rate, "start_s": round(self.start_s, 1), "peak_gib": peak}


def waited() -> float:
    """Return the time once the device has done its work."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def ours(text: Path, name: str, steps: int, folder: Path) -> dict[str, Any]:
    """Return the figures of a run as `train` makes it."""
    from trainer.cli import parse
    from trainer.config.recipe import resolve
    from trainer.engine.callbacks.callback import Callback
    from trainer.engine.loop import end_epoch, run_epoch
    from trainer.engine.measurement import validation_loss_of

    began = time.perf_counter()
    flags = [
        *["train", "--task", "lm", "--model", str(base_folder("gpt2-124m", folder)), "--output", str(folder)],
        *["--run", "timed", "--data", str(text), "--sequence", str(TOKENS), "--batch-size", str(ROWS)],
        *["--max-steps", str(steps), "--checkpoint-every", "0", "--validation-share", str(HELD), "--precision", "bf16"],
        *["--eval-every", str(steps), "--fast", "nondeterministic", *OURS[name]],
    ]
    given = {key: value for key, value in parse(flags).items() if key != "command"}
    with assembled(resolve(given)) as (training, record):

        def validate() -> float:
            loss = validation_loss_of(training)
            training.forward.train()
            return loss

        clock = Clock(steps, validate, began)

        class Looks(Callback):
            def on_step_end(self, run: Any, taken: Any) -> None:
                clock.after(run.state.step)

        training.callbacks = training.callbacks.after(Looks())
        training.callbacks.on_train_begin(training)
        while not training.ended:
            run_epoch(training)
            if training.state.batch == training.sampler.count(training.state.epoch):
                end_epoch(training)
        return {
            **clock.figures(),
            "flags": flags[5:],
            "chosen": {part: one["name"] for part, one in record["fast"].items()},
        }


def parts_of(text: Path) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the tokens to train on, and the windows (rows, TOKENS + 1) that `train` holds out, of a text's bytes."""
    from trainer.data.tokens.load import held_out, stream_of
    from trainer.data.tokens.tokenizer import ByteTokenizer

    stream = stream_of(text, ByteTokenizer(), text.parent)
    count = (len(stream) - 1) // TOKENS
    first = (count - held_out(count, HELD)) * TOKENS
    tokens = torch.from_numpy(stream.window(0, count * TOKENS + 1))
    return tokens[: first + 1], tokens[first:].unfold(0, TOKENS + 1, TOKENS)


def nano(text: Path, learning_rate: float, steps: int, peers: Path) -> dict[str, Any]:
    """Return the figures of nanoGPT's model under its own step: bf16, AdamW, clipped, cosine after a warm-up."""
    sys.path.insert(0, str(peers / "nanoGPT"))
    import model as nanogpt  # type: ignore

    began = time.perf_counter()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1337)
    torch.backends.cuda.matmul.allow_tf32 = True
    shape = (
        {"n_layer": 12, "n_head": 12, "n_embd": 768} if device == "cuda" else {"n_layer": 1, "n_head": 2, "n_embd": 64}
    )
    network = nanogpt.GPT(nanogpt.GPTConfig(block_size=TOKENS, vocab_size=50304, dropout=0.0, bias=False, **shape))
    network.to(device)
    optimizer = network.configure_optimizers(0.1, learning_rate, (0.9, 0.95), device)
    tokens, held = parts_of(text)
    compiled: Any = torch.compile(network) if device == "cuda" else network
    autocast = torch.autocast(device, torch.bfloat16)

    def batch() -> tuple[torch.Tensor, torch.Tensor]:
        begins = torch.randint(len(tokens) - TOKENS, (ROWS,)).tolist()
        rows = torch.stack([tokens[begin : begin + TOKENS + 1] for begin in begins])
        both = (rows[:, :-1].contiguous(), rows[:, 1:].contiguous())
        if device == "cuda":
            both = (both[0].pin_memory(), both[1].pin_memory())
        return both[0].to(device, non_blocking=True), both[1].to(device, non_blocking=True)

    @torch.no_grad()
    def validate() -> float:
        total = 0.0
        for rows in held.split(16):
            with autocast:
                _, loss = network(rows[:, :-1].contiguous().to(device), rows[:, 1:].contiguous().to(device))
            total += loss.item() * len(rows)
        return total / len(held)

    clock, (inputs, labels), warm = Clock(steps, validate, began), batch(), round(steps * WARM_SHARE)
    for step in range(1, steps + 1):
        share = min(1.0, (step - 1 - warm) / max(steps - warm, 1))
        factor = step / (warm + 1) if step <= warm else 0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * share))
        for group in optimizer.param_groups:
            group["lr"] = learning_rate * factor
        with autocast:
            _, loss = compiled(inputs, labels)
        inputs, labels = batch()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        clock.after(step)
    return {
        **clock.figures(),
        "learning_rate": learning_rate,
        "parameters": sum(map(torch.numel, network.parameters())),
    }


def one(name: str, text: Path, steps: int | None, peers: Path | None) -> dict[str, Any]:
    """Return the figures of one case."""
    if name in NANO:
        assert peers is not None, "--peers names the folder with nanoGPT"
        return nano(text, NANO[name], steps or NANO_STEPS, peers)
    with tempfile.TemporaryDirectory() as folder:
        return ours(text, name, steps or OUR_STEPS, Path(folder))


def child(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Run one case in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.seconds_to_loss", str(options.text), "--one", name]
    command += ["--peers", str(options.peers)] if options.peers else []
    command += ["--steps", str(options.steps)] if options.steps else []
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=500)
    lines = [line for line in done.stdout.splitlines() if line.startswith("FIGURES ")]
    return json.loads(lines[-1][8:]) if lines else {"failed": (done.stdout + done.stderr)[-1500:]}


def main() -> None:
    """Run what is asked for, print a line each, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=Path)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--one")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--peers", type=Path)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    options.text = options.text.resolve()
    options.peers = options.peers.resolve() if options.peers else None
    if options.one:
        print("FIGURES " + json.dumps(one(options.one, options.text, options.steps, options.peers)), flush=True)
        return
    results: dict[str, Any] = {"machine": facts(), "text_bytes": options.text.stat().st_size, "cases": {}}
    for name in options.cases:
        results["cases"][name] = found = child(name, options)
        print(f"{name}: {json.dumps(found)[:1500]}", flush=True)
        options.results.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

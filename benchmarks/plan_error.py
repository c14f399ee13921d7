"""The error of the memory plan: against runs on a card that are on record, and against real steps on this CPU.

    python -m benchmarks.plan_error              # both; about two CPU minutes
    python -m benchmarks.plan_error --record     # against benchmarks/results/language_speed.json alone

On a CPU the plan is compared with the bytes that torch's own allocator reports (torch.profiler, profile_memory) during
the same step on real tensors: another source than the operations that the plan follows, kernels' workspaces included.
A CPU has none of a card's kernels, faster ways or segments: those stand in the record alone, which are six
configurations of one NVIDIA H200. Nothing was compared on an AMD card. Results: benchmarks/results/plan_error.json.

`share_of_peak` is derived, not measured: steps per second on record, times the plan's FLOPs of a step, by the peak of
trainer/telemetry/peaks.py.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402

from benchmarks.language_speed import CASES  # noqa: E402
from trainer.config.sections.decoder import AdapterConfig, DecoderConfig  # noqa: E402
from trainer.engine.loop import forward_backward, step_optimizer  # noqa: E402
from trainer.models.activation_checkpointing import checkpointed, layers  # noqa: E402
from trainer.run.memory_plan.program import Footprint, Program, batch, measured, training_of  # noqa: E402
from trainer.run.memory_plan.shapes import SHAPES  # noqa: E402
from trainer.tasks.language.network import build  # noqa: E402
from trainer.telemetry.peaks import find  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
GIB = 2**30
BIG, SMALL, GPT = "qwen2.5-1.5b", "qwen2.5-0.5b", "gpt2-124m"
PAIR = 826  # tokens of the longest answer of language_speed's pairs of up to 1,024
RECORDED: dict[str, Program] = {
    "lora-8": Program(raw=SHAPES[BIG], adapter="lora", rows=8, sequence=2048),
    "lora-8, nondeterministic": Program(raw=SHAPES[BIG], adapter="lora", rows=8, sequence=2048),
    "lora-4-full, nondeterministic": Program(
        raw=SHAPES[BIG], adapter="lora", rows=4, sequence=2048, checkpointing="full"
    ),
    "qlora-8": Program(raw=SHAPES[BIG], adapter="qlora", rows=8, sequence=2048),
    "full-0.5b": Program(raw=SHAPES[SMALL], rows=8, sequence=2048, wide_product=True),
    "dpo-0.5b": Program(raw=SHAPES[SMALL], adapter="lora", method="dpo", rows=8, sequence=PAIR),
    "scratch": Program(raw=SHAPES[GPT], rows=64, sequence=1024, wide_product=True),
    "scratch, nondeterministic": Program(raw=SHAPES[GPT], rows=64, sequence=1024, wide_product=True),
}
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "llama"},
    "qwen2": {"model_type": "qwen2", "tie_word_embeddings": True},
    "qwen3": {"model_type": "qwen3", "head_dim": 32},
    "mistral": {"model_type": "mistral", "sliding_window": 64},
}
COMMON = {
    "vocab_size": 2048,
    "hidden_size": 128,
    "intermediate_size": 384,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
GPT_SMALL = {
    **{"model_type": "gpt2", "vocab_size": 2048, "n_embd": 128, "n_layer": 4, "n_head": 4, "n_positions": 512},
    **{"attn_pdrop": 0.0, "resid_pdrop": 0.0, "embd_pdrop": 0.0},
}


def on_record() -> dict[str, Any]:
    """Return planned and measured GiB of each recorded run: of the whole process, its trials included."""
    record = json.loads((RESULTS / "language_speed.json").read_text(encoding="utf-8"))
    found: dict[str, Any] = {}
    for name, program in RECORDED.items():
        real = record["cases"][name]["peak_gib"]
        planned = measured(program)
        whole = max(peak.allocated for peak in planned.peaks.values()) / GIB
        step = planned.largest.allocated / GIB
        found[name] = {
            "measured_gib": real,
            "planned_gib": round(whole, 2),
            "error": round(whole / real - 1, 4),
            "planned_step_gib": round(step, 2),
            "error_of_step": round(step / real - 1, 4),
            "reserved_share": round(planned.reserved / planned.largest.allocated, 4),
            "share_of_peak": round(share_of_peak(name, planned, record["cases"][name]["tokens_per_second"]), 3),
        }
        print(f"{name}: {found[name]}", flush=True)
    return found


def share_of_peak(name: str, planned: Footprint, rate: float) -> float:
    """Return the share of the H200's peak that a recorded run reached.

    Args:
        name: a key of language_speed's CASES, whose rate counts each row of DPO as full; the step's FLOPs do not.
        rate: tokens per second on record.
    """
    case, peak = CASES[name], find("NVIDIA H200", "sm_90")
    narrow, wide = (peak.flops(dtype) if peak else None for dtype in ("bf16", "fp32"))
    if not narrow or not wide:
        raise ValueError("trainer/telemetry/peaks.py has no peak of the H200")
    steps = rate / (case.rows * case.tokens * (2 if case.method == "dpo" else 1))
    return steps * (planned.flops / narrow + planned.wide_flops / wide)


def configurations() -> list[tuple[str, Program]]:
    """Return small programs over method, number format, rows, length, checkpointing and family, named."""
    ways = [("none", "pretrain"), ("lora", "pretrain"), ("qlora", "pretrain"), ("lora", "dpo")]
    found = []
    for (adapter, method), precision, checkpointing in itertools.product(ways, ("fp32", "bf16"), ("off", "full")):
        found.append({"adapter": adapter, "method": method, "precision": precision, "checkpointing": checkpointing})
    more = [
        {"adapter": adapter, "rows": rows, "sequence": sequence}
        for adapter, (rows, sequence) in itertools.product(("none", "lora"), ((1, 128), (8, 128), (2, 512), (4, 384)))
    ]
    more += [{"adapter": "none", "pieces": 2}, {"adapter": "lora", "pieces": 3}]
    more += [{"adapter": "none", "clip_norm": 1.0}, {"adapter": "lora", "rank": 64}]
    base = Program(raw={**COMMON, **FAMILIES["qwen2"]}, rows=4, sequence=256, fast=False, card=False, precision="fp32")
    made = [(str(each), replace(base, **each)) for each in found + more]
    for name, raw in [*((name, {**COMMON, **own}) for name, own in FAMILIES.items()), ("gpt2", GPT_SMALL)]:
        for adapter, checkpointing in (("none", "off"), ("lora", "off"), ("lora", "full")):
            program = replace(base, raw=raw, adapter=adapter, checkpointing=checkpointing)
            made.append((f"{name} {adapter} {checkpointing}", program))
    return made


def error_on_host(program: Program) -> tuple[int, int]:
    """Return the bytes at the largest moment of a step, planned and as the CPU's allocator reports them."""
    return measured(program).largest.allocated, real_peak(program)


def real_peak(program: Program) -> int:
    """Return the bytes at the largest moment of a real step: what was there, and what the allocator reports."""
    torch.manual_seed(0)
    adapter = AdapterConfig(adapter=program.adapter, lora_rank=program.rank)
    model = build(program.raw, DecoderConfig(adapter=adapter), program.method, seed=0)
    if program.method != "dpo":
        model.drop_ignored = False  # type: ignore[assignment]
    model = checkpointed(model, program.checkpointing, layers(model))
    training = training_of(program, model)
    take_step(training, program)  # the optimizer makes its states
    before = sum(each.nbytes for each in held(training))
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        take_step(training, program)
    now = peak = 0
    for event in sorted(seen.profiler.kineto_results.events(), key=lambda each: each.start_ns()):
        if event.name() == "[memory]":
            now += event.nbytes()
            peak = max(peak, now)
    return before + peak


def held(training: Any) -> list[torch.Tensor]:
    """Return the storages of weights, buffers and the optimizer's states, each once."""
    states = [value for state in training.optimizer.state.values() for value in state.values()]
    tensors = [*training.model.parameters(), *training.model.buffers(), *(each for each in states)]
    tensors += [training.state.losses, training.state.weights]
    return list({each.untyped_storage().data_ptr(): each for each in tensors if torch.is_tensor(each)}.values())


def take_step(training: Any, program: Program) -> None:
    """Take one step as the plan does, on real tensors."""
    inputs = batch(program)
    targets = next(iter(inputs.values()))
    forward_backward(training, inputs, targets, rows=len(targets), weight=torch.ones(()))
    step_optimizer(training)
    training.optimizer.zero_grad()


def on_host() -> dict[str, Any]:
    """Return the errors of all small configurations, their median and the worst."""
    found = {}
    for name, program in configurations():
        planned, real = error_on_host(program)
        found[name] = {"planned": planned, "measured": real, "error": round(planned / real - 1, 4)}
        print(f"{name}: {found[name]}", flush=True)
    errors = [abs(each["error"]) for each in found.values()]
    summary = {"configurations": len(found), "median": statistics.median(errors), "worst": max(errors)}
    print(summary, flush=True)
    return {**summary, "each": found}


def main() -> None:
    """Compare, print a line each, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--host", action="store_true")
    parser.add_argument("--results", type=Path, default=RESULTS / "plan_error.json")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    path = asked.results
    results = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    results["machine"] = {"torch": torch.__version__, "record": "language_speed.json: NVIDIA H200"}
    if not asked.host:
        results["on record"] = on_record()
    if not asked.record:
        results["on a CPU"] = on_host()
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

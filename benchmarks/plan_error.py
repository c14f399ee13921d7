"""The error of the memory plan: against runs on a card that are on record, and against real steps on this CPU.

    python -m benchmarks.plan_error              # both; about two CPU minutes
    python -m benchmarks.plan_error --record     # against benchmarks/results/language_speed.json alone
    python -m benchmarks.plan_error --card       # against benchmarks/results/plan_card*.json alone: steps on a card
    python -m benchmarks.plan_error --peft       # methods by peft, against real steps on this CPU alone

On a CPU the plan is compared with the bytes that torch's own allocator reports (torch.profiler, profile_memory) during
the same step on real tensors: another source than the operations that the plan follows, kernels' workspaces included.
A CPU has none of a card's kernels, faster ways or segments: those are in what was measured on one NVIDIA H200, by
benchmarks.language_speed and benchmarks.plan_card. Nothing was compared on an AMD card. A run that ran out of memory
and took smaller pieces counts for the verdict (does it fit?) and not for the error. Results:
benchmarks/results/plan_error.json. `error_as_chosen` plans with the ways that a run's trials chose: its difference from
`error` is that of the choices.

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
from benchmarks.plan_as_chosen import as_chosen, differs  # noqa: E402
from benchmarks.plan_card_cases import Configuration  # noqa: E402
from trainer.data.tokens.labels import PADDING  # noqa: E402
from trainer.engine.loop import forward_backward, step_optimizer  # noqa: E402
from trainer.models.activation_checkpointing import checkpointed, layers  # noqa: E402
from trainer.run.memory_plan.cards import CONTEXT, Card  # noqa: E402
from trainer.run.memory_plan.fit import Fit, exact_fit  # noqa: E402
from trainer.run.memory_plan.program import Footprint, batch, measured, settings_of, training_of  # noqa: E402
from trainer.run.memory_plan.shapes import SHAPES, Program  # noqa: E402
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
BY_PEFT: dict[str, dict[str, Any]] = {
    "dora": {"peft_type": "LORA", "use_dora": True, "r": 16, "target_modules": "all-linear"},
    "adalora": {
        **{"peft_type": "ADALORA", "init_r": 12, "target_r": 8, "tinit": 50, "tfinal": 100, "deltaT": 10},
        **{"target_modules": "all-linear", "total_step": 1000},
    },
    "prompt tuning": {"peft_type": "PROMPT_TUNING", "num_virtual_tokens": 16},
    "p-tuning": {"peft_type": "P_TUNING", "num_virtual_tokens": 16, "encoder_hidden_size": 64},
    "ia3": {"peft_type": "IA3"},
    "vera": {"peft_type": "VERA", "r": 16, "target_modules": "all-linear"},
    "loha": {"peft_type": "LOHA", "r": 8, "target_modules": "all-linear"},
    "lokr": {"peft_type": "LOKR", "r": 8, "target_modules": "all-linear"},
    "oft": {"peft_type": "OFT", "oft_block_size": 16, "target_modules": "all-linear"},
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


def on_card(again: str | None = None) -> dict[str, Any]:
    """Return planned and measured bytes and seconds of each run of benchmarks.plan_card.

    Args:
        again: name of the results of runs that were made again, which alone count; None for all of plan_card.json.
    """
    raw = json.loads((RESULTS / (again or "plan_card.json")).read_text(encoding="utf-8"))
    each = {name: one_on_card(found) for name, found in raw["runs"].items() if "failed" not in found}
    each |= {name: refused_on_card(name, found) for name, found in raw["runs"].items() if refused(found)}
    return {"machine": raw["machine"], **summary_of(each), "each": each}


def summary_of(each: dict[str, Any]) -> dict[str, Any]:
    """Return median and worst of all runs, and of those whose blocks were computed as the plan expected.

    Args:
        each: entries of `one_on_card` by name.
    """
    counted = {name: one for name, one in each.items() if "error" in one}
    chosen = [one for name, one in counted.items() if one["chosen"]["blocks"] != "plain" or "--fast off" in name]
    limited = [one for one in each.values() if one["limit_gib"]]
    return {
        **_errors(list(counted.values())),
        "with the run's choices": _errors([{**one, "error": one["error_as_chosen"]} for one in counted.values()]),
        "blocks as planned": _errors(chosen),
        "verdicts": len(limited),
        "verdicts_right": sum(one["fits"] == one["did_fit"] for one in limited),
        "seconds_in_range": sum(one["seconds_in_range"] for one in counted.values()),
    }


def _errors(counted: list[dict[str, Any]]) -> dict[str, Any]:
    errors = [abs(one["error"]) for one in counted]
    return {
        "configurations": len(counted),
        "median": statistics.median(errors),
        "worst": max(errors),
        "within_3_percent": sum(error <= 0.03 for error in errors),
        "median_of_reserved": statistics.median(abs(one["error_of_reserved"]) for one in counted),
    }


def refused(found: dict[str, Any]) -> bool:
    """Return whether a run ended as one row did not fit."""
    return "one row at a time does not fit" in str(found.get("failed"))


def refused_on_card(name: str, found: dict[str, Any]) -> dict[str, Any]:
    """Return the verdict on a run that did not fit with one row."""
    from benchmarks.plan_card_cases import CONFIGURATIONS

    one = CONFIGURATIONS[name]
    planned = exact_fit(program_of(one, one.sequence), h200(one.limit))
    print(f"{name}: fits {planned.fits}, did not fit", flush=True)
    return {"limit_gib": one.limit, "planned_gib": _gib(planned.need), "fits": planned.fits, "did_fit": False}


def one_on_card(found: dict[str, Any]) -> dict[str, Any]:
    """Return one run's errors and verdict.

    Args:
        found: its entry of plan_card.json.
    """
    one = Configuration(**found["configuration"])
    planned = exact_fit(program_of(one, found["shape_of_batch"][-1]), h200(one.limit))
    program, largest, did_fit = planned.program, planned.footprint.largest, not found["halvings"]
    verdict = {"limit_gib": one.limit, "fits": planned.fits, "did_fit": did_fit, "planned_gib": _gib(planned.need)}
    if not did_fit:
        return verdict
    assert planned.rate is not None
    low, high = (program.tokens / rate for rate in reversed(planned.rate))
    seconds, real = found["seconds_a_step"], found["peak"]
    made = {
        **verdict,
        "planned_gib": _gib(largest.allocated),
        "measured_gib": _gib(real["allocated"]),
        "error": round(largest.allocated / real["allocated"] - 1, 4),
        "error_as_chosen": round(as_the_run(planned, found["chosen"]) / real["allocated"] - 1, 4),
        "error_of_reserved": round(planned.need / real["reserved"] - 1, 4),
        "error_of_trials": round(planned.footprint.peaks["trials"].allocated / real_trials(found) - 1, 4),
        "seconds": seconds,
        "planned_seconds": [round(low, 4), round(high, 4)],
        "seconds_in_range": low <= seconds <= high,
        "chosen": found["chosen"],
    }
    print(f"{one.shape} {one.adapter} {one.rows} x {one.sequence}: {made}", flush=True)
    return made


def as_the_run(planned: Fit, chosen: dict[str, str]) -> int:
    """Return the bytes at the largest moment with the ways that the run chose."""
    program = planned.program
    if not program.fast or not differs(program, chosen):
        return planned.footprint.largest.allocated
    with as_chosen(chosen):
        return measured(program).largest.allocated


def real_trials(found: dict[str, Any]) -> int:
    """Return the bytes at the largest moment of a run's trials, 1 where there were none."""
    return max(1, int(found["trials"]["allocated"]))


def _gib(size: float) -> float:
    return round(size / GIB, 3)


def h200(limit: int) -> Card:
    """Return the card with so many GiB for tensors; 0 for all."""
    memory = (limit or 139) * GIB + CONTEXT
    return Card(
        name="NVIDIA H200",
        arch="sm_90",
        memory=memory,
        why="limited",
        fused="yes",
        precision="bf16",
        peak=find("NVIDIA H200", "sm_90"),
    )


def program_of(one: Configuration, sequence: int) -> Program:
    """Return what is planned of a configuration.

    Args:
        one: what was run.
        sequence: tokens of its longest row; pairs are filled up to that.
    """
    rows = one.micro_batch or one.rows
    return Program(
        raw=one.raw,
        adapter=one.adapter,
        method=one.method,
        precision=one.precision,
        rows=rows,
        sequence=sequence,
        checkpointing=one.checkpointing,
        fast=one.fast != "off",
        pieces=-(-one.rows // rows),
        attention=h200(one.limit).attention(flag=False, precision=one.precision),
        packed=one.packed,
        wide_product=True,
        units=132,
    )


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


def by_peft() -> list[tuple[str, Program]]:
    """Return small programs of methods by peft, over family, shape, number format and checkpointing, named."""
    base = Program(raw={**COMMON, **FAMILIES["qwen2"]}, rows=4, sequence=256, fast=False, card=False, precision="fp32")
    bf16 = {"precision": "bf16", "checkpointing": "full"}
    ways: list[dict[str, Any]] = [{}, {"method": "dpo", "rows": 2}, bf16, {"rows": 2, "sequence": 512, "pieces": 2}]
    found = [(f"{name} {how}", {"peft": peft, **how}) for (name, peft), how in itertools.product(BY_PEFT.items(), ways)]
    for family, name in itertools.product(("llama", "qwen3"), ("dora", "adalora", "prompt tuning")):
        found.append((f"{family} {name}", {"peft": BY_PEFT[name], "raw": {**COMMON, **FAMILIES[family]}}))
    return [(name, replace(base, adapter="peft", **how)) for name, how in found]


def error_on_host(program: Program) -> tuple[int, int]:
    """Return the bytes at the largest moment of a step, planned and as the CPU's allocator reports them."""
    return measured(program).largest.allocated, real_peak(program)


def real_peak(program: Program) -> int:
    """Return the bytes at the largest moment of a real step: what was there, and what the allocator reports."""
    torch.manual_seed(0)
    model = build(program.raw, settings_of(program), program.method, seed=0, peft=program.peft)
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
    if program.peft is not None and "documents" in inputs:  # of rows that are all full transformers makes no mask
        inputs["documents"][..., -1] = PADDING
    targets = next(iter(inputs.values()))
    forward_backward(training, inputs, targets, rows=len(targets), weight=torch.ones(()))
    step_optimizer(training)
    training.optimizer.zero_grad()


def on_host(programs: list[tuple[str, Program]]) -> dict[str, Any]:
    """Return the errors of small configurations, their median and the worst."""
    found = {}
    for name, program in programs:
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
    parser.add_argument("--card", action="store_true")
    parser.add_argument("--peft", action="store_true")
    parser.add_argument("--results", type=Path, default=RESULTS / "plan_error.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    path = options.results
    results = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    results["machine"] = {"torch": torch.__version__, "record": "language_speed.json: NVIDIA H200"}
    every = not (options.host or options.record or options.card or options.peft)
    if options.record or every:
        results["on record"] = on_record()
    if options.card or every:
        results["on a card"] = on_card()
        results["on a card, made again"] = on_card("plan_card_again.json")
    if options.host or every:
        results["on a CPU"] = on_host(configurations())
    if options.host or options.peft or every:
        results["on a CPU, methods by peft"] = on_host(by_peft())
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""The cases that benchmarks.language_speed measures, with their random weights and rows."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from trainer.run.memory_plan.shapes import SHAPES as KNOWN

SHAPES: dict[str, dict[str, Any]] = {
    "qwen2.5-1.5b": KNOWN["qwen2.5-1.5b"],
    "qwen2.5-0.5b": KNOWN["qwen2.5-0.5b"],
    "qwen2.5-7b": KNOWN["qwen2.5-7b"],
    "llama-3.1-8b": KNOWN["llama-3.1-8b"],
    "tiny": KNOWN["qwen2.5-0.5b"]
    | {"vocab_size": 320, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4},
    "gpt2-124m": KNOWN["gpt2-124m"] | {"activation_function": "gelu"},  # nanoGPT's
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One run: model, rows of a step, tokens of a row, and further flags of `train`; expected: GiB of the process."""

    shape: str
    rows: int
    tokens: int
    expected: int = 32
    flags: tuple[str, ...] = ()
    method: str = "pretrain"
    settings: dict[str, Any] = field(default_factory=dict)


LORA = ("--adapter", "lora", "--lora-rank", "16")
QLORA = ("--adapter", "qlora", "--lora-rank", "16")
FULL = ("--activation-checkpointing", "full")
AWAY = ("--activation-checkpointing", "offloaded")
FREE = ("--fast", "nondeterministic")
ONE, TWOS, FOURS, EIGHTS = (("--micro-batch", str(rows)) for rows in (1, 2, 4, 8))
BIG, SMALL, GPT, SEVEN = "qwen2.5-1.5b", "qwen2.5-0.5b", "gpt2-124m", "qwen2.5-7b"
CASES: dict[str, Case] = {
    "lora-8": Case(shape=BIG, rows=8, tokens=2048, flags=LORA),
    "lora-8, nondeterministic": Case(shape=BIG, rows=8, tokens=2048, flags=(*LORA, *FREE)),
    "lora-8-plain": Case(shape=BIG, rows=8, tokens=2048, flags=(*LORA, "--fast", "off")),
    "lora-16": Case(shape=BIG, rows=16, tokens=2048, flags=LORA),
    "lora-4-full": Case(shape=BIG, rows=4, tokens=2048, flags=(*LORA, *FULL)),
    "lora-4-full, nondeterministic": Case(shape=BIG, rows=4, tokens=2048, flags=(*LORA, *FULL, *FREE)),
    "lora-8-full, nondeterministic": Case(shape=BIG, rows=8, tokens=2048, flags=(*LORA, *FULL, *FREE, *EIGHTS)),
    "lora-8, at TRL's memory": Case(shape=BIG, rows=8, tokens=2048, expected=9, flags=(*LORA, *FREE, *ONE)),
    "lora-8, at TRL's memory, deterministic": Case(shape=BIG, rows=8, tokens=2048, expected=9, flags=(*LORA, *ONE)),
    "lora-8, at half TRL's memory": Case(shape=BIG, rows=8, tokens=2048, expected=7, flags=(*LORA, *FULL, *FREE, *ONE)),
    "lora-8-full": Case(shape=BIG, rows=8, tokens=2048, flags=(*LORA, *FULL)),
    "lora-8-selective": Case(shape=BIG, rows=8, tokens=2048, flags=(*LORA, "--activation-checkpointing", "selective")),
    "qlora-8": Case(shape=BIG, rows=8, tokens=2048, flags=QLORA),
    "qlora-8, nondeterministic": Case(shape=BIG, rows=8, tokens=2048, flags=(*QLORA, *FREE)),
    "qlora-8, at TRL's memory": Case(shape=BIG, rows=8, tokens=2048, expected=8, flags=(*QLORA, *FULL, *FREE, *FOURS)),
    "qlora-8-full, nondeterministic": Case(shape=BIG, rows=8, tokens=2048, flags=(*QLORA, *FULL, *FREE, *EIGHTS)),
    "qlora-7b": Case(shape=SEVEN, rows=8, tokens=2048, expected=24, flags=(*QLORA, *FULL, *FREE, *EIGHTS)),
    "lora-7b": Case(shape=SEVEN, rows=8, tokens=2048, expected=32, flags=(*LORA, *FULL, *FREE, *EIGHTS)),
    "qlora-8, one row at a time": Case(shape=BIG, rows=8, tokens=2048, expected=8, flags=(*QLORA, *FREE, *ONE)),
    "qlora-8, at half TRL's memory": Case(
        shape=BIG, rows=8, tokens=2048, expected=6, flags=(*QLORA, *FULL, *FREE, *TWOS)
    ),
    "full-0.5b": Case(shape=SMALL, rows=8, tokens=2048),
    "full-0.5b, nondeterministic": Case(shape=SMALL, rows=8, tokens=2048, flags=FREE),
    "full-0.5b, at TRL's memory": Case(shape=SMALL, rows=8, tokens=2048, expected=12, flags=(*FULL, *FREE, *EIGHTS)),
    "full-1.5b": Case(shape=BIG, rows=8, tokens=2048, expected=50),
    "full-1.5b, at TRL's memory": Case(shape=BIG, rows=8, tokens=2048, expected=29, flags=(*FULL, *FREE, *EIGHTS)),
    "dpo-0.5b": Case(shape=SMALL, rows=8, tokens=1024, flags=LORA, method="dpo"),
    "dpo-0.5b, at TRL's memory": Case(
        shape=SMALL, rows=8, tokens=1024, expected=7, flags=(*LORA, *FULL, *FREE, *EIGHTS), method="dpo"
    ),
    "dpo-0.5b, at half TRL's memory": Case(
        shape=SMALL, rows=8, tokens=1024, expected=7, flags=(*LORA, *FULL, *FREE, *TWOS), method="dpo"
    ),
    "kto-0.5b": Case(shape=SMALL, rows=8, tokens=1024, flags=LORA, method="kto"),
    "kto-0.5b, at TRL's memory": Case(
        shape=SMALL, rows=8, tokens=1024, expected=7, flags=(*LORA, *FULL, *FREE), method="kto"
    ),
    "dpo-1.5b": Case(shape=BIG, rows=4, tokens=1024, flags=LORA, method="dpo"),
    "lora-1.5b, a row of 32,768": Case(shape=BIG, rows=1, tokens=32768, flags=(*LORA, *FULL, *FREE)),
    "lora-7b, a row of 32,768": Case(shape=SEVEN, rows=1, tokens=32768, expected=40, flags=(*LORA, *FULL, *FREE)),
    "lora-1.5b, a row of 32,768, offloaded": Case(shape=BIG, rows=1, tokens=32768, flags=(*LORA, *AWAY, *FREE)),
    "qlora-8b, a row of 131,072, offloaded": Case(
        shape="llama-3.1-8b", rows=1, tokens=2**17, expected=34, flags=(*QLORA, *AWAY, *FREE)
    ),
    "full-0.5b, a row of 32,768": Case(shape=SMALL, rows=1, tokens=32768, flags=(*FULL, *FREE)),
    "tiny-qlora": Case(shape="tiny", rows=4, tokens=64, flags=QLORA),
    "tiny": Case(shape="tiny", rows=4, tokens=64, flags=LORA),  # the mechanics, on a machine without a card
    "tiny-dpo": Case(shape="tiny", rows=4, tokens=512, flags=LORA, method="dpo"),
    "tiny-kto": Case(shape="tiny", rows=4, tokens=512, flags=LORA, method="kto"),
    "scratch": Case(shape=GPT, rows=64, tokens=1024),
    "scratch, nondeterministic": Case(shape=GPT, rows=64, tokens=1024, flags=FREE),
    "scratch-plain": Case(shape=GPT, rows=64, tokens=1024, flags=("--fast", "off")),
}
# What TRL's trainers and HF Trainer do, as arguments of benchmarks.trl_speed.
PEERS: dict[str, list[str]] = {
    "TRL, its defaults (full checkpointing), LoRA, batch 8": ["lora", "1.5b", "8"],
    "TRL with Liger, full checkpointing, LoRA, batch 16": ["lora", "1.5b", "16", "liger"],
    "TRL with Liger, no checkpointing, LoRA, batch 8": ["lora", "1.5b", "8", "liger", "nockpt"],
    "HF Trainer, peft and Liger, no checkpointing, LoRA, batch 8": ["lora", "1.5b", "8", "hf", "liger"],
    "TRL, its defaults, QLoRA by bitsandbytes, batch 8": ["qlora", "1.5b", "8"],
    "TRL, its defaults, QLoRA by bitsandbytes, 7B, batch 8": ["qlora", "7b", "8"],
    "TRL, its defaults, LoRA, 7B, batch 8": ["lora", "7b", "8"],
    "TRL, its defaults, full, 0.5B, batch 8": ["full", "0.5b", "8"],
    "TRL, its defaults, full, 1.5B, batch 8": ["full", "1.5b", "8"],
    "TRL, its defaults, DPO with LoRA, 0.5B, 8 pairs": ["dpo", "0.5b", "8"],
    "TRL, its defaults, KTO with LoRA, 0.5B, 8 answers": ["kto", "0.5b", "8"],
}
# What unsloth does, as arguments of benchmarks.unsloth_speed.
UNSLOTH: dict[str, list[str]] = {
    "unsloth, its defaults, LoRA, batch 8": ["lora", "1.5b", "8"],
    "unsloth, full checkpointing, LoRA, batch 8": ["lora", "1.5b", "8", "ckpt"],
    "unsloth, no checkpointing, LoRA, batch 8": ["lora", "1.5b", "8", "nockpt"],
    "unsloth, no checkpointing, LoRA, batch 16": ["lora", "1.5b", "16", "nockpt"],
    "unsloth, no checkpointing, LoRA, batch 8, a plain loop": ["lora", "1.5b", "8", "nockpt", "loop"],
    "unsloth, its defaults, QLoRA, batch 8": ["qlora", "1.5b", "8"],
    "unsloth, no checkpointing, QLoRA, batch 8": ["qlora", "1.5b", "8", "nockpt"],
}
PEER_GIB = {name: 12 if "its defaults" in name else 42 for name in PEERS}  # of a peer's process, generously
PEER_GIB |= {name: 36 for name in PEERS if "7B" in name}
PEER_GIB["TRL, its defaults, full, 1.5B, batch 8"] = 29
PEER_GIB |= {name: 70 if "16" in name else 36 if "no checkpointing" in name else 10 for name in UNSLOTH}
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
    if case.method not in ("dpo", "kto"):
        (folder / "data.txt").write_bytes(letters.numpy().tobytes())
        return folder / "data.txt"
    texts = (bytes(row.tolist()).decode() for row in letters)
    rows = [answered(text, number, case) for number, text in enumerate(texts)]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "data.jsonl"


def answered(text: str, number: int, case: Case) -> dict[str, Any]:
    """Return a row of a prompt of 100 letters: with two answers, or with one that is good or bad in turn."""
    half = case.tokens - 200
    if case.method == "dpo":
        return {"prompt": text[:100], "chosen": text[100:half], "rejected": text[50 : half - 50]}
    return {"prompt": text[:100], "completion": text[100:half], "label": number % 2 == 0}


def settings_of(case: Case, folder: Path, steps: int, *more: str) -> Any:
    """Return the configuration as the command line would make it."""
    from trainer.cli import parse
    from trainer.config.recipe import resolve

    given = parse(["train", *arguments(case, folder, steps, *more)])
    return resolve({name: value for name, value in given.items() if name != "command"})


def arguments(case: Case, folder: Path, steps: int, *more: str) -> list[str]:
    """Return the arguments of `train`."""
    precision = [] if "--precision" in (*case.flags, *more) else ["--precision", "bf16"]
    # a batch of TRL's is one group of KTO
    batch = (
        ["--batch-size", str(case.rows)]
        if case.method != "kto"
        else ["--batch-size", "1", "--kto-group", str(case.rows)]
    )
    return [
        *["--task", "lm", "--model", str(base_folder(case.shape, folder)), "--output", str(folder), "--run", "timed"],
        *["--data", str(rows_file(case, folder, steps)), "--sequence", str(case.tokens), *batch],
        *["--max-steps", str(steps), "--checkpoint-every", "0", "--validation-share", "0.02"],
        *["--method", case.method, "--weight-decay", "0", *precision, *case.flags, *more],
    ]

"""The configurations that benchmarks.plan_card measures, with their random weights and rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from trainer.run.memory_plan.program import DEPTH
from trainer.run.memory_plan.shapes import SHAPES

STEPS = 4  # of a run
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


def _later() -> Iterator[tuple[str, Configuration]]:
    """Yield configurations that were planned before any of them was run; what was mended before was seen on others."""
    gpt, small, big, tiny, llama = "gpt2-124m", "qwen2.5-0.5b", "qwen2.5-1.5b", "tinyllama-1.1b", "llama-3.2-3b"
    smol, smaller, three, gemma = "smollm2-1.7b", "smollm2-360m", "qwen3-1.7b", "gemma-2b"
    of = Configuration
    each = [
        of(shape="smollm2-135m", sequence=2048, rows=4, expected=14),
        of(shape=smaller, sequence=1024, rows=8, checkpointing="full", expected=10),
        of(shape=smaller, adapter="lora", sequence=4096, rows=4, expected=20),
        of(shape=smol, adapter="lora", sequence=2048, rows=4, checkpointing="selective", expected=18),
        of(shape=smol, adapter="qlora", sequence=512, rows=8, expected=12),
        of(shape=tiny, sequence=2048, rows=2, limit=24, expected=24),
        of(shape=tiny, adapter="lora", method="sft", sequence=1024, rows=4, expected=12),
        of(shape=tiny, adapter="qlora", sequence=4096, rows=2, checkpointing="full", expected=10),
        of(shape=three, adapter="lora", sequence=2048, rows=2, expected=16),
        of(shape=three, adapter="lora", method="dpo", sequence=1024, rows=2, checkpointing="full", expected=10),
        of(shape=llama, adapter="qlora", sequence=2048, rows=2, checkpointing="full", limit=16, expected=16),
        of(shape=llama, adapter="lora", sequence=4096, rows=1, checkpointing="full", expected=14),
        of(shape=gemma, adapter="lora", sequence=1024, rows=2, expected=16),
        of(shape=gemma, adapter="qlora", sequence=2048, rows=1, checkpointing="full", expected=12),
        of(shape=gpt, sequence=512, rows=48, expected=16),
        of(shape=gpt, adapter="lora", precision="fp32", sequence=512, rows=4, expected=8),
        of(shape=gpt, sequence=1024, rows=12, micro_batch=4, expected=8),
        of(shape=small, sequence=1536, rows=3, expected=16),
        of(shape=small, adapter="lora", method="dpo", sequence=768, rows=6, micro_batch=2, expected=10),
        of(shape=small, adapter="qlora", method="sft", sequence=1024, rows=8, expected=16),
        of(shape=big, adapter="lora", sequence=3072, rows=3, checkpointing="full", expected=10),
        of(shape=big, sequence=512, rows=2, checkpointing="full", limit=28, expected=28),
        of(shape="qwen3-4b", adapter="qlora", sequence=2048, rows=1, checkpointing="full", expected=14),
        of(shape="llama-2-7b", layers=4, adapter="lora", sequence=4096, rows=2, expected=16),
        of(shape="mistral-7b", layers=6, adapter="qlora", sequence=1024, rows=4, expected=14),
    ]
    for one in each:
        yield name_of(one), one


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


LATER: dict[str, Configuration] = dict(_later())
CONFIGURATIONS: dict[str, Configuration] = {**dict(_known()), **LATER}


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
        *["--fast", one.fast, "--gates", "off", *more],  # gates are processes of their own: no memory of the run's
    ]
    given = parse(["train", *arguments])
    return resolve({name: value for name, value in given.items() if name != "command"})

"""unsloth's models in TRL's trainer on the shapes of benchmarks.language_speed: random weights and rows, bf16.

    python -m benchmarks.unsloth_speed lora 1.5b 8                # its default: checkpoints that wait in host memory
    python -m benchmarks.unsloth_speed lora 1.5b 8 ckpt           # full checkpointing on the card
    python -m benchmarks.unsloth_speed lora 1.5b 8 nockpt         # none
    python -m benchmarks.unsloth_speed qlora 1.5b 8               # NF4 by bitsandbytes
    python -m benchmarks.unsloth_speed lora 1.5b 8 loop           # its model in a plain loop, without TRL's trainer

Measured as benchmarks.trl_speed measures TRL: steps WARM to the end, AdamW of torch, fused, four workers for the rows.
Needs unsloth with what it requires but xformers (attention is then torch's own); none is part of this repository's
locks. It patches TRL and transformers where it is imported, so it comes first.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "UNSLOTH_DISABLE_STATISTICS": "1"}

import torch
import unsloth  # type: ignore

from benchmarks.alone import Alone
from benchmarks.trl_speed import (
    ALPHA,
    KNOWN,
    RANK,
    STEPS,
    TARGETS,
    TOKENS,
    WARM,
    common_settings,
    rows,
    tokenizer,
)

CHECKPOINTING: dict[str, Any] = {"ckpt": True, "nockpt": False}


def folder_of(shape: str, folder: Path) -> Path:
    """Write a model of random weights in bf16 with its tokenizer, as transformers does."""
    import transformers

    auto: Any = transformers.AutoModelForCausalLM
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = auto.from_config(transformers.Qwen2Config(**KNOWN[shape]), dtype=torch.bfloat16)
    model.save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    del model
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    return folder


def network(what: str, shape: str, flags: list[str], folder: Path) -> tuple[Any, Any]:
    """Return unsloth's model with LoRA adapters, and its tokenizer."""
    kind: Any = unsloth.FastLanguageModel
    model, words = kind.from_pretrained(
        model_name=str(folder_of(shape, folder)),
        max_seq_length=TOKENS,
        dtype=torch.bfloat16,
        load_in_4bit=what == "qlora",
        local_files_only=True,
    )
    checkpointing = next((CHECKPOINTING[flag] for flag in flags if flag in CHECKPOINTING), "unsloth")
    adapted = kind.get_peft_model(
        model,
        r=RANK,
        lora_alpha=ALPHA,
        target_modules=TARGETS,
        lora_dropout=0,
        bias="none",
        use_gradient_checkpointing=checkpointing,
        random_state=0,
    )
    return adapted, words


class Marks:
    """The clock after WARM and after the last step; between them the card is held alone."""

    def __init__(self, alone: Alone) -> None:
        self.alone, self.at = alone, dict[int, float]()

    def after(self, step: int) -> None:
        """Take the clock where a step is one of the two."""
        if step == WARM:
            self.alone.enter()
        if step in (WARM, STEPS):
            torch.cuda.synchronize()
            self.at[step] = time.perf_counter()
        if step == STEPS:
            self.alone.leave()

    def figures(self, batch: int) -> dict[str, Any]:
        """Return the rate, and the peak of the whole process."""
        step = (self.at[STEPS] - self.at[WARM]) / (STEPS - WARM)
        peak = round(torch.cuda.max_memory_allocated() / 2**30, 2)
        return {"tokens_per_second": round(batch * TOKENS / step), "step_s": round(step, 4), "peak_gib": peak}


def by_trainer(model: Any, words: Any, data: Any, settings: dict[str, Any], marks: Marks) -> None:
    """Train by TRL's SFTTrainer, as unsloth patches it."""
    from transformers import TrainerCallback
    from trl import SFTConfig, SFTTrainer  # type: ignore

    class AtSteps(TrainerCallback):  # type: ignore[misc]  # its types are not read
        """Hands the steps on."""

        def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            marks.after(state.global_step)

    SFTTrainer(
        model=model,
        # two batches a step are its default, which are not counted here
        args=SFTConfig(max_length=TOKENS, dataset_num_proc=1, gradient_accumulation_steps=1, **settings),
        train_dataset=data,
        processing_class=words,
        callbacks=[AtSteps()],
    ).train()


def by_loop(model: Any, data: Any, batch: int, marks: Marks) -> None:
    """Train in a plain loop."""
    tokens = torch.tensor(data["input_ids"]).cuda().split(batch)
    optimizer = torch.optim.AdamW([one for one in model.parameters() if one.requires_grad], lr=1e-4, fused=True)
    model.train()
    for step in range(1, STEPS + 1):
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(input_ids=tokens[step - 1], labels=tokens[step - 1]).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        marks.after(step)


def measured(what: str, shape: str, batch: int, flags: list[str], alone: Alone) -> dict[str, Any]:
    """Return the figures of one case."""
    with tempfile.TemporaryDirectory() as folder:
        model, words = network(what, shape, flags, Path(folder))
        data, marks = rows(what, shape, batch * STEPS), Marks(alone)
        if "loop" in flags:
            by_loop(model, data, batch, marks)
        else:
            settings = common_settings(batch, [flag for flag in flags if flag == "nockpt"], folder)
            by_trainer(model, words, data, settings, marks)
    import trl

    return marks.figures(batch) | {"unsloth": unsloth.__version__, "trl": trl.__version__}


def main() -> None:
    """Measure one case and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("lora", "qlora"))
    parser.add_argument("shape", choices=(*KNOWN,))
    parser.add_argument("batch", type=int)
    parser.add_argument("flags", nargs="*")
    parser.add_argument("--alone", type=Path)
    options = parser.parse_args()
    found = measured(options.what, options.shape, options.batch, options.flags, Alone(options.alone))
    print("FIGURES " + json.dumps(found), flush=True)


if __name__ == "__main__":
    main()

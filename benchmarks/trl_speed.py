"""TRL's trainers on the shapes of benchmarks.language_speed: its own defaults, random weights and rows, bf16.

    python -m benchmarks.trl_speed lora 1.5b 8                    # TRL's defaults: full checkpointing
    python -m benchmarks.trl_speed lora 1.5b 8 liger nockpt       # with Liger's kernels, without checkpointing
    python -m benchmarks.trl_speed lora 1.5b 8 hf liger           # transformers' Trainer with peft
    python -m benchmarks.trl_speed qlora|full 0.5b|1.5b|7b 8
    python -m benchmarks.trl_speed dpo 0.5b 8                     # pairs of 100 tokens and answers of 724
    python -m benchmarks.trl_speed kto 0.5b 8                     # prompts of 100 tokens with one answer of 724

Weights are bf16 below adapters and fp32 for full tuning, as TRL loads them; AdamW is torch's fused one and four workers
bring the rows, which is more than the defaults have. Steps WARM to the end are timed. Needs trl, datasets, peft,
for `liger` liger-kernel and for `qlora` bitsandbytes; none is part of this repository's locks.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from benchmarks.alone import Alone
from benchmarks.language_speed_cases import SHAPES
from trainer.models.fast.proof import wait

WARM, STEPS, TOKENS = 8, 20, 2048
PROMPT, ANSWER = 100, 724
RANK, ALPHA, WORDS = 16, 32, 300
KNOWN = {
    "0.5b": SHAPES["qwen2.5-0.5b"],
    "1.5b": SHAPES["qwen2.5-1.5b"],
    "7b": SHAPES["qwen2.5-7b"],
    "tiny": SHAPES["tiny"],
}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def network(what: str, shape: str) -> Any:
    """Return a model of random weights on the card; for qlora its linear layers in NF4."""
    import transformers

    auto: Any = transformers.AutoModelForCausalLM
    config = transformers.Qwen2Config(**KNOWN[shape])
    torch.manual_seed(0)
    dtype = torch.float32 if what == "full" else torch.bfloat16
    with torch.device(DEVICE):
        model = auto.from_config(config, dtype=dtype, attn_implementation="sdpa")
    if what != "qlora":
        return model
    kind: Any = transformers.BitsAndBytesConfig
    quantized = kind(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16)
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        del model
        torch.cuda.empty_cache()
        return auto.from_pretrained(
            folder, quantization_config=quantized, dtype=torch.bfloat16, attn_implementation="sdpa", device_map={"": 0}
        )


def tokenizer() -> Any:
    """Return a tokenizer of one word a token."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    kind: Any = PreTrainedTokenizerFast
    words = {f"w{number}": number + 3 for number in range(WORDS)} | {"<unk>": 0, "<eos>": 1, "<pad>": 2}
    made = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return kind(tokenizer_object=made, eos_token="<eos>", pad_token="<pad>", unk_token="<unk>")


def rows(what: str, shape: str, count: int) -> Any:
    """Return random rows: token ids, or prompts with two answers as text."""
    from datasets import Dataset  # type: ignore

    if what not in ("dpo", "kto"):
        return Dataset.from_dict({"input_ids": torch.randint(0, KNOWN[shape]["vocab_size"], (count, TOKENS)).tolist()})
    words = torch.randint(0, WORDS, (count, PROMPT + 2 * ANSWER)).tolist()
    texts = [[f"w{number}" for number in row] for row in words]
    if what == "kto":
        return Dataset.from_dict(
            {
                "prompt": [" ".join(row[:PROMPT]) for row in texts],
                "completion": [" " + " ".join(row[PROMPT : PROMPT + ANSWER]) for row in texts],
                "label": [number % 2 == 0 for number in range(count)],
            }
        )
    return Dataset.from_dict(
        {
            "prompt": [" ".join(row[:PROMPT]) for row in texts],
            "chosen": [" " + " ".join(row[PROMPT : PROMPT + ANSWER]) for row in texts],
            "rejected": [" " + " ".join(row[PROMPT + ANSWER :]) for row in texts],
        }
    )


def common_settings(batch: int, flags: list[str], folder: str) -> dict[str, Any]:
    """Return the settings of a trainer that are not its defaults."""
    made: dict[str, Any] = {
        "output_dir": folder,
        "per_device_train_batch_size": batch,
        "max_steps": STEPS,
        "bf16": True,
        "logging_steps": 1000,
        "save_strategy": "no",
        "report_to": [],
        "dataloader_num_workers": 4,
        "optim": "adamw_torch_fused",
        "use_cpu": DEVICE == "cpu",  # the mechanics alone
    }
    if "liger" in flags:
        made["use_liger_kernel"] = True
    if "nockpt" in flags or "hf" in flags:
        made["gradient_checkpointing"] = False
    return made


def trainer(what: str, shape: str, batch: int, flags: list[str], folder: str, callback: Any) -> Any:
    """Return the trainer, ready to train."""
    from peft import LoraConfig

    adapter = None
    if what != "full":
        adapter = LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=TARGETS, task_type="CAUSAL_LM")
    settings, model, data = (
        common_settings(batch, flags, folder),
        network(what, shape),
        rows(what, shape, batch * STEPS),
    )
    if "hf" in flags:
        return plain_trainer(model, adapter, settings, data, callback)
    kind, config = trainer_of(what)
    length = 1024 if what in ("dpo", "kto") else TOKENS
    return kind(
        model=model,
        args=config(max_length=length, **settings),
        train_dataset=data,
        processing_class=tokenizer(),
        peft_config=adapter,
        callbacks=[callback],
    )


def trainer_of(what: str) -> tuple[Any, Any]:
    """Return TRL's trainer and its class of settings."""
    import trl  # type: ignore

    name = what.upper() if what in ("dpo", "kto") else "SFT"
    return getattr(trl, f"{name}Trainer"), getattr(trl, f"{name}Config")


def plain_trainer(model: Any, adapter: Any, settings: dict[str, Any], data: Any, callback: Any) -> Any:
    """Return transformers' own Trainer on a model with peft's adapter."""
    from peft import get_peft_model
    from transformers import Trainer, TrainingArguments

    listed = [{"input_ids": torch.tensor(row), "labels": torch.tensor(row)} for row in data["input_ids"]]
    adapted = get_peft_model(model, adapter)
    return Trainer(model=adapted, args=TrainingArguments(**settings), train_dataset=listed, callbacks=[callback])


def measured(what: str, shape: str, batch: int, flags: list[str], alone: Alone) -> dict[str, Any]:
    """Return the rate over the steps after WARM, and the peak of the whole process."""
    from transformers import TrainerCallback

    marks: dict[int, float] = {}

    class Marks(TrainerCallback):  # type: ignore[misc]  # its types are not read
        """Holds the card from WARM to the last step."""

        def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            if state.global_step == WARM:
                alone.enter()
            if state.global_step in (WARM, STEPS):
                wait(torch.device(DEVICE))
                marks[state.global_step] = time.perf_counter()
            if state.global_step == STEPS:
                alone.leave()

    with tempfile.TemporaryDirectory() as folder:
        made = trainer(what, shape, batch, flags, folder, Marks())
        made.train()
        step = (marks[STEPS] - marks[WARM]) / (STEPS - WARM)
        counted = {"dpo": "pairs_per_second", "kto": "answers_per_second"}.get(what)
        rate = {counted: round(batch / step, 2)} if counted else {"tokens_per_second": round(batch * TOKENS / step)}
        return {
            **rate,
            "step_s": round(step, 4),
            "peak_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2) if DEVICE == "cuda" else None,
            "checkpointing": bool(made.args.gradient_checkpointing),
            "loss_type": getattr(made.args, "loss_type", None),
        }


def main() -> None:
    """Measure one case and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("lora", "qlora", "full", "dpo", "kto"))
    parser.add_argument("shape", choices=(*KNOWN,))
    parser.add_argument("batch", type=int)
    parser.add_argument("flags", nargs="*")
    parser.add_argument("--alone", type=Path)
    options = parser.parse_args()
    found = measured(options.what, options.shape, options.batch, options.flags, Alone(options.alone))
    print("FIGURES " + json.dumps(found), flush=True)


if __name__ == "__main__":
    main()

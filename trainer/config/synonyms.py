"""Flags of other programs: those that mean what one of ours means are taken, others are answered with the right one.

The names are those of Hugging Face's Trainer (transformers, training_args.py), PyTorch's examples and Keras.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

# name, without dashes before it and with underscores: the setting it is, or the setting with its value.
SAME: Mapping[str, str] = {
    "lr": "learning_rate",
    "num_train_epochs": "epochs",
    "num_epochs": "epochs",
    "n_epochs": "epochs",
    "max_grad_norm": "clip_norm",
    "grad_clip": "clip_norm",
    "gradient_clip_val": "clip_norm",
    "wd": "weight_decay",
    "lr_scheduler_type": "schedule",
    "model_name_or_path": "model",
    "base_model": "model",
    "output_dir": "output",
    "out_dir": "output",
    "data_path": "data",
    "train_file": "data",
    "hidden_sizes": "hidden_layers",
    "lora_r": "lora_rank",
    "early_stopping_patience": "patience",
    "random_seed": "seed",
    "num_gpus": "ranks",
    "n_gpus": "ranks",
    "nproc_per_node": "ranks",
    "bf16": "precision=bf16",
    "fp16": "precision=fp16",
    "fp32": "precision=fp32",
    "use_lora": "adapter=lora",
    "load_in_4bit": "adapter=qlora",
}
# name: what to give, and why it is not taken as it is.
OTHERWISE: Mapping[str, str] = {
    "gradient_accumulation_steps": "--batch-size is the rows of a step, --micro-batch how many of them at a time: "
    "N steps of accumulation are --batch-size N times --micro-batch",
    "accumulate_grad_batches": "--batch-size is the rows of a whole step, --micro-batch how many of them at a time",
    "per_device_train_batch_size": "--batch-size is the rows of a step of all ranks together",
    "gradient_checkpointing": "--activation-checkpointing takes how much is computed again, see --help=all",
    "deepspeed": "--parallel fsdp2 shards weights, gradients and optimizer state",
    "fsdp": "--parallel fsdp2 shards weights, gradients and optimizer state",
    "resume_from_checkpoint": "--resume auto resumes the newest unfinished run, --resume NAME the run of that name",
    "warmup": "--warmup-steps takes steps, --warmup-ratio a share of them",
    "optim": "AdamW is the one optimizer; --weight-decay and --learning-rate set it",
    "report_to": "--track names trackers",
    "max_seq_length": "--sequence takes the tokens of a row; --too-long what becomes of longer ones",
}
_YES, _NO = ("true", "1", "yes"), ("false", "0", "no")


def bare(flag: str) -> str:
    """Return a flag's name without dashes before it and with underscores."""
    return flag.removeprefix("--").replace("-", "_")


def translated(argv: list[str], known: Collection[str]) -> list[str]:
    """Return a command line in which flags of other programs stand as ours; a flag that is known stays.

    Args:
        argv: words as typed.
        known: our flags, such as --learning-rate.
    """
    words, done = list(argv), []
    while words:
        word = words.pop(0)
        flag, equals, value = word.partition("=")
        ours = SAME.get(bare(flag)) if flag.startswith("--") and flag.replace("_", "-") not in known else None
        if ours is None or f"--{ours.partition('=')[0].replace('_', '-')}" not in known:
            done.append(word)
        elif "=" not in ours:
            done.append(f"--{ours.replace('_', '-')}{equals}{value}")
        else:
            stated = value if equals else words.pop(0) if words and words[0].lower() in (*_YES, *_NO) else "true"
            done += [word] if stated.lower() not in (*_YES, *_NO) else _switched(ours) if stated.lower() in _YES else []
    return done


def _switched(ours: str) -> list[str]:
    name, _, value = ours.partition("=")
    return [f"--{name.replace('_', '-')}={value}"]


def advice(flag: str) -> str:
    """Return what to give in place of a flag of another program, nothing for one that is not known."""
    return OTHERWISE.get(bare(flag), "")

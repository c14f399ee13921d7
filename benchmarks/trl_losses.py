"""Losses step by step next to TRL's, from the same weights and the same rows, in fp32.

    python -m benchmarks.trl_losses            # all cases, on this CPU or the first card
    python -m benchmarks.trl_losses KTO        # those whose name has the word, next to the results of the others

Rows are JSONL as a user has them: each side reads, tokenises, masks and batches them itself; only their order is ours
(TRL would shuffle). A case is a run as `train` makes it, with `--packing false` and constant learning rate, and TRL's
trainer with gradient checkpointing and its defaults else. Weights come from one folder, an adapter's first weights from
one folder in peft's format. TRL's figures are those that its trainer computes for backward, in full precision.
Of KTO, a batch of TRL's is one group of ours, which exchange answers in the same order.
Compared: the loss of each of STEPS steps, of which all but the first depend on what the optimizers did. Results:
benchmarks/results/trl_losses.json. Needs trl, datasets and peft, which are in no lock of this repository.
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from benchmarks.language_speed import assembled, facts  # noqa: E402
from trainer.data.tokens.load import _split  # noqa: E402
from trainer.data.tokens.partition import groups_of  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "trl_losses.json"
STEPS, ROWS, TOLERANCE, RATE = 12, 4, 2e-5, 1e-3  # tolerance: relative, of each step's loss
SHAPE = {
    **{"vocab_size": 320, "hidden_size": 64, "intermediate_size": 160, "num_hidden_layers": 3},
    **{"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512},
}
WORDS = ("Romeo", "Juliet", "Verona", "Mantua", "the nurse", "a letter", "some poison", "the friar")


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is trained: TRL's trainer, our method and adapter, family of the model; weights of good and bad answers.

    peft: content of --peft-config, with adapter peft.
    """

    trainer: str
    method: str
    adapter: str = "none"
    family: str = "qwen2"
    rows: str = "chat"
    weights: tuple[float, float] = (1.0, 1.0)
    peft: dict[str, Any] = field(default_factory=dict)


DORA = {"peft_type": "LORA", "use_dora": True, "r": 8, "lora_alpha": 16, "target_modules": "all-linear"}
PROMPT = {"peft_type": "PROMPT_TUNING", "num_virtual_tokens": 8}
ADALORA = {
    **{"peft_type": "ADALORA", "init_r": 8, "target_r": 4, "lora_alpha": 16, "target_modules": "all-linear"},
    **{"tinit": 2, "tfinal": 3, "deltaT": 2, "orth_reg_weight": 0.0},  # TRL leaves the penalty out
}
CASES = {
    "SFT, all weights, conversations": Case(trainer="SFT", method="sft"),
    "SFT, LoRA, conversations": Case(trainer="SFT", method="sft", adapter="lora"),
    "SFT, LoRA, completions, Llama": Case(
        trainer="SFT", method="sft", adapter="lora", family="llama", rows="completion"
    ),
    "SFT, all weights, texts": Case(trainer="SFT", method="sft", rows="text"),
    "SFT, DoRA by peft, conversations": Case(trainer="SFT", method="sft", adapter="peft", peft=DORA),
    "SFT, AdaLoRA by peft, conversations": Case(trainer="SFT", method="sft", adapter="peft", peft=ADALORA),
    "SFT, prompt tuning by peft, completions": Case(
        trainer="SFT", method="sft", adapter="peft", peft=PROMPT, rows="completion"
    ),
    "DPO, LoRA": Case(trainer="DPO", method="dpo", adapter="lora", rows="pairs"),
    "DPO, DoRA by peft": Case(trainer="DPO", method="dpo", adapter="peft", peft=DORA, rows="pairs"),
    "KTO, LoRA": Case(trainer="KTO", method="kto", adapter="lora", rows="judged"),
    "KTO, LoRA, bad answers weigh 1.5, Llama": Case(
        trainer="KTO", method="kto", adapter="lora", family="llama", rows="judged", weights=(1.0, 1.5)
    ),
}


def rows_of(kind: str, count: int) -> list[dict[str, Any]]:
    """Return rows of unequal length.

    Args:
        kind: chat, completion, text, pairs or judged.
    """
    made: list[dict[str, Any]] = []
    for number in range(count):
        one, other = WORDS[number % 8], WORDS[(3 * number + 1) % 8]
        question, answer = f"Where is {one} now?", f"{one} is with {other}" + " again" * (number % 5) + "."
        user, assistant = {"role": "user", "content": question}, {"role": "assistant", "content": answer}
        more = [{"role": "user", "content": "And then?"}, {"role": "assistant", "content": f"No one saw {other}."}]
        forms: dict[str, dict[str, Any]] = {
            "chat": {"messages": [user, assistant, *(more if number % 3 == 0 else [])]},
            "completion": {"prompt": f"{question} ", "completion": answer},
            "text": {"text": f"{question} {answer}"},
            "pairs": {"prompt": f"{question} ", "chosen": answer, "rejected": f"{other} does not say."},
            "judged": {"prompt": f"{question} ", "completion": answer, "label": number % 3 != 0},
        }
        made.append(forms[kind])
    return made


def base_folder(case: Case, folder: Path) -> Path:
    """Write the model with random weights in fp32, its tokenizer of bytes and ChatML with generation marks."""
    from trainer.data.tokens.tokenizer import ByteTokenizer
    from trainer.models.decoder.model import Decoder
    from trainer.models.pretrained.families import decoder_config
    from trainer.models.pretrained.folder import Pretrained, write

    raw = {"model_type": case.family, **SHAPE}
    model = Decoder(decoder_config(raw))
    model.initialize(0)
    write(folder / "base", Pretrained(model=model, raw=raw))
    for name, content in ByteTokenizer().files().items():
        (folder / "base" / name).write_bytes(content)
    return folder / "base"


def ours(case: Case, folder: Path, data: Path) -> tuple[list[float], list[int]]:
    """Return our losses, and the numbers of the file's rows in the order in which they were trained on."""
    from trainer.cli import parse
    from trainer.config.recipe import resolve
    from trainer.engine.loop import run_epoch
    from trainer.models.adapters import by_peft, peft_format
    from trainer.tasks.language.network import lora_of

    flags = ["train", "--task", "lm", "--model", str(folder / "base"), "--data", str(data), "--method", case.method]
    flags += ["--packing", "false", "--sequence", "256", "--max-steps", str(STEPS)]
    flags += ["--learning-rate", str(RATE), "--weight-decay", "0", "--precision", "fp32", "--adapter", case.adapter]
    flags += ["--checkpoint-every", "0", "--output", str(folder), "--run", "ours", "--fast", "off"]
    flags += ["--activation-checkpointing", "full", "--batch-size", "1" if case.method == "kto" else str(ROWS)]
    if case.peft:
        (folder / "peft.json").write_text(json.dumps(case.peft))
        flags += ["--peft-config", str(folder / "peft.json")]
    if case.method == "kto":
        flags += ["--kto-group", str(ROWS)]
        flags += ["--kto-good-weight", str(case.weights[0]), "--kto-bad-weight", str(case.weights[1])]
    given = {key: value for key, value in parse(flags).items() if key != "command"}
    config: Any = resolve(given)
    with assembled(config) as (training, _):
        if case.adapter != "none":
            (folder / "first").mkdir()
            decoder = training.model.decoder
            if case.peft:
                made = by_peft.files(decoder, folder / "first", base="base")
            else:
                made = peft_format.files(decoder, lora_of(config.model.adapter), family=case.family, base="base")
            for name, content in made.items():
                (folder / "first" / name).write_bytes(content)
        count = sum(1 for line in data.read_text().splitlines() if line)
        kept, _ = _split(list(range(count)), config.data.validation_share, config.loop.seed, data)
        order = training.sampler.order(0).tolist()
        if case.method == "kto":
            groups = groups_of(len(kept), ROWS, config.loop.seed)
            order = [number for group in order for number in groups[group]]
        order = [kept[number] for number in order]
        run_epoch(training)  # ends with the steps, before its rows do
        losses = training.state.losses[:STEPS].tolist()
    return losses, order[: STEPS * ROWS]


def theirs(case: Case, folder: Path, data: Path, order: list[int]) -> list[float]:
    """Return TRL's losses on the same rows in the same order."""
    import transformers
    import trl  # type: ignore
    from datasets import Dataset  # type: ignore
    from peft import PeftModel

    transformers.utils.logging.enable_progress_bar()  # which our side switches off, and its trainer relies on
    auto: Any = transformers.AutoModelForCausalLM
    tokens: Any = transformers.AutoTokenizer
    model = auto.from_pretrained(folder / "base", dtype=torch.float32, attn_implementation="sdpa")
    if case.adapter != "none":
        learned = case.peft == PROMPT  # which peft reads for inference alone
        model = PeftModel.from_pretrained(model, str(folder / "first"), is_trainable=not learned)
        if learned:
            model.active_peft_config.inference_mode = False
            model.prompt_encoder.requires_grad_(True)
    rows = [json.loads(line) for line in data.read_text().splitlines()]
    kind, config = getattr(trl, f"{case.trainer}Trainer"), getattr(trl, f"{case.trainer}Config")
    losses: list[float] = []

    class Watched(kind):  # type: ignore[misc, valid-type]
        """Takes rows as they come, and notes each loss as it is computed for backward."""

        def _get_train_sampler(self, *given: Any, **more: Any) -> Any:
            return torch.utils.data.SequentialSampler(self.train_dataset)

        def compute_loss(self, *given: Any, **more: Any) -> Any:
            made = super().compute_loss(*given, **more)
            losses.append((made[0] if isinstance(made, tuple) else made).item())
            return made

    settings: dict[str, Any] = {
        "output_dir": str(folder / "theirs"),
        "per_device_train_batch_size": ROWS,
        "max_steps": STEPS,
        "learning_rate": RATE,
        "lr_scheduler_type": "constant",
        "max_grad_norm": 0.0,
        "weight_decay": 0.0,
        "bf16": False,
        "optim": "adamw_torch",
        "report_to": [],
        "save_strategy": "no",
        "max_length": 256,
        "use_cpu": not torch.cuda.is_available(),
    }
    if case.method == "kto":
        settings |= {"desirable_weight": case.weights[0], "undesirable_weight": case.weights[1]}
    if case.rows == "chat":
        settings["assistant_only_loss"] = True
    trainer = Watched(
        model=model,
        args=config(**settings),
        train_dataset=Dataset.from_list([rows[number] for number in order]),
        processing_class=tokens.from_pretrained(folder / "base"),
    )
    if case.peft == ADALORA:  # whose ranks TRL leaves to the user's callback
        trainer.add_callback(_allocation(model))
    trainer.train()
    return losses


def _allocation(model: Any) -> Any:
    """Return a callback that has peft choose AdaLoRA's ranks after each step."""
    import transformers

    class Allocation(transformers.TrainerCallback):  # type: ignore[misc]
        def on_optimizer_step(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            model.base_model.update_and_allocate(state.global_step + 1)

    return Allocation()


def compared(case: Case) -> dict[str, Any]:
    """Return both rows of losses of a case and their largest relative difference."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        base_folder(case, folder)
        data = folder / "rows.jsonl"
        spare = 15 if case.method == "kto" else 12  # 3 are held out; 60 rows are whole groups
        data.write_text("".join(json.dumps(row) + "\n" for row in rows_of(case.rows, STEPS * ROWS + spare)))
        own, order = ours(case, folder, data)
        other = theirs(case, folder, data, order)
    apart = max(abs(one - two) / abs(two) for one, two in zip(own, other, strict=True))
    return {"ours": own, "theirs": other, "largest_difference": apart, "equal": apart <= TOLERANCE}


def main() -> None:
    """Compare all cases, print a line each, and write the results."""
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    import peft
    import transformers
    import trl

    versions = {"trl": trl.__version__, "transformers": transformers.__version__, "peft": peft.__version__}
    chosen = {name: case for name, case in CASES.items() if all(word in name for word in sys.argv[1:])}
    kept = json.loads(RESULTS.read_text())["cases"] if len(chosen) < len(CASES) else {}
    results: dict[str, Any] = {"machine": facts() | versions, "tolerance": TOLERANCE, "cases": kept}
    for name, case in chosen.items():
        results["cases"][name] = found = compared(case)
        print(f"{name}: {found['largest_difference']:.2g}, equal {found['equal']}", flush=True)
        print(found["ours"][:3], found["theirs"][:3], flush=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

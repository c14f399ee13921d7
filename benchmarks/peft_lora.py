"""LoRA's losses, gradients, steps and merged weights next to peft's, from the same weights, adapters and rows.

    python -m benchmarks.peft_lora                       # a small shape, on this CPU or the first card
    python -m benchmarks.peft_lora --shape qwen2.5-0.5b  # six of its blocks; on a card also the faster blocks

peft's adapters sit on transformers' own class. The adapter's B, which begins as 0, is drawn at random, written in
peft's format and read by peft. Both are compared with peft in fp64: the loss of one batch, and the largest relative
Frobenius error of any adapter's gradient. In bf16 the base is bf16 and adapters fp32, under autocast, as TRL trains
them. Then STEPS steps of AdamW: the largest relative difference of a step's loss from that of fp64. Merged weights are
compared with ones formed in fp64. Equal means: errors of at most TIMES peft's own, plus the format's epsilon. Results:
benchmarks/results/peft_lora.json. Needs transformers and peft, which are in no lock.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from benchmarks.language_speed import facts  # noqa: E402
from trainer.models.adapters import peft_format  # noqa: E402
from trainer.models.adapters.lora import LoraConfig, add_lora, lora_modules, merge  # noqa: E402
from trainer.models.decoder.model import Decoder  # noqa: E402
from trainer.models.fast.block_trial import Request  # noqa: E402
from trainer.models.fast.choose import hold_frozen_weights_in, use_fast  # noqa: E402
from trainer.models.fast.proof import relative_error  # noqa: E402
from trainer.models.language.model import LanguageModel  # noqa: E402
from trainer.models.pretrained import folder as pretrained  # noqa: E402
from trainer.models.pretrained.families import decoder_config, file_module  # noqa: E402
from trainer.run.memory_plan.shapes import SHAPES  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "peft_lora.json"
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
STEPS, RATE, BLOCKS = 20, 1e-3, 6
DRAWN = 0.2  # of B, so that the largest scale leaves hidden states near their size
TIMES = 1.5
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp64": torch.float64}
SMALL = {
    **{"vocab_size": 512, "hidden_size": 128, "intermediate_size": 320, "num_hidden_layers": 3},
    **{"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512},
}
ATTENTION = ("q_proj", "k_proj", "v_proj", "o_proj")


@dataclass(frozen=True, kw_only=True)
class Case:
    """Family of the model, and its adapter."""

    family: str = "qwen2"
    lora: LoraConfig = field(default_factory=LoraConfig)


CASES = {
    "all linear layers, rank 16": Case(),
    "query and value, rank 8": Case(lora=LoraConfig(rank=8, alpha=16.0, targets=("q_proj", "v_proj"))),
    "attention, rsLoRA, rank 64": Case(lora=LoraConfig(rank=64, targets=ATTENTION, rank_stabilized=True)),
    "down alone, rank 4, alpha 3": Case(lora=LoraConfig(rank=4, alpha=3.0, targets=("down_proj",))),
    "all, rsLoRA, rank 5, Llama": Case(family="llama", lora=LoraConfig(rank=5, rank_stabilized=True)),
    "all, rank 16, Qwen3": Case(family="qwen3"),
}
Forward = Callable[[Tensor], Tensor]


@dataclass(frozen=True, kw_only=True)
class Side:
    """One program's model: its mean loss of rows, its adapters' weights in our order, and their names."""

    loss: Forward
    weights: list[nn.Parameter]
    model: Any


def raw_of(case: Case, shape: str) -> dict[str, Any]:
    """Return config.json of a case.

    Args:
        shape: small, or a name of trainer.run.memory_plan.shapes, cut to BLOCKS.
    """
    numbers = SMALL if shape == "small" else SHAPES[shape] | {"num_hidden_layers": BLOCKS}
    return {**numbers, "model_type": case.family, "tie_word_embeddings": True}


def written(case: Case, raw: dict[str, Any], folder: Path) -> None:
    """Write the base, its weights of bf16 precision, and an adapter whose B is drawn."""
    model = Decoder(decoder_config(raw))
    model.initialize(0)
    model.bfloat16().float()
    pretrained_folder = folder / "base"
    pretrained.write(pretrained_folder, pretrained.Pretrained(model=model, raw=raw))
    add_lora(model, case.lora, seed=1)
    generator = torch.Generator().manual_seed(2)
    for _, module in lora_modules(model):
        with torch.no_grad():
            size = DRAWN * module.base.in_features**-0.5
            module.lora_B.copy_(size * torch.randn(module.lora_B.shape, generator=generator))
    (folder / "adapter").mkdir()
    for name, content in peft_format.files(model, case.lora, family=case.family, base="base").items():
        (folder / "adapter" / name).write_bytes(content)


def ours(case: Case, folder: Path, precision: str, *, fast: bool = False) -> Side:
    """Return our model with the adapter of the folder."""
    decoder = pretrained.read(folder / "base").model
    peft_format.read(decoder, folder / "adapter", family=case.family)
    model = LanguageModel(decoder.to(DTYPES["fp64" if precision == "fp64" else "fp32"]).to(DEVICE))
    if precision == "bf16":
        hold_frozen_weights_in(model, torch.bfloat16)
    tokens = rows_of(1)
    if fast:
        request = Request(rows=len(tokens), tokens=tokens.shape[1] - 1, dtype=DTYPES[precision], device=DEVICE)
        print(use_fast(model, request).names(), flush=True)

    def loss(rows: Tensor) -> Tensor:
        with autocast(precision):
            total: Tensor = model(rows[:, :-1], rows[:, 1:].contiguous())
            return total / rows[:, 1:].numel()

    weights = [weight for _, module in lora_modules(decoder) for weight in (module.lora_A, module.lora_B)]
    return Side(loss=loss, weights=weights, model=decoder)


def theirs(case: Case, folder: Path, precision: str) -> Side:
    """Return transformers' model with the adapter of the folder, read by peft."""
    import transformers
    from peft import PeftModel

    auto: Any = transformers.AutoModelForCausalLM
    base = auto.from_pretrained(folder / "base", dtype=DTYPES[precision], attn_implementation="sdpa").to(DEVICE)
    model: Any = PeftModel.from_pretrained(base, str(folder / "adapter"), is_trainable=True)
    if precision == "fp64":
        model = model.double()

    def loss(rows: Tensor) -> Tensor:
        with autocast(precision):
            found: Tensor = model(input_ids=rows, labels=rows).loss
        return found

    named = dict(model.named_parameters())
    weights = []
    for name, _ in lora_modules(ours_names(case, folder)):
        stored = peft_format.PREFIX + file_module(case.family, name)
        weights += [named[f"{stored}.lora_{letter}.default.weight"] for letter in "AB"]
    return Side(loss=loss, weights=weights, model=model)


def ours_names(case: Case, folder: Path) -> nn.Module:
    """Return a model that has our names of the adapted layers."""
    decoder: nn.Module = pretrained.read(folder / "base").model
    peft_format.read(decoder, folder / "adapter", family=case.family)
    return decoder


@contextlib.contextmanager
def autocast(precision: str) -> Iterator[None]:
    """Compute products in 16 bits where that is asked for."""
    with torch.autocast(DEVICE.type, dtype=torch.bfloat16, enabled=precision == "bf16"):
        yield


def rows_of(seed: int) -> Tensor:
    """Return rows of tokens, (4, 129), below the smallest vocabulary."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(500, (4, 129), generator=generator).to(DEVICE)


def gradients(side: Side) -> tuple[float, list[Tensor]]:
    """Return loss and gradients of one batch."""
    loss = side.loss(rows_of(0))
    return loss.item(), [each.detach() for each in torch.autograd.grad(loss, side.weights)]


def steps(side: Side) -> list[float]:
    """Return the losses of STEPS steps."""
    optimizer = torch.optim.AdamW(side.weights, lr=RATE, weight_decay=0.0)
    losses = []
    for number in range(STEPS):
        loss = side.loss(rows_of(number % 4))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def apart(one: list[float], other: list[float]) -> float:
    """Return the largest relative difference."""
    return max(abs(a - b) / abs(b) for a, b in zip(one, other, strict=True))


def merging(case: Case, folder: Path, precision: str) -> dict[str, float]:
    """Return the largest relative error of a merged weight against fp64, by us and by peft."""
    exact, own, other = ours(case, folder, "fp64"), ours(case, folder, "fp32"), theirs(case, folder, precision)
    names = [name for name, _ in lora_modules(exact.model)]
    decoder = own.model
    if precision == "bf16":
        hold_frozen_weights_in(decoder, torch.bfloat16)  # adapters stay in fp32, as a run writes them
    for each in (exact.model, decoder):
        merge(each)
    merged = other.model.merge_and_unload()
    weights = {name: exact.model.get_submodule(name).weight for name in names}
    mine = [decoder.get_submodule(name).weight for name in names]
    found = [merged.get_submodule(file_module(case.family, name)).weight for name in names]
    exacts = list(weights.values())
    return {"ours": relative_error(mine, exacts), "peft": relative_error(found, exacts)}


def compared(case: Case, shape: str) -> dict[str, Any]:
    """Return a case's figures in each number format."""
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        written(case, raw_of(case, shape), folder)
        exact = gradients(theirs(case, folder, "fp64"))
        path = steps(theirs(case, folder, "fp64"))
        for precision in ("fp32", "bf16"):
            sides = {
                "ours": lambda p=precision: ours(case, folder, p),
                "peft": lambda p=precision: theirs(case, folder, p),
            }
            if DEVICE.type == "cuda":
                sides["ours, faster blocks"] = lambda p=precision: ours(case, folder, p, fast=True)
            found = {name: figures(make, exact, path) for name, make in sides.items()}
            merged = merging(case, folder, precision)
            result[precision] = {**found, "merged": merged, "equal": equal(found, merged, precision)}
    return result


def equal(found: dict[str, dict[str, float]], merged: dict[str, float], precision: str) -> bool:
    """Return whether no error of ours is more than TIMES that of peft, and the format's epsilon.

    Args:
        found: figures of each side.
        merged: see `merging`.
        precision: name of the number format.
    """
    more, peft = torch.finfo(DTYPES[precision]).eps, found["peft"]
    right = all(each[key] <= TIMES * peft[key] + more for each in found.values() for key in peft)
    return right and merged["ours"] <= TIMES * merged["peft"] + more


def figures(make: Callable[[], Side], exact: tuple[float, list[Tensor]], path: list[float]) -> dict[str, float]:
    """Return errors of loss, gradients and steps against fp64."""
    loss, found = gradients(make())
    return {
        "loss": abs(loss - exact[0]) / exact[0],
        "gradients": relative_error(found, exact[1]),
        "steps": apart(steps(make()), path),
    }


def main() -> None:
    """Compare all cases, print a line each, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", default="small")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    import peft
    import transformers

    machine = facts() | {"transformers": transformers.__version__, "peft": peft.__version__, "shape": options.shape}
    results: dict[str, Any] = {"machine": machine, "cases": {}}
    for name, case in CASES.items():
        results["cases"][name] = found = compared(case, options.shape)
        for precision, each in found.items():
            print(name, precision, "equal", each["equal"], json.dumps(each), flush=True)
    options.results.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""One of several ranks over gloo on the CPU that train a small decoder; prints what it found as one JSON line."""

from __future__ import annotations

import contextlib
import json
import math
import sys
from typing import Any

import torch
from torch import Tensor, nn

from trainer.data.loading.batch import apply
from trainer.data.tokens.labels import IGNORED, PADDING
from trainer.distributed.collectives import Ranks
from trainer.distributed.parallel import pipeline
from trainer.distributed.parallel.join import connect, join
from trainer.models.activation_checkpointing import checkpointed, layers
from trainer.models.adapters.lora import LoraConfig, add_lora
from trainer.models.decoder.model import Decoder
from trainer.models.language.model import LanguageModel
from trainer.models.pretrained.families import decoder_config
from trainer.tasks.language_model import sum_of

TOKENS, VOCABULARY, CLIP = 24, 37, 0.05
ROWS = (5, 1, 4)  # of one row a rank of two has none


def raw(kind: str) -> dict[str, Any]:
    if kind == "gpt2":  # learned positions, a fused product, tied
        return {
            "model_type": "gpt2", "vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 32,
            "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
        }  # fmt: skip
    return {
        "model_type": "mistral" if kind == "window" else "llama", "vocab_size": VOCABULARY, "hidden_size": 32,
        "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
        "hidden_act": "silu", "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
        "tie_word_embeddings": kind != "untied", "sliding_window": 7 if kind == "window" else None,
    }  # fmt: skip


def model_of(kind: str, dtype: torch.dtype, seed: int) -> LanguageModel:
    decoder = Decoder(decoder_config(raw(kind)))
    decoder.initialize(seed)
    if kind == "lora":
        add_lora(decoder, LoraConfig(rank=2, targets=("q_proj", "down_proj")), seed=seed)
        for name, weight in decoder.named_parameters():  # at 0, nothing before B would have a gradient
            if "lora_B" in name:
                nn.init.normal_(weight, std=0.1, generator=torch.Generator().manual_seed(seed))
    model = LanguageModel(decoder, drop_ignored=kind != "untied").to(dtype)
    checkpointed(model, "full" if kind == "window" else "off", layers(model))
    if kind == "window":
        for block in decoder.model.layers:
            block.mlp.tile = 5  # of at most 24 tokens of a row: a few tiles, the last one not full
    return model


def batch(step: int, dtype: torch.dtype, kind: str) -> tuple[dict[str, Tensor], Tensor]:
    """Packed rows with weights, some without loss in whole halves; without packing for `untied`."""
    draw = torch.Generator().manual_seed(step)
    shape = (ROWS[step % len(ROWS)], TOKENS)
    tokens = torch.randint(VOCABULARY, shape, generator=draw)
    labels = torch.randint(VOCABULARY, shape, generator=draw)
    if kind == "untied":
        return {"tokens": tokens, "labels": labels}, torch.ones(shape)
    labels[torch.rand(shape, generator=draw) < 0.4] = IGNORED
    labels[0, TOKENS // 2 :] = IGNORED
    documents = torch.zeros(shape, dtype=torch.long)
    documents[:, 5:], documents[:, 17:], documents[:, 22:] = 1, 2, PADDING
    begins = torch.tensor([0] * 5 + [5] * 12 + [17] * 5 + [22] * 2)
    positions = (torch.arange(TOKENS) - begins).expand(shape).contiguous()
    weights = torch.rand(shape, generator=draw).where(labels != IGNORED, 0.0).to(dtype)
    return {
        "tokens": tokens,
        "labels": labels,
        "weights": weights,
        "positions": positions,
        "documents": documents,
    }, weights


def trained(world: Ranks, kind: str, dtype: torch.dtype, *, size: int, seed: int, steps: int = 4) -> dict[str, Any]:
    """Losses, norms before clipping and whole weights after some steps as the loop takes them."""
    model = model_of(kind, dtype, seed)
    forward = world.prepare(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses, norms = [], []
    for step in range(steps):
        forward.train()
        inputs, targets = batch(step, dtype, kind)
        mine, weight = world.rank_slice(len(targets)), targets.sum()
        optimizer.zero_grad()
        loss = world.accumulate(
            forward_of(forward),
            apply(lambda value, mine=mine: value[mine], inputs),
            targets[mine],
            size=size,
            weight=weight,
            loss_sum=sum_of,
            context=lambda last, forward=forward: world.micro_step(forward, last=last),
            pieces=math.ceil(math.ceil(len(targets) / world.world_size) / size) if world.lockstep else 0,
            dtype=dtype,
        )
        losses.append(world.sum(loss.reshape(1).clone()).item())
        world.sum_gradients(list(model.parameters()))
        weights = [each for each in model.parameters() if each.grad is not None]
        norm = world.gradient_norm(weights)
        norms.append(norm.item())
        for each in weights:
            each.grad.mul_((CLIP / (norm + 1e-6)).clamp(max=1.0))
        optimizer.step()
    forward.eval()
    with torch.no_grad():
        evaluated = forward_of(forward)(inputs).item()
    whole = {name: value.clone() for name, value in world.full_state_dict(dict(model.state_dict())).items()}
    return {"losses": losses, "norms": norms, "weights": whole, "evaluated": evaluated}


def forward_of(forward: nn.Module) -> Any:
    return lambda piece: forward(**piece)


def difference(found: dict[str, Any], reference: dict[str, Any]) -> dict[str, float]:
    def relative(a: Tensor, b: Tensor) -> float:
        return ((a - b).norm() / b.norm()).item()

    names = list(reference["weights"])
    numbers = {name: [torch.tensor(each[name]).double() for each in (found, reference)] for name in ("losses", "norms")}
    flat = [torch.cat([each["weights"][name].flatten().double() for name in names]) for each in (found, reference)]
    evaluated = abs(found["evaluated"] / reference["evaluated"] - 1)
    return {"weights": relative(*flat), "evaluated": evaluated} | {n: relative(*both) for n, both in numbers.items()}


def against_one_process(world: Ranks, kind: str) -> dict[str, dict[str, float]]:
    found = {}
    for dtype in (torch.float64, torch.float32):
        got = trained(world, kind, dtype, size=2, seed=world.rank)
        reference = trained(Ranks(), kind, dtype, size=ROWS[0], seed=0)
        found[str(dtype).removeprefix("torch.")] = difference(got, reference)
    assert max(reference["norms"]) > 2 * CLIP  # else nothing was clipped
    return found


def main() -> None:
    torch.set_num_threads(1)
    bootstrap, found = connect(), {}
    pipeline.memory_of = lambda device: 1 + bootstrap.rank  # type: ignore[assignment] # unlike cards
    with contextlib.closing(bootstrap):  # type: ignore[type-var]
        for each in sys.argv[1:]:
            parallel, kinds = each.split(":")
            world = join(bootstrap, "cpu", parallel=parallel, report=lambda *_, **__: None)
            found |= {f"{parallel} {kind}": against_one_process(world, kind) for kind in kinds.split(",")}
            world.release()
    print(json.dumps(found))


if __name__ == "__main__":
    sys.exit(main())

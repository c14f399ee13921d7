"""A step of a few tokens with an adapter by peft, before a run starts: what its method and its layers do not allow.

Methods of peft differ in what they ask of a step: some want the number of a task with each row, or keep keys and values
that a layer which is computed again would extend once more. They raise errors of any kind, at the first step.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from trainer.device.precision import Precision
from trainer.runtime.errors import TrainerError

ROWS, TOKENS = 2, 8


def require_step(model: nn.Module, precision: Precision, choice: str, *, kind: str) -> None:
    """Take a forward and a backward pass, and leave no gradient; memory that runs out is left to the run's own step.

    Args:
        model: with a decoder that peft's adapter is on, on its device, its layers recomputed as `choice` states.
        choice: value of `--activation-checkpointing`.
        kind: peft_type of the adapter.

    Raises:
        TrainerError: RM712 where the pass ends in an error.
    """
    decoder: Any = model.decoder
    device = next(decoder.parameters()).device
    recomputed = ""  # in the backward pass alone layers are computed again
    try:
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []), precision.context():
            loss = _loss(decoder, device)
            recomputed = choice
            loss.backward()
    except torch.OutOfMemoryError:
        return
    except Exception as error:  # peft's methods raise anything
        raise _refused(decoder, recomputed, kind, error) from None
    finally:
        for weight in decoder.parameters():
            weight.grad = None


def _loss(decoder: Any, device: torch.device) -> torch.Tensor:
    tokens = torch.arange(ROWS * TOKENS, device=device).reshape(ROWS, TOKENS) % decoder.config.vocabulary
    documents = torch.zeros_like(tokens)
    found = decoder.hidden(tokens, documents=documents) if decoder.plain_head else decoder(tokens, documents=documents)
    loss: torch.Tensor = found.float().square().mean()
    return loss


def _refused(decoder: Any, choice: str, kind: str, error: Exception) -> TrainerError:
    """Return the refusal.

    Args:
        decoder: that was tried.
        choice: how layers were computed again when the pass ended; nothing where none was.
        kind: peft_type of the adapter.
        error: its end.
    """
    what = f"a step of peft's {kind}"
    next = "Take another method, such as LORA with use_dora, LOKR or PROMPT_TUNING."
    if choice not in ("", "off"):
        what += f" with --activation-checkpointing {choice}"
        full = "full or " if choice == "selective" and not decoder.has_prompt else ""
        next = f"Use --activation-checkpointing {full}off; a smaller --micro-batch takes less memory, too."
    why = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return TrainerError("RM712", what=f"{what} ends in an error", where="--peft-config", why=why, next=next)

"""A check that no token of a model sees those after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from trainer.runtime.errors import TrainerError

TOKENS = 16  # of the text that is looked at
LEAK = 1e-6  # of the largest gradient by a token: what a later one has at most


def require_causal(decoder: Any, folder: Path) -> None:
    """Raise TrainerError RM701 for a model in which a token sees later ones, as it would learn to copy those.

    Classes of encoders, as BERT's, are causal only where config.json has is_decoder. Of a causal one the gradient of
    earlier logits by the last embedding is exactly 0, in whatever format it computes.

    Args:
        decoder: `OwnClassDecoder`, which is left as it was.
        folder: that it was read from.
    """
    seen: list[Tensor] = []

    def taken(module: nn.Module, inputs: Any, outputs: Tensor) -> Tensor:
        seen.append(outputs.detach().requires_grad_())
        return seen[-1]

    was, hook = decoder.training, decoder.base.get_input_embeddings().register_forward_hook(taken)
    decoder.eval()
    try:
        logits = decoder(torch.arange(TOKENS)[None] % decoder.config.vocabulary)
        (by_token,) = torch.autograd.grad(logits[0, :-1].float().sum(), seen[:1])
    except (AssertionError, AttributeError, IndexError, RuntimeError, ValueError, TypeError):
        return  # it takes more than tokens, or has no derivative
    finally:
        hook.remove()
        decoder.train(was)
    sizes = by_token.reshape(TOKENS, -1).float().abs().amax(1)
    if sizes[-1] > LEAK * sizes.amax():
        what = "a token's logits depend on the tokens after it: the model is not causal as config.json has it"
        next = 'Write "is_decoder": true into config.json if its weights were trained so, or give another model.'
        raise TrainerError("RM701", what=what, where=str(folder), next=next)

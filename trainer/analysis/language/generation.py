"""Generate text token by token, with a cache of keys and values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from trainer.analysis.language.loading import Loaded
from trainer.data.tokens.tokenizer import with_begin
from trainer.runtime.errors import TrainerError


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Settings of sampling: temperature 0 takes the most likely token; top_k 0 samples from all."""

    max_new_tokens: int = 128
    temperature: float = 0.8
    top_k: int = 50
    seed: int = 0


@torch.no_grad()
def generate(model: Any, prompt: Sequence[int], stops: Sequence[int], sampling: Sampling) -> Iterator[int]:
    """Yield new tokens until a stop token, which is not yielded, or `max_new_tokens` of them.

    Args:
        model: decoder, in evaluation mode.
        prompt: token ids, at least one.
        stops: token ids that end the text.

    Raises:
        TrainerError: RM714 for an empty prompt, RM711 for one beyond a table of learned positions.
    """
    if not prompt:
        raise TrainerError("RM714", what="the prompt has no token", next="Give a prompt of at least one character.")
    most = sampling.max_new_tokens
    if model.config.positions is not None:
        most = min(most, model.config.positions - len(prompt))
    if most <= 0:
        what = f"a prompt of {len(prompt)} tokens leaves no room in {model.config.positions} positions"
        raise TrainerError("RM711", what=what, next="Shorten the prompt.")
    generator, cache = torch.Generator().manual_seed(sampling.seed), model.new_cache()
    tokens = torch.tensor([list(prompt)])
    for _ in range(most):
        token = draw(model.next_logits(tokens, cache), sampling, generator)
        if token in stops:
            return
        yield token
        tokens = torch.tensor([[token]])


def draw(logits: Tensor, sampling: Sampling, generator: torch.Generator) -> int:
    """Return a token for logits (vocabulary,).

    Args:
        logits: shape (vocabulary,).
        generator: source of random numbers, on the device of `logits`.
    """
    if sampling.temperature == 0:
        return int(logits.argmax())
    scaled = logits.float() / sampling.temperature
    if sampling.top_k:
        least = scaled.topk(min(sampling.top_k, len(scaled))).values[-1]
        scaled = scaled.where(scaled >= least, -torch.inf)
    return int(torch.multinomial(scaled.softmax(0), 1, generator=generator))


def answer(loaded: Loaded, prompt: str, sampling: Sampling, *, rendered: bool = False) -> str:
    """Return what follows a text.

    Args:
        prompt: text to continue.
        rendered: a chat template wrote it, with all that is to be before it.
    """
    ids = loaded.tokenizer.encode(prompt).ids
    ids = ids if rendered else with_begin(loaded.tokenizer, ids)
    new = generate(loaded.made.model, ids, loaded.tokenizer.stops, sampling)
    return loaded.tokenizer.decode(list(new))


def chat_prompt(loaded: Loaded, messages: Sequence[dict[str, str]]) -> str:
    """Return the text before the next answer of a conversation.

    Raises:
        TrainerError: RM706 where the model has no chat template.
    """
    if loaded.template is None:
        raise TrainerError("RM706", what="the model has no chat template", next="Use generate with a plain prompt.")
    return loaded.template.prompt(messages)

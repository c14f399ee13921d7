"""A decoder together with its loss: the loop calls one module, and no logits of a whole batch ever exist."""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import Tensor, nn

from trainer.data.tokens.labels import IGNORED
from trainer.models.adapters.lora import LoraLinear, adapters_disabled
from trainer.models.decoder.attention import Attention
from trainer.models.decoder.layers import draws_numbers
from trainer.models.decoder.masks import SequencePart
from trainer.models.decoder.model import Decoder
from trainer.models.language.linear_cross_entropy import (
    PLAIN,
    cross_entropy_sum,
    linear_cross_entropy_sum,
    token_log_probabilities,
    token_losses,
)
from trainer.models.language.preference_loss import dpo_loss_sum, kto_loss_sum


def against_capture(decoder: Any) -> str | None:
    """Return why forward and backward of a decoder cannot be captured as a graph, or None where they may be."""
    if not isinstance(decoder, Decoder):
        return "the network is computed by a class of transformers or peft"
    if draws_numbers(decoder):
        return "dropout draws random numbers"
    if any(isinstance(module, Attention) and module.backend == "documents" for module in decoder.modules()):
        return "attention by document reads where documents end"
    if any(getattr(block, "offloads", False) for block in decoder.blocks):
        return "activations wait on the host"
    return None


class LanguageModel(nn.Module):
    """A decoder that maps tokens and labels to the sum of the tokens' losses, a scalar.

    drop_ignored: leave tokens without loss out of the head's products; the host then waits for their number.
    """

    def __init__(self, decoder: Any, *, drop_ignored: bool = False) -> None:
        """Take a `Decoder`, or what has the same methods (pretrained.own_class)."""
        super().__init__()
        self.decoder, self.drop_ignored, self.head = decoder, drop_ignored, PLAIN

    @property
    def blocks(self) -> list[nn.Module]:
        """The layers that activation checkpointing computes again."""
        blocks: list[nn.Module] = self.decoder.blocks
        return blocks

    def against_capture(self) -> str | None:
        """Return why forward and backward cannot be captured, or None; see `steps.captured_pass`."""
        return against_capture(self.decoder)

    def forward(
        self,
        tokens: Tensor,
        labels: Tensor,
        *,
        weights: Tensor | None = None,
        positions: Tensor | None = None,
        documents: Tensor | None = None,
        part: SequencePart | None = None,
    ) -> Tensor:
        """Return the weighted sum; all tensors are (rows, tokens), labels those of the next token.

        Args:
            tokens: token ids, shape (rows, tokens).
            labels: next token, IGNORED where none is trained, shape (rows, tokens).
            weights: weight of each label, shape (rows, tokens); None for 1.
            positions: shape (rows, tokens); None counts from 0.
            documents: number of each token's document, shape (rows, tokens); None for one a row.
            part: where rows are split over processes; see `Decoder.hidden`.
        """
        if not self.decoder.plain_head:
            logits = self.decoder(tokens, documents=documents).flatten(0, 1)
            scale = None if weights is None else weights.flatten()
            return cross_entropy_sum(logits, labels.flatten(), scale)
        hidden = self.decoder.hidden(tokens, positions=positions, documents=documents, part=part)
        return self.loss_of(hidden, labels, weights)

    def loss_of(self, hidden: Tensor, labels: Tensor, weights: Tensor | None) -> Tensor:
        """Return the weighted sum of the losses of hidden states, a scalar.

        Args:
            hidden: after the last norm, shape (rows, tokens, width).
            labels: next token, IGNORED where none is trained, shape (rows, tokens).
            weights: weight of each label, shape (rows, tokens); None for 1.
        """
        hidden, flat = hidden.flatten(0, 1), labels.flatten()
        scale = None if weights is None else weights.flatten()
        if self.drop_ignored and hidden.device.type != "meta":
            there = (flat != IGNORED).nonzero().squeeze(1)
            hidden, flat, scale = hidden[there], flat[there], None if scale is None else scale[there]
        return linear_cross_entropy_sum(hidden, self.decoder.head_weight, flat, scale, head=self.head)


class PreferenceModel(nn.Module):
    """A decoder that maps pairs of answers to the sum of their DPO losses; the reference is it without adapters."""

    def __init__(self, decoder: Any, *, beta: float) -> None:
        """Take a decoder as `LanguageModel` does."""
        super().__init__()
        self.decoder, self.beta, self.head = decoder, beta, PLAIN

    def train(self, mode: bool = True) -> Self:
        """Set the mode of the adapters. The base's own dropout stays off, as in TRL: it would disturb the reference.

        Args:
            mode: whether the adapters' dropout is on.
        """
        super().train(mode)
        self.decoder.eval()
        for module in self.decoder.modules():
            if isinstance(module, LoraLinear) or hasattr(module, "base_layer"):  # the latter is peft's
                module.train(mode)
        return self

    @property
    def blocks(self) -> list[nn.Module]:
        """The layers that activation checkpointing computes again."""
        blocks: list[nn.Module] = self.decoder.blocks
        return blocks

    def against_capture(self) -> str | None:
        """Return why forward and backward cannot be captured, or None; see `steps.captured_pass`."""
        return against_capture(self.decoder)

    def forward(
        self,
        tokens: Tensor,
        labels: Tensor,
        documents: Tensor,
        *,
        reference: Tensor | None = None,
        reference_alone: bool = False,
    ) -> Tensor:
        """Return the sum over pairs; all tensors are (pairs, 2, tokens), the chosen answer first.

        Args:
            tokens: token ids, shape (pairs, 2, tokens).
            labels: next token, IGNORED where none is trained, shape (pairs, 2, tokens).
            documents: number of each token's document, shape (pairs, 2, tokens).
            reference: log-probabilities under the reference, shape (pairs, 2); None to compute them.
            reference_alone: return them in place of the loss.
        """
        if reference is None:
            reference = self.of_reference(tokens, labels, documents)
        if reference_alone:
            return reference
        policy = self.log_probabilities(tokens, labels, documents)
        return dpo_loss_sum(policy, reference, beta=self.beta).loss

    @torch.no_grad()
    def of_reference(self, tokens: Tensor, labels: Tensor, documents: Tensor) -> Tensor:
        """Return the answers' log-probabilities without the adapters, (rows, answers).

        Args:
            tokens: token ids, shape (rows, answers, tokens).
            labels: next token, IGNORED where none is trained, shape (rows, answers, tokens).
            documents: number of each token's document, shape (rows, answers, tokens).
        """
        with adapters_disabled(self.decoder):
            return self.log_probabilities(tokens, labels, documents)

    def log_probabilities(self, tokens: Tensor, labels: Tensor, documents: Tensor) -> Tensor:
        """Return the answers' log-probabilities, (rows, answers): two of each pair.

        Args:
            tokens: token ids, shape (rows, answers, tokens).
            labels: next token, IGNORED where none is trained, shape (rows, answers, tokens).
            documents: number of each token's document, shape (rows, answers, tokens).
        """
        if not self.decoder.plain_head:
            logits = self.decoder(tokens.flatten(0, 1), documents=documents.flatten(0, 1)).flatten(0, 1)
            return -token_losses(logits, labels.flatten()).view(labels.shape).sum(-1)
        hidden = self.decoder.hidden(tokens.flatten(0, 1), documents=documents.flatten(0, 1))
        values = token_log_probabilities(
            hidden.flatten(0, 1), self.decoder.head_weight, labels.flatten(), head=self.head
        )
        return values.view(labels.shape).sum(-1)


class JudgedModel(PreferenceModel):
    """A decoder that maps groups of good and bad answers to the sum of their KTO losses."""

    def __init__(self, decoder: Any, *, beta: float, weights: tuple[float, float]) -> None:
        """Take a decoder as `LanguageModel` does.

        Args:
            beta: how strongly the model is held to the reference.
            weights: of good and of bad answers in the loss.
        """
        super().__init__(decoder, beta=beta)
        self.weights = weights

    def forward(  # type: ignore[override]  # groups have verdicts
        self,
        tokens: Tensor,
        labels: Tensor,
        documents: Tensor,
        verdicts: Tensor,
        *,
        reference: Tensor | None = None,
        reference_alone: bool = False,
    ) -> Tensor:
        """Return the sum over groups; all tensors but `verdicts` are (groups, 2, answers, tokens).

        Of the two, the first are prompts with their own answers, the second with those of other prompts of the group.

        Args:
            tokens: token ids.
            labels: next token, IGNORED where none is trained.
            documents: number of each token's document.
            verdicts: see `kto_loss_sum`, shape (groups, answers).
            reference: log-probabilities under the reference, shape (groups, 2, answers); None to compute them.
            reference_alone: return them in place of the loss.
        """
        own, other = ((tokens[:, place], labels[:, place], documents[:, place]) for place in (0, 1))
        if reference is None:
            reference = torch.stack([self.of_reference(*own), self.of_reference(*other)], dim=1)
        if reference_alone:
            return reference
        with torch.no_grad():
            exchanged = self.log_probabilities(*other) - reference[:, 1]
        torch.clear_autocast_cache()  # before pytorch#165068 it holds the adapters in 16 bits without gradient
        policy = self.log_probabilities(*own)
        how: dict[str, Any] = {"beta": self.beta, "weights": self.weights}
        return kto_loss_sum(policy=policy, reference=reference[:, 0], exchanged=exchanged, verdicts=verdicts, **how)

"""Rows of tokens split over ranks: each computes its part of every row, and attention sees the keys of all.

Keys and values are gathered before attention (Llama 3, arXiv 2407.21783, section 3.3.2), so it is exact for any mask;
everything else of a layer is done for the own tokens alone. Each rank holds two spans of a row, one from the front and
one from the back: with causal attention all then have the same work.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from trainer.data.loading.batch import Values
from trainer.distributed.collectives import Forward
from trainer.distributed.parallel.replicas import Replicas
from trainer.models.decoder.masks import SequencePart
from trainer.models.decoder.model import Decoder
from trainer.models.language.model import LanguageModel
from trainer.runtime.errors import TrainerError


class SequenceSplit(Replicas):
    """`--parallel sequence`: each rank holds the whole model and a part of every row; gradients are added up."""

    shares = False
    undoes = False  # a rank whose memory runs out within a layer leaves the others waiting; all begin again

    def rank_slice(self, rows: int) -> slice:
        """Return all rows: every rank computes a part of each."""
        return slice(0, rows)

    def prepare(self, model: nn.Module) -> nn.Module:
        """Give all ranks rank 0's weights; return a model that computes this rank's part of the rows.

        Raises:
            TrainerError: RM563 for another model than a decoder with a loss for each token, or a transport without
                collectives on the ranks' devices.
        """
        transport = self.member.choice.transport
        if not isinstance(model, LanguageModel) or not isinstance(model.decoder, Decoder):
            what = f"--parallel sequence splits rows of tokens with a loss each, and the model is a {_name(model)}"
            raise TrainerError("RM563", what=what, next="Use --parallel ddp or fsdp2.")
        if self.member.device.type == "cuda" and transport.backend != "nccl":
            what = f"--parallel sequence on cards needs NCCL or RCCL, and the transport here is {transport.name}"
            raise TrainerError("RM563", what=what, why=self.member.choice.reason, next="Use --parallel ddp.")
        super().prepare(model)
        return SplitRows(model, self)

    def accumulate(self, forward: Forward, inputs: Values, targets: Values, **how: Any) -> Tensor:
        """Run forward and backward in micro-batches; raises RM568 where another rank has ended meanwhile.

        Args:
            forward: the model, wrapped.
            inputs: all rows of the batch, first dimension rows.
            targets: targets of the same rows.
            how: keywords of `gradient_accumulation.accumulate`.
        """
        with self.computing():
            return super().accumulate(forward, inputs, targets, **how)


class SplitRows(nn.Module):
    """The model as a rank sees it: from whole rows to the losses of its own tokens, in evaluation those of all."""

    def __init__(self, model: LanguageModel, world: SequenceSplit) -> None:
        super().__init__()
        self.model = model
        object.__setattr__(self, "world", world)

    def forward(
        self,
        tokens: Tensor,
        labels: Tensor,
        *,
        weights: Tensor | None = None,
        positions: Tensor | None = None,
        documents: Tensor | None = None,
    ) -> Tensor:
        """Return a sum of losses, a scalar; all tensors are of whole rows, (rows, tokens), see `LanguageModel`.

        Args:
            tokens: token ids.
            labels: next token, IGNORED where none is trained.
            weights: weight of each label; None for 1.
            positions: None counts from 0.
            documents: number of each token's document; None for one a row.
        """
        world: SequenceSplit = self.world  # type: ignore[assignment]
        part = part_of(tokens.shape[1], world)
        if positions is None:
            positions = torch.arange(tokens.shape[1], device=tokens.device).expand(tokens.shape)
        own = {"labels": labels, "positions": positions} | ({} if weights is None else {"weights": weights})
        loss: Tensor = self.model(
            part.cut(tokens), **{name: part.cut(value) for name, value in own.items()}, documents=documents, part=part
        )
        return loss if self.training else world.sum(loss.detach().reshape(1)).squeeze(0)


def part_of(tokens: int, world: SequenceSplit) -> SequencePart:
    """Return the part of a row of `tokens` that this rank holds.

    Raises:
        TrainerError: RM563 where the row cannot be cut into two equal spans a rank.
    """
    count = 2 * world.world_size
    if tokens % count:
        spans = f"{count} equal spans, two for each of {world.world_size} ranks"
        what = f"rows of {tokens:,} tokens cannot be cut into {spans}"
        raise TrainerError("RM563", what=what, next=f"Give a --sequence that is a multiple of {count}.")
    length = tokens // count
    held = [slice(place * length, (place + 1) * length) for place in places(world.rank, world.world_size)]

    def gather(own: Tensor) -> Tensor:
        gathered: Tensor = _Gather.apply(own, world)  # type: ignore[no-untyped-call]
        return gathered

    return SequencePart(spans=tuple(held), gather=gather)


def places(rank: int, world_size: int) -> tuple[int, int]:
    """Return which of 2 * world_size spans of a row a rank holds: one from the front, one from the back."""
    return rank, 2 * world_size - 1 - rank


class _Gather(torch.autograd.Function):
    """(rows, heads, own tokens, head_dim) to (rows, heads, tokens, head_dim) in the row's order; adds up gradients."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, world: SequenceSplit) -> Tensor:
        ctx.world = world
        held = [torch.empty_like(own, memory_format=torch.contiguous_format) for _ in range(world.world_size)]
        dist.all_gather(held, own.contiguous(), group=world.member.group)
        spans: list[Tensor] = [own] * (2 * world.world_size)
        for rank, both in enumerate(held):
            for place, span in zip(places(rank, world.world_size), both.chunk(2, dim=2), strict=True):
                spans[place] = span
        return torch.cat(spans, dim=2)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        world: SequenceSplit = ctx.world
        spans = gradients[0].chunk(2 * world.world_size, dim=2)
        for_each = [
            torch.cat([spans[place] for place in places(rank, world.world_size)], dim=2).contiguous()
            for rank in range(world.world_size)
        ]
        own = torch.empty_like(for_each[world.rank])
        dist.reduce_scatter(own, for_each, group=world.member.group)
        return own, None


def _name(model: nn.Module) -> str:
    return type(model).__name__

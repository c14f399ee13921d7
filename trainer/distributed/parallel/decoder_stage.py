"""A decoder's layers over ranks: states pass from stage to stage, all else of a batch is on every rank already.

GPipe's order (Huang et al. 2019, arXiv 1811.06965): all pieces forward, then all backward. A stage holds the
activations of all pieces; `--activation-checkpointing full` leaves the blocks' inputs of them.

Where head and embedding are one weight, first and last stage both hold it, and the two gradients are added up, so that
both take the same steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from trainer.data.loading.batch import Values, count, cut, tensors
from trainer.distributed.collectives import Forward
from trainer.distributed.gradient_accumulation import cuts, full
from trainer.distributed.parallel.split import cost
from trainer.models.decoder.masks import AttentionLayout
from trainer.models.language.model import LanguageModel


class DecoderStage(nn.Module):
    """The model as a rank sees it: in training its own blocks, in evaluation all, one rank after the other.

    `received` holds the states of the stage before; the first stage reads tokens.
    """

    received: Tensor | None = None
    world: Any

    def __init__(self, model: LanguageModel, slices: Sequence[slice], rank: int, world: Any) -> None:
        super().__init__()
        self.model = model
        self.first, self.last = rank == 0, rank == len(slices) - 1
        self.blocks = list(model.decoder.model.layers[slices[rank]])
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
        """Return states for the next stage, or the sum of losses; all tensors are (rows, tokens), see `LanguageModel`.

        Args:
            tokens: token ids.
            labels: next token, IGNORED where none is trained.
            weights: weight of each label; None for 1.
            positions: None counts from 0.
            documents: number of each token's document; None for one a row.
        """
        if positions is None:
            positions = torch.arange(tokens.shape[1], device=tokens.device).expand(tokens.shape)
        context: dict[str, Any] = {"positions": positions, "documents": documents}
        if self.training:
            states = self._states(tokens, **context)
            return self.model.loss_of(self._normed(states), labels, weights) if self.last else states
        return self._all_stages(tokens, labels, weights, context)

    def empty_states(self, tokens: Tensor) -> Tensor:
        """Return room for the states (rows, tokens, width) of these tokens, on their device."""
        decoder = self.model.decoder
        dtype = decoder.model.embed_tokens.weight.dtype  # that of the residual stream
        return torch.empty((*tokens.shape, decoder.config.width), dtype=dtype, device=tokens.device)

    def _states(self, tokens: Tensor, *, positions: Tensor, documents: Tensor | None) -> Tensor:
        backbone = self.model.decoder.model
        rows, length = tokens.shape
        layout = AttentionLayout(rows=rows, tokens=length, device=tokens.device, documents=documents)
        states = backbone.embedded(tokens, positions) if self.received is None else self.received
        turn = backbone.rotation(positions)
        for block in self.blocks:
            states = block(states, layout, turn)
        return states

    def _normed(self, states: Tensor) -> Tensor:
        normed: Tensor = self.model.decoder.model.norm(states)
        return normed

    @torch.no_grad()
    def _all_stages(self, tokens: Tensor, labels: Tensor, weights: Tensor | None, context: dict[str, Any]) -> Tensor:
        world = self.world
        loss = torch.zeros(1, dtype=torch.float64, device=tokens.device)
        for rank in range(world.world_size):
            states = self._states(tokens, **context) if world.rank == rank else self.empty_states(tokens)
            if rank == world.world_size - 1:
                if self.last:
                    loss += self.model.loss_of(self._normed(states), labels, weights)
                break
            states = states.to(self.empty_states(tokens[:0]).dtype)
            world.from_rank(rank, states)
            self.received = None if self.first else states
        self.received = None
        world.from_rank(world.world_size - 1, loss)
        return loss.squeeze(0)


def costs(model: LanguageModel) -> list[float]:
    """Return what training each block holds for good; the first has the embedding, the last norm and head with it."""
    decoder = model.decoder
    held = [float(cost(block)) for block in decoder.model.layers]
    held[0] += cost(decoder.model.embed_tokens)
    held[-1] += cost(decoder.model.norm) + cost(head_of(model))
    return held


def head_of(model: LanguageModel) -> nn.Module:
    """Return the module whose weight makes logits: the embedding where they are tied."""
    found: nn.Module = model.decoder.model.embed_tokens if model.decoder.config.tied else model.decoder.lm_head
    return found


def modules_of(model: LanguageModel, slices: Sequence[slice], rank: int) -> list[nn.Module]:
    """Return what a rank trains: its blocks, on the first rank the embeddings, on the last the norm and the head.

    Args:
        model: the whole model.
        slices: blocks of each rank.
        rank: whose modules.
    """
    backbone = model.decoder.model
    own: list[nn.Module] = list(backbone.layers[slices[rank]])
    if rank == 0:
        own += [module for name, module in backbone.named_children() if name.startswith("embed_")]
    if rank == len(slices) - 1:
        own += [backbone.norm, head_of(model)]
    return own


def owner_of(name: str, slices: Sequence[slice]) -> int:
    """Return the rank that trains a weight of a LanguageModel.

    Args:
        name: the weight's name in the state dict.
        slices: blocks of each rank.
    """
    last = len(slices) - 1
    parts = name.split(".")
    if "layers" in parts:
        block = int(parts[parts.index("layers") + 1])
        return next(rank for rank, each in enumerate(slices) if each.start <= block < each.stop)
    return 0 if any(part.startswith("embed_") for part in parts) else last


class Neighbours:
    """The stages before and after a rank's; what is sent is on its way until `wait`."""

    def __init__(self, rank: int, group: Any) -> None:
        self.rank, self.group = rank, group
        self._sent: list[tuple[Any, Tensor]] = []

    def receive(self, room: Tensor, *, before: bool) -> Tensor:
        """Fill `room` with what the stage before, or the one after, has sent."""
        dist.recv(room, src=self.rank + (-1 if before else 1), group=self.group)
        return room

    def send(self, tensor: Tensor, *, before: bool) -> None:
        """Begin to send a tensor to the stage before, or the one after; it is kept as long."""
        tensor = tensor.detach().contiguous()
        handle = dist.isend(tensor, dst=self.rank + (-1 if before else 1), group=self.group)
        self._sent.append((handle, tensor))

    def wait(self) -> None:
        """Wait until all is sent."""
        while self._sent:
            self._sent.pop(0)[0].wait()


def run_pieces(stage: DecoderStage, forward: Forward, inputs: Values, targets: Values, how: dict[str, Any]) -> Tensor:
    """Run one batch in pieces of `how["size"]` rows; return this rank's part of the mean loss, 0 but on the last rank.

    Args:
        stage: this rank's stage, which `forward` calls.
        forward: calls the stage with a piece of the inputs.
        inputs: all rows of the batch, by name.
        targets: targets of the same rows.
        how: keywords of `gradient_accumulation.accumulate`.
    """
    neighbours = Neighbours(stage.world.rank, stage.world.member.group)
    total = torch.zeros((), device=next(tensors(targets)).device, dtype=how.get("dtype"))
    held: list[tuple[Tensor | None, Tensor]] = []
    for rows in cuts(count(targets), how["size"]):
        outputs = _forward(stage, forward, cut(inputs, rows), neighbours)
        if stage.last:
            loss = full(how["loss_sum"](outputs, cut(targets, rows))) / how["weight"]
            total += loss.detach()
            outputs = how["scale"](loss) if how.get("scale") else loss
        held.append((stage.received, outputs))
    stage.received = None
    for received, outputs in held:
        _backward(stage, received, outputs, neighbours)
    neighbours.wait()
    return total


def _forward(stage: DecoderStage, forward: Forward, piece: Any, neighbours: Neighbours) -> Tensor:
    if not stage.first:
        stage.received = neighbours.receive(stage.empty_states(piece["tokens"]), before=True).requires_grad_()
    outputs: Tensor = forward(piece)
    if not stage.last:
        outputs = outputs.to(stage.empty_states(piece["tokens"][:0]).dtype)
        neighbours.send(outputs, before=False)
    return outputs


def _backward(stage: DecoderStage, received: Tensor | None, outputs: Tensor, neighbours: Neighbours) -> None:
    gradient = None
    if not stage.last:
        room = torch.empty_like(outputs, memory_format=torch.contiguous_format)
        gradient = neighbours.receive(room, before=False)
    outputs.backward(gradient)
    if received is not None:
        assert received.grad is not None  # every stage has a block, and every block maps states to states
        neighbours.send(received.grad, before=True)

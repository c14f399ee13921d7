"""A pipeline over unlike cards: layers split in proportion to memory, rows flowing through in micro-batches."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from trainer.data.loading.batch import Values
from trainer.device.accelerator import memory_of
from trainer.distributed.collectives import Forward
from trainer.distributed.gradient_accumulation import Scale
from trainer.distributed.parallel import decoder_stage
from trainer.distributed.parallel.split import cost, cut
from trainer.distributed.parallel.world import PATIENCE, Membership, World
from trainer.distributed.watchdog.heartbeat import HeartbeatWriter
from trainer.models.decoder.model import Decoder
from trainer.models.language.model import LanguageModel
from trainer.models.losses import LossSum
from trainer.runtime.errors import TrainerError

SINCE = "2.5"  # torch.distributed.pipelining that infers shapes while it runs


class Pipeline(World):
    """`--parallel pipeline`: each rank computes its layers for all rows; schedules by torch.distributed.pipelining.

    Every rank keeps a copy of the other layers in host memory, for checkpoints; it is refreshed by `full_state_dict`.
    """

    shares = False
    undoes = False  # the other stages wait for the one whose memory ran out; all begin again

    def __init__(self, member: Membership, heartbeat: HeartbeatWriter | None = None) -> None:
        super().__init__(member, heartbeat)
        self.pipelining = require_pipelining()
        self.owners: dict[str, int] = {}
        self._schedules: dict[tuple[Any, ...], Any] = {}

    def rank_slice(self, rows: int) -> slice:
        """Return all rows: every rank computes a part of the model for each of them."""
        return slice(0, rows)

    def prepare(self, model: nn.Module) -> nn.Module:
        """Split the layers by the cards' memory; layers of other ranks go to host memory.

        Raises:
            TrainerError: RM563 for a model but a plain stack or a decoder with a loss for each token, too few layers,
                a transport without send and receive.
        """
        self._require_possible(model)
        for tensor in model.state_dict().values():
            self.from_rank(0, tensor)
        memory = self.gather(memory_of(self.member.device))
        if isinstance(model, LanguageModel):
            return self._decoder_stage(model, memory)
        assert isinstance(model, nn.Sequential)
        slices = cut([cost(layer) + 1 for layer in model], memory)
        for index, layer in enumerate(model):
            owner = next(rank for rank, part in enumerate(slices) if part.start <= index < part.stop)
            self.owners |= {f"{index}.{name}": owner for name in layer.state_dict()}
            layer.to(self.member.device if owner == self.rank else "cpu")
        return Stages(model, slices, self)

    def _decoder_stage(self, model: LanguageModel, memory: Sequence[float]) -> nn.Module:
        """Split a decoder's blocks by the cards' memory; the embedding goes to the first card, the head to the last."""
        slices = cut(decoder_stage.costs(model), memory)
        self.owners = {name: decoder_stage.owner_of(name, slices) for name in model.state_dict()}
        own = decoder_stage.modules_of(model, slices, self.rank)
        for module in own:
            module.to(self.member.device)
        self._own = frozenset(id(parameter) for module in own for parameter in module.parameters())
        head = model.decoder.head_weight
        self._tied = head if model.decoder.config.tied and head.requires_grad else None
        if self._tied is not None:
            backend = self.member.choice.transport.backend
            self._ends = dist.new_group([0, self.world_size - 1], backend=backend, timeout=PATIENCE)
        self._stage = decoder_stage.DecoderStage(model, slices, self.rank, self)
        return self._stage

    _stage: decoder_stage.DecoderStage | None = None
    _tied: Tensor | None = None  # the weight of embedding and head, which first and last rank both train
    _ends: Any = None

    def accumulate(self, forward: Forward, inputs: Values, targets: Values, **how: Any) -> Tensor:
        """Run one batch through the pipeline in pieces of `size` rows; a smaller rest follows as a batch of its own.

        Returns this rank's part of the mean loss: all of it on the last rank, 0 on the others.

        Args:
            forward: the stage's model.
            inputs: this rank's rows, first dimension rows.
            targets: targets of the same rows.
            how: keywords of `gradient_accumulation.accumulate`.
        """
        if self._stage is not None:
            with self.section("comms") if self.rank else nullcontext(), self.computing():
                return decoder_stage.run_pieces(self._stage, forward, inputs, targets, how)
        if not (isinstance(inputs, Tensor) and isinstance(targets, Tensor)):
            what = "--parallel pipeline passes one tensor from stage to stage, and these batches hold several"
            raise TrainerError("RM563", what=what, next="Use --parallel ddp or fsdp2.")
        self._dtype = how.get("dtype") or torch.promote_types(targets.dtype, torch.float32)
        total = torch.zeros((), device=targets.device, dtype=self._dtype)
        size = min(how["size"], len(targets))
        even = len(targets) // size * size
        for rows in (slice(0, even), slice(even, len(targets))):
            if rows.stop > rows.start:
                x, y = inputs[rows], targets[rows]
                total += self._run(forward, x, y, -(-len(x) // size), how["weight"], how["loss_sum"], how.get("scale"))
        return total

    def _run(
        self, forward: Forward, x: Tensor, y: Tensor, pieces: int, weight: Any, loss_sum: LossSum, scale: Scale | None
    ) -> Tensor:
        scaled = scale or (lambda loss: loss)
        stage, schedule = self._schedule(pieces, (x.shape, x.dtype, y.shape))
        stage.submod.forward_of, stage.submod.dtype = forward, self._dtype
        schedule._loss_fn = lambda outputs, targets: scaled(loss_sum(outputs, targets) / weight)
        losses: list[Tensor] = []  # summed from here, for torch calls the loss function for shapes alone, too
        with self.section("comms") if self.rank else nullcontext(), self.computing():
            if self.rank == 0:
                schedule.step(x)
            elif self.rank == self.world_size - 1:
                schedule.step(target=y, losses=losses)
            else:
                schedule.step()
        total = torch.zeros((), device=y.device, dtype=self._dtype)
        return total + sum(loss.detach() for loss in losses) / scaled(torch.ones_like(total))

    def _schedule(self, pieces: int, shape: tuple[Any, ...]) -> tuple[Any, Any]:
        """Return stage and schedule for a number and a shape of micro-batches: torch fixes both at their first step."""
        key = (pieces, *shape)
        if key not in self._schedules:
            stage = self.pipelining.PipelineStage(
                _Layers(), self.rank, self.world_size, self.member.device, group=self.member.group
            )
            one_forward_one_backward = pieces >= self.world_size  # holds fewer activations, but needs so many pieces
            name = "Schedule1F1B" if one_forward_one_backward else "ScheduleGPipe"
            kind = getattr(self.pipelining, name)
            unscaled = {"scale_grads": False} if "scale_grads" in inspect.signature(kind).parameters else {}
            self._schedules[key] = stage, kind(stage, pieces, loss_fn=lambda outputs, targets: outputs, **unscaled)
        found: tuple[Any, Any] = self._schedules[key]
        return found

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Add up the gradients of the weight that two ranks train, if there is one; all others are of one rank."""
        if self._tied is not None and self.rank in (0, self.world_size - 1):
            assert self._tied.grad is not None
            with self.waiting():
                dist.all_reduce(self._tied.grad, group=self._ends)

    def share_buffers(self, model: nn.Module) -> None:
        """Nothing to share: each buffer is used on one rank."""

    def full_state_dict(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        """Give all ranks each weight as its owner has it, in place."""
        for name, tensor in weights.items():
            self.from_rank(self.owners[name], tensor)
        return weights

    def full_optimizer_state(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        """Bring the states that the owners hold together."""
        state = optimizer.state_dict()
        host = {
            index: {name: _on_host(value) for name, value in each.items()} for index, each in state["state"].items()
        }
        merged: dict[Any, Any] = {}
        for part in self.gather(host):
            merged |= part
        return {**state, "state": dict(sorted(merged.items()))}

    def load_optimizer(self, optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
        """Keep the states of the weights that are trained here."""
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        mine = {index: each for index, each in state["state"].items() if id(parameters[index]) in self._own}
        optimizer.load_state_dict({**state, "state": mine})

    def gradient_norm(self, parameters: Sequence[nn.Parameter]) -> Tensor:
        """Return the norm of all gradients: each rank holds those of its own layers; a shared one counts once."""
        counted = [each for each in parameters if self.rank == 0 or each is not self._tied]
        own = super().gradient_norm(counted).to(self.member.device)
        return self.sum(own.square().reshape(1)).sqrt().squeeze(0)

    _own: frozenset[int] = frozenset()
    _dtype = torch.float32

    def release(self) -> None:
        """Let go of the process groups and of the stages that refer to them."""
        self._ends = self._stage = None
        self._schedules.clear()
        super().release()

    def _require_possible(self, model: nn.Module) -> None:
        transport = self.member.choice.transport
        if self.member.compression != "none":
            what = "--parallel pipeline adds no gradients up, so there are none to compress"
            raise TrainerError("RM563", what=what, next="Leave --gradient-compression out, or use --parallel ddp.")
        own = isinstance(model, LanguageModel) and not isinstance(model.decoder, Decoder)
        if own or not isinstance(model, nn.Sequential | LanguageModel):
            kinds = "a plain stack of layers, or a decoder with a loss for each token"
            what = f"--parallel pipeline splits {kinds}, and the model is a {type(model).__name__}"
            raise TrainerError("RM563", what=what, next="Use --parallel ddp or fsdp2.")
        if self.member.device.type == "cuda" and transport.backend != "nccl":
            what = f"--parallel pipeline on cards needs NCCL or RCCL, and the transport here is {transport.name}"
            raise TrainerError("RM563", what=what, why=self.member.choice.reason, next="Use --parallel ddp.")


class Stages(nn.Module):
    """The model as a rank sees it: in training its own layers, in evaluation all, one rank after the other."""

    def __init__(self, model: nn.Sequential, slices: Sequence[slice], world: Pipeline) -> None:
        super().__init__()
        self.model, self.slices = model, list(slices)
        self.own = model[self.slices[world.rank]]
        object.__setattr__(self, "world", world)
        world._own = frozenset(id(parameter) for parameter in self.own.parameters())

    def forward(self, rows: Tensor) -> Tensor:
        """Map this rank's inputs to its outputs in training; rows to the model's outputs in evaluation."""
        if self.training:
            result: Tensor = self.own(rows)
            return result
        return self._all_stages(rows)

    @torch.no_grad()
    def _all_stages(self, rows: Tensor) -> Tensor:
        world: Pipeline = self.world  # type: ignore[assignment]
        here = rows
        for rank in range(world.world_size):
            mine = world.rank == rank
            if mine:
                here = self.own(here)
            shape, dtype = world.gather((tuple(here.shape), here.dtype))[rank]
            here = here if mine else torch.empty(shape, dtype=dtype, device=rows.device)
            world.from_rank(rank, here)
        return here


class _Layers(nn.Module):
    """The module that PipelineStage calls; the loop's forward carries autocast and is set before each step."""

    forward_of: Forward
    dtype: torch.dtype

    def forward(self, x: Tensor) -> Tensor:
        outputs: Tensor = self.forward_of(x)
        return outputs.to(self.dtype)  # what goes to the next stage is never rounded to 16 bits


def require_pipelining() -> Any:
    """Return torch.distributed.pipelining.

    Raises:
        TrainerError: RM562 in versions that lack it.
    """
    try:
        from torch.distributed import pipelining

        inspect.signature(pipelining.PipelineStage).bind(None, 0, 2, "cpu")  # without example inputs
    except (ImportError, AttributeError, TypeError):
        what = f"--parallel pipeline needs torch {SINCE} or later, this is {torch.__version__}"
        raise TrainerError("RM562", what=what, next="Use --parallel ddp or a cell with a later torch.") from None
    return pipelining


def _on_host(value: Any) -> Any:
    return value.detach().cpu() if isinstance(value, Tensor) else value

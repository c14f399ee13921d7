"""The program that a run executes, on tensors without data: network, faster ways, loop and optimizer as they are."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.checkpoint import DefaultDeviceType

from trainer.config.sections.decoder import AdapterConfig, DecoderConfig
from trainer.device.precision import DTYPES, Precision
from trainer.engine.loop import forward_backward, step_optimizer
from trainer.engine.measurement import best_of
from trainer.engine.optimizer import MOMENTS, AdamWOnHost
from trainer.engine.training import Plan, Training, new_training
from trainer.models.activation_checkpointing import checkpointed, layers
from trainer.models.fast.choose import hold_frozen_weights_in
from trainer.run.memory_plan.allocator import CachingAllocator, DoesNotFitError, PlainAllocator, held_after_steps
from trainer.run.memory_plan.attention import PlannedAttention
from trainer.run.memory_plan.compiled import PlannedCompile
from trainer.run.memory_plan.faster import trials, use_expected
from trainer.run.memory_plan.live_memory import TRIALS, LiveMemory, Peak
from trainer.run.memory_plan.shapes import Program
from trainer.run.memory_plan.sharding import groups_of, spread
from trainer.run.memory_plan.tensors.own_class import own_class_without_data
from trainer.run.memory_plan.tensors.repeated import RepeatedOperations
from trainer.tasks.language.network import build
from trainer.tasks.language_model import sum_of

# Tensors without data are the host's by name: torch without a card cannot compute gradients of a card's. What differs
# on a card is put in: the allocator, attention's kernel, and what autocast widens there (`PlannedAttention`).
DEVICE = torch.device("cpu")
DEPTH = ("num_hidden_layers", "n_layer")  # of config.json


@dataclass(frozen=True, kw_only=True)
class Footprint:
    """Bytes at the largest moment of each segment of a step, and the FLOPs of the step's products.

    flops: in 16 bits, recomputation included; wide_flops: in 32 and more. trained, all: numbers of weights. held: bytes
    that the allocator holds in the third step; 0 where no later steps were followed.
    """

    peaks: Mapping[str, Peak]
    flops: float
    wide_flops: float
    trained: int
    all: int
    held: int = 0

    @property
    def largest(self) -> Peak:
        """The largest moment of the step."""
        return max(self._step(), key=lambda each: each.allocated)

    @property
    def reserved(self) -> int:
        """Bytes that the allocator holds at most in the steps."""
        return self.held or max(each.reserved for each in self._step())

    def _step(self) -> list[Peak]:
        """Return the segments without the trials: these give way where memory runs out."""
        return [peak for segment, peak in self.peaks.items() if segment != TRIALS]

    def facts(self) -> dict[str, Any]:
        """Return the numbers as JSON holds them."""
        largest = self.largest
        return {"peak": largest.allocated, "reserved": self.reserved, "parts": largest.parts, "flops": self.flops}


class PlannedPrecision(Precision):
    """A number format whose loss scaler needs no values."""

    def scaler(self) -> Any:
        """Return what scales a loss in fp16."""
        return _Scaler() if self.name == "fp16" else None


class _Scaler:
    """GradScaler's interface; a step is never skipped."""

    def scale(self, loss: Tensor) -> Tensor:
        return loss * loss.new_full((), 2.0**16)

    def unscale_(self, optimizer: Any) -> None:
        """Scale back in place: no memory."""

    def _found_inf_per_device(self, optimizer: Any) -> dict[str, Tensor]:
        return {}

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        optimizer.step()

    def update(self) -> None:
        """Keep the scale."""


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """As many rows as a step takes; they are never fetched."""

    count: int

    def __len__(self) -> int:
        return self.count

    def rows(self, numbers: Tensor, device: torch.device) -> Any:
        raise NotImplementedError


def measured(program: Program, *, limit: int | None = None) -> Footprint:
    """Run one step without data and return what it takes on its device.

    Args:
        program: what is trained.
        limit: bytes of the device for this process; None for no limit.

    Raises:
        DoesNotFitError: where the step passes the limit.
        TrainerError: RM701, RM707 for a network that is not implemented, RM712 for a method of peft that cannot be
            computed so.
    """
    allocator = CachingAllocator() if program.card else PlainAllocator()
    fake, compile_, call = _bench()
    memory = LiveMemory(allocator, vocabulary=int(program.raw["vocab_size"]), card=program.card, call=call)
    plain, masked = program.attention
    attention = PlannedAttention(
        plain=plain, masked=masked, flops=memory.add_flops, host=not program.card, units=program.units
    )
    compile_.memory, compile_.network = memory, json.dumps({**program.raw, **dict.fromkeys(DEPTH)}, sort_keys=True)
    own_class = contextlib.nullcontext() if program.peft is None else own_class_without_data(program.peft)
    with own_class, fake, memory, attention.used(), _checkpoints_of_host(), memory.inputs_elsewhere():
        model = network(program, compile_)
        training = training_of(program, model)
        if program.card:
            memory.allocator = CachingAllocator(limit=limit)  # from here on: the network was built on the host
        memory.begin()
        if program.card and program.fast and program.peft is None:
            memory.part = TRIALS
            with contextlib.suppress(DoesNotFitError):  # the way that is tried is refused there, and the run continues
                trials(model.decoder, program)  # type: ignore[arg-type]
        tried = memory.peaks[TRIALS]
        states_made(training, memory)
        memory.part = "weights"
        kept = best_of(training) if program.best else {}
        held = step(training, program, memory)
        kept.clear()
        memory.peaks[TRIALS] = tried
        return _footprint(memory, model, program, held)


@contextlib.contextmanager
def _checkpoints_of_host() -> Iterator[None]:
    """Have torch's checkpoint look at the host's state within the context.

    It finds no card among tensors without data, looks at the first kind there is, and raises where planning has made
    torch start that card in the meantime: with a card in the machine no plan with full checkpointing was made.
    """
    before = DefaultDeviceType.get_device_type()
    DefaultDeviceType.set_device_type(DEVICE.type)
    try:
        yield
    finally:
        DefaultDeviceType.set_device_type(before)


@functools.cache
def _bench() -> tuple[FakeTensorMode, PlannedCompile, RepeatedOperations]:
    """Return what plans share: one mode, as compiled graphs belong to it, the graphs, and operations that are known."""
    mode = FakeTensorMode()
    return mode, PlannedCompile(mode), RepeatedOperations(mode)


def _footprint(memory: LiveMemory, model: nn.Module, program: Program, held: int) -> Footprint:
    peaks = memory.peaks
    if program.shards > 1:
        held = 0
        groups = groups_of(model)
        peaks = {
            name: spread(name, peak, groups, program.shards, pieces=program.pieces) for name, peak in peaks.items()
        }
    weights = list(model.parameters())
    counted = sum(each.numel() for each in weights) + sum(
        2 * buffer.numel() for name, buffer in model.named_buffers() if name.endswith("packed")
    )
    return Footprint(
        peaks=peaks,
        flops=memory.flops,
        wide_flops=memory.wide_flops,
        trained=sum(each.numel() for each in weights if each.requires_grad),
        all=counted,
        held=held,
    )


def settings_of(program: Program) -> DecoderConfig:
    """Return the settings of the network, by which `train` would build it."""
    targets = tuple(program.targets)
    adapter = AdapterConfig(
        adapter=program.adapter, lora_rank=program.rank, lora_targets=targets, lora_dropout=program.dropout
    )
    return DecoderConfig(adapter=adapter)


def network(program: Program, compile_: PlannedCompile) -> nn.Module:
    """Return the network on its device, as `train` builds it."""
    with torch.device(DEVICE):
        model = build(program.raw, settings_of(program), program.method, seed=0, unset=True, peft=program.peft)
    if program.method not in ("dpo", "kto"):
        model.drop_ignored = False  # type: ignore[assignment]  # how many tokens carry loss is known with the data alone: all are counted
    if program.fast and program.peft is None:
        use_expected(model, program, compile_)
    elif program.fast and program.precision in ("bf16", "fp16"):  # of transformers' class nothing else is tried
        hold_frozen_weights_in(model, DTYPES[program.precision])
    return checkpointed(model, program.checkpointing, layers(model))


def training_of(program: Program, model: nn.Module) -> Training:
    """Return the run at its beginning."""
    rows: Any = _Rows(count=program.rows * program.pieces)
    precision = PlannedPrecision(name=program.precision, reason="planned", device_type=DEVICE.type)
    plan = Plan(
        epochs=1,
        batch_size=program.rows * program.pieces,
        learning_rate=1e-4,
        seed=0,
        micro_batch=program.rows,
        clip_norm=program.clip_norm,
        optimizer=program.optimizer,
    )
    training = new_training(model, rows, rows, plan, precision=precision, device=DEVICE, loss_sum=sum_of, guarded=False)
    if training.scaler is not None and program.card and program.optimizer == "adamw":
        for group in training.optimizer.param_groups:
            group["foreach"] = True  # torch's choice on a card, where weights are plain tensors
    return training


def states_made(training: Training, memory: LiveMemory) -> None:
    """Have the optimizer make its states, as its first step does."""
    memory.part = "gradients"
    for weight in training.model.parameters():
        if weight.requires_grad:
            weight.grad = torch.zeros_like(weight)
    memory.part = "optimizer"
    on_host = isinstance(training.optimizer, AdamWOnHost)
    with memory.paused() if on_host else contextlib.nullcontext():
        training.optimizer.step()
    for state in training.optimizer.state.values() if on_host else ():
        for name in MOMENTS:
            memory.elsewhere(state[name])
    training.optimizer.zero_grad()
    memory.gradients_of(training.model)


def step(training: Training, program: Program, memory: LiveMemory) -> int:
    """Take one step, remember its largest moment, and return the bytes that a card's allocator holds in later ones."""
    memory.part = "activations"
    memory.begin()
    allocator, rest, states = memory.allocator, memory.sizes(), memory.sizes("optimizer")
    if isinstance(allocator, PlainAllocator):
        taken(training, program, memory, [])
        return 0
    record: list[tuple[int, int]] = []
    allocator.record = record
    states_at = taken(training, program, memory, record)
    allocator.record = None
    fresh = allocator.fresh()
    for size in rest:
        fresh.allocate(size)
    return held_after_steps(fresh, record, states_at=states_at, states=states)


def taken(training: Training, program: Program, memory: LiveMemory, record: Sequence[tuple[int, int]]) -> int:
    """Take one step, and return how long the allocator's record was when the optimizer stepped.

    Args:
        training: see `training_of`; program: what it was made of.
        memory: follows the step's storages.
        record: the allocator's, empty before the step; see `CachingAllocator`.
    """
    inputs = batch(program)
    weight = torch.ones((), device=DEVICE)
    targets = next(iter(inputs.values()))
    forward_backward(training, inputs, targets, rows=program.rows * program.pieces, weight=weight)
    memory.part, states_at = "workspace", len(record)
    step_optimizer(training)
    return states_at


def batch(program: Program) -> dict[str, Tensor]:
    """Return a step's inputs by name, as the partitions of the task give them."""
    rows = program.rows * program.pieces
    sides = {"dpo": (program.answers,), "kto": (2, program.answers)}.get(program.method, ())
    shape = (rows, *sides, program.sequence)
    names = ["tokens", "labels"] + (["documents"] if program.packed or sides else [])
    made = {name: torch.zeros(shape, dtype=torch.long, device=DEVICE) for name in names}
    if program.method == "kto":
        made["verdicts"] = torch.ones(rows, program.answers, device=DEVICE)
    if program.packed and not sides:
        made["positions"] = torch.zeros(shape, dtype=torch.long, device=DEVICE)
        made["weights"] = torch.ones(shape, device=DEVICE)
    return made

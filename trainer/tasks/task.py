"""A learning task as the trainer sees it: data, network, loss and figures of one kind of problem.

The loop, the steps, the records and the export call these methods and know nothing else of a task. `BarTask`,
`TableTask` and `LanguageTask` implement the interface; a task is chosen in `tasks/choose.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from trainer.config.sections.optimizer import LoopConfig
from trainer.data.loading.batch import Batch
from trainer.device.capacity import ParameterCount
from trainer.device.precision import Precision
from trainer.models.decoder.skip_init import SkipInit

LossSum = Callable[[Any, Any], Tensor]
"""From outputs and targets to the sum of the loss over all rows of a batch, a scalar.

The sum is in fp32, or in fp64 where the weights are fp64, whatever dtype outputs and targets have: casting is the
loss function's, so that it can cast a piece at a time. An empty batch has the sum 0. The loop divides by the weight
of the whole batch, so the function itself takes no mean.
"""

BatchWeight = Callable[[Any], Tensor]
"""From the targets of a batch to its weight, a scalar on their device: class weights, or tokens that count."""


RUN = "{run}"  # stands for the run's folder in the commands of the `done` event: a container's is another outside


class Partition(Protocol):
    """One part of the data, in rows; what a row is the task decides (a bar, a line of a table, a packed sequence)."""

    @property
    def device(self) -> torch.device:
        """Where the rows are held. On the device of the computation they are indexed there, else copied."""

    def __len__(self) -> int:
        """Return the number of rows."""

    def rows(self, numbers: Tensor, device: torch.device) -> Batch:
        """Return inputs and targets of the rows with these numbers (rows,), int64, on `device`.

        Inputs and targets are tensors, or tuples or mappings of tensors, of any dtype, the first dimension of each
        the rows. Called from several threads at once where rows are fetched ahead. The same numbers give the same
        rows: nothing random may be drawn here.
        """


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Request for the placement of rows: the value of --feed, the device that computes, and the dtype of its weights.

    `folder` receives files that are mapped. Integer rows keep their dtype; `dtype` is for floating ones.
    """

    device: torch.device
    dtype: torch.dtype
    feed: str
    workers: int
    folder: Path


@dataclass(frozen=True, kw_only=True)
class Partitions:
    """The rows to train and to validate on, and how they are fed: the fields of the event `feed`.

    `workers` threads fetch rows ahead; 0 where rows are on the device or an index into memory is all it takes.
    """

    train: Partition
    validation: Partition
    feed: str
    reason: str
    workers: int = 0


@dataclass(frozen=True, kw_only=True)
class AttentionShape:
    """The shape of a network's attention for one row, on which its kernels are tried."""

    heads: int
    length: int
    width: int
    causal: bool


@dataclass(frozen=True, kw_only=True)
class ComputeContext:
    """Context in which a network is to be computed, for trials before training.

    rows: of a step, at a time. before: each part's choice of an unfinished run, or of rank 0; these alone are tried.
    refused: attention kernels by name, "compile" and "triton", that failed a gate, and why; they are not used.
    """

    device: str
    precision: Precision
    rows: int
    checkpointing: str
    parallel: str
    before: Mapping[str, str] | None = None
    refused: Mapping[str, str] = field(default_factory=dict)


class Tuner(Protocol):
    """Has a network use faster ways of computing the same, where they pass their trials."""

    def hold(self, model: nn.Module, context: ComputeContext, *, replaced: bool) -> None:
        """Bring weights to the dtype they are held in; called on the host, before `NetworkSpec.load`.

        Args:
            model: network, changed in place.
            context: device, precision and what was refused.
            replaced: whether a load of all frozen weights follows, so that their values do not matter.
        """

    def use(self, model: nn.Module, context: ComputeContext) -> dict[str, Any]:
        """Try and choose; return each part's choice for metadata.json: `{part: {"name": ..., "why": ...}}`."""


@dataclass(frozen=True, kw_only=True)
class NetworkSpec:
    """A network before it exists.

    Args:
        description: the section `model` of metadata.json, from which `models.build` or the task's own loader makes
            the network again. JSON types alone.
        build: returns the network with fresh weights from torch's global generator; called under the meta device,
            too, where nothing may be allocated. Parameters that are not trained have `requires_grad` False.
        load: puts weights from elsewhere (a pretrained model) into a network on the host; None for none. Called on
            each rank, after `build` and the cast to the run's dtype, and before the network goes to its device, with
            torch's name of the device that may compute what is to be loaded.
        attention: shape of the attention whose kernel is to be chosen, None for a network without.
        tune: has the network compute faster, None where there is one way only.
        remedy: from a number of parameters that would fit into memory to the next step of RM521.
        trial: refuses a network that cannot take a step, by a small one; called with it on its device, its number
            format and the value of --activation-checkpointing, where each rank holds the whole of it. None for none.
        planned: what a plan of a step's memory takes of the network, see `run/memory_plan/start_size`; None where no
            plan can be made.
    """

    description: dict[str, Any]
    build: Callable[[], nn.Module]
    load: Callable[[nn.Module, str], None] | None = None
    attention: AttentionShape | None = None
    tune: Tuner | None = None
    remedy: Callable[[int], str] = lambda most: f"a network of at most {most:,} parameters would fit"
    trial: Callable[[nn.Module, Precision, str], None] | None = None
    planned: Mapping[str, Any] | None = None

    def parameters(self) -> ParameterCount:
        """Count the parameters on the meta device; none is allocated, and no random number is drawn."""
        with SkipInit(), torch.device("meta"):  # there, drawing imports the compiler: 3 s of processor time
            weights = list(self.build().parameters())
        trained = sum(weight.numel() for weight in weights if weight.requires_grad)
        return ParameterCount(all=sum(weight.numel() for weight in weights), trained=trained)


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """A trained network to be measured, on all ranks alike.

    Args:
        forward: what is called with inputs; in evaluation mode already, under `torch.no_grad`.
        device: where inputs must be.
        dtype: dtype of floating inputs: that of the weights.
        rows: number of rows that fit into memory at a time, as training found it.
        rank_slice: returns the slice of so many rows that this rank measures. Where every rank must take part in each
            call of `forward` it is all rows on each rank, and `sum` returns what it was given.
        sum: adds a tensor up over the ranks, in place, and returns it.
        autocast: returns the context of the run's precision, for a task that measures in it.
        measured: mean loss of the validation part with these weights, which training measured when it kept them; None
            where it did not.
    """

    forward: nn.Module
    device: torch.device
    dtype: torch.dtype
    rows: int
    rank_slice: Callable[[int], slice]
    sum: Callable[[Tensor], Tensor]
    autocast: Callable[[], AbstractContextManager[Any]]
    measured: float | None = None


@dataclass(frozen=True, kw_only=True)
class Trained:
    """Length of a finished training: validation measurements, seconds, and rows of the training part seen."""

    measurements: int
    seconds: float
    rows: int


class LearningTask(Protocol):
    """A learning task: data that are read and split, and all that is particular to their kind.

    The data are read before the object exists: `tasks.choose.task_of(config)` makes it, on every rank.
    """

    @property
    def kind(self) -> str:
        """The kind's name: `bars`, `table`, `language`."""

    @property
    def data_name(self) -> str:
        """Name of the data for messages."""

    @property
    def data_sha256(self) -> str:
        """SHA-256 of all data that decide the result. A resume and the other ranks must have the same."""

    @property
    def train_rows(self) -> int:
        """Number of rows of the training part; batches, epochs and schedules are counted in them."""

    def defaults(self, loop: LoopConfig, given: Collection[str]) -> dict[str, Any]:
        """Return values, by name, of settings that are not `given` and that these data decide."""

    def network(self) -> NetworkSpec:
        """Return the network that the settings describe for these data.

        Raises:
            TrainerError: where settings of the network do not fit the data.
        """

    def partitions(self, placement: Placement) -> Partitions:
        """Return the rows to train and to validate on, held where `placement` wants them.

        Raises:
            TrainerError: RM586 where they do not fit there.
            OSError: where a mapped file cannot be written.
        """

    def precomputed(self, rows: Partitions, evaluation: Evaluation) -> Partitions:
        """Return the rows with what is computed of them once, before the first step and at each resume.

        A collective: every rank calls it with the same rows and returns the same.
        """

    def loss(self) -> LossSum:
        """Return the sum of the loss over rows; see `LossSum`."""

    def batch_weight(self) -> BatchWeight | None:
        """Return what a batch weighs, None where it is its number of rows; see `BatchWeight`.

        A step divides by the sum of the weights of all its micro-batches on all ranks, so the loss does not depend
        on how the batch is cut. The training and validation losses of an epoch are means weighted by it.
        """

    def evaluate(self, evaluation: Evaluation) -> dict[str, Any]:
        """Return the figures of the trained network by part: `{"validation": {...}, "test": {...}}`, JSON types.

        A collective: every rank calls it and returns the same.
        """

    def describe(self, network: NetworkSpec) -> dict[str, Any]:
        """Return the task's entries of metadata.json, JSON types alone.

        Bars and tables fill the entries that they had from the first schema on (data, features, feature_set, scaler,
        target, split, model, baselines). Another kind gives `task` (its name), `data` (as `DataRecord`), `model`
        (`network.description`) and one section of its own name.
        """

    def replay_settings(self) -> dict[str, Any]:
        """Return what `replay` needs next to the description of the network to compute the loss again."""

    def files(self, model: nn.Module, record: dict[str, Any], formats: Sequence[str]) -> dict[str, bytes]:
        """Return the model's files by name; `model` is on the CPU, `record` is metadata.json's content.

        `formats` are those of --export. The recipe is not among the files: it is the same for every task.

        Args:
            model: trained network on the CPU.
            record: content of metadata.json.
            formats: values of `--export`.

        Raises:
            TrainerError: where a format that was asked for cannot be written.
        """

    def summary(self, record: Mapping[str, Any], trained: Trained) -> dict[str, str]:
        """Return the lines of the run's summary by label, without device and folder; a label has 7 characters."""

    def next_commands(self, record: Mapping[str, Any]) -> list[str]:
        """Return commands that use the model of a finished run, with `RUN` for its folder; none where there are none.

        Args:
            record: content of metadata.json.
        """

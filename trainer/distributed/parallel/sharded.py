"""Fully sharded: each rank holds a part of every weight, and the whole of a layer only while it computes."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from errno import EIO
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from trainer.data.loading.batch import Values
from trainer.distributed.collectives import Forward
from trainer.distributed.parallel.world import PATIENCE, World
from trainer.models.activation_checkpointing import layers
from trainer.runtime.errors import TrainerError

SINCE = "2.6"  # torch.distributed.fsdp.fully_shard; before, it was under _composable and behaved otherwise


class Sharded(World):
    """`--parallel fsdp2`: torch's fully_shard on every layer with weights of its own, and on the model."""

    lockstep = True  # every forward gathers weights from all ranks
    saves_shards = True
    undoes = False  # a rank whose memory runs out within forward leaves the others waiting; all begin again
    _checkpoints: Any = None  # process group
    _meshes: tuple[Any, ...] = ()

    def prepare(self, model: nn.Module) -> nn.Module:
        """Give all ranks rank 0's weights and shard them in place; `model`'s parameters become DTensors.

        Raises:
            TrainerError: RM562 where this torch has no fully_shard, RM563 where the transport cannot carry it.
        """
        fully_shard = require_fully_shard()
        from torch.distributed.device_mesh import DeviceMesh

        self._require_direct()
        for tensor in model.state_dict().values():
            self.from_rank(0, tensor)
        mesh = DeviceMesh.from_group(self.member.group, self.member.device.type)
        self._meshes = (*self._meshes, mesh)
        for layer in layers(model):
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        if self._checkpoints is None:  # of their own: checkpoints are written while training communicates
            self._checkpoints = dist.new_group(backend="gloo", timeout=PATIENCE)
        return model

    def write_checkpoint(self, folder: Path, step: int, tree: dict[str, Any], facts: dict[str, Any]) -> Path | None:
        """Write this rank's part of a checkpoint; see `Ranks.write_checkpoint`.

        Args:
            folder: folder of the run's checkpoints, the same one for all ranks.
            step: number of steps taken.
            tree: state of the run on the host.
            facts: JSON values for the manifest.

        Raises:
            OSError: where a rank cannot write, or has ended.
        """
        from trainer.distributed.sharded_checkpoint import save_load

        try:
            return save_load.write(folder, step, tree, facts, self._checkpoints)
        except RuntimeError as error:  # gloo has no class of its own for a rank that ended; the run will find it, too
            raise OSError(EIO, f"another rank did not write its part: {str(error).splitlines()[0]}") from error

    def read_shards(
        self, tree: dict[str, Any], checkpoint: Path, model: nn.Module, optimizer: torch.optim.Optimizer
    ) -> dict[str, Any]:
        """Return the tree with this rank's parts, read from whatever parts other ranks have written.

        Args:
            tree: state of the run; a tensor of device meta stands for one in the checkpoint's shards.
            checkpoint: folder of the checkpoint, verified.
            model: the prepared model.
        """
        from trainer.distributed.sharded_checkpoint import save_load

        weights = model.state_dict()
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]

        def target(name: str, _: Tensor) -> Tensor:
            part, rest = name.removeprefix("/").split("/", 1)
            if part == "optimizer":
                return torch.empty_like(parameters[int(rest.split("/")[1])])
            return torch.empty_like(weights[rest.removeprefix("best/")])

        with self.waiting():
            return save_load.filled(tree, checkpoint, target, self._checkpoints)

    def release(self) -> None:
        """Let go of the process groups; torch's caches of layouts keep the mesh, which has one (torch 2.13)."""
        for mesh in self._meshes:
            getattr(mesh, "_pg_registry", {}).clear()
        self._checkpoints, self._meshes = None, ()
        super().release()

    def micro_step(self, model: nn.Module, *, last: bool) -> AbstractContextManager[None]:
        """Send gradients in the last micro-step only; until then they stay whole on each rank."""
        sharded: Any = model
        sharded.set_requires_gradient_sync(last)
        return contextlib.nullcontext()

    def accumulate(self, forward: Forward, inputs: Values, targets: Values, **how: Any) -> Tensor:
        """Run forward and backward in micro-batches; raises RM568 where another rank has ended meanwhile.

        Args:
            forward: the sharded model.
            inputs: this rank's rows, first dimension rows.
            targets: targets of the same rows.
            how: keywords of `gradient_accumulation.accumulate`.
        """
        with self.computing():
            return super().accumulate(forward, inputs, targets, **how)

    def sum_gradients(self, parameters: Sequence[nn.Parameter]) -> None:
        """Turn the means that fully_shard made into sums; exact where the number of ranks is a power of two."""
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad.mul_(self.world_size)

    def full_state_dict(self, weights: dict[str, Tensor]) -> dict[str, Tensor]:
        """Gather each weight from all ranks."""
        with self.waiting():
            return {name: gathered(value).cpu() for name, value in weights.items()}  # one at a time on the device

    def load_model(self, model: nn.Module, weights: dict[str, Tensor]) -> None:
        """Cut whole weights as the model's are cut; those that are cut already are taken as they are."""
        own = model.state_dict()
        model.load_state_dict({name: cut_like(value, own[name]) for name, value in weights.items()})

    def full_optimizer_state(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        """Gather the optimizer's state from all ranks."""
        state = optimizer.state_dict()
        with self.waiting():
            gathered_state = {
                index: {name: gathered(value) for name, value in each.items()} for index, each in state["state"].items()
            }
        return {**state, "state": gathered_state}

    def load_optimizer(self, optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
        """Cut the state of each parameter as the parameter is cut."""
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        cut = {
            index: {name: cut_like(value, parameters[index]) for name, value in each.items()}
            for index, each in state["state"].items()
        }
        optimizer.load_state_dict({**state, "state": cut})

    def _require_direct(self) -> None:
        transport = self.member.choice.transport
        if self.member.device.type == "cuda" and transport.backend != "nccl":
            what = f"--parallel fsdp2 on cards needs NCCL or RCCL, and the transport here is {transport.name}"
            raise TrainerError("RM563", what=what, why=self.member.choice.reason, next="Use --parallel ddp.")
        if self.member.compression != "none":
            what = (
                f"--gradient-compression {self.member.compression} with --parallel fsdp2: torch adds its gradients up"
            )
            raise TrainerError("RM563", what=what, next="Leave it out, or use --parallel ddp.")


def require_fully_shard() -> Any:
    """Return torch's fully_shard.

    Raises:
        TrainerError: RM562 in versions that lack it.
    """
    try:
        from torch.distributed.fsdp import fully_shard
    except ImportError:
        what = f"--parallel fsdp2 needs torch {SINCE} or later, this is {torch.__version__}"
        raise TrainerError("RM562", what=what, next="Use --parallel ddp or a cell with a later torch.") from None
    return fully_shard


def gathered(value: Any) -> Any:
    """Return a DTensor whole, anything else as it is; a collective."""
    return value.full_tensor() if hasattr(value, "full_tensor") else value


def cut_like(value: Any, model: Tensor) -> Any:
    """Return a whole tensor cut as `model` is; what is cut already or has another shape stays as it is."""
    from torch.distributed.tensor import DTensor, distribute_tensor

    whole = isinstance(value, Tensor) and not isinstance(value, DTensor) and value.shape == model.shape
    if not whole or not isinstance(model, DTensor):
        return value
    return distribute_tensor(value.to(model.device), model.device_mesh, model.placements)

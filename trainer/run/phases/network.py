"""The network of phase 1: whether it fits into memory, its first weights, its attention kernel and its faster ways."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import nn

from trainer.config.train import TrainConfig
from trainer.device.capacity import require_memory
from trainer.device.precision import DTYPES, Precision
from trainer.distributed.collectives import Ranks
from trainer.engine.optimizer import STATES
from trainer.engine.steps.attention_selection import Chosen, attend
from trainer.models.activation_checkpointing import checkpointed, layers, require_whole_layers
from trainer.models.adapters.lora import pad_ranks
from trainer.models.adapters.nf4 import hold_dense
from trainer.run.gates.decide import Gates
from trainer.run.phases.attempt import Attempt
from trainer.run.plan import requested_attention, rows_tried
from trainer.run.rank_setup import placed
from trainer.runtime.events import emit, say
from trainer.tasks.task import ComputeContext, NetworkSpec


def require_room(network: NetworkSpec, device: str, precision: Precision, config: TrainConfig) -> None:
    """Raise RM521 where the network cannot be trained on `device` at all.

    Args:
        device: name of this rank's device, such as "cuda:0".
    """
    require_memory(
        network.parameters(),
        device,
        bytes_each=precision.weights.itemsize,
        best_on_host=config.loop.best_on == "host",
        states=STATES[config.optimizer.optimizer],
        remedy=network.remedy,
    )


def held_dense(network: NetworkSpec, gates: Gates) -> NetworkSpec:
    """Return the network as its memory is to be planned: 4-bit weights that are held dense take what LoRA's do."""
    if network.planned is None or not gates.dense_nf4:
        return network
    return replace(network, planned={**network.planned, "adapter": "lora"})


def built(
    network: NetworkSpec, attempt: Attempt, device: str, precision: Precision, gates: Gates
) -> tuple[nn.Module, Chosen | None, dict[str, Any] | None]:
    """Return the network with its first weights where it is to be, its attention kernel, and its faster ways.

    Args:
        device: name of this rank's device, such as "cuda:0".
    """
    config, bootstrap = attempt.config, attempt.bootstrap
    model = network.build().to(dtype=precision.weights)
    context = replace(compute_context_of(attempt, device, precision), refused=gates.refusals())
    if network.tune:
        # sooner than they are loaded: the host then never holds them in fp32
        network.tune.hold(model, context, replaced=network.load is not None)
    if network.load:
        network.load(model, device if gates.quantises else "cpu")
    pad_ranks(model, gates.padded)
    if gates.dense_nf4:
        hold_dense(model, DTYPES[precision.name])
    model = placed(model, device, config.distributed, bootstrap)
    before = (attempt.settings or {}).get("attention")
    attention = attend(
        model,
        network.attention,
        requested_attention(config),
        rows=rows_tried(config),
        device=device,
        precision=precision,
        ranks=bootstrap,
        before=before,
    )
    fast = tuned(network, model, context, bootstrap)
    require_whole_layers(config.compute.activation_checkpointing, config.distributed.parallel)
    checkpointed(model, config.compute.activation_checkpointing, layers(model))
    if network.trial and config.distributed.parallel == "ddp":
        network.trial(model, precision, config.compute.activation_checkpointing)
    return model, attention, fast


def compute_context_of(attempt: Attempt, device: str, precision: Precision) -> ComputeContext:
    """Return how the network is to be computed; an unfinished run keeps its choices.

    Args:
        device: torch's name of the device, such as cuda:0 or cpu.
    """
    config = attempt.config
    return ComputeContext(
        device=device,
        precision=precision,
        rows=rows_tried(config),
        checkpointing=config.compute.activation_checkpointing,
        parallel=config.distributed.parallel,
        before=(attempt.settings or {}).get("fast"),
    )


def tuned(network: NetworkSpec, model: nn.Module, context: ComputeContext, bootstrap: Ranks) -> dict[str, Any] | None:
    """Have the network use faster ways; the other ranks use those that rank 0 chose. A collective.

    Return each part's choice, for the metadata; None where the network has no faster ways.

    Args:
        model: the network on its device, changed in place.
    """
    if network.tune is None:
        return None
    found = network.tune.use(model, context) if bootstrap.is_main else None
    if bootstrap.world_size > 1:
        names = bootstrap.broadcast(names_of(found))
        found = found or network.tune.use(model, replace(context, before=names))
    if bootstrap.is_main and found:
        emit("fast", **found)
        for part, choice in found.items():
            say(f"fast    {part}: {choice['name']}: {choice['why']}")
    return found


def names_of(fast: dict[str, Any] | None) -> dict[str, str] | None:
    """Return the name of each part's choice."""
    return None if fast is None else {part: choice["name"] for part, choice in fast.items()}

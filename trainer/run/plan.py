"""The loop's plan, and the request for an attention kernel, from the sections of a configuration."""

from __future__ import annotations

from trainer.config.sections.network import TransformerConfig
from trainer.config.train import TrainConfig
from trainer.engine.training import Plan


def plan_of(config: TrainConfig) -> Plan:
    """Return what the run is to do."""
    loop, optimizer = config.loop, config.optimizer
    return Plan(
        epochs=loop.epochs,
        batch_size=loop.batch_size,
        batch_schedule=loop.batch_schedule,
        learning_rate=optimizer.learning_rate,
        seed=loop.seed,
        micro_batch=config.compute.micro_batch,
        max_steps=loop.max_steps,
        eval_every=loop.eval_every,
        patience=loop.patience,
        clip_norm=optimizer.clip_norm,
        best_on_host=loop.best_on == "host",
        optimizer=optimizer.optimizer,
        muon_learning_rate=optimizer.muon_learning_rate,
    )


def requested_attention(config: TrainConfig) -> str:
    """Return the kernel of attention that was asked for; auto for a network that has none."""
    return config.model.attention if isinstance(config.model, TransformerConfig) else "auto"


def rows_tried(config: TrainConfig) -> int:
    """Return the rows at a time on which a kernel of attention is tried: those of a step."""
    size = config.loop.batch_size
    return min(size, config.compute.micro_batch or size)

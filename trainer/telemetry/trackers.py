"""Trackers in addition to the JSON lines: TensorBoard, Weights & Biases, MLflow. Each is imported only if chosen.

One that cannot start ends the run before training; one that fails later is switched off, and the run continues.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from trainer.runtime.errors import TrainerError
from trainer.runtime.events import say

Figures = Mapping[str, float]


class Tracker(Protocol):
    """Takes figures by name at a step."""

    def log(self, step: int, figures: Figures) -> None:
        """Record `figures` at optimizer step `step`."""

    def close(self) -> None:
        """Write out what is left."""


class TensorBoard:
    """Event files below the run's folder, written by tensorboardX."""

    def __init__(self, folder: Path, run: str, config: Mapping[str, Any]) -> None:
        import tensorboardX

        self.writer = tensorboardX.SummaryWriter(logdir=str(folder / "tensorboard"))
        self.writer.add_text("config", "\n".join(f"    {name}: {value}" for name, value in config.items()))

    def log(self, step: int, figures: Figures) -> None:
        """Record `figures` at optimizer step `step`."""
        for name, value in figures.items():
            self.writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Write out what is left."""
        self.writer.close()


class WeightsAndBiases:
    """A run of the project "rocmatrix"; WANDB_MODE=offline keeps it on this machine."""

    def __init__(self, folder: Path, run: str, config: Mapping[str, Any]) -> None:
        import wandb

        self.run = wandb.init(project="rocmatrix", name=run, dir=str(folder), config=dict(config))

    def log(self, step: int, figures: Figures) -> None:
        """Record `figures` at optimizer step `step`."""
        self.run.log(dict(figures), step=step)

    def close(self) -> None:
        """Write out what is left."""
        self.run.finish()


class MLflow:
    """A run of the experiment "rocmatrix" at MLFLOW_TRACKING_URI, by default in the working folder."""

    def __init__(self, folder: Path, run: str, config: Mapping[str, Any]) -> None:
        import mlflow

        self.client = mlflow
        mlflow.set_experiment("rocmatrix")
        mlflow.start_run(run_name=run)
        mlflow.log_params(dict(config))

    def log(self, step: int, figures: Figures) -> None:
        """Record `figures` at optimizer step `step`."""
        self.client.log_metrics(dict(figures), step=step)

    def close(self) -> None:
        """Write out what is left."""
        self.client.end_run()


KINDS: dict[str, tuple[type[Tracker], str]] = {
    "tensorboard": (TensorBoard, "tensorboardX"),
    "wandb": (WeightsAndBiases, "wandb"),
    "mlflow": (MLflow, "mlflow"),
}


class Guarded:
    """A tracker that may fail without ending the run: it is closed, reported once, and not called again."""

    def __init__(self, name: str, tracker: Tracker) -> None:
        self.name = name
        self.tracker: Tracker | None = tracker

    def log(self, step: int, figures: Figures) -> None:
        """Hand figures on, unless the tracker failed before."""
        if self.tracker is not None:
            self._try(lambda tracker: tracker.log(step, figures))

    def close(self) -> None:
        """Close the tracker, unless it failed before."""
        if self.tracker is not None:
            self._try(lambda tracker: tracker.close())

    def _try(self, call: Any) -> None:
        try:
            call(self.tracker)
        except Exception as error:
            self.tracker = None
            say(f"{self.name} failed and is switched off, training continues: {type(error).__name__}: {error}")


def require(names: Sequence[str]) -> None:
    """See before anything else that the trackers are installed.

    Raises:
        TrainerError: RM507, naming the package that is missing.
    """
    for name in names:
        package = KINDS[name][1]
        if importlib.util.find_spec(package) is None:
            raise TrainerError("RM507", what=f"--track {name} needs the package {package}, not installed here")


def start(names: Sequence[str], folder: Path, run: str, config: Mapping[str, Any]) -> list[Guarded]:
    """Start the trackers that were asked for.

    Args:
        names: values of `--track`.
        folder: folder of the run.
        run: name of the run.
        config: settings by name, for the tracker to show.

    Raises:
        TrainerError: RM507 where one is not installed or does not start.
    """
    return [Guarded(name, _started(name, folder, run, config)) for name in names]


def _started(name: str, folder: Path, run: str, config: Mapping[str, Any]) -> Tracker:
    kind, _ = KINDS[name]
    try:
        return kind(folder, run, config)  # type: ignore[call-arg]
    except Exception as error:
        raise TrainerError("RM507", what=f"{name} did not start", why=f"{type(error).__name__}: {error}") from error

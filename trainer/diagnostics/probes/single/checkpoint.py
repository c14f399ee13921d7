"""Probe `checkpoint`: a training that was killed resumes from its checkpoint to the same bits.

A process trains on the device and keeps a checkpoint every few steps, until it is killed by SIGKILL at a moment
it does not choose. The newest whole checkpoint is loaded here, trained on to the end, and compared with an
uninterrupted training.
"""

from __future__ import annotations

import argparse
import io
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainer.device.compiler_import import avoid_compiler_import
from trainer.diagnostics.probes import entry, numerics, placement
from trainer.diagnostics.probes.entry import Request
from trainer.diagnostics.probes.verdict import Check, Device, Number, Verdict, at_least, at_most, conclude, equal
from trainer.storage import checkpoint_store

if TYPE_CHECKING:
    import torch

MODULE = "trainer.diagnostics.probes.single.checkpoint"
STEPS, EVERY, KILL_AFTER = 40, 2, 6  # steps of the whole training, between checkpoints, before it may be killed
STATE = "state.pt"
START_SHARE = 0.6  # of the time limit until the first checkpoints must be there


class Training:
    """A small network with an optimizer, on a device; its state is weights, moments, step and random numbers."""

    def __init__(self, device: Device, seed: int) -> None:
        import torch

        torch.use_deterministic_algorithms(True)
        torch.manual_seed(seed)
        self.device, self.seed, self.done = device, seed, 0
        layers = torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(64, 4)
        self.network = torch.nn.Sequential(*layers).to(device.torch_type)
        avoid_compiler_import()
        self.optimizer = torch.optim.AdamW(self.network.parameters(), lr=1e-2)

    def step(self) -> None:
        """Take one step on a batch that follows from the step's number."""
        import torch

        generator = torch.Generator().manual_seed(self.seed + self.done)
        x = torch.randn(128, 32, generator=generator).to(self.device.torch_type)
        self.optimizer.zero_grad()
        torch.autograd.backward((self.network(x) - x[:, :4]).square().mean())
        self.optimizer.step()
        self.done += 1

    def state(self) -> dict[str, Any]:
        """Return all that the next steps depend on."""
        import torch

        card = {} if self.device.kind == "cpu" else {"card": torch.cuda.get_rng_state()}
        return {
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "random": {"cpu": torch.get_rng_state(), **card},
            "done": self.done,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to `state`."""
        import torch

        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"]["cpu"])
        if self.device.kind != "cpu":
            torch.cuda.set_rng_state(state["random"]["card"])
        self.done = state["done"]

    def weights(self) -> torch.Tensor:
        """Return all weights in one dimension, on the CPU."""
        import torch

        return torch.nn.utils.parameters_to_vector(self.network.parameters()).detach().cpu().clone()


def measure(request: Request) -> Verdict:
    """Train undisturbed; have another process killed; go on from what it left.

    Raises:
        NoDeviceError: the expected kind of card is not there.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what torch demands for repeatable products
    device, seed = placement.place(request.expect), numerics.fresh_seed()
    with tempfile.TemporaryDirectory() as folder:
        ended = kill_training(Path(folder), request, seed)
        kept = checkpoint_store.stored(Path(folder))
        found, checks = (resume(device, seed, Path(folder))) if kept else (0, [])
    return conclude(
        probe="checkpoint",
        summary=f"Killed after step {found} or later, the training went on to the same {STEPS} steps on {device.name}.",
        checks=[*killed_checks(ended, len(kept)), *checks],
        numbers=[Number(name="seed", value=seed, unit=""), Number(name="resumed after", value=found, unit="steps")],
        device=device,
        versions=placement.versions(),
    )


def kill_training(folder: Path, request: Request, seed: int) -> int | None:
    """Start a training that writes to `folder`, kill it once it has kept some, return how it ended.

    Args:
        folder: folder of the checkpoints, which the killed process wrote and the next one reads.
        seed: seeds weights and batches; equal seeds train equally.
    """
    argv = [sys.executable, "-m", MODULE, "--expect", request.expect, "--train", str(seed), "--folder", str(folder)]
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    deadline = time.monotonic() + START_SHARE * request.timeout_seconds
    try:
        while process.poll() is None and newest(folder) < KILL_AFTER and time.monotonic() < deadline:
            time.sleep(0.005)
    finally:
        process.kill()
        returncode = process.wait()
    return returncode


def newest(folder: Path) -> int:
    """Return the step of the newest checkpoint, 0 for none."""
    kept = checkpoint_store.stored(folder)
    return kept[0].step if kept else 0


def killed_checks(returncode: int | None, kept: int) -> list[Check]:
    """Check that the training was really killed, and had kept something."""
    how = signal.Signals(-returncode).name if returncode is not None and returncode < 0 else f"status {returncode}"
    return [
        equal("the training was killed", how, signal.SIGKILL.name),
        at_least("checkpoints kept", kept, 1, "checkpoints"),
    ]


def resume(device: Device, seed: int, folder: Path) -> tuple[int, list[Check]]:
    """Return the step resumed from, and checks against an uninterrupted training.

    Args:
        seed: seeds weights and batches; equal seeds train equally.
        folder: folder of the checkpoints, which the killed process wrote and the next one reads.
    """
    whole = advance(Training(device, seed), STEPS)
    files, _ = checkpoint_store.read(checkpoint_store.stored(folder)[0])
    again = Training(device, seed)
    scramble(again)
    before = again.weights()
    again.restore(load(files[STATE]))
    found = again.done
    loaded = numerics.bits_changed(before, again.weights())
    advance(again, STEPS)
    return found, [
        at_least("weights that loading changed", loaded, 1, "weights"),
        at_most("resumed before the end", found, STEPS - 1, "steps"),
        at_most("weights against undisturbed", numerics.bits_changed(whole.weights(), again.weights()), 0, "differ"),
    ]


def scramble(training: Training) -> None:
    """Give a training weights and random numbers of its own, which loading must replace."""
    import torch

    torch.manual_seed(training.seed + 1)
    with torch.no_grad():
        for weight in training.network.parameters():
            weight.normal_()


def advance(training: Training, steps: int) -> Training:
    """Train up to `steps` in all."""
    while training.done < steps:
        training.step()
    return training


def save(training: Training) -> bytes:
    """Return the training's state as bytes."""
    import torch

    stream = io.BytesIO()
    torch.save(training.state(), stream)
    return stream.getvalue()


def load(content: bytes) -> dict[str, Any]:
    """Return a state from its bytes; nothing but tensors and plain values is unpickled."""
    import torch

    state: dict[str, Any] = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    return state


def train_until_killed(device: Device, seed: int, folder: Path) -> int:
    """Train in the process that is killed: its steps, and the last ones over and over, keeping checkpoints.

    Args:
        seed: seeds weights and batches; equal seeds train equally.
        folder: folder of the checkpoints, which the killed process wrote and the next one reads.
    """
    training = Training(device, seed)
    while True:
        training.step()
        if training.done % EVERY == 0:
            checkpoint_store.write(folder, training.done, {STATE: [save(training)]}, {})
        if training.done == STEPS - EVERY:
            time.sleep(3600)  # the end is not for this process to reach


def main(argv: Sequence[str] | None = None) -> int:
    """Run the probe, or with `--train SEED --folder PATH` the training that is killed."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--train", type=int)
    parser.add_argument("--folder", type=Path)
    own, rest = parser.parse_known_args(argv)
    if own.train is None:
        return entry.main("checkpoint", measure, rest)
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    return train_until_killed(placement.place(entry.parse_request(rest).expect), own.train, own.folder)


if __name__ == "__main__":
    sys.exit(main())

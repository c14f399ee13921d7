"""One of two ranks over gloo on the CPU that hold parts of one model; prints what it found as one JSON line."""

from __future__ import annotations

import contextlib
import json
import math
import sys
from typing import Any

import torch
from rank_program import ROWS, STEPS, alone, batch, difference, gloo_threads, model_of  # beside this file
from torch import Tensor, nn

from trainer.data.loading.placement import TensorPartition
from trainer.device.precision import Precision
from trainer.distributed.collectives import Ranks
from trainer.distributed.parallel import pipeline
from trainer.distributed.parallel.join import connect, join
from trainer.distributed.parallel.world import World
from trainer.engine.loop import fit
from trainer.engine.training import Plan, new_training
from trainer.models.losses import squared_error_sum


def together(
    world: World, dtype: torch.dtype, *, size: int, seed: int = 0, cut_at: int | None = None
) -> dict[str, Any]:
    """Train; with `cut_at`, save whole states before that step and go on from them in a fresh model."""
    model, forward, optimizer = fresh(world, dtype, seed)
    losses = 0.0
    for step in range(STEPS):
        if step == cut_at:
            weights = {name: value.clone() for name, value in world.full_state_dict(model.state_dict()).items()}
            state = world.full_optimizer_state(optimizer)
            model, forward, optimizer = fresh(world, dtype, seed=99)
            world.load_model(model, weights)
            world.load_optimizer(optimizer, state)
        forward.train()
        inputs, targets = batch(step, dtype)
        mine = world.rank_slice(len(targets))
        optimizer.zero_grad()
        loss = world.accumulate(
            forward,
            inputs[mine],
            targets[mine],
            size=size,
            weight=len(targets),
            loss_sum=squared_error_sum,
            context=lambda last, forward=forward: world.micro_step(forward, last=last),
            pieces=math.ceil(math.ceil(ROWS / 2) / size) if world.lockstep else 0,
        )
        losses += world.sum(loss.reshape(1)).item()
        world.sum_gradients(list(model.parameters()))
        optimizer.step()
    forward.eval()
    with torch.no_grad():
        outputs = forward(inputs)
    whole = {name: value.clone() for name, value in world.full_state_dict(model.state_dict()).items()}
    own = sum(local(p).numel() for p in model.parameters() if optimizer.state.get(p))
    return {"weights": flat(whole), "outputs": outputs, "losses": losses, "own": own}


def fresh(world: World, dtype: torch.dtype, seed: int) -> tuple[nn.Module, nn.Module, torch.optim.Optimizer]:
    model = model_of(seed, dtype)
    forward = world.prepare(model)
    return model, forward, torch.optim.AdamW(model.parameters(), lr=1e-2)


def local(parameter: Tensor) -> Tensor:
    found: Tensor = parameter.to_local() if hasattr(parameter, "to_local") else parameter
    return found


def flat(weights: dict[str, Tensor]) -> Tensor:
    return torch.cat([value.reshape(-1) for value in weights.values()])


def outputs_of(weights: Tensor, dtype: torch.dtype) -> Tensor:
    model = model_of(0, dtype)
    nn.utils.vector_to_parameters(weights, model.parameters())
    with torch.no_grad():
        result: Tensor = model(batch(STEPS - 1, dtype)[0])
    return result


def against_one_process(world: World) -> dict[str, Any]:
    found: dict[str, Any] = {}
    reference = alone(torch.float64)
    for size in (2, 4, ROWS):
        got = together(world, torch.float64, size=size, seed=world.rank)
        assert all(torch.equal(got["weights"], other) for other in world.gather(got["weights"]))
        found[f"pieces of {size}"] = difference(got["weights"], reference)
        found[f"evaluation after pieces of {size}"] = difference(
            got["outputs"], outputs_of(got["weights"], torch.float64)
        )
    undisturbed = together(world, torch.float32, size=3)
    resumed = together(world, torch.float32, size=3, cut_at=3)
    return {
        "difference": found,
        "resumed to the bit": torch.equal(undisturbed["weights"], resumed["weights"]),
        "losses": undisturbed["losses"],
        "losses of one process": losses_alone(),
        "own": undisturbed["own"],
        "all": reference.numel(),
        "clipping": clipping_against_one_process(world),
    }


class Norms:
    """The norm of all gradients at each optimizer step, as the optimizer finds them."""

    def __init__(self, ranks: Ranks) -> None:
        self.ranks, self.found = ranks, list[float]()

    def __call__(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        self.found.append(self.ranks.gradient_norm(optimizer.param_groups[0]["params"]).item())


def clipped(ranks: Ranks, limit: float | None) -> tuple[Tensor, list[float], list[float]]:
    """Return weights, gradient norms after clipping, and validation losses of a run of the training loop in fp64."""
    inputs, targets = batch(0, torch.float64, rows=5 * ROWS)
    rows, held_out = (
        TensorPartition(inputs=inputs[cut], targets=targets[cut]) for cut in (slice(0, 44), slice(44, 55))
    )
    plan = Plan(epochs=2, batch_size=ROWS, learning_rate=1e-2, seed=0, micro_batch=3, eval_every=3, clip_norm=limit)
    precision = Precision(name="fp64", reason="test", device_type="cpu")
    model, device = model_of(0, torch.float64), torch.device("cpu")
    run = new_training(model, rows, held_out, plan, ranks=ranks, precision=precision, device=device)
    norms = Norms(ranks)
    run.optimizer.register_step_pre_hook(norms)
    history = fit(run)
    whole = {name: value.clone() for name, value in ranks.full_state_dict(run.model.state_dict()).items()}
    return flat(whole), norms.found, [epoch.validation_loss for epoch in history]


def clipping_against_one_process(world: World) -> dict[str, Any]:
    """Differences from one process, with a limit that every step, some steps and no step reaches; norms of a rank."""
    unlimited = clipped(Ranks(), None)[1]
    found: dict[str, Any] = {"unlimited": unlimited}
    for name, limit in {"every": min(unlimited) / 20, "some": sorted(unlimited)[4], "no": 1e6}.items():
        (weights, norms, losses), (expected, _, losses_alone) = clipped(world, limit), clipped(Ranks(), limit)
        gap = max(abs(one - other) for one, other in zip(losses, losses_alone, strict=True))
        found[name] = {"limit": limit, "norms": norms, "weights": difference(weights, expected), "losses": gap}
    return found


def losses_alone() -> float:
    """The sum of one process's losses over all steps, in fp32."""
    model = model_of(0, torch.float32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    total = 0.0
    for step in range(STEPS):
        inputs, targets = batch(step, torch.float32)
        optimizer.zero_grad()
        loss = squared_error_sum(model(inputs), targets) / len(targets)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total


def main() -> None:
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)  # fills what is not written with NaN, so that its use shows
    kind = sys.argv[1]
    world = join(connect(), "cpu", parallel=kind, report=lambda *_, **__: None)
    assert isinstance(world, World)
    if kind == "pipeline":
        unequal = {0: 20, 1: 4}
        pipeline.memory_of = lambda device: unequal[world.rank]  # type: ignore[assignment]
    with contextlib.closing(world):
        found = against_one_process(world)
        during = gloo_threads()
        world.release()  # as a run does when its last step is taken
    print(json.dumps({**found, "gloo_threads": [during, gloo_threads()]}))


if __name__ == "__main__":
    sys.exit(main())

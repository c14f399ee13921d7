"""One of two ranks over gloo on the CPU; prints what it found as one JSON line. The tests start both."""

from __future__ import annotations

import contextlib
import copy
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from trainer.device.memory import OutOfMemory
from trainer.distributed.gradient_accumulation import accumulate
from trainer.distributed.parallel.join import connect, join
from trainer.distributed.parallel.replicas import Replicas
from trainer.distributed.transports.link import Link
from trainer.distributed.transports.reduce import CompressedSum, DirectSum, HostSum, ddp_hook
from trainer.models.losses import squared_error_sum

ROWS, FEATURES, STEPS = 11, 5, 6  # an odd number of rows: the ranks' shares differ


def model_of(seed: int, dtype: torch.dtype) -> nn.Module:
    torch.manual_seed(seed)
    layers = nn.Linear(FEATURES, 8), nn.Tanh(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)
    return nn.Sequential(*layers).to(dtype)


def batch(step: int, dtype: torch.dtype, rows: int = ROWS) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(step)
    drawn = torch.randn(rows, FEATURES + 1, generator=generator).to(dtype)
    return drawn[:, :FEATURES], drawn[:, FEATURES:]


def flat(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def difference(a: Tensor, b: Tensor) -> float:
    return ((a - b).norm() / b.norm()).item()


def alone(dtype: torch.dtype, seed: int = 0, rows: Callable[[int], int] = lambda step: ROWS) -> Tensor:
    """The weights of one process that computes each whole batch at once."""
    model = model_of(seed, dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(STEPS):
        inputs, targets = batch(step, dtype, rows(step))
        optimizer.zero_grad()
        (squared_error_sum(model(inputs), targets) / len(targets)).backward()
        optimizer.step()
    return flat(model)


def together(
    world: Replicas,
    dtype: torch.dtype,
    *,
    size: int = 2,
    seed: int = 0,
    rows: Callable[[int], int] = lambda step: ROWS,
    fail: Callable[[int, int], bool] = lambda step, piece: False,
) -> Tensor:
    """The weights after the same steps in pieces of `size` rows on the ranks; `fail` names pieces without memory."""
    model = model_of(seed, dtype)
    forward = world.prepare(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(STEPS):
        inputs, targets = batch(step, dtype, rows(step))
        mine = world.rank_slice(len(targets))
        here, pieces = size, iter(range(100))
        while True:
            optimizer.zero_grad()
            short = False
            try:
                accumulate(
                    lambda piece, step=step, pieces=pieces: failing(forward, piece, fail(step, next(pieces))),
                    inputs[mine],
                    targets[mine],
                    size=here,
                    weight=len(targets),
                    loss_sum=squared_error_sum,
                    context=lambda last: world.micro_step(forward, last=last),
                )
            except OutOfMemory:
                short = True
            (short,) = world.any_rank(short)
            if not short:
                break
            here = -(-here // 2)
        world.sum_gradients(list(model.parameters()))
        optimizer.step()
    return flat(model)


def failing(forward: nn.Module, piece: Tensor, fails: bool) -> Tensor:
    if fails:
        raise OutOfMemory("injected")
    result: Tensor = forward(piece)
    return result


def same_everywhere(world: Replicas, weights: Tensor) -> bool:
    return all(torch.equal(weights, other) for other in world.gather(weights))


def equal_to_one_process(world: Replicas) -> dict[str, Any]:
    found = {}
    for name, dtype in {"fp64": torch.float64, "fp32": torch.float32}.items():
        for size in (1, 2, 6):
            weights = together(world, dtype, size=size)
            assert same_everywhere(world, weights)
            found[f"{name} pieces of {size}"] = difference(weights, alone(dtype))
    found["fp64 rank 1 has other weights at first"] = difference(
        together(world, torch.float64, seed=world.rank), alone(torch.float64)
    )
    one_row = lambda step: 1 if step == 3 else ROWS  # noqa: E731 - rank 0's share of one row is empty
    found["fp64 a rank without rows"] = difference(
        together(world, torch.float64, rows=one_row), alone(torch.float64, rows=one_row)
    )
    return found


def out_of_memory(world: Replicas) -> dict[str, Any]:
    """Rank 1 alone fails once, in the last piece or before; the step is computed again in smaller pieces."""
    expected = together(world, torch.float64, size=3)
    found = {}
    for name, where in {"first piece": 0, "last piece": 1}.items():
        left = [True]

        def fail(step: int, piece: int, where: int = where, left: list[bool] = left) -> bool:
            if world.rank == 1 and step == 2 and piece == where and left[0]:
                left[0] = False
                return True
            return False

        weights = together(world, torch.float64, size=3, fail=fail)
        assert same_everywhere(world, weights)
        found[name] = {"failed": not left[0], "difference": difference(weights, expected)}
    return found


def sent_once(world: Replicas) -> dict[str, Any]:
    """How often and when buckets are sent with four micro-batches, in buckets of a few bytes."""
    events: list[str] = []
    inner = world.add

    class Counting:
        def __call__(self, tensor: Tensor) -> Any:
            events.append("send")
            return inner(tensor)

        def close(self) -> None:
            pass

    small = Link(latency_s=1e-9, bus_bytes_per_s=1.0)
    counting = copy.copy(world)
    counting.add = Counting()  # type: ignore[assignment]
    counting.member = type(world.member)(**{**vars(world.member), "choice": replace_link(world, small)})
    model = nn.Sequential(*[nn.Linear(512, 512) for _ in range(3)])
    counting.prepare(model)
    assert counting.sync
    for last in (False, False, False, True):
        with counting.micro_step(model, last=last):
            loss = model(torch.ones(1, 512)).sum()
            events.append("backward")
            loss.backward()
            events.append("backward ended")
    counting.sum_gradients(list(model.parameters()))
    return {"events": events, "buckets": len(counting.sync.buckets)}


def replace_link(world: Replicas, link: Link) -> Any:
    choice = world.member.choice
    return type(choice)(transport=choice.transport, reason=choice.reason, link=link)


def unused(world: Replicas) -> dict[str, Any]:
    """One parameter is used on rank 1 only, one nowhere."""
    model = nn.ParameterDict({name: nn.Parameter(torch.ones(2)) for name in ("all", "one", "none")})
    world.prepare(model)
    with world.micro_step(model, last=True):
        loss = model["all"].sum() + (model["one"].sum() if world.rank == 1 else 0.0)
        loss.backward()
    world.sum_gradients(list(model.parameters()))
    return {name: None if p.grad is None else p.grad.tolist() for name, p in model.items()}


def sums(world: Replicas) -> dict[str, Any]:
    """Each way's sum of the same random numbers, against the direct one in fp64."""
    torch.manual_seed(world.rank)
    mine = torch.randn(10_001)
    exact = DirectSum()
    reference = mine.double()
    exact(reference)()
    found: dict[str, Any] = {}
    host = HostSum()
    for name, add in {
        "direct": exact,
        "host": host,
        "bf16": CompressedSum(exact),
        "bf16 host": CompressedSum(host),
    }.items():
        tensor = mine.clone()
        add(tensor)()
        found[name] = difference(tensor.double(), reference)
        assert same_everywhere(world, tensor)
    many = [mine * factor for factor in range(1, 9)]
    waits = [host(tensor) for tensor in many]  # all under way before the first is waited for
    for wait in waits:
        wait()
    found["host in order"] = max(difference(t.double(), reference * (i + 1)) for i, t in enumerate(many))
    host.close()
    return found


def torchs_own(world: Replicas) -> float:
    """torch's DistributedDataParallel with our hook for host memory, against its own all-reduce."""
    gradients = []
    for hooked in (False, True):
        model = nn.parallel.DistributedDataParallel(model_of(0, torch.float64))
        host = HostSum()
        if hooked:
            model.register_comm_hook(None, ddp_hook(host, world.world_size))
        inputs, targets = batch(world.rank, torch.float64)
        squared_error_sum(model(inputs), targets).backward()
        gradients.append(torch.cat([p.grad.reshape(-1) for p in model.parameters()]))
        host.close()
    return difference(gradients[1], gradients[0])


def values(world: Replicas) -> dict[str, Any]:
    rank = world.rank
    strided = (torch.arange(6.0).view(2, 3).t() * (rank + 1))[:, :1]
    buffers = nn.BatchNorm1d(2)
    buffers.running_mean += rank + 1
    buffers.num_batches_tracked += 10 * (rank + 1)
    world.share_buffers(buffers)
    return {
        "any": world.any_rank(rank == 1, False, rank == 0),
        "broadcast": world.broadcast({"from": rank}),
        "gather": world.gather([rank]),
        "sum": world.sum(strided).flatten().tolist(),
        "maximum": world.maximum(torch.tensor([float(rank), 1.0 - rank])).tolist(),
        "buffers": [buffers.running_mean.tolist(), buffers.num_batches_tracked.item()],
        "share": [world.rank_slice(11).start, world.rank_slice(11).stop],
    }


CHECKS: dict[str, Callable[[Replicas], Any]] = {
    each.__name__: each for each in (equal_to_one_process, out_of_memory, sent_once, unused, sums, torchs_own, values)
}


def gloo_threads() -> int:
    """How many threads of gloo this process has; Linux names them."""
    names = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    return sum("gloo" in name for name in names)


def main() -> None:
    torch.set_num_threads(1)
    events: list[dict[str, Any]] = []
    world = join(connect(), "cpu", report=lambda event, **fields: events.append({"event": event, **fields}))
    assert isinstance(world, Replicas)
    with contextlib.closing(world):
        found = {name: check(world) for name, check in CHECKS.items()}
        during = gloo_threads()
        world.release()  # as a run does when its last step is taken
    print(json.dumps({"events": events, **found, "gloo_threads": [during, gloo_threads()]}))


if __name__ == "__main__":
    sys.exit(main())

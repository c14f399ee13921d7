"""`--compile`: torch.compile is kept only if it computes the same and is faster; the decision has its numbers.

It has been reported to slow convergence without an error (pytorch#187715, on MI300X) and to be slower than eager
(pytorch#187065). Only the default mode is used.
"""

from __future__ import annotations

import copy
import importlib.util
import math
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from trainer.data.loading.batch import call
from trainer.device.precision import DTYPES
from trainer.engine.training import Training
from trainer.runtime.errors import TrainerError
from trainer.runtime.events import emit, say

STEPS = 5
# Largest relative difference of losses and of the change of weights after STEPS steps of SGD, by the dtype computed in.
LIMITS = {torch.float64: 1e-9, torch.float32: 1e-3, torch.float16: 3e-2, torch.bfloat16: 3e-2}
FASTER = 1.03  # a gain below the noise is not worth the time that compiling takes at every start

Step = Callable[[nn.Module], Tensor]  # the loss of one fixed batch
Compile = Callable[[nn.Module], Any]  # torch.compile, or what stands in for it in a test


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Eager and compiled side by side: largest relative differences, and seconds a step of each."""

    loss_difference: float
    weight_difference: float
    eager_s: float
    compiled_s: float
    compile_s: float


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Decision on the compiled model: whether it is used, why, and the trial behind it, if there was one."""

    use: bool
    reason: str
    trial: Trial | None = None


def decide(
    requested: str, model: nn.Module, loss_of: Step, *, dtype: torch.dtype, compile_: Compile | None = None
) -> Decision:
    """Return whether to compile `model`; `loss_of` computes the loss of a fixed batch with the model it is given.

    Compile must equal eager in both `auto` and `on`; `auto` wants it to be faster besides.

    Args:
        requested: value of `--compile`: auto, on or off.
        model: network, left as it is.
        dtype: type of the weights; decides the accepted error.

    Raises:
        TrainerError: RM567 for `on` where it cannot compile or computes something else.
    """
    if requested == "off":
        return Decision(use=False, reason="not asked for")
    reason, trial = missing(next(model.parameters()).device), None
    if not reason:
        try:
            trial = measure(model, loss_of, compile_ or torch.compile)
        except Exception as error:  # the compiler may raise whatever its back end raises
            reason = f"it does not compile: {type(error).__name__}: {str(error).strip().splitlines()[0]}"
    if trial:
        return judge(requested, trial, LIMITS[dtype])
    if requested == "on":
        raise TrainerError("RM567", what=reason)
    return Decision(use=False, reason=reason)


def compile_if_worth_it(training: Training, requested: str, parallel: str, *, against: str = "") -> None:
    """Compile what the loop calls if that passes on every rank, and report the decision as an event.

    Args:
        requested: value of `--compile`: auto, on or off.
        parallel: value of `--parallel`.
        against: why compiled code is not to be tried in this process; empty for nothing.

    Raises:
        TrainerError: RM567 as `decide` does and for `on` where something is against it, RM563 for `on` with a model in
            parts.
    """
    if requested == "off":
        return
    ranks = training.ranks
    if ranks.world_size > 1 and parallel != "ddp":
        decision = refused(requested, f"--parallel {parallel} is not compiled")
    elif against:
        decision = refused(requested, against, code="RM567")
    else:
        decision = decide(requested, training.model, loss_on_a_batch(training), dtype=computed_in(training))
    use = not ranks.any_rank(not decision.use)[0]
    if ranks.is_main:
        reason = decision.reason if use == decision.use else "another rank does not compile"
        emit("compile", use=use, reason=reason, trial=asdict(decision.trial) if decision.trial else None)
        say(f"compile {'kept' if use else 'left out'}: {reason}")
    if use:
        training.forward = cast(nn.Module, torch.compile(training.forward))


def computed_in(training: Training) -> torch.dtype:
    """Return the dtype of matrix products, which decides how closely two ways to compute agree."""
    return DTYPES.get(training.precision.name, training.precision.weights)


def loss_on_a_batch(training: Training) -> Step:
    """Return the mean loss on the first rows of the data, as the loop computes it."""
    rows = torch.arange(min(training.sampler.batch_size, len(training.train)))
    inputs, targets = training.train.rows(rows, training.device)

    def loss(model: nn.Module) -> Tensor:
        with training.precision.context():
            outputs = call(model, inputs)
        return training.loss_sum(outputs, targets) / len(rows)

    return loss


def refused(requested: str, reason: str, *, code: str = "RM563") -> Decision:
    """Return the decision not to compile, or raise where it was demanded.

    Args:
        requested: value of `--compile`: auto or on.
        reason: why not.
        code: of the error.
    """
    if requested == "on":
        raise TrainerError(code, what=reason)
    return Decision(use=False, reason=reason)


def judge(requested: str, trial: Trial, limit: float) -> Decision:
    """Return the decision on a trial; see `decide`.

    Args:
        requested: value of `--compile`: auto or on.
        limit: largest accepted relative error.
    """
    differs = max(trial.loss_difference, trial.weight_difference)
    speed = trial.eager_s / trial.compiled_s
    figures = (
        f"{STEPS} steps differ by {differs:.1e} (allowed {limit:.0e}); {trial.compiled_s * 1e3:.2f} ms a step,"
        f" eager {trial.eager_s * 1e3:.2f} ms, {speed:.2f} times as fast; compiling took {trial.compile_s:.1f} s"
    )
    if not differs <= limit:
        if requested == "on":
            raise TrainerError("RM567", what=f"compiled and eager disagree: {figures}")
        return Decision(use=False, reason=f"compiled and eager disagree: {figures}", trial=trial)
    if requested == "auto" and speed < FASTER:
        return Decision(use=False, reason=f"not faster: {figures}", trial=trial)
    return Decision(use=True, reason=figures, trial=trial)


def missing(device: torch.device) -> str:
    """Return what compiling lacks on this machine, empty for nothing.

    On a CPU that is a C++ compiler; on a card Triton, and a C compiler, for its driver is C that Triton compiles.
    """
    if device.type == "cpu":
        found = any(map(shutil.which, ("c++", "g++", "clang++")))
        return "" if found else "torch.compile needs a C++ compiler for the CPU, and there is none here"
    if importlib.util.find_spec("triton") is None:
        return "torch.compile needs Triton on a card, and it is not installed"
    found = any(map(shutil.which, [os.environ["CC"]] if os.environ.get("CC") else ("gcc", "clang")))
    return "" if found else "Triton compiles its driver at its first use, and there is no C compiler here"


def measure(model: nn.Module, loss_of: Step, compile_: Compile) -> Trial:
    """Train two copies of `model` for STEPS steps, one compiled, and compare; `model` stays as it is.

    Args:
        model: network, left as it is.
    """
    eager, other = copy.deepcopy(model), copy.deepcopy(model)
    began = time.perf_counter()
    compiled = compile_(other)
    with torch.random.fork_rng():
        loss_of(compiled).backward()
        other.zero_grad()
        first = time.perf_counter() - began
    start = flat(model)
    eager_losses, eager_s = steps(eager, eager, loss_of)
    compiled_losses, compiled_s = steps(compiled, other, loss_of)
    return Trial(
        loss_difference=relative(compiled_losses, eager_losses),
        weight_difference=relative(flat(other) - start, flat(eager) - start),
        eager_s=eager_s,
        compiled_s=compiled_s,
        compile_s=first,
    )


def steps(forward: nn.Module, model: nn.Module, loss_of: Step) -> tuple[Tensor, float]:
    """Take STEPS steps of SGD under one seed; return the losses in fp64 and the least seconds of a step.

    Args:
        forward: what is called: the model, or its compiled form.
        model: network whose weights are trained.
    """
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    losses, best = [], math.inf
    device = next(model.parameters()).device
    with torch.random.fork_rng():
        torch.manual_seed(0)  # dropout draws alike; compiled code may draw otherwise, and is then refused
        for _ in range(STEPS):
            began = time.perf_counter()
            optimizer.zero_grad()
            loss = loss_of(forward)
            loss.backward()
            optimizer.step()
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            best = min(best, time.perf_counter() - began)
            losses.append(loss.detach().double().cpu())
    return torch.stack(losses), best


def flat(model: nn.Module) -> Tensor:
    """Return all weights in one dimension, fp64, on the CPU."""
    return torch.cat([parameter.detach().double().cpu().reshape(-1) for parameter in model.parameters()])


def relative(found: Tensor, exact: Tensor) -> float:
    """Return the norm of the difference over that of `exact`; infinite where something is not finite."""
    value = ((found - exact).norm() / exact.norm().clamp_min(1e-300)).item()
    return value if math.isfinite(value) else math.inf

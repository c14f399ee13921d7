"""The gates' programs, run in a child process: each compares values with fp64 on the run's own shapes.

`python -m trainer.run.gates.trials REQUEST` prints a JSON line before and after each trial, so that the parent sees in
which one a process died. A trial that takes longer than its limit is ended, with the process, by a thread in C that
needs no lock of Python's: the others need not wait for it.
"""

from __future__ import annotations

import faulthandler
import json
import math
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TextIO

import torch
from torch import Tensor, nn
from torch.nn import functional

from trainer.device import precision as formats
from trainer.device.accelerator import set_deterministic
from trainer.device.blas import select_back_end
from trainer.device.memory import OutOfMemory
from trainer.engine.steps.compile import missing
from trainer.models.adapters import nf4
from trainer.models.adapters.lora import LoraLinear
from trainer.models.decoder.config import AttentionConfig
from trainer.models.fast import attention
from trainer.models.fast.proof import LIMITS, first_line, relative_error, wait
from trainer.run.gates.subject import ADAPTER, ATTENTION, CANARY, COMPILE, KERNELS, NF4, PRECISION, Subject

NF4_ROWS = 256  # of the quantised weight
COMPILED_TOKENS = 512
WHOLE_TOKENS = 2**14  # of all rows of a kernel's trial on the run's whole shape
SENTINEL, CELLS = -7.0, 4096  # of the canary: what is there before the kernel, and how many numbers


class AbsentError(Exception):
    """This machine has not what is to be tried; the message states what."""


def of_precision(subject: Subject) -> str:
    """Return the fault of products, softmax and gradients in the run's number format; empty for none."""
    return formats.compared(subject.precision, torch.device(subject.device))[0] or ""


def of_adapter(subject: Subject) -> str:
    """Return the fault of an adapter's narrow products, forward and backward, for each pair of widths of a block."""
    pairs = {(subject.width, subject.inner), (subject.inner, subject.width), (subject.width, subject.width)}
    found = [_narrow(subject, inputs, outputs) for inputs, outputs in sorted(pairs)]
    return next(filter(None, found), "")


def _narrow(subject: Subject, inputs: int, outputs: int) -> str:
    """Compare an adapter of no base with fp64: output and gradients of its input, of A and of B."""
    generator = torch.Generator().manual_seed(0)
    dtype = formats.DTYPES[subject.precision]
    draw = partial(torch.randn, generator=generator)
    down, up = draw(subject.rank, inputs) * inputs**-0.5, draw(outputs, subject.rank) * subject.rank**-0.5
    states, upstream = draw(subject.count, inputs), draw(subject.count, outputs)
    rounded = [each.to(dtype) for each in (states, down, up, upstream)]
    exact = _through(_WithoutBase(inputs, outputs, subject.rank), [each.double() for each in rounded])
    module = _WithoutBase(inputs, outputs, subject.rank)
    module.padded = subject.padded
    found = _through(module, [each.to(subject.device) for each in rounded])
    what = f"products of rank {subject.rank} between {inputs} and {outputs}"
    return _fault(what, relative_error(found, exact), dtype)


class _WithoutBase(LoraLinear):
    """An adapter alone: what is wrong with its products shows in full."""

    def __init__(self, inputs: int, outputs: int, rank: int) -> None:
        with torch.device("meta"):
            base = nn.Linear(inputs, outputs, bias=False)
        super().__init__(base, rank, scale=1.0, dropout=0.0)
        self.base = _Nothing(outputs)  # type: ignore[assignment]


class _Nothing(nn.Module):
    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.outputs = outputs

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs.new_zeros(*inputs.shape[:-1], self.outputs)


def _through(module: LoraLinear, values: Sequence[Tensor]) -> list[Tensor]:
    """Return the output, and the gradients of the input and of the adapter's weights, all in the values' dtype."""
    states, down, up, upstream = values
    leaf = states.detach().requires_grad_()
    module.lora_A, module.lora_B = nn.Parameter(down), nn.Parameter(up)
    output = module(leaf)
    return [output.detach(), *torch.autograd.grad(output, [leaf, module.lora_A, module.lora_B], upstream)]


def of_nf4(subject: Subject) -> str:
    """Return the fault of 4-bit weights: codes and levels against the host's, and the product with them."""
    dtype, generator = formats.DTYPES[subject.precision], torch.Generator().manual_seed(0)
    weight = torch.randn(min(subject.inner, NF4_ROWS), subject.width, generator=generator)
    codes, scales = nf4.quantize(weight)
    there = nf4.quantize(weight.to(subject.device))
    if not torch.equal(there[0].cpu(), codes) or not torch.equal(there[1].cpu(), scales):
        return "quantising gives other codes than the host's"
    right = nf4_exact(codes, scales, weight.shape)
    dense = nf4.dequantize(*there, weight.shape, torch.float32)
    if fault := _fault("dequantised weights", relative_error([dense], [right]), torch.float32):
        return fault
    layer = nf4.NF4Linear(nn.Linear(subject.width, len(weight), bias=False))
    layer.load(weight)
    layer = layer.to(subject.device)
    states = torch.randn(min(subject.count, NF4_ROWS), subject.width, generator=generator).to(dtype)
    leaf = states.to(subject.device).requires_grad_()
    output = layer(leaf)
    (gradient,) = torch.autograd.grad(output, leaf, torch.ones_like(output))
    wide = right.to(dtype).double()
    exact = [states.double() @ wide.T, wide.sum(0).expand(len(states), -1)]
    return _fault("products with 4-bit weights", relative_error([output.detach(), gradient], exact), dtype)


def nf4_exact(codes: Tensor, scales: Tensor, shape: torch.Size) -> Tensor:
    """Return the weight that NF4 codes stand for in fp64, by a loop over the levels and not by the code that is tried.

    Args:
        codes: two of 4 bits in each byte, uint8, on the host.
        scales: scale of each block of 64, fp32, on the host.
        shape: of the weight.
    """
    nibbles = torch.stack([codes // 16, codes % 16], dim=1).view(-1)[: shape.numel()]
    values = torch.zeros(shape.numel(), dtype=torch.float64)
    for code, level in enumerate(nf4.LEVELS):
        values[nibbles == code] = level
    spread = scales.double().repeat_interleave(nf4.BLOCK)[: shape.numel()]
    return (values * spread).view(shape)


def of_attention(subject: Subject, kernel: str) -> str:
    """Return the fault of one attention kernel: values on one head, and finite numbers on the run's whole shape."""
    config = AttentionConfig(heads=subject.heads, kv_heads=subject.kv_heads, head_dim=subject.head_dim)
    call = attention.Call(
        config=config,
        scale=subject.head_dim**-0.5,
        rows=subject.rows,
        tokens=subject.tokens,
        device=torch.device(subject.device),
        dtype=formats.DTYPES[subject.precision],
    )
    work = partial(attention.Kernel(name=kernel), scale=call.scale)
    small = [each.double().cpu() for each in attention.drawn(call.small)]
    exact = attention.results(partial(attention.written_out, scale=call.scale), small)
    try:
        found = attention.results(work, attention.drawn(call.small))
    except OutOfMemory:
        raise
    except (RuntimeError, ImportError, AttributeError) as refusal:
        raise AbsentError(first_line(refusal).partition(" This is likely due to turning off")[0]) from None
    if fault := _fault("output and gradients", relative_error(found, exact), call.dtype):
        return fault
    rows = 1 if kernel == "math" else max(1, min(call.rows, WHOLE_TOKENS // call.tokens))  # math holds all scores
    whole = replace(call, rows=rows)
    finite = all(bool(each.isfinite().all()) for each in attention.results(work, attention.drawn(whole)))
    return "" if finite else f"{whole.rows} rows of {whole.tokens} tokens give numbers that are not finite"


def of_canary(subject: Subject) -> str:
    """Return the fault of a Triton kernel that writes known numbers over a sentinel.

    A compiler has been seen to make kernels that write nothing and report success, and its cache to keep them
    (unslothai/unsloth#11614): nothing else of Triton's is to be relied on then.
    """
    if on_host(subject):
        raise AbsentError("Triton has no kernels for a CPU")
    try:
        from trainer.run.gates import canary
    except ImportError as error:
        raise AbsentError(f"Triton is not installed: {error}") from None
    cells = torch.full((CELLS,), SENTINEL, device=subject.device)
    numbers = torch.arange(CELLS, device=subject.device, dtype=torch.float32)
    canary.launch(numbers, cells)
    return canary_fault(cells.cpu())


def on_host(subject: Subject) -> bool:
    """Return whether a run computes on a CPU."""
    return torch.device(subject.device).type == "cpu"


def canary_fault(cells: Tensor) -> str:
    """Return what is wrong with the canary's numbers, fp32 on the host; empty for nothing."""
    right = 3 * torch.arange(CELLS, dtype=torch.float32) + 1
    wrong = int((cells != right).sum())
    untouched = int((cells == SENTINEL).sum())
    if not wrong:
        return ""
    return f"{wrong} of {CELLS} numbers of a kernel that Triton compiled are wrong, {untouched} of them never written"


def of_compile(subject: Subject) -> str:
    """Return the fault of torch.compile: a normed layer with an activation, forward and backward, against fp64."""
    if lacking := missing(torch.device(subject.device)):
        raise AbsentError(lacking)
    dtype, generator = formats.DTYPES[subject.precision], torch.Generator().manual_seed(0)
    tokens, width = min(subject.count, COMPILED_TOKENS), subject.width
    draw = partial(torch.randn, generator=generator)
    values = [draw(tokens, width), 1 + draw(width) / 4, draw(width, width) * width**-0.5, draw(tokens, width)]
    rounded = [each.to(dtype) for each in values]
    exact = _results_of_layer(_layer, [each.double() for each in rounded])
    compiled: Any = torch.compile(_layer, dynamic=False)
    found = _results_of_layer(compiled, [each.to(subject.device) for each in rounded])
    return _fault("a compiled layer's output and gradients", relative_error(found, exact), dtype)


def _layer(states: Tensor, scale: Tensor, weight: Tensor) -> Tensor:
    wide = states.to(torch.promote_types(states.dtype, torch.float32))
    normed = (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)).to(states.dtype) * scale
    return states + functional.silu(normed @ weight)


def _results_of_layer(work: Callable[..., Tensor], values: Sequence[Tensor]) -> list[Tensor]:
    leaves = [each.detach().requires_grad_() for each in values[:-1]]
    output = work(*leaves)
    return [output.detach(), *torch.autograd.grad(output, leaves, values[-1])]


def _fault(what: str, error: float, dtype: torch.dtype) -> str:
    limit = LIMITS[dtype]
    if error <= limit:  # a NaN is not
        return ""
    size = f"{error:.1e}" if math.isfinite(error) else "without bound"
    return f"{what} err by {size} against fp64, {limit:.0e} is allowed"


TRIALS: Mapping[str, Callable[[Subject], str]] = {
    PRECISION: of_precision,
    ADAPTER: of_adapter,
    NF4: of_nf4,
    **{ATTENTION + kernel: partial(of_attention, kernel=kernel) for kernel in KERNELS},
    CANARY: of_canary,
    COMPILE: of_compile,
}


def tried(name: str, subject: Subject) -> dict[str, Any]:
    """Return what a trial came to: `status` is passed, wrong, absent, memory or error, and why."""
    try:
        fault = TRIALS[name](subject)
        wait(torch.device(subject.device))
        return {"status": "wrong" if fault else "passed", "why": fault}
    except AbsentError as error:
        return {"status": "absent", "why": str(error)}
    except (OutOfMemory, MemoryError) as error:
        return {"status": "memory", "why": first_line(error)}
    except Exception as error:  # a compiler may raise whatever its back end raises
        return {"status": "error", "why": first_line(error)}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the trials that the request names and print a line before and after each.

    Args:
        argv: one word, the request as JSON: `gates` with the seconds of each, `subject`, whether kernels are
            `deterministic`, and whether to leave hipBLASLt (`plain_blas`); None for this process's own.
    """
    request = json.loads((argv or sys.argv[1:])[0])
    lines = claimed_stdout()
    subject = Subject(**request["subject"])
    set_deterministic(bool(request["deterministic"]))
    if request["plain_blas"]:
        select_back_end("cublas")
    torch.ones(2, device=subject.device).sum().item()  # a device that cannot be had is no gate's fault
    _print(lines, {"ready": True})
    for name, seconds in request["gates"].items():
        _print(lines, {"began": name})
        faulthandler.dump_traceback_later(seconds, exit=True, file=2)  # with status 1
        found = tried(name, subject)
        faulthandler.cancel_dump_traceback_later()
        _print(lines, {"ended": name, **found})
    return 0


def claimed_stdout() -> TextIO:
    """Keep stdout for the lines of this program: what libraries print there goes to stderr from now on."""
    sys.stdout.flush()
    claimed = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return claimed


def _print(lines: TextIO, content: Mapping[str, Any]) -> None:
    print(json.dumps(content), file=lines, flush=True)


def guarded() -> int:
    """Return the exit status of `main`; 3 after an error of its own, as 1 is that of a trial beyond its limit."""
    try:
        return main()
    except Exception:
        traceback.print_exc()
        return 3


if __name__ == "__main__":
    sys.exit(guarded())

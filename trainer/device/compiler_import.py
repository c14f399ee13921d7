"""Optimizers without torch's compiler, which torch.optim imports for marks that only a compiler reads.

Making an optimizer and its first step import `torch._dynamo`, a few hundred modules: 1.6 to 1.9 s of processor time,
next to 1.9 to 2.2 s of `import torch` (torch 2.13 on a CPU, 2026-11-28). Where nothing is compiled, marks do nothing.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.optim import Optimizer

MARKED = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")
MARK = "__dynamo_disable"  # where torch._compile keeps what torch._dynamo made of a method


def avoid_compiler_import() -> None:
    """Let optimizers be made and step without importing `torch._dynamo`; the same code computes the same values.

    Nothing is changed where the compiler is imported already, or where torch is built otherwise (seen: 2.13). torch is
    imported here and not above: to a probe, a torch that cannot be imported is a result.
    """
    from torch.optim import SGD, Adam, AdamW, Optimizer

    if "torch._dynamo" in sys.modules:
        return
    for name in MARKED:
        method = getattr(getattr(Optimizer, name), "__wrapped__", None)
        if method is not None and not hasattr(method, MARK):
            setattr(method, MARK, method)
    for kind in (Adam, AdamW, SGD):
        step = vars(kind).get("step")
        if step is not None and step.__code__.co_name == "_use_grad" and hasattr(step, "__wrapped__"):
            kind.step = _unmarked(step.__wrapped__)  # type: ignore[method-assign]


def _unmarked(step: Any) -> Any:
    """Return an optimizer's step as torch wraps it, without the marks before and after it."""
    import torch

    @functools.wraps(step)
    def unmarked(self: Optimizer, *arguments: Any, **named: Any) -> Any:
        before = torch.is_grad_enabled()
        torch.set_grad_enabled(self.defaults["differentiable"])
        try:
            return step(self, *arguments, **named)
        finally:
            torch.set_grad_enabled(before)

    return unmarked

"""Source of the Triton kernels that Inductor generates for a card that is not there.

Functions are traced with tensors without data, forward and backward. Their graphs are then marked as a card's, and
Inductor generates code with the properties of a made-up card; its driver is never asked. Private parts of torch are
replaced for that: this works with the torch of requirements/ and is checked by a test.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch._dynamo import device_interface
from torch._dynamo.backends.common import aot_autograd
from torch._functorch._aot_autograd.utils import make_boxed_func
from torch._inductor import compile_fx, config, graph, scheduler
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.fx_passes import reinplace
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils import _pytree
from torch.utils import _triton as torch_triton

from benchmarks.amd_kernels.subjects import Subject, subjects

CARD = torch.device("cuda:0")
Traced = tuple[torch.fx.GraphModule, Sequence[Any]]


class _GeneratedError(Exception):
    """Ends a compilation that has generated its source."""


def generated(arch: str, lanes: int, units: int) -> Iterator[tuple[str, str]]:
    """Yield name and source of each graph of each subject.

    Args:
        arch: architecture, such as "gfx1100".
        lanes: of a wave, 32 or 64.
        units: compute units; large reductions are split by them.
    """
    with FakeTensorMode():
        traced = [(subject.name, pair) for subject in subjects() for pair in traces(subject)]
    for name, (module, inputs) in traced:
        mark_as_card(module, inputs)
        with made_up_card(arch, lanes, units):
            yield name, source_of(module, inputs)


def traces(subject: Subject) -> list[Traced]:
    """Return the graphs of a function, its backward among them, as Inductor takes them."""
    found: list[Traced] = []

    def keep(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
        found.append((module, inputs))
        return make_boxed_func(module.forward)

    backend = aot_autograd(fw_compiler=keep, bw_compiler=keep, decompositions=select_decomp_table)
    torch.compiler.reset()
    autocast = torch.autocast("cpu", subject.precision) if subject.precision else contextlib.nullcontext()
    with autocast:
        outputs = torch.compile(subject.function, backend=backend, dynamic=False)(*subject.inputs)
    leaves = [each for each in _pytree.tree_leaves(outputs) if isinstance(each, torch.Tensor) and each.requires_grad]
    torch.autograd.backward(leaves, [torch.empty_like(each) for each in leaves])
    return found


def mark_as_card(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> None:
    """Make every tensor of a graph one of a card.

    Args:
        module: changed.
        inputs: its inputs, changed.
    """
    for node in module.graph.nodes:
        for value in [*_pytree.tree_leaves(node.meta.get("val")), *inputs]:
            if isinstance(value, FakeTensor):
                value.fake_device = CARD
        if node.kwargs.get("device") is not None:
            node.kwargs = {**node.kwargs, "device": CARD}
    module.recompile()


def source_of(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> str:
    """Return the Python source that Inductor generates of a graph.

    Args:
        module: graph of a card's tensors.
        inputs: its inputs.
    """
    sources: list[str] = []

    def generate(self: Any) -> None:
        sources.append(self.codegen()[0].value)
        raise _GeneratedError

    with mock.patch.object(graph.GraphLowering, "_compile_to_module", generate), contextlib.suppress(Exception):
        compile_fx.compile_fx_inner(module, inputs)
    if not sources:  # once more, for the exception
        compile_fx.compile_fx_inner(module, inputs)
    return sources[0]


@contextlib.contextmanager
def made_up_card(arch: str, lanes: int, units: int) -> Iterator[None]:
    """Replace what torch and Triton ask of a card.

    Args:
        arch: architecture, such as "gfx1100".
        lanes: of a wave.
        units: compute units.
    """
    import triton
    from triton.backends.compiler import GPUTarget

    card = SimpleNamespace(
        name="made up",
        gcnArchName=arch,
        major=int(arch[3:-2]),
        minor=0,
        multi_processor_count=units,
        warp_size=lanes,
        regs_per_multiprocessor=131072,
        max_threads_per_multi_processor=2048,
        max_threads_per_block=1024,
        shared_memory_per_block=65536,
        total_memory=16 << 30,
    )
    driver = SimpleNamespace(
        get_current_target=lambda: GPUTarget("hip", arch, lanes),
        get_current_device=lambda: 0,
        get_active_torch_device=lambda: CARD,
    )
    fixed = {"is_available": True, "device_count": 1, "current_device": 0, "get_device_properties": card}
    fixed |= {"get_device_capability": (card.major, 0), "is_bf16_supported": True, "set_device": None}
    fixed |= {
        "get_rng_state": torch.empty(0),
        "set_rng_state": None,
        "_exchange_device": 0,
        "_maybe_exchange_device": 0,
    }
    fixed |= {"synchronize": None}
    interface, worker = device_interface.CudaInterface, device_interface.CudaInterface.Worker
    with contextlib.ExitStack() as stack:
        for name, value in fixed.items():
            stack.enter_context(mock.patch.object(torch.cuda, name, lambda *_, value=value, **__: value))
        for owner, name, value in [
            (interface, "is_available", True),
            (interface, "get_compute_capability", arch),
            (interface, "get_device_properties", card),
            (worker, "get_device_properties", card),
            (worker, "current_device", 0),
        ]:
            stack.enter_context(mock.patch.object(owner, name, staticmethod(lambda *_, value=value, **__: value)))
        for module in (scheduler, torch_triton):
            stack.enter_context(mock.patch.object(module, "has_triton", lambda *_, **__: True))
        # Copies between tensors without data need a driver; only the shape of the result is taken from it.
        stack.enter_context(mock.patch.object(reinplace, "_inplace_generalized_scatter", lambda out, *_: out))
        stack.enter_context(mock.patch.object(torch.version, "hip", "7.2.0"))
        stack.enter_context(mock.patch.object(type(triton.runtime.driver), "active", driver))
        stack.enter_context(config.patch(fx_graph_cache=False))
        yield

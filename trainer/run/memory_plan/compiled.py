"""A compiled function as the memory it takes: what products read and write, its outputs, and what backward needs.

The compiler's own partition of forward and backward (torch._functorch) decides what is kept between the two. Within a
graph, results of element-wise operations that no product reads stay in registers and take nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd.graph import saved_tensors_hooks
from torch.utils._pytree import tree_flatten, tree_unflatten

from trainer.run.memory_plan.live_memory import LiveMemory
from trainer.run.memory_plan.tensors.graphs import FollowedGraph

aten = torch.ops.aten
PRODUCTS = {aten.mm, aten.addmm, aten.bmm, aten.baddbmm}
VIEWS = {
    *(aten.view, aten.t, aten.permute, aten.transpose, aten.expand, aten.squeeze, aten.unsqueeze, aten.slice),
    *(aten._unsafe_view, aten.reshape, aten.select, aten.split_with_sizes, aten.alias, aten.detach, aten.as_strided),
}


class PlannedCompile:
    """Takes the place of `torch.compile` while planning: `made = PlannedCompile(mode)(function, dynamic=False)`.

    Graphs are kept for later plans. `memory` follows what the present one makes; `network`: its shape but for depth.
    """

    def __init__(self, mode: FakeTensorMode) -> None:
        self.memory: LiveMemory
        self.mode = mode
        self.network = ""
        self._made: dict[Any, Callable[..., Any]] = {}

    def __call__(self, function: Callable[..., Any], **_: Any) -> Callable[..., Any]:
        """Return what stands for the compiled function."""
        return partial(self._called, function)

    def _called(self, function: Callable[..., Any], *args: Any) -> Any:
        module = next((each for each in args if isinstance(each, nn.Module)), None)
        own = dict(module.named_parameters()) | dict(module.named_buffers()) if module is not None else {}
        leaves, spec = tree_flatten([None if each is module else each for each in args], is_leaf=_is_size)
        places = [place for place, each in enumerate(leaves) if isinstance(each, Tensor)]
        tensors = [leaves[place] for place in places] + list(own.values())
        others = tuple(str(each) for each in leaves if not _tensor(each))
        state = torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), torch.are_deterministic_algorithms_enabled()
        where = (function, self.network, *state)
        key = (*where, others, _kind(tensors))
        if key not in self._made:
            fixed = [None if _tensor(each) else each for each in leaves]
            plain = partial(_flat, function, module, list(own), fixed, places, spec)
            self._made[key] = self._compiled(plain, tensors)
        return self._made[key](*tensors)

    def _compiled(self, plain: Callable[..., Any], tensors: list[Tensor]) -> Callable[..., Any]:
        from torch._functorch.aot_autograd import aot_function
        from torch._functorch.partitioners import min_cut_rematerialization_partition
        from torch._inductor.decomposition import select_decomp_table

        found: Callable[..., Any] = aot_function(
            plain,
            fw_compiler=self._graph,
            bw_compiler=self._graph,
            partition_fn=partial(min_cut_rematerialization_partition, compiler="inductor"),
            decompositions=select_decomp_table(),
        )
        with self.memory.paused(), saved_tensors_hooks(_same, _same):
            found(*(_twin(each) for each in tensors))  # the first call compiles, and keeps what it was given
        return found

    def _graph(self, gm: fx.GraphModule, example_inputs: Any) -> Callable[..., Any]:
        graph = FollowedGraph(gm, buffers_of(gm.graph))

        def run(inputs: list[Any]) -> Any:
            return graph(self.memory, inputs, self.mode)  # of the present plan

        run._boxed_call = True  # type: ignore[attr-defined]
        return run


def buffers_of(graph: fx.Graph) -> set[fx.Node]:
    """Return the nodes whose results are buffers: products, what these read, and the graph's outputs."""
    kept: set[fx.Node] = set()
    for node in graph.nodes:
        if node.op == "output" or _packet(node) in PRODUCTS:
            kept |= {_source(each) for each in node.all_input_nodes}
            kept.add(node)
    return kept


def _source(node: fx.Node) -> fx.Node:
    """Return the node that a view's memory comes from."""
    while _packet(node) in VIEWS or (
        node.op == "call_function" and node.target.__class__.__name__ == "builtin_function_or_method"
    ):
        node = node.all_input_nodes[0]
    return node


def _packet(node: fx.Node) -> Any:
    return getattr(node.target, "_overloadpacket", None)


def _is_size(value: Any) -> bool:
    return isinstance(value, torch.Size)


def _twin(tensor: Tensor) -> Tensor:
    made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
    return made.requires_grad_(tensor.requires_grad)


def _same(tensor: Tensor) -> Tensor:
    return tensor


def _tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def _kind(tensors: list[Tensor]) -> tuple[Any, ...]:
    return tuple((tuple(each.shape), each.stride(), each.dtype, each.requires_grad) for each in tensors)


def _flat(
    function: Callable[..., Any],
    module: nn.Module | None,
    names: list[str],
    fixed: list[Any],
    places: list[int],
    spec: Any,
    *tensors: Tensor,
) -> Any:
    """Call `function` with tensors put back to their places, and the module's own weights among them."""
    leaves = list(fixed)
    for place, tensor in zip(places, tensors, strict=False):
        leaves[place] = tensor
    args = tree_unflatten(leaves, spec)
    if module is None:
        return function(*args)
    with _holding(module, dict(zip(names, tensors[len(places) :], strict=True))):
        return function(module, *args[1:])


@contextlib.contextmanager
def _holding(module: nn.Module, values: dict[str, Tensor]) -> Iterator[None]:
    from torch.nn.utils.stateless import _reparametrize_module

    with _reparametrize_module(module, values):
        yield

"""A compiled graph that was followed once takes and gives back the same in each later call."""

from dataclasses import replace

import pytest
import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode

from tests.fixtures.footprints import ON_CARD, SMALL
from tests.left_out import one_of
from trainer.run.memory_plan import program as program_module
from trainer.run.memory_plan.allocator import CachingAllocator, DoesNotFitError
from trainer.run.memory_plan.compiled import buffers_of
from trainer.run.memory_plan.live_memory import LiveMemory
from trainer.run.memory_plan.program import measured
from trainer.run.memory_plan.tensors import graphs
from trainer.run.memory_plan.tensors.graphs import FollowedGraph

aten = torch.ops.aten
SHALLOW = replace(ON_CARD, raw={**SMALL, "num_hidden_layers": 2})


@pytest.mark.parametrize(
    "how",
    one_of(
        [{}, {"adapter": "qlora", "checkpointing": "full"}, {"adapter": "lora", "method": "dpo"}, {"pieces": 2}],
    ),
    ids=str,
)
def test_plan_with_known_graphs_equals_the_first(how, monkeypatch):
    program = replace(SHALLOW, **how)
    program_module._bench.cache_clear()
    first, repeats = measured(program), []
    monkeypatch.setattr(graphs, "_repeated", lambda *given, own=graphs._repeated: repeats.append(1) or own(*given))
    assert measured(program) == first
    assert repeats


def graph() -> fx.GraphModule:
    """Return a graph of buffers that end within it, a view of an input, and an input that ends before the others."""
    found = fx.Graph()
    one, other = found.placeholder("one"), found.placeholder("other")
    scaled = found.call_function(aten.mul.Tensor, (one, 2.0))
    turned = found.call_function(aten.t.default, (scaled,))  # ends before what it is a view of
    product = found.call_function(aten.mm.default, (turned, other))
    added = found.call_function(aten.add.Tensor, (product, scaled))
    last = found.call_function(aten.mm.default, (added, other))
    view = found.call_function(aten.view.default, (other, [-1]))
    found.output(([last, view, None, other],))
    found.output_node().args = ([last, view, None, other],)
    return fx.GraphModule(torch.nn.Module(), found)


def called(followed: FollowedGraph, mode: FakeTensorMode, limit: int | None = None):
    """Return the allocator's record of a call, its outputs, the FLOPs, and what is still held by the outputs alone."""
    memory = LiveMemory(CachingAllocator(limit=limit))
    with mode, memory:
        inputs = [torch.empty(2048, 2048), torch.empty(2048, 2048)]
        memory.allocator.record = record = []
        outputs = followed(memory, inputs, mode)
    assert inputs == []
    shapes = [
        each if each is None else (each.shape, each.stride(), each.untyped_storage().nbytes()) for each in outputs
    ]
    shared = outputs[1].untyped_storage()._cdata == outputs[3].untyped_storage()._cdata
    peaks = {name: (peak.allocated, peak.parts) for name, peak in memory.peaks.items()}
    return list(record), shapes, shared, memory.flops + memory.wide_flops, memory.allocator.allocated, peaks


def test_repeated_graph_takes_and_gives_back_in_the_same_order():
    mode, made = FakeTensorMode(), graph()
    followed = FollowedGraph(made, buffers_of(made.graph))
    first = called(followed, mode)
    assert followed._events is not None
    assert called(followed, mode) == first
    record, _, shared, flops, held, _ = first
    assert shared and flops == 2 * 2 * 2048**3
    assert sum(size < 0 for _, size in record) == 4  # three buffers and an input
    assert held == 2 * 16 * 2**20


def test_repeated_graph_beyond_the_limit_gives_all_back():
    mode, made = FakeTensorMode(), graph()
    followed = FollowedGraph(made, buffers_of(made.graph))
    called(followed, mode)
    memory = LiveMemory(CachingAllocator(limit=50 * 2**20))
    with mode, memory:
        inputs = [torch.empty(2048, 2048), torch.empty(2048, 2048)]
        held = list(inputs)
        with pytest.raises(DoesNotFitError):
            followed(memory, inputs, mode)
    assert memory.allocator.allocated == sum(each.nbytes for each in held)


def test_graph_whose_own_constant_is_a_buffer_is_followed_each_time():
    found = fx.Graph()
    one, table = found.placeholder("one"), found.get_attr("table")
    found.output(([found.call_function(aten.mm.default, (one, found.call_function(aten.t.default, (table,))))],))
    found.output_node().args = ([found.output_node().prev],)
    root, mode = torch.nn.Module(), FakeTensorMode()
    with mode:
        root.table = torch.nn.Buffer(torch.empty(8, 8))
    made = fx.GraphModule(root, found)
    followed = FollowedGraph(made, set(made.graph.nodes))
    memory = LiveMemory(CachingAllocator())
    with mode, memory:
        for _ in range(2):
            followed(memory, [torch.empty(8, 8)], mode)
    assert followed._events is None

"""Parts of a plan's memory add up to the whole."""

from dataclasses import replace

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from tests.fixtures.footprints import ON_CARD
from trainer.run.memory_plan.allocator import PlainAllocator
from trainer.run.memory_plan.live_memory import BLAS_WORKSPACE, HANDLES, TRIALS, LiveMemory
from trainer.run.memory_plan.program import measured


def test_parts_add_up_to_the_whole_and_weights_are_counted_once():
    found = measured(replace(ON_CARD, adapter="lora"))
    assert sum(found.largest.parts.values()) == found.largest.allocated
    assert found.largest.parts["weights"] < 2.6 * found.all + 16 * found.trained
    assert found.reserved >= found.largest.allocated
    assert found.peaks[TRIALS].allocated > 0


@pytest.mark.parametrize("card", [False, True])
def test_card_counts_what_a_softmax_takes_within_itself_and_blas(card):
    memory = LiveMemory(PlainAllocator(), card=card)
    with memory:
        scores = torch.zeros(256, 256, requires_grad=True)
        memory.begin()
        torch.ops.aten._softmax_backward_data(scores.detach(), scores.detach(), -1, torch.float32)
    size = scores.nbytes
    within = 3 * size + HANDLES * BLAS_WORKSPACE if card else 2 * size
    assert max(peak.allocated for peak in memory.peaks.values()) == within


def product_sum(weight, scale):
    return (weight * scale).sum()


def two_gradients(weight, scales):
    """As a tied embedding: two gradients of one weight, each a tensor of its own."""
    return product_sum(weight, scales[0]) + product_sum(weight, scales[1])


def three_gradients(weight, scales):
    return two_gradients(weight, scales) + product_sum(weight, scales[0])


def shared_gradient(weight, scales):
    """The sum's first summand is still held where the same tensor is handed to both."""
    twice = weight * scales[0]
    return ((twice + twice) * scales[1]).sum()


def same_gradient_twice(weight, scales):
    return ((weight + weight) * scales[0]).sum()


def expanded_gradient(weight, scales):
    """The first summand is a view that repeats one number."""
    return weight.sum() + product_sum(weight, scales[0])


def view_gradient(weight, scales):
    """The first summand is a view, of which torch makes a sum of its own."""
    return product_sum(weight, scales[0]) + product_sum(weight.view(-1), scales[1].view(-1))


def view_then_own_gradient(weight, scales):
    return view_gradient(weight, scales) + product_sum(weight.t(), scales[1])


class OwnSum(torch.autograd.Function):
    """Its backward adds two tensors by itself, never in place."""

    @staticmethod
    def forward(ctx, weight, scale):
        ctx.scale = scale
        return weight * scale

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.scale + gradient * ctx.scale, None


class Kept(torch.autograd.Function):
    """Its node keeps the gradient that it returned: another's sum cannot take its place."""

    @staticmethod
    def forward(ctx, weight, scale):
        ctx.scale = scale
        return weight * scale

    @staticmethod
    def backward(ctx, gradient):
        ctx.kept = gradient * ctx.scale
        return ctx.kept, None


def kept_gradient(weight, scales):
    return product_sum(weight, scales[0]) + Kept.apply(weight, scales[1]).sum()


def own_sum(weight, scales):
    return OwnSum.apply(weight, scales[0]).sum()


OF_ONE = [two_gradients, three_gradients, view_gradient, view_then_own_gradient, expanded_gradient]
SHARED = [shared_gradient, same_gradient_twice, kept_gradient]
LOSSES = [*OF_ONE, *SHARED, own_sum]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
def test_sums_of_gradients_take_what_torch_takes_for_them(loss):
    """Against the bytes that torch's own allocator reports without any mode."""

    def inputs():
        return torch.randn(256, 256, requires_grad=True), [torch.randn(256, 256) for _ in range(2)]

    weight, scales = inputs()
    value = loss(weight, scales)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        value.backward()
    now = most = 0
    for event in sorted(seen.profiler.kineto_results.events(), key=lambda each: each.start_ns()):
        if event.name() == "[memory]":
            now += event.nbytes()
            most = max(most, now)
    memory = LiveMemory(PlainAllocator())
    with memory:
        weight, scales = inputs()
        value = loss(weight, scales)
        memory.part = "activations"
        memory.begin()
        before = memory.allocator.allocated
        value.backward()
        del value
        assert memory.allocator.allocated == sum(memory.bytes.values())
    planned = max(peak.allocated for peak in memory.peaks.values()) - before
    assert planned == pytest.approx(most, abs=4096)  # numbers alone
    assert most > weight.nbytes


def test_product_summed_in_fp32_makes_nothing_and_its_flops_count():
    memory = LiveMemory(PlainAllocator())
    left, right = torch.ones(4, 8).half(), torch.ones(8, 6).half()
    with memory:
        total = torch.zeros(4, 6)
        held = memory.allocator.allocated
        found = torch.ops.aten.addmm.dtype_out(total, left, right, torch.float32, out=total)
    assert found is total
    assert (memory.allocator.allocated, memory.flops) == (held, 2 * 4 * 8 * 6)

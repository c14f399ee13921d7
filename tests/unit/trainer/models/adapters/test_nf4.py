"""NF4 against bitsandbytes on a CPU, and the layer against a dense one with the same values."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from trainer.models.adapters import nf4
from trainer.models.adapters.nf4 import BLOCK, LEVELS, PIECE, NF4Linear, dequantize, quantize


@pytest.mark.parametrize("shape", [(64, 64), (7, 64), (5, 13), (1, 1), (3, 65)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_dequantized_values_equal_those_of_bitsandbytes(shape, dtype):
    bitsandbytes = pytest.importorskip("bitsandbytes")
    torch.manual_seed(0)
    weight = torch.randn(shape, dtype=dtype)
    packed, scales = quantize(weight)
    torch.compiler.set_stance("force_eager")  # compiling its reference path takes a minute
    theirs, state = bitsandbytes.functional.quantize_4bit(weight, blocksize=64, quant_type="nf4")
    assert torch.equal(packed, theirs.flatten())
    assert torch.equal(scales, state.absmax)
    expected = bitsandbytes.functional.dequantize_4bit(theirs, state)
    torch.compiler.set_stance("default")
    assert torch.equal(dequantize(packed, scales, weight.shape, dtype), expected)


def test_levels_are_kept_exactly_and_zero_stays_zero():
    weight = torch.tensor(LEVELS).repeat(4).view(2, 32) * 3
    assert torch.equal(dequantize(*quantize(weight), weight.shape, torch.float32), weight)
    zero = torch.zeros(2, 40)
    assert torch.equal(dequantize(*quantize(zero), zero.shape, torch.float32), zero)


def test_layer_gives_outputs_and_input_gradients_of_the_dense_layer_with_its_values():
    torch.manual_seed(0)
    base = nn.Linear(24, 10).double()
    layer = NF4Linear(base)
    inputs = torch.randn(3, 24, dtype=torch.float64, requires_grad=True)
    expected = nn.functional.linear(inputs, layer.dense(torch.float64), base.bias)
    assert torch.allclose(layer(inputs), expected, rtol=1e-12)
    weights = torch.randn(3, 10, dtype=torch.float64)
    ours = torch.autograd.grad((layer(inputs) * weights).sum(), inputs)[0]
    assert torch.allclose(ours, torch.autograd.grad((expected * weights).sum(), inputs)[0], rtol=1e-12)


def test_cast_of_the_model_leaves_the_scales_in_fp32():
    model = nn.Sequential(NF4Linear(nn.Linear(64, 64)))
    before = model[0].scales.clone()
    model.to(torch.bfloat16)
    assert torch.equal(model[0].scales, before)


def test_undone_step_and_checkpoint_copy_no_four_bit_weight():
    from trainer.device.memory import changing_buffers
    from trainer.engine.training import changing_state
    from trainer.models.adapters.nf4 import quantize_linear_layers

    model = torch.nn.Sequential(torch.nn.Linear(64, 2), torch.nn.BatchNorm1d(2))
    quantize_linear_layers(model, ["0"])
    assert {name.split(".")[0] for name in model.state_dict()} == {"0", "1"}
    assert {name.split(".")[0] for name in changing_state(model)} == {"1"}
    assert len(changing_buffers(model)) == 3  # the norm's


@pytest.mark.parametrize("shape", [(10, 24), (3, 7), (64, 64)])
def test_empty_layer_that_loads_a_weight_holds_what_a_layer_of_it_holds(shape):
    base = nn.Linear(shape[1], shape[0])
    whole, empty = NF4Linear(base), NF4Linear(base, empty=True)
    assert not empty.packed.any()
    empty.load(base.weight)
    assert torch.equal(empty.packed, whole.packed)
    assert torch.equal(empty.scales, whole.scales)


def by_search(weight):
    """Codes and scales by a search among all boundaries, without tables and pieces."""
    blocks = nn.functional.pad(weight.reshape(-1).float(), (0, -weight.numel() % BLOCK)).view(-1, BLOCK)
    scales = blocks.abs().amax(dim=1)
    levels = torch.tensor(LEVELS)
    codes = torch.bucketize(blocks / scales.where(scales > 0, 1.0).unsqueeze(1), (levels[1:] + levels[:-1]) / 2)
    codes = torch.cat([codes.view(-1)[: weight.numel()], torch.tensor([7] * (weight.numel() % 2), dtype=torch.long)])
    return (codes[0::2] * 16 + codes[1::2]).to(torch.uint8), scales


@pytest.mark.parametrize("count", [1, 63, 64, 65, PIECE, PIECE + 1, 2 * PIECE + 99])
def test_quantize_by_tables_and_pieces_gives_the_codes_of_a_search_among_all_boundaries(count):
    weight = torch.randn(count, generator=torch.Generator().manual_seed(count))
    packed, scales = quantize(weight)
    expected = by_search(weight)
    assert torch.equal(packed, expected[0])
    assert torch.equal(scales, expected[1])


def test_quantize_rounds_every_boundary_and_its_neighbours_as_a_search_does():
    levels = torch.tensor(LEVELS)
    middle = (levels[1:] + levels[:-1]) / 2
    near = [torch.nextafter(middle, torch.tensor(end)) for end in (-2.0, 2.0)]
    values = torch.cat([middle, *near, levels, torch.tensor([-0.0, 1e-45])])
    weight = values.unsqueeze(1).repeat(1, BLOCK)
    weight[:, 0] = 1.0  # the scale: values stay as they are
    assert torch.equal(quantize(weight)[0], by_search(weight)[0])


def test_quantize_of_numbers_that_are_not_finite_keeps_their_blocks_not_finite_and_the_others_right():
    weight = torch.randn(4, BLOCK)
    weight[0, 3], weight[1, 5], weight[2, 7] = torch.nan, torch.inf, -torch.inf
    values = dequantize(*quantize(weight), weight.shape, torch.float32)
    assert not values[:3].isfinite().any(dim=1).all()
    assert torch.equal(quantize(weight)[0], by_search(weight)[0])
    assert torch.equal(values[3], dequantize(*quantize(weight[3]), weight[3].shape, torch.float32))


def test_quantised_layer_made_where_another_device_is_the_default_has_its_tables_on_the_host():
    """As the number of weights is counted: on the meta device, whose tensors have no numbers."""
    with torch.device("meta"):
        made = NF4Linear(torch.nn.Linear(64, 8))
    assert made.packed.device.type == "meta"


@pytest.mark.parametrize("piece", [64, 192, 2**22])
def test_quantize_gives_the_same_codes_whatever_is_quantised_at_a_time(monkeypatch, piece):
    weight = torch.randn(37, 45, generator=torch.Generator().manual_seed(1))
    expected = quantize(weight)
    monkeypatch.setattr(nf4, "PIECE", piece)
    assert all(torch.equal(one, other) for one, other in zip(quantize(weight), expected, strict=True))


def test_layer_takes_a_weight_over_on_another_device_than_its_own(monkeypatch):
    """The meta device stands in for a card: what is computed there has no numbers, but says where it is."""
    layer, seen = NF4Linear(torch.nn.Linear(8, 16, bias=False)), []
    monkeypatch.setattr(nf4, "quantize", lambda weight, device: (seen.append(device), quantize(weight))[1])
    weight = torch.randn(16, 8)
    layer.load(weight, torch.device("meta"))
    assert seen == [torch.device("meta")]
    assert torch.equal(layer.packed, quantize(weight)[0]) and layer.packed.device.type == "cpu"
    assert quantize(weight, torch.device("meta"))[0].device.type == "meta"


@pytest.mark.parametrize("held", [False, True])
def test_dense_weight_is_written_where_it_belongs(held):
    layer = NF4Linear(torch.nn.Linear(64, 6))
    if held:
        layer.hold_dense(torch.bfloat16)
    wide = torch.zeros(10, 64, dtype=torch.bfloat16)
    assert layer.dense(torch.bfloat16, out=wide[2:8]).data_ptr() == wide[2:8].data_ptr()
    assert torch.equal(wide[2:8], layer.dense(torch.bfloat16))
    assert not wide[:2].any()
    assert not wide[8:].any()

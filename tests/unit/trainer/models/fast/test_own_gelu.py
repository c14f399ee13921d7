"""Blocks with own kernels of GELU equal plain ones, and are used where they are faster than compiled ones."""

from __future__ import annotations

import copy

import pytest
import torch
from torch.nn import functional

from tests.fixtures.fast_blocks import decoder, learned, next_token, request, wrapped
from trainer.models.activation_checkpointing import checkpointed
from trainer.models.fast import block_trial, choose, own_gelu
from trainer.models.fast.compiled import CompiledBlock

add_product = own_gelu._add_product


class StandIn:
    """A STAND-IN for the Triton kernels: the same three results by torch's operations, for GELU by tanh.

    wrong: factor of the sum, of which the bias' gradient is made.
    """

    def __init__(self, wrong: float = 1.0) -> None:
        self.wrong = wrong

    def forward(self, inputs):
        return functional.gelu(inputs, approximate="tanh")

    def backward(self, inputs, upstream):
        found = torch.ops.aten.gelu_backward(upstream, inputs, approximate="tanh")
        return self.forward(inputs), found, self.wrong * found.sum(0)


@pytest.fixture
def there(quick, monkeypatch):
    """Own kernels as on a card with Triton, each way timed at half of the one before; the compiler is left out."""
    monkeypatch.setattr(own_gelu, "why_not", lambda *given: None)
    monkeypatch.setattr(own_gelu, "there", lambda: True)
    monkeypatch.setattr(own_gelu, "LEAST", 32)
    monkeypatch.setattr(own_gelu, "kernels_of", lambda activation: StandIn())
    monkeypatch.setattr(choose.compiled.torch, "compile", lambda function, **how: function)


@pytest.mark.parametrize("choice", ["off", "full", "offloaded"])
def test_blocks_with_own_gelu_have_the_losses_and_gradients_of_plain_ones(choice, monkeypatch):
    plain = decoder("gpt2")
    fast, seen = copy.deepcopy(plain), []
    shared = CompiledBlock(gelu=StandIn(), compile_=lambda function, **how: function)
    monkeypatch.setattr(own_gelu, "_add_product", lambda *given: seen.append(0) or add_product(*given))
    for block in fast.model.layers:
        block.fast = shared
    checkpointed(fast, choice, list(fast.model.layers))
    exact, found = learned(plain, next_token(plain)), learned(fast, next_token(fast))
    torch.testing.assert_close(found[0], exact[0], rtol=1e-12, atol=0)
    for name, value in exact[1].items():
        torch.testing.assert_close(found[1][name], value, rtol=1e-9, atol=1e-14 + 1e-12 * value.abs().max().item())
    assert len(seen) == len(fast.model.layers)  # not in the pass that checkpointing runs again


def test_residual_stream_wider_than_the_products_stays_as_wide():
    """In fp16 the stream is fp32."""
    block = decoder("gpt2", dtype=torch.float32).model.layers[0]
    stream, joint = torch.zeros(1, 3, 32), torch.randn(1, 3, 128).half().requires_grad_()
    made = own_gelu.narrowed(block, stream, joint, StandIn())
    made.sum().backward()
    assert (made.dtype, joint.grad.dtype, block.mlp.up_proj.bias.grad.dtype) == (
        torch.float32,
        torch.float16,
        torch.float32,
    )


def test_own_gelu_that_is_faster_than_compiled_blocks_is_used_and_used_again_by_the_resumed_run(there):
    chosen = choose.use_fast(wrapped(decoder("gpt2")), request())
    assert chosen.names()["blocks"] == choose.OWN_GELU
    assert [trial.name for trial in chosen.choices["blocks"].trials] == ["plain", "compiled", choose.OWN_GELU]
    again = choose.use_fast(wrapped(decoder("gpt2")), request(before=chosen.names()))
    assert again.names() == chosen.names()


@pytest.mark.parametrize(
    ("seconds", "held", "name"),
    [
        ((1.2,), 5, choose.OWN_GELU),  # not clearly slower, and holds less
        ((1.4, 1.2), 5, choose.OWN_GELU),  # timed again
        ((1.4,), 5, "compiled"),
        ((0.98,), 10, "compiled"),  # holds as much: a gain within the noise
        ((0.9,), 10, choose.OWN_GELU),
    ],
)
def test_own_gelu_is_used_where_it_is_faster_or_leaner_and_not_clearly_slower(there, monkeypatch, seconds, held, name):
    own = iter((*seconds, *seconds[-1:] * 9))
    way = lambda block: None if block.fast is None else "own" if block.fast.gelu else "compiled"  # noqa: E731
    times = {None: lambda: 4.0, "compiled": lambda: 1.0, "own": lambda: next(own)}
    monkeypatch.setattr(block_trial, "_time_of_most", lambda block, request: times[way(block)]())
    monkeypatch.setattr(block_trial, "_held", lambda block, request: held if way(block) == "own" else 10)
    model = wrapped(decoder("gpt2"))
    assert choose.use_fast(model, request()).names()["blocks"] == name
    assert {way(block) for block in model.decoder.model.layers} == {"own" if "own" in name else "compiled"}


def test_own_gelu_one_tenth_wrong_in_the_bias_gradient_leaves_compiled_blocks_in_use(there, monkeypatch):
    monkeypatch.setattr(own_gelu, "kernels_of", lambda activation: StandIn(wrong=1.1))
    choice = choose.use_fast(wrapped(decoder("gpt2")), request()).choices["blocks"]
    assert choice.name == "compiled"
    assert "against fp64" in choice.trials[-1].refused


def test_own_gelu_of_a_run_that_refuses_triton_is_not_tried(there):
    choice = choose.use_fast(wrapped(decoder("gpt2")), request(refused={"triton": "no"})).choices["blocks"]
    assert choice.name == "compiled" and len(choice.trials) == 2


def test_own_gelu_is_tried_from_so_many_tokens_on(there):
    for rows, name in ((1, "compiled"), (2, choose.OWN_GELU)):
        assert choose.use_fast(wrapped(decoder("gpt2")), request(rows=rows)).names()["blocks"] == name


@pytest.mark.parametrize(
    ("family", "activation", "dtype", "words"),
    [
        ("llama", "silu", torch.bfloat16, "a gate or another activation"),
        ("gpt2", "relu", torch.bfloat16, "a gate or another activation"),
        ("gpt2", "gelu_new", torch.float32, "16 bits"),
        ("gpt2", "gelu", torch.float16, None),
    ],
)
def test_layer_that_own_gelu_cannot_compute_has_a_reason(family, activation, dtype, words):
    found = own_gelu.why_not(decoder(family).model.layers[0], activation, dtype)
    assert found is None if words is None else words in found

"""What failed a gate is not tried by `use_fast`: kernels, compiled code, Triton, adapters whose rank is filled up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.fixtures.fast_blocks import decoder, request, wrapped
from trainer.models.adapters.lora import pad_ranks
from trainer.models.adapters.nf4 import NF4Linear, hold_dense
from trainer.models.fast import block_trial, choose, cross_entropy


def used(model: Any, **refused: str) -> Any:
    return choose.use_fast(model, replace(request(), refused=refused)).choices


def test_attention_kernel_that_failed_its_gate_is_left_out_with_the_reason(quick: None) -> None:
    choices = used(wrapped(decoder("llama", ("all",))), flash="its gate failed: F")
    trials = {trial.name: trial.refused for trial in choices["attention"].trials}
    assert trials["flash"] == "its gate failed: F"
    assert choices["attention"].name.startswith("math")
    assert not trials["math"]


def test_kernels_that_all_failed_leave_torchs_choice(quick: None) -> None:
    refused = dict.fromkeys(("flash", "cudnn", "efficient", "math"), "F")
    assert used(wrapped(decoder("llama", ("all",))), **refused)["attention"].name == "torch's choice"


@pytest.mark.parametrize("targets", [("all",), None], ids=["adapted", "trained"])
def test_compiler_that_failed_its_gate_is_not_called(
    targets: tuple[str, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def called(*values: Any, **how: Any) -> Any:
        raise AssertionError("the compiler was called")

    times = iter(2.0**-step for step in range(1000))
    monkeypatch.setattr(block_trial, "seconds_of", lambda work, device: (work(), next(times))[1])
    monkeypatch.setattr(cross_entropy, "seconds_of", lambda work, device: 1.0)
    monkeypatch.setattr(choose.elementwise, "compiled", called)
    monkeypatch.setattr(torch, "compile", called)
    choices = used(wrapped(decoder("llama", targets)), compile="C", triton="T")
    assert choices["blocks"].name == ("plain" if targets is None else "adapters folded, plain elementwise")
    assert targets is not None or "C" in choices["blocks"].why
    assert choices["loss"].name == "plain"
    assert {trial.name: trial.refused for trial in choices["loss"].trials}["compiled"] == "C"


def test_way_of_an_unfinished_run_that_failed_its_gate_is_replaced(quick: None) -> None:
    before = replace(request(), before={"attention": "flash, grouped", "loss": "compiled", "blocks": "plain"})
    found = choose.use_fast(
        wrapped(decoder("llama", ("all",))), replace(before, refused={"flash": "F", "compile": "C"})
    )
    assert found.names()["attention"] == "torch's choice"
    assert found.names()["loss"] == "plain"


def test_adapters_that_are_filled_up_are_computed_plainly(quick: None) -> None:
    model = wrapped(decoder("llama", ("all",)))
    pad_ranks(model, 64)
    choice = used(model)["blocks"]
    assert (choice.name, choice.why) == ("plain", "its rank is filled up")


@pytest.mark.parametrize("rank", [1, 3, 64])
def test_rank_filled_up_changes_no_output_and_no_gradient(rank: int) -> None:
    model = decoder("llama", ("all",), rank=rank)
    tokens = torch.arange(10).reshape(1, 10)

    def results() -> list[torch.Tensor]:
        output = model(tokens)
        weights = [weight for weight in model.parameters() if weight.requires_grad]
        return [output, *torch.autograd.grad(output.square().sum(), weights)]

    plain = results()
    pad_ranks(model, 64)
    torch.testing.assert_close(results(), plain, rtol=1e-10, atol=1e-12)


def test_dense_weights_follow_their_layer_and_stay_out_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    model = decoder("llama", ("all",), quantized=True)
    tokens = torch.arange(10).reshape(1, 10)
    expected, names = model(tokens), set(model.state_dict())
    hold_dense(model, torch.float32)
    layers = [module for module in model.modules() if isinstance(module, NF4Linear)]
    assert layers
    monkeypatch.setattr("trainer.models.adapters.nf4.dequantize", None)
    torch.testing.assert_close(model(tokens), expected, rtol=1e-5, atol=1e-6)
    assert set(model.state_dict()) == names
    assert all(layer.to("meta").held.is_meta for layer in layers)  # type: ignore[union-attr]

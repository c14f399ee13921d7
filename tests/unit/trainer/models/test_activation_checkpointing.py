from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from trainer.config.choices import RECOMPUTE
from trainer.models import activation_checkpointing
from trainer.models.activation_checkpointing import (
    checkpointed,
    expensive_operations,
    layers,
    require_whole_layers,
    without_recomputation,
)
from trainer.models.decoder.model import Decoder
from trainer.models.pretrained.families import decoder_config
from trainer.runtime.errors import TrainerError


class Counting(nn.Module):
    calls = 0

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        Counting.calls += 1
        result: Tensor = self.drop(torch.tanh(self.linear(x)))
        return result


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(Counting(), Counting())


def gradients(of: nn.Module) -> list[Tensor]:
    torch.manual_seed(1)
    of(torch.ones(3, 4, requires_grad=True)).square().sum().backward()
    return [parameter.grad for parameter in of.parameters() if parameter.grad is not None]


@pytest.mark.parametrize("choice", RECOMPUTE)
def test_gradients_are_the_same_bits_dropout_included(choice: str) -> None:
    plain, tried = model(), model()
    checkpointed(tried, choice, layers(tried))
    expected = gradients(plain)
    assert len(expected) == 4
    assert all(torch.equal(a, b) for a, b in zip(gradients(tried), expected, strict=True))
    assert list(tried.state_dict()) == list(plain.state_dict())


@pytest.mark.parametrize(("choice", "calls"), [("off", 2), ("full", 4), ("selective", 4), ("offloaded", 4)])
def test_layers_are_recomputed_in_backward_on_request_only(choice: str, calls: int) -> None:
    tried = model()
    checkpointed(tried, choice, layers(tried))
    before = Counting.calls
    gradients(tried)
    assert Counting.calls - before == calls


def kept_bytes(choice: str) -> int:
    torch.manual_seed(0)
    tried = nn.Sequential(
        *[nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU()) for _ in range(4)]
    )
    checkpointed(tried, choice, layers(tried))
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        output = tried(torch.ones(128, 64))
    del output
    return sum(kept.values())


def test_full_keeps_least() -> None:
    assert kept_bytes("full") < kept_bytes("off") / 2


def test_selective_keeps_the_results_of_products(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [str(operation) for operation in expensive_operations()]
    assert {"aten.mm.default", "aten.addmm.default", "aten.bmm.default"} <= set(names)
    monkeypatch.delattr("torch.utils.checkpoint.create_selective_checkpoint_contexts")
    with pytest.raises(TrainerError, match="RM562"):
        checkpointed(tried := model(), "selective", layers(tried))


def test_copy_recomputes_itself_and_not_the_original() -> None:
    original = checkpointed(tried := model(), "full", layers(tried))
    other = copy.deepcopy(original)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
    assert gradients(other)[0].abs().sum() == 0
    assert all(parameter.grad is None for parameter in original.parameters())


def test_layers_of_a_kind_have_one_class_as_compiled_code_is_guarded_by_it() -> None:
    tried = nn.Sequential(Counting(), nn.Linear(4, 4), Counting(), nn.Linear(4, 4))
    checkpointed(tried, "full", list(tried))
    kinds = [type(each) for each in tried]
    assert kinds[0] is kinds[2]
    assert kinds[1] is kinds[3]
    assert kinds[0] is not kinds[1]


def test_network_without_layers_has_nothing_to_recompute() -> None:
    with pytest.raises(TrainerError, match="RM563"):
        checkpointed(nn.ReLU(), "full", [])


def test_selective_leaves_layers_that_select_by_themselves_as_they_are():
    class Way:
        selective = True

    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[0].fast = Way()
    checkpointed(model, "selective", list(model))
    assert [hasattr(type(each), "recomputed") for each in model] == [False, True]
    checkpointed(model, "full", [model[0]])
    assert hasattr(type(model[0]), "recomputed")


def test_offloaded_layers_keep_copies_of_their_inputs_elsewhere_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    packed: list[Tensor] = []
    right = activation_checkpointing.to_host

    def watched(value: Tensor) -> tuple[torch.device, Tensor]:
        packed.append(value)
        made = right(value)
        assert made[1].data_ptr() != value.data_ptr()
        return made

    monkeypatch.setattr(activation_checkpointing, "to_host", watched)
    checkpointed(tried := model(), "offloaded", layers(tried))
    gradients(tried)
    assert [tuple(each.shape) for each in packed] == [(3, 4), (3, 4)]


def test_offloaded_layers_learn_where_their_input_needs_no_gradient() -> None:
    """As the adapters of a first block above a frozen embedding."""
    plain, tried = model(), model()
    checkpointed(tried, "offloaded", layers(tried))
    for each in (plain, tried):
        torch.manual_seed(1)
        each(torch.ones(3, 4)).square().sum().backward()
    assert all(torch.equal(a.grad, b.grad) for a, b in zip(plain.parameters(), tried.parameters(), strict=True))  # type: ignore[arg-type]


def test_offloaded_layers_compute_plainly_where_nothing_is_learned() -> None:
    checkpointed(tried := model(), "offloaded", layers(tried))
    with torch.no_grad():
        before = Counting.calls
        tried(torch.ones(3, 4))
    assert Counting.calls - before == 2
    assert type(without_recomputation(tried)[0]) is Counting  # type: ignore[index]


def test_offloaded_with_ranks_that_hold_parts_is_refused() -> None:
    require_whole_layers("offloaded", "ddp")
    require_whole_layers("full", "fsdp2")
    with pytest.raises(TrainerError, match="RM563"):
        require_whole_layers("offloaded", "fsdp2")


@pytest.mark.parametrize(("dropout", "kept"), [(0.0, False), (0.1, True)])
def test_states_of_generators_are_kept_only_where_layers_draw(
    dropout: float, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def checkpoint(work: Any, *inputs: Any, preserve_rng_state: bool = True, **how: Any) -> Any:
        seen.append(preserve_rng_state)
        return work(*inputs)

    monkeypatch.setattr("torch.utils.checkpoint.checkpoint", checkpoint)
    raw = {"model_type": "gpt2", "vocab_size": 8, "n_positions": 8, "n_embd": 8, "n_layer": 2, "n_head": 2}
    decoder = Decoder(decoder_config(raw | {"resid_pdrop": dropout, "embd_pdrop": 0.0, "attn_pdrop": 0.0}))
    checkpointed(decoder, "full", decoder.blocks)(torch.zeros(1, 3, dtype=torch.long))
    assert seen == [kept, kept]

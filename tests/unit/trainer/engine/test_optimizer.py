"""The optimizer takes the weights that are trained, and one kernel for all of them where there is one."""

import copy
from typing import Any

import pytest
import torch
from torch import nn

from tests.fixtures.small_adapters import CONFIGS, GPT2, LLAMA, base
from trainer.config.choices import OPTIMIZERS
from trainer.engine import optimizer as optimizer_module
from trainer.engine.adamw_8bit import AdamW8bit
from trainer.engine.muon import Muon
from trainer.engine.optimizer import STATES, AdamWOnHost, adamw, hidden_matrices, optimizer_of, require_optimizer
from trainer.models.adapters.lora import add_lora
from trainer.models.language.model import LanguageModel
from trainer.models.residual import residual
from trainer.runtime.errors import TrainerError


def test_frozen_weights_are_left_out() -> None:
    model = nn.Linear(3, 2)
    model.bias.requires_grad_(False)
    optimizer = adamw(model, 0.25, fused=False)
    ((weight,),) = (group["params"] for group in optimizer.param_groups)
    assert weight is model.weight
    assert optimizer.defaults["lr"] == 0.25


@pytest.mark.parametrize(("device", "fused", "used"), [("cpu", True, True), ("cpu", False, None), ("meta", True, None)])
def test_fused_kernel_is_used_on_request_where_the_device_has_one(device: str, fused: bool, used: bool | None) -> None:
    optimizer = adamw(nn.Linear(3, 2, device=torch.device(device)), 0.1, fused=fused)
    assert optimizer.defaults["fused"] is used


@pytest.mark.parametrize("raw", [LLAMA, GPT2], ids=["llama", "gpt2"])
def test_hidden_matrices_of_a_decoder_are_those_of_its_blocks(raw: dict[str, object]) -> None:
    model = LanguageModel(base(raw))
    chosen = {id(weight) for weight in hidden_matrices(model)}
    names = {name for name, weight in model.named_parameters() if id(weight) in chosen}
    assert names == {name for name, each in model.named_parameters() if ".layers." in name and each.ndim == 2}
    assert len(names) >= 8


def test_hidden_matrices_of_a_stack_leave_out_the_first_and_the_last() -> None:
    model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 1))
    (found,) = hidden_matrices(model)
    assert found is model[2].weight
    assert hidden_matrices(nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 1))) == []


def test_trained_weight_is_in_one_group() -> None:
    for name in OPTIMIZERS:
        model = LanguageModel(base())
        next(model.parameters()).requires_grad_(False)
        optimizer = optimizer_of(name, model, 0.1, fused=False)
        held = [id(weight) for group in optimizer.param_groups for weight in group["params"]]
        assert sorted(held) == sorted(id(weight) for weight in model.parameters() if weight.requires_grad)


def test_kind_of_the_optimizer_follows_the_name() -> None:
    model = LanguageModel(base())
    kinds = {name: type(optimizer_of(name, model, 0.1, fused=False)) for name in OPTIMIZERS}
    expected = {"adamw": torch.optim.AdamW, "adamw8bit": AdamW8bit, "muon": Muon, "adamw-host": AdamWOnHost}
    assert kinds == expected
    assert STATES.keys() == kinds.keys()


def test_embeddings_have_moments_in_full_under_8_bits() -> None:
    model = nn.Sequential(nn.Embedding(500, 64), nn.Linear(64, 100))
    optimizer = optimizer_of("adamw8bit", model, 0.1, fused=False)
    assert [optimizer.is_narrow(weight) for weight in model.parameters()] == [False, True, False]  # type: ignore[attr-defined]


def test_muon_without_a_hidden_matrix_is_refused() -> None:
    with pytest.raises(TrainerError, match="RM529"):
        optimizer_of("muon", nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 1)), 0.1, fused=False)
    model = base()
    add_lora(model, CONFIGS["plain"], seed=0)
    with pytest.raises(TrainerError, match="RM529"):
        optimizer_of("muon", LanguageModel(model), 0.1, fused=False)
    stack = residual(3, (8, 8), 1, activation="ReLU", norm="none", dropout=0.0)
    assert type(optimizer_of("muon", stack, 0.1, fused=False)) is Muon


def test_query_key_and_value_in_one_weight_are_three_matrices_to_muon() -> None:
    model = LanguageModel(base(GPT2))
    optimizer = optimizer_of("muon", model, 0.1, fused=False)
    fused = {id(block.self_attn.qkv_proj.weight): block.self_attn.qkv_proj for block in model.blocks}  # type: ignore[union-attr]
    assert optimizer.parts.keys() == fused.keys()  # type: ignore[attr-defined]
    for name, rows in optimizer.parts.items():  # type: ignore[attr-defined]
        assert sum(rows) == fused[name].out_features
        assert len(rows) == 3


def test_learning_rate_of_muon_is_of_its_matrices_alone() -> None:
    optimizer = optimizer_of("muon", LanguageModel(base()), 0.1, fused=False, muon_learning_rate=0.02)
    assert [(group["lr"], group["spectral"]) for group in optimizer.param_groups] == [(0.02, True), (0.1, False)]
    optimizer = optimizer_of("muon", LanguageModel(base()), 0.1, fused=False)
    assert [(group["lr"], group["spectral"]) for group in optimizer.param_groups] == [(0.1, False), (0.1, False)]


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize(("parallel", "ranks"), [("ddp", 2), ("fsdp2", 1), ("fsdp2", 2), ("pipeline", 2)])
def test_optimizer_that_takes_weights_whole_is_refused_where_ranks_hold_parts(
    name: str, parallel: str, ranks: int
) -> None:
    if name == "adamw" or parallel == "ddp" or ranks == 1:
        require_optimizer(name, parallel, ranks)
    else:
        with pytest.raises(TrainerError, match="RM529"):
            require_optimizer(name, parallel, ranks)


def stepped(optimizer: torch.optim.Optimizer, model: nn.Module, steps: range) -> None:
    for step in steps:
        for number, weight in enumerate(model.parameters()):
            generator = torch.Generator().manual_seed(100 * step + number)
            weight.grad = torch.randn(weight.shape, generator=generator)
        optimizer.step()


def twins() -> tuple[nn.Module, nn.Module]:
    torch.manual_seed(0)
    first, second = nn.Linear(7, 5), nn.Linear(7, 5)
    second.load_state_dict(first.state_dict())
    return first, second


def test_moments_on_the_host_give_the_steps_of_adamw() -> None:
    first, second = twins()
    ours, theirs = AdamWOnHost(first.parameters(), lr=0.1), torch.optim.AdamW(second.parameters(), lr=0.1)
    stepped(ours, first, range(5))
    stepped(theirs, second, range(5))
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_moments_on_the_host_are_there_and_copies_of_what_a_step_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    model, _ = twins()
    optimizer = AdamWOnHost(model.parameters(), lr=0.1)
    used: list[int] = []
    right = optimizer_module.adamw_step

    def watched(weight: torch.Tensor, state: dict[str, Any], **how: Any) -> None:
        used.extend(value.data_ptr() for value in state.values() if torch.is_tensor(value))
        right(weight, state, **how)

    monkeypatch.setattr(optimizer_module, "adamw_step", watched)
    stepped(optimizer, model, range(1))
    held = [value for state in optimizer.state.values() for value in state.values() if torch.is_tensor(value)]
    assert len(held) == 4 and all(value.device.type == "cpu" and value.abs().sum() > 0 for value in held)
    assert not {value.data_ptr() for value in held} & set(used)
    assert [tuple(each.shape) for each in optimizer.reserve()] == [(35,)] * 4


@pytest.mark.parametrize("piece", [1, 8, 35])
def test_moments_on_the_host_give_the_same_bits_in_pieces_of_any_size(
    monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    whole, parted = twins()
    stepped(AdamWOnHost(whole.parameters(), lr=0.1), whole, range(3))
    monkeypatch.setattr(optimizer_module, "PIECE", piece)
    stepped(AdamWOnHost(parted.parameters(), lr=0.1), parted, range(3))
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), parted.parameters(), strict=True))


def test_moments_on_the_host_of_a_transposed_weight_give_its_steps() -> None:
    first, second = twins()
    first.weight = nn.Parameter(first.weight.detach().t().contiguous().t())
    assert not first.weight.is_contiguous()
    stepped(AdamWOnHost(first.parameters(), lr=0.1), first, range(3))
    stepped(AdamWOnHost(second.parameters(), lr=0.1), second, range(3))
    assert torch.equal(first.weight, second.weight)


def test_moments_on_the_host_resume_to_the_same_bits() -> None:
    whole, parted = twins()
    stepped(AdamWOnHost(whole.parameters(), lr=0.1), whole, range(6))
    first = AdamWOnHost(parted.parameters(), lr=0.1)
    stepped(first, parted, range(3))
    second = AdamWOnHost(parted.parameters(), lr=0.1)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    stepped(second, parted, range(3, 6))
    assert all(torch.equal(a, b) for a, b in zip(whole.parameters(), parted.parameters(), strict=True))

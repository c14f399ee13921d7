"""The optimizer takes the weights that are trained, and one kernel for all of them where there is one."""

import pytest
import torch
from torch import nn

from tests.fixtures.small_adapters import CONFIGS, GPT2, LLAMA, base
from trainer.config.choices import OPTIMIZERS
from trainer.engine.adamw_8bit import AdamW8bit
from trainer.engine.muon import Muon
from trainer.engine.optimizer import STATES, adamw, hidden_matrices, optimizer_of, require_optimizer
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
    assert kinds == {"adamw": torch.optim.AdamW, "adamw8bit": AdamW8bit, "muon": Muon}
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
